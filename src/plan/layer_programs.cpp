#include "plan/programs.h"

#include "base/units.h"

namespace gptbench {
namespace {

Op linear_forward(int32_t layer, Operand x, Operand weight, Operand bias, Operand y, int64_t K,
                  int64_t N) {
  Op op = row_op(OpKind::linear_forward, layer, {x, weight, bias}, {y});
  op.K = K;
  op.N = N;
  op.flops_a_row = 2.0 * static_cast<double>(K) * static_cast<double>(N);
  return op;
}

Op linear_backward_input(int32_t layer, Operand dy, Operand weight, Operand dx, int64_t K,
                         int64_t N) {
  Op op = row_op(OpKind::linear_backward_input, layer, {dy, weight}, {dx});
  op.K = K;
  op.N = N;
  op.flops_a_row = 2.0 * static_cast<double>(K) * static_cast<double>(N);
  return op;
}

Op linear_backward_weight(int32_t layer, Operand dy, Operand x, Operand dweight, Operand dbias,
                          int64_t K, int64_t N) {
  Op op = row_op(OpKind::linear_backward_weight, layer, {dy, x}, {dweight, dbias});
  op.K = K;
  op.N = N;
  op.flops_a_row = 2.0 * static_cast<double>(K) * static_cast<double>(N);
  return op;
}

// `columns` elements a row.
Op elementwise(OpKind kind, int32_t layer, int64_t columns, std::vector<Operand> reads,
               std::vector<Operand> writes, int32_t site = 0) {
  Op op = row_op(kind, layer, std::move(reads), std::move(writes));
  op.N = columns;
  op.site = site;
  return op;
}

}  // namespace

LayerPrograms::LayerPrograms(PlanBuilder& builder, int64_t slots) : builder_(builder) {
  const ModelShape& s = builder.plan().shape;
  const DType A = builder.A();
  const DType S = builder.S();
  const auto kept = [&](const std::string& name, DType dtype, int64_t columns) {
    return builder.add_activation(name, Lifetime::micro_batch, dtype, columns, slots);
  };
  wte_ = builder.tensor("wte");
  wpe_ = builder.tensor("wpe");
  for (int64_t l = 0; l < s.L; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    const auto t = [&](const char* name) { return builder.tensor(h + name); };
    tensors_.push_back({t("ln_1.weight"), t("ln_1.bias"), t("attn.qkv.weight"), t("attn.qkv.bias"),
                        t("attn.proj.weight"), t("attn.proj.bias"), t("ln_2.weight"),
                        t("ln_2.bias"), t("mlp.fc.weight"), t("mlp.fc.bias"), t("mlp.proj.weight"),
                        t("mlp.proj.bias")});
    activations_.push_back(
        {kept(h + "x", A, s.C), kept(h + "ln_1", A, s.C), kept(h + "ln_1_mean", S, 1),
         kept(h + "ln_1_rstd", S, 1), kept(h + "qkv", A, s.qkv()),
         kept(h + "attention", A, s.H * s.D), kept(h + "lse", S, s.H), kept(h + "x_mid", A, s.C),
         kept(h + "ln_2", A, s.C), kept(h + "ln_2_mean", S, 1), kept(h + "ln_2_rstd", S, 1),
         kept(h + "fc", A, s.F), kept(h + "gelu", A, s.F)});
  }
  x_final_ = kept("x_final", A, s.C);
  ln_f_mean_ = kept("ln_f_mean", S, 1);
  ln_f_rstd_ = kept("ln_f_rstd", S, 1);
  dln_f_ = kept("dln_f", A, s.C);
  ln_f_weight_ = builder.tensor("ln_f.weight");
  ln_f_bias_ = builder.tensor("ln_f.bias");
  ln_f_ = builder.add_activation("forward.ln_f", Lifetime::program, A, s.C);
  branch_ = builder.add_activation("forward.branch", Lifetime::program, A, s.C);
}

void LayerPrograms::emit_forward() {
  const Plan& plan = builder_.plan();
  const ModelShape& s = plan.shape;
  builder_.emit(row_op(OpKind::load_tokens, -1, {}, {{plan.tokens}, {plan.targets}}));
  const Operand x0{activations_[0].x};
  builder_.emit(elementwise(OpKind::embedding_forward, -1, s.C,
                            {{plan.tokens}, builder_.weight(wte_), builder_.weight(wpe_)}, {x0}));
  if (plan.config.model.dropout > 0.0) {
    Op op = elementwise(OpKind::residual_forward, -1, s.C, {{}, x0}, {x0}, embedding_site);
    builder_.emit(op);
  }
  for (int64_t l = 0; l < s.L; ++l) emit_layer_forward(l);
  emit_head_forward();
}

void LayerPrograms::emit_layer_forward(int64_t l) {
  const ModelShape& s = builder_.plan().shape;
  const LayerTensors& t = tensors_[l];
  const LayerActivations& a = activations_[l];
  const int32_t layer = static_cast<int32_t>(l);
  const auto w = [&](int tensor) { return builder_.weight(tensor); };
  const Operand branch{branch_};
  const Operand x_next{l + 1 < s.L ? activations_[l + 1].x : x_final_};

  builder_.emit(elementwise(OpKind::layernorm_forward, layer, s.C,
                            {{a.x}, w(t.ln_1_weight), w(t.ln_1_bias)},
                            {{a.ln_1}, {a.ln_1_mean}, {a.ln_1_rstd}}));
  builder_.emit(
      linear_forward(layer, {a.ln_1}, w(t.qkv_weight), w(t.qkv_bias), {a.qkv}, s.C, s.qkv()));
  Op attention = row_op(OpKind::attention_forward, layer, {{a.qkv}}, {{a.attention}, {a.lse}});
  attention.site = attention_site;
  attention.flops_a_row = 4.0 * static_cast<double>(s.T) * static_cast<double>(s.H * s.D);
  builder_.emit(attention);
  builder_.emit(linear_forward(layer, {a.attention}, w(t.attn_proj_weight), w(t.attn_proj_bias),
                               branch, s.H * s.D, s.C));
  builder_.emit(
      elementwise(OpKind::residual_forward, layer, s.C, {{a.x}, branch}, {{a.x_mid}}, proj_site));

  builder_.emit(elementwise(OpKind::layernorm_forward, layer, s.C,
                            {{a.x_mid}, w(t.ln_2_weight), w(t.ln_2_bias)},
                            {{a.ln_2}, {a.ln_2_mean}, {a.ln_2_rstd}}));
  builder_.emit(linear_forward(layer, {a.ln_2}, w(t.fc_weight), w(t.fc_bias), {a.fc}, s.C, s.F));
  builder_.emit(elementwise(OpKind::gelu_forward, layer, s.F, {{a.fc}}, {{a.gelu}}));
  builder_.emit(
      linear_forward(layer, {a.gelu}, w(t.mlp_proj_weight), w(t.mlp_proj_bias), branch, s.F, s.C));
  builder_.emit(
      elementwise(OpKind::residual_forward, layer, s.C, {{a.x_mid}, branch}, {x_next}, mlp_site));
}

// The head's loss and its gradient with respect to the final LayerNorm's output, chunk by chunk.
void LayerPrograms::emit_head_forward() {
  const Plan& plan = builder_.plan();
  const ModelShape& s = plan.shape;
  const int32_t layer = static_cast<int32_t>(s.L);
  builder_.emit(
      elementwise(OpKind::layernorm_forward, layer, s.C,
                  {{x_final_}, builder_.weight(ln_f_weight_), builder_.weight(ln_f_bias_)},
                  {{ln_f_}, {ln_f_mean_}, {ln_f_rstd_}}));

  const int64_t chunk = std::min(head_chunk_rows, plan.micro_batch_rows);
  const auto temporary = [&](const char* name, DType dtype, int64_t elements) {
    return builder_.add_buffer(name, MemoryClass::activations, Lifetime::program, dtype, elements);
  };
  const Operand logits{
      temporary("forward.logits", builder_.A(), checked_product(chunk, s.V, "logits"))};
  const Operand row_max{temporary("forward.row_max", builder_.S(), chunk)};
  const Operand row_sum{temporary("forward.row_sum", builder_.S(), chunk)};
  const Operand target_logit{temporary("forward.target_logit", builder_.S(), chunk)};
  const Operand loss_sum{plan.scalars, static_cast<int64_t>(Scalar::loss_sum)};

  for (int64_t first = 0; first < plan.micro_batch_rows; first += chunk) {
    const Operand ln_f{ln_f_, first * s.C};
    const Operand dln_f{dln_f_, first * s.C};
    const Operand targets{plan.targets, first};
    const auto emit_rows = [&](Op op) {
      op.row_begin = first;
      op.row_count = chunk;
      op.region = Region::head_loss;
      builder_.emit(std::move(op));
    };
    emit_rows(linear_forward(layer, ln_f, builder_.weight(wte_), {}, logits, s.C, s.V));
    emit_rows(elementwise(OpKind::cross_entropy_statistics, layer, s.V, {logits, targets},
                          {row_max, row_sum, target_logit}));
    emit_rows(elementwise(OpKind::cross_entropy_finish, layer, s.V,
                          {row_max, row_sum, target_logit, targets}, {loss_sum, logits}));
    emit_rows(linear_backward_input(layer, logits, builder_.weight(wte_), dln_f, s.C, s.V));
    emit_rows(linear_backward_weight(layer, logits, ln_f, builder_.gradient(wte_), {}, s.C, s.V));
  }
}

LayerPrograms::BackwardBuffers LayerPrograms::add_backward_buffers(const std::string& name) {
  const ModelShape& s = builder_.plan().shape;
  const auto temporary = [&](const char* what, int64_t columns) {
    return builder_.add_activation(name + "." + what, Lifetime::program, builder_.A(), columns);
  };
  return {temporary("dx", s.C), temporary("dbranch", s.C), temporary("dqkv", s.qkv()),
          temporary("dattention", s.H * s.D), temporary("dfc", s.F)};
}

void LayerPrograms::emit_head_backward(const BackwardBuffers& b) {
  const ModelShape& s = builder_.plan().shape;
  const int32_t layer = static_cast<int32_t>(s.L);
  Op zero = elementwise(OpKind::fill_zero, layer, s.C, {}, {{b.dx}});
  zero.region = Region::layernorm;
  builder_.emit(zero);
  builder_.emit(
      elementwise(OpKind::layernorm_backward, layer, s.C,
                  {{dln_f_}, {x_final_}, builder_.weight(ln_f_weight_), {ln_f_mean_}, {ln_f_rstd_}},
                  {{b.dx}, builder_.gradient(ln_f_weight_), builder_.gradient(ln_f_bias_)}));
}

Operand LayerPrograms::emit_dropout_backward(int64_t l, int32_t site, int dx, int dbranch) {
  const Plan& plan = builder_.plan();
  if (plan.config.model.dropout <= 0.0) return {dx};
  builder_.emit(elementwise(OpKind::dropout_backward, static_cast<int32_t>(l), plan.shape.C, {{dx}},
                            {{dbranch}}, site));
  return {dbranch};
}

// dx holds the gradient with respect to the layer's output and is turned, in place, into that with
// respect to its input: the residual path adds, the branches accumulate through their LayerNorms.
int LayerPrograms::emit_layer_backward(int64_t l, const BackwardBuffers& b) {
  const ModelShape& s = builder_.plan().shape;
  const LayerTensors& t = tensors_[l];
  const LayerActivations& a = activations_[l];
  const int32_t layer = static_cast<int32_t>(l);
  const auto w = [&](int tensor) { return builder_.weight(tensor); };
  const auto g = [&](int tensor) { return builder_.gradient(tensor); };

  const Operand dmlp = emit_dropout_backward(l, mlp_site, b.dx, b.dbranch);
  builder_.emit(linear_backward_input(layer, dmlp, w(t.mlp_proj_weight), {b.dfc}, s.F, s.C));
  builder_.emit(linear_backward_weight(layer, dmlp, {a.gelu}, g(t.mlp_proj_weight),
                                       g(t.mlp_proj_bias), s.F, s.C));
  builder_.emit(elementwise(OpKind::gelu_backward, layer, s.F, {{b.dfc}, {a.fc}}, {{b.dfc}}));
  builder_.emit(linear_backward_input(layer, {b.dfc}, w(t.fc_weight), {b.dbranch}, s.C, s.F));
  builder_.emit(
      linear_backward_weight(layer, {b.dfc}, {a.ln_2}, g(t.fc_weight), g(t.fc_bias), s.C, s.F));
  builder_.emit(
      elementwise(OpKind::layernorm_backward, layer, s.C,
                  {{b.dbranch}, {a.x_mid}, w(t.ln_2_weight), {a.ln_2_mean}, {a.ln_2_rstd}},
                  {{b.dx}, g(t.ln_2_weight), g(t.ln_2_bias)}));

  const Operand dproj = emit_dropout_backward(l, proj_site, b.dx, b.dbranch);
  builder_.emit(
      linear_backward_input(layer, dproj, w(t.attn_proj_weight), {b.dattention}, s.H * s.D, s.C));
  builder_.emit(linear_backward_weight(layer, dproj, {a.attention}, g(t.attn_proj_weight),
                                       g(t.attn_proj_bias), s.H * s.D, s.C));
  Op attention = row_op(OpKind::attention_backward, layer,
                        {{b.dattention}, {a.qkv}, {a.attention}, {a.lse}}, {{b.dqkv}});
  attention.site = attention_site;
  attention.flops_a_row = 8.0 * static_cast<double>(s.T) * static_cast<double>(s.H * s.D);
  builder_.emit(attention);
  builder_.emit(linear_backward_input(layer, {b.dqkv}, w(t.qkv_weight), {b.dbranch}, s.C, s.qkv()));
  builder_.emit(linear_backward_weight(layer, {b.dqkv}, {a.ln_1}, g(t.qkv_weight), g(t.qkv_bias),
                                       s.C, s.qkv()));
  return builder_.emit(
      elementwise(OpKind::layernorm_backward, layer, s.C,
                  {{b.dbranch}, {a.x}, w(t.ln_1_weight), {a.ln_1_mean}, {a.ln_1_rstd}},
                  {{b.dx}, g(t.ln_1_weight), g(t.ln_1_bias)}));
}

int LayerPrograms::emit_embedding_backward(const BackwardBuffers& b) {
  const Plan& plan = builder_.plan();
  const Operand dx = emit_dropout_backward(-1, embedding_site, b.dx, b.dbranch);
  return builder_.emit(elementwise(OpKind::embedding_backward, -1, plan.shape.C,
                                   {dx, {plan.tokens}},
                                   {builder_.gradient(wte_), builder_.gradient(wpe_)}));
}

}  // namespace gptbench
