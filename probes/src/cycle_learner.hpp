// SPDX-License-Identifier: Apache-2.0
// Finds out of a thread's wake-ups which of them begin its cycles, and how far apart those are due.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace latenz::attach {

/// What wakes a thread up: wake-ups of one kind are compared with each other.
struct WakeKind {
  enum class By : std::uint8_t { timer, deadline, event, mark };
  By by = By::event;          ///< `mark`: not a wake-up, but where the user has cycles begin
  std::int64_t call = 0;      ///< the system call that it sleeps in
  std::int64_t function = 0;  ///< of the timer's handler
  std::int64_t manner = 0;    ///< how it sleeps: clock and flags of clock_nanosleep
  auto operator<=>(const WakeKind&) const = default;
};

struct Grid {
  WakeKind kind;
  std::int64_t period_ns = 0;
  std::int64_t anchor_ns = 0;     ///< due time of one cycle
  std::size_t wakes_a_cycle = 1;  ///< of this kind; the others are waits within the cycle
  bool is_exact = false;          ///< due times lie whole periods apart
  /// Where marks begin cycles: the wake-ups that they are due with, if these are regular.
  std::optional<WakeKind> due_by;
};

class CycleLearner {
 public:
  /// Adds a wake-up; the due times of a kind come in order.
  void add(const WakeKind& kind, std::int64_t due_ns, std::int64_t t_ns);

  /// What is regular in the wake-ups so far; nothing if that cannot be told (yet).
  [[nodiscard]] std::optional<Grid> learned() const;

  [[nodiscard]] std::size_t wakes() const { return wakes_; }
  void clear();

 private:
  struct Series {
    std::vector<std::int64_t> due_ns;
    std::int64_t first_t_ns = 0;
    std::int64_t last_t_ns = 0;
  };
  [[nodiscard]] static Grid begin_of(const WakeKind& kind, const std::vector<std::int64_t>& due_ns,
                                     std::size_t step, std::int64_t tolerance_part);
  [[nodiscard]] std::optional<Grid> learned_of_marks(const Series& marks) const;
  [[nodiscard]] std::optional<Grid> learned_of_wakes() const;
  [[nodiscard]] static std::optional<Grid> grid_of(const WakeKind& kind, const Series& series);

  std::map<WakeKind, Series> series_;
  std::size_t wakes_ = 0;
};

/// Whether a wake-up begins a cycle of the grid, whose last one was due at `last_due_ns`.
[[nodiscard]] bool begins_cycle(const Grid& grid, const WakeKind& kind, std::int64_t due_ns,
                                std::int64_t last_due_ns);

}  // namespace latenz::attach
