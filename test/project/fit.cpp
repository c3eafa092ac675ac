#include "fit.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace gptbench {
namespace {

using Vector = std::vector<double>;

// Results with other values: test/reference/README.md, "What the fit assumes".
constexpr double usual_error = 0.03;  // of a row: larger ones count less and less
constexpr double usual_change = 0.5;  // of the logarithm of a figure from its start
constexpr double difference = 1e-3;   // for derivatives
constexpr int max_steps = 200;

void set(Profiles& profiles, const Fitted& figure, double value) {
  for (double* each : figures_of(profiles, figure)) *each = value;
}

// Whether the row's time can depend on the figure.
bool is_of(const Fitted& figure, const PublishedRow& row) {
  return std::any_of(figure.profiles.begin(), figure.profiles.end(), [&](const std::string& name) {
    return name == row.machine || name == row.software;
  });
}

// Solves A x = b, A symmetric and positive definite, by Gaussian elimination.
Vector solve(std::vector<Vector> A, Vector b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j) {
      const double factor = A[j][i] / A[i][i];
      for (size_t k = i; k < n; ++k) A[j][k] -= factor * A[i][k];
      b[j] -= factor * b[i];
    }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= A[i][k] * b[k];
    b[i] /= A[i][i];
  }
  return b;
}

class Fit {
 public:
  Fit(const std::vector<const PublishedRow*>& rows, Profiles profiles,
      const std::vector<Fitted>& figures)
      : rows_(rows), profiles_(std::move(profiles)), figures_(figures), at_(figures.size()) {}

  // Levenberg-Marquardt. Derivatives cost as many projections as there are figures: they follow the
  // steps, and are taken anew where a step with them gains little or nothing.
  Profiles run() {
    Vector errors = errors_at(at_);
    double damping = 1e-2;
    bool are_new = false;
    for (int step = 0; step < max_steps && damping < 1e6; ++step) {
      if (derivatives_.empty()) {
        for (size_t p = 0; p < at_.size(); ++p) derivatives_.push_back(derivatives_of(p, errors));
        are_new = true;
      }
      const Vector next = moved(errors, damping);
      const Vector next_errors = errors_at(next);
      const double gain = cost(errors, at_) - cost(next_errors, next);
      const bool is_small = gain < 1e-5 * cost(next_errors, next), were_new = are_new;
      if (gain > 0.0) {
        follow(next, next_errors, errors);
        at_ = next;
        errors = next_errors;
        damping = std::max(1e-6, damping * 0.3);
        are_new = false;
        if (is_small && were_new) break;
      } else if (were_new) {
        damping *= 10.0;
      }
      if (is_small && !were_new) derivatives_.clear();
    }
    return profiles_at(at_);
  }

 private:
  Profiles profiles_at(const Vector& at) const {
    Profiles found = profiles_;
    for (size_t p = 0; p < at.size(); ++p)
      set(found, figures_[p], figures_[p].start * std::exp(at[p]));
    return found;
  }
  static double error_of(const PublishedRow& row, const Profiles& profiles) {
    return log_error(row, profiles) / usual_error;
  }
  Vector errors_at(const Vector& at) const {
    const Profiles profiles = profiles_at(at);
    Vector errors;
    for (const PublishedRow* row : rows_) errors.push_back(error_of(*row, profiles));
    return errors;
  }

  // Least squares of small errors, proportional to large ones.
  double cost(const Vector& errors, const Vector& at) const {
    double sum = 0.0;
    for (const double e : errors) sum += 2.0 * (std::sqrt(1.0 + e * e) - 1.0);
    for (const double x : at) sum += x * x / (usual_change * usual_change);
    return sum;
  }

  // Derivatives of the rows' errors by the logarithm of a figure. Zeros, so that it stays, where it
  // is at its start and fewer than two rows depend on it: it would follow what is peculiar to one.
  Vector derivatives_of(size_t figure, const Vector& errors) const {
    Vector at = at_;
    at[figure] += difference;
    const Profiles profiles = profiles_at(at);
    Vector column(errors.size());
    int dependent = 0;
    for (size_t i = 0; i < column.size(); ++i) {
      if (!is_of(figures_[figure], *rows_[i])) continue;
      column[i] = (error_of(*rows_[i], profiles) - errors[i]) / difference;
      dependent += column[i] != 0.0;
    }
    if (at_[figure] == 0.0 && dependent < 2) column.assign(column.size(), 0.0);
    return column;
  }

  // Changes the derivatives as little as makes them say how the errors changed (Broyden's update,
  // Math. Comp. 19 (1965) 577), row by row; those that are zero stay zero (Schubert, Math. Comp. 24
  // (1970) 27).
  void follow(const Vector& next, const Vector& next_errors, const Vector& errors) {
    for (size_t i = 0; i < errors.size(); ++i) {
      double missing = next_errors[i] - errors[i], squares = 0.0;
      for (size_t p = 0; p < at_.size(); ++p) {
        const double moved_by = derivatives_[p][i] != 0.0 ? next[p] - at_[p] : 0.0;
        missing -= derivatives_[p][i] * moved_by;
        squares += moved_by * moved_by;
      }
      for (size_t p = 0; p < at_.size() && squares > 0.0; ++p)
        if (derivatives_[p][i] != 0.0) derivatives_[p][i] += missing * (next[p] - at_[p]) / squares;
    }
  }

  Vector moved(const Vector& errors, double damping) const {
    const size_t n = at_.size();
    std::vector<Vector> A(n, Vector(n));
    Vector b(n);
    for (size_t p = 0; p < n; ++p) {
      A[p][p] = 1.0 / (usual_change * usual_change);
      b[p] = -at_[p] / (usual_change * usual_change);
      for (size_t i = 0; i < errors.size(); ++i) {
        const double weight = 1.0 / std::sqrt(1.0 + errors[i] * errors[i]);
        b[p] -= weight * derivatives_[p][i] * errors[i];
        for (size_t q = 0; q < n; ++q) A[p][q] += weight * derivatives_[p][i] * derivatives_[q][i];
      }
    }
    for (size_t p = 0; p < n; ++p) A[p][p] *= 1.0 + damping;
    Vector next = solve(A, b);
    for (size_t p = 0; p < n; ++p) next[p] += at_[p];
    return next;
  }

  const std::vector<const PublishedRow*>& rows_;
  const Profiles profiles_;
  const std::vector<Fitted>& figures_;
  Vector at_;                        // logarithms of the figures over their starts
  std::vector<Vector> derivatives_;  // [figure][row], about those at at_
};

}  // namespace

std::vector<double*> figures_of(Profiles& profiles, const Fitted& figure) {
  std::vector<double*> found;
  for (const std::string& name : figure.profiles) {
    const auto machine = profiles.machines.find(name);
    found.push_back(machine != profiles.machines.end()
                        ? find_figure(machine->second, figure.key)
                        : find_figure(profiles.softwares.at(name), figure.key));
    GPTBENCH_CHECK(found.back() != nullptr, "no figure " + figure.key + " in " + name);
  }
  return found;
}

double log_error(const PublishedRow& row, const Profiles& profiles) {
  const StepTime time =
      step_time(row.work, profiles.machines.at(row.machine), profiles.softwares.at(row.software));
  return std::log(time.sec_per_it / row.measured_s);
}

Profiles fit(const std::vector<const PublishedRow*>& rows, Profiles profiles,
             const std::vector<Fitted>& figures) {
  return Fit(rows, std::move(profiles), figures).run();
}

}  // namespace gptbench
