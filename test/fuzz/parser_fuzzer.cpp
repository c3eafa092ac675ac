// One target of targets.h for libFuzzer: that which the environment variable GPTBENCH_FUZZ names,
// on its seeds, which are written into the first directory of the command line. The words of the
// seeds and of decks are written into the file that -dict names, before libFuzzer reads it. Without
// the variable, the names are printed.
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "deck/keys.h"
#include "targets.h"

namespace {

using gptbench::FuzzTarget;

const FuzzTarget* target = nullptr;

constexpr size_t max_word_bytes = 64;  // of libFuzzer

// Names, numbers and quoted texts: what mutation of bytes hardly ever makes.
void add_words(const std::string& text, std::set<std::string>& words) {
  std::string word;
  for (const char c : text + "\n") {
    const bool belongs =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
    if (belongs) {
      word += c;
      continue;
    }
    if (word.size() > 1 && word.size() <= max_word_bytes) words.insert(word);
    word.clear();
  }
}

std::set<std::string> words_of_target() {
  std::set<std::string> words = {" /\\x0a",    "''",     "\\\"\\\"",
                                 ",,",         "2*",     "(1:3:2)=",
                                 "\\x0d\\x0a", "&end",   "9223372036854775807",
                                 "-1",         "1e-308", "1e999",
                                 "nan",        "!!"};
  for (const std::string& seed : target->seeds()) add_words(seed, words);
  // A binary file has words by chance, and its target no use for keys of decks.
  const std::string name = target->name;
  if (name == "deck" || name == "sweep" || name == "manifest")
    for (const gptbench::Key& key : gptbench::key_table()) {
      words.insert(name == "deck" ? "!!" + key.full_name() + "=" : key.full_name());
      words.insert(key.name + "=");
      words.insert("&" + key.group);
      for (const std::string& value : key.allowed) words.insert("'" + value + "'");
    }
  return words;
}

void write_seeds(const std::string& directory) {
  std::filesystem::create_directories(directory);
  int number = 0;
  for (const std::string& seed : target->seeds())
    std::ofstream(directory + "/seed_" + std::to_string(number++), std::ios::binary) << seed;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const char* const wanted = std::getenv("GPTBENCH_FUZZ");
  for (const FuzzTarget& each : gptbench::fuzz_targets())
    if (wanted != nullptr && each.name == std::string(wanted)) target = &each;
  if (target == nullptr) {
    for (const FuzzTarget& each : gptbench::fuzz_targets()) std::puts(each.name);
    std::exit(wanted == nullptr ? 0 : 2);
  }
  const std::string option = "-dict=";
  bool has_seeds = false;
  for (int i = 1; i < *count; ++i) {
    const std::string argument = (*arguments)[i];
    if (argument.compare(0, option.size(), option) == 0) {
      std::ofstream file(argument.substr(option.size()));
      for (const std::string& word : words_of_target()) file << '"' << word << "\"\n";
    }
    // A file is an input to repeat.
    if (argument[0] == '-' || has_seeds || std::filesystem::is_regular_file(argument)) continue;
    write_seeds(argument);
    has_seeds = true;
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
