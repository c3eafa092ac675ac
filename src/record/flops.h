// FLOPs of a record by any convention, without and with recomputation.
#pragma once

#include <string>

#include "record/record.h"

namespace gptbench {

// Whether a key of FlopsFigures::per_step is a convention, not a part of `exact`
// (exact_recomputed, exact_fp8).
bool is_convention(const std::string& name);

// Share of the executed FLOPs, recomputation included, that are fp8 GEMMs.
double fp8_share(const Summary& summary);

// FLOPs per step of the whole job without recomputation; 0 where the record does not have the
// convention. The record holds `megatron` as published, with recomputation as k = 4 (plan/cost.h);
// this returns its k = 3.
double model_flops(const Summary& summary, const std::string& convention);

// With recomputation: counted by operations where the record has that (`exact`), as published for
// `megatron`, else model FLOPs x hardware_factor.
double hardware_flops(const Summary& summary, const std::string& convention);

// Beyond this spread of the measured GEMM ceiling, within a run or among runs, a utilisation says
// more about the ceiling than about the run, and is left out.
constexpr double max_ceiling_spread = 0.03;

// Peak::source of single runs.
namespace peak_source {
constexpr const char *deck = "deck", *known_device = "known device",
                     *measured = "measured GEMM ceiling", *profile = "machine profile",
                     *none = "none: not measured";
}  // namespace peak_source

// Why a run whose steps were timed has no MFU.
std::string reason_without_mfu(const Summary& summary);

// Warning beside utilisations (fractions of the peak) that nothing can reach; "" where both are
// possible. It stands wherever they are printed. convention: of the FLOPs, where it is known.
std::string impossible_utilisation(double mfu, double hfu, const std::string& convention = "");

// The same at the end of a line GPTBENCH: " warning=mfu_above_100_percent", or of hfu.
std::string utilisation_key(double mfu, double hfu);

}  // namespace gptbench
