// Makers of the programs of one virtual stage: embedding, transformer layers (norms before the
// branches) and head of the model families (deck/family.h), under tensor parallelism (Shoeybi et
// al., arXiv:1909.08053), sequence parallelism and recomputation (Korthikanti et al.,
// arXiv:2205.05198). Internal to the plan layer.
#pragma once

#include <string>
#include <vector>

#include "plan/activation_offload.h"
#include "plan/builder.h"
#include "plan/parameter_store.h"
#include "plan/stages.h"

namespace gptbench {

// Rows of the head that are turned into logits at a time: the logits of a whole micro-batch would
// be the largest activation by far. The loss gradient of a chunk of rows is formed at once, in the
// forward program, and its memory is used again by the next.
constexpr int64_t head_chunk_rows = 1024;

// Sites of dropout masks within a layer (kernels.h, Dropout::instance).
enum DropoutSite : int32_t { embedding_site = 0, attention_site = 1, proj_site = 2, mlp_site = 3 };

class ChunkPrograms {
 public:
  // `index`: of the chunk among those of this rank; `slots`: micro-batches in flight; fp8: null
  // where no product is in fp8.
  ChunkPrograms(PlanBuilder& builder, ParameterStore& store, const Fp8State* fp8,
                const Chunk& chunk, int32_t index, int64_t slots);

  // Whole programs, for the kinds receive_forward to weight_last.
  void make_programs(bool split_weight_gradients);

 private:
  // Tensors; -1: the family has none.
  struct LayerTensors {
    int ln_1_weight, ln_1_bias, qkv_weight, qkv_bias, attn_proj_weight, attn_proj_bias;
    int ln_2_weight, ln_2_bias, fc_weight, fc_bias, mlp_proj_weight, mlp_proj_bias;
  };
  // Buffers, -1 where the family has none; rows are those of the micro-batch, or this rank's part
  // of them (`_s`) where sequence parallelism splits them.
  struct LayerActivations {
    int x, ln_1, ln_1_mean, ln_1_rstd;  // _s
    int qkv, attention, lse;
    int x_mid, ln_2, ln_2_mean, ln_2_rstd;  // _s
    int fc, activation;
    // fp8 copies of what linear layers alone read; what they are made of is then not kept.
    int ln_1_fp8, ln_2_fp8, activation_fp8;  // ln: _s
  };
  // What the weight gradients of a layer are made of, kept where they are formed later.
  struct LayerGradients {
    int dmlp, dproj;  // _s
    int dfc, dqkv;
  };
  // Rows of this rank's positions; keys and values side by side, as their gradients.
  struct RingBuffers {
    int kv[2] = {-1, -1};   // the block in hand, the block on its way (A)
    int dkv[2] = {-1, -1};  // the gradient of the block in hand, of the one before on its way (S)
    int dkv_arriving = -1;  // (S)
    int dq = -1;            // (S)
    int out = -1;           // (S); where A is S the attention's own output
  };
  struct Pass {
    bool last = false;    // last micro-batch
    bool inputs = true;   // forms gradients of activations
    bool weights = true;  // forms gradients of parameters
  };

  // layer < 0: a working set, whose memory others use as well.
  LayerActivations add_activations(const std::string& prefix, int64_t layer, bool keep_recomputed);
  void add_layer_buffers(bool split_weight_gradients);
  void add_head_buffers();

  int64_t segment_start(int64_t l) const;
  int64_t group_of(int64_t l) const { return (l - chunk_.first_layer) / every_; }
  LayerActivations forward_set(int64_t l) const;
  LayerActivations backward_set(int64_t l) const;
  Operand input_of(int64_t l) const;  // x of layer l, or of what follows the last layer, forward

  // Whether embedding and head of this chunk add to the gradient of one table: the head opens it,
  // the embedding closes it.
  bool shares_table() const {
    return chunk_.has_embedding && chunk_.has_head && family_.shares_embedding();
  }
  void gather_embedding();
  void gather_head();
  void emit_receive(bool forward);
  void emit_forward();
  void emit_backward(Pass pass);
  void emit_load_tokens(int64_t layer);
  void emit_load_lengths();
  void emit_embedding_forward();
  void emit_layer_forward(int64_t l, const LayerActivations& a, Operand x, Operand x_next,
                          bool recompute);
  void emit_head_forward();
  // Logits of some rows of x, their loss and its gradient dx.
  void emit_head_rows(int64_t first, Operand x, Operand dx);
  // The loss of rows of logits and, in their place, its gradient.
  struct Loss {
    LossSize size;
    Operand logits, targets;
    ops::LossStatistics statistics;
    Scalar sum = Scalar::loss_sum;
    Operand weight;  // a factor of size.row_weight that differs from step to step; absent: 1
  };
  Op loss_statistics(const Loss& loss) const;
  Op loss_finish(const Loss& loss) const;

