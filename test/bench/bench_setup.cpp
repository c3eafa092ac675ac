// What a rank spends on setting itself up: CPU time, heap and resident memory, by phase, of a tiny
// model over all ranks that it is started with (tensor 2 x context 2 x pipeline 2 x data the rest,
// ZeRO 2). What MPI itself takes is shown apart: its connections grow with the ranks.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <vector>

#include "comm/mpi_world.h"
#include "data/token_source.h"
#include "engine/engine.h"
#include "plan/plan.h"
#include "resident_bytes.h"

namespace gptbench {
namespace {

// CPU time, not wall time: ranks may share cores.
double cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

Config tiny(int64_t ranks) {
  Config c;
  c.run.device = DeviceKind::ref;
  c.model.num_layers = 4;
  c.model.hidden_size = 64;
  c.model.num_attention_heads = c.model.num_kv_heads = 4;
  c.model.ffn_hidden_size = 256;
  c.model.seq_length = 32;
  c.model.vocab_size = 509;
  c.parallel.tensor_parallel = c.parallel.context_parallel = c.parallel.pipeline_parallel = 2;
  c.parallel.data_parallel = ranks / 8;
  c.parallel.zero_stage = 2;
  c.batch.global_batch_size = 2 * c.parallel.data_parallel;
  c.precision.parameters = Precision::fp32;
  return c;
}

struct Spent {
  double cpu_s, heap_bytes, resident_bytes;
};

Spent now() {
  return {cpu_s(), heap_bytes(), static_cast<double>(gptbench::resident_bytes())};
}

void print(MpiWorld& world, const char* phase, const Spent& before) {
  const Spent after = now();
  const std::vector<double> all = world.gather(std::vector<double>{
      1e3 * (after.cpu_s - before.cpu_s), (after.heap_bytes - before.heap_bytes) / 1024.0,
      (after.resident_bytes - before.resident_bytes) / 1024.0});
  if (world.rank() != 0) return;
  std::printf("%-14s", phase);
  for (size_t what = 0; what < 3; ++what) {
    std::vector<double> values;
    for (size_t i = what; i < all.size(); i += 3) values.push_back(all[i]);
    std::sort(values.begin(), values.end());
    std::printf(" %10.1f %10.1f", values[values.size() / 2], values.back());
  }
  std::printf("\n");
}

void run(int argc, char** argv) {
  const Spent start = now();
  MpiWorld world(&argc, &argv);
  if (world.size() % 8 != 0) {
    if (world.rank() == 0) std::printf("start a multiple of 8 ranks\n");
    return;
  }
  if (world.rank() == 0)
    std::printf("%ld ranks\n%-14s %21s %21s %21s\n%-14s", static_cast<long>(world.size()), "phase",
                "CPU time, ms", "heap, KiB", "resident, KiB", "");
  for (int i = 0; world.rank() == 0 && i < 3; ++i) std::printf(" %10s %10s", "median", "largest");
  if (world.rank() == 0) std::printf("\n");
  print(world, "MPI", start);

  Spent before = now();
  const Plan plan = make_plan(tiny(world.size()), world.size(), world.rank());
  print(world, "plan", before);

  before = now();
  std::array<std::unique_ptr<Communicator>, num_axes> owned;
  CommunicatorTable communicators;
  for (int axis = 0; axis < num_axes; ++axis) {
    if (plan.grid.size_of(static_cast<Axis>(axis)) == 1) continue;
    owned[static_cast<size_t>(axis)] = world.make_communicator(plan.grid, static_cast<Axis>(axis));
    communicators.by_axis[static_cast<size_t>(axis)] = owned[static_cast<size_t>(axis)].get();
  }
  print(world, "communicators", before);

  before = now();
  const auto device = make_host_device(DeviceKind::ref);
  const auto tokens = make_token_source(plan.config.data, 1, plan.shape.T, plan.shape.V_valid);
  Engine engine(plan, *device, communicators, *tokens);
  if (!engine.allocate()) std::printf("rank %ld: no memory\n", static_cast<long>(world.rank()));
  engine.initialise_weights();
  print(world, "engine", before);

  before = now();
  engine.step(0, false);
  print(world, "first step", before);
}

}  // namespace
}  // namespace gptbench

int main(int argc, char** argv) {
  gptbench::run(argc, argv);
  return 0;
}
