#include "kernel_test.h"

namespace gptbench::test {

TYPED_TEST(HostKernel, EmbeddingEqualsReference) {
  using A = TypeParam;
  const int64_t V = 50, T = 9;
  const KernelTable &host = this->template host_kernels<A>(),
                    &ref = this->template ref_kernels<A>();
  for (const int64_t C : {1, 33, 768})
    for (const int64_t R : {0, 1, 45})
      for (const bool with_positions : {false, true}) {
        // This rank holds tokens 10 .. 29.
        const int64_t first_token = 10, V_tp = 20;
        const auto tokens = random_tokens(R, 1, V);
        const auto table = random_array<A>(V_tp * C, 2), positions = random_array<A>(T * C, 3);
        std::vector<A> y(static_cast<size_t>(R * C)), y_ref(y);
        const A* p = with_positions ? positions.data() : nullptr;
        host.embedding_forward(
            *this->queue, {y.data(), tokens.data(), table.data(), p, R, T, C, first_token, V_tp});
        ref.embedding_forward(*this->queue, {y_ref.data(), tokens.data(), table.data(), p, R, T, C,
                                             first_token, V_tp});
        expect_same_bits(y, y_ref, "y");  // one addition, rounded alike

        const auto dy = random_array<A>(R * C, 4);
        auto dtable = random_array<float>(V_tp * C, 5), dpositions = random_array<float>(T * C, 6);
        auto dtable_ref = dtable, dpositions_ref = dpositions;
        host.embedding_backward(
            *this->queue, {dtable.data(), with_positions ? dpositions.data() : nullptr, dy.data(),
                           tokens.data(), R, T, C, first_token, V_tp});
        ref.embedding_backward(*this->queue,
                               {dtable_ref.data(), with_positions ? dpositions_ref.data() : nullptr,
                                dy.data(), tokens.data(), R, T, C, first_token, V_tp});
        expect_same_bits(dtable, dtable_ref, "dtoken_table");  // the order of the sum is stated
        expect_same_bits(dpositions, dpositions_ref, "dposition_table");
      }
}

// Positions are more than the emulation's blocks (96), or columns more than the vectors of a block
// take at once (2,048); the last sequence is cut.
TYPED_TEST(HostKernel, EmbeddingGradientOfManyPositionsEqualsReference) {
  using A = TypeParam;
  struct Sizes {
    int64_t T, R, C;
  };
  for (const auto& [T, R, C] : {Sizes{130, 150, 8}, Sizes{3, 5, 2056}}) {
    const int64_t V = 20;
    const auto tokens = random_tokens(R, 1, V);
    const auto dy = random_array<A>(R * C, 4);
    auto dtable = random_array<float>(V * C, 5), dpositions = random_array<float>(T * C, 6);
    auto dtable_ref = dtable, dpositions_ref = dpositions;
    this->template host_kernels<A>().embedding_backward(
        *this->queue, {dtable.data(), dpositions.data(), dy.data(), tokens.data(), R, T, C, 0, V});
    this->template ref_kernels<A>().embedding_backward(
        *this->queue,
        {dtable_ref.data(), dpositions_ref.data(), dy.data(), tokens.data(), R, T, C, 0, V});
    expect_same_bits(dtable, dtable_ref, "dtoken_table");
    expect_same_bits(dpositions, dpositions_ref, "dposition_table");
  }
}

// A rank's two pieces of each sequence, with token types: sums of three terms.
TYPED_TEST(HostKernel, EmbeddingOfPiecesAndTypesEqualsReference) {
  using A = TypeParam;
  const int64_t V = 30, T = 40, T_local = 6, R = 24;
  const Positions pieces{{4, 33}, 3};
  const KernelTable &host = this->template host_kernels<A>(),
                    &ref = this->template ref_kernels<A>();
  for (const int64_t C : {1, 33, 768})
    for (const bool with_positions : {false, true}) {
      const int64_t first_token = 10, V_tp = 15;
      const auto tokens = random_tokens(R, 1, V), types = random_tokens(R, 7, 2);
      const auto table = random_array<A>(V_tp * C, 2), positions = random_array<A>(T * C, 3),
                 type_table = random_array<A>(2 * C, 8);
      std::vector<A> y(static_cast<size_t>(R * C)), y_ref(y);
      const EmbeddingForward forward{y.data(),
                                     tokens.data(),
                                     table.data(),
                                     with_positions ? positions.data() : nullptr,
                                     R,
                                     T_local,
                                     C,
                                     first_token,
                                     V_tp,
                                     pieces,
                                     types.data(),
                                     type_table.data()};
      EmbeddingForward forward_ref = forward;
      forward_ref.y = y_ref.data();
      host.embedding_forward(*this->queue, forward);
      ref.embedding_forward(*this->queue, forward_ref);
      const double largest = max_abs(table) + max_abs(positions) + max_abs(type_table);
      expect_close(y, y_ref, 2 * eps32 * largest, ulp_of<A>(), "y");

      const auto dy = random_array<A>(R * C, 4);
      auto dtable = random_array<float>(V_tp * C, 5), dpositions = random_array<float>(T * C, 6),
           dtypes = random_array<float>(2 * C, 9);
      auto dtable_ref = dtable, dpositions_ref = dpositions, dtypes_ref = dtypes;
      host.embedding_backward(
          *this->queue,
          {dtable.data(), with_positions ? dpositions.data() : nullptr, dy.data(), tokens.data(), R,
           T_local, C, first_token, V_tp, pieces, types.data(), dtypes.data()});
      ref.embedding_backward(*this->queue,
                             {dtable_ref.data(), with_positions ? dpositions_ref.data() : nullptr,
                              dy.data(), tokens.data(), R, T_local, C, first_token, V_tp, pieces,
                              types.data(), dtypes_ref.data()});
      expect_same_bits(dtable, dtable_ref, "dtoken_table");  // the order of the sum is stated
      expect_same_bits(dpositions, dpositions_ref, "dposition_table");
      expect_same_bits(dtypes, dtypes_ref, "dtype_table");
    }
}

}  // namespace gptbench::test
