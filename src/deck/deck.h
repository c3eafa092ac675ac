// A deck: namelist text, preset and command-line overrides -> Config, with the origin of each key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "deck/config.h"
#include "deck/keys.h"

namespace gptbench {

// Where the value of a key came from. Later ones win: the deck overrides a class and a preset that
// it names; a preset named on the command line overrides the deck, and keys beside it override
// that.
struct Origin {
  enum class Kind { default_value, problem_class, preset, deck, sweep, command_line };
  Kind kind = Kind::default_value;
  std::string where;  // "deck.in:3:5", "command line: run.steps=20"; of the preset key for a preset
};

// Keys that do not go together.
class Refusal : public Error {
 public:
  Refusal(std::vector<std::string> keys, const std::string& message)
      : Error(Exit::usage, message), keys_(std::move(keys)) {}
  const std::vector<std::string>& keys() const { return keys_; }  // "group.key"

 private:
  std::vector<std::string> keys_;
};

struct Deck {
  Config config;
  std::string path;                    // as given by the user
  std::string raw_text;                // of the file, byte for byte
  std::vector<std::string> overrides;  // as given, "group.key=value"
  std::vector<Origin> origins;         // parallel to key_table()

  const Origin& origin(const std::string& group, const std::string& key) const;
  // Beginning of a message about keys that do not go together: place of the one among `keys`
  // ("group.key") that the user set last (command line before deck before preset); the deck's path
  // where all are defaults.
  std::string where(const std::vector<std::string>& keys) const;
  // Throws Refusal, "<where(keys)>: <message>". In the message {run.steps} stands for
  // "run.steps = 10", {=run.steps} for "10"; text that names no key stays as it is.
  [[noreturn]] void fail(const std::vector<std::string>& keys, const std::string& message) const;
};

// Largest deck accepted. A deck is written by hand; more is a data file given by mistake.
constexpr int64_t max_deck_bytes = 1024 * 1024;

// Text of the file. Throws Error(Exit::usage) where it is missing, not readable, a directory, empty
// or larger than max_deck_bytes; never reads more than that. Rank 0 calls it and broadcasts. `kind`
// is what messages call the file.
std::string read_deck_text(const std::string& path, const std::string& kind = "deck");

// Grammar, key table and overrides ("group.key=value", string quotes optional). Deterministic, no
// input or output: every rank calls it with the same text. Cross-key checks are validate()'s.
Deck parse_deck(const std::string& path, const std::string& text,
                const std::vector<std::string>& overrides);

// read_deck_text, parse_deck and validate (deck/validate.h), the layout being from where run.layout
// says.
Deck read_deck(const std::string& path, const std::vector<std::string>& overrides);

// The deck with every key, in namelist syntax of at most 80 columns between rules, each key that
// the user did not set marked '! default' or '! preset'. It is a valid deck and gives the same
// Config. The second form prints `resolved` (from resolve(), deck/validate.h) and marks what it
// filled in '! resolved'.
std::string echo(const Deck& deck);
std::string echo(const Deck& deck, const Config& resolved);
// Only the keys that the user set, one paragraph per group, in 80 columns and at most `max_lines`
// lines: where these are too few, keys that are set to their default are left out, then the last
// ones, and a last line says how many.
std::string keys_that_were_set(const Deck& deck, size_t max_lines);
// The keys that the user set as a deck of its own: reading it gives the same Config.
std::string deck_text(const Deck& deck);

}  // namespace gptbench
