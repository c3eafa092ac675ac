// Fits figures of profiles to measured rows: least squares of ln(projected / measured), in the
// logarithms of the figures, robust against rows that no model explains, and pulled towards
// starting values, so that a figure that the rows say nothing of stays where it is. So does one
// that a single row depends on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "published.h"

namespace gptbench {

// Profiles that rows name, by name.
struct Profiles {
  std::map<std::string, Machine> machines;
  std::map<std::string, Software> softwares;
};

// A figure to fit: the key of profiles that share its value, and where it starts.
struct Fitted {
  std::string key;
  std::vector<std::string> profiles;
  double start = 1.0;
};
// Where they stand, one per profile.
std::vector<double*> figures_of(Profiles& profiles, const Fitted& figure);

// ln(projected / measured) of a row.
double log_error(const PublishedRow& row, const Profiles& profiles);

// The profiles with the figures fitted to `rows`.
Profiles fit(const std::vector<const PublishedRow*>& rows, Profiles profiles,
             const std::vector<Fitted>& figures);

}  // namespace gptbench
