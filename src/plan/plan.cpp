#include "plan/plan.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/fp8.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/messages.h"
#include "plan/slots.h"
#include "plan/stage_programs.h"
#include "plan/step_programs.h"
#include "plan/tasks.h"
#include "plan/tensor_parts.h"
#include "plan/waits.h"

namespace gptbench {
namespace {

using UnitTensors = std::map<std::pair<UnitKind, int64_t>, std::vector<int>>;

std::vector<LocalTensor> shards_of(const Plan& plan, const std::vector<int>& tensors) {
  std::vector<LocalTensor> members;
  for (const int i : tensors)
    members.push_back(shard_of(plan.tensors, i, plan.grid.tensor, plan.at.tensor));
  return members;
}

// Flat space of this rank's virtual stages. A unit without tensors does not exist.
void pack_parameters(Plan& plan) {
  const bool partitioned = plan.config.parallel.zero_stage > 0 || plan.config.run.deterministic;
  plan.space.num_shards = partitioned ? plan.grid.shard_size() : 1;
  UnitTensors tensors;
  for (size_t i = 0; i < plan.tensors.size(); ++i)
    tensors[{plan.tensors[i].unit, plan.tensors[i].layer}].push_back(static_cast<int>(i));
  const auto add = [&](UnitKind kind, int64_t layer, bool counted = true) {
    std::vector<LocalTensor> members = shards_of(plan, tensors[{kind, layer}]);
    if (!counted)
      for (LocalTensor& member : members) member.counted = false;
    if (!members.empty()) add_unit(plan.space, kind, layer, members, plan.tensors);
  };
  const bool has_embedding = plan.chunks.front().has_embedding;
  if (has_embedding) {
    add(UnitKind::token_embedding, -1);
    add(UnitKind::position_embedding, -1);
  }
  for (const Chunk& chunk : plan.chunks)
    for (int64_t l = chunk.first_layer; l < chunk.end_layer; ++l) add(UnitKind::layer, l);
  if (!plan.chunks.back().has_head) return;
  add(UnitKind::final_norm, plan.shape.L);
  add(UnitKind::head, plan.shape.L);
  if (!has_embedding && plan.shape.family.shares_embedding())
    add(UnitKind::token_embedding, -1, false);
}

void add_shared_buffers(Plan& plan, PlanBuilder& builder) {
  BufferIndex& index = plan.buffer_index;
  const auto add = [&](const char* name, Lifetime lifetime, int64_t row_div = 1) {
    return builder.add_activation(name, lifetime, DType::i32, 1, row_div);
  };
  index.tokens = add("tokens", Lifetime::micro_batch);
  index.targets = add("targets", Lifetime::micro_batch);
  if (plan.shape.family.token_types > 0)
    index.token_types = add("token_types", Lifetime::micro_batch);
  if (plan.shape.family.head == HeadKind::masked)
    index.labels = add("labels", Lifetime::program, plan.shape.T);
  if (plan.config.data.short_seq_prob > 0.0)
    index.lengths = add("lengths", Lifetime::micro_batch, plan.shape.T);
  // Partial sums of the gradient's norm: of each unit, or of each of its shards.
  const int64_t shards = plan.config.run.deterministic ? plan.space.num_shards : 1;
  const int64_t norms = static_cast<int64_t>(plan.space.units.size()) * shards;
  index.scalars = builder.add_buffer("scalars", MemoryClass::workspace, Lifetime::run, DType::f64,
                                     num_scalars + norms);
  if (plan.device.replays && plan.config.run.cuda_graph != CudaGraph::false_) {
    index.corrections =
        builder.add_buffer("corrections", MemoryClass::workspace, Lifetime::run, DType::f32, 3);
    if (plan.config.model.dropout > 0.0)
      index.dropout_seed =
          builder.add_buffer("dropout_seed", MemoryClass::workspace, Lifetime::run, DType::i64, 1);
  }
  // f16 ends at 2^-24 below, where gradients are not done yet.
  if (builder.A() == DType::f16)
    index.loss_scale = builder.add_buffer("loss_scale", MemoryClass::optimizer_state, Lifetime::run,
                                          DType::f64, 3);
  if (plan.device.scratch_bytes != nullptr)
    index.scratch = builder.add_buffer("scratch", MemoryClass::workspace, Lifetime::run, DType::u8,
                                       plan.device.scratch_bytes(plan));
}

void make_programs(Plan& plan, PlanBuilder& builder) {
  const bool split = last_pass(plan.schedule()) == PassKind::weight;
  add_shared_buffers(plan, builder);
  std::unique_ptr<Fp8State> fp8;
  if (plan.config.precision.compute == Precision::fp8) fp8 = std::make_unique<Fp8State>(builder);
  const ParameterLayout layout(builder, fp8.get());
  const CheckpointConfig& checkpoint = plan.config.checkpoint;
  if (checkpoint.async && !checkpoint.directory.empty())
    plan.buffer_index.checkpoint_copy =
        builder.add_buffer("checkpoint_copy", MemoryClass::host, Lifetime::run, DType::u8,
                           std::max<int64_t>(1, checkpoint_share_bytes(plan)));
  Weights weights(builder, layout, fp8.get());
  Gradients gradients(builder, layout);
  builder.begin_program(ProgramKind::begin_step);
  emit_begin_step(builder, layout, weights);
  builder.end_program();
  for (size_t c = 0; c < plan.chunks.size(); ++c)
    make_stage_programs(builder, weights, gradients, fp8.get(), static_cast<int32_t>(c), split);
  builder.begin_program(ProgramKind::end_step);
  if (fp8 != nullptr) fp8->emit_reduction();
  emit_end_step(builder, layout);
  if (fp8 != nullptr) fp8->emit_update();
  builder.end_program();
}

void add_messages(const Plan& plan, const Op& op, int64_t rows, int64_t times,
                  std::vector<CommTotal>& totals) {
  const auto same = [&](const CommTotal& total) {
    return total.axis == op.axis && total.kind == op.kind;
  };
  auto total = std::find_if(totals.begin(), totals.end(), same);
  if (total == totals.end()) total = totals.insert(totals.end(), {op.axis, op.kind, 0, 0, 0});
  const int64_t bytes = payload_bytes(op, rows);
  total->count += times;
  total->messages += messages_of(op.kind, bytes, plan.config.run.comm == CommLibrary::nccl) * times;
  total->bytes = checked_sum(total->bytes, checked_product(bytes, times, "bytes of the messages"),
                             "bytes of the messages");
}

StepCosts costs_of(const Plan& plan) {
  StepCosts costs;
  for_each_operation(plan, [&](int32_t i, int64_t rows, int64_t times) {
    const Op& op = plan.ops[static_cast<size_t>(i)];
    const double flops =
        op.flops_per_row * static_cast<double>(rows_of(op, rows)) * static_cast<double>(times);
    (op.recompute ? costs.recompute_flops : costs.model_flops) += flops;
    if (op.has(Slot::left_scale)) costs.fp8_flops += flops;
    if (is_transfer(op.kind)) {
      TransferTotal& total = op.kind == OpKind::load ? costs.loads : costs.stores;
      total.count += times;
      total.bytes += transfer_bytes(plan, op, rows) * times;
    }
    // A receive is the other end of a send, which counts.
    if (!is_message(op.kind) || op.kind == OpKind::receive) return;
    add_messages(plan, op, rows, times, costs.comm);
    const auto holds = [&](const Program& program) {
      return program.first <= i && i < program.last && is_evaluated(program.kind);
    };
    if (std::any_of(plan.programs.begin(), plan.programs.end(), holds))
      add_messages(plan, op, rows, times, costs.evaluation_comm);
  });
  return costs;
}

}  // namespace

int64_t payload_bytes(const Op& op, int64_t rows) {
  const MessageSize& size = op.as<MessageSize>();
  const bool own_rows = op.kind == OpKind::send || op.kind == OpKind::receive;
  return size.count.of(own_rows ? rows_of(op, rows) : rows) * size.element_bytes;
}

int64_t transfer_bytes(const Plan& plan, const Op& op, int64_t rows) {
  // Both ends of a transfer are of one type.
  const DType type = plan.buffers[static_cast<size_t>(op[Slot::x].buffer)].dtype;
  return op.as<ElementCount>().of(rows_of(op, rows)) * size_of(type);
}

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

StageSchedule Plan::schedule() const {
  return {config.parallel.pipeline_schedule, grid.pipeline, static_cast<int64_t>(chunks.size()),
          micro_batches.size(), at.pipeline};
}

int32_t Plan::stage_peer(int direction) const {
  return static_cast<int32_t>((at.pipeline + grid.pipeline + direction) % grid.pipeline);
}

Plan make_plan(const Config& config, int64_t world_size, int64_t rank) {
  return make_plan(config, world_size, rank, device_traits(config.run.device));
}

Plan make_plan(const Config& config, int64_t world_size, int64_t rank, const DeviceTraits& device) {
  Plan plan = make_plan_without_waits(config, world_size, rank, device);
  resolve_waits(plan);
  return plan;
}

Plan make_plan_without_waits(const Config& config, int64_t world_size, int64_t rank,
                             const DeviceTraits& device) {
  Plan plan;
  const ParallelConfig& parallel = config.parallel;
  plan.config = config;
  plan.device = device;
  plan.grid.tensor = parallel.tensor_parallel;
  plan.grid.context = parallel.context_parallel;
  plan.grid.pipeline = parallel.pipeline_parallel;
  plan.grid.data = parallel.data_parallel;
  plan.grid.zero_group = parallel.zero_group;
  plan.grid.order = axes_of(parallel.rank_order);
  GPTBENCH_CHECK(plan.grid.size() == world_size, "the grid does not cover the ranks");
  plan.rank = rank;
  plan.at = plan.grid.coordinates_of(rank);
  plan.shape = model_shape(config.model, plan.grid.tensor);
  plan.local = local_shape(plan.shape, plan.grid.tensor);
  plan.tensors = tensor_table(config.model, plan.grid.tensor);
  plan.num_params = count_params(plan.tensors);
  if (config.model.num_params != 0 && config.model.num_params != plan.num_params)
    throw Error(Exit::usage,
                "model.num_params = " + std::to_string(config.model.num_params) +
                    " is asserted, the model has " + std::to_string(plan.num_params) +
                    " parameters; correct one of the keys of &model, or assert 0 (none)");
  for (const Chunk& chunk : make_chunks(plan.shape, parallel))
    if (chunk.virtual_stage % parallel.pipeline_parallel == plan.at.pipeline)
      plan.chunks.push_back(chunk);
  pack_parameters(plan);
  const int64_t largest_share = ceil_div(config.batch.global_batch_size, plan.grid.data);
  plan.micro_batches = {config.batch.global_batch_size, plan.grid.data, plan.at.data,
                        config.batch.micro_batch_size};
  plan.micro_batches.rows = checked_product(std::min(config.batch.micro_batch_size, largest_share),
                                            plan.T_local(), "micro_batch_size x seq_length");

  const DType activations = dtype_of(type_of_activations(config));
  PlanBuilder builder(plan, activations, activations == DType::f64 ? DType::f64 : DType::f32);
  make_programs(plan, builder);
  assign_slots(plan);
  plan.class_bytes = assign_offsets(plan.buffers, plan.programs, plan.ops);
  plan.costs = costs_of(plan);
  return plan;
}

}  // namespace gptbench
