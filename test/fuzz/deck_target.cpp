// What must hold for any bytes given as a deck: it is refused with one line, or accepted, and then
// its echo is a deck with the same Config.
#include <string>

#include "base/error.h"
#include "deck/deck.h"
#include "deck/validate.h"
#include "targets.h"

namespace gptbench {
namespace {

// The first line may be an override: "!!group.key=value".
std::vector<std::string> overrides_of(const std::string& text) {
  if (text.rfind("!!", 0) != 0) return {};
  return {text.substr(2, text.find('\n') - 2)};
}

}  // namespace

bool fuzz_deck(const std::string& text) {
  Deck deck;
  try {
    deck = parse_deck("deck", text, overrides_of(text));
  } catch (const Error& error) {
    const std::string message = error.what();
    require(error.code() == Exit::usage, "exit status", message);
    require(message.find('\n') == std::string::npos, "more than one line", message);
    require(message.rfind("deck:", 0) == 0 || message.rfind("command line:", 0) == 0, "no place",
            message);
    return false;
  }
  const std::string shown = echo(deck);
  Deck again;
  try {
    again = parse_deck("echo", shown, {});
  } catch (const Error& error) {
    require(false, error.what(), shown);
  }
  for (const Key& key : key_table()) {
    require(key.get(deck.config) == key.get(again.config), key.full_name(), shown);
  }
  try {
    validate(deck);
    resolve(deck, 12);
  } catch (const Error& error) {
    require(error.code() == Exit::usage, "exit status", error.what());
  }
  return true;
}

}  // namespace gptbench
