#include "plan/chunk_programs.h"

#include <algorithm>

#include "base/error.h"
#include "base/fp8.h"
#include "base/units.h"

namespace gptbench {
namespace {

int64_t layers_a_segment(const MemoryConfig& memory) {
  return memory.activation_checkpointing == Recompute::full ? memory.checkpoint_every : 1;
}

}  // namespace

ChunkPrograms::ChunkPrograms(PlanBuilder& builder, ParameterStore& store, const Fp8State* fp8,
                             const Chunk& chunk, int32_t index, int64_t slots)
    : builder_(builder),
      store_(store),
      fp8_(fp8),
      chunk_(chunk),
      index_(index),
      slots_(slots),
      every_(layers_a_segment(builder.plan().config.memory)),
      offload_(builder, ceil_div(chunk.end_layer - chunk.first_layer, every_), slots,
               chunk.has_embedding && chunk.has_head) {
  const Plan& plan = builder.plan();
  const Config& config = plan.config;
  tp_ = plan.grid.tensor;
  sp_ = config.parallel.sequence_parallel ? tp_ : 1;
  s_ = local_shape(plan.shape, tp_);
  family_ = s_.family;
  activation_name_ = family_.activation == ActivationKind::swiglu ? "swiglu" : "gelu";
  full_recompute_ = config.memory.activation_checkpointing == Recompute::full;
  selective_ = config.memory.activation_checkpointing == Recompute::selective;
  turns_at_once_ =
      fp8_ != nullptr && fp8_->transposes() && padded_rows(plan.T_local()) == plan.T_local();
  prefix_ = plan.chunks.size() > 1 ? "v" + std::to_string(chunk.virtual_stage) + "." : "";
  for (int64_t l = chunk.first_layer; l < chunk.end_layer; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    const auto t = [&](const char* name) { return builder.find_tensor(h + name); };
    tensors_.push_back({t("ln_1.weight"), t("ln_1.bias"), t("attn.qkv.weight"), t("attn.qkv.bias"),
                        t("attn.proj.weight"), t("attn.proj.bias"), t("ln_2.weight"),
                        t("ln_2.bias"), t("mlp.fc.weight"), t("mlp.fc.bias"), t("mlp.proj.weight"),
                        t("mlp.proj.bias")});
  }
}

ChunkPrograms::LayerActivations ChunkPrograms::add_activations(const std::string& name,
                                                               int64_t layer,
                                                               bool keep_recomputed) {
  const DType A = builder_.A();
  const DType S = builder_.S();
  const auto add = [&](const char* what, DType dtype, int64_t columns, int64_t row_div,
                       bool arrives = false) {
    if (layer < 0)
      return builder_.add_activation(name + what, Lifetime::program, dtype, columns, row_div);
    return offload_.keep(ActivationOffload::forward, group_of(layer), name, what, dtype, columns,
                         row_div, arrives);
  };
  // Outputs of norm and activation are cheap to form again: selective recomputation keeps one set
  // of them for all layers.
  const auto cheap = [&](const char* what, int64_t columns, int64_t row_div, int passing) {
    return keep_recomputed && fp8_ == nullptr ? add(what, A, columns, row_div) : passing;
  };
  // Linear layers alone read them: in fp8 a copy takes their place.
  const auto copy = [&](const std::string& what, int64_t columns, int64_t row_div, int passing) {
    return keep_recomputed && fp8_ != nullptr
               ? add((what + ".fp8").c_str(), DType::fp8_e4m3, columns, row_div)
               : passing;
  };
  const auto mean = [&](const char* what) {
    return family_.norm == NormKind::layernorm ? add(what, S, 1, sp_) : -1;
  };
  LayerActivations a;
  a.x = add("x", A, s_.C, sp_, layer == chunk_.first_layer && !chunk_.has_embedding);
  a.ln_1 = cheap("ln_1", s_.C, sp_, passing_.ln_1);
  a.ln_1_fp8 = copy("ln_1", s_.C, sp_, passing_.ln_1_fp8);
  a.ln_1_mean = mean("ln_1_mean");
  a.ln_1_rstd = add("ln_1_rstd", S, 1, sp_);
  a.qkv = add("qkv", A, s_.qkv(), 1);
  a.attention = add("attention", A, s_.H * s_.D, 1);
  a.lse = add("lse", S, s_.H, 1);
  a.x_mid = add("x_mid", A, s_.C, sp_);
  a.ln_2 = cheap("ln_2", s_.C, sp_, passing_.ln_2);
  a.ln_2_fp8 = copy("ln_2", s_.C, sp_, passing_.ln_2_fp8);
  a.ln_2_mean = mean("ln_2_mean");
  a.ln_2_rstd = add("ln_2_rstd", S, 1, sp_);
  a.fc = add("fc", A, s_.fc(), 1);
  a.activation = cheap(activation_name_, s_.F, 1, passing_.activation);
  a.activation_fp8 = copy(activation_name_, s_.F, 1, passing_.activation_fp8);
  return a;
}

void ChunkPrograms::add_layer_buffers(bool split_weight_gradients) {
  split_ = split_weight_gradients;
  const DType A = builder_.A();
  const auto temporary_of = [&](DType type, const std::string& what, int64_t columns,
                                int64_t row_div) {
    return builder_.add_activation(prefix_ + what, Lifetime::program, type, columns, row_div);
  };
  const auto temporary = [&](const std::string& what, int64_t columns, int64_t row_div) {
    return temporary_of(A, what, columns, row_div);
  };
  const auto kept = [&](const std::string& what, int64_t columns, int64_t row_div) {
    return builder_.add_activation(prefix_ + what, Lifetime::micro_batch, A, columns, row_div,
                                   slots_);
  };
  passing_.ln_1 = passing_.ln_2 = passing_.activation = -1;
  passing_.ln_1_fp8 = passing_.ln_2_fp8 = passing_.activation_fp8 = -1;
  if (selective_ && fp8_ == nullptr) {
    passing_.ln_1 = temporary("ln_1", s_.C, sp_);
    passing_.ln_2 = temporary("ln_2", s_.C, sp_);
    passing_.activation = temporary(activation_name_, s_.F, 1);
  }
  if (selective_ && fp8_ != nullptr) {
    const auto copy = [&](const std::string& what, int64_t columns, int64_t row_div) {
      return temporary_of(DType::fp8_e4m3, what + ".fp8", columns, row_div);
    };
    passing_.ln_1_fp8 = copy("ln_1", s_.C, sp_);
    passing_.ln_2_fp8 = copy("ln_2", s_.C, sp_);
    passing_.activation_fp8 = copy(activation_name_, s_.F, 1);
  }
  for (int64_t l = chunk_.first_layer; l < chunk_.end_layer; ++l) {
    const std::string h = prefix_ + "h." + std::to_string(l) + ".";
    if (full_recompute_) {
      LayerActivations a{};
      const bool arrives = l == chunk_.first_layer && !chunk_.has_embedding;
      a.x = l != segment_start(l) ? -1
                                  : offload_.keep(ActivationOffload::forward, group_of(l), h, "x",
                                                  A, s_.C, sp_, arrives);
      kept_.push_back(a);
    } else {
      kept_.push_back(add_activations(h, l, !selective_));
    }
    if (split_) {
      const auto later = [&](const char* what, int64_t columns, int64_t row_div) {
        return offload_.keep(ActivationOffload::backward, group_of(l), h, what, A, columns,
                             row_div);
      };
      gradients_.push_back({later("dmlp", s_.C, sp_), later("dproj", s_.C, sp_),
                            later("dfc", s_.fc(), 1), later("dqkv", s_.qkv(), 1)});
    }
  }
  if (full_recompute_) {
    for (int64_t i = 0; i < std::min(every_, chunk_.end_layer - chunk_.first_layer); ++i)
      work_.push_back(add_activations(prefix_ + "recomputed." + std::to_string(i) + ".", -1, true));
    for (int i = 0; i < 2; ++i) forward_x_[i] = temporary("x." + std::to_string(i), s_.C, sp_);
  }
  if (!split_) {
    // In fp8 the copies of dfc are enough, but where it is formed in place.
    const bool wanted = fp8_ == nullptr || s_.fc() == s_.F;
    gradients_.push_back(
        {-1, -1, wanted ? temporary("dfc", s_.fc(), 1) : -1, temporary("dqkv", s_.qkv(), 1)});
  }
  branch_ = temporary("branch", s_.C, 1);
  const bool staged = builder_.plan().grid.pipeline > 1;
  dx_ = staged ? kept("dx", s_.C, sp_) : temporary("dx", s_.C, 1 * sp_);
  dbranch_ = temporary("dbranch", s_.C, 1);
  dattention_ = temporary("dattention", s_.H * s_.D, 1);
  if (s_.fc() != s_.F) dactivation_ = temporary("dactivation", s_.F, 1);
  if (builder_.plan().config.model.dropout > 0.0) ddropped_ = temporary("ddropped", s_.C, sp_);
  if (sp_ > 1) {
    branch_s_ = temporary("branch_part", s_.C, sp_);
    full_ = temporary("full", s_.C, 1);
    dbranch_s_ = temporary("dbranch_part", s_.C, sp_);
    dfull_ = temporary("dfull", s_.C, 1);
  }
  x_end_ = kept("x_end", s_.C, sp_);
  add_ring_buffers();
  if (fp8_ != nullptr) add_fp8_buffers();
}

int64_t ChunkPrograms::segment_start(int64_t l) const {
  return chunk_.first_layer + (l - chunk_.first_layer) / every_ * every_;
}

Operand ChunkPrograms::input_of(int64_t l) const {
  if (l == chunk_.end_layer) return {x_end_};
  const int kept = kept_[static_cast<size_t>(l - chunk_.first_layer)].x;
  return {kept >= 0 ? kept : forward_x_[(l - chunk_.first_layer) % 2]};
}

// With full recomputation one set of temporaries serves all layers of the forward pass.
ChunkPrograms::LayerActivations ChunkPrograms::forward_set(int64_t l) const {
  return full_recompute_ ? work_.front() : kept_[static_cast<size_t>(l - chunk_.first_layer)];
}

ChunkPrograms::LayerActivations ChunkPrograms::backward_set(int64_t l) const {
  if (!full_recompute_) return kept_[static_cast<size_t>(l - chunk_.first_layer)];
  LayerActivations a = work_[static_cast<size_t>(l - segment_start(l))];
  const int kept = kept_[static_cast<size_t>(l - chunk_.first_layer)].x;
  if (kept >= 0) a.x = kept;
  return a;
}

int ChunkPrograms::unit_of(int64_t l) const {
  return builder_.plan().space.find_unit(UnitKind::layer, l);
}

void ChunkPrograms::make_programs(bool split_weight_gradients) {
  add_layer_buffers(split_weight_gradients);
  if (chunk_.has_head) add_head_buffers();
  const auto program = [&](ProgramKind kind, const auto& emit) {
    builder_.begin_program(kind, index_);
    store_.begin_program();
    emit();
    store_.flush_gradients();
    builder_.end_program();
  };
  if (!chunk_.has_embedding) program(ProgramKind::receive_forward, [&] { emit_receive(true); });
  if (!chunk_.has_head) program(ProgramKind::receive_backward, [&] { emit_receive(false); });
  program(ProgramKind::forward, [&] { emit_forward(); });
  const bool share = builder_.plan().grid.size_of(Axis::zero) > 1 || sp_ > 1;
  program(ProgramKind::backward, [&] { emit_backward({false, true, !split_}); });
  if (split_) {
    program(ProgramKind::weight, [&] { emit_backward({false, false, true}); });
    if (share) program(ProgramKind::weight_last, [&] { emit_backward({true, false, true}); });
  } else if (share) {
    program(ProgramKind::backward_last, [&] { emit_backward({true, true, true}); });
  }
}

void ChunkPrograms::emit_receive(bool forward) {
  const Plan& plan = builder_.plan();
  const Operand target = forward ? input_of(chunk_.first_layer) : Operand{dx_};
  MessageSize message{per_row(s_.C), size_of(builder_.A())};
  message.peer = plan.stage_peer(forward ? -1 : +1);
  message.tag = static_cast<int32_t>(2 * chunk_.virtual_stage + (forward ? 0 : 1));
  const QueueId queue = forward ? QueueId::receive_forward : QueueId::receive_backward;
  builder_.emit(ops::receive({queue, Axis::pipeline}, message, target,
                             {forward ? chunk_.first_layer : chunk_.end_layer, sp_}));
}

void ChunkPrograms::gather_embedding() {
  store_.gather(builder_.plan().space.find_unit(UnitKind::token_embedding));
  store_.gather(builder_.plan().space.find_unit(UnitKind::position_embedding));
}

void ChunkPrograms::gather_head() {
  store_.gather(builder_.plan().space.find_unit(UnitKind::final_norm));
  store_.gather(head_unit_);
  store_.gather(masked_.unit);
}

void ChunkPrograms::emit_forward() {
  const Plan& plan = builder_.plan();
  // Parameters are asked for one unit before they are needed.
  if (chunk_.has_embedding) gather_embedding();
  if (chunk_.first_layer < chunk_.end_layer) store_.gather(unit_of(chunk_.first_layer));
  emit_load_lengths();
  if (chunk_.has_embedding) emit_embedding_forward();
  for (int64_t l = chunk_.first_layer; l < chunk_.end_layer; ++l) {
    if (l + 1 < chunk_.end_layer)
      store_.gather(unit_of(l + 1));
    else if (chunk_.has_head)
      gather_head();
    LayerActivations a = forward_set(l);
    emit_layer_forward(l, a, input_of(l), input_of(l + 1), false);
    if (l == segment_start(l)) offload_.store(ActivationOffload::forward, group_of(l));
  }
  if (chunk_.has_head) {
    emit_head_forward();
    return;
  }
  MessageSize message{per_row(s_.C), size_of(builder_.A())};
  message.peer = plan.stage_peer(+1);
  message.tag = static_cast<int32_t>(2 * (chunk_.virtual_stage + 1));
  builder_.emit(ops::send({QueueId::send_forward, Axis::pipeline}, message, {x_end_},
                          {chunk_.end_layer, sp_}));
}

Operand ChunkPrograms::to_full(int64_t l, Operand part, int full) {
  if (sp_ == 1) return part;
  builder_.emit(ops::all_gather({QueueId::tensor, Axis::tensor}, per_row(s_.C),
                                size_of(builder_.A()), part, {full}, {l}));
  return {full};
}

Operand ChunkPrograms::reduce(int64_t l, Operand partial, int part) {
  if (tp_ == 1) return partial;
  const ops::Route route{QueueId::tensor, Axis::tensor};
  const int64_t bytes = size_of(builder_.A());
  if (sp_ == 1) {
    builder_.emit(ops::all_reduce(route, per_row(s_.C), bytes, partial, {l}));
    return partial;
  }
  builder_.emit(ops::reduce_scatter(route, per_row(s_.C), bytes, partial, {part}, {l}));
  return {part};
}

ChunkPrograms::Norm ChunkPrograms::norm_before(int64_t l, Linear linear,
                                               const LayerActivations& a) const {
  const LayerTensors& t = tensors_[static_cast<size_t>(l - chunk_.first_layer)];
  if (linear == Linear::qkv) return {t.ln_1_weight, t.ln_1_bias, a.ln_1_mean, a.ln_1_rstd};
  return {t.ln_2_weight, t.ln_2_bias, a.ln_2_mean, a.ln_2_rstd};
}

Op ChunkPrograms::norm_forward(int64_t l, Operand x, const Norm& norm, Operand y) {
  ops::NormOperands operands;
  operands.weight = store_.weight(norm.weight);
  operands.bias = store_.weight(norm.bias);
  operands.mean = {norm.mean};
  operands.rstd = {norm.rstd};
  return ops::norm_forward(family_.norm, {l, sp_}, s_.C, x, operands, y);
}

void ChunkPrograms::emit_layer_norm(int64_t l, Linear linear, const LayerActivations& a, Operand x,
                                    bool recompute) {
  const bool first = linear == Linear::qkv;
  Op op = norm_forward(l, x, norm_before(l, linear, a), {first ? a.ln_1 : a.ln_2});
  op.recompute = recompute;
  if (fp8_ != nullptr)
    ops::set_fp8_copy(op, fp8_copies(l, linear, Fp8Role::x, {first ? a.ln_1_fp8 : a.ln_2_fp8}, {}));
  builder_.emit(op);
}

void ChunkPrograms::emit_activation_forward(int64_t l, const LayerActivations& a, bool recompute,
                                            bool product) {
  Op op = ops::activation_forward(family_.activation, {l}, s_.F, {a.fc}, {a.activation});
  op.recompute = recompute;
  if (is_turned_at_once(Linear::mlp_proj)) {
    const bool kept = recompute || !(selective_ || full_recompute_);
    ops::set_fp8_copy(
        op, fp8_copies(l, Linear::mlp_proj, Fp8Role::x,
                       product ? Operand{linear_input(a, Linear::mlp_proj).fp8} : Operand{},
                       kept ? Operand{a.activation_fp8} : Operand{}));
  } else if (fp8_ != nullptr) {
    ops::set_fp8_copy(op, fp8_copies(l, Linear::mlp_proj, Fp8Role::x, {a.activation_fp8}, {}));
  }
  builder_.emit(op);
}

void ChunkPrograms::emit_layer_forward(int64_t l, const LayerActivations& a, Operand x,
                                       Operand x_next, bool recompute) {
  const auto emit_sum = [&](int32_t site, Operand residual, Operand branch, Operand sum) {
    Op op = ops::residual_forward({l, sp_}, site, s_.C, residual, branch, sum);
    op.recompute = recompute;
    builder_.emit(op);
  };
  emit_layer_norm(l, Linear::qkv, a, x, recompute);
  emit_forward_product(l, Linear::qkv, a, {a.qkv}, recompute);
  emit_attention_forward(l, a, recompute);
  emit_forward_product(l, Linear::attn_proj, a, {branch_}, recompute);
  const Operand attended = reduce(l, {branch_}, branch_s_);
  emit_sum(proj_site, x, attended, {a.x_mid});

  emit_layer_norm(l, Linear::fc, a, {a.x_mid}, recompute);
  emit_forward_product(l, Linear::fc, a, {a.fc}, recompute);
  const bool ends = x_next.buffer < 0;  // recomputation: nobody reads the layer's output
  emit_activation_forward(l, a, recompute, !ends);
  if (ends) return;
  emit_forward_product(l, Linear::mlp_proj, a, {branch_}, recompute);
  const Operand mlp = reduce(l, {branch_}, branch_s_);
  emit_sum(mlp_site, {a.x_mid}, mlp, x_next);
}

}  // namespace gptbench
