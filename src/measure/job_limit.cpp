#include "measure/job_limit.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>

namespace gptbench {
namespace {

constexpr double largest_margin_s = 60.0;
constexpr double margin_fraction = 0.1;

}  // namespace

double seconds_until_job_end() {
  constexpr double unlimited = std::numeric_limits<double>::infinity();
  const char* text = std::getenv("SLURM_JOB_END_TIME");
  if (text == nullptr) return unlimited;
  char* end = nullptr;
  const double end_s = std::strtod(text, &end);
  if (end == text || *end != '\0') return unlimited;
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const double left_s = end_s - now.count();
  if (!(left_s > 0.0)) return unlimited;
  return left_s - std::min(largest_margin_s, margin_fraction * left_s);
}

}  // namespace gptbench
