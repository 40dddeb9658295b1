// SPDX-License-Identifier: Apache-2.0
// What is kept of the windows that a trace shows: the longest of each kind with their places,
// what interrupts took, and how it grew from wake-up to wake-up.
//
// Windows and executions count only between the first wake-up and the last one, as those of
// kernel_windows.hpp do.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json.hpp"
#include "kernel_windows.hpp"

namespace latenz::trace {

using probe::Place;
using probe::Site;
using probe::Term;

/// Names of functions and interrupts, each with a number. A made-up trace may name anything: beyond
/// `most` names all are the same one.
class Names {
 public:
  static constexpr std::size_t most = 1U << 16U;
  [[nodiscard]] std::uint64_t number(std::string_view name);
  [[nodiscard]] const std::string& name(std::uint64_t number) const { return names_.at(number); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>{}(name);
    }
  };
  std::vector<std::string> names_{""};
  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> numbers_{{"", 0}};
};

class WindowAccount {
 public:
  static constexpr std::size_t most_segments = 256;

  /// `is_observing`: from the beginning, for a trace in which nobody is woken.
  explicit WindowAccount(bool is_observing) : is_observing_(is_observing) {}

  /// A window of so long, of which `inner` lies between the events themselves. Places are numbers
  /// of names.
  void window(Term term, std::int64_t ns, std::int64_t inner, Site site);
  void execution(std::int64_t begin_ns, std::int64_t own, std::uint64_t source);
  void rival(std::int32_t pid, std::int32_t priority, std::string_view name);
  void passed_over() { ++found_passed_over_; }
  void missed() { ++missed_; }
  void schedule() { schedules_ += is_observing_ ? 1U : 0U; }
  void lost(const std::string& what, std::uint64_t times) { lost_[what] += times; }
  /// The woken thread runs: all since the last wake-up counts.
  void woken(std::int64_t now, std::int64_t due_ns, std::int64_t latency_ns);
  /// The trace is over. Without a wake-up all counts.
  void finish(std::int64_t now);

  [[nodiscard]] std::uint64_t wake_ups() const { return wake_ups_; }
  [[nodiscard]] std::uint64_t windows(Term term) const {
    return longest_.at(static_cast<std::size_t>(term)).n;
  }
  /// Adds its members to an open object.
  void write(probe::Json& json, const Names& names) const;

 private:
  struct Found {
    Term term;
    std::int64_t ns;
    std::int64_t inner;
    Site site;
  };
  struct Execution {
    std::int64_t begin_ns;
    std::int64_t own;
    std::uint64_t source;
  };
  struct Count {
    std::uint64_t n = 0;
    std::uint64_t longest = 0;
    std::uint64_t first_wake_up = 0;
  };
  struct Longest {
    std::uint64_t n = 0;
    std::uint64_t ns = 0;
    std::uint64_t inner = 0;
  };

  void commit();
  void commit_executions();
  void write_terms(probe::Json& json, const Names& names) const;
  void write_interrupts(probe::Json& json, const Names& names) const;
  void write_segments(probe::Json& json) const;

  bool is_observing_;
  std::vector<Found> found_;
  std::vector<Execution> recent_;
  std::int64_t last_begin_ = 0;  ///< of an execution
  std::map<std::int32_t, probe::Rival> found_rivals_;
  std::uint64_t found_passed_over_ = 0;
  probe::Segment open_;
  std::vector<probe::Segment> segments_;
  std::size_t segment_length_ = 1;
  std::array<Longest, probe::terms> longest_{};
  std::array<std::unordered_map<Site, Count, probe::SiteHash>, probe::terms> sites_;
  probe::ExecutionWindow executions_;
  std::uint64_t longest_execution_ = 0;
  probe::Staircase interference_{256};
  std::map<std::uint64_t, probe::InterruptSource> sources_;
  std::vector<probe::WakeUp> latest_;  ///< the wake-ups with the longest latencies
  std::map<std::int32_t, probe::Rival> rivals_;
  std::map<std::string, std::uint64_t> lost_;
  std::uint64_t wake_ups_ = 0;
  std::uint64_t passed_over_ = 0;
  std::uint64_t missed_ = 0;
  std::uint64_t schedules_ = 0;
  std::int64_t began_ns_ = 0;
  std::int64_t ended_ns_ = 0;
};

}  // namespace latenz::trace
