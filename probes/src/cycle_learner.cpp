// SPDX-License-Identifier: Apache-2.0
#include "cycle_learner.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace latenz::attach {
namespace {

constexpr std::size_t most_kinds = 64;
constexpr std::size_t most_kept = 512;
constexpr std::size_t fewest = 12;
constexpr std::size_t enough = 48;  ///< of timers: no need to wait for more
constexpr std::int64_t long_enough_ns = 250'000'000;
constexpr std::size_t most_wakes_a_cycle = 4;
/// Part of the period that a due time may lie off the grid. Those of SCHED_DEADLINE go by another
/// clock of the scheduler, which goes a little differently.
struct Tolerance {
  std::int64_t exact_part;
  std::int64_t on_grid_part;
};
constexpr Tolerance of_timers{.exact_part = 10'000, .on_grid_part = 1'000};
constexpr Tolerance of_deadlines{.exact_part = 200, .on_grid_part = 50};

Tolerance tolerance_of(const WakeKind& kind) {
  return kind.by == WakeKind::By::deadline ? of_deadlines : of_timers;
}

/// How the distances of every `step`-th due time agree.
struct Spread {
  std::int64_t median_ns = 0;
  std::size_t agreeing = 0;  ///< within the tolerance
  std::size_t exact = 0;
  std::size_t count = 0;
};

Spread spread_of(const std::vector<std::int64_t>& due_ns, std::size_t first, std::size_t step,
                 std::size_t stride, std::int64_t tolerance_part, std::int64_t exact_part) {
  std::vector<std::int64_t> distances;
  for (std::size_t i = first; i + step < due_ns.size(); i += stride) {
    distances.push_back(due_ns[i + step] - due_ns[i]);
  }
  Spread spread{.count = distances.size()};
  if (distances.empty()) return spread;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::ranges::nth_element(distances, middle);
  spread.median_ns = *middle;
  for (const std::int64_t distance : distances) {
    const std::int64_t off = std::abs(distance - spread.median_ns);
    spread.agreeing += off * tolerance_part <= spread.median_ns ? 1 : 0;
    spread.exact += off * exact_part <= spread.median_ns ? 1 : 0;
  }
  return spread;
}

constexpr bool most_of(std::size_t part, std::size_t whole) { return part * 4 >= whole * 3; }

}  // namespace

void CycleLearner::add(const WakeKind& kind, std::int64_t due_ns, std::int64_t t_ns) {
  ++wakes_;
  auto found = series_.find(kind);
  if (found == series_.end()) {
    if (series_.size() == most_kinds) return;
    found =
        series_.emplace(kind, Series{.due_ns = {}, .first_t_ns = t_ns, .last_t_ns = t_ns}).first;
  }
  Series& series = found->second;
  series.last_t_ns = t_ns;
  if (series.due_ns.size() == most_kept) {
    series.due_ns.erase(series.due_ns.begin(), series.due_ns.begin() + most_kept / 2);
  }
  series.due_ns.push_back(due_ns);
}

void CycleLearner::clear() {
  series_.clear();
  wakes_ = 0;
}

/// Of several wake-ups in a cycle its begin is the most regular one; of equally regular ones that
/// after the longest wait.
Grid CycleLearner::begin_of(const WakeKind& kind, const std::vector<std::int64_t>& due_ns,
                            std::size_t step, std::int64_t tolerance_part) {
  Grid grid;
  grid.kind = kind;
  grid.wakes_a_cycle = step;
  std::pair<std::size_t, std::int64_t> best{0, -1};
  for (std::size_t first = 0; first < step; ++first) {
    const Spread one =
        spread_of(due_ns, first, step, step, tolerance_part, tolerance_of(kind).exact_part);
    const std::size_t at = first == 0 ? step : first;  // exists: a kind has several cycles
    constexpr std::size_t grades = 8;
    const std::pair<std::size_t, std::int64_t> rank{
        one.exact * grades / std::max<std::size_t>(one.count, 1), due_ns[at] - due_ns[at - 1]};
    if (rank <= best) continue;
    best = rank;
    const std::size_t last = first + (due_ns.size() - 1 - first) / step * step;
    grid.period_ns = one.median_ns;
    grid.anchor_ns = due_ns[last];
    grid.is_exact = most_of(one.exact, one.count) && kind.by != WakeKind::By::event;
  }
  return grid;
}

