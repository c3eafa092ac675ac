#include "broken_kernels.h"

#include <limits>
#include <string>

#include "tf32_products.h"

namespace gptbench {
namespace {

// The sound table that broken entries call; set when a device is asked for its kernels.
KernelTable sound;

// x[i] *= factor, rounded to A. Host kernels have completed when they return.
template <class A>
void scale(void* x, int64_t n, float factor) {
  A* const values = static_cast<A*>(x);
  for (int64_t i = 0; i < n; ++i)
    values[i] = static_cast<A>(static_cast<float>(values[i]) * factor);
}

template <class A>
void gelu_backward_scaled(Queue& q, const GeluBackward& k) {
  sound.gelu_backward(q, k);
  scale<A>(k.dx, k.n, 1.01f);
}

template <class A>
void gelu_forward_is_relu(Queue&, const GeluForward& k) {
  A* const y = static_cast<A*>(k.y);
  const A* const x = static_cast<const A*>(k.x);
  for (int64_t i = 0; i < k.n; ++i) y[i] = static_cast<float>(x[i]) > 0.0f ? x[i] : A{};
}

void attention_forward_scaled(Queue& q, const AttentionForward& k) {
  AttentionForward wrong = k;
  wrong.shape.scale *= 1.01;
  sound.attention_forward(q, wrong);
}

void attention_backward_scaled(Queue& q, const AttentionBackward& k) {
  AttentionBackward wrong = k;
  wrong.shape.scale *= 1.01;
  sound.attention_backward(q, wrong);
}

void attention_forward_not_causal(Queue& q, const AttentionForward& k) {
  AttentionForward wrong = k;
  wrong.shape.causal = false;
  sound.attention_forward(q, wrong);
}

void attention_forward_sees_padding(Queue& q, const AttentionForward& k) {
  AttentionForward wrong = k;
  wrong.shape.lengths = nullptr;
  sound.attention_forward(q, wrong);
}

void attention_backward_sees_padding(Queue& q, const AttentionBackward& k) {
  AttentionBackward wrong = k;
  wrong.shape.lengths = nullptr;
  sound.attention_backward(q, wrong);
}

void attention_forward_one_more_key(Queue& q, const AttentionForward& k) {
  std::vector<int32_t> lengths(k.shape.lengths, k.shape.lengths + k.shape.B);
  for (int32_t& length : lengths) ++length;
  AttentionForward wrong = k;
  wrong.shape.lengths = lengths.data();
  sound.attention_forward(q, wrong);
}

// As if every sequence had as many targets as a whole one.
void cross_entropy_finish_fixed_weight(Queue& q, const CrossEntropyFinish& k) {
  const double weight = 1.0 / 54.0;
  CrossEntropyFinish wrong = k;
  if (wrong.row_weight != nullptr) wrong.row_weight = &weight;
  sound.cross_entropy_finish(q, wrong);
}

void layernorm_backward_no_dgamma(Queue& q, const LayerNormBackward& k) {
  std::vector<float> lost(static_cast<size_t>(k.C));
  LayerNormBackward wrong = k;
  wrong.dgamma = lost.data();
  sound.layernorm_backward(q, wrong);
}

void linear_backward_weight_no_bias(Queue& q, const LinearBackwardWeight& k) {
  LinearBackwardWeight wrong = k;
  wrong.dbias = nullptr;
  sound.linear_backward_weight(q, wrong);
}

// The last row of the micro-batch is forgotten, as by a tile that is cut short.
void linear_backward_weight_short(Queue& q, const LinearBackwardWeight& k) {
  LinearBackwardWeight wrong = k;
  if (wrong.R > 0) wrong.R -= 1;
  sound.linear_backward_weight(q, wrong);
}

template <class A>
void linear_backward_input_scaled(Queue& q, const LinearBackwardInput& k) {
  sound.linear_backward_input(q, k);
  scale<A>(k.dx, k.R * k.K, 1.01f);
}

void embedding_backward_no_positions(Queue& q, const EmbeddingBackward& k) {
  EmbeddingBackward wrong = k;
  wrong.dposition_table = nullptr;
  sound.embedding_backward(q, wrong);
}

// A tied table keeps the gradient of the head, which is the larger part.
void embedding_backward_no_tokens(Queue& q, const EmbeddingBackward& k) {
  std::vector<float> lost(static_cast<size_t>(k.V_tp * k.C));
  EmbeddingBackward wrong = k;
  wrong.dtoken_table = lost.data();
  sound.embedding_backward(q, wrong);
}

void embedding_forward_no_positions(Queue& q, const EmbeddingForward& k) {
  EmbeddingForward wrong = k;
  wrong.position_table = nullptr;
  sound.embedding_forward(q, wrong);
}

void cross_entropy_finish_scaled(Queue& q, const CrossEntropyFinish& k) {
  CrossEntropyFinish wrong = k;
  wrong.dscale *= 1.01;
  sound.cross_entropy_finish(q, wrong);
}

// The padding of the vocabulary counts as tokens.
void cross_entropy_statistics_padding(Queue& q, const CrossEntropyStatistics& k) {
  CrossEntropyStatistics wrong = k;
  wrong.V_valid = wrong.V_tp;
  sound.cross_entropy_statistics(q, wrong);
}

void layernorm_forward_epsilon(Queue& q, const LayerNormForward& k) {
  LayerNormForward wrong = k;
  wrong.epsilon *= 100.0;
  sound.layernorm_forward(q, wrong);
}

void adamw_step_doubled(Queue& q, const AdamW& k) {
  AdamW wrong = k;
  wrong.lr *= 2.0;
  sound.adamw(q, wrong);
}

void adamw_does_nothing(Queue&, const AdamW&) {}

void fp8_quantize_twice_as_large(Queue& q, const Fp8Quantize& k) {
  const float scale = 2.0f * k.scale[0];
  Fp8Quantize wrong = k;
  wrong.scale = &scale;
  sound.fp8_quantize(q, wrong);
}

void gelu_forward_copies_twice_as_large(Queue& q, const GeluForward& k) {
  const float scale = 2.0f * (k.fp8.wanted() ? k.fp8.scale[0] : 1.0f);
  GeluForward wrong = k;
  wrong.fp8.scale = &scale;
  sound.gelu_forward(q, wrong);
}

// As without scales: gradients vanish.
void fp8_quantize_unscaled(Queue& q, const Fp8Quantize& k) {
  const float scale = 1.0f;
  Fp8Quantize wrong = k;
  wrong.scale = &scale;
  sound.fp8_quantize(q, wrong);
}

template <class A>
void residual_forward_nan(Queue& q, const ResidualForward& k) {
  sound.residual_forward(q, k);
  if (k.R > 0) static_cast<A*>(k.y)[0] = A{std::numeric_limits<float>::quiet_NaN()};
}

}  // namespace

const std::vector<BrokenKernel>& broken_kernels() {
  // One function serves all types where it only changes arguments.
#define GPTBENCH_BREAK(name, beyond, entry, function)                                          \
  BrokenKernel {                                                                               \
    name, beyond, [](KernelTable& t) { t.entry = function; },                                  \
        [](KernelTable& t) { t.entry = function; }, [](KernelTable& t) { t.entry = function; } \
  }
#define GPTBENCH_BREAK_TYPED(name, beyond, entry, function)          \
  BrokenKernel {                                                     \
    name, beyond, [](KernelTable& t) { t.entry = function<float>; }, \
        [](KernelTable& t) { t.entry = function<bfloat16>; },        \
        [](KernelTable& t) { t.entry = function<float16>; }          \
  }
  static const std::vector<BrokenKernel> all = {
      GPTBENCH_BREAK_TYPED("gelu_backward scaled by 1.01", false, gelu_backward,
                           gelu_backward_scaled),
      GPTBENCH_BREAK_TYPED("gelu_forward is relu", true, gelu_forward, gelu_forward_is_relu),
      GPTBENCH_BREAK("attention_forward scale 1% off", false, attention_forward,
                     attention_forward_scaled),
      GPTBENCH_BREAK("attention_backward scale 1% off", false, attention_backward,
                     attention_backward_scaled),
      GPTBENCH_BREAK("attention_forward not causal", true, attention_forward,
                     attention_forward_not_causal),
      GPTBENCH_BREAK("layernorm_backward without dgamma", true, layernorm_backward,
                     layernorm_backward_no_dgamma),
      GPTBENCH_BREAK("linear_backward_weight without bias", true, linear_backward_weight,
                     linear_backward_weight_no_bias),
      GPTBENCH_BREAK("linear_backward_weight one row short", true, linear_backward_weight,
                     linear_backward_weight_short),
      GPTBENCH_BREAK_TYPED("linear_backward_input scaled by 1.01", false, linear_backward_input,
                           linear_backward_input_scaled),
      GPTBENCH_BREAK("embedding_backward without positions", true, embedding_backward,
                     embedding_backward_no_positions),
      GPTBENCH_BREAK("embedding_backward without tokens", false, embedding_backward,
                     embedding_backward_no_tokens),
      GPTBENCH_BREAK("embedding_forward without positions", true, embedding_forward,
                     embedding_forward_no_positions),
      GPTBENCH_BREAK("cross_entropy_finish scaled by 1.01", false, cross_entropy_finish,
                     cross_entropy_finish_scaled),
      GPTBENCH_BREAK("cross_entropy_statistics counts padding", true, cross_entropy_statistics,
                     cross_entropy_statistics_padding),
      GPTBENCH_BREAK("layernorm_forward epsilon 100 times", true, layernorm_forward,
                     layernorm_forward_epsilon),
      GPTBENCH_BREAK("adamw steps twice as far", true, adamw, adamw_step_doubled),
      GPTBENCH_BREAK("adamw does nothing", true, adamw, adamw_does_nothing),
      GPTBENCH_BREAK_TYPED("residual_forward makes a NaN", true, residual_forward,
                           residual_forward_nan),
  };
#undef GPTBENCH_BREAK_TYPED
  return all;
}

const std::vector<BrokenKernel>& broken_kernels_of_padding() {
  static const std::vector<BrokenKernel> all = {
      GPTBENCH_BREAK("attention_forward sees padding", true, attention_forward,
                     attention_forward_sees_padding),
      GPTBENCH_BREAK("attention_backward sees padding", true, attention_backward,
                     attention_backward_sees_padding),
      GPTBENCH_BREAK("attention_forward one key too many", false, attention_forward,
                     attention_forward_one_more_key),
      GPTBENCH_BREAK("cross_entropy_finish weighs as if whole", true, cross_entropy_finish,
                     cross_entropy_finish_fixed_weight),
  };
  return all;
}

std::vector<BrokenKernel> broken_kernels_in_fp8() {
  std::vector<BrokenKernel> all = {
      GPTBENCH_BREAK("fp8_quantize twice as large", true, fp8_quantize,
                     fp8_quantize_twice_as_large),
      GPTBENCH_BREAK("gelu_forward copies twice as large", true, gelu_forward,
                     gelu_forward_copies_twice_as_large),
      GPTBENCH_BREAK("fp8_quantize without scale", true, fp8_quantize, fp8_quantize_unscaled),
  };
#undef GPTBENCH_BREAK
  for (const BrokenKernel& each : broken_kernels())
    for (const char* name :
         {"attention_forward not causal", "layernorm_backward without dgamma",
          "embedding_backward without positions", "cross_entropy_statistics counts padding",
          "adamw steps twice as far", "adamw does nothing", "residual_forward makes a NaN"})
      if (std::string(each.name) == name) all.push_back(each);
  return all;
}

const KernelTable& BrokenDevice::kernels(ComputeType compute) const {
  sound = WrappedDevice::kernels(compute);
  if (tf32_) sound = tf32_products(sound);
  table_ = sound;
  if (broken_ != nullptr)
    (compute == ComputeType::bf16   ? broken_->install_bf16
     : compute == ComputeType::fp16 ? broken_->install_f16
                                    : broken_->install_f32)(table_);
  return table_;
}

}  // namespace gptbench
