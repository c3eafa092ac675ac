#include "calibrate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "calibrate/fit_machine.h"
#include "calibrate/gemm_cases.h"
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
#include "project/work.h"
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
  GemmCases gemms;
  GemmCases fp8_gemms;  // of a deck in fp8, beside the same in bf16
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

// One sequence does not fill a GPU; a host computes them one after another.
std::vector<AttentionCase> default_attention(DeviceKind device) {
  constexpr int64_t positions = 16384;
  std::vector<AttentionCase> cases;
  for (const int64_t T : {256, 1024, 4096})
    for (const int64_t D : {64, 128})
      cases.push_back({device == DeviceKind::cuda ? positions / T : 1, T, 768 / D, D});
  return cases;
}

// GEMMs and attention of a step of the deck, forward; the gradients have the same sizes. The first
// and the last rank hold the first and the last pipeline stage, which has the head.
void add_cases_of(const Plan& own, TypeCases& cases) {
  for (const int64_t rank : {int64_t{0}, own.grid.size() - 1}) {
    const Plan plan = make_plan(own.config, own.grid.size(), rank, own.device);
    for_each_operation(plan, [&](int32_t index, int64_t rows, int64_t) {
      const Op& op = plan.ops[static_cast<size_t>(index)];
      const int64_t R = rows_of(op, rows);
      if (without_gelu(op.kind) != OpKind::linear_forward || R == 0) return;
      const GemmCase size{R, op.as<GemmSize>().N, op.as<GemmSize>().K};
      cases.gemms.add(size);
      if (op.has(Slot::left_scale)) cases.fp8_gemms.add(size);
    });
  }
  const int64_t sequences =
      own.config.run.device == DeviceKind::cuda ? own.micro_batches.rows / own.T_local() : 1;
  cases.attention = {{sequences, own.T_local(), own.local.H, own.shape.D}};
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
    cases.attention = default_attention(device.info().kind);
  }
  for (AttentionCase& each : cases.attention) each.causal = plan.shape.family.causal;
  cases.arrays = {has_deck                                 ? plan.micro_batches.rows
                  : device.info().kind == DeviceKind::cuda ? 65536
                                                           : 8192,
                  plan.shape.C, plan.local.V, plan.shape.H,
                  has_deck ? std::optional(plan.shape.family) : std::nullopt};
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
  std::vector<int64_t> node_sizes;  // ranks of each node
  MessageRanks ranks;               // that exchange messages between nodes
  double limit_s = 0.0;
  bool has_deck = false;

  // One rank of each node says nothing of messages within a node, which the fullest node has.
  bool has_own_within() const {
    return ranks.per_node == 1 && *std::max_element(node_sizes.begin(), node_sizes.end()) > 1;
  }
};

// How many ranks exchange messages, and why not all; "" where all do.
std::string some_ranks_text(const CalibrationSetup& setup, int64_t all) {
  const MessageRanks& ranks = setup.ranks;
  if (ranks.size() == all) return "";
  const auto [fewest, most] = std::minmax_element(setup.node_sizes.begin(), setup.node_sizes.end());
  return printed(
      "%lld of %lld ranks exchange messages, %lld on each of %lld nodes%s: nodes hold %lld to "
      "%lld%s",
      static_cast<long long>(ranks.size()), static_cast<long long>(all),
      static_cast<long long>(ranks.per_node), static_cast<long long>(ranks.nodes),
      setup.has_own_within()
          ? printed(", and the %lld of one node", static_cast<long long>(*most)).c_str()
          : "",
      static_cast<long long>(*fewest), static_cast<long long>(*most),
      setup.has_deck ? ", and the deck's groups need all; groups are those without a deck" : "");
}

