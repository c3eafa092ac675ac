#include "kernel_test.h"

namespace gptbench::test {

namespace {

template <class T>
constexpr DType dtype_of() {
  return activation_type(compute_of<T>());
}

// Master parameters P, moments M, gradients G.
template <class A, class P, class M, class G>
void expect_adamw(const Devices& devices) {
  for (const int64_t n : {0, 1, 17, 9001})
    for (const int64_t t : {1, 1000})
      for (const bool with_working : {false, true}) {
        const auto g = random_array<G>(n, 1, 0.01);
        auto p = random_array<P>(n, 2);
        auto m = random_array<M>(n, 3, 0.01), v = random_array<M>(n, 4, 0.01);
        for (M& x : v) assign(x, value_of(x) * value_of(x));
        auto p_ref = p;
        auto m_ref = m, v_ref = v;
        std::vector<A> working(p.size()), working_ref(working);
        const double factor = 0.37;
        devices.host_kernels<A>().adamw(
            *devices.queue, {p.data(), m.data(), v.data(), g.data(),
                             with_working ? working.data() : nullptr, &factor, n, t, 6e-4, 0.9,
                             0.95, 1e-8, 0.1, dtype_of<P>(), dtype_of<M>(), dtype_of<G>()});
        devices.ref_kernels<A>().adamw(
            *devices.queue, {p_ref.data(), m_ref.data(), v_ref.data(), g.data(),
                             with_working ? working_ref.data() : nullptr, &factor, n, t, 6e-4, 0.9,
                             0.95, 1e-8, 0.1, dtype_of<P>(), dtype_of<M>(), dtype_of<G>()});
        // Each result is a sum of two terms of a few roundings, and one of storage where that is
        // narrower; m cancels where its terms oppose.
        const auto stored = [](double ulp) { return ulp > eps32 * 4 ? ulp : 0.0; };
        expect_close(m, m_ref, 8 * eps32 * (max_abs(m_ref) + 0.1 * max_abs(g)), stored(ulp_of<M>()),
                     "m");
        expect_close(v, v_ref, 0.0, 8 * eps32 + stored(ulp_of<M>()), "v");
        // lr times a step of at most 1 / (1 - b1) / sqrt(1 - b2) < 50, 16 roundings; p's own.
        const double p_error = 6e-4 * 50 * 16 * eps32;
        expect_close(p, p_ref, p_error, 2 * eps32 + stored(ulp_of<P>()), "p");
        expect_close(working, working_ref, p_error, 2 * eps32 + ulp_of<A>(), "working");
        if (!with_working) continue;
        for (size_t i = 0; i < p.size(); ++i) {
          A rounded;
          assign(rounded, value_of(p[i]));
          ASSERT_EQ(value_of(working[i]), value_of(rounded));
        }
      }
}

}  // namespace

TYPED_TEST(HostKernel, AdamWEqualsReference) {
  using A = TypeParam;
  expect_adamw<A, float, float, float>(*this);
  if constexpr (sizeof(A) == sizeof(float)) return;
  expect_adamw<A, float, float, A>(*this);
  expect_adamw<A, float, A, float>(*this);
  expect_adamw<A, float, A, A>(*this);
  expect_adamw<A, A, float, float>(*this);
  expect_adamw<A, A, float, A>(*this);
  expect_adamw<A, A, A, float>(*this);
  expect_adamw<A, A, A, A>(*this);
}

TYPED_TEST(HostKernel, SquaredNormEqualsReferenceAndAccumulates) {
  using A = TypeParam;
  const KernelTable &host = this->template host_kernels<A>(),
                    &ref = this->template ref_kernels<A>();
  // The last has more blocks than one round of partial sums holds.
  for (const int64_t n : {0, 1, 4095, 4097, 1024 * 4096 + 5}) {
    const auto g = random_array<float>(n, 1);
    double sum = 2.0, sum_ref = 2.0, again = 2.0;
    host.squared_norm(*this->queue, {&sum, g.data(), n, DType::f32});
    host.squared_norm(*this->queue, {&again, g.data(), n, DType::f32});
    ref.squared_norm(*this->queue, {&sum_ref, g.data(), n, DType::f32});
    EXPECT_NEAR(sum, sum_ref, static_cast<double>(n + 1) * 0x1p-53 * sum_ref);  // doubles
    EXPECT_EQ(sum, again);

    const auto narrow = random_array<A>(n, 1);
    sum = sum_ref = 2.0;
    host.squared_norm(*this->queue, {&sum, narrow.data(), n, dtype_of<A>()});
    ref.squared_norm(*this->queue, {&sum_ref, narrow.data(), n, dtype_of<A>()});
    EXPECT_NEAR(sum, sum_ref, static_cast<double>(n + 1) * 0x1p-53 * sum_ref);
  }
}

TYPED_TEST(HostKernel, ClipFactor) {
  using A = TypeParam;
  for (const KernelTable* kernels :
       {&this->template host_kernels<A>(), &this->template ref_kernels<A>()}) {
    const auto factor_of = [&](double norm2, double clip) {
      double factor = -1.0;
      kernels->clip_factor(*this->queue, {&factor, &norm2, clip});
      return factor;
    };
    EXPECT_EQ(factor_of(16.0, 0.0), 1.0);
    EXPECT_EQ(factor_of(16.0, 4.0), 1.0);
    EXPECT_EQ(factor_of(16.0, 1.0), 0.25);
    EXPECT_EQ(factor_of(0.0, 1.0), 1.0);
  }
}

}  // namespace gptbench::test
