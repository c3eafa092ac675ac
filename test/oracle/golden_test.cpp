// Runs gptbench on the oracle's decks and compares with golden/*.csv, which PyTorch made in float64
// (make_golden.py): a check against an independent implementation that needs no Python.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "io/result_file.h"
#include "tensor_reader.h"

namespace gptbench {
namespace {

struct Golden {
  std::vector<double> loss, grad_norm;  // [step]
  struct Gradient {
    double norm, projection;
  };
  std::map<std::string, Gradient> gradients;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string oracle_path(const std::string& name) {
  return variable("GPTBENCH_SOURCE_DIR") + "/test/oracle/" + name;
}

Golden read_golden(const std::string& deck) {
  Golden golden;
  std::ifstream file(oracle_path("golden/" + deck + ".csv"));
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> field = split(line, ',');
    if (field.size() != 4 || field[0] == "quantity") continue;
    const double value = std::stod(field[2]);
    if (field[0] == "loss") golden.loss.push_back(value);
    if (field[0] == "grad_norm") golden.grad_norm.push_back(value);
    if (field[0] == "gradient") golden.gradients[field[1]] = {value, std::stod(field[3])};
  }
  return golden;
}

// As in make_golden.py.
double projection_of(const std::vector<double>& g) {
  double sum = 0.0;
  for (size_t i = 0; i < g.size(); ++i) {
    sum += g[i] * (static_cast<double>(7919 * i % 1009) / 1009.0 - 0.5);
  }
  return sum;
}

double norm_of(const std::vector<double>& g) {
  double sum = 0.0;
  for (const double x : g) sum += x * x;
  return std::sqrt(sum);
}

// Directory of the run's files. The tests run in a folder of their own.
std::string run(const std::string& deck, const std::string& device, const std::string& compute) {
  const std::string directory = deck + "_" + device + "_" + compute;
  std::string command = "'" + variable("GPTBENCH") + "' '" + oracle_path("decks/" + deck + ".in") +
                        "' run.device=" + device + " precision.compute=" + compute +
                        " output.dump=gradients output.peak_tflops=1 output.directory=" + directory;
  if (deck == "text") command += " 'data.path=" + oracle_path("decks/text.txt") + "'";
  command += " > " + directory + ".log 2>&1";
  const int status = std::system(command.c_str());
  if (status != 0) {
    std::ostringstream log;
    log << std::ifstream(directory + ".log").rdbuf();
    ADD_FAILURE() << command << "\n" << log.str();
  }
  return directory;
}

// The tolerances are those of tolerance.py for the largest deck here: `gradient` relative to the
// tensor's norm, `loss` relative to the loss at step 0, growing like the root of the steps.
struct Case {
  std::string deck, device, compute;
  double gradient, loss;
};

class GoldenValues : public testing::TestWithParam<Case> {};

TEST_P(GoldenValues, AreReproduced) {
  const Case& c = GetParam();
  const Golden golden = read_golden(c.deck);
  ASSERT_EQ(golden.loss.size(), 10u);
  ASSERT_EQ(golden.grad_norm.size(), 10u);
  const std::string directory = run(c.deck, c.device, c.compute);
  ASSERT_FALSE(HasFailure());

  const Record record = read_result(directory + "/result.h5");
  ASSERT_EQ(record.steps.loss.size(), golden.loss.size());
  ASSERT_EQ(record.steps.grad_norm.size(), golden.grad_norm.size());
  for (size_t step = 0; step < golden.loss.size(); ++step) {
    const double grown = std::sqrt(static_cast<double>(step + 1));
    EXPECT_NEAR(record.steps.loss[step], golden.loss[step], c.loss * grown * golden.loss[step])
        << step;
    EXPECT_NEAR(record.steps.grad_norm[step], golden.grad_norm[step],
                c.gradient * grown * golden.grad_norm[step])
        << step;
  }

  const std::string dump = directory + "/dump.h5";
  EXPECT_EQ(tensor_names(dump).size(), golden.gradients.size());
  for (const auto& [name, expected] : golden.gradients) {
    const std::vector<double> g = read_tensor(dump, "gradients/" + name);
    EXPECT_NEAR(norm_of(g), expected.norm, c.gradient * expected.norm) << name;
    // |sum d p| <= ||d|| ||p||, ||p|| = sqrt(size / 12) for uniform p; errors d are random with
    // respect to p, so ||d|| alone is the standard deviation up to 1 / sqrt(12): take 2 ||d||.
    EXPECT_NEAR(projection_of(g), expected.projection, 2.0 * c.gradient * expected.norm) << name;
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* deck : {"plain", "accumulate", "dropout", "text", "mpt", "mpt_alibi", "llama",
                           "bert", "bert_padded"}) {
    all.push_back({deck, "ref", "fp64", 6e-14, 7e-15});
    all.push_back({deck, "host", "fp32", 3.2e-5, 3.7e-6});
    all.push_back({deck, "host", "bf16", 0.072, 0.0079});
    all.push_back({deck, "host", "fp16", 0.018, 0.00196});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Decks, GoldenValues, testing::ValuesIn(cases()),
                         [](const auto& parameter) {
                           return parameter.param.deck + "_" + parameter.param.device + "_" +
                                  parameter.param.compute;
                         });

}  // namespace
}  // namespace gptbench
