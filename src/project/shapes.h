// Measured shapes of a machine profile: how much longer than by its model a GEMM, attention or
// message of this shape takes. The model has one set of tiles for all kernels and types, and one
// bandwidth for all collectives and sizes; libraries have many algorithms.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "deck/namelist.h"

namespace gptbench {

constexpr const char* shapes_group = "shapes";

// factor = measured time / time by the model without factors. linear_*: result [M, N], inner
// dimension K; attention_*: M = K = T positions, N = D. Collectives: a group of M ranks, N of them
// per node, about an array of K bytes; send, of K bytes: M = 2, N = 2 within a node, else 1.
struct MeasuredShape {
  double M = 0.0, N = 0.0, K = 0.0, factor = 1.0;
};

// By kernel and type: "linear_forward_fp32"; of messages by operation: "all_reduce".
using MeasuredShapes = std::map<std::string, std::vector<MeasuredShape>>;

// The factor of a shape [M, N, K]. A measured shape has its own. Others have the mean of the
// measured ln(factor), weighted by d^-6. With M', N', K' the measured shape, d^2 is
//   attention, messages: ln^2(M / M') + ln^2(N / N') + ln^2(K / K')
//   GEMMs: (2 ln(min(M, N) / min(M', N')))^2 + (ln(max(M, N) / max(M', N')) / 2)^2
//          + (ln(K / K') / 8)^2 + ln^2(p(N) / p(N')) + ln^2(p(W) / p(W'))
// where W is K, but M for linear_backward_weight, and p is the largest power of two that divides a
// number, at most 1,024. N and W are the widths of a layer, the lengths of its arrays' rows: rows
// that begin at the same offset of each page compete for the same sets of a cache. The weights were
// chosen by leaving measured GEMMs out (test/bench/README.md). 1 where the kernel was not measured
// in this type.
double shape_factor(const MeasuredShapes& shapes, const std::string& kernel_type, double M,
                    double N, double K);

// The group &shapes of a profile: "linear_forward_fp32 = M, N, K, factor, ...". Throws
// Error(Exit::usage) with the place of what is wrong.
MeasuredShapes read_shapes(const Source& source, const Group& group);
// The group's text, one shape per line; "" without shapes.
std::string shapes_text(const MeasuredShapes& shapes);

}  // namespace gptbench
