// Contents of a checkpoint: a function of the deck that does not depend on the layout of the ranks.
//
//   weights/<tensor>, moment1/<tensor>, moment2/<tensor>   each tensor of the model under its name,
//       in its global shape. f32, and f64 where the deck computes in that: wider types hold the
//       shorter ones exactly. Rows that only pad the vocabulary for tensor parallelism are left
//       out.
//   fp8/<factor>   scale of the next step, then the largest magnitudes of the last steps, from the
//       oldest on; where the deck computes in fp8.
//
// The rest (TrainingState, seed, keys of the model) stands in the manifest and, for other programs,
// in attributes of the file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "deck/config.h"
#include "io/array_file.h"
#include "plan/representation.h"

namespace gptbench {

// Copies of the tensors that are stored, in the order of the file.
struct StoredRole {
  Role role;  // the one that is read
  const char* group;
  const char* description;
};
constexpr StoredRole stored_roles[] = {
    {Role::master, "weights", "parameter as the optimizer updates it"},
    {Role::moment1, "moment1", "first moment of AdamW"},
    {Role::moment2, "moment2", "second moment of AdamW"},
};

// All arrays of a checkpoint of `config`: the tensors of each role in canonical order, then the
// factors of fp8.
std::vector<FileArray> contents_of(const Config& config);

std::string fp8_array(const std::string& factor);  // name of its array

// The keys of the model that two runs of one model have in common, with their values.
std::vector<std::pair<std::string, std::string>> model_keys(const Config& config);
// What training follows and a run that continues may change: keys of the optimizer and of the
// learning rate, the batch and how many sequences are held out, with their values.
std::vector<std::pair<std::string, std::string>> training_keys(const Config& config);

}  // namespace gptbench
