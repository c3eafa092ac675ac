// The arithmetic of the emulated cuDNN: in float, results rounded to the type of their tensor.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/dtype.h"
#include "emulated_gpu/cudnn/graph.h"

namespace gptbench::emulation {
namespace {

constexpr float undefined = std::numeric_limits<float>::quiet_NaN();

template <class Visit>
void for_each_place(const Sizes& sizes, const Visit& visit) {
  int64_t at = 0;
  Sizes place;
  for (place[0] = 0; place[0] < sizes[0]; ++place[0])
    for (place[1] = 0; place[1] < sizes[1]; ++place[1])
      for (place[2] = 0; place[2] < sizes[2]; ++place[2])
        for (place[3] = 0; place[3] < sizes[3]; ++place[3]) visit(place, at++);
}

float load(cudnnDataType_t type, const void* base, int64_t at) {
  switch (type) {
    case CUDNN_DATA_BFLOAT16:
      return static_cast<float>(static_cast<const bfloat16*>(base)[at]);
    case CUDNN_DATA_HALF:
      return static_cast<float>(static_cast<const float16*>(base)[at]);
    case CUDNN_DATA_INT32:
      return static_cast<float>(static_cast<const int32_t*>(base)[at]);
    default:
      return static_cast<const float*>(base)[at];
  }
}

void store(cudnnDataType_t type, void* base, int64_t at, float value) {
  switch (type) {
    case CUDNN_DATA_BFLOAT16:
      static_cast<bfloat16*>(base)[at] = bfloat16(value);
      return;
    case CUDNN_DATA_HALF:
      static_cast<float16*>(base)[at] = float16(value);
      return;
    default:
      static_cast<float*>(base)[at] = value;
  }
}

float rounded(cudnnDataType_t type, float value) {
  switch (type) {
    case CUDNN_DATA_BFLOAT16:
      return static_cast<float>(bfloat16(value));
    case CUDNN_DATA_HALF:
      return static_cast<float>(float16(value));
    default:
      return value;
  }
}

// Values of all tensors, in the order of their dimensions.
class Evaluation {
 public:
  Evaluation(const Graph& graph, const std::map<int64_t, void*>& addresses,
             const std::map<int64_t, float>& values)
      : addresses_(addresses) {
    for (const auto& [id, tensor] : graph.tensors) {
      if (graph.writes(id)) continue;
      std::vector<float>& x = values_[id];
      if (tensor.by_value) {
        x.assign(1, values.at(id));
        continue;
      }
      x.resize(static_cast<size_t>(tensor.elements()));
      const void* const base = addresses.at(id);
      for_each_place(tensor.sizes, [&, t = &tensor](const Sizes& place, int64_t at) {
        x[static_cast<size_t>(at)] = load(t->type, base, t->offset(place));
      });
    }
  }

  void run(const Operation& o) {
    std::vector<float> y(static_cast<size_t>(o.y.elements()), 0.0f);
    switch (o.kind) {
      case Operation::Kind::pointwise:
        pointwise(o, y);
        break;
      case Operation::Kind::matmul:
        multiply(o, y);
        break;
      case Operation::Kind::reduction:
        reduce(o, y);
        break;
      case Operation::Kind::reshape:
        reshape(o, y);
        break;
    }
    for (float& value : y) value = rounded(o.y.type, value);
    if (!o.y.is_virtual) {
      void* const base = addresses_.at(o.y.id);
      for_each_place(o.y.sizes, [&](const Sizes& place, int64_t at) {
        store(o.y.type, base, o.y.offset(place), y[static_cast<size_t>(at)]);
      });
    }
    values_[o.y.id] = std::move(y);
  }

 private:
  const std::vector<float>& of(const Tensor& t) const { return values_.at(t.id); }

  void pointwise(const Operation& o, std::vector<float>& y) const {
    // Steps of a dense array, 0 along what is broadcast.
    std::vector<Sizes> steps;
    for (const Tensor& x : o.inputs) {
      Sizes step = {x.sizes[1] * x.sizes[2] * x.sizes[3], x.sizes[2] * x.sizes[3], x.sizes[3], 1};
      for (size_t axis = 0; axis < 4; ++axis)
        if (x.sizes[axis] == 1) step[axis] = 0;
      steps.push_back(step);
    }
    for_each_place(o.y.sizes, [&](const Sizes& place, int64_t at) {
      float x[3] = {};
      for (size_t i = 0; i < o.inputs.size(); ++i) {
        const Sizes& s = steps[i];
        x[i] = of(o.inputs[i])[static_cast<size_t>(place[0] * s[0] + place[1] * s[1] +
                                                   place[2] * s[2] + place[3] * s[3])];
      }
      y[static_cast<size_t>(at)] = result(o, x, place);
    });
  }

