// The references against finite differences of themselves, in double: for a random direction d and
// the loss L = sum of w y, the gradient g of an input x must give
//   <g, d> = (L(x + h d) - L(x - h d)) / 2h + O(h^2 L''') + O(2^-53 |L| / h).
// With h = 2^-17, L below 1e3 and third derivatives along d below 1e3, both errors are below 1e-7.
#include <functional>

#include "kernel_test.h"

namespace gptbench::test {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

class RefGradient : public ::testing::Test, public Devices {
 protected:
  const KernelTable& kernels = ref_kernels<double>();

  // `loss` reads x, which is moved along a random direction and put back.
  static void expect_gradient(Vector& x, const Vector& gradient,
                              const std::function<double()>& loss, const char* what) {
    constexpr double h = 0x1p-17;
    const Vector direction = random_array<double>(static_cast<int64_t>(x.size()), 999);
    const Vector at = x;
    const auto loss_at = [&](double step) {
      for (size_t i = 0; i < x.size(); ++i) x[i] = at[i] + step * direction[i];
      return loss();
    };
    const double difference = (loss_at(h) - loss_at(-h)) / (2.0 * h);
    x = at;
    EXPECT_NEAR(dot(gradient, direction), difference, 1e-7 * (1.0 + std::abs(difference))) << what;
  }
};

}  // namespace

