#include "weights/contents.h"

#include "base/text.h"
#include "deck/keys.h"
#include "plan/fp8.h"
#include "plan/tensor_parts.h"

namespace gptbench {

std::string fp8_array(const std::string& factor) {
  return "fp8/" + factor;
}

std::vector<FileArray> contents_of(const Config& config) {
  std::vector<FileArray> arrays;
  const std::vector<LogicalTensor> tensors = tensor_table(config.model);
  for (const StoredRole& stored : stored_roles)
    for (const LogicalTensor& tensor : tensors) {
      FileArray array;
      array.name = std::string(stored.group) + "/" + tensor.name;
      array.type = checkpoint_type(config);
      array.shape = {tensor.rows};
      if (tensor.dimensions == 2) array.shape.push_back(tensor.cols);
      array.description = stored.description;
      arrays.push_back(array);
    }
  if (config.precision.compute != Precision::fp8) return arrays;
  for (int64_t layer = 0; layer < config.model.num_layers; ++layer)
    for (const Linear linear : all_linears)
      for (const Fp8Role role : all_fp8_roles) {
        FileArray array;
        array.name = fp8_array(factor_name(layer, linear, role));
        array.shape = {1 + config.precision.fp8_amax_history};
        array.description = "scale of the next step, then amax of the last steps, oldest first";
        arrays.push_back(array);
      }
  return arrays;
}

std::vector<std::pair<std::string, std::string>> model_keys(const Config& config) {
  // The other keys of &model do not change the meaning of weights.
  const std::vector<std::string> others = {"preset", "dropout", "init_std", "num_params"};
  std::vector<std::pair<std::string, std::string>> keys;
  for_each_key(config, [&](const Key& key, const KeyValue& value) {
    if (key.group == "model" && !contains(others, key.name))
      keys.emplace_back(key.full_name(), format_value(key, value));
  });
  return keys;
}

std::vector<std::pair<std::string, std::string>> training_keys(const Config& config) {
  const bool decays = config.convergence.lr_schedule == LearningRate::cosine;
  const std::vector<std::string> of_cosine = {"lr_decay_steps", "lr_min"};
  std::vector<std::pair<std::string, std::string>> keys;
  for_each_key(config, [&](const Key& key, const KeyValue& value) {
    const bool is_rate = key.group == "convergence" && key.name.rfind("lr_", 0) == 0 &&
                         (decays || !contains(of_cosine, key.name));
    if (key.group == "optimizer" || is_rate || key.full_name() == "batch.global_batch_size")
      keys.emplace_back(key.full_name(), key.name == "lr_decay_steps"
                                             ? std::to_string(decay_steps_of(config))
                                             : format_value(key, value));
  });
  keys.emplace_back("held_out_sequences", std::to_string(held_out_sequences(config)));
  return keys;
}

}  // namespace gptbench
