// Calls of attention that cuDNN supports, what tells them apart, and which attention
// was selected for them, our own or cuDNN's. Pure, without CUDA.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cuda/tuning_cache.h"
#include "device/kernels.h"
#include "plan/plan.h"

namespace gptbench {

// A call of the attention over whole sequences, without dropout, up to its addresses. Rows of
// gradients are as far apart as those of what they are the gradients of.
struct AttentionKey {
  bool backward = false;
  DType type = DType::bf16;
  int64_t B = 0, T = 0, H = 0, H_kv = 0, D = 0;
  int64_t q_row = 0, kv_row = 0, out_row = 0;
  bool causal = true;
  bool padded = false;  // sequences have lengths, beyond which keys are hidden
  bool alibi = false;   // linear biases, whose slopes are no part of the key

  auto parts() const {
    return std::tie(backward, type, B, T, H, H_kv, D, q_row, kv_row, out_row, causal, padded,
                    alibi);
  }
  template <class Text>
  void list_parts(Text& text);  // cuda/tuning_cache.h
  static AttentionKey parse(const std::string& text);
};

// "attention_forward.B32.T1024.H12.G12.D64.q2304.k2304.o768.bf16.causal", or with ".padded" or
// ".alibi" behind, or both.
std::string text_of(const AttentionKey& key);

struct AttentionSelection {
  int plan = -1;           // which of the library's proposals; -1: our own kernel
  double time_us = 0.0;    // of the proposal; 0: not timed
  double native_us = 0.0;  // of our own kernel; 0: not timed

  static constexpr TuningKind kind = {"attention", "the selected attention kernels",
                                      "a selected attention kernel"};
  bool parse(const std::string& text);
};
std::string text_of(const AttentionSelection& selection);
using AttentionSelections = TuningCache<AttentionKey, AttentionSelection>;
// Selection for a call that was not timed: the library where it won any call of that direction.
bool prefers_library(const AttentionSelections& selections, bool backward);

// None where the call has what cuDNN's attention does not do as our kernels do: dropout (its masks
// are others), linear biases without a causal mask, blocks of keys, head sizes above 128. Lengths
// of sequences are 1 at least.
std::optional<AttentionKey> key_of(DType type, const AttentionShape& shape);
std::optional<AttentionKey> key_of(DType type, const AttentionBackward& call);

// Whether the library's fused kernels take this shape: 16-bit types only.
bool fits_library(DType type, int64_t H, int64_t H_kv, int64_t D);

// Keys of the attention calls of a step of `plan`, each once.
std::vector<AttentionKey> attentions_of(const Plan& plan);

}  // namespace gptbench
