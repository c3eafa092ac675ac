#include "run/ceiling.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "device/gemm_ceiling.h"
#include "engine/resources.h"
#include "io/file_bytes.h"
#include "measure/system_info.h"
#include "record/steps.h"

namespace gptbench {
namespace {

constexpr double budget_s = 1.0;       // of each measurement, outside of the timed steps
constexpr size_t remembered_runs = 9;  // whose median is taken
constexpr int64_t most_store_bytes = 1 << 20;

std::string store_path() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  const std::string own = variable("GPTBENCH_CEILINGS");
  if (!own.empty()) return own == "none" ? "" : own;
  std::string cache = variable("XDG_CACHE_HOME");
  if (cache.empty() && !variable("HOME").empty()) cache = variable("HOME") + "/.cache";
  return cache.empty() ? "" : cache + "/gptbench/gemm_ceilings";
}

std::vector<GemmShape> gemms_of(const Plan& plan) {
  return gptbench::gemms_of(model_shape(plan.config.model),
                            plan.shape.T * plan.config.batch.micro_batch_size);
}

// Lines "key<TAB>value value ...", oldest first; none where the file cannot be read.
std::vector<std::string> lines_of(const std::string& path) {
  try {
    const Bytes bytes = read_bytes(path, most_store_bytes);
    return split(std::string(bytes.begin(), bytes.end()), '\n');
  } catch (const Error&) {
    return {};
  }
}

bool has_key(const std::string& line, const std::string& key) {
  return line.size() > key.size() && line.compare(0, key.size(), key) == 0 &&
         line[key.size()] == '\t';
}

}  // namespace

GemmCeiling ceiling_of(const std::vector<double>& measured, std::vector<double> earlier) {
  if (earlier.size() >= remembered_runs)
    earlier.erase(earlier.begin(), earlier.end() - (remembered_runs - 1));
  earlier.push_back(*std::max_element(measured.begin(), measured.end()));
  GemmCeiling ceiling;
  ceiling.runs = static_cast<int64_t>(earlier.size());
  ceiling.tflops = median(earlier);
  for (const double each : measured)
    ceiling.spread = std::max(ceiling.spread, std::abs(each / ceiling.tflops - 1.0));
  return ceiling;
}

CeilingStore::CeilingStore() : path_(store_path()) {}

std::vector<double> CeilingStore::read(const std::string& key) const {
  std::vector<double> values;
  if (path_.empty()) return values;
  for (const std::string& line : lines_of(path_))
    if (has_key(line, key))
      for (const std::string& word : split(line.substr(key.size() + 1), ' '))
        if (const double value = std::atof(word.c_str()); value > 0.0 && std::isfinite(value))
          values.push_back(value);
  return values;
}

void CeilingStore::add(const std::string& key, double tflops) const {
  if (path_.empty()) return;
  std::vector<double> values = read(key);
  values.push_back(tflops);
  if (values.size() > remembered_runs) values.erase(values.begin());
  std::string line = key + "\t";
  for (const double value : values) line += printed("%.6g ", value);
  std::vector<std::string> lines = {line};  // those that were used last come first
  size_t bytes = line.size();
  for (const std::string& other : lines_of(path_)) {
    bytes += other.size() + 1;
    if (!has_key(other, key) && bytes < most_store_bytes / 2) lines.push_back(other);
  }
  try {
    create_directories(path_.substr(0, path_.rfind('/')));
    write_file(path_, join(lines, "\n") + "\n");
  } catch (const Error&) {
    return;  // a home that is full or read-only: the next run has less to remember
  }
}

double measure_ceiling(MpiWorld& world, Device& device, const Plan& plan) {
  world.barrier();
  const double flops =
      measure_gemm_ceiling(device, compute_type(plan.config), gemms_of(plan), budget_s);
  double sum = 0.0;
  for (const double each : world.gather(std::vector<double>{flops})) sum += each;
  return sum / static_cast<double>(world.size()) / 1e12;
}

std::string ceiling_key(const MpiWorld& world, const Device& device, const Plan& plan) {
  std::string key = system_info().cpu_model + "; " + device.description() + "; " +
                    std::to_string(world.node_size()) + " ranks per node; " +
                    name_of(plan.config.precision.compute);
  for (const GemmShape& gemm : gemms_of(plan))
    key += printed(" %lldx%lldx%lld", static_cast<long long>(gemm.R),
                   static_cast<long long>(gemm.K), static_cast<long long>(gemm.N));
  std::replace(key.begin(), key.end(), '\t', ' ');
  std::replace(key.begin(), key.end(), '\n', ' ');
  return key;
}

}  // namespace gptbench
