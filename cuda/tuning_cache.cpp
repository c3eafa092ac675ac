#include "cuda/tuning_cache.h"

#include "base/error.h"
#include "base/text.h"

namespace gptbench {

std::vector<std::pair<std::string, std::string>> tuning_lines(const TuningKind& kind,
                                                              const std::string& library,
                                                              const std::string& text) {
  const std::string library_prefix = std::string(kind.prefix) + "_library=";
  const std::string line_prefix = std::string(kind.prefix) + ".";
  std::vector<std::pair<std::string, std::string>> lines;
  for (const std::string& line : split(text, '\n')) {
    const size_t equals = line.find('=');
    if (line.rfind(library_prefix, 0) == 0 && line.substr(equals + 1) != library)
      throw Error(Exit::io, std::string(kind.all) + " are those of " + line.substr(equals + 1) +
                                ", this rank has " +
                                (library.empty() ? "our own kernels alone" : library) +
                                "; use GPUs and libraries of one kind on all ranks, and "
                                "run.algorithms = '' (a timed search) or a result of theirs");
    if (line.rfind(line_prefix, 0) == 0 && equals != std::string::npos)
      lines.emplace_back(line.substr(line_prefix.size(), equals - line_prefix.size()),
                         line.substr(equals + 1));
  }
  return lines;
}

void refuse_selection(const TuningKind& kind, const std::string& key,
                      const std::string& selection) {
  throw Error(Exit::io, std::string("not ") + kind.one + ": '" + kind.prefix + "." + key + "=" +
                            selection + "'");
}

void refuse_key(const std::string& text, const char* what, const std::string& example) {
  throw Error(Exit::io,
              "'" + text + "' names no " + what + "; expected is a name such as " + example);
}

void KeyWriter::number(char letter, int64_t value) {
  text_ += std::string(".") + letter + std::to_string(value);
}

void KeyWriter::type(std::initializer_list<DType> /*types*/, DType value) {
  text_ += std::string(".") + name_of(value);
}

void KeyWriter::flag(const char* name, bool value) {
  if (value) text_ += std::string(".") + name;
}

KeyReader::KeyReader(const std::string& text) : words_(split(text, '.')) {}

std::string KeyReader::next() {
  return at_ < words_.size() ? words_[at_++] : "";
}

void KeyReader::name(std::initializer_list<const char*> names, int& which) {
  const std::string word = next();
  which = -1;
  for (size_t i = 0; i < names.size(); ++i)
    if (word == names.begin()[i]) which = static_cast<int>(i);
  known_ = known_ && which >= 0;
}

void KeyReader::number(char letter, int64_t& value) {
  const std::string word = next();
  known_ = known_ && word.size() > 1 && word.size() < 13 && word[0] == letter &&
           word.find_first_not_of("0123456789", 1) == std::string::npos;
  if (known_) value = std::stoll(word.substr(1));
}

void KeyReader::type(std::initializer_list<DType> types, DType& value) {
  const std::string word = next();
  bool found = false;
  for (const DType type : types)
    if (word == name_of(type)) {
      value = type;
      found = true;
    }
  known_ = known_ && found;
}

void KeyReader::flag(const char* name, bool& value) {
  value = at_ < words_.size() && words_[at_] == name;
  if (value) ++at_;
}

}  // namespace gptbench
