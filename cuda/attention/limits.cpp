#include "cuda/attention/limits.h"

#include "base/error.h"
#include "base/units.h"
#include "plan/plan.h"

namespace gptbench {
namespace {

void at_most(int64_t largest, int64_t found, const std::string& what, const char* remedy) {
  if (found > largest)
    throw Error(Exit::usage, "device = 'cuda' requires " + what + " of at most " +
                                 std::to_string(largest) + " (found " + std::to_string(found) +
                                 "): " + remedy);
}

}  // namespace

void check_attention(const Plan& plan, const std::string& gpu, int64_t shared_bytes) {
  const ModelShape& local = plan.local;
  at_most(max_attention_head_size, local.D, "a head size", "increase model.num_attention_heads");
  at_most(max_attention_positions, local.T, "model.seq_length", "reduce it");
  at_most(max_attention_row, local.qkv(), "a number of elements of q, k and v per position",
          "increase parallel.tensor_parallel");
  at_most(max_attention_heads, local.H, "a number of heads per rank",
          "increase parallel.tensor_parallel");
  at_most(max_attention_sequences, plan.config.batch.micro_batch_size, "batch.micro_batch_size",
          "reduce it");

  const Precision precision = type_of_activations(plan.config);
  const int64_t needed = attention_shared_bytes(dtype_of(precision), local.D);
  if (needed > shared_bytes)
    throw Error(Exit::usage, "device = 'cuda': attention with heads of " + std::to_string(local.D) +
                                 " elements in " + name_of(precision) + " needs " +
                                 format_bytes(needed) + " of shared memory per block, " + gpu +
                                 " offers " + format_bytes(shared_bytes) +
                                 "; use precision.compute = 'bf16' with head sizes that are "
                                 "multiples of 8 up to 128, or head sizes up to 64");
}

}  // namespace gptbench
