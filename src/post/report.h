// One HTML page of one run or of many, complete in itself: no script, no font, no network.
#pragma once

#include <string>

#include "post/plot.h"

namespace gptbench {

// Headline, rules, table, keys that were set, pictures and provenance; for several runs what they
// have in common and what tells them apart. What shows one run (Shows::one_run) is folded beyond
// the eighth; print shows it unfolded where the browser knows ::details-content.
std::string report_page(const Runs& runs, const PlotOptions& options = {});

}  // namespace gptbench
