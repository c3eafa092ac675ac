#include "post/run_rates.h"

#include <algorithm>

#include "base/text.h"
#include "deck/devices.h"
#include "post/run_deck.h"
#include "record/flops.h"
#include "record/steps.h"

namespace gptbench {

std::string device_name_of(const Record& record) {
  return record.summary.device.name.empty() ? record.machine : record.summary.device.name;
}

ScalingBase scaling_base(const std::vector<std::pair<double, double>>& points) {
  if (points.empty()) return {};
  const double fewest = std::min_element(points.begin(), points.end())->first;
  std::vector<double> rates;
  for (const auto& [ranks, rate] : points)
    if (ranks == fewest) rates.push_back(rate);
  return {fewest, median(rates), rates.size()};
}

double RunRates::tflops(const std::string& convention, bool hardware) const {
  const Summary& s = record_->summary;
  const std::string& name = restatement_.convention.empty() ? convention : restatement_.convention;
  if (s.rate.sec_per_it <= 0.0 || s.world_size <= 0) return 0.0;
  const double flops = hardware ? hardware_flops(s, name) : model_flops(s, name);
  return flops / (s.rate.sec_per_it * static_cast<double>(s.world_size)) / 1e12;
}

double RunRates::known_peak(Precision type) const {
  const Summary& s = record_->summary;
  const auto of_sheet = [&](const std::string& of_type) {
    return gptbench::known_peak(device_name_of(*record_), of_type, s.device.clock_ghz).tflops;
  };
  const RunDeck deck(*record_);
  const std::string device = deck.text("run", "device");
  if (device != name_of(DeviceKind::host) && device != name_of(DeviceKind::ref))
    return of_sheet(name_of(type));
  // The sheet of a processor is that of a socket. The recorded peak tells how much of it a rank
  // has.
  const double of_socket = of_sheet(deck.text("precision", "compute", name_of(Precision::fp32)));
  if (s.peak.source != peak_source::known_device || of_socket <= 0.0) return 0.0;
  return of_sheet(name_of(type)) * s.peak.tflops / of_socket;
}

double RunRates::peak_tflops() const {
  if (restatement_.peak_tflops > 0.0) return restatement_.peak_tflops;
  const bool one_type = !restatement_.peak_type.empty() && restatement_.peak_type != "both";
  return one_type ? known_peak(choice_of<Precision>(restatement_.peak_type))
                  : record_->summary.peak.tflops;
}

std::string RunRates::peak_source() const {
  if (restatement_.peak_tflops > 0.0) return "--peak";
  const bool one_type = !restatement_.peak_type.empty() && restatement_.peak_type != "both";
  return one_type ? "data sheet, " + restatement_.peak_type : record_->summary.peak.source;
}

std::string RunRates::peak_text() const {
  const auto text = [](double tflops, const std::string& source) {
    return tflops > 0.0 ? printed("%.4g TFLOP/s (%s)", tflops, source.c_str()) : "";
  };
  if (is_against_both())
    return text(known_peak(Precision::bf16), "data sheet, bf16") + ", " +
           text(known_peak(Precision::fp8), "data sheet, fp8");
  return text(peak_tflops(), peak_source());
}

bool RunRates::is_against_both() const {
  return restatement_.peak_type == "both" &&
         RunDeck(*record_).text("precision", "compute") == name_of(Precision::fp8) &&
         known_peak(Precision::bf16) > 0.0 && known_peak(Precision::fp8) > 0.0;
}

double RunRates::utilisation_percent(const std::string& convention, bool hardware) const {
  return peak_tflops() > 0.0 ? 100.0 * tflops(convention, hardware) / peak_tflops() : 0.0;
}

std::vector<std::pair<std::string, double>> RunRates::utilisations(const std::string& convention,
                                                                   bool hardware) const {
  if (!is_against_both()) return {{"", utilisation_percent(convention, hardware)}};
  std::vector<std::pair<std::string, double>> values;
  for (const Precision type : {Precision::bf16, Precision::fp8})
    values.emplace_back(name_of(type), 100.0 * tflops(convention, hardware) / known_peak(type));
  return values;
}

}  // namespace gptbench
