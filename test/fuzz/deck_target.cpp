// What must hold for any bytes given as a deck: it is refused with one line, or accepted, and then
// its echo is a deck with the same Config. Entry point of libFuzzer and of deck_mutation_test.cpp.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "deck/deck.h"
#include "deck/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void require(bool holds, const char* what, const std::string& text) {
  if (holds) return;
  std::fprintf(stderr, "%s\n%s\n", what, text.c_str());
  std::abort();
}

// The first line may be an override: "!!group.key=value".
std::vector<std::string> overrides_of(const std::string& text) {
  if (text.rfind("!!", 0) != 0) return {};
  return {text.substr(2, text.find('\n') - 2)};
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gptbench;
  const std::string text(reinterpret_cast<const char*>(data), size);
  Deck deck;
  try {
    deck = parse_deck("deck", text, overrides_of(text));
  } catch (const Error& error) {
    const std::string message = error.what();
    require(error.code() == Exit::usage, "exit status", message);
    require(message.find('\n') == std::string::npos, "more than one line", message);
    require(message.rfind("deck:", 0) == 0 || message.rfind("command line:", 0) == 0, "no place",
            message);
    return 0;
  }
  const std::string shown = echo(deck);
  Deck again;
  try {
    again = parse_deck("echo", shown, {});
  } catch (const Error& error) {
    require(false, error.what(), shown);
  }
  for (const Key& key : key_table()) {
    require(key.get(deck.config) == key.get(again.config), key.full_name().c_str(), shown);
  }
  try {
    validate(deck);
    resolve(deck, 12);
  } catch (const Error& error) {
    require(error.code() == Exit::usage, "exit status", error.what());
  }
  return 0;
}
