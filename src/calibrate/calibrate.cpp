#include "calibrate/calibrate.h"

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "calibrate/fit_machine.h"
#include "calibrate/measure_kernels.h"
#include "calibrate/measure_messages.h"
#include "calibrate/time_share.h"
#include "comm/agree.h"
#include "deck/devices.h"
#include "deck/validate.h"
#include "io/file_bytes.h"
#include "io/result_file.h"
#include "measure/system_info.h"
#include "memory/budget.h"
#include "plan/plan.h"
#include "plan/tasks.h"
#include "run/assemble_record.h"
#include "run/console.h"
#include "run/device_setup.h"
#include "run/facts.h"
#include "run/run.h"
#include "run/signals.h"
#include "run/watchdog.h"

namespace gptbench {
namespace {

// The deck of a calibration without one on the command line.
std::string default_deck(int64_t ranks) {
  return "&run name = 'calibration' /\n&model preset = 'gpt2-124m' /\n"
         "&batch micro_batch_size = 1 global_batch_size = " +
         std::to_string(ranks) + " /\n";
}

// All cases of one type of numbers.
struct TypeCases {
  ComputeType type = ComputeType::fp32;
  Plan plan;  // of this rank
  std::vector<GemmCase> gemms;
  std::vector<GemmCase> fp8_gemms;  // of a deck in fp8, beside the same in bf16
  std::vector<AttentionCase> attention;
  ArrayCase arrays;
};

// The types that the device has kernels for; of a deck its own.
std::vector<Precision> types_of(const Device& device, const Config& config, bool has_deck) {
  if (has_deck) return {type_of_activations(config)};
  std::vector<Precision> types = {Precision::fp32, Precision::bf16};
  if (device.info().kind == DeviceKind::cuda) types.push_back(Precision::fp16);
  return types;
}

ComputeType compute_of(Precision type) {
  return type == Precision::bf16   ? ComputeType::bf16
         : type == Precision::fp16 ? ComputeType::fp16
                                   : ComputeType::fp32;
}

// Layers, in and out of the feed-forward part, and heads of vocabularies. Hidden sizes are powers
// of two and others: rows of 1,024 or 2,048 elements all begin at the same offset of a page, and
// some libraries are slower for them.
std::vector<GemmCase> default_gemms() {
  std::vector<GemmCase> cases;
  for (const int64_t rows : {256, 512, 1024, 4096}) {
    for (const int64_t hidden : {512, 768, 1024, 1536, 2048, 4096, 8192}) {
      cases.push_back({rows, 3 * hidden, hidden});
      cases.push_back({rows, hidden, hidden});
      cases.push_back({rows, hidden, 4 * hidden});
    }
    for (const int64_t hidden : {768, 1024, 2048}) cases.push_back({rows, 50304, hidden});
  }
  return cases;
}

// By cost: where time is short, the large ones are left out. The head is the largest of most
// models, and counts a quarter.
void sort_by_cost(std::vector<GemmCase>& cases) {
  const auto cost = [](const GemmCase& each) {
    const bool is_head = each.columns > 4 * each.inner;
    return (is_head ? 0.25 : 1.0) * each.flops();
  };
  std::sort(cases.begin(), cases.end(),
            [&](const GemmCase& a, const GemmCase& b) { return cost(a) < cost(b); });
}

std::vector<AttentionCase> default_attention() {
  std::vector<AttentionCase> cases;
  for (const int64_t T : {256, 1024, 4096})
    for (const int64_t D : {64, 128}) cases.push_back({T, 768 / D, D});
  return cases;
}

// GEMMs and attention of a step of the deck, forward; the gradients have the same sizes. The first
// and the last rank hold the first and the last pipeline stage, which has the head.
void add_cases_of(const Plan& own, TypeCases& cases) {
  using Sizes = std::set<std::tuple<int64_t, int64_t, int64_t>>;
  Sizes sizes, in_fp8;
  for (const int64_t rank : {int64_t{0}, own.grid.size() - 1}) {
    const Plan plan = make_plan(own.config, own.grid.size(), rank, own.device);
    for_each_operation(plan, [&](int32_t index, int64_t rows, int64_t) {
      const Op& op = plan.ops[static_cast<size_t>(index)];
      const int64_t R = rows_of(op, rows);
      const bool is_forward =
          op.kind == OpKind::linear_forward || op.kind == OpKind::linear_gelu_forward;
      if (!is_forward || R == 0) return;
      const std::tuple size(R, op.as<GemmSize>().N, op.as<GemmSize>().K);
      sizes.insert(size);
      if (op.has(Slot::left_scale)) in_fp8.insert(size);
    });
  }
  for (const auto& [R, N, K] : sizes) cases.gemms.push_back({R, N, K});
  for (const auto& [R, N, K] : in_fp8) cases.fp8_gemms.push_back({R, N, K});
  cases.attention = {{own.T_local(), own.local.H, own.shape.D}};
}

TypeCases cases_of(const Config& given, Precision type, MpiWorld& world, const Device& device,
                   bool has_deck) {
  TypeCases cases;
  cases.type = compute_of(type);
  Config config = given;
  if (!has_deck) config.precision.compute = type;
  cases.plan = make_plan(config, world.size(), world.rank(),
                         device_traits(device.info().kind, device.info().num_threads));
  const Plan& plan = cases.plan;
  if (has_deck) {
    add_cases_of(plan, cases);
  } else {
    cases.gemms = default_gemms();
    cases.attention = default_attention();
  }
  sort_by_cost(cases.gemms);
  sort_by_cost(cases.fp8_gemms);
  cases.arrays = {has_deck                                 ? plan.micro_batches.rows
                  : device.info().kind == DeviceKind::cuda ? 65536
                                                           : 8192,
                  plan.shape.C, plan.local.V};
  return cases;
}

// Inputs of a calibration: cases, device and time limit.
struct CalibrationSetup {
  Deck deck;
  Config config;
  std::unique_ptr<Device> device;
  MemoryOffer memory;  // before anything was allocated
  std::vector<TypeCases> types;
  std::vector<AxisMessages> axes;
  double limit_s = 0.0;
};

// Collective. With the deck of the command line, or the default one.
CalibrationSetup set_up(MpiWorld& world, const CommandLine& line) {
  const bool has_deck = !line.deck.empty();
  CommandLine named = line;
  if (!has_deck) named.deck = "(default deck of --calibrate)";
  CalibrationSetup setup;
  setup.deck = read_deck_once(world, named, has_deck ? "" : default_deck(world.size()));
  if (has_deck) setup.deck.config.run.name += "-calibration";
  agreed(world, [&] {
    setup.config = resolve(setup.deck, world.size());
    if (setup.config.precision.compute == Precision::fp64)
      setup.deck.fail({"precision.compute"},
                      "{precision.compute} cannot be calibrated, it is the arithmetic of "
                      "run.device = 'ref', which nobody projects; use another type");
  });
  setup.device = make_device(world, setup.config);
  setup.memory = setup.device->memory_offer();
  agreed(world, [&] {
    if (world.rank() == 0) check_output_directory(setup.config.output.directory);
  });
  const double limit_s = setup.config.run.limits.time_limit_s;
  setup.limit_s = limit_s > 0.0 ? limit_s : calibration_limit_s;
  agreed(world, [&] {
    for (const Precision type : types_of(*setup.device, setup.config, has_deck))
      setup.types.push_back(cases_of(setup.config, type, world, *setup.device, has_deck));
  });
  setup.axes = has_deck ? messages_of(world, setup.types.front().plan)
                        : default_messages(world.size(), world.num_nodes(), world.node_size());
  return setup;
}

// The phases of a calibration, each after a line of progress.
class Phases {
 public:
  Phases(MpiWorld& world, const Console& console, double limit_s, double weights)
      : world_(world), console_(console), start_s_(now_s()), division_(limit_s, weights) {}

