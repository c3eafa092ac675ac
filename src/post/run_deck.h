// The deck of a run, under the names that tables use.
#pragma once

#include <cstdint>
#include <string>

#include "deck/keys.h"
#include "record/record.h"

namespace gptbench {

class RunDeck {
 public:
  explicit RunDeck(const Record& record) : record_(&record) {}  // must outlive it

  // Deck keys; the fallback where a record does not have the key.
  int64_t integer(const std::string& group, const std::string& key, int64_t fallback) const {
    return key_value(*record_, group, key, fallback);
  }
  std::string text(const std::string& group, const std::string& key,
                   const std::string& fallback = "") const {
    return key_value(*record_, group, key, fallback);
  }
  bool logical(const std::string& group, const std::string& key, bool fallback) const {
    return key_value(*record_, group, key, fallback);
  }

  std::string preset() const { return text("model", "preset"); }
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

 private:
  const Record* record_;
};

}  // namespace gptbench
