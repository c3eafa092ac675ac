#include "post/csv.h"

#include "base/choice.h"
#include "base/error.h"
#include "base/text.h"

namespace gptbench {
namespace {

// First cells that begin with # and are none the less cells: what spreadsheets leave in place of a
// figure, and headings of published tables.
const std::vector<std::string> cells_with_hash = {
    "#VALUE!", "#REF!", "#N/A", "#DIV/0!", "#NAME?", "#NUM!", "#NULL!", "# GPUs", "# gpus"};

bool is_comment(const std::string& line) {
  return line.front() == '#' && !contains(cells_with_hash, trim(line.substr(0, line.find(','))));
}

// Reads the rows of one text from its beginning to its end.
class Reader {
 public:
  Reader(const std::string& path, const std::string& text) : path_(path), text_(text) {}

  std::vector<CsvRow> rows() {
    std::vector<CsvRow> rows;
    while (at_ < text_.size()) {
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      const std::string line = trim(text_.substr(at_, end - at_));
      if (line.empty() || is_comment(line)) {
        at_ = end + 1;
        ++line_;
        continue;
      }
      rows.push_back({line_, fields()});
    }
    return rows;
  }

 private:
  std::vector<std::string> fields() {
    std::vector<std::string> fields;
    for (;;) {
      fields.push_back(field());
      const bool ends = at_ >= text_.size() || text_[at_] == '\n';
      if (ends && at_ < text_.size()) ++line_;
      ++at_;  // past the comma or the line's end
      if (ends) return fields;
    }
  }

  // Leaves at_ on the comma or line's end after the field.
  std::string field() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    std::string value = at_ < text_.size() && text_[at_] == '"' ? quoted() : "";
    const size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
    value += trim(text_.substr(at_, end - at_));
    at_ = end;
    return value;
  }

  std::string quoted() {
    const size_t first_line = line_;
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        value += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        value += text_[at_++];
      } else {
        ++at_;
        return value;
      }
    }
    throw Error(Exit::usage, path_ + ":" + std::to_string(first_line) + ": a quote is not closed");
  }

  const std::string& path_;
  const std::string& text_;
  size_t at_ = 0, line_ = 1;
};

}  // namespace

std::vector<CsvRow> parse_csv(const std::string& path, const std::string& text) {
  return Reader(path, text).rows();
}

}  // namespace gptbench