  // Seconds for the phase, the same on all ranks. Collective.
  double begin(const std::string& what, double weight) {
    const double used_s = world_.max(now_s() - start_s_);
    console_.say(printed("  %4.0f s, %.0f s left: ", used_s, division_.left_s(used_s)) + what +
                 "\n");
    return division_.begin(used_s, weight);
  }

 private:
  MpiWorld& world_;
  const Console& console_;
  double start_s_;
  TimeDivision division_;
};

// Bytes that a rank may take for arrays: half of what is there, shared by the ranks of a node.
int64_t room_of(MpiWorld& world, const Device& device) {
  const int64_t sharers = device.info().identity.empty() ? world.node_size() : 1;
  return world.min(device.memory_offer().available_bytes / 2 / sharers);
}

NodeFacts facts_of(const MpiWorld& world, const CalibrationSetup& setup) {
  const Device& device = *setup.device;
  const MemoryOffer& before = setup.memory;
  NodeFacts facts;
  facts.is_accelerator = device.info().kind == DeviceKind::cuda;
  facts.fuses = device_traits(device.info().kind).fuses;
  facts.ranks_per_node = world.node_size();
  facts.nodes = world.num_nodes();
  facts.threads = device.info().num_threads;
  const double sharers = facts.is_accelerator ? 1.0 : static_cast<double>(world.node_size());
  facts.memory_bytes = static_cast<double>(before.total_bytes) / sharers;
  facts.reserve_bytes = facts.is_accelerator
                            ? static_cast<double>(before.total_bytes - before.available_bytes)
                            : static_cast<double>(runtime_bytes_per_rank);
  facts.reported = facts.is_accelerator ? device.info().model : system_info().cpu_model;
  if (facts.is_accelerator)
    if (const DeviceData* const known = find_device(device.info().model, facts.memory_bytes))
      facts.sheet = *known;
  return facts;
}

struct Measured {
  Calibration calibration;
  int64_t left_out = 0, wrong = 0;
  int64_t signal = 0;  // that ended the calibration early; 0: none; the same on all ranks

