// From an operation of the plan to the arguments of its kernel: which position of reads and writes
// is which argument is stated here.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/engine.h"
#include "plan/workspace.h"

namespace gptbench {

void Engine::compute(const Op& op, const Task& task) {
  const int64_t all_rows = task.sequences.count * plan_.T_local();
  const int64_t rows = rows_of(op, all_rows - first_row_);
  switch (op.kind) {
    case OpKind::load_tokens:
      load_tokens(op, task);
      break;
    case OpKind::load_labels:
      load_labels(op, task);
      break;
    case OpKind::load_lengths:
      load_lengths(op, task);
      break;
    case OpKind::load_control: {
      if (replay_ != Replay::never) given_vote_ = reinterpret_cast<double*>(given_ + given_at_);
      give(queue(op.queue), write_at(op, 0), &vote_to_stop_, sizeof vote_to_stop_);
      const double weight = 1.0 / static_cast<double>(num_targets_);
      if (op.writes[1].buffer >= 0) give(queue(op.queue), write_at(op, 1), &weight, sizeof weight);
      break;
    }
    case OpKind::fill_zero: {
      const DType type = type_of(op.writes[0]);
      const int64_t elements = op.row_count > 0 ? rows * op.N : op.elements;
      device_.fill_zero(queue(op.queue), write_at(op, 0), elements * size_of(type));
      break;
    }
    case OpKind::linear_forward:
    case OpKind::linear_backward_input:
    case OpKind::linear_backward_weight:
    case OpKind::linear_gelu_forward:
    case OpKind::linear_gelu_backward_input:
    case OpKind::bias_backward:
      run_linear(op, rows);
      break;
    case OpKind::fp8_quantize:
    case OpKind::fp8_transpose:
    case OpKind::fp8_update_scales:
      run_fp8(op, rows);
      break;
    case OpKind::layernorm_forward:
    case OpKind::layernorm_backward:
    case OpKind::rmsnorm_forward:
    case OpKind::rmsnorm_backward:
      run_norm(op, task, rows);
      break;
    case OpKind::rotary_forward:
    case OpKind::rotary_backward:
      run_rotary(op, rows);
      break;
    case OpKind::attention_forward:
    case OpKind::attention_backward:
      run_attention(op, task);
      break;
    case OpKind::gelu_forward:
    case OpKind::gelu_backward:
    case OpKind::swiglu_forward:
    case OpKind::swiglu_backward:
    case OpKind::tanh_forward:
    case OpKind::tanh_backward:
    case OpKind::residual_forward:
    case OpKind::dropout_backward:
      run_elementwise(op, task, rows);
      break;
    case OpKind::first_rows_forward:
    case OpKind::first_rows_backward:
      run_first_rows(op, task, rows);
      break;
    case OpKind::embedding_forward:
    case OpKind::embedding_backward:
      run_embedding(op, rows);
      break;
    case OpKind::cross_entropy_statistics:
    case OpKind::cross_entropy_combine:
    case OpKind::cross_entropy_finish:
      run_cross_entropy(op, rows);
      break;
    case OpKind::join:
      break;
    case OpKind::copy: {
      const DType type = type_of(op.writes[0]);
      const int64_t elements = op.row_count > 0 ? rows * op.N : op.elements;
      device_.copy(queue(op.queue), write_at(op, 0), read_at(op, 0), elements * size_of(type));
      break;
    }
    case OpKind::accumulate:
    case OpKind::squared_norm:
    case OpKind::sum_scalars:
    case OpKind::loss_scale:
    case OpKind::clip_factor:
    case OpKind::adamw:
    case OpKind::convert:
      run_optimizer(op, rows);
      break;
    default:
      GPTBENCH_CHECK(false, std::string(info_of(op.kind).name) + " on the compute queue");
      break;
  }
}

Workspace Engine::workspace() const {
  if (plan_.scratch < 0) return {};
  return {arena_.address({plan_.scratch}, 0),
          plan_.buffers[static_cast<size_t>(plan_.scratch)].elements};
}

// A seed of its own for each step: an odd multiple of the step never repeats in 2^64 steps.
uint64_t Engine::dropout_seed() const {
  return static_cast<uint64_t>(plan_.config.run.seed) +
         static_cast<uint64_t>(step_) * 0x9E3779B97F4A7C15ull;
}

Dropout Engine::dropout_of(const Op& op, double rate) const {
  const bool in_memory = replay_ != Replay::never && plan_.dropout_seed >= 0;
  return {
      rate, dropout_seed(), static_cast<uint32_t>((op.layer + 1) * 8 + op.site),
      in_memory ? static_cast<const uint64_t*>(arena_.address({plan_.dropout_seed}, 0)) : nullptr};
}

void Engine::run_linear(const Op& op, int64_t rows) {
  Queue& q = queue(op.queue);
  if (op.kind == OpKind::bias_backward) {
    kernels_.bias_backward(q, {write_at(op, 0), read_at(op, 0), rows, op.N, workspace()});
    return;
  }
  // What fp8 factors are multiplied with are the last two arrays read.
  Fp8Scales fp8;
  if (is_fp8(type_of(op.reads[0]))) {
    const int first = static_cast<int>(op.reads.size()) - 2;
    fp8 = {static_cast<const float*>(read_at(op, first)),
           static_cast<const float*>(read_at(op, first + 1)), op.transposed};
  }
  if (op.kind == OpKind::linear_gelu_forward)
    kernels_.linear_gelu_forward(q, {{write_at(op, 0), read_at(op, 0), read_at(op, 1),
                                      read_at(op, 2), rows, op.K, op.N, workspace()},
                                     write_at(op, 1)});
  else if (op.kind == OpKind::linear_gelu_backward_input)
    kernels_.linear_gelu_backward_input(
        q, {{write_at(op, 0), read_at(op, 0), read_at(op, 1), rows, op.K, op.N, false, workspace()},
            read_at(op, 2)});
  else if (op.kind == OpKind::linear_forward)
    kernels_.linear_forward(q, {write_at(op, 0), read_at(op, 0), read_at(op, 1), read_at(op, 2),
                                rows, op.K, op.N, workspace(), fp8});
  else if (op.kind == OpKind::linear_backward_input)
    kernels_.linear_backward_input(q, {write_at(op, 0), read_at(op, 0), read_at(op, 1), rows, op.K,
                                       op.N, op.accumulate, workspace(), fp8});
  else
    kernels_.linear_backward_weight(q, {write_at(op, 0), write_at(op, 1), read_at(op, 0),
                                        read_at(op, 1), rows, op.K, op.N, workspace(), fp8});
}

Fp8Copy Engine::fp8_copy(const Op& op) {
  if (!op.copies_fp8) return {};
  const int first = static_cast<int>(op.writes.size()) - 4;
  const size_t at = static_cast<size_t>(first);
  const Operand& made = op.writes[at].buffer >= 0 ? op.writes[at] : op.writes[at + 1];
  return {write_at(op, first),
          write_at(op, first + 1),
          static_cast<float*>(write_at(op, first + 2)),
          static_cast<const float*>(read_at(op, static_cast<int>(op.reads.size()) - 1)),
          type_of(made),
          write_at(op, first + 3),
          workspace()};
}

void Engine::run_fp8(const Op& op, int64_t rows) {
  Queue& q = queue(op.queue);
  if (op.kind == OpKind::fp8_quantize) {
    const Fp8Copy copy = fp8_copy(op);
    kernels_.fp8_quantize(q, {copy.y, copy.y_transposed, copy.amax, read_at(op, 0), copy.scale,
                              op.row_count > 0 ? rows : op.elements / op.N, op.N, copy.type,
                              copy.sums, copy.workspace});
    return;
  }
  if (op.kind == OpKind::fp8_transpose) {
    kernels_.fp8_transpose(q, {write_at(op, 0), read_at(op, 0), rows, op.N});
    return;
  }
  const PrecisionConfig& precision = plan_.config.precision;
  kernels_.fp8_update_scales(
      q, {static_cast<float*>(write_at(op, 0)), static_cast<float*>(write_at(op, 1)),
          static_cast<float*>(write_at(op, 2)), static_cast<float*>(write_at(op, 3)),
          static_cast<int32_t*>(write_at(op, 4)), op.elements, plan_.fp8.e4m3,
          precision.fp8_amax_history, static_cast<int>(precision.fp8_margin)});
}

ResidualSum Engine::residual_sum(const Op& op, const Task& task, int64_t rows, int weights) {
  if (!op.adds_residual) return {};
  return {write_at(op, 1 + weights), read_at(op, 0), read_at(op, 1 + weights),
          dropout_of(op, plan_.config.model.dropout), global_rows(op, task, rows)};
}

void Engine::run_norm(const Op& op, const Task& task, int64_t rows) {
  Queue& q = queue(op.queue);
  if (op.kind == OpKind::layernorm_forward)
    kernels_.layernorm_forward(
        q, {write_at(op, 0), write_at(op, 1), write_at(op, 2), read_at(op, 0), read_at(op, 1),
            read_at(op, 2), rows, op.N, plan_.config.model.layernorm_epsilon, fp8_copy(op),
            residual_sum(op, task, rows, 2)});
  else if (op.kind == OpKind::rmsnorm_forward)
    kernels_.rmsnorm_forward(
        q, {write_at(op, 0), write_at(op, 1), read_at(op, 0), read_at(op, 1), rows, op.N,
            plan_.config.model.layernorm_epsilon, fp8_copy(op), residual_sum(op, task, rows, 1)});
  else if (op.kind == OpKind::rmsnorm_backward)
    kernels_.rmsnorm_backward(q, {write_at(op, 0), write_at(op, 1), read_at(op, 0), read_at(op, 1),
                                  read_at(op, 2), read_at(op, 3), rows, op.N, workspace()});
  else
    kernels_.layernorm_backward(
        q, {write_at(op, 0), write_at(op, 1), write_at(op, 2), read_at(op, 0), read_at(op, 1),
            read_at(op, 2), read_at(op, 3), read_at(op, 4), rows, op.N, workspace()});
}

void Engine::run_elementwise(const Op& op, const Task& task, int64_t rows) {
  const int64_t n = rows * op.N;
  Queue& q = queue(op.queue);
  if (op.kind == OpKind::gelu_forward)
    kernels_.gelu_forward(q, {write_at(op, 0), read_at(op, 0), n, op.N, fp8_copy(op)});
  else if (op.kind == OpKind::gelu_backward)
    kernels_.gelu_backward(
        q, {write_at(op, 0), read_at(op, 0), read_at(op, 1), n, op.N, fp8_copy(op)});
  else if (op.kind == OpKind::swiglu_forward)
    kernels_.swiglu_forward(q, {write_at(op, 0), read_at(op, 0), rows, op.N, fp8_copy(op)});
  else if (op.kind == OpKind::swiglu_backward)
    kernels_.swiglu_backward(
        q, {write_at(op, 0), read_at(op, 0), read_at(op, 1), rows, op.N, fp8_copy(op)});
  else if (op.kind == OpKind::tanh_forward)
    kernels_.tanh_forward(q, {write_at(op, 0), read_at(op, 0), n});
  else if (op.kind == OpKind::tanh_backward)
    kernels_.tanh_backward(q, {write_at(op, 0), read_at(op, 0), read_at(op, 1), n});
  else if (op.kind == OpKind::residual_forward)
    kernels_.residual_forward(
        q, {write_at(op, 0), read_at(op, 0), read_at(op, 1), rows, op.N,
            dropout_of(op, plan_.config.model.dropout), global_rows(op, task, rows)});
  else
    kernels_.dropout_backward(
        q, {write_at(op, 0), read_at(op, 0), rows, op.N, dropout_of(op, plan_.config.model.dropout),
            global_rows(op, task, rows)});
}

// Rows of sequences' first positions, T apart among the rows of this rank's part.
void Engine::run_first_rows(const Op& op, const Task& task, int64_t rows) {
  if (rows == 0) return;
  const int64_t all_rows = task.sequences.count * plan_.T_local();
  const int64_t first = first_sequence_of(op, all_rows, op.part) * op.sequence_rows -
                        op.part * (all_rows / op.row_div);
  Operand apart = op.kind == OpKind::first_rows_forward ? op.reads[0] : op.writes[0];
  apart.offset += first * op.N;
  void* const x = arena_.address(apart, slot_);
  const DType type = type_of(apart);
  const int64_t apart_row = op.sequence_rows * op.N;
  if (op.kind == OpKind::first_rows_forward)
    kernels_.convert(queue(op.queue),
                     {write_at(op, 0), x, rows, op.N, op.N, apart_row, type, type, false});
  else
    kernels_.convert(queue(op.queue),
                     {x, read_at(op, 0), rows, op.N, apart_row, op.N, type, type, true});
}

void Engine::run_embedding(const Op& op, int64_t rows) {
  const ModelShape& s = plan_.local;
  Queue& q = queue(op.queue);
  const auto ids = [&](int i) { return static_cast<const int32_t*>(read_at(op, i)); };
  if (op.kind == OpKind::embedding_forward)
    kernels_.embedding_forward(
        q, {write_at(op, 0), ids(0), read_at(op, 1), read_at(op, 2), rows, plan_.T_local(), s.C,
            plan_.at.tensor * s.V, s.V, positions(), ids(3), read_at(op, 4)});
  else
    kernels_.embedding_backward(
        q, {write_at(op, 0), write_at(op, 1), read_at(op, 0), ids(1), rows, plan_.T_local(), s.C,
            plan_.at.tensor * s.V, s.V, positions(), ids(2), write_at(op, 2)});
}

// Of statistics and gradient: N columns, of which `elements` stand for tokens K and on.
void Engine::run_cross_entropy(const Op& op, int64_t rows) {
  Queue& q = queue(op.queue);
  if (op.kind == OpKind::cross_entropy_combine)
    kernels_.cross_entropy_combine(q, {write_at(op, 0), write_at(op, 1), write_at(op, 2),
                                       read_at(op, 0), rows, plan_.grid.tensor, op.K, op.elements});
  else if (op.kind == OpKind::cross_entropy_statistics)
    kernels_.cross_entropy_statistics(
        q, {write_at(op, 0), write_at(op, 1), write_at(op, 2), read_at(op, 0),
            static_cast<const int32_t*>(read_at(op, 1)), rows, op.N, op.elements, op.K});
  else
    kernels_.cross_entropy_finish(
        q, {static_cast<double*>(write_at(op, 0)), write_at(op, 1), read_at(op, 0), read_at(op, 1),
            read_at(op, 2), static_cast<const int32_t*>(read_at(op, 3)), rows, op.N, op.elements,
            op.K, op.row_weight, static_cast<const double*>(read_at(op, 4)),
            static_cast<const double*>(read_at(op, 5))});
}

void Engine::run_convert(const Op& op, int64_t rows) {
  Convert convert{write_at(op, 0),      read_at(op, 0), 1, op.elements, 0, 0, type_of(op.writes[0]),
                  type_of(op.reads[0]), op.accumulate};
  if (op.row_count > 0) {
    convert.R = rows;
    convert.C = op.N;
    convert.y_row = op.write_stride > 0 ? op.write_stride : op.N;
    convert.x_row = op.read_stride > 0 ? op.read_stride : op.N;
  }
  kernels_.convert(queue(op.queue), convert);
}

// A scale that the deck fixes neither grows nor shrinks.
void Engine::run_loss_scale(const Op& op) {
  const PrecisionConfig& p = plan_.config.precision;
  const bool fixed = p.loss_scale > 0.0;
  const auto at = [&](int i) { return static_cast<double*>(write_at(op, i)); };
  kernels_.loss_scale(queue(op.queue),
                      {at(0), at(1), at(2), at(3), at(4), fixed ? 1.0 : p.loss_scale_growth,
                       fixed ? 1.0 : p.loss_scale_backoff, fixed ? 0 : p.loss_scale_window,
                       p.loss_scale_hysteresis});
}

void Engine::run_optimizer(const Op& op, int64_t rows) {
  const OptimizerConfig& o = plan_.config.optimizer;
  Queue& q = queue(op.queue);
  if (op.kind == OpKind::squared_norm)
    kernels_.squared_norm(q, {static_cast<double*>(write_at(op, 0)), read_at(op, 0), op.elements,
                              type_of(op.reads[0]), workspace()});
  else if (op.kind == OpKind::accumulate)
    kernels_.accumulate(
        q, {write_at(op, 0), read_at(op, 0), op.row_count > 0 ? rows * op.N : op.elements});
  else if (op.kind == OpKind::sum_scalars)
    kernels_.sum_scalars(q, {static_cast<double*>(write_at(op, 0)),
                             static_cast<const double*>(read_at(op, 0)), op.elements});
  else if (op.kind == OpKind::loss_scale)
    run_loss_scale(op);
  else if (op.kind == OpKind::clip_factor)
    kernels_.clip_factor(
        q, {static_cast<double*>(write_at(op, 0)), static_cast<const double*>(read_at(op, 0)),
            o.clip, static_cast<const double*>(read_at(op, 2))});
  else if (op.kind == OpKind::adamw)
    kernels_.adamw(
        q, {write_at(op, 0), write_at(op, 1), write_at(op, 2), read_at(op, 0), write_at(op, 3),
            static_cast<const double*>(read_at(op, 1)), op.elements, updates_ + 1, o.lr, o.beta1,
            o.beta2, o.epsilon, op.weight_decay, type_of(op.writes[0]), type_of(op.writes[1]),
            type_of(op.reads[0]), corrections(), static_cast<const double*>(read_at(op, 2))});
  else
    run_convert(op, rows);
}

}  // namespace gptbench
