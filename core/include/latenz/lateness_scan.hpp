// SPDX-License-Identifier: Apache-2.0
// How lateness lies in time: one pass over activations in order finds, for each limit, the late
// ones, their episodes and how long these last; and a coarse history of all of them, from which
// the dependence of later ones on earlier ones can be told. Bounded memory. For hosts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace latenz {

/// A limit, and what separates late activations in time.
struct LatenessWatch {
  std::int64_t limit_ns;  ///< later than this is late
  std::int64_t pause_ns;  ///< a longer time without a late activation ends an episode
  std::int64_t burst_ns;  ///< an episode that lasts n of these counts as n + 1 episodes
};

/// What was seen of one limit.
struct Lateness {
  std::uint64_t late = 0;      ///< activations, skipped ones included
  std::uint64_t episodes = 0;  ///< of late activations, see `LatenessWatch`
  /// Of late ones further than `burst_ns` apart; one that lasts 10 n bursts counts as n + 1.
  std::uint64_t groups = 0;
  std::int64_t longest_ns = 0;  ///< longest episode, from its first late activation to its last
};

/// Takes activations in the order of their due times.
class LatenessScan {
 public:
  /// `cell_ns`: first length of the history's cells, positive; doubled whenever there would be
  /// more than `most_cells` (even) of them.
  LatenessScan(std::vector<LatenessWatch> watches, std::int64_t cell_ns, std::size_t most_cells)
      : watches_(std::move(watches)),
        seen_(watches_.size()),
        most_cells_(most_cells),
        cell_ns_(cell_ns) {
    for (const auto& watch : watches_) lowest_limit_ = std::min(lowest_limit_, watch.limit_ns);
  }

  /// An activation that was due at `due_ns` (an earlier time than the last one's counts as that),
  /// came `latency_ns` later, and took the turns of the `skipped` ones after it, which were due a
  /// period apart and waited that much less each.
  void add(std::int64_t due_ns, std::int64_t latency_ns, std::uint64_t skipped,
           std::int64_t period_ns) {
    if (count_ == 0) first_ns_ = due_ns;
    last_ns_ = count_ == 0 ? due_ns : std::max(last_ns_, due_ns);
    ++count_;
    const std::uint64_t at = since(last_ns_);
    if (at >= cell_end_ns_) enter_cell(at);
    highest_[cell_] = std::max(highest_[cell_], latency_ns);
    ++due_[cell_];
    if (latency_ns > lowest_limit_) [[unlikely]] {
      add_late(at, latency_ns, skipped, period_ns > 0 ? static_cast<std::uint64_t>(period_ns) : 0);
    }
  }

  /// Due time of the last activation, skipped ones apart; 0 without any.
  [[nodiscard]] std::int64_t last_ns() const { return last_ns_; }
  /// Due time of the first activation; 0 without any.
  [[nodiscard]] std::int64_t first_ns() const { return first_ns_; }
  [[nodiscard]] const std::vector<Lateness>& seen() const { return found_; }

  /// Length of a cell of the histories, ns.
  [[nodiscard]] std::int64_t cell_ns() const { return cell_ns_; }
  /// Largest latency of each cell; `nothing` where no activation was due.
  [[nodiscard]] const std::vector<std::int64_t>& highest() const { return highest_; }
  /// Late activations in each cell, for each watch.
  [[nodiscard]] const std::vector<std::uint64_t>& late(std::size_t watch) const {
    return seen_[watch].late_in_cell;
  }
  /// Episodes that begin in each cell, for each watch.
  [[nodiscard]] const std::vector<std::uint64_t>& begun(std::size_t watch) const {
    return seen_[watch].begun_in_cell;
  }

  /// Activations that were due in each cell, skipped ones apart.
  [[nodiscard]] const std::vector<std::uint64_t>& due() const { return due_; }

  static constexpr std::int64_t nothing = INT64_MIN;

 private:
  static constexpr std::uint64_t bursts_of_a_group = 10;

  struct Seen {
    bool any = false;
    std::uint64_t begin = 0;  // of the present episode
    std::uint64_t group = 0;  // begin of the present group
    std::uint64_t last = 0;   // late activation
    std::vector<std::uint64_t> late_in_cell;
    std::vector<std::uint64_t> begun_in_cell;
  };

  [[nodiscard]] std::uint64_t since(std::int64_t due_ns) const {
    return static_cast<std::uint64_t>(due_ns) - static_cast<std::uint64_t>(first_ns_);
  }

  void enter_cell(std::uint64_t at) {
    while (at / static_cast<std::uint64_t>(cell_ns_) >= most_cells_) coarsen();
    const auto length = static_cast<std::uint64_t>(cell_ns_);
    cell_ = static_cast<std::size_t>(at / length);
    cell_end_ns_ = (cell_ + 1) * length;
    grow(cell_ + 1);
  }

  void grow(std::size_t cells) {
    if (cells <= highest_.size()) return;
    highest_.resize(cells, nothing);
    due_.resize(cells);
    for (auto& seen : seen_) {
      seen.late_in_cell.resize(cells);
      seen.begun_in_cell.resize(cells);
    }
  }