  static float result(const Operation& o, const float* x, const Sizes& place) {
    switch (o.mode) {
      case CUDNN_POINTWISE_EXP:
        return std::exp(x[0]);
      case CUDNN_POINTWISE_LOG:
        return std::log(x[0]);
      case CUDNN_POINTWISE_GEN_INDEX:
        return static_cast<float>(place[static_cast<size_t>(o.axis)]);
      case CUDNN_POINTWISE_ADD:
        return x[0] + x[1];
      case CUDNN_POINTWISE_SUB:
        return x[0] - x[1];
      case CUDNN_POINTWISE_MUL:
        return x[0] * x[1];
      case CUDNN_POINTWISE_DIV:
        return x[0] / x[1];
      case CUDNN_POINTWISE_CMP_LT:
        return x[0] < x[1] ? 1.0f : 0.0f;
      case CUDNN_POINTWISE_CMP_GE:
        return x[0] >= x[1] ? 1.0f : 0.0f;
      case CUDNN_POINTWISE_LOGICAL_AND:
        return x[0] != 0.0f && x[1] != 0.0f ? 1.0f : 0.0f;
      case CUDNN_POINTWISE_BINARY_SELECT:
        return x[2] != 0.0f ? x[0] : x[1];
      default:
        return x[0];
    }
  }

  // Heads of C share those of B in groups that follow one another.
  void multiply(const Operation& o, std::vector<float>& y) const {
    const Tensor &b = o.inputs[1], &c = o.y;
    const int64_t M = c.sizes[2], N = c.sizes[3], K = b.sizes[2];
    const std::vector<float>&left = of(o.inputs[0]), &right = of(b);
    const auto length = [&](const std::unique_ptr<Tensor>& lengths, int64_t batch, int64_t all) {
      return lengths == nullptr ? all
                                : static_cast<int64_t>(of(*lengths)[static_cast<size_t>(batch)]);
    };
    for (int64_t batch = 0; batch < c.sizes[0]; ++batch)
      for (int64_t head = 0; head < c.sizes[1]; ++head) {
        const int64_t rows = length(o.m, batch, M), columns = length(o.n, batch, N);
        const int64_t terms = length(o.k, batch, K);
        const int64_t in_b =
            batch / (c.sizes[0] / b.sizes[0]) * b.sizes[1] + head / (c.sizes[1] / b.sizes[1]);
        const int64_t in_c = batch * c.sizes[1] + head;
        for (int64_t i = 0; i < M; ++i) {
          float* const sums = y.data() + (in_c * M + i) * N;
          if (i >= rows) {
            std::fill_n(sums, N, undefined);
            continue;
          }
          for (int64_t l = 0; l < terms; ++l) {
            const float factor = left[static_cast<size_t>((in_c * M + i) * K + l)];
            const float* const line = right.data() + (in_b * K + l) * N;
            for (int64_t j = 0; j < columns; ++j) sums[j] += factor * line[j];
          }
          std::fill(sums + columns, sums + N, undefined);
        }
      }
  }

  void reduce(const Operation& o, std::vector<float>& y) const {
    const Tensor& x = o.inputs[0];
    const std::vector<float>& values = of(x);
    const bool largest = o.reduction == CUDNN_REDUCE_TENSOR_MAX;
    if (largest) std::fill(y.begin(), y.end(), -std::numeric_limits<float>::infinity());
    Sizes group;
    for (size_t axis = 0; axis < 4; ++axis) group[axis] = x.sizes[axis] / o.y.sizes[axis];
    const Sizes& s = o.y.sizes;
    for_each_place(x.sizes, [&](const Sizes& p, int64_t at) {
      const int64_t to =
          ((p[0] / group[0] * s[1] + p[1] / group[1]) * s[2] + p[2] / group[2]) * s[3] +
          p[3] / group[3];
      float& out = y[static_cast<size_t>(to)];
      const float value = values[static_cast<size_t>(at)];
      out = largest ? (value > out || std::isnan(value) ? value : out) : out + value;
    });
  }

  // The same memory with other dimensions.
  void reshape(const Operation& o, std::vector<float>& y) const {
    const Tensor& x = o.inputs[0];
    std::vector<float> memory(static_cast<size_t>(std::max(x.extent(), o.y.extent())), undefined);
    const std::vector<float>& values = of(x);
    for_each_place(x.sizes, [&](const Sizes& place, int64_t at) {
      memory[static_cast<size_t>(x.offset(place))] = values[static_cast<size_t>(at)];
    });
    for_each_place(o.y.sizes, [&](const Sizes& place, int64_t at) {
      y[static_cast<size_t>(at)] = memory[static_cast<size_t>(o.y.offset(place))];
    });
  }

  const std::map<int64_t, void*>& addresses_;
  std::map<int64_t, std::vector<float>> values_;
};

}  // namespace

void evaluate(const Graph& graph, const std::map<int64_t, void*>& addresses,
              const std::map<int64_t, float>& values) {
  Evaluation evaluation(graph, addresses, values);
  for (const auto& operation : graph.operations) evaluation.run(*operation);
}

}  // namespace gptbench::emulation