TEST_F(RefGradient, Linear) {
  const int64_t R = 5, K = 7, N = 4;
  Vector x = random_array<double>(R * K, 1), w = random_array<double>(N * K, 2),
         bias = random_array<double>(N, 3);
  const Vector dy = random_array<double>(R * N, 4);
  Vector y(dy.size());
  const auto loss = [&] {
    kernels.linear_forward(*queue, {y.data(), x.data(), w.data(), bias.data(), R, K, N, {}});
    return dot(y, dy);
  };
  Vector dx(x.size()), dw(w.size()), dbias(bias.size());
  kernels.linear_backward_input(*queue, {dx.data(), dy.data(), w.data(), R, K, N, false, {}});
  kernels.linear_backward_weight(*queue,
                                 {dw.data(), dbias.data(), dy.data(), x.data(), R, K, N, {}});
  expect_gradient(x, dx, loss, "x");
  expect_gradient(w, dw, loss, "weight");
  expect_gradient(bias, dbias, loss, "bias");

  // Accumulation adds the same once more.
  Vector twice = dx;
  kernels.linear_backward_input(*queue, {twice.data(), dy.data(), w.data(), R, K, N, true, {}});
  for (size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(twice[i], 2.0 * dx[i], 1e-13);
}

TEST_F(RefGradient, LayerNorm) {
  const int64_t R = 4, C = 9;
  Vector x = random_array<double>(R * C, 1), gamma = random_array<double>(C, 2),
         beta = random_array<double>(C, 3);
  const Vector dy = random_array<double>(R * C, 4);
  Vector y(x.size()), mean(static_cast<size_t>(R)), rstd(mean);
  const auto loss = [&] {
    kernels.layernorm_forward(*queue, {y.data(), mean.data(), rstd.data(), x.data(), gamma.data(),
                                       beta.data(), R, C, 1e-5});
    return dot(y, dy);
  };
  loss();
  Vector dx(x.size()), dgamma(gamma.size()), dbeta(beta.size());
  kernels.layernorm_backward(*queue, {dx.data(), dgamma.data(), dbeta.data(), dy.data(), x.data(),
                                      gamma.data(), mean.data(), rstd.data(), R, C});
  expect_gradient(x, dx, loss, "x");
  expect_gradient(gamma, dgamma, loss, "gamma");
  expect_gradient(beta, dbeta, loss, "beta");
}

TEST_F(RefGradient, Attention) {
  for (const bool causal : {true, false})
    for (const double rate : {0.0, 0.3}) {
      const int64_t B = 2, T = 7, H = 4, H_kv = 2, D = 3, q_row = H * D, kv_row = H_kv * D;
      Vector q = random_array<double>(B * T * q_row, 1),
             k = random_array<double>(B * T * kv_row, 2),
             v = random_array<double>(B * T * kv_row, 3);
      const Vector dout = random_array<double>(B * T * q_row, 4);
      Vector out(dout.size()), lse(static_cast<size_t>(B * H * T));
      AttentionShape shape = whole_sequences(B, T, H, H_kv, D, q_row, kv_row, q_row);
      shape.scale = 0.7;
      shape.causal = causal;
      shape.dropout = {rate, 5, 6};
      shape.first_sequence = 3;
      shape.first_head = 1;
      shape.H_global = 6;
      const auto loss = [&] {
        kernels.attention_forward(
            *queue, {out.data(), lse.data(), q.data(), k.data(), v.data(), shape, {}});
        return dot(out, dout);
      };
      loss();
      Vector dq(q.size()), dk(k.size()), dv(v.size());
      kernels.attention_backward(*queue, {dq.data(),
                                          dk.data(),
                                          dv.data(),
                                          dout.data(),
                                          q.data(),
                                          k.data(),
                                          v.data(),
                                          out.data(),
                                          lse.data(),
                                          shape,
                                          q_row,
                                          kv_row,
                                          T * q_row,
                                          T * kv_row,
                                          {}});
      expect_gradient(q, dq, loss, "q");
      expect_gradient(k, dk, loss, "k");
      expect_gradient(v, dv, loss, "v");
    }
}

// Rows of D longer than the reference sums at a time.
TEST_F(RefGradient, AttentionOfWideHeads) {
  const int64_t T = 3, D = 150;
  Vector q = random_array<double>(T * D, 1), k = random_array<double>(T * D, 2),
         v = random_array<double>(T * D, 3);
  const Vector dout = random_array<double>(T * D, 4);
  Vector out(dout.size()), lse(static_cast<size_t>(T));
  const AttentionShape shape = whole_sequences(1, T, 1, 1, D, D, D, D);
  const auto loss = [&] {
    kernels.attention_forward(*queue,
                              {out.data(), lse.data(), q.data(), k.data(), v.data(), shape, {}});
    return dot(out, dout);
  };
  loss();
  Vector dq(q.size()), dk(k.size()), dv(v.size());
  kernels.attention_backward(*queue, {dq.data(),
                                      dk.data(),
                                      dv.data(),
                                      dout.data(),
                                      q.data(),
                                      k.data(),
                                      v.data(),
                                      out.data(),
                                      lse.data(),
                                      shape,
                                      D,
                                      D,
                                      T * D,
                                      T * D,
                                      {}});
  expect_gradient(q, dq, loss, "q");
  expect_gradient(k, dk, loss, "k");
  expect_gradient(v, dv, loss, "v");
}

TEST_F(RefGradient, Gelu) {
  const int64_t n = 40;
  Vector x = random_array<double>(n, 1, 2.0);
  const Vector dy = random_array<double>(n, 2);
  Vector y(x.size()), dx(x.size());
  kernels.gelu_backward(*queue, {dx.data(), dy.data(), x.data(), n});
  expect_gradient(
      x, dx,
      [&] {
        kernels.gelu_forward(*queue, {y.data(), x.data(), n});
        return dot(y, dy);
      },
      "x");
}

TEST_F(RefGradient, ResidualAndDropout) {
  const int64_t n = 40;
  const Dropout dropout{0.25, 8, 9};
  const GlobalRows rows{3, 0, 5, 5, {}};
  Vector x = random_array<double>(n, 1), residual = random_array<double>(n, 2);
  const Vector dy = random_array<double>(n, 3);
  Vector y(x.size()), dx(x.size());
  const auto loss = [&] {
    kernels.residual_forward(*queue, {y.data(), residual.data(), x.data(), 10, 4, dropout, rows});
    return dot(y, dy);
  };
  kernels.dropout_backward(*queue, {dx.data(), dy.data(), 10, 4, dropout, rows});
  expect_gradient(x, dx, loss, "x");
  expect_gradient(residual, dy, loss, "residual");
}

TEST_F(RefGradient, Embedding) {
  const int64_t R = 12, T = 5, C = 3, V_tp = 4, first_token = 2;
  const auto tokens = random_tokens(R, 1, 8);
  Vector table = random_array<double>(V_tp * C, 2), positions = random_array<double>(T * C, 3);
  const Vector dy = random_array<double>(R * C, 4);
  Vector y(dy.size()), dtable(table.size()), dpositions(positions.size());
  const auto loss = [&] {
    kernels.embedding_forward(*queue, {y.data(), tokens.data(), table.data(), positions.data(), R,
                                       T, C, first_token, V_tp});
    return dot(y, dy);
  };
  kernels.embedding_backward(*queue, {dtable.data(), dpositions.data(), dy.data(), tokens.data(), R,
                                      T, C, first_token, V_tp});
  expect_gradient(table, dtable, loss, "token_table");
  expect_gradient(positions, dpositions, loss, "position_table");
}

TEST_F(RefGradient, CrossEntropy) {
  const int64_t R = 5, V_tp = 12, V_valid = 10;
  const auto targets = random_tokens(R, 1, V_valid);
  Vector logits = random_array<double>(R * V_tp, 2);
  const double dscale = 1.0 / 7.0;
  Vector max(static_cast<size_t>(R)), sum(max), target(max);
  Vector dlogits;
  const auto loss = [&] {
    dlogits = logits;
    double loss_sum = 0.0;
    kernels.cross_entropy_statistics(*queue, {max.data(), sum.data(), target.data(), dlogits.data(),
                                              targets.data(), R, V_tp, V_valid, 0});
    kernels.cross_entropy_finish(
        *queue, {&loss_sum, dlogits.data(), max.data(), sum.data(), target.data(), targets.data(),
                 R, V_tp, V_valid, 0, dscale});
    return dscale * loss_sum;
  };
  loss();
  const Vector gradient = dlogits;
  expect_gradient(logits, gradient, loss, "logits");
}

// One step from zero moments: m / (1 - b1) = g and v / (1 - b2) = g^2, so that p moves by
// lr (g / (|g| + epsilon) + weight_decay p).
TEST_F(RefGradient, AdamWFirstStep) {
  const double g[] = {2.0, -3.0, 0.5}, factor = 0.5;
  double p[] = {1.0, 2.0, -4.0}, m[3] = {}, v[3] = {};
  kernels.adamw(*queue, {p, m, v, g, nullptr, &factor, 3, 1, 0.1, 0.9, 0.95, 0.0, 0.25, DType::f64,
                         DType::f64, DType::f64});
  EXPECT_NEAR(p[0], 1.0 - 0.1 * (1.0 + 0.25 * 1.0), 1e-14);
  EXPECT_NEAR(p[1], 2.0 - 0.1 * (-1.0 + 0.25 * 2.0), 1e-14);
  EXPECT_NEAR(p[2], -4.0 - 0.1 * (1.0 - 0.25 * 4.0), 1e-14);
  EXPECT_NEAR(m[0], 0.1, 1e-15);
  EXPECT_NEAR(v[0], 0.05, 1e-15);
}

}  // namespace gptbench::test