  void coarsen() {
    const auto halve = [](auto& cells, auto join) {
      for (std::size_t i = 0; i < cells.size(); i += 2) {
        cells[i / 2] = i + 1 < cells.size() ? join(cells[i], cells[i + 1]) : cells[i];
      }
      cells.resize((cells.size() + 1) / 2);
    };
    halve(highest_, [](auto one, auto other) { return std::max(one, other); });
    const auto sum = [](auto one, auto other) { return one + other; };
    halve(due_, sum);
    for (auto& seen : seen_) {
      halve(seen.late_in_cell, sum);
      halve(seen.begun_in_cell, sum);
    }
    cell_ns_ *= 2;
    cell_end_ns_ = 0;
  }

  void add_late(std::uint64_t at, std::int64_t latency_ns, std::uint64_t skipped,
                std::uint64_t period_ns) {
    for (std::size_t i = 0; i < watches_.size(); ++i) {
      const auto& watch = watches_[i];
      if (latency_ns <= watch.limit_ns) continue;
      std::uint64_t after = 0;  // of the skipped ones, those that are late, too
      if (skipped > 0 && period_ns > 0) {
        const auto over =
            static_cast<std::uint64_t>(latency_ns) - static_cast<std::uint64_t>(watch.limit_ns) - 1;
        after = std::min(skipped, over / period_ns);
      }
      const std::uint64_t end = at + after * period_ns;
      found_[i].late += 1 + after;
      note_episode(i, at, end);
      note_history(i, at, end, period_ns);
    }
    if (skipped > 0 && period_ns > 0) raise_history(at, latency_ns, skipped, period_ns);
  }

  void note_episode(std::size_t watch_index, std::uint64_t at, std::uint64_t end) {
    const auto& watch = watches_[watch_index];
    auto& seen = seen_[watch_index];
    auto& found = found_[watch_index];
    const auto burst = static_cast<std::uint64_t>(watch.burst_ns);
    const std::uint64_t gap = at > seen.last ? at - seen.last : 0;
    std::uint64_t groups_counted = 0;  // what the present group counted as until now
    if (!seen.any || gap > burst) {
      seen.group = at;
    } else {
      groups_counted = (seen.last - seen.group) / (bursts_of_a_group * burst) + 1;
    }
    std::uint64_t counted = 0;  // episodes that the present one counted as until now
    if (!seen.any || gap > static_cast<std::uint64_t>(watch.pause_ns)) {
      seen.begin = at;
      ++seen.begun_in_cell[cell_of(at)];
    } else {
      counted = (seen.last - seen.begin) / burst + 1;
    }
    seen.any = true;
    seen.last = std::max(seen.last, end);
    found.groups += (seen.last - seen.group) / (bursts_of_a_group * burst) + 1 - groups_counted;
    found.episodes += (seen.last - seen.begin) / burst + 1 - counted;
    found.longest_ns =
        std::max(found.longest_ns, static_cast<std::int64_t>(seen.last - seen.begin));
  }

  void note_history(std::size_t watch_index, std::uint64_t at, std::uint64_t end,
                    std::uint64_t period_ns) {
    reach(end);
    auto& late = seen_[watch_index].late_in_cell;
    std::uint64_t due = at;
    while (true) {  // cell by cell, not activation by activation
      const std::size_t cell = cell_of(due);
      const std::uint64_t cell_end = (cell + 1) * static_cast<std::uint64_t>(cell_ns_);
      const std::uint64_t last = std::min(end, cell_end - 1);
      const std::uint64_t within = period_ns > 0 ? (last - due) / period_ns : 0;
      late[cell] += 1 + within;
      if (period_ns == 0 || due + within * period_ns >= end) return;
      due += (within + 1) * period_ns;
    }
  }

  /// What skipped activations waited belongs to the cells in which they were due.
  void raise_history(std::uint64_t at, std::int64_t latency_ns, std::uint64_t skipped,
                     std::uint64_t period_ns) {
    const auto waits = static_cast<std::uint64_t>(latency_ns) / period_ns;
    const std::uint64_t end = at + std::min(skipped, waits) * period_ns;
    reach(end);
    const auto length = static_cast<std::uint64_t>(cell_ns_);
    for (std::size_t cell = cell_of(at) + 1; cell <= cell_of(end); ++cell) {
      const std::uint64_t k = (cell * length - at + period_ns - 1) / period_ns;
      const auto waited = latency_ns - static_cast<std::int64_t>(k * period_ns);
      if (k * period_ns <= end - at) highest_[cell] = std::max(highest_[cell], waited);
    }
  }

  /// Cells up to a time later than the present one, which stays the present one.
  void reach(std::uint64_t at) {
    if (at / static_cast<std::uint64_t>(cell_ns_) < highest_.size()) return;
    const std::uint64_t present = since(last_ns_);
    enter_cell(at);
    enter_cell(present);
  }

  [[nodiscard]] std::size_t cell_of(std::uint64_t at) const {
    return static_cast<std::size_t>(at / static_cast<std::uint64_t>(cell_ns_));
  }

  std::vector<LatenessWatch> watches_;
  std::vector<Lateness> found_ = std::vector<Lateness>(watches_.size());
  std::vector<Seen> seen_;
  std::vector<std::int64_t> highest_;
  std::vector<std::uint64_t> due_;
  std::size_t most_cells_;
  std::int64_t cell_ns_;
  std::int64_t lowest_limit_ = INT64_MAX;
  std::int64_t first_ns_ = 0;
  std::int64_t last_ns_ = 0;
  std::uint64_t count_ = 0;
  std::size_t cell_ = 0;
  std::uint64_t cell_end_ns_ = 0;
};

}  // namespace latenz