// Collective. With the deck of the command line, or the default one.
CalibrationSetup set_up(MpiWorld& world, const CommandLine& line) {
  const bool has_deck = !line.deck.empty();
  CommandLine named = line;
  if (!has_deck) named.deck = "(default deck of --calibrate)";
  CalibrationSetup setup;
  setup.has_deck = has_deck;
  setup.node_sizes = world.node_sizes();
  setup.ranks = message_ranks(setup.node_sizes, world.node(), world.node_rank());
  setup.deck = read_deck_once(world, named, has_deck ? "" : default_deck(world.size()));
  if (has_deck) setup.deck.config.run.name += "-calibration";
  agreed(world, [&] {
    validate(setup.deck);  // its own layout is measured
    setup.config = resolve(setup.deck, world.size());
    if (setup.config.precision.compute == Precision::fp64)
      setup.deck.fail({"precision.compute"},
                      "{precision.compute} cannot be calibrated, it is the arithmetic of "
                      "run.device = 'ref', which nobody projects; use another type");
  });
  setup.device = make_device(world, setup.config);
  setup.memory = setup.device->memory_offer();
  agreed(world, [&] {
    if (world.rank() != 0) return;
    check_output_directory(setup.config.output.directory);
    known_devices();  // a mistake in the user's file is found before time is spent
  });
  const double limit_s = setup.config.run.limits.time_limit_s;
  setup.limit_s = limit_s > 0.0 ? limit_s : calibration_limit_s;
  agreed(world, [&] {
    for (const Precision type : types_of(*setup.device, setup.config, has_deck))
      setup.types.push_back(cases_of(setup.config, type, world, *setup.device, has_deck));
  });
  setup.axes = has_deck ? messages_of(world, setup.types.front().plan, setup.ranks)
                        : default_messages(setup.ranks);
  if (setup.has_own_within())
    setup.axes.insert(setup.axes.begin(), messages_within_node(ranks_of_fullest_node(
                                              setup.node_sizes, world.node(), world.node_rank())));
  return setup;
}

// The phases of a calibration, each after a line of progress. All members are collective.
class Phases {
 public:
  Phases(MpiWorld& world, const Console& console, double limit_s, double weights)
      : world_(world), console_(console), start_s_(now_s()), division_(limit_s, weights) {}

  // Calls measure(seconds), the same on all ranks, which returns what it left out.
  template <class Measure>
  void run(const std::string& what, double weight, const Measure& measure) {
    const double used_s = world_.max(now_s() - start_s_);
    console_.say(printed("  %4.0f s, %.0f s left: ", used_s, division_.left_s(used_s)) + what +
                 "\n");
    const LeftOut left_out = measure(division_.begin(used_s, weight));
    left_out_ += left_out;
    const double taken_s = world_.max(now_s() - start_s_) - used_s;
    needs_.push_back({weight, taken_s + left_out.time_s});
  }
  const LeftOut& left_out() const { return left_out_; }
  double sufficient_s() const { return sufficient_limit_s(needs_); }

 private:
  MpiWorld& world_;
  const Console& console_;
  double start_s_;
  TimeDivision division_;
  LeftOut left_out_;
  std::vector<PhaseNeed> needs_;
};

// Bytes that a rank may take for arrays: half of what is there, shared by the ranks of that memory.
int64_t room_of(MpiWorld& world, const Device& device) {
  const int64_t sharers = ranks_of_memory(world, device);
  return world.min(device.memory_offer().available_bytes / 2 / sharers);
}

NodeFacts facts_of(const CalibrationSetup& setup) {
  const Device& device = *setup.device;
  const MemoryOffer& before = setup.memory;
  NodeFacts facts;
  facts.is_accelerator = device.info().kind == DeviceKind::cuda;
  facts.fuses = device_traits(device.info().kind).fuses;
  facts.ranks_per_node = *std::max_element(setup.node_sizes.begin(), setup.node_sizes.end());
  facts.nodes = setup.ranks.nodes;
  facts.message_ranks = setup.ranks.per_node;
  facts.threads = device.info().num_threads;
  const double sharers = facts.is_accelerator ? 1.0 : static_cast<double>(facts.ranks_per_node);
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
  LeftOut left_out;
  double sufficient_s = 0.0;  // limit in which all would have been measured, roughly
  bool has_deck = false;
  std::string some_ranks;  // some_ranks_text()
  int64_t wrong = 0;
  int64_t signal = 0;  // that ended the calibration early; 0: none; the same on all ranks
  bool fits = false;   // can_fit(); the same on all ranks

  bool has_profile() const { return fits && signal == 0; }
  Exit outcome() const {
    if (wrong > 0) return Exit::invalid;
    if (has_profile()) return Exit::ok;
    return signal != 0 ? Exit::timeout : Exit::out_of_memory;  // one of each has time
  }
};

// Rates that a deck with precision.tf32 gave have the peak of tf32: a projection looks for both by
// this name.
void name_tf32(std::vector<KernelRate>& rates) {
  for (KernelRate& rate : rates)
    if (rate.flops > 0.0 && rate.type == name_of(ComputeType::fp32)) rate.type = "tf32";
}

