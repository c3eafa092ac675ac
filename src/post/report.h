// One HTML page of one run or of many, complete in itself: no script, no font, no network.
#pragma once

#include <string>

#include "post/plot.h"

namespace gptbench {

// Headline, rules, table, keys that were set, pictures and provenance; for several runs what they
// have in common and what tells them apart.
std::string report_page(const Runs& runs, const PlotOptions& options = {});

}  // namespace gptbench
