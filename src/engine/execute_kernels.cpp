// Operations that are one kernel. A field of the kernel's arguments with the name of an operand is
// the address of that operand; fields of the same name and type mean the same in all kernels.
#include <type_traits>

#include "engine/handlers.h"
#include "engine/step_inputs.h"

namespace gptbench::handle {
namespace {

// Calls set(args) where that compiles: where the arguments have the field that it assigns.
template <class Arguments, class Set>
void set_if_present(Arguments& args, const Set& set) {
  if constexpr (std::is_invocable_v<const Set&, Arguments&>) set(args);
}
#define GPTBENCH_SET(field, value) \
  set_if_present(args, [&](auto& a) -> decltype(void(a.field = (value))) { a.field = (value); })

template <class Arguments>
void set_sizes(const OpCall& call, Arguments& args) {
  GPTBENCH_SET(R, call.rows);
  GPTBENCH_SET(C, call.columns());
  GPTBENCH_SET(F, call.columns());
  GPTBENCH_SET(N, call.columns());
  GPTBENCH_SET(n, call.elements());
  GPTBENCH_SET(T_local, call.plan().T_local());
  GPTBENCH_SET(epsilon, call.plan().config.model.layernorm_epsilon);
  // Rows of the embedding that this tensor-parallel rank holds, its share of the vocabulary.
  GPTBENCH_SET(V_tp, call.plan().local.V);
  GPTBENCH_SET(first_token, call.plan().at.tensor * call.plan().local.V);
  if (const auto* gemm = std::get_if<GemmSize>(&call.op.size)) {
    GPTBENCH_SET(K, gemm->K);
    GPTBENCH_SET(N, gemm->N);
  }
  if (const auto* loss = std::get_if<LossSize>(&call.op.size)) {
    GPTBENCH_SET(V_tp, loss->columns);
    GPTBENCH_SET(V_valid, loss->valid);
    GPTBENCH_SET(first_token, loss->first_token);
    GPTBENCH_SET(dscale, loss->row_weight);
  }
  if (const auto* parts = std::get_if<LossPartsSize>(&call.op.size)) {
    GPTBENCH_SET(num_parts, call.plan().grid.tensor);
    GPTBENCH_SET(array, parts->array_stride);
    GPTBENCH_SET(part, parts->rank_stride);
  }
}

// Arguments that operations name differently, and those that come from the deck.
template <class Arguments>
void set_others(const OpCall& /*call*/, Arguments& /*args*/) {}

// The columns are those of the heads of q and of k, which begin each row; v is left as it is.
void set_others(const OpCall& call, Rotary& args) {
  const ModelShape& s = call.plan().local;
  args.heads = call.columns() / s.D;
  args.D = s.D;
  args.row = s.qkv();
  args.theta = call.plan().config.model.rotary_theta;
}

void set_others(const OpCall& call, LinearBackwardWeight& args) {
  args.accumulate = call.accumulates_gradient();
  // A rank's last micro-batch may be empty: its sum is zero, and the kernel does nothing.
  if (args.R == 0 && !args.accumulate)
    call.device().fill_zero(call.queue(), args.dweight,
                            args.N * args.K * size_of(call.type_of(Slot::dweight)));
}

void set_others(const OpCall& call, ResidualForward& args) {
  args.y = call[Slot::sum];
  args.x = call[Slot::branch];
}

void set_others(const OpCall& call, Fp8Quantize& args) {
  const MatrixSize& size = call.op.as<MatrixSize>();
  const Fp8Copy copy = call.fp8_copy();
  args.y = copy.y;
  args.y_transposed = copy.y_transposed;
  args.scale = copy.scale;
  args.R = size.rows(call.rows);
  args.C = size.columns;
  args.type = copy.type;
  args.sums = copy.sums;
}

void set_others(const OpCall& call, Fp8UpdateScales& args) {
  const PrecisionConfig& precision = call.plan().config.precision;
  args.scale = call[Slot::fp8_scale];
  args.inverse = call[Slot::fp8_inverse];
  args.history = call[Slot::amax_history];
  args.position = call[Slot::history_position];
  args.count = call.elements();
  args.e4m3 = call.plan().fp8.e4m3;
  args.length = precision.fp8_amax_history;
  args.margin = static_cast<int>(precision.fp8_margin);
}

void set_others(const OpCall& call, SquaredNorm& args) {
  args.sum = call[Slot::norm2];
  args.g = call[Slot::gradient];
  args.type = call.type_of(Slot::gradient);
}

void set_others(const OpCall& call, SumScalars& args) {
  args.out = call[Slot::y];
}

// A scale that the deck fixes neither grows nor shrinks.
void set_others(const OpCall& call, LossScale& args) {
  const PrecisionConfig& p = call.plan().config.precision;
  const bool fixed = p.loss_scale > 0.0;
  args.state = call[Slot::scale_state];
  args.used = call[Slot::loss_scale];
  args.next = call[Slot::next_loss_scale];
  args.growth = fixed ? 1.0 : p.loss_scale_growth;
  args.backoff = fixed ? 1.0 : p.loss_scale_backoff;
  args.window = fixed ? 0 : p.loss_scale_window;
  args.hysteresis = p.loss_scale_hysteresis;
}

void set_others(const OpCall& call, ClipFactor& args) {
  args.factor = call[Slot::clip_factor];
  args.clip = call.plan().config.optimizer.clip;
}

void set_others(const OpCall& call, AdamW& args) {
  const OptimizerConfig& optimizer = call.plan().config.optimizer;
  args.p = call[Slot::master];
  args.m = call[Slot::moment1];
  args.v = call[Slot::moment2];
  args.g = call[Slot::gradient];
  args.factor = call[Slot::clip_factor];
  args.t = call.inputs().constants().update();
  args.lr = call.inputs().constants().learning_rate();
  args.beta1 = optimizer.beta1;
  args.beta2 = optimizer.beta2;
  args.epsilon = optimizer.epsilon;
  args.weight_decay = call.op.as<UpdateSize>().weight_decay;
  args.p_type = call.type_of(Slot::master);
  args.moment_type = call.type_of(Slot::moment1);
  args.g_type = call.type_of(Slot::gradient);
  args.corrections = call.inputs().corrections_in_memory();
}

template <class Arguments>
Arguments arguments_of(const OpCall& call) {
  Arguments args{};
#define GPTBENCH_SET_OPERAND(name) GPTBENCH_SET(name, call[Slot::name]);
  GPTBENCH_SLOTS(GPTBENCH_SET_OPERAND)
#undef GPTBENCH_SET_OPERAND
  set_sizes(call, args);
  GPTBENCH_SET(workspace, call.workspace());
  GPTBENCH_SET(dropout, call.dropout());
  GPTBENCH_SET(positions, call.positions());
  GPTBENCH_SET(rows, call.global_rows());
  GPTBENCH_SET(fp8, call.fp8_copy());
  GPTBENCH_SET(fp8, call.fp8_scales());
  GPTBENCH_SET(linear, arguments_of<decltype(a.linear)>(call));
  GPTBENCH_SET(statistics, arguments_of<decltype(a.statistics)>(call));
  GPTBENCH_SET(finish, arguments_of<decltype(a.finish)>(call));
  if (call.op.has(Slot::sum)) GPTBENCH_SET(residual, arguments_of<ResidualSum>(call));
  // Norms name their parameters as in the literature.
  GPTBENCH_SET(gamma, call[Slot::weight]);
  GPTBENCH_SET(beta, call[Slot::bias]);
  GPTBENCH_SET(dgamma, call[Slot::dweight]);
  GPTBENCH_SET(dbeta, call[Slot::dbias]);
  set_others(call, args);
  return args;
}
#undef GPTBENCH_SET

// Elements before the first row, among the rows of this rank's part, that begins a sequence.
int64_t before_first_sequence(const OpCall& call) {
  const Op& op = call.op;
  const int64_t first = first_sequence_of(op, call.held_rows, op.part) * op.sequence_rows -
                        op.part * (call.held_rows / op.row_div);
  return first * call.columns();
}

}  // namespace

#define GPTBENCH_HANDLER(kernel, Arguments)                             \
  void kernel(const OpCall& call) {                                     \
    call.kernels().kernel(call.queue(), arguments_of<Arguments>(call)); \
  }
GPTBENCH_LINEAR_KERNELS(GPTBENCH_HANDLER)
GPTBENCH_BIAS_KERNELS(GPTBENCH_HANDLER)
GPTBENCH_NORM_KERNELS(GPTBENCH_HANDLER)
GPTBENCH_ACTIVATION_KERNELS(GPTBENCH_HANDLER)
GPTBENCH_RESIDUAL_KERNELS(GPTBENCH_HANDLER)
GPTBENCH_EMBEDDING_KERNELS(GPTBENCH_HANDLER)
GPTBENCH_LOSS_KERNELS(GPTBENCH_HANDLER)
GPTBENCH_OPTIMIZER_KERNELS(GPTBENCH_HANDLER)
GPTBENCH_FP8_KERNELS(GPTBENCH_HANDLER)
#undef GPTBENCH_HANDLER

void convert(const OpCall& call) {
  const ConvertSize& size = call.op.as<ConvertSize>();
  const int64_t columns = size.count.columns;
  Convert args = arguments_of<Convert>(call);
  args.R = columns > 0 ? call.rows : 1;
  args.C = columns > 0 ? columns : size.count.fixed;
  args.y_row = size.y_stride > 0 ? size.y_stride : columns;
  args.x_row = size.x_stride > 0 ? size.x_stride : columns;
  args.y_type = call.type_of(Slot::y);
  args.x_type = call.type_of(Slot::x);
  args.accumulate = size.accumulate;
  call.kernels().convert(call.queue(), args);
}

// First positions of sequences: their rows are T apart in the array of all positions, and follow
// one another in the other.
void first_rows_forward(const OpCall& call) {
  if (call.rows == 0) return;
  Convert args = arguments_of<Convert>(call);
  args.x = call.address(Slot::x, before_first_sequence(call));
  args.y_row = args.C;
  args.x_row = args.C * call.op.sequence_rows;
  args.y_type = args.x_type = call.type_of(Slot::x);
  call.kernels().convert(call.queue(), args);
}

void first_rows_backward(const OpCall& call) {
  if (call.rows == 0) return;
  Convert args = arguments_of<Convert>(call);
  args.y = call.address(Slot::dx, before_first_sequence(call));
  args.x = call[Slot::dy];
  args.y_row = args.C * call.op.sequence_rows;
  args.x_row = args.C;
  args.y_type = args.x_type = call.type_of(Slot::dx);
  args.accumulate = true;
  call.kernels().convert(call.queue(), args);
}

void rotary_forward(const OpCall& call) {
  call.kernels().rotary(call.queue(), arguments_of<Rotary>(call));
}

void rotary_backward(const OpCall& call) {
  Rotary args = arguments_of<Rotary>(call);
  args.x = call[Slot::dx];
  args.inverse = true;
  call.kernels().rotary(call.queue(), args);
}

}  // namespace gptbench::handle