  Exit outcome() const {
    return wrong > 0 ? Exit::invalid : signal != 0 ? Exit::timeout : Exit::ok;
  }
};

Measured measure(MpiWorld& world, const CalibrationSetup& setup, const Console& console) {
  constexpr double gemm_weight = 3.0, attention_weight = 1.0, array_weight = 1.0,
                   machine_weight = 0.4, axis_weight = 3.0, overlap_weight = 1.0;
  Device& device = *setup.device;
  const std::vector<TypeCases>& types = setup.types;
  const std::vector<AxisMessages>& axes = setup.axes;
  double weights = machine_weight + static_cast<double>(axes.size()) * axis_weight +
                   (axes.empty() ? 0.0 : overlap_weight);
  for (const TypeCases& each : types)
    weights += gemm_weight + attention_weight + array_weight +
               (each.fp8_gemms.empty() ? 0.0 : gemm_weight);
  Phases phases(world, console, setup.limit_s, weights);
  Measured measured;
  const int64_t room = room_of(world, device);
  KernelBench bench(world, device, room, measured.calibration);
  bench.machine(phases.begin("memory and launches", machine_weight));
  for (const TypeCases& each : types) {
    const std::string in = std::string(" in ") + name_of(each.type);
    autotune(world, device, each.plan);
    bench.arrays(each.type, each.arrays, phases.begin("other kernels" + in, array_weight));
    bench.attention(each.type, each.attention, phases.begin("attention" + in, attention_weight));
    // Behind those, which seldom take their part of the time.
    bench.gemms(each.type, each.gemms, phases.begin("GEMMs" + in, gemm_weight));
    if (!each.fp8_gemms.empty())
      bench.fp8_gemms(each.fp8_gemms, phases.begin("GEMMs in fp8", gemm_weight));
  }
  measured.left_out = bench.left_out();
  if (!axes.empty()) {
    const TypeCases& of = device.info().kind == DeviceKind::cuda ? types.back() : types.front();
    measured.left_out += measure_overlap(world, device, of.plan, of.type, room,
                                         phases.begin("GEMMs beside messages", overlap_weight),
                                         measured.calibration);
  }
  for (const AxisMessages& axis : axes) {
    const std::string where = printed("messages along axis %s, %lld ranks", name_of(axis.axis),
                                      static_cast<long long>(axis.grid.size_of(axis.axis)));
    const MessageOutcome outcome =
        measure_messages(world, device, types.front().plan, axis, room,
                         phases.begin(where, axis_weight), measured.calibration);
    measured.left_out += outcome.left_out;
    measured.wrong += outcome.wrong;
  }
  measured.signal = world.max(static_cast<int64_t>(received_signal()));
  return measured;
}

// Bus bandwidth of the largest all-reduce, GB/s; 0: there is none.
double all_reduce_rate(const Calibration& calibration) {
  double rate = 0.0;
  int64_t most = 0;
  for (const MessageRate& each : calibration.messages)
    if (each.op == "all_reduce" && each.bytes > most) {
      most = each.bytes;
      rate = static_cast<double>(each.bytes) * bus_factor(each.op, each.ranks) / each.time_s / 1e9;
    }
  return rate;
}

// Why a calibration is less than whole; "" where it is not.
std::string reason_of(const Measured& measured) {
  if (measured.wrong > 0)
    return printed("messages left %lld wrong elements; gptpost table --style comm names them",
                   static_cast<long long>(measured.wrong));
  if (measured.signal != 0)
    return printed("stopped by signal %lld, without a profile; measurements left out: %lld",
                   static_cast<long long>(measured.signal),
                   static_cast<long long>(measured.left_out));
  if (measured.left_out > 0)
    return printed("%lld measurements left out, for lack of time (run.time_limit_s) or memory",
                   static_cast<long long>(measured.left_out));
  return "";
}

// The text of a machine profile (input/profiles.md).
std::string profile_of(const FittedProfile& fitted, const NodeFacts& node, const Device& device,
                       int64_t ranks, const std::string& date_utc) {
  return "! Profile of " + node.reported + " (" + device.info().description + "),\n! measured on " +
         date_utc + " by gptbench --calibrate on " + std::to_string(ranks) +
         " ranks. Keys: input/profiles.md.\n" +
         profile_text(fitted.machine, fitted.software, fitted.comments);
}

// Without the names of the files.
std::string last_line_of(const Record& record, const Measured& measured,
                         const FittedProfile& fitted) {
  return printed(
      "GPTBENCH calibration status=%s verdict=%s ranks=%lld nodes=%lld kernels=%zu messages=%zu "
      "left_out=%lld gemm_tflops=%.4g memory_gb_per_s=%.4g all_reduce_busbw_gb_per_s=%.4g ",
      record.outcome.status.c_str(), record.outcome.verdict.c_str(),
      static_cast<long long>(record.summary.world_size),
      static_cast<long long>(record.summary.nodes), measured.calibration.kernels.size(),
      measured.calibration.messages.size(), static_cast<long long>(measured.left_out),
      fitted.gemm_flops_per_s / 1e12, fitted.bytes_per_s / 1e9,
      all_reduce_rate(measured.calibration));
}

}  // namespace

Exit calibrate(MpiWorld& world, const CommandLine& line, const std::string& argv) {
  const CalibrationSetup setup = set_up(world, line);
  const RunConfig& run = setup.config.run;
  const Watchdog watchdog(world, run.limits.watchdog_s, setup.config.output.directory);
  Device& device = *setup.device;
  const Console console(world.rank() == 0, line.verbosity);
  console.say(printed("Calibration of %lld ranks on %lld nodes, at most %.0f s: ",
                      static_cast<long long>(world.size()),
                      static_cast<long long>(world.num_nodes()), setup.limit_s) +
              device.info().description + "\n");
  const Measured measured = measure(world, setup, console);
  const MachineFacts machine = gather_machine(world, setup.config, device);

  const bool whole = measured.signal == 0;
  const std::string& directory = setup.config.output.directory;
  const std::string file = directory + "/result.h5",
                    profile_path = whole ? directory + "/" + run.name + ".in" : "none";
  std::string last_line;
  agreed(world, [&] {
    if (world.rank() != 0) return;
    const Plan& plan = setup.types.front().plan;
    const NodeFacts node = facts_of(world, setup);
    FittedProfile fitted;  // none of what a signal has cut short
    if (whole) fitted = fit_machine(measured.calibration, node);

    Record record = planned_record(setup.deck, plan, stage_figures(plan), world.num_nodes(),
                                   world.node_size(), argv);
    record.provenance = with_machine(record.provenance, machine, device.autotuning().selected());
    record.calibration = measured.calibration;
    if (whole)
      record.calibration.profile = profile_of(fitted, node, device, world.size(), record.date_utc);
    record.verify = {{"messages_correct",
                      "elements that are not the sum, or a part, of those of all ranks",
                      static_cast<double>(measured.wrong), 0.0, measured.wrong == 0}};
    record.summary.gemm_ceiling.tflops = fitted.gemm_flops_per_s / 1e12;
    set_end(record, {measured.outcome(), reason_of(measured)});

    write_result(directory, record);
    if (whole) write_file(profile_path, record.calibration.profile);
    last_line =
        last_line_of(record, measured, fitted) + "profile=" + profile_path + " file=" + file + "\n";
  });
  if (whole)
    console.say("Project with it: gptbench --project DECK --machine " + profile_path +
                " --ranks N\n" + "As machine 'local': cp " + profile_path + " " + local_profile +
                "\n");
  console.say("Messages:        gptpost table --style comm " + file + "\n");
  console.always(last_line);
  return measured.outcome();
}

}  // namespace gptbench
