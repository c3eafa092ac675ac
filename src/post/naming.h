// Names of runs in pictures: what runs share, and what tells them apart.
#pragma once

#include <string>
#include <vector>

#include "post/run_view.h"

namespace gptbench {

// Model, layout, precision and every varied key, but for the number of ranks (over_length: the
// sequence length): `shared` are those in which all runs agree, names[i] the others of run i. Runs
// with equal names are one series.
struct Naming {
  std::string shared;
  std::vector<std::string> names;
};
Naming naming_of(const Runs& runs, bool over_length);

// A picture's line below its title: `shared`, machines and dates.
std::string subtitle_of(const std::string& shared, const Runs& runs);
std::string subtitle_of(const Runs& runs);

// Names of runs with their ranks, where several have the same also what tells them apart, and the
// outcome of those that did not come to figures; equal ones are numbered.
std::vector<std::string> labels_of(const Runs& runs);

// "a; b; and 9 more": up to eight names, of more the first seven.
std::string listed(std::vector<std::string> names);

// Whether a deck key may decide the speed of a run: another layout, device or precision.
bool may_decide_speed(const ConfigEntry& entry);

// "optimizer state" of "optimizer_state".
std::string spaced(std::string name);

// Waiting for pipeline messages, which no record names.
inline constexpr const char* bubble = "pipeline wait (bubble)";
// Kinds of work (regions of /timing) in the order of their styles, which are the same in every
// picture; programs where a record has no kinds.
inline const std::vector<std::string> kinds_of_work = {
    "linear", "attention", "head loss",     "layernorm", "activation", bubble,
    "data",   "optimizer", "communication", "embedding", "forward",    "backward"};

}  // namespace gptbench
