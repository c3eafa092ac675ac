#include "plan/activation_store.h"

#include <algorithm>

#include "base/units.h"

namespace gptbench {

bool keeps_cheap_outputs(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return true;
    case Recompute::selective:
    case Recompute::full:
      break;
  }
  return false;
}

ActivationStore::ActivationStore(const StageBuilder& stage)
    : stage_(stage),
      every_(stage.recompute == Recompute::full ? stage.plan.config.memory.checkpoint_every : 1),
      parts_(stage.plan.config.memory.partition_checkpoints ? stage.plan.grid.tensor : 1) {
  const ModelShape& s = stage.s;
  const DType A = stage.builder.A();
  const int64_t first = stage.chunk.first_layer, end = stage.chunk.end_layer;
  const bool full = stage.recompute == Recompute::full;
  const bool selective = stage.recompute == Recompute::selective;
  const bool cheap_kept = keeps_cheap_outputs(stage.recompute);
  if (selective) passing_ = add_set("", -1, Parts::cheap);
  for (int64_t l = first; l < end; ++l) {
    kept_.push_back(full ? LayerActivations{}
                         : add_set("", l, cheap_kept ? Parts::all : Parts::costly));
    if (full && l == segment_start(l)) keep_input(l);
    if (stage.splits) add_gradients(l);
  }
  if (full) {
    for (int64_t i = 0; i < std::min(every_, end - first); ++i)
      work_.push_back(add_set("recomputed." + std::to_string(i) + ".", -1, Parts::all));
    for (const int i : {0, 1}) {
      forward_x_[i] = stage.temporary("x." + std::to_string(i), A, s.C, stage.sp);
      if (parts_ > 1) whole_x_[i] = stage.temporary("whole_x." + std::to_string(i), A, s.C);
    }
  }
  if (stage.splits) return;
  gradients_.emplace_back();
  // In fp8 the copies of dfc are enough, but where it is formed in place.
  if (stage.fp8 == nullptr || s.fc() == s.F)
    gradients_.back().dfc = stage.temporary("dfc", A, s.fc());
  gradients_.back().dqkv = stage.temporary("dqkv", A, s.qkv());
}

// Input from another stage stays on the device as a whole until backward in any case.
void ActivationStore::keep_input(int64_t l) {
  const bool whole = parts_ == 1 || arrives(l);
  const int buffer =
      keep(forward, l, "x", stage_.builder.A(), stage_.s.C, whole ? stage_.sp : parts_);
  if (whole) kept_.back().x = buffer;
  input_parts_.push_back(whole ? -1 : buffer);
}

int ActivationStore::keep(FormedBy formed_by, int64_t l, const std::string& what, DType dtype,
                          int64_t columns, int64_t row_div) {
  const Plan& plan = stage_.plan;
  const Chunk& chunk = stage_.chunk;
  const ParallelConfig& parallel = plan.config.parallel;
  const std::string name = "h." + std::to_string(l) + "." + what;
  // Messages between stages arrive on the device.
  if ((what == "x" && arrives(l)) || !contains(parallel.offload, Offload::activations))
    return stage_.kept(name, dtype, columns, row_div);
  // Virtual stages of a rank share the windows: their programs run one after the other.
  const int64_t group = group_of(l);
  const std::string shared = "window." + std::to_string(group % 2) + "." + what;
  int window = stage_.builder.find_buffer(MemoryClass::activations, shared);
  if (window < 0)
    window = stage_.builder.add_activation(shared, Lifetime::run, dtype, columns, row_div);
  // Backward directly follows forward where a stage has both ends: the last two groups stay.
  const bool returns_at_once = chunk.has_embedding && chunk.has_head;
  if (formed_by == forward && returns_at_once && group + 1 >= group_of(chunk.end_layer - 1))
    return window;
  const bool file = parallel.offload_target == OffloadTarget::file;
  const int away = stage_.builder.add_buffer(
      stage_.prefix + name, file ? MemoryClass::file : MemoryClass::host, Lifetime::micro_batch,
      dtype, checked_product(plan.micro_batches.rows / row_div, columns, what.c_str()));
  away_[{formed_by, group}].push_back({window, away, columns, row_div});
  return window;
}

void ActivationStore::transfer(OpKind kind, FormedBy formed_by, int64_t group) const {
  const auto found = away_.find({formed_by, group});
  if (found == away_.end()) return;
  for (const Away& array : found->second) {
    const Operand window{array.window}, away{array.away};
    const ElementCount count = per_row(array.columns);
    const ops::Rows rows{-1, array.row_div};
    stage_.emit(kind == OpKind::load ? ops::load(count, away, window, rows)
                                     : ops::store(count, window, away, rows));
  }
}

