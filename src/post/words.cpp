#include "post/words.h"

#include <vector>

#include "deck/keys.h"
#include "deck/presets.h"
#include "post/field.h"
#include "post/options.h"

namespace gptbench {
namespace {

// All that --sort and --where take, each followed by `end`.
std::vector<std::string> figure_names(const std::string& end) {
  std::vector<std::string> names;
  for (const std::string& name : attribute_names()) names.push_back(name + end);
  for (const Key& key : key_table()) names.push_back(key.full_name() + end);
  return names;
}

std::vector<std::string> suggestions(Command command, const std::string& option) {
  if (option == "--sort") return figure_names("");
  if (option == "--where") return figure_names("=");
  if (option != "--profile") return values_of(command, option);
  std::vector<std::string> names;
  for (const Preset& machine : embedded_machines()) names.push_back(machine.name);
  return names;
}

}  // namespace

std::string completion_words() {
  std::string text;
  for (const std::string& name : command_names()) {
    const auto command = choice_of<Command>(name);
    text += name + "\n";
    for (const std::string& option : options_of(command)) {
      text += name + " " + option;
      for (const std::string& word : suggestions(command, option)) text += " " + word;
      text += "\n";
    }
  }
  return text + keys_words({});
}

}  // namespace gptbench
