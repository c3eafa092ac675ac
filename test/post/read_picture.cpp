#include "read_picture.h"

#include <cmath>

namespace gptbench {

Record on(int64_t ranks, double tokens_per_s, int64_t seq_length) {
  Record r = made_record();
  set_key(r, "model", "seq_length", seq_length);
  set_key(r, "parallel", "data_parallel", ranks);
  r.summary.world_size = ranks;
  r.summary.rate.tokens_per_s = tokens_per_s;
  return r;
}

std::string curves_of(const Picture& picture, size_t panel) {
  std::string text;
  if (picture.panels.size() <= panel) return text;
  for (const Curve& curve : picture.panels[panel].curves) {
    text += curve.name + ":";
    for (const Mark& mark : curve.marks)
      text += " (" + std::to_string(std::lround(mark.x)) + " " +
              std::to_string(std::lround(mark.y)) + ")";
    text += "\n";
  }
  return text;
}

std::string bars_of(const Picture& picture, size_t panel) {
  std::string text;
  if (picture.panels.size() <= panel) return text;
  for (const auto& [row, label] : picture.panels[panel].y.ticks) {
    text += label + ":";
    for (const Box& box : picture.panels[panel].boxes)
      if (box.top < row && row < box.bottom && box.right > box.left && box.left + 1e-9 >= 0.0 &&
          box.name != "did not fit")
        text += " " + box.name + " " + std::to_string(std::lround(box.right - box.left)) + ",";
    text += "\n";
  }
  return text;
}

}  // namespace gptbench
