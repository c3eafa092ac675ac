// The model as a table of logical tensors. A logical tensor says what a parameter is; where its
// copies lie, in which type and which part of it, is said by representations
// (plan/representation.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deck/config.h"
#include "deck/family.h"

namespace gptbench {

// Sizes of a model; global. The letters are those of the kernel headers.
struct ModelShape {
  Family family;
  int64_t L = 0;        // layers
  int64_t C = 0;        // hidden size
  int64_t H = 0;        // attention heads
  int64_t H_kv = 0;     // key/value heads
  int64_t D = 0;        // head size, C / H
  int64_t F = 0;        // feed-forward size
  int64_t T = 0;        // positions of a sequence
  int64_t V_valid = 0;  // tokens of the vocabulary
  int64_t V = 0;        // rows of the embedding: V_valid rounded up to what pads it
  int64_t qkv() const { return (H + 2 * H_kv) * D; }
  // Columns of the first feed-forward matrix: F, or gate and value.
  int64_t fc() const { return family.activation == ActivationKind::swiglu ? 2 * F : F; }
  // Targets of a sequence that is not padded: rows that have a part in the loss.
  int64_t targets() const { return family.head == HeadKind::masked ? masked_tokens_of(T) : T; }
  // Elements of the matrices of a layer: (4 C + 2 F) C of GPT.
  int64_t layer_weights() const { return (qkv() + H * D + fc() + F) * C; }
};
// Global sizes. The embedding is padded to a multiple of vocab_multiple and of `tensor_parallel`,
// over which its rows are split; padding rows never win probability.
ModelShape model_shape(const ModelConfig& model, int64_t tensor_parallel = 1);
// The share of one tensor-parallel rank: H, H_kv, F and V divided.
ModelShape local_shape(ModelShape shape, int64_t tensor_parallel);

enum class Init { zeros, ones, normal };

// Tensors that are gathered, reduced and updated together (plan/representation.h).
enum class UnitKind : uint8_t { token_embedding, position_embedding, layer, final_norm, head };

struct LogicalTensor {
  std::string name;  // as in dumps: "wte", "h.3.attn.qkv.weight"
  int64_t rows = 0;  // global shape [rows, cols]; a vector is [rows, 1]
  int64_t cols = 1;
  int dimensions = 2;  // 1 or 2, as dumped
  UnitKind unit = UnitKind::layer;
  int64_t layer = -1;  // -1 embedding, 0 .. L-1, L final norm and head
  bool decay = false;  // weight decay applies: matrices and embeddings
  Init init = Init::zeros;
  double init_std = 0.0;
  // Dimension split over tensor-parallel ranks: -1 none (replicated), 0 rows, 1 columns. Rows may
  // consist of blocks that are split each: q, k and v stacked in one matrix.
  int tp_axis = -1;
  std::vector<int64_t> tp_blocks;  // rows of the blocks; empty: one

  int64_t size() const { return rows * cols; }
};

// Tensors of the model in canonical order (embedding, layer by layer, final): the index in this
// table is the tensor's random instance (base/random.h), so the weights depend on the seed alone.
// Residual projections start with init_std / sqrt(2 L) (Radford et al. 2019, section 2.3). A family
// without biases or learned positions has no such tensors (doc/models.md lists them all).
std::vector<LogicalTensor> tensor_table(const ModelConfig& model, int64_t tensor_parallel = 1);

// The linear layers of a transformer block.
enum class Linear : uint8_t { qkv, attn_proj, fc, mlp_proj };
constexpr int num_linears = 4;
constexpr Linear all_linears[num_linears] = {Linear::qkv, Linear::attn_proj, Linear::fc,
                                             Linear::mlp_proj};
const char* name_of(Linear linear);
// Name of a tensor of a linear layer: "h.3.attn.qkv.weight"; `what`: "weight" or "bias".
std::string tensor_name(int64_t layer, Linear linear, const char* what);

// Parameters of a table, padding rows of the vocabulary included.
int64_t count_params(const std::vector<LogicalTensor>& tensors);

}  // namespace gptbench
