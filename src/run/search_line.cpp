#include "run/search_line.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "run/console.h"

namespace gptbench {
namespace {

constexpr double patience_s = 3.0, pause_s = 0.5;

}  // namespace

SearchLine::SearchLine() : SearchLine(is_terminal(STDERR_FILENO) ? stderr : nullptr, now_s()) {}

SearchLine::~SearchLine() {
  if (!is_shown_) return;
  std::fputs("\r\033[K", out_);
  std::fflush(out_);
}

void SearchLine::show(const SearchProgress& progress, double now_s) {
  if (out_ == nullptr || now_s - start_s_ < patience_s) return;
  if (is_shown_ && now_s - shown_s_ < pause_s) return;
  is_shown_ = true;
  shown_s_ = now_s;
  std::string text =
      "Layouts judged: " + format_count(progress.judged) + " of " + format_count(progress.layouts);
  if (progress.projected > 0) text += ", projected: " + format_count(progress.projected);
  std::fprintf(out_, "\r%s\033[K", text.c_str());
  std::fflush(out_);
}

SearchWatch SearchLine::watch() {
  return [this](const SearchProgress& progress) {
    show(progress, now_s());
    return true;
  };
}

}  // namespace gptbench
