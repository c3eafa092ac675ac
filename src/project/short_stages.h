// Stages of a pipeline from short ones. Each layer, or segment of layers, adds the same to what a
// stage needs and computes, so that stages of few layers say it of those of many. A search asks for
// thousands of layouts of the same stages.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "plan/slots.h"
#include "plan/stage_figures.h"
#include "plan/stages.h"
#include "project/least_time.h"
#include "project/project.h"

namespace gptbench {

// How the layers of a model lie on the stages of a pipeline.
struct Staging {
  // all_unlike: of a schedule by which later stages of a kind may need more memory.
  Staging(const std::vector<Chunk>& chunks, int64_t stages, bool all_unlike);

  // Layers of each virtual stage of a stage.
  std::vector<int64_t> layers_of(int64_t stage) const;

  int64_t stages;
  std::vector<int64_t> chunk_layers;  // [virtual stage]
  std::vector<int64_t> stage_layers;  // [stage]
  // The first stage of each kind (plans_of_unlike_stages()). The last stage comes last.
  std::vector<int64_t> unlike;
};

// The stages of layouts that differ in micro-batch, virtual stages and schedule alone, but not in
// whether it is zero_bubble.
class ShortStages {
 public:
  // [kind of stage], of one grid.
  using Clocks = std::array<std::unique_ptr<Clock>, 4>;
  // Where and how fast the ranks are; they may lie in any of the orders.
  struct Ranks {
    int64_t number = 1;
    const std::vector<RankOrder>& orders;
    const Machine& machine;
    const Software& software;
  };

  // `config` is resolved. micro_batches: ascending, of which no other is asked for. Adds to
  // `clocks`. alike: of layouts that differ in the ZeRO stage alone, which decides nothing of what
  // micro-batches need; null: none is known.
  ShortStages(const Config& config, const DeviceTraits& device, const Ranks& ranks,
              std::vector<int64_t> micro_batches, Clocks& clocks, ShortStages* alike = nullptr);

  // Memory of a stage of the staging, exact but for the padding of buffers.
  StageFigures figures(const Staging& staging, int64_t stage, StageSlots& slots,
                       int64_t micro_batch);
  // Whether all stages fit; nothing where that is a matter of some MiB, of which only the plan
  // itself knows. slots: of staging.unlike.
  std::optional<bool> fits(const Staging& staging, const std::vector<StageSlots*>& slots,
                           int64_t micro_batch);
  // Least time of a step with these virtual stages, by whatever schedule.
  LeastTime least_time(const Staging& staging, int64_t micro_batch);

 private:
  enum Kind { first, middle, last, only };
  template <class T>
  using OfStages = std::map<std::pair<Kind, int64_t>, T>;  // by kind and layers
  // Buffers of micro-batches that are as large and used alike, of which a stage has several.
  struct Slotted {
    MemoryClass memory_class;
    DType dtype;
    int64_t elements, slot_bytes;
    SlotUse use;
    auto size() const { return std::tuple(memory_class, dtype, elements); }
    bool operator<(const Slotted& other) const {
      return std::tuple(size(), use.kind()) < std::tuple(other.size(), other.use.kind());
    }
  };
  struct Bytes {
    ClassBytes fixed{};                  // of all but buffers of micro-batches
    std::map<Slotted, int64_t> slotted;  // the number of those of the first virtual stage
    Bytes& add(const Bytes& other, int64_t times);
  };
  // Bytes of a micro-batch; two_parts: those of two virtual stages, the second of one layer.
  struct SizedBytes {
    OfStages<Bytes> whole;
    OfStages<Bytes> two_parts;                     // by layers of the first
    OfStages<std::map<Slotted, int64_t>> slotted;  // of virtual stages
  };
  struct Sample {
    Plan plan;
    std::optional<ProgramClock> clock;
  };

  Kind kind_of(int64_t part, int64_t parts) const;
  // Layers of the shorter stage for one of `layers`, and how many segments it is short of.
  std::pair<int64_t, int64_t> shorter(int64_t layers) const;
  std::vector<int64_t> one_part(Kind kind, int64_t layers) const;
  Plan plan_without_waits(Kind kind, const std::vector<int64_t>& layers, int64_t micro_batch) const;
  Sample& sample(Kind kind, int64_t layers);
  static Bytes bytes_of(const Plan& plan);
  const Bytes& whole_bytes(Kind kind, int64_t layers, int64_t micro_batch);
  const Bytes& bytes_of_two_parts(Kind kind, int64_t first_layers, int64_t micro_batch);
  const std::map<Slotted, int64_t>& slotted(Kind kind, int64_t layers, int64_t micro_batch);
  void add_slotted(const Staging& staging, int64_t stage, StageSlots& slots, int64_t micro_batch,
                   ClassBytes& bytes);
  const StageTime& sampled_time(Kind kind, int64_t layers, int64_t micro_batch);
  StageTime time_of(Kind kind, int64_t layers, int64_t micro_batch);
  // Whether all stages fit with `more` bytes each, of the device and of the host: `micro_batch`
  // sequences in buffers that are those of `sampled` sequences.
  bool fits_in(const Staging& staging, const std::vector<StageSlots*>& slots, int64_t micro_batch,
               int64_t sampled, double more);

  Config config_;
  // Layers of a segment that is formed again from its input, which come and go together; 1 where
  // each layer is on its own.
  int64_t segment_;
  // A stage of so many layers has all windows and temporaries that longer ones have: segments take
  // two windows on the device in turn, and the first one's input may be in none; the third segment,
  // of one layer here, has an input in each.
  int64_t shortest_;
  DeviceTraits device_;
  Ranks ranks_;
  Clocks& clocks_;
  std::vector<int64_t> micro_batches_;
  ShortStages* alike_;
  std::vector<bool> is_sampled_;                  // [micro-batch]: its memory is known
  OfStages<Sample> samples_;                      // of the largest micro-batch, with waits
  std::map<int64_t, SizedBytes> bytes_;           // by micro-batch
  std::map<int64_t, OfStages<StageTime>> times_;  // the same
  std::vector<StageFigures> figures_;
};

}  // namespace gptbench