  // The masked-token head (masked_head_programs.cpp).
  void add_masked_head_buffers();
  void emit_masked_transform();
  void emit_masked_transform_backward();
  void emit_next_sentence();
  void emit_head_op(Op op);
  void emit_of_sequences(Op op);
  void emit_head_backward(Pass pass);
  void emit_recompute(int64_t first, int64_t end);
  void emit_selective_recompute(int64_t l, const LayerActivations& a);
  void emit_layer_input_gradients(int64_t l, const LayerActivations& a, Pass pass);
  void emit_layer_weight_gradients(int64_t l, const LayerActivations& a);
  void emit_mlp_weights(int64_t l, const LayerActivations& a, Operand dmlp, Operand dmlp_full,
                        Operand dfc);
  void emit_attention_weights(int64_t l, const LayerActivations& a, Operand dproj,
                              Operand dproj_full, Operand dqkv);

  // Products of the linear layers (linear_programs.cpp).
  struct LinearLayer {
    int weight, bias;
    int64_t K, N;
    bool row_parallel;  // tensor-parallel ranks hold columns of W, and their results are summed
  };
  LinearLayer linear_layer(int64_t l, Linear linear) const;
  // x of a linear layer: its buffer, and that of its fp8 copy as products of the forward pass read
  // it.
  struct LinearInput {
    int x, fp8;
  };
  LinearInput linear_input(const LayerActivations& a, Linear linear) const;
  void add_fp8_buffers();
  void emit_forward_product(int64_t l, Linear linear, const LayerActivations& a, Operand y,
                            bool recompute);
  void emit_input_product(int64_t l, Linear linear, Operand dy, Operand dx, Pass pass);
  // `part`: the rows of dy that this rank works on beside the product (sequence parallelism).
  void emit_weight_product(int64_t l, Linear linear, const LayerActivations& a, Operand part,
                           Operand dy);
  // fp8 copies of what an operation assigns, a factor of a linear layer.
  ops::Fp8CopyOperands fp8_copies(int64_t l, Linear linear, Fp8Role role, Operand copy,
                                  Operand transposed, Operand sums = {}) const;
  // What sums over the rows of dy are added to where it is converted; absent where there is none.
  Operand bias_gradient(int64_t l, Linear linear);
  // Whether W's gradient finds x transposed, as what makes x wrote it beside the copy: of the
  // activation on GPUs. Rows of a transposed array are padded, which is left out: sequences (of
  // this rank) are a multiple of that.
  bool is_turned_at_once(Linear linear) const {
    return linear == Linear::mlp_proj && turns_at_once_;
  }
  void emit_attention_copy(int64_t l, const LayerActivations& a, bool as_it_is, bool transposed,
                           bool recompute);
  void emit_dy_copy(int64_t l, Linear linear, Operand dy, bool as_it_is, bool transposed,
                    bool bias);
  Operand fp8_factor(int64_t l, Linear linear, const LayerActivations& a);
  // The norm of the family: its tensors, and buffers of its statistics. Backward accumulates in
  // dx_, or in dx.
  struct Norm {
    int weight, bias, mean, rstd;
  };
  Norm norm_before(int64_t l, Linear linear, const LayerActivations& a) const;  // qkv or fc
  Norm final_norm() const { return {ln_f_weight_, ln_f_bias_, ln_f_mean_, ln_f_rstd_}; }
  Op norm_forward(int64_t l, Operand x, const Norm& norm, Operand y);
  // That before linear layer qkv or fc of the layer, with its fp8 copy.
  void emit_layer_norm(int64_t l, Linear linear, const LayerActivations& a, Operand x,
                       bool recompute);
  void emit_norm_backward(int64_t l, Operand dy, Operand x, const Norm& norm);
  void emit_norm_backward_to(Operand dx, int64_t l, Operand dy, Operand x, const Norm& norm);
  // `product`: the next product of the forward pass follows.
  void emit_activation_forward(int64_t l, const LayerActivations& a, bool recompute, bool product);
  // With the fp8 copies of dfc; dfc may be absent where they are all that is read.
  void emit_activation_backward(int64_t l, const LayerActivations& a, Operand dactivation,
                                Operand dfc, Pass pass);
  void emit_embedding_backward(Pass pass);

