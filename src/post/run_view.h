// The view of a run that all table styles share: deck keys and summary figures under the field's
// own names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "deck/keys.h"
#include "record/record.h"

namespace gptbench {

// How figures are restated; empty and 0: as recorded, or as the style is published.
struct Restatement {
  std::string convention;    // of FLOPs: a FlopsConvention
  double peak_tflops = 0.0;  // per device, for MFU and HFU
  // Where MFU and HFU are against the data sheet's peak of known devices: bf16, fp8, or both, which
  // shows runs with fp8 GEMMs against each of the two.
  std::string peak_type;
  bool any() const { return !convention.empty() || peak_tflops > 0.0 || !peak_type.empty(); }
};

// The cells of a published row as they were printed.
struct PublishedCells {
  std::string style;                              // the table that they stand in
  std::map<std::string, std::string> by_heading;  // headings of that style
};

// A view of one record, which must outlive it, as must the cells of a published row.
class RunView {
 public:
  explicit RunView(const Record& record, const Restatement& restatement = {},
                   const PublishedCells* published = nullptr, std::string path = "")
      : record_(&record),
        restatement_(restatement),
        published_(published),
        path_(std::move(path)) {}

  const Record& record() const { return *record_; }
  const Summary& summary() const { return record_->summary; }
  const std::string& path() const { return path_; }  // of its file; "": not known

  bool is_published() const { return published_ != nullptr; }
  // A published point: ranks and throughput, nothing of model and layout.
  bool is_point() const { return is_published() && seq_length() == 0; }
  bool is_projected() const { return !record_->projection.machine.empty(); }
  bool is_measured() const { return !is_published() && !is_projected(); }
  std::string source() const {
    return is_published() ? "published" : is_projected() ? "projected" : "measured";
  }
  // "published: ", "projected: ", or "" where measured: before a name.
  std::string source_mark() const { return is_measured() ? "" : source() + ": "; }
  bool is_restated() const { return restatement_.any(); }
  const std::string& restated_convention() const { return restatement_.convention; }
  const std::string& restated_peak_type() const { return restatement_.peak_type; }
  // Text that a caption adds where FLOPs are restated: ", FLOPs by convention mpt"; else "".
  std::string restated_note() const {
    return restatement_.convention.empty() ? ""
                                           : ", FLOPs by convention " + restatement_.convention;
  }
  // The published cell of a style; null where this run was measured or the row has none.
  const std::string* printed(const std::string& style, const std::string& heading) const;

  // Deck keys; the fallback where a record does not have the key.
  int64_t integer(const std::string& group, const std::string& key, int64_t fallback) const;
  std::string text(const std::string& group, const std::string& key,
                   const std::string& fallback = "") const;
  bool logical(const std::string& group, const std::string& key, bool fallback) const;

  // "" for a run whose figures count; else OOM, INVALID, TIMEOUT or FAILED.
  std::string outcome() const;
  bool counts() const { return outcome().empty(); }
  // Date; outcome with step and reason where the run is not OK; skipped steps where there are any:
  // "02-15; OOM at step 23: ...", steps counted from 1 as the console does.
  std::string notes() const;
  // "3 of 18 steps skipped, not timed" behind the warm-up; "" where none was.
  std::string skipped_note() const;

  int64_t seq_length() const { return integer("model", "seq_length", 0); }
  int64_t tensor_parallel() const { return integer("parallel", "tensor_parallel", 1); }
  int64_t pipeline_parallel() const { return integer("parallel", "pipeline_parallel", 1); }
  int64_t context_parallel() const { return integer("parallel", "context_parallel", 1); }
  int64_t data_parallel() const;  // what is left of the ranks where the deck says 0
  int64_t micro_batch() const { return integer("batch", "micro_batch_size", 1); }
  int64_t global_batch() const;
  int64_t gradient_accumulation() const;  // micro-batches per step and replica, rounded up
  int64_t zero_stage() const { return integer("parallel", "zero_stage", 0); }
  // Optimizer state or parameters, not activations alone.
  bool offloads() const {
    const std::string what = text("parallel", "offload", empty_list);
    return what != empty_list && what != name_of(Offload::activations);
  }
  std::string checkpointing() const;  // none, selective, full
  bool checkpoints() const { return checkpointing() != name_of(Recompute::none); }
  bool full_checkpointing() const { return checkpointing() == name_of(Recompute::full); }
  // Published as True and False; selective recomputation is named.
  std::string checkpointing_cell() const;

  std::string preset() const { return text("model", "preset"); }
  // "GPT-345M": the preset in capitals, or family and size.
  std::string model_name() const;
  std::string device_name() const;

  // The one asked for, else that of the deck.
  std::string flops_convention() const {
    return restatement_.convention.empty() ? summary().flops_convention : restatement_.convention;
  }
  // TFLOP/s per device by `convention` (a restatement goes first); 0 where the record has no such
  // figure or nothing was timed. With recomputation where `hardware`.
  double tflops(const std::string& convention, bool hardware = false) const;
  double peak_tflops() const;
  // Percent of the peak; 0 where it is not known.
  double utilisation(const std::string& convention, bool hardware) const;
  // The same against one denominator, without a name; or against two, for a run with fp8 GEMMs
  // where both are requested: {"bf16", 46.6}, {"fp8", 23.3}.
  std::vector<std::pair<std::string, double>> utilisations(const std::string& convention,
                                                           bool hardware) const;

 private:
  double known_peak(Precision type) const;

  const Record* record_;
  Restatement restatement_;
  const PublishedCells* published_;
  std::string path_;
};

using Runs = std::vector<RunView>;

}  // namespace gptbench
