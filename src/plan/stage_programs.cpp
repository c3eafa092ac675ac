#include "plan/stage_programs.h"

#include <optional>

#include "plan/embedding_layer.h"
#include "plan/language_model_head.h"
#include "plan/transformer_layers.h"

namespace gptbench {
namespace {

class StagePrograms {
 public:
  explicit StagePrograms(const StageBuilder& stage)
      : stage_(stage),
        activations_(stage_),
        stream_(stage_),
        layers_(stage_, stream_, activations_) {
    if (stage_.chunk.has_embedding) embedding_.emplace(stage_, stream_);
    if (stage_.chunk.has_head) head_.emplace(stage_, stream_);
  }

  void make() {
    const auto program = [&](ProgramKind kind, const auto& emit) {
      stage_.builder.begin_program(kind, stage_.index);
      stage_.weights.begin_program();
      emit();
      stage_.gradients.flush();
      stage_.builder.end_program();
    };
    const auto backward = [&](ProgramKind kind, const Pass& pass) {
      program(kind, [&] { emit_backward(pass); });
    };
    const auto receive = [&](ProgramKind kind, QueueId queue, const MessageSize& size, Operand to,
                             int64_t layer) {
      program(kind, [&] {
        stage_.emit(ops::receive({queue, Axis::pipeline}, size, to, {layer, stage_.sp}));
      });
    };
    const Chunk& chunk = stage_.chunk;
    const int64_t tag = 2 * chunk.virtual_stage;
    if (!embedding_)
      receive(ProgramKind::receive_forward, QueueId::receive_forward, message(-1, tag),
              input_of(chunk.first_layer), chunk.first_layer);
    if (!head_)
      receive(ProgramKind::receive_backward, QueueId::receive_backward, message(+1, tag + 1),
              {stream_.dx}, chunk.end_layer);
    program(ProgramKind::forward, [&] { emit_forward(); });
    Pass pass;
    pass.weights = !stage_.splits;
    backward(ProgramKind::backward, pass);
    if (stage_.splits) {
      pass.inputs = false;
      pass.weights = true;
      backward(ProgramKind::weight, pass);
    }
    // The last micro-batch has a program of its own where it alone is followed by a reduction.
    const bool reduces = stage_.plan.grid.size_of(Axis::zero) > 1 || stage_.sp > 1;
    if (!reduces || !stage_.gradients.reduces_once()) return;
    pass.last = true;
    backward(stage_.splits ? ProgramKind::weight_last : ProgramKind::backward_last, pass);
  }

 private:
  // To or from the next (+1) or the previous (-1) stage.
  MessageSize message(int direction, int64_t tag) const {
    MessageSize size{per_row(stage_.s.C), size_of(stage_.builder.A())};
    size.peer = stage_.plan.stage_peer(direction);
    size.tag = static_cast<int32_t>(tag);
    return size;
  }

  Operand input_of(int64_t l) const {
    return l == stage_.chunk.end_layer ? Operand{stream_.x_end} : activations_.input_of(l);
  }

  void gather(int64_t l) const { stage_.weights.gather(stage_.layer_unit(l)); }

  // Every stage has layers whose attention asks for them. The virtual stages of a rank share them:
  // the first to go forward is the last to go back.
  void emit_load_lengths() const {
    if (stage_.plan.buffer_index.lengths < 0 || stage_.index > 0) return;
    Op op = ops::load_lengths(stage_.chunk.first_layer, {stage_.plan.buffer_index.lengths});
    op.sequence_rows = stage_.plan.shape.T;
    stage_.emit(op);
  }

  void emit_forward() {
    const int64_t first = stage_.chunk.first_layer, end = stage_.chunk.end_layer;
    // Parameters are requested one unit before they are needed.
    if (embedding_) embedding_->gather();
    if (first < end) gather(first);
    emit_load_lengths();
    if (embedding_) embedding_->emit_forward(input_of(first));
    for (int64_t l = first; l < end; ++l) {
      if (l + 1 < end)
        gather(l + 1);
      else if (head_)
        head_->gather();
      layers_.emit_forward(l, input_of(l), input_of(l + 1));
      if (l == activations_.segment_start(l)) activations_.store(l);
    }
    if (head_) return head_->emit_forward();
    stage_.emit(ops::send({QueueId::send_forward, Axis::pipeline},
                          message(+1, 2 * (stage_.chunk.virtual_stage + 1)), {stream_.x_end},
                          {end, stage_.sp}));
  }

  void emit_backward(const Pass& pass) {
    const int64_t first = stage_.chunk.first_layer, end = stage_.chunk.end_layer;
    const bool full = stage_.recompute == Recompute::full;
    if (first < end) activations_.begin_backward(pass);
    if (head_) {
      if (pass.inputs) {
        stage_.weights.gather(stage_.plan.space.find_unit(UnitKind::final_norm));
        if (first < end) gather(full ? activations_.segment_start(end - 1) : end - 1);
      }
      head_->emit_backward(pass, layers_.sums_of_dx(end - 1));
    }
    for (int64_t l = end - 1; l >= first; --l) emit_layer_backward(l, pass);
    if (embedding_) {
      embedding_->emit_backward(pass);
    } else if (pass.inputs) {
      stage_.emit(ops::send({QueueId::send_backward, Axis::pipeline},
                            message(-1, 2 * (stage_.chunk.virtual_stage - 1) + 1), {stream_.dx},
                            {first, stage_.sp}));
    }
  }

  void emit_layer_backward(int64_t l, const Pass& pass) {
    const int64_t start = activations_.segment_start(l);
    const int unit = stage_.layer_unit(l);
    const bool full = stage_.recompute == Recompute::full;
    if (activations_.ends_segment(l)) {
      activations_.begin_group(l, pass);
      if (pass.inputs && full) layers_.emit_segment(start, l + 1);
    }
    // Gradients of activations read weights, and so do norms that are repeated.
    if (pass.inputs || stage_.recompute == Recompute::selective) {
      gather(l);
      // One layer ahead: the next in this direction, or the first of the segment to be repeated
      // next.
      const bool begins = full && l == start && l > stage_.chunk.first_layer;
      const int64_t ahead = begins ? activations_.segment_start(l - 1) : l - 1;
      // Layers of one parity share a window.
      if ((l - ahead) % 2 == 1 && ahead >= stage_.chunk.first_layer) gather(ahead);
    }
    if (stage_.recompute == Recompute::selective) layers_.emit_selective(l);
    stage_.gradients.open(unit, pass.weights);
    if (pass.inputs)
      layers_.emit_input_gradients(l, pass);
    else
      layers_.emit_weight_gradients(l);
    if (stage_.splits && pass.inputs) activations_.store_gradients(l);
    stage_.gradients.fold(unit);
    if (pass.weights) stage_.gradients.reduce(unit, pass.last);
  }

  const StageBuilder& stage_;
  ActivationStore activations_;
  ResidualStream stream_;
  TransformerLayers layers_;
  std::optional<EmbeddingLayer> embedding_;
  std::optional<LanguageModelHead> head_;
};

}  // namespace

void make_stage_programs(PlanBuilder& builder, Weights& weights, Gradients& gradients,
                         const Fp8State* fp8, int32_t chunk, bool splits_gradients) {
  const StageBuilder stage(builder, weights, gradients, fp8, chunk, splits_gradients);
  StagePrograms(stage).make();
}

}  // namespace gptbench
