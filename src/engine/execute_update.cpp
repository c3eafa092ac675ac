// The gradient's norm, clipping, loss scale and AdamW.
#include "engine/handlers.h"

namespace gptbench::handle {

void squared_norm(const OpCall& call) {
  SquaredNorm args{};
  args.sum = call.write_as<double>(Slot::norm2);
  args.g = call.read(Slot::gradient);
  args.n = call.op.as<ElementCount>().fixed;
  args.type = call.type_of(Slot::gradient);
  args.workspace = call.workspace();
  call.kernels().squared_norm(call.queue(), args);
}

void sum_scalars(const OpCall& call) {
  call.kernels().sum_scalars(call.queue(),
                             {call.write_as<double>(Slot::y), call.read_as<double>(Slot::x),
                              call.op.as<ElementCount>().fixed});
}

// A scale that the deck fixes neither grows nor shrinks.
void loss_scale(const OpCall& call) {
  const PrecisionConfig& p = call.plan().config.precision;
  const bool fixed = p.loss_scale > 0.0;
  LossScale args{};
  args.state = call.write_as<double>(Slot::scale_state);
  args.norm2 = call.write_as<double>(Slot::norm2);
  args.used = call.write_as<double>(Slot::loss_scale);
  args.next = call.write_as<double>(Slot::next_loss_scale);
  args.skip = call.write_as<double>(Slot::skip);
  args.growth = fixed ? 1.0 : p.loss_scale_growth;
  args.backoff = fixed ? 1.0 : p.loss_scale_backoff;
  args.window = fixed ? 0 : p.loss_scale_window;
  args.hysteresis = p.loss_scale_hysteresis;
  call.kernels().loss_scale(call.queue(), args);
}

void clip_factor(const OpCall& call) {
  ClipFactor args{};
  args.factor = call.write_as<double>(Slot::clip_factor);
  args.norm2 = call.read_as<double>(Slot::norm2);
  args.clip = call.plan().config.optimizer.clip;
  args.loss_scale = call.read_as<double>(Slot::loss_scale);
  call.kernels().clip_factor(call.queue(), args);
}

void adamw(const OpCall& call) {
  const OptimizerConfig& optimizer = call.plan().config.optimizer;
  const UpdateSize& size = call.op.as<UpdateSize>();
  AdamW args{};
  args.p = call.write(Slot::master);
  args.m = call.write(Slot::moment1);
  args.v = call.write(Slot::moment2);
  args.g = call.read(Slot::gradient);
  args.working = call.write(Slot::working);
  args.factor = call.read_as<double>(Slot::clip_factor);
  args.n = size.elements;
  args.t = call.update();
  args.lr = optimizer.lr;
  args.beta1 = optimizer.beta1;
  args.beta2 = optimizer.beta2;
  args.epsilon = optimizer.epsilon;
  args.weight_decay = size.weight_decay;
  args.p_type = call.type_of(Slot::master);
  args.moment_type = call.type_of(Slot::moment1);
  args.g_type = call.type_of(Slot::gradient);
  args.corrections = call.corrections();
  args.skip = call.read_as<double>(Slot::skip);
  call.kernels().adamw(call.queue(), args);
}

}  // namespace gptbench::handle
