#include "calibrate/fit_machine.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "calibrate/measure_kernels.h"
#include "deck/presets.h"
#include "project/clock.h"
#include "project/links.h"
#include "record/steps.h"

namespace gptbench {
namespace {

using Rates = std::vector<KernelRate>;

Rates rates_of(const Calibration& calibration, const std::function<bool(const KernelRate&)>& is) {
  Rates found;
  std::copy_if(calibration.kernels.begin(), calibration.kernels.end(), std::back_inserter(found),
               is);
  return found;
}

Rates named(const Calibration& calibration, const std::string& kernel) {
  return rates_of(calibration, [&](const KernelRate& each) { return each.kernel == kernel; });
}

// Bytes per second of the only rate of that name; 0: it was not measured.
double bytes_per_s(const Calibration& calibration, const std::string& kernel) {
  const Rates found = named(calibration, kernel);
  return found.empty() ? 0.0 : found.front().bytes / found.front().time_s;
}

bool is_gemm(const KernelRate& rate) {
  return rate.kernel.rfind("linear_", 0) == 0;
}

double four_digits(double value) {
  return std::stod(printed("%.4g", value));
}

constexpr const char* fp8 = "fp8";  // type of GEMMs with fp8 factors

// Shorter messages tell latency, not bandwidth.
constexpr int64_t min_bytes_of_bandwidth = 256 * KiB;

// Fits that differ by less are equal: the smaller figures win.
constexpr double equal_variance = 1e-9;

// Mean and variance of ln(model / measured).
struct Misfit {
  double mean = 0.0, variance = 0.0;
};
Misfit misfit_of(const Rates& rates, const std::function<double(const KernelRate&)>& model_s) {
  double sum = 0.0, squares = 0.0;
  for (const KernelRate& rate : rates) {
    const double error = std::log(model_s(rate) / rate.time_s);
    sum += error;
    squares += error * error;
  }
  const double n = std::max<double>(1.0, static_cast<double>(rates.size()));
  return {sum / n, std::max(0.0, squares / n - sum / n * (sum / n))};
}

// Attention without a mask counts as causal attention that takes as long: a machine's figures are
// of that, which forms half of the matrix that its FLOPs count (project/clock.cpp).
Calibration with_causal_attention(Calibration calibration) {
  for (KernelRate& rate : calibration.kernels) {
    const size_t end = rate.kernel.find(without_mask);
    if (end == std::string::npos) continue;
    rate.kernel.erase(end);
    rate.flops *= 2.0;
  }
  return calibration;
}

// The fit as it goes: what was measured, what is known of the machine, what follows.
class Fit {
 public:
  Fit(const Calibration& calibration, const NodeFacts& facts)
      : calibration_(calibration), facts_(facts) {
    fitted_.software = read_software("gptbench");
    fitted_.machine.name = "calibrated";
    for (const KernelRate& rate : gemms()) types_.insert(rate.type);
    memory_rate_ = bytes_per_s(calibration, triad);
    if (!can_fit(calibration))
      throw Error(Exit::invalid, "calibration: no GEMM or no triad was measured");
    const std::string preferred = facts.is_accelerator ? "bf16" : "fp32";
    main_type_ = types_.count(preferred) > 0 ? preferred : *types_.begin();
  }

