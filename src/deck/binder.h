// From assignments to a Deck: each key found in the key table, its value read as the table says and
// put over what was there.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "deck/deck.h"
#include "deck/keys.h"
#include "deck/namelist.h"
#include "deck/values.h"

namespace gptbench {

// The group of a sweep (sweep/config.h) is no part of a run: its keys stand in a table of their
// own.
constexpr const char* sweep_group = "sweep";

// "&run, &model, ...", for messages.
std::string group_list();
[[noreturn]] void fail_unknown_group(const Source& source, Place place, const std::string& name);
// "; did you mean 'steps'?", or "; keys: steps, seed, ..." where none of the keys is close to
// `name`.
std::string key_hint(const std::string& name, const std::vector<std::string>& keys);

// The token as a value of the key. Throws Error(Exit::usage) where it is none, or not allowed.
KeyValue read_scalar(const Source& source, const Key& key, const Token& token);

// Elements of keys that one layer of settings gives: each may be given once.
class Claims {
 public:
  // The elements that the assignment gives, now claimed; a scalar is claimed by a null value as
  // well. Throws Error(Exit::usage) where one was claimed before.
  std::vector<Element> take(const Source& source, const Key& key, const Assignment& assignment);

 private:
  std::map<std::pair<std::string, int64_t>, std::string> places_;
};

// One layer of settings on top of the Config so far.
class Binder {
 public:
  Binder(Deck& deck, Origin::Kind kind) : deck_(deck), kind_(kind) {}

  // `where` replaces the place of each key in its Origin (presets); "" keeps it. Throws
  // Error(Exit::usage) where a key is given twice in this layer or its value is not allowed.
  void bind(const Source& source, const Key& key, const Assignment& assignment,
            const std::string& where = "");
  void bind(const Source& source, const std::vector<Group>& groups, const std::string& where = "");

 private:
  Deck& deck_;
  Origin::Kind kind_;
  Claims claims_;
  std::map<std::string, std::vector<std::string>> lists_;
};

// "group.key=value" in its parts, trimmed, group and key in lower case. Throws Error(Exit::usage)
// that calls what was expected `form`.
struct SettingText {
  std::string group, key, value;
};
SettingText split_setting(const Source& source, const std::string& text, const std::string& form);

// The same with its value read, quotes of strings optional: from the command line or from a row of
// a sweep.
struct Setting {
  Source source;
  const Key* key = nullptr;
  Assignment assignment;
};

// A setting of the command line, by which messages name it.
Source command_line_source(const std::string& setting);
// Throws Error(Exit::usage) that begins with the name of `source`, which has no places.
Setting parse_setting(const Source& source, const std::string& text);
// Tokens after the '=' of a setting.
std::vector<Token> parse_setting_value(const Source& source, const Key& key,
                                       const std::string& text);

// The deck of `groups` with a sweep's row between deck and command line: keys of `row` replace the
// deck's own, a preset among them included.
Deck bind_deck(const std::string& path, const std::string& text, const std::vector<Group>& groups,
               const std::vector<Setting>& row, const std::vector<Setting>& overrides);

}  // namespace gptbench
