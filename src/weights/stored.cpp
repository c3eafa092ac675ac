#include "weights/stored.h"

#include "base/error.h"
#include "deck/deck.h"
#include "deck/validate.h"

namespace gptbench {

ModelConfig model_from(const std::string& where, const ModelKeys& keys,
                       const std::vector<std::string>& overrides) {
  std::string text = "&model\n";
  for (const auto& [key, value] : keys) text += key + " = " + value + "\n";
  try {
    const Deck deck = parse_deck(where, text + "/\n", overrides);
    validate(deck);
    ModelConfig model = filled_in(deck.config, 1).model;
    model.vocab_multiple = 1;
    return model;
  } catch (const Error& error) {
    // The line and column behind `where` are those of this text, which nobody sees.
    std::string message = error.what();
    if (message.compare(0, where.size(), where) == 0)
      message.erase(where.size(), message.find(": ", where.size()) - where.size());
    throw Error(Exit::io, message);
  }
}

std::vector<StoredTensor> tensors_of(const ModelConfig& model) {
  std::vector<StoredTensor> all;
  for (const LogicalTensor& each : tensor_table(model)) {
    StoredTensor tensor;
    tensor.name = each.name;
    tensor.shape = {each.rows};
    if (each.dimensions == 2) tensor.shape.push_back(each.cols);
    tensor.tensor = all.size();
    tensor.rows = each.rows;
    tensor.cols = each.cols;
    all.push_back(tensor);
  }
  return all;
}

ModelKeys keys_to_set(const ModelConfig& model) {
  Config config;
  config.model = model;
  const Config defaults = filled_in(Config{}, 1);
  ModelKeys keys;
  for (const Key& key : key_table())
    if (key.group == "model" && key.get(config) != key.get(defaults))
      keys.emplace_back(key.name, format_value(key, key.get(config)));
  return keys;
}

}  // namespace gptbench
