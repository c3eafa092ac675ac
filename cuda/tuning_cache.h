// Algorithms of a library as selected by timing or read from an earlier result, and their text in
// result files: a line "gemm_library=<version and device>", then one line per key,
// "gemm.linear_forward.R8192.K768.N3072.bf16.bias=fused 0 us 12.500 ...". Pure, without CUDA.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"

namespace gptbench {

// Whether an algorithm that takes `time_us` is selected in the place of the fastest before it,
// which takes `best_us`; 0: there is none. Of equally fast ones the first stays.
inline bool is_faster(double time_us, double best_us) {
  return best_us == 0.0 || time_us < best_us;
}

// How lines of one kind of selections begin, and what messages call them.
struct TuningKind {
  const char* prefix;  // "gemm"
  const char* all;     // "the selected GEMM algorithms"
  const char* one;     // "a selected GEMM algorithm"
};

// The lines of `text` that are of `kind`, as {key, selection}. Throws Error(Exit::io) where they
// belong to another library than `library`.
std::vector<std::pair<std::string, std::string>> tuning_lines(const TuningKind& kind,
                                                              const std::string& library,
                                                              const std::string& text);
[[noreturn]] void refuse_selection(const TuningKind& kind, const std::string& key,
                                   const std::string& selection);

// text_of() writes a key or a selection. Key::parse(text) reads a key and throws Error(Exit::io),
// selection.parse(text) returns false, where text_of() would not have written it.
template <class Key, class Selection>
struct TuningCache {
  std::string library;  // version and device that the selections belong to; "": no library
  std::map<Key, Selection> by_key;

  // Ordered by key; "" where there is no library.
  std::string text() const {
    const std::string prefix = Selection::kind.prefix;
    if (library.empty()) return "";
    std::string text = prefix + "_library=" + library + "\n";
    for (const auto& [key, selection] : by_key)
      text += prefix + "." + text_of(key) + "=" + text_of(selection) + "\n";
    return text;
  }

  // Adds the lines of `text` that are of this kind; keys already there stay as they are. Throws
  // Error(Exit::io) where a line cannot be read, and where it belongs to another library.
  void add(const std::string& text) {
    for (const auto& [key, value] : tuning_lines(Selection::kind, library, text)) {
      Selection selection;
      const Key parsed = Key::parse(key);
      if (!selection.parse(value)) refuse_selection(Selection::kind, key, value);
      by_key.emplace(parsed, selection);
    }
  }
};

// The text of a key, "name.R8192.K768.bf16.bias": one of several names, numbers each behind a
// letter, a type, and flags that are left out where false. A key lists these parts once, for both:
//     text.name(names, which), text.number('R', R), text.type(types, type), text.flag("bias", bias)
class KeyWriter {
 public:
  void name(std::initializer_list<const char*> names, int which) { text_ = names.begin()[which]; }
  void number(char letter, int64_t value);
  void type(std::initializer_list<DType> types, DType value);
  void flag(const char* name, bool value);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class KeyReader {
 public:
  explicit KeyReader(const std::string& text);
  void name(std::initializer_list<const char*> names, int& which);
  void number(char letter, int64_t& value);
  void type(std::initializer_list<DType> types, DType& value);
  void flag(const char* name, bool& value);
  // Whether the text had all parts and no others.
  bool is_read() const { return known_ && at_ == words_.size(); }

 private:
  std::string next();  // "" behind the last

  std::vector<std::string> words_;
  size_t at_ = 0;
  bool known_ = true;
};

// Keys are ordered by parts(), the values that tell them apart; list_parts(text) is as above.
template <class Key>
auto operator<(const Key& a, const Key& b) -> decltype(a.parts() < b.parts()) {
  return a.parts() < b.parts();
}
template <class Key>
auto operator==(const Key& a, const Key& b) -> decltype(a.parts() == b.parts()) {
  return a.parts() == b.parts();
}
template <class Key>
std::string key_text(Key key) {
  KeyWriter text;
  key.list_parts(text);
  return text.text();
}
// Throws Error(Exit::io) that calls a key `what` and shows one, where the text is none.
[[noreturn]] void refuse_key(const std::string& text, const char* what, const std::string& example);
template <class Key>
Key parse_key(const std::string& text, const char* what, const Key& example) {
  Key key;
  KeyReader reader(text);
  key.list_parts(reader);
  if (!reader.is_read()) refuse_key(text, what, key_text(example));
  return key;
}

}  // namespace gptbench
