// SPDX-License-Identifier: Apache-2.0
// One measurement of running programs' threads: which are watched, which are recorded, and when it
// is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attach_account.hpp"
#include "attach_plan.hpp"
#include "attach_programs.hpp"
#include "cycle_builder.hpp"
#include "journal_writer.hpp"

namespace latenz::attach {

/// One thread's recording.
struct Recording {
  probe::JournalWriter journal;
  std::vector<CycleRecord> held;

  [[nodiscard]] int flush() {
    const int error = journal.append_records(std::as_bytes(std::span(held)), held.size());
    held.clear();
    return error;
  }
};

/// Measures what runs, or reads a recorded trace; once.
class Session {
 public:
  explicit Session(Plan plan) : plan_(std::move(plan)), builder_(plan_.worst) {}

  /// Measures running threads; returns the exit code. Throws `probe::Failure`.
  [[nodiscard]] int perform();
  /// The same for threads of a recorded trace; its definition needs the reader of traces.
  [[nodiscard]] int read_trace();

 private:
  void look_for_threads();
  void forget_the_gone();
  void take(const Event& event) { builder_.event(event); }
  void begin_recordings();
  void record(ThreadCycles& thread, Identity& identity);
  void flush();
  void save(std::string_view status);
  void read_clocks();
  void name_functions();
  void leave_their_cpus() const;
  void mark_places();
  [[nodiscard]] bool is_wanted(std::int32_t tid, const std::string& comm) const;
  [[nodiscard]] bool is_beside_the_point(std::int32_t tid) const;
  [[nodiscard]] bool is_over(std::int64_t now_ns);
  [[nodiscard]] int end(int ending_signal);
  [[noreturn]] void refuse_nothing_periodic() const;
  Recording& recording_of(std::int32_t tid);

  Plan plan_;
  Programs programs_;
  CycleBuilder builder_;
  Account account_;
  std::map<std::int32_t, Identity> identities_;
  std::map<std::int32_t, std::int64_t> seen_ns_;  ///< since when each thread is watched
  std::map<std::int32_t, std::unique_ptr<Recording>> recordings_;
  std::set<std::int32_t> deadlines_;  ///< threads of SCHED_DEADLINE
  std::map<std::int64_t, std::string> functions_;
  std::map<std::int32_t, Programs::Calls> calls_before_;
  std::int64_t first_recording_ns_ = 0;
  bool all_gone_ = false;
  int output_error_ = 0;
};

/// What latenz-attach does with its arguments; returns its exit code. `read_trace`: what does
/// --trace; null: traces are read elsewhere. Throws `probe::Failure`.
int attach(std::span<const char* const> arguments, int (Session::*read_trace)() = nullptr);

}  // namespace latenz::attach