LayerActivations ActivationStore::add_set(const std::string& name, int64_t layer, Parts parts) {
  const DType A = stage_.builder.A(), S = stage_.builder.S();
  const ModelShape& s = stage_.s;
  const int64_t sp = stage_.sp;
  LayerActivations a = passing_;
  const auto add = [&](const std::string& what, DType dtype, int64_t columns, int64_t row_div) {
    return layer < 0 ? stage_.temporary(name + what, dtype, columns, row_div)
                     : keep(forward, layer, what, dtype, columns, row_div);
  };
  const auto costly = [&](int& buffer, const std::string& what, DType dtype, int64_t columns,
                          int64_t row_div) {
    if (parts != Parts::cheap) buffer = add(what, dtype, columns, row_div);
  };
  // Selective recomputation keeps one set of these for all layers.
  const bool fp8 = stage_.fp8 != nullptr;
  const auto cheap = [&](int& buffer, const std::string& what, int64_t columns, int64_t row_div) {
    if (parts == Parts::costly) return;
    buffer = add(what + (fp8 ? ".fp8" : ""), fp8 ? DType::fp8_e4m3 : A, columns, row_div);
  };
  const auto statistics = [&](int& mean, int& rstd, const std::string& norm) {
    if (s.family.norm == NormKind::layernorm) costly(mean, norm + "_mean", S, 1, sp);
    costly(rstd, norm + "_rstd", S, 1, sp);
  };
  costly(a.x, "x", A, s.C, sp);
  cheap(a.ln_1, "ln_1", s.C, sp);
  statistics(a.ln_1_mean, a.ln_1_rstd, "ln_1");
  costly(a.qkv, "qkv", A, s.qkv(), 1);
  costly(a.attention, "attention", A, s.H * s.D, 1);
  costly(a.lse, "lse", S, s.H, 1);
  costly(a.x_mid, "x_mid", A, s.C, sp);
  cheap(a.ln_2, "ln_2", s.C, sp);
  statistics(a.ln_2_mean, a.ln_2_rstd, "ln_2");
  costly(a.fc, "fc", A, s.fc(), 1);
  cheap(a.activation, s.family.activation == ActivationKind::swiglu ? "swiglu" : "gelu", s.F, 1);
  return a;
}

void ActivationStore::add_gradients(int64_t l) {
  const auto add = [&](const char* what, int64_t columns, int64_t row_div) {
    return keep(backward, l, what, stage_.builder.A(), columns, row_div);
  };
  const ModelShape& s = stage_.s;
  gradients_.push_back({add("dmlp", s.C, stage_.sp), add("dproj", s.C, stage_.sp),
                        add("dfc", s.fc(), 1), add("dqkv", s.qkv(), 1)});
}

bool ActivationStore::ends_segment(int64_t l) const {
  return l + 1 == stage_.chunk.end_layer || group_of(l) != group_of(l + 1);
}

Operand ActivationStore::input_of(int64_t l) const {
  const int kept = kept_[at(l)].x;
  return {kept >= 0 ? kept : forward_x_[at(l) % 2]};
}

// With full recomputation one set of temporaries serves all layers of the forward pass.
LayerActivations ActivationStore::forward_set(int64_t l) const {
  return work_.empty() ? kept_[at(l)] : work_.front();
}

LayerActivations ActivationStore::backward_set(int64_t l) const {
  if (work_.empty()) return kept_[at(l)];
  LayerActivations a = work_[static_cast<size_t>(l - segment_start(l))];
  if (kept_[at(l)].x >= 0)
    a.x = kept_[at(l)].x;
  else if (l == segment_start(l))
    a.x = whole_x_[group_of(l) % 2];
  return a;
}

void ActivationStore::store(int64_t l) const {
  const int64_t group = group_of(l);
  if (is_in_parts(group))
    stage_.emit(ops::copy_part(per_row(stage_.s.C), input_of(l),
                               {input_parts_[static_cast<size_t>(group)]}, {l, parts_}));
  transfer(OpKind::store, forward, group);
}

void ActivationStore::load(int64_t group, const Pass& pass) const {
  transfer(OpKind::load, forward, group);
  if (!pass.inputs) transfer(OpKind::load, backward, group);
}

void ActivationStore::gather(int64_t group) const {
  if (!is_in_parts(group)) return;
  stage_.emit(ops::all_gather({QueueId::tensor, Axis::tensor}, per_row(stage_.s.C),
                              size_of(stage_.builder.A()),
                              {input_parts_[static_cast<size_t>(group)]}, {whole_x_[group % 2]},
                              {stage_.chunk.first_layer + group * every_}));
}

// A group is loaded while the one before it is worked on; one that is gathered as well, two ahead.
void ActivationStore::begin_backward(const Pass& pass) const {
  const int64_t last = group_of(stage_.chunk.end_layer - 1);
  load(last, pass);
  if (parts_ == 1) return;
  load(last - 1, pass);
  gather(last);
}

void ActivationStore::begin_group(int64_t l, const Pass& pass) const {
  const int64_t group = group_of(l);
  gather(group - 1);
  load(parts_ == 1 ? group - 1 : group - 2, pass);
}

}  // namespace gptbench
