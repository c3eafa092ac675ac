#include "plan/print_operations.h"

#include <algorithm>

#include "base/units.h"
#include "plan/extent.h"

namespace gptbench {
namespace {

constexpr size_t max_columns = 100;

// Appends words to lines that begin at a column, and breaks them where they would be too long.
class Wrapped {
 public:
  Wrapped(std::string& text, size_t indent) : text_(text), indent_(indent) {}
  void add(const std::string& word) {
    if (column_ > indent_ && column_ + 2 + word.size() > max_columns) end();
    const std::string lead = column_ == 0 ? std::string(indent_, ' ') : "  ";
    text_ += lead + word;
    column_ += lead.size() + word.size();
  }
  void end() {
    if (column_ > 0) text_ += '\n';
    column_ = 0;
  }

 private:
  std::string& text_;
  size_t indent_, column_ = 0;
};

std::string padded(std::string text, size_t columns) {
  text.resize(std::max(text.size() + 1, columns), ' ');
  return text;
}

std::string shape_text(const Plan& plan, const Op& op, const SlotSpec& spec, int64_t held_rows) {
  std::string text;
  for (const Dim dim : {spec.rows, spec.columns}) {
    if (dim == Dim::one) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(value_of(plan, op, dim, held_rows));
  }
  return "[" + (text.empty() ? "1" : text) + "]";
}

// "x = activations::h.0.ln_1 bf16[2048, 768]": "=" of what is read, ":=" of what is overwritten,
// "+=" of what is accumulated to.
std::string operand_text(const Plan& plan, const Op& op, const SlotSpec& spec, int64_t held_rows) {
  const Operand& operand = op[spec.slot];
  const DType type = plan.buffers[static_cast<size_t>(operand.buffer)].dtype;
  const Access access = access_of(op, spec.slot);
  const char* const sign = access == Access::read    ? " = "
                           : access == Access::write ? " := "
                                                     : " += ";
  return name_of(spec.slot) + std::string(sign) + place_text(plan, operand) + " " + name_of(type) +
         shape_text(plan, op, spec, held_rows);
}

std::string title_of(const Plan& plan, const Op& op) {
  std::string text = spec_of(op.kind).name;
  if (is_message(op.kind))
    text +=
        std::string(" ") + name_of(op.axis) + " of " + std::to_string(plan.grid.size_of(op.axis));
  if (op.layer >= plan.shape.L)
    text += ", head";
  else if (op.layer >= 0)
    text += ", layer " + std::to_string(op.layer);
  return text;
}

void print_operation(std::string& text, const Plan& plan, int32_t i) {
  const Op& op = plan.ops[static_cast<size_t>(i)];
  const int64_t held_rows = plan.micro_batches.rows;
  const double flops = op.flops_per_row * static_cast<double>(rows_of(op, held_rows));
  std::string line =
      padded(std::to_string(i), 6) + padded(name_of(op.queue), 17) + padded(title_of(plan, op), 44);
  if (flops > 0.0) line += padded(format_si(flops, "FLOP"), 14);
  const int64_t bytes = bytes_moved(plan, op, held_rows);
  if (bytes > 0) line = padded(line, 81) + format_bytes(bytes);
  text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  Wrapped operands(text, 8);
  for (const SlotSpec& spec : spec_of(op.kind))
    if (op.has(spec.slot)) operands.add(operand_text(plan, op, spec, held_rows));
  operands.end();
  if (op.waits_for.empty()) return;
  Wrapped waits(text, 8);
  waits.add("waits for");
  for (const int32_t wait : op.waits_for)
    waits.add(std::to_string(wait) +
              (plan.ops[static_cast<size_t>(wait)].events > 1 ? " (this slot)" : ""));
  waits.end();
}

}  // namespace

std::string place_text(const Plan& plan, const Operand& operand) {
  const Buffer& buffer = plan.buffers[static_cast<size_t>(operand.buffer)];
  for (const Representation& copy : plan.representations) {
    if (copy.buffer != operand.buffer || copy.extent != Extent::flat) continue;
    for (size_t i = 0; i < plan.space.tensors.size(); ++i)
      if (plan.space.placements[i].begin == operand.offset)
        return buffer.name + "/" +
               plan.tensors[static_cast<size_t>(plan.space.tensors[i].tensor)].name;
  }
  return buffer.name + (operand.offset > 0 ? "+" + std::to_string(operand.offset) : "");
}

std::string print_operations(const Plan& plan) {
  std::string text = "Operations of rank " + std::to_string(plan.rank) + ", sizes of " +
                     format_count(plan.micro_batches.rows) +
                     " rows (positions of a micro-batch)\n" +
                     "  x = read, y := written, dx += accumulated; buffer/tensor or buffer+offset, "
                     "type[shape]\n"
                     "  the first micro-batch of a step writes the dweight of matrices\n";
  for (const Program& program : plan.programs) {
    text += std::string("\n") + name_of(program.kind);
    if (plan.chunks.size() > 1 && program.kind != ProgramKind::begin_step &&
        program.kind != ProgramKind::end_step)
      text += ", virtual stage " +
              std::to_string(plan.chunks[static_cast<size_t>(program.chunk)].virtual_stage);
    text += ": " + std::to_string(program.last - program.first) + " operations\n";
    for (int32_t i = program.first; i < program.last; ++i) {
      if (program.loop_times > 0 && i == program.loop_first)
        text += "  " + std::to_string(program.loop_times) + " times, each on the next " +
                format_count(program.loop_rows) + " rows:\n";
      if (program.loop_times > 0 && i == program.loop_last)
        text += "  on the rows that are left:\n";
      print_operation(text, plan, i);
    }
  }
  return text;
}

}  // namespace gptbench
