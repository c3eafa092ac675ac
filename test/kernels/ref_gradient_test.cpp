// The references of everything but attention against finite differences (ref_gradient.h).
#include "ref_gradient.h"

namespace gptbench::test {

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
  kernels.linear_backward_input(*queue, {dx.data(), dy.data(), w.data(), R, K, N, {}});
  kernels.linear_backward_weight(*queue,
                                 {dw.data(), dbias.data(), dy.data(), x.data(), R, K, N, {}});
  expect_gradient(x, dx, loss, "x");
  expect_gradient(w, dw, loss, "weight");
  expect_gradient(bias, dbias, loss, "bias");
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

TEST_F(RefGradient, RmsNorm) {
  const int64_t R = 4, C = 9;
  Vector x = random_array<double>(R * C, 1), gamma = random_array<double>(C, 2);
  const Vector dy = random_array<double>(R * C, 4);
  Vector y(x.size()), rstd(static_cast<size_t>(R));
  const auto loss = [&] {
    kernels.rmsnorm_forward(*queue, {y.data(), rstd.data(), x.data(), gamma.data(), R, C, 1e-5});
    return dot(y, dy);
  };
  loss();
  double square = 0.0;
  for (size_t c = 0; c < 9; ++c) square += x[c] * x[c] / 9.0;
  EXPECT_NEAR(y[2], x[2] * gamma[2] / std::sqrt(square + 1e-5), 1e-14);

  Vector dx(x.size()), dgamma(gamma.size());
  kernels.rmsnorm_backward(
      *queue, {dx.data(), dgamma.data(), dy.data(), x.data(), gamma.data(), rstd.data(), R, C});
  expect_gradient(x, dx, loss, "x");
  expect_gradient(gamma, dgamma, loss, "gamma");

  // Accumulation adds the same once more.
  Vector twice = dx;
  Vector twice_gamma = dgamma;
  kernels.rmsnorm_backward(*queue, {twice.data(), twice_gamma.data(), dy.data(), x.data(),
                                    gamma.data(), rstd.data(), R, C});
  for (size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(twice[i], 2.0 * dx[i], 1e-13);
  for (size_t i = 0; i < gamma.size(); ++i) EXPECT_NEAR(twice_gamma[i], 2.0 * dgamma[i], 1e-13);
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

TEST_F(RefGradient, Swiglu) {
  const int64_t R = 5, F = 8;
  Vector x = random_array<double>(2 * R * F, 1, 2.0);
  const Vector dy = random_array<double>(R * F, 2);
  Vector y(dy.size()), dx(x);
  kernels.swiglu_backward(*queue, {dx.data(), dy.data(), dx.data(), R, F});  // in place
  const auto loss = [&] {
    kernels.swiglu_forward(*queue, {y.data(), x.data(), R, F});
    return dot(y, dy);
  };
  expect_gradient(x, dx, loss, "x");
  loss();
  EXPECT_NEAR(y[8], x[16] / (1.0 + std::exp(-x[16])) * x[24], 1e-14);  // row 1, column 0
}

TEST_F(RefGradient, Tanh) {
  const int64_t n = 40;
  Vector x = random_array<double>(n, 1);
  const Vector dy = random_array<double>(n, 2);
  Vector y(x.size()), dx(dy);
  const auto loss = [&] {
    kernels.tanh_forward(*queue, {y.data(), x.data(), n});
    return dot(y, dy);
  };
  loss();
  EXPECT_NEAR(y[0], std::tanh(x[0]), 1e-15);
  kernels.tanh_backward(*queue, {dx.data(), dx.data(), y.data(), n});  // in place
  expect_gradient(x, dx, loss, "x");
}

// A rotation: its inverse is its gradient, and brings x back. Elements d and d + D/2 are a pair.
TEST_F(RefGradient, Rotary) {
  const int64_t R = 6, heads = 2, D = 6, row = 15, T_local = 3;
  const Positions positions{{5, 40}, 2};  // 5, 6, 40
  Vector x = random_array<double>(R * row, 1);
  const Vector dy = random_array<double>(R * row, 2), before = x;
  const auto rotate = [&](Vector& v, bool inverse) {
    kernels.rotary(*queue, {v.data(), R, heads, D, row, 1e4, inverse, T_local, positions});
  };
  const auto loss = [&] {
    Vector y = x;
    rotate(y, false);
    return dot(y, dy);
  };
  Vector dx = dy;
  rotate(dx, true);
  expect_gradient(x, dx, loss, "x");

  rotate(x, false);
  // Row 5 stands at position 40; head 1, pair 2 turns by 40 / 10000^(4/6).
  const size_t first = 5 * 15 + 6 + 2, second = first + 3;
  const double angle = 40.0 * std::pow(1e4, -4.0 / 6.0);
  EXPECT_NEAR(x[first], before[first] * std::cos(angle) - before[second] * std::sin(angle), 1e-14);
  EXPECT_NEAR(x[second], before[second] * std::cos(angle) + before[first] * std::sin(angle), 1e-14);
  EXPECT_EQ(x[12], before[12]);  // between the heads of one row and the next
  rotate(x, true);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], before[i], 1e-14);
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

// A rank's two pieces of each sequence, with token types.
TEST_F(RefGradient, EmbeddingOfPiecesAndTypes) {
  const int64_t R = 8, T_local = 4, T = 9, C = 3, V_tp = 6;
  const Positions pieces{{1, 6}, 2};  // 1, 2, 6, 7
  const auto tokens = random_tokens(R, 1, V_tp), types = random_tokens(R, 2, 2);
  Vector table = random_array<double>(V_tp * C, 2), positions = random_array<double>(T * C, 3),
         type_table = random_array<double>(2 * C, 5);
  const Vector dy = random_array<double>(R * C, 4);
  Vector y(dy.size()), dtable(table.size()), dpositions(positions.size()),
      dtypes(type_table.size());
  const auto loss = [&] {
    kernels.embedding_forward(
        *queue, {y.data(), tokens.data(), table.data(), positions.data(), R, T_local, C, 0, V_tp,
                 pieces, types.data(), type_table.data()});
    return dot(y, dy);
  };
  kernels.embedding_backward(*queue, {dtable.data(), dpositions.data(), dy.data(), tokens.data(), R,
                                      T_local, C, 0, V_tp, pieces, types.data(), dtypes.data()});
  expect_gradient(table, dtable, loss, "token_table");
  expect_gradient(positions, dpositions, loss, "position_table");
  expect_gradient(type_table, dtypes, loss, "type_table");
  loss();
  const auto token = static_cast<size_t>(tokens[6]), type = static_cast<size_t>(types[6]);
  EXPECT_NEAR(y[6 * 3], table[token * 3] + positions[6 * 3] + type_table[type * 3], 1e-15);
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

// Rows with a negative target add nothing to the loss and have no gradient.
TEST_F(RefGradient, CrossEntropyOfIgnoredRows) {
  const int64_t R = 5, V = 7;
  const int32_t targets[] = {3, -1, 6, -100, 0};
  Vector logits = random_array<double>(R * V, 2);
  const double dscale = 1.0 / 3.0;
  Vector max(static_cast<size_t>(R)), sum(max), target(max);
  Vector dlogits;
  const auto loss = [&] {
    dlogits = logits;
    double loss_sum = 0.0;
    kernels.cross_entropy_statistics(
        *queue, {max.data(), sum.data(), target.data(), dlogits.data(), targets, R, V, V, 0});
    kernels.cross_entropy_finish(*queue, {&loss_sum, dlogits.data(), max.data(), sum.data(),
                                          target.data(), targets, R, V, V, 0, dscale});
    return dscale * loss_sum;
  };
  const double value = loss();
  double expected = 0.0;
  for (const size_t r : {0, 2, 4}) {
    double row = 0.0;
    for (size_t j = 0; j < 7; ++j) row += std::exp(logits[r * 7 + j]);
    expected += dscale * (std::log(row) - logits[r * 7 + static_cast<size_t>(targets[r])]);
  }
  EXPECT_NEAR(value, expected, 1e-13);
  const Vector gradient = dlogits;
  for (const size_t r : {1, 3})
    for (size_t j = 0; j < 7; ++j) EXPECT_EQ(gradient[r * 7 + j], 0.0);
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
