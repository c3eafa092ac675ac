// What a virtual stage keeps of each layer from one pass to a later one: on the device, in a slot a
// micro-batch in flight, or, with parallel.offload = 'activations', in host memory or a file. The
// device then holds two windows that all groups of layers (one layer, or a checkpointed segment)
// take in turn: a group's arrays leave behind the computing of the next group and come back while
// the group behind it is worked on (Rhu et al., arXiv:1602.08124). Internal to the plan layer.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/builder.h"

namespace gptbench {

class ActivationOffload {
 public:
  // Arrays are formed by the forward pass, for backward ones, or by the pass that forms gradients
  // of activations, for the one that forms those of weights later (zero_bubble).
  enum Pass { forward, backward };

  // `groups` of the virtual stage. `returns_at_once`: backward directly follows forward, so that
  // the last two groups stay where they are.
  ActivationOffload(PlanBuilder& builder, int64_t groups, int64_t slots, bool returns_at_once);

  // Where operations find array `what` of a group, `columns` elements for each of the micro-batch's
  // rows / row_div. `prefix` names stage and layer; `stays`: on the device all the same (messages
  // between stages arrive there).
  int keep(Pass formed_by, int64_t group, const std::string& prefix, const std::string& what,
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

  PlanBuilder& builder_;
  int64_t groups_, slots_;
  bool offloads_, returns_at_once_;
  std::map<std::pair<Pass, int64_t>, std::vector<Kept>> kept_;  // (formed by, group): what leaves
};

}  // namespace gptbench
