// Activations of the layers of a virtual stage: kept from one pass to a later one, or formed again
// in backward (Korthikanti et al., arXiv:2205.05198). They are kept on the device, in slots
// (plan/slots.h), or, with parallel.offload = 'activations', in host memory or a file. The
// device then holds two windows that all groups of layers (one layer, or a checkpointed segment)
// take in turn: a group's arrays leave behind the computing of the next group and come back while
// the group behind it is worked on (Rhu et al., arXiv:1602.08124). With
// memory.partition_checkpoints each tensor-parallel rank keeps a part of a segment's input, which
// is all-gathered while the segment before it in backward is repeated (Rajbhandari et al.,
// arXiv:1910.02054, section 6.1). Internal to the plan layer.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/stage_builder.h"

namespace gptbench {

// Buffers of one layer, -1 where the family has none. R rows of the micro-batch; (s): this rank's
// part of them where sequence parallelism splits them. In fp8, outputs of norms and activation,
// which linear layers alone read, are fp8 copies.
struct LayerActivations {
  int x = -1, x_mid = -1;                         // [R, C] (s): the layer's input, the MLP's
  int ln_1 = -1, ln_1_mean = -1, ln_1_rstd = -1;  // [R, C], [R, 1] (s)
  int qkv = -1, attention = -1, lse = -1;         // [R, (H + 2 H_kv) D], [R, H D], [R, H]
  int ln_2 = -1, ln_2_mean = -1, ln_2_rstd = -1;  // [R, C], [R, 1] (s)
  int fc = -1, activation = -1;                   // [R, F or 2 F], [R, F]
};

// Whether outputs of norms and activation are kept from the forward pass to backward, which else
// forms them again.
bool keeps_cheap_outputs(Recompute recompute);

// Inputs of the weight gradients of a layer, kept where those are formed later.
struct LayerGradients {
  int dmlp = -1, dproj = -1;  // [R, C] (s)
  int dfc = -1, dqkv = -1;    // [R, F or 2 F], [R, (H + 2 H_kv) D]
};

class ActivationStore {
 public:
  // Adds the buffers to the plan.
  explicit ActivationStore(const StageBuilder& stage);

  // First layer of the checkpointed segment of layer l; l itself without full recomputation.
  int64_t segment_start(int64_t l) const { return stage_.chunk.first_layer + group_of(l) * every_; }
  // Whether it is the last one of its segment.
  bool ends_segment(int64_t l) const;
  // Input of layer l in the forward pass.
  Operand input_of(int64_t l) const;
  LayerActivations forward_set(int64_t l) const;
  LayerActivations backward_set(int64_t l) const;
  const LayerGradients& gradients(int64_t l) const { return gradients_[stage_.splits ? at(l) : 0]; }

  // The group of layer l has been formed, or its gradients, and will not be written again: what is
  // kept of it leaves for where it is kept.
  void store(int64_t l) const;
  void store_gradients(int64_t l) const { transfer(OpKind::store, backward, group_of(l)); }
  // Backward begins, or begins the group that ends with layer l: brings back what comes next.
  void begin_backward(const Pass& pass) const;
  void begin_group(int64_t l, const Pass& pass) const;

 private:
  enum class Parts { all, costly, cheap };  // outputs of norm and activation are cheap
  // Arrays are formed by the forward pass, for backward ones, or by the pass that forms gradients
  // of activations, for the one that forms those of weights later (zero_bubble).
  enum FormedBy { forward, backward };
  struct Away {
    int window, away;
    int64_t columns, row_div;
  };
  // layer < 0: of a working set, whose memory others use as well.
  LayerActivations add_set(const std::string& name, int64_t layer, Parts parts);
  // Array `what` of layer l, [R / row_div, columns].
  int keep(FormedBy formed_by, int64_t l, const std::string& what, DType dtype, int64_t columns,
           int64_t row_div);
  void add_gradients(int64_t l);
  void keep_input(int64_t l);
  void transfer(OpKind kind, FormedBy formed_by, int64_t group) const;
  void load(int64_t group, const Pass& pass) const;
  void gather(int64_t group) const;
  int64_t group_of(int64_t l) const { return (l - stage_.chunk.first_layer) / every_; }
  // Whether the layer's input comes from another stage.
  bool arrives(int64_t l) const {
    return l == stage_.chunk.first_layer && !stage_.chunk.has_embedding;
  }
  bool is_in_parts(int64_t group) const {
    return parts_ > 1 && group >= 0 && input_parts_[static_cast<size_t>(group)] >= 0;
  }
  size_t at(int64_t l) const { return static_cast<size_t>(l - stage_.chunk.first_layer); }

  const StageBuilder& stage_;
  int64_t every_;                          // layers per segment
  int64_t parts_;                          // that inputs of segments are kept in
  LayerActivations passing_;               // what norm and activation make where it is not kept
  std::vector<LayerActivations> kept_;     // [layer - first]
  std::vector<LayerActivations> work_;     // [layer within its segment], full recomputation
  std::vector<LayerGradients> gradients_;  // [layer - first]; one entry where not split
  std::map<std::pair<FormedBy, int64_t>, std::vector<Away>> away_;  // (formed by, group)
  std::vector<int> input_parts_;  // [group] [R / parts_, C]; -1: kept as a whole. Empty: all are
  int forward_x_[2] = {-1, -1};   // [R, C] (s) inputs of layers that are not kept, in turn
  int whole_x_[2] = {-1, -1};     // [R, C] inputs of segments that are kept in parts, in turn
};

}  // namespace gptbench
