// Rows of published tables as records.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "record/record.h"

namespace gptbench {

// One row by the names of its columns.
class PublishedRow {
 public:
  PublishedRow(std::string where, std::map<std::string, std::string> texts)
      : where_(std::move(where)), texts_(std::move(texts)) {}

  // "" where there is no such column.
  std::string text(const std::string& key) const {
    const auto found = texts_.find(key);
    return found == texts_.end() ? "" : found->second;
  }
  // Absent where the figure is not known. A unit may follow: "7718.0 MiB", "512 (2.2Hz)".
  std::optional<double> number(const std::string& key) const;
  int64_t integer(const std::string& key, int64_t fallback) const;
  bool yes(const std::string& key) const {
    const std::string value = lower(text(key));
    return value == "true" || value == "yes";
  }
  const std::string& where() const { return where_; }

 private:
  std::string where_;
  std::map<std::string, std::string> texts_;
};

// Rows of the forms that published.h names.
Record mpt_run(const PublishedRow& row);
Record fugaku_run(const PublishedRow& row);
Record zero_run(const PublishedRow& row);
Record megatron_run(const PublishedRow& row);
Record scaling_point(const PublishedRow& row);

}  // namespace gptbench
