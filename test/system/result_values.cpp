// result_values FILE.h5: what shell tests want of a result file, one "name value..." a line; values
// of ranks stand behind one another.
#include <cstdio>

#include "base/error.h"
#include "io/result_file.h"

int main(int argc, char** argv) {
  using namespace gptbench;
  if (argc != 2) {
    std::fprintf(stderr, "usage: result_values FILE.h5\n");
    return 2;
  }
  try {
    const Record record = read_result(argv[1]);
    std::printf("status %s\nverdict %s\nreason %s\n", record.status.c_str(), record.verdict.c_str(),
                record.reason.c_str());
    std::printf("num_params %lld\n", static_cast<long long>(record.summary.num_params));
    std::printf("steps %zu\n", record.loss.size());
    std::printf("skipped_steps %lld\n", static_cast<long long>(record.summary.skipped_steps));
    for (const MemoryEntry& entry : record.memory) {
      std::printf("%s_bytes", entry.name.c_str());
      for (const int64_t bytes : entry.bytes) std::printf(" %lld", static_cast<long long>(bytes));
      std::printf("\n");
    }
    for (const VerifyEntry& entry : record.verify)
      std::printf("check %s %s\n", entry.name.c_str(), entry.passed ? "passed" : "failed");
    for (size_t step = 0; step < record.loss.size(); ++step)
      std::printf("loss %zu %.17g\n", step, record.loss[step]);
    for (size_t step = 0; step < record.loss_scale.size(); ++step)
      std::printf("scale %zu %.17g\n", step, record.loss_scale[step]);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