  // Tensor axis. to_full: all rows of an array of which ranks hold parts, in `full`; the array
  // itself without sequence parallelism. reduce: sums partial results of all ranks, whole or by
  // parts.
  Operand to_full(int64_t l, Operand part, int full);
  Operand reduce(int64_t l, Operand partial, int part);
  Operand emit_dropout_backward(int64_t l, int32_t site, Operand dy, int buffer);
  Operand bias_of_row_parallel(int tensor) const;
  int unit_of(int64_t l) const;
  // Attention over the queries, keys and values of a.qkv (attention_programs.cpp). Backward begins
  // early with what can travel while dattention is formed, and ends with all of dqkv.
  void add_ring_buffers();
  void emit_attention_forward(int64_t l, const LayerActivations& a, bool recompute);
  void begin_attention_backward(int64_t l, const LayerActivations& a);
  void emit_attention_backward(int64_t l, const LayerActivations& a, Operand dqkv);
  AttentionSize attention_size(int64_t keys_of, bool forward) const;
  double attention_flops_per_row(bool forward) const;
  void emit_of_attention(Op op);
  void start_ring(int64_t l, const LayerActivations& a);
  void pass_on(int64_t l, int tag, int from, int to);
  int64_t ring_neighbour(int64_t distance) const;
  void emit_attention_gradients(int64_t l, const LayerActivations& a, Operand dqkv);

  PlanBuilder& builder_;
  ParameterStore& store_;
  const Fp8State* fp8_;
  Chunk chunk_;
  int32_t index_;
  int64_t slots_;
  ModelShape s_;  // local
  Family family_;
  const char* activation_name_ = "";  // of its buffers
  int64_t tp_ = 1;                    // tensor-parallel ranks
  int64_t sp_ = 1;                    // row_div: tp_ under sequence parallelism
  bool full_recompute_ = false, selective_ = false, split_ = false, turns_at_once_ = false;
  int64_t every_;  // layers a checkpointed segment
  std::string prefix_;
  ActivationOffload offload_;

  std::vector<LayerTensors> tensors_;      // [layer - first]
  std::vector<LayerActivations> kept_;     // [layer - first]
  std::vector<LayerActivations> work_;     // [layer within its segment], full recomputation
  std::vector<LayerGradients> gradients_;  // [layer - first]; one entry where not split
  RingBuffers ring_;                       // where the context axis has ranks
  int forward_x_[2] = {-1, -1};            // inputs of layers that are not kept, in turn
  int x_end_ = -1;                         // output of the last layer: kept for the head, or sent
  int branch_ = -1, branch_s_ = -1, full_ = -1;
  int dx_ = -1, ddropped_ = -1, dbranch_ = -1, dbranch_s_ = -1, dattention_ = -1, dfull_ = -1;
  // Temporary fp8 copies: x and dy of each linear layer as they are and transposed, x gathered.
  int fp8_x_[num_linears][2] = {}, fp8_dy_[num_linears][2] = {}, fp8_full_ = -1;
  LayerActivations passing_{};  // what norm and activation make where it is not kept
  int dactivation_ = -1;        // -1: formed in the place of dfc
  int ln_f_ = -1, ln_f_mean_ = -1, ln_f_rstd_ = -1, dln_f_ = -1, ln_f_full_ = -1, dln_f_full_ = -1;
  int logits_ = -1, statistics_ = -1, all_statistics_ = -1;
  // Of the masked-token head: dense layer, activation and norm; pooler and next-sentence classes.
  struct MaskedHead {
    int unit = -1;
    int dense_weight = -1, dense_bias = -1, ln_weight = -1, ln_bias = -1, logits_bias = -1;
    int pooler_weight = -1, pooler_bias = -1, nsp_weight = -1, nsp_bias = -1;
    // Buffers: a row a position of this rank's part, all rows (`_full`), a row a sequence.
    int dense = -1, gelu = -1, ln = -1, mean = -1, rstd = -1, dln = -1, dgelu = -1;
    int ln_full = -1, dln_full = -1;
    int first = -1, pooled = -1, dpooled = -1, dfirst = -1, logits = -1, statistics = -1;
  };
  MaskedHead masked_;
  int wtt_ = -1, wte_ = -1, wpe_ = -1, ln_f_weight_ = -1, ln_f_bias_ = -1;
  int head_table_ = -1, head_unit_ = -1;  // rows of the output head: wte where tied
};

}  // namespace gptbench
