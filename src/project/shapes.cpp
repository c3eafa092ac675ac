#include "project/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "deck/binder.h"

namespace gptbench {
namespace {

constexpr int64_t max_shapes = 10000;
constexpr size_t numbers_per_shape = 4;

// Every key of the group: messages, and kernels whose time depends on more than FLOPs and bytes, by
// type.
std::vector<std::string> shape_keys() {
  std::vector<std::string> keys = {"all_reduce", "reduce_scatter", "all_gather", "send"};
  for (const char* kernel : {"linear_forward", "linear_backward_input", "linear_backward_weight",
                             "attention_forward", "attention_backward"})
    for (const char* type : {"fp32", "tf32", "bf16", "fp16", "fp64", "fp8"})
      keys.push_back(std::string(kernel) + "_" + type);
  return keys;
}

// The largest power of two that divides a number, at most 1,024.
double power_of_two_in(double number) {
  const auto whole = static_cast<int64_t>(std::max(1.0, number));
  return static_cast<double>(std::min<int64_t>(whole & -whole, 1024));
}

double square_of_log(double ratio) {
  return std::log(ratio) * std::log(ratio);
}

// The square of a GEMM's distance from a measured one (shape_factor()).
double gemm_distance2(bool is_weight_gradient, const MeasuredShape& each, double M, double N,
                      double K) {
  const double wide = is_weight_gradient ? M : K, each_wide = is_weight_gradient ? each.M : each.K;
  return 4.0 * square_of_log(std::min(M, N) / std::min(each.M, each.N)) +
         square_of_log(std::max(M, N) / std::max(each.M, each.N)) / 4.0 +
         square_of_log(K / each.K) / 64.0 +
         square_of_log(power_of_two_in(wide) / power_of_two_in(each_wide)) +
         square_of_log(power_of_two_in(N) / power_of_two_in(each.N));
}

}  // namespace

double shape_factor(const MeasuredShapes& shapes, const std::string& kernel_type, double M,
                    double N, double K) {
  const auto found = shapes.find(kernel_type);
  if (found == shapes.end() || M <= 0.0 || N <= 0.0 || K <= 0.0) return 1.0;
  const bool is_gemm = kernel_type.rfind("linear_", 0) == 0;
  const bool is_weight_gradient = kernel_type.rfind("linear_backward_weight", 0) == 0;
  double sum = 0.0, weights = 0.0;
  for (const MeasuredShape& each : found->second) {
    if (each.M == M && each.N == N && each.K == K) return each.factor;
    const double d2 =
        is_gemm ? gemm_distance2(is_weight_gradient, each, M, N, K)
                : square_of_log(M / each.M) + square_of_log(N / each.N) + square_of_log(K / each.K);
    const double weight = 1.0 / std::max(1e-30, d2 * d2 * d2);  // finite at distance 0
    sum += weight * std::log(each.factor);
    weights += weight;
  }
  return std::exp(sum / weights);
}

MeasuredShapes read_shapes(const Source& source, const Group& group) {
  const std::vector<std::string> known = shape_keys();
  MeasuredShapes shapes;
  Claims claims;
  for (const Assignment& assignment : group.assignments) {
    if (!contains(known, assignment.key))
      source.fail(assignment.place, "unknown key '" + assignment.key + "' of &" + group.name +
                                        key_hint(assignment.key, known));
    Key key;
    key.group = group.name;
    key.name = assignment.key;
    key.type = KeyType::real;
    key.min_open = true;
    key.max = 1e9;
    key.elements = max_shapes * static_cast<int64_t>(numbers_per_shape);
    std::vector<double> numbers;
    for (const Element& element : claims.take(source, key, assignment)) {
      if (element.index != static_cast<int64_t>(numbers.size()) + 1)
        source.fail(assignment.place, "&" + group.name + ": " + key.name + " leaves out numbers");
      numbers.push_back(std::get<double>(read_scalar(source, key, *element.token)));
    }
    if (numbers.empty() || numbers.size() % numbers_per_shape != 0)
      source.fail(assignment.place, "&" + group.name + ": " + key.name +
                                        " takes M, N, K and factor of each shape, found " +
                                        std::to_string(numbers.size()) + " numbers");
    std::vector<MeasuredShape>& own = shapes[key.name];
    for (size_t i = 0; i < numbers.size(); i += numbers_per_shape)
      own.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3]});
  }
  return shapes;
}

std::string shapes_text(const MeasuredShapes& shapes) {
  if (shapes.empty()) return "";
  std::string text =
      std::string("&") + shapes_group + "  ! M, N, K, measured time / time by the model above\n";
  for (const auto& [key, own] : shapes) {
    text += "  " + key + " =\n";
    for (const MeasuredShape& each : own)
      text += printed("    %.10g, %.10g, %.10g, %.4g%s\n", each.M, each.N, each.K, each.factor,
                      &each == &own.back() ? "" : ",");
  }
  return text + "/\n";
}

}  // namespace gptbench