  FittedProfile result() {
    state_facts();
    fit_memory();
    fit_gemms();
    fit_jitter();
    fit_attention();
    fit_shapes();
    fit_kernels();
    fit_links();
    fit_messages();
    fit_overlap();
#define GPTBENCH_ASSUMED(key, range, doc) \
  fitted_.comments.insert({#key, "as in input/software/gptbench.in"});
    GPTBENCH_SOFTWARE_KEYS(GPTBENCH_ASSUMED)
#undef GPTBENCH_ASSUMED
    for (const auto& [key, comment] : fitted_.comments)
      if (comment.rfind("not measured", 0) == 0) fitted_.machine.unmeasured.push_back(key);
    return fitted_;
  }

 private:
  Rates gemms(const std::string& type = "") const {
    return rates_of(calibration_, [&](const KernelRate& each) {
      return is_gemm(each) && (type.empty() || each.type == type);
    });
  }

  void set(const std::string& key, double value, const std::string& comment) {
    double* const figure = find_figure(fitted_.machine, key);
    *(figure != nullptr ? figure : find_figure(fitted_.software, key)) = four_digits(value);
    fitted_.comments[key] = comment;
  }

  void state_facts() {
    Machine& machine = fitted_.machine;
    machine.sheet = facts_.sheet;
    const bool is_known = !machine.sheet.name.empty();
    if (!is_known) {
      machine.sheet.name = facts_.is_accelerator ? "calibrated_device" : "calibrated_host";
      machine.sheet.names = {facts_.reported.empty() ? "unknown" : facts_.reported};
      machine.sheet.memory_gb = four_digits(facts_.memory_bytes / static_cast<double>(GiB));
      machine.sheet.source = "measured by gptbench --calibrate";
    }
    machine.device = machine.sheet.name;
    set("accelerator", facts_.is_accelerator ? 1.0 : 0.0, "as the ranks ran");
    const std::vector<double>& clocks = machine.sheet.clock_ghz;
    set("clock_ghz", clocks.empty() ? 0.0 : clocks.front(),
        clocks.empty() ? "not known" : "of the data sheet");
    set("capped_clock_ghz", 0.0, "none: rates are those that were measured");
    set("ranks_per_node", static_cast<double>(facts_.ranks_per_node), "as the ranks ran");
    set("node_kw", 0.0, "not measured: give the power of a node to have MWh");
    set("reserve_gib", facts_.reserve_bytes / static_cast<double>(GiB),
        facts_.is_accelerator ? "in use before anything was allocated"
                              : "program and libraries of a rank, src/memory/budget.h");
    fitted_.software.name = machine.name;
    set("fuses", facts_.fuses ? 1.0 : 0.0, "of this device's kernels");
    set("message_us", 0.0, "in within_us and between_us");
    set("operation_us", 0.0, "in launch_us");
    set("within_efficiency", 1.0, "in within_gb_per_s");
    set("between_efficiency", 1.0, "in between_gb_per_s");
    const double copies = std::min(bytes_per_s(calibration_, copy_to_device),
                                   bytes_per_s(calibration_, copy_to_host));
    if (copies > 0.0) machine.sheet.host_link_gb_per_s = four_digits(2.0 * copies / 1e9);
  }

  void fit_memory() {
    DeviceData& sheet = fitted_.machine.sheet;
    if (sheet.bandwidth_gb_per_s == 0.0) sheet.bandwidth_gb_per_s = four_digits(memory_rate_ / 1e9);
    fitted_.bytes_per_s = memory_rate_;
    set("memory_efficiency", memory_rate_ / (sheet.bandwidth_gb_per_s * 1e9),
        "measured: triad, fp32");
    const double host = bytes_per_s(calibration_, host_triad);
    set("host_gb_per_s", (host > 0.0 ? host : memory_rate_) / 1e9,
        host > 0.0 || !facts_.is_accelerator ? "measured: triad by the host"
                                             : "not measured: as of the device");
    const Rates launches = named(calibration_, launch);
    set("launch_us", launches.empty() ? 0.0 : 1e6 * launches.front().time_s,
        launches.empty() ? "not measured" : "measured: a kernel of one element");
  }

  // Measured time without the launch, which the model adds.
  double own_s(const KernelRate& rate) const {
    return std::max(0.1 * rate.time_s, rate.time_s - 1e-6 * fitted_.machine.launch_us);
  }

  // FLOP/s that tiles of this size reach, [type], and how far the measured times scatter.
  double try_tiles(const Machine& machine, std::map<std::string, double>& reached) const {
    double variance = 0.0;
    for (const std::string& type : types_) {
      Rates rates = gemms(type);
      for (KernelRate& rate : rates) rate.time_s = own_s(rate);
      double flops_per_s = 0.0;
      for (const KernelRate& rate : rates)
        flops_per_s = std::max(flops_per_s, rate.flops / rate.time_s);
      const auto model_s = [&](const KernelRate& rate) {
        return modelled_gemm_s(machine, flops_per_s, memory_rate_, static_cast<double>(rate.rows),
                               static_cast<double>(rate.columns), static_cast<double>(rate.inner),
                               rate.bytes);
      };
      // A few steps, since what memory bounds does not follow the rate. Tiles and waves cost at
      // most half of the fastest GEMM.
      const double most = 2.0 * flops_per_s;
      for (int step = 0; step < 8; ++step)
        flops_per_s = std::min(most, flops_per_s * std::exp(misfit_of(rates, model_s).mean));
      const Misfit misfit = misfit_of(rates, model_s);
      variance += misfit.variance + misfit.mean * misfit.mean;
      reached[type] = flops_per_s;
    }
    return variance;
  }

  void fit_gemms() {
    Machine& machine = fitted_.machine;
    // An accelerator's units and tiles are those of its profile, where it has one.
    std::vector<double> units = {static_cast<double>(facts_.threads)};
    std::vector<double> tiles = {4, 8, 16, 32, 64};
    if (facts_.is_accelerator) {
      units = {};
      tiles = {64, 128, 256};
      for (const Preset& each : embedded_machines())
        if (const Machine known = read_machine(each.name);
            known.device == machine.device && units.empty())
          units.push_back(known.units);
      if (units.empty()) units = {80, 108, 114, 132, 144, 160, 192};
    }
    double least = std::numeric_limits<double>::infinity();
    std::map<std::string, double> best;
    Machine trial = machine;
    for (const double unit : units)
      for (const double rows : tiles)
        for (const double columns : tiles)
          for (const double ramp : {0.0, 8.0, 16.0, 32.0, 64.0, 96.0, 128.0, 192.0, 256.0, 384.0}) {
            trial.units = unit;
            trial.tile_rows = rows;
            trial.tile_columns = columns;
            trial.tile_ramp = ramp;
            std::map<std::string, double> reached;
            const double variance = try_tiles(trial, reached);
            if (variance + equal_variance >= least) continue;
            least = variance;
            best = reached;
            machine.units = unit;
            machine.tile_rows = rows;
            machine.tile_columns = columns;
            machine.tile_ramp = ramp;
          }
    const double scatter = std::sqrt(least / static_cast<double>(types_.size()));
    const std::string how = printed("fitted to %lld GEMMs, which scatter by %.0f %%",
                                    static_cast<long long>(gemms().size()), 100.0 * scatter);
    for (const char* key : {"units", "tile_rows", "tile_columns", "tile_ramp"})
      fitted_.comments[key] = how;
    fitted_.gemm_flops_per_s = best.at(main_type_);
    set_peaks(best);
    set("gemm_efficiency", best.at(main_type_) / machine.peak(main_type_), how + ", " + main_type_);
    if (best.count(fp8) > 0)
      set("fp8_efficiency", best.at(fp8) / machine.peak(fp8), how + ", fp8");
    else
      set("fp8_efficiency", machine.gemm_efficiency,
          facts_.sheet.name.empty()
              ? "not measured, which needs a deck in fp8: peak and efficiency are those of bf16"
              : "not measured, which needs a deck in fp8: as gemm_efficiency");
  }

  void fit_jitter() {
    const Rates rounds = named(calibration_, round_of_gemms);
    if (rounds.empty()) return set("jitter", 0.0, "not measured");
    set("jitter", rounds.front().spread,
        "measured: rounds of GEMMs, of " + format_seconds(rounds.front().time_s) + " each");
  }

  // The peaks of a device without a data sheet, and those that a data sheet leaves out: the rates
  // that GEMMs approach.
  void set_peaks(const std::map<std::string, double>& reached) {
    DeviceData& sheet = fitted_.machine.sheet;
    for (const auto& [type, flops_per_s] : reached) {
      std::vector<double>& tflops = type == "fp32"   ? sheet.fp32_tflops
                                    : type == "tf32" ? sheet.tf32_tflops
                                    : type == "bf16" ? sheet.bf16_tflops
                                    : type == "fp16" ? sheet.fp16_tflops
                                    : type == fp8    ? sheet.fp8_tflops
                                                     : sheet.fp64_tflops;
      if (tflops.empty())
        tflops.assign(std::max<size_t>(1, sheet.clock_ghz.size()), four_digits(flops_per_s / 1e12));
    }
    if (facts_.sheet.name.empty() && sheet.fp8_tflops.empty()) sheet.fp8_tflops = sheet.bf16_tflops;
  }

  void fit_attention() {
    const Machine& machine = fitted_.machine;
    Rates rates = rates_of(calibration_, [](const KernelRate& each) {
      return each.kernel.rfind("attention_", 0) == 0;
    });
    if (rates.empty()) {
      set("attention_efficiency", 0.5 * machine.gemm_efficiency, "not measured: half of a GEMM's");
      set("attention_ramp", 0.0, "not measured");
      set("attention_softmax", 0.0, "not measured");
      return;
    }
    for (KernelRate& rate : rates) rate.time_s = own_s(rate);
    double least = std::numeric_limits<double>::infinity(), ramp = 0.0, softmax = 0.0, mean = 0.0;
    Machine trial = machine;
    trial.attention_efficiency = 1.0;
    for (double r = 0.0; r <= 1024.0; r += 32.0)
      for (double s = 0.0; s <= 128.0; s += 4.0) {
        trial.attention_ramp = r;
        trial.attention_softmax = s;
        const Misfit misfit = misfit_of(rates, [&](const KernelRate& rate) {
          return modelled_attention_s(
              trial, machine.peak(rate.type), rate.kernel == "attention_forward",
              static_cast<double>(rate.inner), static_cast<double>(rate.columns), rate.flops);
        });
        if (misfit.variance + equal_variance >= least) continue;
        least = misfit.variance;
        mean = misfit.mean;
        ramp = r;
        softmax = s;
      }
    const std::string how = printed("fitted to %lld calls of attention, which scatter by %.0f %%",
                                    static_cast<long long>(rates.size()), 100.0 * std::sqrt(least));
    set("attention_efficiency", std::exp(mean), how);
    set("attention_ramp", ramp, how);
    set("attention_softmax", softmax, how);
  }

  // Residuals of the fits above, for each measured shape.
  void fit_shapes() {
    Machine& machine = fitted_.machine;
    const double bytes_per_s = machine.sheet.bandwidth_gb_per_s * 1e9 * machine.memory_efficiency;
    for (const KernelRate& rate : calibration_.kernels) {
      const bool is_gemm = rate.kernel.rfind("linear_", 0) == 0;
      if (!is_gemm && rate.kernel.rfind("attention_", 0) != 0) continue;
      const auto M = static_cast<double>(rate.rows), N = static_cast<double>(rate.columns),
                 K = static_cast<double>(rate.inner);
      const double peak = machine.peak(rate.type);
      const double efficiency = rate.type == fp8 ? machine.fp8_efficiency : machine.gemm_efficiency;
      const double model_s =
          is_gemm ? modelled_gemm_s(machine, peak * efficiency, bytes_per_s, M, N, K, rate.bytes)
                  : modelled_attention_s(machine, peak, rate.kernel == "attention_forward", K, N,
                                         rate.flops);
      machine.shapes[rate.kernel + "_" + rate.type].push_back({M, N, K, own_s(rate) / model_s});
    }
  }

  // Time of those of the kernels that were measured over that of their bytes, in all types.
  void fit_factor(const std::string& key, const std::set<std::string>& kernels) {
    double time_s = 0.0, bytes = 0.0;
    std::set<std::string> measured;
    for (const KernelRate& rate : calibration_.kernels)
      if (kernels.count(rate.kernel) > 0) {
        measured.insert(rate.kernel);
        time_s += own_s(rate);
        bytes += rate.bytes;
      }
    if (bytes == 0.0) return set(key, 1.0, "not measured");
    set(key, time_s * memory_rate_ / bytes,
        "measured: " + join({measured.begin(), measured.end()}, ", "));
  }

  // What the layers of some family call, and what updates every parameter. Embeddings, and sums and
  // conversions of gradients, are not measured: they move few of most steps' bytes, or none, and
  // would count here as much as what moves the most.
  void fit_kernels() {
    fit_factor("elementwise_factor",
               {"layernorm_forward", "layernorm_backward", "rmsnorm_forward", "rmsnorm_backward",
                "gelu_forward", "gelu_backward", "swiglu_forward", "swiglu_backward", "rotary",
                "residual_forward"});
    fit_factor("loss_factor", {"cross_entropy_statistics", "cross_entropy_finish"});
    fit_factor("optimizer_factor", {"adamw", "squared_norm"});
  }

  // Steps of latency in the fastest algorithm (project/links.h).
  static double steps_of(const MessageRate& rate) {
    if (rate.op == "send") return 1.0;
    const double steps = std::ceil(std::log2(static_cast<double>(rate.ranks)));
    return rate.op == "all_reduce" ? 2.0 * steps : steps;
  }

  // Bandwidth of one rank from the largest messages, latency from the smallest.
  void fit_tier(const std::string& tier, const std::string& where,
                const std::function<bool(const MessageRate&)>& is_in, double ranks,
                double otherwise_gb_per_s) {
    std::map<std::string, std::pair<int64_t, int64_t>> ends;  // least and most bytes by op and axis
    for (const MessageRate& rate : calibration_.messages)
      if (is_in(rate)) {
        const auto found = ends.insert({rate.axis + rate.op, {rate.bytes, rate.bytes}});
        auto& [least, most] = found.first->second;
        least = std::min(least, rate.bytes);
        most = std::max(most, rate.bytes);
      }
    std::vector<double> rates, latencies_us;
    for (const MessageRate& rate : calibration_.messages) {
      if (!is_in(rate)) continue;
      const auto [least, most] = ends.at(rate.axis + rate.op);
      const double bytes = static_cast<double>(rate.bytes) * bus_factor(rate.op, rate.ranks);
      if (rate.bytes <= 8 * least) latencies_us.push_back(1e6 * rate.time_s / steps_of(rate));
      if (rate.bytes >= std::max(most / 4, min_bytes_of_bandwidth))
        rates.push_back(bytes / rate.time_s / 1e9);
    }
    const auto how = [&](const std::vector<double>& values) {
      return (values.empty() ? "not measured: " : "measured: messages ") + where;
    };
    set(tier + "_gb_per_s", rates.empty() ? otherwise_gb_per_s : ranks * median(rates), how(rates));
    set(tier + "_us", median(latencies_us), how(latencies_us));
  }

  void fit_links() {
    fit_tier(
        "within", facts_.ranks_per_node > 1 ? "within a node" : "one rank per node",
        [](const MessageRate& rate) { return rate.nodes() == 1 && rate.ranks > 1; }, 1.0,
        memory_rate_ / 1e9);
    const auto ranks = static_cast<double>(facts_.message_ranks);
    const std::string some =
        facts_.message_ranks < facts_.ranks_per_node
            ? printed(", %lld of %lld ranks per node", static_cast<long long>(facts_.message_ranks),
                      static_cast<long long>(facts_.ranks_per_node))
            : "";
    // Groups of one rank per node send at the same time through the node's links.
    fit_tier(
        "between", facts_.nodes > 1 ? "between nodes" + some : "one node",
        [](const MessageRate& rate) { return rate.nodes() > 1 && rate.per_node == 1; }, ranks,
        static_cast<double>(facts_.ranks_per_node) * fitted_.machine.within_gb_per_s);
  }

  // What the links leave of each measured message.
  void fit_messages() {
    const Links links =
        links_of(fitted_.machine, fitted_.software, facts_.nodes * facts_.ranks_per_node);
    for (const MessageRate& rate : calibration_.messages) {
      const auto bytes = static_cast<double>(rate.bytes);
      const GroupShape group{rate.ranks, rate.per_node,
                             std::max<int64_t>(1, facts_.message_ranks / rate.per_node)};
      if (rate.op == spec_of(OpKind::send).name) {
        // Neighbours are places 0 and 1, 2 and 3, ... Where a node holds an odd number of places,
        // only some of them share a node; the time is that of the slowest.
        const bool same_node = rate.per_node > 1;
        if (same_node && rate.nodes() > 1 && rate.per_node % 2 != 0) continue;
        const double model_s = message_s(links, bytes, same_node ? 0 : 1, group.sharing);
        add_message(rate, 2, same_node ? 2 : 1, model_s);
        continue;
      }
      for (const OpKind kind : {OpKind::all_reduce, OpKind::reduce_scatter, OpKind::all_gather})
        if (rate.op == spec_of(kind).name)
          add_message(rate, group.ranks, group.per_node, collective_s(links, kind, bytes, group));
    }
  }
  void add_message(const MessageRate& rate, int64_t ranks, int64_t per_node, double model_s) {
    if (model_s > 0.0)
      fitted_.machine.shapes[rate.op].push_back(
          {static_cast<double>(ranks), static_cast<double>(per_node),
           static_cast<double>(rate.bytes), rate.time_s / model_s});
  }

  // What GEMMs lose to a message beside them, over the time of the message.
  void fit_overlap() {
    const Rates message = named(calibration_, message_alone),
                gemm = named(calibration_, gemm_alone),
                both = named(calibration_, gemms_beside_message);
    if (message.empty() || gemm.empty() || both.empty()) {
      if (!facts_.is_accelerator)
        set("overlap_cost", 1.0, "not measured: MPI moves data in the thread that computes");
      return;
    }
    const double gemms_s = gemm.front().time_s * both.front().flops / gemm.front().flops;
    set("overlap_cost",
        std::clamp((both.front().time_s - gemms_s) / message.front().time_s, 0.0, 1.0),
        "measured: GEMMs beside an all-reduce");
  }

  const Calibration& calibration_;
  const NodeFacts& facts_;
  FittedProfile fitted_;
  std::set<std::string> types_;
  std::string main_type_;
  double memory_rate_ = 0.0;  // bytes per second
};

}  // namespace

bool can_fit(const Calibration& calibration) {
  return !rates_of(calibration, is_gemm).empty() && bytes_per_s(calibration, triad) > 0.0;
}

FittedProfile fit_machine(const Calibration& calibration, const NodeFacts& facts) {
  return Fit(with_causal_attention(calibration), facts).result();
}

}  // namespace gptbench
