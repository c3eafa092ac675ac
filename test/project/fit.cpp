#include "fit.h"

#include <cmath>

#include "base/error.h"

namespace gptbench {
namespace {

using Vector = std::vector<double>;

// Results with other values: test/reference/README.md, "What the fit assumes".
constexpr double usual_error = 0.03;  // of a row: larger ones count less and less
constexpr double usual_change = 0.5;  // of the logarithm of a figure from its start
constexpr double difference = 1e-3;   // for derivatives
constexpr int max_steps = 25;

void set(Profiles& profiles, const Fitted& figure, double value) {
  for (double* each : figures_of(profiles, figure)) *each = value;
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

  // Levenberg-Marquardt.
  Profiles run() {
    Vector errors = errors_at(at_);
    double damping = 1e-2;
    for (int step = 0; step < max_steps && damping < 1e6;) {
      const Vector next = moved(errors, damping);
      const Vector next_errors = errors_at(next);
      const double gain = cost(errors, at_) - cost(next_errors, next);
      if (gain <= 0.0) {
        damping *= 10.0;
        continue;
      }
      const bool is_done = gain < 1e-5 * cost(next_errors, next);
      at_ = next;
      errors = next_errors;
      damping = std::max(1e-6, damping * 0.3);
      ++step;
      if (is_done) break;
      derivatives_.clear();
    }
    errors_at(at_);
    return profiles_;
  }

 private:
  Vector errors_at(const Vector& at) {
    for (size_t p = 0; p < at.size(); ++p)
      set(profiles_, figures_[p], figures_[p].start * std::exp(at[p]));
    Vector errors;
    for (const PublishedRow* row : rows_)
      errors.push_back(log_error(*row, profiles_) / usual_error);
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
  Vector derivatives_of(size_t figure, const Vector& errors) {
    Vector at = at_;
    at[figure] += difference;
    Vector column = errors_at(at);
    int dependent = 0;
    for (size_t i = 0; i < column.size(); ++i) {
      column[i] = (column[i] - errors[i]) / difference;
      dependent += column[i] != 0.0;
    }
    if (at_[figure] == 0.0 && dependent < 2) column.assign(column.size(), 0.0);
    return column;
  }

  Vector moved(const Vector& errors, double damping) {
    const size_t n = at_.size();
    if (derivatives_.empty())
      for (size_t p = 0; p < n; ++p) derivatives_.push_back(derivatives_of(p, errors));
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
  Profiles profiles_;
  const std::vector<Fitted>& figures_;
  Vector at_;                        // logarithms of the figures over their starts
  std::vector<Vector> derivatives_;  // [figure][row], at at_
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
