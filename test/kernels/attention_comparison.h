// Attention of a device's kernels against the reference: whole sequences, and the blocks of keys
// that context parallelism brings.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "attention_data.h"

namespace gptbench::test {

// Errors relative to the largest element of a result. f32: scores are sums of D terms of size about
// one, results sums of up to T (H / H_kv) terms: (D + T H / H_kv) eps32, and 8 roundings in
// between. Of 2 bytes: probabilities, their gradients and the stored output are rounded to A once
// each, half a unit in the last place, in sums that do not exceed the largest element times 2;
// inputs are the same.
template <class A>
double tolerance_of(const AttentionCase& c) {
  const double sums = static_cast<double>(c.D + c.T * (c.H / c.H_kv) + 8) * eps32;
  return sizeof(A) == sizeof(float) ? sums : sums + 3 * 2 * ulp_of<A>() / 2;
}

// Equal where one is infinite.
inline void expect_lse(const std::vector<float>& lse, const std::vector<float>& reference,
                       const AttentionCase& c) {
  double largest = 0.0;
  for (const float x : reference)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(value_of(x)));
  const double tolerance = static_cast<double>(c.D + c.T) * eps32 * (1.0 + largest);
  for (size_t i = 0; i < lse.size(); ++i) {
    if (lse[i] == reference[i]) continue;
    ASSERT_NEAR(lse[i], reference[i], tolerance) << i;
  }
}

// What is compared, and what both run on.
struct AttentionComparison {
  const KernelTable& tested;
  const KernelTable& reference;
  Queue& queue;
  Workspace workspace;
};

// Rows of `aligned` data start at multiples of 16 bytes.
template <class A>
void expect_equals_reference(const AttentionComparison& on, const AttentionCase& c,
                             bool aligned = false) {
  SCOPED_TRACE(testing::PrintToString(c));
  AttentionData<A> tested(c, aligned), ref(c, aligned);
  tested.forward(on.tested, on.queue, on.workspace);
  ref.forward(on.reference, on.queue, on.workspace);
  const double tolerance = tolerance_of<A>(c);
  expect_close(tested.out, ref.out, tolerance * max_abs(ref.out), ulp_of<A>(), "out");
  expect_lse(tested.lse, ref.lse, c);

  tested.out = ref.out;
  tested.lse = ref.lse;
  tested.backward(on.tested, on.queue, on.workspace);
  ref.backward(on.reference, on.queue, on.workspace);
  expect_close(tested.dqkv, ref.dqkv, tolerance * max_abs(ref.dqkv), ulp_of<A>(), "dqkv");
}

// Of two and of three ranks, whose pieces of the sequences follow one another or are dealt out in
// zigzag.
template <class A>
void expect_blocks_equal_reference(const AttentionComparison& on, const AttentionCase& c,
                                   bool aligned = false) {
  for (const int64_t ranks : {2, 3})
    for (const bool zigzag : {false, true}) {
      SCOPED_TRACE(testing::Message() << testing::PrintToString(c) << ", " << ranks << " ranks"
                                      << (zigzag ? ", zigzag" : ""));
      AttentionData<A> whole(c, aligned);
      whole.forward(on.reference, on.queue, on.workspace);
      RingAttention<A> tested(whole, ranks, zigzag), ref(whole, ranks, zigzag);
      tested.forward(on.tested, on.queue, on.workspace);
      ref.forward(on.reference, on.queue, on.workspace);
      const double tolerance = tolerance_of<A>(c);
      expect_close(tested.out, ref.out, tolerance * max_abs(ref.out), 0.0, "out");
      expect_lse(tested.lse, ref.lse, c);
      tested.backward(on.tested, on.queue, on.workspace);
      ref.backward(on.reference, on.queue, on.workspace);
      expect_close(tested.dqkv, ref.dqkv, tolerance * max_abs(ref.dqkv), 0.0, "dqkv");
    }
}

}  // namespace gptbench::test
