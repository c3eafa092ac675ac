// What a virtual stage keeps of each layer from one pass to a later one: on the device, in a slot a
// micro-batch in flight, or, with parallel.offload = 'activations', in host memory or a file. The
// device then holds two windows that all groups of layers (one layer, or a checkpointed segment)
// take in turn: a group's arrays leave behind the computing of the next group and come back while
// the group behind it is worked on (Rhu et al., arXiv:1602.08124). Internal to the plan layer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/stage_builder.h"

namespace gptbench {

class ActivationOffload {
 public:
  // Arrays are formed by the forward pass, for backward ones, or by the pass that forms gradients
  // of activations, for the one that forms those of weights later (zero_bubble).
  enum Pass { forward, backward };

  // `groups` of the virtual stage.
  ActivationOffload(const StageBuilder& stage, int64_t groups) : stage_(stage), groups_(groups) {}

  // Where operations find array `what` of a group, `columns` elements for each of the micro-batch's
  // rows / row_div. `name` of the layer; `stays`: on the device all the same (messages between
  // stages arrive there).
  int keep(Pass formed_by, int64_t group, const std::string& name, const std::string& what,
           DType dtype, int64_t columns, int64_t row_div, bool stays = false);

  // A group has been formed, and will not be written again; is needed by what follows the next
  // group that is worked on. Nothing where it is on the device.
  void store(Pass formed_by, int64_t group) { transfer(OpKind::store, formed_by, group); }
  void load(Pass formed_by, int64_t group) { transfer(OpKind::load, formed_by, group); }

 private:
  struct Kept {
    int window, away;
    int64_t columns, row_div;
  };
  void transfer(OpKind kind, Pass formed_by, int64_t group);

  const StageBuilder& stage_;
  int64_t groups_;
  std::map<std::pair<Pass, int64_t>, std::vector<Kept>> kept_;  // (formed by, group): what leaves
};

}  // namespace gptbench
