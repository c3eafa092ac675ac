// FLOPs of a training step by the conventions of the field. A figure without its convention is
// worthless: published ones for one and the same run differ by 8% and more.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "deck/config.h"
#include "plan/model.h"

namespace gptbench {

// FLOPs per step of B sequences over all ranks, N parameters; W elements of a layer's matrices,
// which are 12 C^2 of GPT, MPT and BERT and give the published formulas, and count gate and grouped
// heads of Llama:
//   mpt       B T (6 N + 12 L C T)                      (MosaicML llm-foundry, throughput tables)
//   mpt_star  B T 6 N: its MFU* and HFU*, without attention
//   megatron  k B T (2 L W + 4 L C T + 1.5 C V), k = 3, or 4 with full activation checkpointing;
//             = 24 k B T L C^2 (1 + T/(6C) + V/(16 L C)) (Narayanan et al., arXiv:2104.04473,
//             section 5.1)
//   causal    B T (6 L W + 6 C V + 6 L C T), = B T (72 L C^2 + 6 C V + 6 L C T): half of the
//             attention matrix. Where attention is not causal, 12 L C T times attended_share, the
//             mean share of the keys that are no padding
double flops_mpt_star(const ModelShape& s, int64_t num_params, int64_t B);
double flops_mpt(const ModelShape& s, int64_t num_params, int64_t B);
double flops_megatron(const ModelShape& s, int64_t B, bool full_checkpointing);
double flops_causal(const ModelShape& s, int64_t B, double attended_share);

// Whether recomputation repeats the forward pass of the layers, which conventions then count, and
// not only what costs little.
bool repeats_forward(Recompute recompute);

// Factor from model FLOPs to hardware FLOPs, recomputation of the forward pass included: 4/3 with
// full activation checkpointing (of every layer), else 1.
double hardware_factor(const MemoryConfig& memory);

}  // namespace gptbench
