#include "plan/plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "plan/cost.h"
#include "plan/messages.h"
#include "plan/programs.h"
#include "plan/workspace.h"

namespace gptbench {
namespace {

DType activation_dtype(const Config& config) {
  if (config.precision.compute == "bf16") return DType::bf16;
  return config.precision.compute == "fp64" ? DType::f64 : DType::f32;
}

DType accumulation_dtype(const Config& config) {
  return config.precision.compute == "fp64" ? DType::f64 : DType::f32;
}

// The copies of the parameters: where working and master type agree, one buffer serves as both.
void add_representations(Plan& plan, PlanBuilder& builder) {
  const int64_t n = plan.space.elements;
  const auto add = [&](Role role, const char* name, MemoryClass memory_class, DType dtype) {
    const int buffer = builder.add_buffer(name, memory_class, Lifetime::run, dtype, n);
    plan.representations.push_back({role, dtype, Residency::device, buffer, 0, n});
  };
  add(Role::working, "working", MemoryClass::parameters, builder.A());
  add(Role::gradient, "gradient", MemoryClass::gradients, builder.S());
  if (builder.A() == builder.S()) {
    Representation master = plan.representation(Role::working);
    master.role = Role::master;
    plan.representations.push_back(master);
  } else {
    add(Role::master, "master", MemoryClass::optimizer_state, builder.S());
  }
  add(Role::moment1, "moment1", MemoryClass::optimizer_state, builder.S());
  add(Role::moment2, "moment2", MemoryClass::optimizer_state, builder.S());
}

void add_shared_buffers(Plan& plan, PlanBuilder& builder, const PlanOptions& options) {
  plan.tokens = builder.add_activation("tokens", Lifetime::micro_batch, DType::i32, 1);
  plan.targets = builder.add_activation("targets", Lifetime::micro_batch, DType::i32, 1);
  plan.scalars =
      builder.add_buffer("scalars", MemoryClass::workspace, Lifetime::run, DType::f64, num_scalars);
  // The reference kernels are plain loops and need no scratch memory.
  if (plan.config.run.device == "ref") return;
  const int64_t attention =
      options.threads_per_rank *
      attention_workspace_bytes_a_thread(plan.shape.T, plan.shape.D, size_of(builder.S()));
  plan.scratch = builder.add_buffer("scratch", MemoryClass::workspace, Lifetime::run, DType::u8,
                                    std::max(gemm_workspace_bytes, attention));
}

void emit_begin_step(const Plan& plan, PlanBuilder& builder) {
  builder.begin_program(ProgramKind::begin_step);
  const int gradient = plan.representation(Role::gradient).buffer;
  builder.emit(flat_op(OpKind::fill_zero, plan.space.elements, {}, {{gradient}}));
  builder.emit(flat_op(OpKind::fill_zero, num_scalars, {}, {{plan.scalars}}));
  builder.emit(flat_op(OpKind::load_control, 1, {},
                       {{plan.scalars, static_cast<int64_t>(Scalar::stop_votes)}}));
  builder.end_program();
}

// One all-reduce a bucket, started as soon as the last micro-batch has completed its gradients; it
// runs beside the rest of the backward pass.
int emit_gradient_reduction(const Plan& plan, PlanBuilder& builder, int bucket, int completed_by) {
  const Bucket& range = plan.space.buckets[bucket];
  const Representation& gradient = plan.representation(Role::gradient);
  const Operand data{gradient.buffer, range.begin};
  Op op = flat_op(OpKind::all_reduce, range.end - range.begin, {data}, {data});
  op.queue = QueueId::data;
  op.axis = Axis::data;
  op.bytes = op.elements * size_of(gradient.dtype);
  op.waits_for = {completed_by};
  return builder.emit(op);
}

// reductions[bucket]: the operation that reduces a bucket; empty with one replica.
void emit_end_step(const Plan& plan, PlanBuilder& builder, const std::vector<int32_t>& reductions) {
  builder.begin_program(ProgramKind::end_step);
  const auto scalar = [&](Scalar which) {
    return Operand{plan.scalars, static_cast<int64_t>(which)};
  };

  // Loss and votes to stop are adjacent scalars: one message.
  std::vector<int32_t> loss_reduction;
  if (plan.grid.size() > 1) {
    Op op = flat_op(OpKind::all_reduce, 2, {scalar(Scalar::loss_sum)}, {scalar(Scalar::loss_sum)});
    op.queue = QueueId::data;
    op.axis = Axis::world;
    op.bytes = op.elements * size_of(DType::f64);
    loss_reduction = {builder.emit(op)};
  }

  const int gradient = plan.representation(Role::gradient).buffer;
  const std::vector<Bucket>& buckets = plan.space.buckets;
  // In the order in which backward completes them, so that early ones are summed while late ones
  // are still on the wire.
  for (int b = static_cast<int>(buckets.size()) - 1; b >= 0; --b) {
    Op op = flat_op(OpKind::squared_norm, buckets[b].end - buckets[b].begin,
                    {{gradient, buckets[b].begin}}, {scalar(Scalar::grad_norm2)});
    if (!reductions.empty()) op.waits_for = {reductions[b]};
    builder.emit(op);
  }
  Op clip =
      flat_op(OpKind::clip_factor, 1, {scalar(Scalar::grad_norm2)}, {scalar(Scalar::clip_factor)});
  clip.waits_for = loss_reduction;  // the last thing that the host reads back
  builder.emit(clip);

  const bool one_copy =
      plan.representation(Role::working).buffer == plan.representation(Role::master).buffer;
  const auto adamw = [&](int64_t begin, int64_t end, double weight_decay) {
    if (begin == end) return;
    const auto at = [&](Role role) { return Operand{plan.representation(role).buffer, begin}; };
    Op op = flat_op(OpKind::adamw, end - begin, {at(Role::gradient), scalar(Scalar::clip_factor)},
                    {at(Role::master), at(Role::moment1), at(Role::moment2),
                     one_copy ? Operand{} : at(Role::working)});
    op.weight_decay = weight_decay;
    builder.emit(op);
  };
  for (const Bucket& bucket : buckets) {
    adamw(bucket.begin, bucket.decay_end, plan.config.optimizer.weight_decay);
    adamw(bucket.decay_end, bucket.end, 0.0);
  }
  builder.end_program();
}

void emit_programs(Plan& plan, PlanBuilder& builder) {
  const bool replicas = plan.grid.data > 1;
  LayerPrograms layers(builder, 1);
  emit_begin_step(plan, builder);

  builder.begin_program(ProgramKind::forward);
  layers.emit_forward();
  builder.end_program();

  builder.begin_program(ProgramKind::backward);
  layers.emit_backward("backward", [](int, int) {});
  builder.end_program();

  std::vector<int32_t> reductions;
  if (replicas) {
    reductions.resize(plan.space.buckets.size());
    builder.begin_program(ProgramKind::backward_last);
    layers.emit_backward("backward_last", [&](int bucket, int completed_by) {
      reductions[bucket] = emit_gradient_reduction(plan, builder, bucket, completed_by);
    });
    builder.end_program();
  }
  emit_end_step(plan, builder, reductions);
}

int32_t program_of(const Plan& plan, ProgramKind kind) {
  for (size_t i = 0; i < plan.programs.size(); ++i)
    if (plan.programs[i].kind == kind) return static_cast<int32_t>(i);
  return -1;
}

// One stage: every micro-batch goes forward and straight backward, so one is in flight.
void make_schedule(Plan& plan) {
  const std::vector<SequenceRange> micro_batches =
      micro_batches_of(plan.config.batch.global_batch_size, plan.grid.data, plan.at.data,
                       plan.config.batch.micro_batch_size);
  const int32_t last_backward = program_of(plan, ProgramKind::backward_last);
  plan.tasks.push_back({program_of(plan, ProgramKind::begin_step), -1, 0, {}});
  for (size_t m = 0; m < micro_batches.size(); ++m) {
    const int32_t id = static_cast<int32_t>(m);
    const bool last = m + 1 == micro_batches.size();
    plan.tasks.push_back({program_of(plan, ProgramKind::forward), id, 0, micro_batches[m]});
    plan.tasks.push_back(
        {last && last_backward >= 0 ? last_backward : program_of(plan, ProgramKind::backward), id,
         0, micro_batches[m]});
  }
  plan.tasks.push_back({program_of(plan, ProgramKind::end_step), -1, 0, {}});
}

void mark_signals(Plan& plan) {
  for (const Op& op : plan.ops)
    for (const int32_t other : op.waits_for) plan.ops[other].signals = true;
}

void sum_costs(Plan& plan) {
  for_each_operation(plan, [&](const Task& task, int32_t i) {
    const Op& op = plan.ops[i];
    const double flops =
        op.flops_a_row * static_cast<double>(rows_of(op, task.sequences.count * plan.shape.T));
    (op.recompute ? plan.recompute_flops : plan.model_flops) += flops;
    if (op.bytes == 0) return;
    const auto same = [&](const CommTotal& total) {
      return total.axis == op.axis && total.kind == op.kind;
    };
    auto total = std::find_if(plan.comm.begin(), plan.comm.end(), same);
    if (total == plan.comm.end())
      total = plan.comm.insert(plan.comm.end(), {op.axis, op.kind, 0, 0, 0});
    total->count += 1;
    total->messages += messages_of(op.bytes);
    total->bytes += op.bytes;
  });
}

}  // namespace

const Representation& Plan::representation(Role role) const {
  for (const Representation& candidate : representations)
    if (candidate.role == role) return candidate;
  GPTBENCH_CHECK(false, "representation not planned");
  return representations.front();
}

bool Plan::has(Role role) const {
  return std::any_of(representations.begin(), representations.end(),
                     [&](const Representation& r) { return r.role == role; });
}

Plan make_plan(const Config& config, int64_t world_size, int64_t rank, const PlanOptions& options) {
  Plan plan;
  plan.config = config;
  plan.grid = {config.parallel.tensor_parallel, config.parallel.context_parallel,
               config.parallel.pipeline_parallel, config.parallel.data_parallel};
  GPTBENCH_CHECK(plan.grid.size() == world_size, "the grid does not cover the ranks");
  plan.rank = rank;
  plan.at = plan.grid.coordinates_of(rank);
  plan.shape = model_shape(config.model);
  plan.tensors = tensor_table(config.model);
  plan.num_params = count_params(plan.tensors);
  plan.space = pack(plan.tensors, plan.shape.L);
  const int64_t largest_share = ceil_div(config.batch.global_batch_size, plan.grid.data);
  plan.micro_batch_rows = checked_product(std::min(config.batch.micro_batch_size, largest_share),
                                          plan.shape.T, "micro_batch_size x seq_length");

  PlanBuilder builder(plan, activation_dtype(config), accumulation_dtype(config));
  add_representations(plan, builder);
  add_shared_buffers(plan, builder, options);
  emit_programs(plan, builder);
  make_schedule(plan);
  mark_signals(plan);
  plan.class_bytes = assign_offsets(plan.buffers, plan.programs, plan.ops);
  sum_costs(plan);
  return plan;
}

std::map<std::string, double> flops_by_convention(const Plan& plan) {
  const int64_t B = plan.config.batch.global_batch_size;
  const bool full = plan.config.memory.activation_checkpointing == "full";
  // Work is proportional to sequences, so one rank's share stands for the job.
  const int64_t mine = sequences_of(B, plan.grid.data, plan.at.data).count;
  const double whole = static_cast<double>(B) / static_cast<double>(mine);
  return {{"mpt", flops_mpt(plan.shape, plan.num_params, B)},
          {"megatron", flops_megatron(plan.shape, B, full)},
          {"causal", flops_causal(plan.shape, B)},
          {"exact", plan.model_flops * whole},
          {"exact_recomputed", plan.recompute_flops * whole}};
}

}  // namespace gptbench