Measured measure(MpiWorld& world, const CalibrationSetup& setup, const Console& console) {
  constexpr double gemm_weight = 3.0, attention_weight = 1.0, array_weight = 1.0,
                   machine_weight = 0.4, round_weight = 0.5, axis_weight = 3.0,
                   overlap_weight = 1.0;
  Device& device = *setup.device;
  const std::vector<TypeCases>& types = setup.types;
  const std::vector<AxisMessages>& axes = setup.axes;
  const TypeCases& main = device.info().kind == DeviceKind::cuda ? types.back() : types.front();
  double weights = machine_weight + round_weight + static_cast<double>(axes.size()) * axis_weight +
                   (axes.empty() ? 0.0 : overlap_weight);
  for (const TypeCases& each : types)
    weights += gemm_weight + attention_weight + array_weight +
               (each.fp8_gemms.size() > 0 ? gemm_weight : 0.0);
  Phases phases(world, console, setup.limit_s, weights);
  Measured measured;
  measured.has_deck = setup.has_deck;
  measured.some_ranks = some_ranks_text(setup, world.size());
  if (!measured.some_ranks.empty()) console.say(hanging("", measured.some_ranks));
  const int64_t room = room_of(world, device);
  KernelBench bench(world, device, room, measured.calibration);
  phases.run("memory and launches", machine_weight, [&](double s) { return bench.machine(s); });
  for (const TypeCases& each : types) {
    const std::string in = std::string(" in ") + name_of(each.type);
    if (world.max(static_cast<int64_t>(received_signal())) == 0) autotune(world, device, each.plan);
    phases.run("other kernels" + in, array_weight,
               [&](double s) { return bench.arrays(each.type, each.arrays, s); });
    phases.run("attention" + in, attention_weight,
               [&](double s) { return bench.attention(each.type, each.attention, s); });
    // Behind those, which seldom take their part of the time.
    phases.run("GEMMs" + in, gemm_weight,
               [&](double s) { return bench.gemms(each.type, each.gemms, s); });
    if (each.fp8_gemms.size() > 0)
      phases.run("GEMMs in fp8", gemm_weight,
                 [&](double s) { return bench.fp8_gemms(each.fp8_gemms, s); });
  }
  phases.run("rounds of GEMMs", round_weight, [&](double s) { return bench.rounds(main.type, s); });
  if (!axes.empty())
    phases.run("GEMMs beside messages", overlap_weight, [&](double s) {
      return measure_overlap(world, device, setup.config, setup.ranks, main.type, room, s,
                             measured.calibration);
    });
  for (const AxisMessages& axis : axes) {
    const std::string where = printed("messages along axis %s, %lld ranks", name_of(axis.axis),
                                      static_cast<long long>(axis.grid.size_of(axis.axis)));
    phases.run(where, axis_weight, [&](double s) {
      const MessageOutcome outcome =
          measure_messages(world, device, setup.config, axis, room, s, measured.calibration);
      measured.wrong += outcome.wrong;
      return outcome.left_out;
    });
  }
  if (setup.config.precision.tf32) name_tf32(measured.calibration.kernels);
  measured.left_out = phases.left_out();
  measured.sufficient_s = phases.sufficient_s();
  measured.signal = world.max(static_cast<int64_t>(received_signal()));
  measured.fits = world.all(world.rank() != 0 || can_fit(measured.calibration));
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

int64_t measurements_of(const Measured& measured) {
  return static_cast<int64_t>(measured.calibration.kernels.size() +
                              measured.calibration.messages.size());
}

// At least one second.
double two_digits_up(double seconds) {
  const double unit = std::pow(10.0, std::max(0.0, std::floor(std::log10(seconds)) - 1.0));
  return std::max(1.0, std::ceil(seconds / unit) * unit);
}

// What was not measured, and what would help; "" where all was.
std::string left_out_text(const Measured& measured) {
  const LeftOut& left_out = measured.left_out;
  if (left_out.items == 0) return "";
  const int64_t all = left_out.items + measurements_of(measured);
  return printed("%lld of %lld measurements were left out, large sizes first, for lack of %s",
                 static_cast<long long>(left_out.items), static_cast<long long>(all),
                 left_out.time_s > 0.0
                     ? printed("time; run.time_limit_s = %.0f or more would do%s",
                               two_digits_up(measured.sufficient_s),
                               measured.has_deck ? "" : ", or a deck, which needs fewer")
                           .c_str()
                     : "memory");
}

// Why a calibration is less than whole; "" where it is not.
std::string reason_of(const Measured& measured) {
  if (measured.wrong > 0)
    return printed("messages left %lld wrong elements; gptpost table --style comm names them",
                   static_cast<long long>(measured.wrong));
  if (measured.signal != 0)
    return printed("stopped by signal %lld, without a profile; measurements left out: %lld",
                   static_cast<long long>(measured.signal),
                   static_cast<long long>(measured.left_out.items));
  if (!measured.fits)
    return printed(
        "no profile, as the memory that is free holds no GEMM or no triad of "
        "these sizes; use fewer ranks per node or a smaller deck; measurements left "
        "out: %lld",
        static_cast<long long>(measured.left_out.items));
  const std::string left_out = left_out_text(measured);
  return measured.some_ranks + (measured.some_ranks.empty() || left_out.empty() ? "" : "; ") +
         left_out;
}

// A warning where the profile stands on less than half of what was to be measured, or is none.
std::string completeness(const Measured& measured) {
  if (!measured.has_profile()) return reason_of(measured);
  const std::string text = left_out_text(measured);
  const bool is_poor = measured.left_out.items > measurements_of(measured);
  return (is_poor ? "WARNING: most was not measured, and projections with this profile are poor. "
                  : "") +
         text;
}

std::string comment_lines(const std::string& text) {
  std::string lines;
  for (const std::string& line : split(hanging("  ", text), '\n')) lines += "! " + line + "\n";
  return lines;
}

// The text of a machine profile (input/profiles.md).
std::string profile_of(const FittedProfile& fitted, const NodeFacts& node, const Device& device,
                       const Measured& measured, int64_t ranks, const std::string& date_utc) {
  const std::string completeness_text = completeness(measured);
  return "! Profile of " + node.reported + " (" + device.info().description + "),\n! measured on " +
         date_utc + " by gptbench --calibrate on " + std::to_string(ranks) +
         " ranks. Keys: input/profiles.md.\n" +
         (measured.some_ranks.empty() ? "" : comment_lines(measured.some_ranks)) +
         (completeness_text.empty() ? "" : comment_lines(completeness_text)) +
         profile_text(fitted.machine, fitted.software, fitted.comments);
}

// What centres compare.
std::string rates_text(const Measured& measured, const FittedProfile& fitted) {
  const double all_reduce = all_reduce_rate(measured.calibration);
  return printed("GEMM %.4g TFLOP/s and triad %.4g GB/s per rank", fitted.gemm_flops_per_s / 1e12,
                 fitted.bytes_per_s / 1e9) +
         (all_reduce > 0.0 ? printed(", all-reduce %.4g GB/s (bus)", all_reduce) : "");
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
      measured.calibration.messages.size(), static_cast<long long>(measured.left_out.items),
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
  console.say(printed("Calibration of %lld rank%s on %lld node%s, at most %g s:\n",
                      static_cast<long long>(world.size()), world.size() == 1 ? "" : "s",
                      static_cast<long long>(world.num_nodes()), world.num_nodes() == 1 ? "" : "s",
                      setup.limit_s) +
              device.info().description + "\n");
  const Measured measured = measure(world, setup, console);
  const MachineFacts machine = gather_machine(world, setup.config, device);

  const bool whole = measured.has_profile();
  const std::string& directory = setup.config.output.directory;
  const std::string file = directory + "/result.h5",
                    profile_path = whole ? directory + "/" + run.name + ".in" : "none";
  std::string last_line;
  FittedProfile fitted;  // on rank 0; none of what was cut short
  agreed(world, [&] {
    if (world.rank() != 0) return;
    const Plan& plan = setup.types.front().plan;
    const NodeFacts node = facts_of(setup);
    if (whole) fitted = fit_machine(measured.calibration, node);

    Record record = planned_record(setup.deck, plan, stage_figures(plan), world.num_nodes(),
                                   world.node_size(), argv);
    record.provenance = with_machine(record.provenance, machine, device.autotuning().selected());
    record.calibration = measured.calibration;
    if (whole)
      record.calibration.profile =
          profile_of(fitted, node, device, measured, world.size(), record.date_utc);
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
  if (const std::string text = completeness(measured); !text.empty())
    console.say(hanging("Left out:        ", text));
  if (whole)
    console.say(hanging("Rates:           ", rates_text(measured, fitted)) +
                "Project with it: gptbench --project DECK --machine " + profile_path +
                " --ranks N\n" + "As machine 'local': cp " + profile_path + " " + local_profile +
                "\n");
  console.say("Messages:        gptpost table --style comm " + file + "\n");
  console.always(last_line);
  return measured.outcome();
}

}  // namespace gptbench
