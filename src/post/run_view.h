// What the table styles ask a run for: keys of its deck and figures of its summary under the names
// of the field, with the same answers for every style.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/record.h"

namespace gptbench {

// How figures are restated; empty and 0: as recorded, or as the style is published.
struct Restatement {
  std::string convention;    // of FLOPs: mpt, megatron, causal, exact
  double peak_tflops = 0.0;  // of a device, for MFU and HFU
};

// A view of one record, which must outlive it.
class RunView {
 public:
  explicit RunView(const Record& record, const Restatement& restatement = {})
      : record_(&record), restatement_(restatement) {}

  const Record& record() const { return *record_; }
  const Summary& summary() const { return record_->summary; }

  // Deck keys; the fallback where a record does not have the key.
  int64_t integer(const std::string& group, const std::string& key, int64_t fallback) const;
  std::string text(const std::string& group, const std::string& key,
                   const std::string& fallback = "") const;
  bool logical(const std::string& group, const std::string& key, bool fallback) const;

  // "" for a run whose figures count; else OOM, INVALID, TIMEOUT or FAILED.
  std::string outcome() const;
  bool counts() const { return outcome().empty(); }
  // Date and, where the run is not OK, outcome with step and reason: "02-15; OOM at step 23: ...".
  std::string notes() const;

  int64_t seq_length() const { return integer("model", "seq_length", 0); }
  int64_t tensor_parallel() const { return integer("parallel", "tensor_parallel", 1); }
  int64_t pipeline_parallel() const { return integer("parallel", "pipeline_parallel", 1); }
  int64_t context_parallel() const { return integer("parallel", "context_parallel", 1); }
  int64_t data_parallel() const;  // what is left of the ranks where the deck says 0
  int64_t micro_batch() const { return integer("batch", "micro_batch_size", 1); }
  int64_t global_batch() const;
  int64_t gradient_accumulation() const;  // micro-batches a step and replica, rounded up
  int64_t zero_stage() const { return integer("parallel", "zero_stage", 0); }
  bool offloads() const { return text("parallel", "offload", "none") != "none"; }
  std::string checkpointing() const;  // none, selective, full
  bool full_checkpointing() const { return checkpointing() == "full"; }
  // Published as True and False; selective recomputation is named.
  std::string checkpointing_cell() const;

  std::string preset() const { return text("model", "preset"); }
  // "GPT-345M": the preset in capitals, or family and size.
  std::string model_name() const;
  std::string device_name() const;

  // TFLOP/s a device by `convention` (a restatement goes first); 0 where the record has no such
  // figure or nothing was timed. With recomputation where `hardware`.
  double tflops(const std::string& convention, bool hardware = false) const;
  double peak_tflops() const;
  // Percent of the peak; 0 where it is not known.
  double utilisation(const std::string& convention, bool hardware) const;

 private:
  const Record* record_;
  Restatement restatement_;
};

using Runs = std::vector<RunView>;

}  // namespace gptbench
