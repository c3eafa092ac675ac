#include "kernel_test.h"

namespace gptbench::test {

namespace {

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
        const double factor = 0.37;
        // lr times a step of 16 roundings, in which the terms of m may cancel.
        std::vector<double> p_error;
        for (size_t i = 0; i < p.size(); ++i) {
          const double gradient = factor * value_of(g[i]);
          const double terms = 0.9 * std::abs(value_of(m[i])) + 0.1 * std::abs(gradient);
          const double square = 0.95 * value_of(v[i]) + 0.05 * gradient * gradient;
          const double td = static_cast<double>(t);
          const double size = terms / (1.0 - std::pow(0.9, td)) /
                              (std::sqrt(square / (1.0 - std::pow(0.95, td))) + 1e-8);
          p_error.push_back(6e-4 * size * 16 * eps32);
        }
        std::vector<A> working(p.size()), working_ref(working);
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
  expect_adamw<A, A, float, float>(*this);
  expect_adamw<A, A, float, A>(*this);
  // Moments of f16, in which squares vanish, are of no plan.
  if constexpr (std::is_same_v<A, float16>) return;
  expect_adamw<A, float, A, float>(*this);
  expect_adamw<A, float, A, A>(*this);
  expect_adamw<A, A, A, float>(*this);
  expect_adamw<A, A, A, A>(*this);
}

template <typename A>
void expect_squared_norm(const Devices& devices, int64_t n) {
  const KernelTable &host = devices.host_kernels<A>(), &ref = devices.ref_kernels<A>();
  const auto g = random_array<float>(n, 1);
  double sum = 2.0, sum_ref = 2.0, again = 2.0;
  host.squared_norm(*devices.queue, {&sum, g.data(), n, DType::f32});
  host.squared_norm(*devices.queue, {&again, g.data(), n, DType::f32});
  ref.squared_norm(*devices.queue, {&sum_ref, g.data(), n, DType::f32});
  EXPECT_NEAR(sum, sum_ref, static_cast<double>(n + 1) * 0x1p-53 * sum_ref);  // doubles
  EXPECT_EQ(sum, again);

  const auto narrow = random_array<A>(n, 1);
  sum = sum_ref = 2.0;
  host.squared_norm(*devices.queue, {&sum, narrow.data(), n, dtype_of<A>()});
  ref.squared_norm(*devices.queue, {&sum_ref, narrow.data(), n, dtype_of<A>()});
  EXPECT_NEAR(sum, sum_ref, static_cast<double>(n + 1) * 0x1p-53 * sum_ref);
}

TYPED_TEST(HostKernel, SquaredNormEqualsReferenceAndAccumulates) {
  for (const int64_t n : {0, 1, 4095, 4097}) expect_squared_norm<TypeParam>(*this, n);
}

TYPED_TEST(HostKernel, SquaredNormOfMoreBlocksThanOneRoundOfPartialSumsHolds) {
  expect_squared_norm<TypeParam>(*this, 1024 * 4096 + 5);
}

// Sums of two numbers, rounded once, have one result. 60,001 numbers are more than the emulation's
// threads take in one round.
TYPED_TEST(HostKernel, AccumulateTriadAndSumScalarsAreExact) {
  using A = TypeParam;
  for (const KernelTable* kernels :
       {&this->template host_kernels<A>(), &this->template ref_kernels<A>()})
    for (const int64_t n : {0, 1, 4096, 9001, 60001}) {
      const auto x = random_array<float>(n, 1), y = random_array<float>(n, 2);
      auto sum = y;
      sum.push_back(7.0f);
      kernels->accumulate(*this->queue, {sum.data(), x.data(), n});
      for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(sum[i], y[i] + x[i]) << i;
      EXPECT_EQ(sum.back(), 7.0f);
      kernels->triad(*this->queue, {sum.data(), y.data(), x.data(), n, -0.5});
      for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(sum[i], y[i] - 0.5f * x[i]) << i;
      EXPECT_EQ(sum.back(), 7.0f);
      const double values[] = {1.0, 0x1p-50, 2.0, 4.0};
      double total = 9.0;
      kernels->sum_scalars(*this->queue, {&total, values, 4});
      EXPECT_EQ(total, 7.0 + 0x1p-50);
      kernels->sum_scalars(*this->queue, {&total, values, 0});
      EXPECT_EQ(total, 0.0);
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
    for (const double clip : {0.0, 1.0})
      for (const double norm2 : {HUGE_VAL, std::nan("")})
        EXPECT_TRUE(std::isnan(factor_of(norm2, clip)));

    double factor = -1.0;
    double norm2 = 16.0, loss_scale = 8.0;
    kernels->clip_factor(*this->queue, {&factor, &norm2, 1.0, &loss_scale});
    EXPECT_EQ(factor, 0.25 / 8.0);
  }
}

// What happens to the scale over steps whose gradient is finite (f) or not (N, I).
TYPED_TEST(HostKernel, LossScaleFollowsItsRule) {
  using A = TypeParam;
  struct Case {
    int64_t window, hysteresis;
    double growth, backoff;
    const char* steps;
    std::vector<double> scales;  // after each
  };
  const Case cases[] = {
      {2, 1, 2.0, 0.5, "NIfffff", {512, 256, 256, 512, 512, 1024, 1024}},
      {2, 2, 4.0, 0.25, "IfINfffI", {1024, 1024, 256, 64, 64, 256, 256, 256}},
      {3, 1, 2.0, 0.5, "ffNfff", {1024, 1024, 512, 512, 512, 1024}},
      {0, 1, 1.0, 1.0, "fNf", {1024, 1024, 1024}},  // fixed
  };
  for (const KernelTable* kernels :
       {&this->template host_kernels<A>(), &this->template ref_kernels<A>()})
    for (const Case& c : cases) {
      SCOPED_TRACE(c.steps);
      double state[3] = {1024.0, 0.0, static_cast<double>(c.hysteresis)};
      for (size_t i = 0; i < c.scales.size(); ++i) {
        const bool good = c.steps[i] == 'f';
        const double before = state[0];
        double norm2 = good ? 9.0 * before * before : c.steps[i] == 'N' ? std::nan("") : INFINITY;
        double used = -1.0, next = -1.0, skip = -1.0;
        kernels->loss_scale(*this->queue, {state, &norm2, &used, &next, &skip, c.growth, c.backoff,
                                           c.window, c.hysteresis});
        EXPECT_EQ(used, before) << i;
        EXPECT_EQ(next, c.scales[i]) << i;
        EXPECT_EQ(state[0], c.scales[i]) << i;
        EXPECT_EQ(skip, good ? 0.0 : 1.0) << i;
        if (good)
          EXPECT_EQ(norm2, 9.0) << i;
        else
          EXPECT_FALSE(std::isfinite(norm2)) << i;
      }
    }
}

// A step that is skipped, by its flag or by a factor that is NaN, leaves the state as it is,
// whatever the gradient holds, and the working copy is that of the master; one that is not, as if
// it could not be.
TYPED_TEST(HostKernel, AdamWSkips) {
  using A = TypeParam;
  for (const KernelTable* kernels :
       {&this->template host_kernels<A>(), &this->template ref_kernels<A>()})
    for (const auto& [skip, factor] : {std::pair{0.0, 0.5}, {1.0, 0.5}, {0.0, std::nan("")}}) {
      const bool skips = skip != 0.0 || std::isnan(factor);
      const double* const scale = &factor;
      const int64_t n = 9001;
      auto g = random_array<float>(n, 1);
      if (skips) g[3] = g[8000] = std::nanf("");
      const auto p = random_array<float>(n, 2), m = random_array<float>(n, 3);
      std::vector<float> v(p.size(), 0.5f);
      const auto run = [&](std::vector<float>& p1, std::vector<float>& m1, std::vector<float>& v1,
                           std::vector<A>& working, const double* flag) {
        kernels->adamw(*this->queue,
                       {p1.data(), m1.data(), v1.data(), g.data(), working.data(), scale, n, 3, 0.1,
                        0.9, 0.95, 1e-8, 0.1, DType::f32, DType::f32, DType::f32, nullptr, flag});
      };
      auto p1 = p, m1 = m, v1 = v;
      std::vector<A> working(p.size());
      const double flag = skip;
      run(p1, m1, v1, working, &flag);
      for (size_t i = 0; i < p.size(); ++i) {
        A rounded;
        assign(rounded, value_of(p1[i]));
        ASSERT_EQ(value_of(working[i]), value_of(rounded));
      }
      if (skips) {
        expect_same_bits(p1, p, "p");
        expect_same_bits(m1, m, "m");
        expect_same_bits(v1, v, "v");
      } else {
        auto p2 = p, m2 = m, v2 = v;
        run(p2, m2, v2, working, nullptr);
        expect_same_bits(p1, p2, "p");
        expect_same_bits(m1, m2, "m");
        expect_same_bits(v1, v2, "v");
      }
    }
}

}  // namespace gptbench::test
