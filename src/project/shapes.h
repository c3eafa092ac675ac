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

// The factor of any shape: the mean of ln(factor) of the measured ones, each weighted by d^-6. Of
// attention and messages d^2 is the sum of squares of ln(M / M'), ln(N / N') and ln(K / K'). Of
// GEMMs it is that of twice the logarithm of the smaller of M and N over that of the measured one,
// of half that of the larger one, of an eighth that of K, and of ln(p(M) / p(M')) and
// ln(p(N) / p(N')), p the power of two in a number, at most 1,024: where rows begin at the same
// place in each page, caches hold fewer of them. This tells GEMMs that are left out well
// (test/bench/README.md). A measured shape has its own factor; 1 where the kernel was not measured
// in this type.
double shape_factor(const MeasuredShapes& shapes, const std::string& kernel_type, double M,
                    double N, double K);

// The group &shapes of a profile: "linear_forward_fp32 = M, N, K, factor, ...". Throws
// Error(Exit::usage) with the place of what is wrong.
MeasuredShapes read_shapes(const Source& source, const Group& group);
// The group's text, one shape per line; "" without shapes.
std::string shapes_text(const MeasuredShapes& shapes);

}  // namespace gptbench