std::optional<Grid> CycleLearner::grid_of(const WakeKind& kind, const Series& series) {
  const bool is_event = kind.by == WakeKind::By::event;
  const std::size_t n = series.due_ns.size();
  const bool was_long_seen = series.last_t_ns - series.first_t_ns >= long_enough_ns;
  const bool is_enough = was_long_seen || (n >= enough && !is_event);
  if (n < fewest || !is_enough) return std::nullopt;
  for (std::size_t step = 1; step <= most_wakes_a_cycle; ++step) {
    // Of several waits in a cycle more is asked: a loop that is held up must not look like them.
    const std::int64_t tolerance_part = is_event || step == 1 ? 4 : 10;
    const Spread whole = spread_of(series.due_ns, 0, step, 1, tolerance_part, 1);
    if (whole.median_ns > 0 && most_of(whole.agreeing, whole.count)) {
      const Grid grid = begin_of(kind, series.due_ns, step, tolerance_part);
      // Pauses within the cycle are many, and may be there before its exact begin is.
      return grid.is_exact || was_long_seen ? std::optional(grid) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<Grid> CycleLearner::learned() const {
  const auto marks = series_.find({.by = WakeKind::By::mark});
  return marks == series_.end() ? learned_of_wakes() : learned_of_marks(marks->second);
}

/// What the user calls a cycle is one, however irregular. It is due with the program's own timer if
/// that goes as often.
std::optional<Grid> CycleLearner::learned_of_marks(const Series& marks) const {
  const WakeKind kind{.by = WakeKind::By::mark};
  const std::size_t n = marks.due_ns.size();
  const bool was_long_seen = marks.last_t_ns - marks.first_t_ns >= long_enough_ns;
  if (n < fewest || (n < enough && !was_long_seen)) return std::nullopt;
  Grid grid = begin_of(kind, marks.due_ns, 1, 4);
  if (grid.period_ns <= 0) return std::nullopt;
  grid.is_exact = false;
  const std::optional<Grid> wakes = learned_of_wakes();
  if (!wakes && !was_long_seen) return std::nullopt;
  if (!wakes || wakes->kind.by == WakeKind::By::event) return grid;
  constexpr std::int64_t same_part = 8;
  if (std::abs(wakes->period_ns - grid.period_ns) * same_part > wakes->period_ns) return grid;
  grid.period_ns = wakes->period_ns;
  grid.is_exact = wakes->is_exact;
  grid.due_by = wakes->kind;
  return grid;
}

std::optional<Grid> CycleLearner::learned_of_wakes() const {
  std::optional<Grid> best;
  std::size_t most = 0;
  const auto rank = [](const Grid& grid) {
    return (grid.is_exact ? 2 : 0) + (grid.kind.by == WakeKind::By::event ? 0 : 1);
  };
  for (const auto& [kind, series] : series_) {
    if (kind.by == WakeKind::By::mark) continue;
    const auto grid = grid_of(kind, series);
    if (!grid) continue;
    const int order = best ? rank(*grid) - rank(*best) : 1;
    if (order > 0 || (order == 0 && series.due_ns.size() > most)) {
      best = grid;
      most = series.due_ns.size();
    }
  }
  return best;
}

bool begins_cycle(const Grid& grid, const WakeKind& kind, std::int64_t due_ns,
                  std::int64_t last_due_ns) {
  if (kind != grid.kind) return false;
  const std::int64_t since_ns = due_ns - last_due_ns;
  if (!grid.is_exact) return since_ns * 2 > grid.period_ns;
  if (since_ns <= 0) return false;
  const std::int64_t tolerance_ns =
      std::max<std::int64_t>(2, grid.period_ns / tolerance_of(kind).on_grid_part);
  const std::int64_t rest_ns = since_ns % grid.period_ns;
  const bool on_grid = rest_ns <= tolerance_ns || rest_ns >= grid.period_ns - tolerance_ns;
  // Off the grid and beyond its next point: the program has begun its grid anew.
  return (on_grid && since_ns * 2 > grid.period_ns) || since_ns > grid.period_ns + tolerance_ns;
}

}  // namespace latenz::attach
