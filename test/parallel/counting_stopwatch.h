// A stopwatch that counts: each span from a mark to the next takes a second.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "device/device.h"

namespace gptbench {

class CountingStopwatch final : public Stopwatch {
 public:
  void mark(Queue&, int label) override { labels_.push_back(label); }
  void collect(std::vector<double>& seconds) override {
    ASSERT_FALSE(labels_.empty());
    EXPECT_EQ(labels_.back(), -1);  // the step ends before what follows
    for (const int label : labels_)
      if (label >= 0) seconds.at(static_cast<size_t>(label)) += 1.0;
    collected_.swap(labels_);
    labels_.clear();
  }
  void repeat() override { labels_ = collected_; }
  void forget() override { labels_.clear(); }

  // Of the step collected last, marks that take an event: a label that lasts takes no second one.
  int events() const {
    int changes = 0;
    for (size_t i = 0; i < collected_.size(); ++i)
      if (i == 0 || collected_[i] != collected_[i - 1]) ++changes;
    return changes;
  }

 private:
  std::vector<int> labels_, collected_;
};

}  // namespace gptbench
