#include "plan/activation_store.h"

#include <algorithm>

#include "base/units.h"

namespace gptbench {

ActivationStore::ActivationStore(const StageBuilder& stage)
    : stage_(stage),
      every_(stage.recompute == Recompute::full ? stage.plan.config.memory.checkpoint_every : 1),
      offload_(stage, ceil_div(stage.chunk.end_layer - stage.chunk.first_layer, every_)) {
  const ModelShape& s = stage.s;
  const DType A = stage.builder.A();
  const int64_t first = stage.chunk.first_layer, end = stage.chunk.end_layer;
  const bool full = stage.recompute == Recompute::full;
  const bool selective = stage.recompute == Recompute::selective;
  if (selective) passing_ = add_set("", -1, Parts::cheap);
  for (int64_t l = first; l < end; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    if (!full) {
      kept_.push_back(add_set(h, l, selective ? Parts::costly : Parts::all));
    } else {
      kept_.push_back({});
      if (l == segment_start(l)) kept_.back().x = add(h, l, "x", A, s.C, stage.sp);
    }
    if (stage.splits) add_gradients(h, l);
  }
  if (full) {
    for (int64_t i = 0; i < std::min(every_, end - first); ++i)
      work_.push_back(add_set("recomputed." + std::to_string(i) + ".", -1, Parts::all));
    for (const int i : {0, 1})
      forward_x_[i] = stage.temporary("x." + std::to_string(i), A, s.C, stage.sp);
  }
  if (stage.splits) return;
  gradients_.emplace_back();
  // In fp8 the copies of dfc are enough, but where it is formed in place.
  if (stage.fp8 == nullptr || s.fc() == s.F)
    gradients_.back().dfc = stage.temporary("dfc", A, s.fc());
  gradients_.back().dqkv = stage.temporary("dqkv", A, s.qkv());
}

int ActivationStore::add(const std::string& name, int64_t layer, const std::string& what,
                         DType dtype, int64_t columns, int64_t row_div) {
  if (layer < 0) return stage_.temporary(name + what, dtype, columns, row_div);
  const Chunk& chunk = stage_.chunk;
  const bool arrives = what == "x" && layer == chunk.first_layer && !chunk.has_embedding;
  return offload_.keep(ActivationOffload::forward, group_of(layer), name, what, dtype, columns,
                       row_div, arrives);
}

LayerActivations ActivationStore::add_set(const std::string& name, int64_t layer, Parts parts) {
  const DType A = stage_.builder.A(), S = stage_.builder.S();
  const ModelShape& s = stage_.s;
  const int64_t sp = stage_.sp;
  LayerActivations a = passing_;
  const auto costly = [&](int& buffer, const std::string& what, DType dtype, int64_t columns,
                          int64_t row_div) {
    if (parts != Parts::cheap) buffer = add(name, layer, what, dtype, columns, row_div);
  };
  // Selective recomputation keeps one set of these for all layers.
  const bool fp8 = stage_.fp8 != nullptr;
  const auto cheap = [&](int& buffer, const std::string& what, int64_t columns, int64_t row_div) {
    if (parts == Parts::costly) return;
    buffer =
        add(name, layer, what + (fp8 ? ".fp8" : ""), fp8 ? DType::fp8_e4m3 : A, columns, row_div);
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

void ActivationStore::add_gradients(const std::string& name, int64_t l) {
  const auto keep = [&](const char* what, int64_t columns, int64_t row_div) {
    return offload_.keep(ActivationOffload::backward, group_of(l), name, what, stage_.builder.A(),
                         columns, row_div);
  };
  const ModelShape& s = stage_.s;
  gradients_.push_back({keep("dmlp", s.C, stage_.sp), keep("dproj", s.C, stage_.sp),
                        keep("dfc", s.fc(), 1), keep("dqkv", s.qkv(), 1)});
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
  if (kept_[at(l)].x >= 0) a.x = kept_[at(l)].x;
  return a;
}

void ActivationStore::load(int64_t l, int64_t distance, const Pass& pass) {
  const int64_t group = group_of(l) + distance;
  if (group < 0) return;
  offload_.load(ActivationOffload::forward, group);
  if (!pass.inputs) offload_.load(ActivationOffload::backward, group);
}

}  // namespace gptbench
