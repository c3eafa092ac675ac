// FLOP/s and utilisation of a run, as recorded or restated.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "deck/keys.h"
#include "record/record.h"

namespace gptbench {

// How figures are restated; empty and 0: as recorded, or as the style is published.
struct Restatement {
  std::string convention;    // of FLOPs: a FlopsConvention
  double peak_tflops = 0.0;  // per device, for MFU and HFU
  // Where MFU and HFU are against the data sheet's peak of known devices: bf16, fp8, or both, which
  // shows runs with fp8 GEMMs against each of the two.
  std::string peak_type;
  bool any() const { return !convention.empty() || peak_tflops > 0.0 || !peak_type.empty(); }
  // Text that a caption adds where FLOPs are restated: ", FLOPs by convention mpt"; else "".
  std::string note() const {
    return convention.empty() ? "" : ", FLOPs by convention " + convention;
  }
};

// The device's name, or the machine's where the record has none.
std::string device_name_of(const Record& record);

// What speed-up and efficiency refer to: the fewest ranks, and the median rate of the runs on them.
struct ScalingBase {
  double ranks = 0.0, rate = 0.0;
  size_t runs = 0;  // on these ranks; 0: none at all
};
// The base of measured points, each a number of ranks and a rate.
ScalingBase scaling_base(const std::vector<std::pair<double, double>>& points);

class RunRates {
 public:
  RunRates(const Record& record, const Restatement& restatement)  // the record must outlive it
      : record_(&record), restatement_(restatement) {}

  const Restatement& restatement() const { return restatement_; }
  // The requested convention of FLOPs, else that of the deck.
  std::string convention() const {
    return restatement_.convention.empty() ? record_->summary.flops.convention
                                           : restatement_.convention;
  }
  // TFLOP/s per device by `convention` (a restatement goes first); 0 where the record has no such
  // figure or nothing was timed. With recomputation where `hardware`.
  double tflops(const std::string& convention, bool hardware = false) const;
  double tflops() const { return tflops(convention()); }
  double peak_tflops() const;
  // Peak per device (per rank of a host) by the data sheet; 0: not known.
  double known_peak(Precision type) const;
  std::string peak_source() const;
  // "0.2 TFLOP/s (deck)", per device; "" where it is not known.
  std::string peak_text() const;
  // Percent of the peak; 0 where it is not known.
  double utilisation_percent(const std::string& convention, bool hardware) const;
  double mfu_percent() const { return utilisation_percent(convention(), false); }
  // The same, HFU where `hardware`, against one denominator, without a name; or against two, for a
  // run with fp8 GEMMs where both are requested: {"bf16", 46.6}, {"fp8", 23.3}.
  std::vector<std::pair<std::string, double>> utilisations(const std::string& convention,
                                                           bool hardware) const;

 private:
  // Whether utilisations are against the data sheet's peaks of bf16 and of fp8.
  bool is_against_both() const;

  const Record* record_;
  Restatement restatement_;
};

}  // namespace gptbench
