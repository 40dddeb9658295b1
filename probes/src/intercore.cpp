// SPDX-License-Identifier: Apache-2.0
// latenz-intercore: measures messages between two processors. docs/intercore.md says how and what
// it means.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "clock.hpp"
#include "failure.hpp"
#include "file.hpp"
#include "intercore_measurement.hpp"
#include "intercore_plan.hpp"
#include "journal_writer.hpp"
#include "json.hpp"
#include "program.hpp"
#include "recording_process.hpp"

namespace latenz::probe {
namespace {

constexpr int exit_damaged = 1;
constexpr int exit_process_ended = 3;
constexpr std::int64_t drain_every_ns = 100'000'000;
constexpr std::int64_t report_every_ns = 500'000'000;
constexpr std::int64_t patience_ns = 1'000'000'000;  // for a process that was asked to stop
constexpr std::size_t frame_records = 8192;

/// The sample set of one kind of block on its way to disk.
struct Track {
  JournalWriter journal;
  std::size_t kept = 0;
  std::int64_t min_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_ns = std::numeric_limits<std::int64_t>::min();
  std::size_t worst_index = 0;
};

struct MeasuringProcess {
  LinkSide side;
  pid_t id = 0;
  std::optional<int> status = std::nullopt;  ///< as waitpid(2) tells it, once it has ended

  [[nodiscard]] bool running() const { return id != 0 && !status; }
};

class IntercoreRun {
 public:
  explicit IntercoreRun(IntercorePlan plan) : plan_(std::move(plan)), measurement_(plan_) {}
  IntercoreRun(const IntercoreRun&) = delete;
  IntercoreRun& operator=(const IntercoreRun&) = delete;
  ~IntercoreRun() { end_processes(); }

  int perform();

 private:
  void prepare();
  void start();
  void watch(sigset_t signals);
  void take_ended();
  void end_processes();
  void drain();
  void report(std::int64_t now_ns);
  [[nodiscard]] bool going_on() const;
  [[nodiscard]] int close();
  [[nodiscard]] std::string ended_early() const;
  [[nodiscard]] int save(const std::string& status) const;
  [[nodiscard]] std::string account(const std::string& status) const;
  [[nodiscard]] std::int64_t max_ns() const;

  IntercorePlan plan_;
  Measurement measurement_;
  std::vector<Track> tracks_;
  std::array<MeasuringProcess, 2> processes_{
      {{.side = LinkSide::asking}, {.side = LinkSide::answering}}};
  std::int64_t pair_ticks_ = 0;
  std::int64_t started_ns_ = 0;
  std::int64_t started_realtime_ns_ = 0;
  std::int64_t next_report_ns_ = 0;
  std::int64_t asked_to_stop_ns_ = 0;
  int ending_signal_ = 0;
  int output_error_ = 0;
};

int IntercoreRun::perform() {
  sigset_t signals = block_ending_signals();
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  ignore_output_signals();
  prepare();
  start();
  watch(signals);
  end_processes();
  drain();
  return close();
}

void IntercoreRun::prepare() {
  const auto account_path = plan_.output / "intercore.json";
  if (std::filesystem::exists(account_path)) {
    throw Failure(account_path.string() + ": holds a recording already; name another folder");
  }
  for (const std::string_view name : block_kind_names) {
    const auto folder = plan_.output / name;
    create_folder(folder);
    tracks_.push_back({JournalWriter(folder / "samples.journal", plan_.cpus.front(), 0)});
  }
  pair_ticks_ = measurement_.stamps().pair_ticks();
  started_realtime_ns_ = read_clock_ns(CLOCK_REALTIME);
  if (const int error = save("running"); error != 0) {
    throw Failure(account_path.string() + ": " + std::strerror(error) +
                  "; make room or name another folder");
  }
}

void IntercoreRun::start() {
  leave_measured_cpus(plan_.cpus);
  started_ns_ = read_clock_ns(CLOCK_MONOTONIC);
  for (MeasuringProcess& process : processes_) {
    process.id = fork();
    if (process.id < 0) {
      process.id = 0;
      throw Failure(std::string("cannot start a process: ") + std::strerror(errno));
    }
    if (process.id == 0) {
      measurement_.be(process.side);
    }
  }
}

void IntercoreRun::watch(sigset_t signals) {
  const timespec drain_every = to_timespec(drain_every_ns);
  while (going_on()) {
    const int signal = std::max(0, sigtimedwait(&signals, nullptr, &drain_every));
    const std::int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
    if (signal != 0 && signal != SIGCHLD && ending_signal_ == 0) {
      ending_signal_ = signal;
      asked_to_stop_ns_ = now_ns;
      measurement_.control().stop.store(1, std::memory_order_relaxed);
    }
    take_ended();
    drain();
    report(now_ns);
  }
}

/// The answering process waits for ever once the asking one has ended.
bool IntercoreRun::going_on() const {
  const bool patient =
      asked_to_stop_ns_ == 0 || read_clock_ns(CLOCK_MONOTONIC) < asked_to_stop_ns_ + patience_ns;
  const auto& [asking, answering] = processes_;
  const bool answering_failed = answering.status && *answering.status != 0;
  return patient && output_error_ == 0 && asking.running() && !answering_failed;
}

void IntercoreRun::take_ended() {
  for (MeasuringProcess& process : processes_) {
    int status = 0;
    if (process.running() && waitpid(process.id, &status, WNOHANG) == process.id) {
      process.status = status;
    }
  }
}

void IntercoreRun::end_processes() {
  take_ended();
  for (MeasuringProcess& process : processes_) {
    if (process.running()) {
      kill(process.id, SIGKILL);
      waitpid(process.id, nullptr, 0);
      process.id = 0;
    }
  }
}

void IntercoreRun::drain() {
  for (std::size_t kind = 0; kind < tracks_.size() && output_error_ == 0; ++kind) {
    Track& track = tracks_[kind];
    const auto ready = measurement_.samples(kind);
    while (track.kept < ready.size() && output_error_ == 0) {
      const auto part =
          ready.subspan(track.kept, std::min(frame_records, ready.size() - track.kept));
      output_error_ = track.journal.append(part);
      for (const Sample& sample : part) {
        track.min_ns = std::min(track.min_ns, sample.latency_ns);
        if (sample.latency_ns > track.max_ns) {
          track.max_ns = sample.latency_ns;
          track.worst_index = track.kept;
        }
        ++track.kept;
      }
    }
  }
}

void IntercoreRun::report(std::int64_t now_ns) {
  if (now_ns < next_report_ns_ || output_error_ != 0) {
    return;
  }
  next_report_ns_ = now_ns + report_every_ns;
  output_error_ = save("running");
  if (plan_.progress) {
    Json json;
    json.open_object().member("elapsed_ns", now_ns - started_ns_);
    json.member("n", tracks_.back().kept).member("samples", plan_.samples).key("max_ns");
    tracks_[1].kept > 0 ? json.value(max_ns()) : json.null();
    print(stderr, json.close_object().text() + "\n");
  }
}

std::int64_t IntercoreRun::max_ns() const { return std::max(tracks_[1].max_ns, tracks_[2].max_ns); }

/// What ended a process that should have gone on; empty if nothing did.
std::string IntercoreRun::ended_early() const {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const std::optional<int> status = processes_[i].status;
    if (status && WIFSIGNALED(*status)) {
      return "the process on CPU " + std::to_string(plan_.cpus[i]) + " was ended by signal " +
             std::to_string(WTERMSIG(*status));
    }
  }
  return "";
}

int IntercoreRun::close() {
  if (const char* const failure = measurement_.control().failure.data(); *failure != '\0') {
    throw Failure(failure);
  }
  std::string status = "complete";
  int exit_code = 0;
  if (output_error_ != 0) {
    status = status_of_output(output_error_);
    exit_code = exit_output_failed;
  } else if (ending_signal_ != 0) {
    status = "interrupted";
    exit_code = 128 + ending_signal_;
  } else if (const std::string ended = ended_early(); !ended.empty()) {
    status = ended;
    exit_code = exit_process_ended;
    print(stderr, "latenz-intercore: " + ended + "; the samples before it are kept\n");
  } else if (measurement_.control().damaged != 0) {
    exit_code = exit_damaged;
    print(stderr, "latenz-intercore: " + std::to_string(measurement_.control().damaged) +
                      " messages came back damaged\n");
  }
  const int error = save(status);
  if (const int reason = output_error_ != 0 ? output_error_ : error; reason != 0) {
    print(stderr, told_output_error("latenz-intercore", plan_.output, reason));
    return exit_output_failed;
  }
  return exit_code;
}

int IntercoreRun::save(const std::string& status) const {
  return replace_file(plan_.output / "intercore.json", account(status));
}

std::string IntercoreRun::account(const std::string& status) const {
  const Control& control = measurement_.control();
  const Stamps& stamps = measurement_.stamps();
  Json json;
  json.open_object().member("version", 1).member("program_version", LATENZ_VERSION);
  json.member("status", status);
  json.member("through", through_names[static_cast<std::size_t>(plan_.through)]);
  json.member("bytes", plan_.bytes).member("samples", plan_.samples);
  json.member("block", plan_.block).member("placements", placements);
  json.member("wait", waiting_names[static_cast<std::size_t>(plan_.wait)]);
  json.key("cpus").open_array().value(plan_.cpus[0]).value(plan_.cpus[1]).close_array();
  json.member("started_realtime_ns", started_realtime_ns_);
  json.member("clock", stamps.clock()).member("ticks_per_second", stamps.ticks_a_second());
  json.member("stamp_pair_ns", stamps.duration_ns(pair_ticks_));
  json.member("damaged", control.damaged.load());
  json.key("involuntary_switches").open_array();
  json.value(control.asking_switches.load()).value(control.answering_switches.load());
  json.close_array().key("max_ns");
  tracks_[1].kept > 0 ? json.value(max_ns()) : json.null();
  json.key("sets").open_object();
  for (std::size_t kind = 0; kind < tracks_.size(); ++kind) {
    const Track& track = tracks_[kind];
    json.key(block_kind_names[kind]).open_object().member("n", track.kept);
    if (track.kept > 0) {
      json.member("min_ns", track.min_ns).member("max_ns", track.max_ns);
      json.member("worst_index", track.worst_index);
    }
    json.close_object();
  }
  json.close_object().key("rounds").open_array();
  for (const auto& [raw_ticks, case_ticks] : measurement_.rounds()) {
    json.open_array().value(raw_ticks).value(case_ticks).close_array();
  }
  return json.close_array().close_object().text() + "\n";
}

int measure_messages(std::span<const char* const> arguments) {
  IntercorePlan plan = parse_intercore_plan(arguments);
  if (plan.help || plan.version) {
    print(stdout, plan.help ? intercore_help() : "latenz-intercore " LATENZ_VERSION "\n");
    return 0;
  }
  return IntercoreRun(std::move(plan)).perform();
}

}  // namespace
}  // namespace latenz::probe

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-intercore", count, arguments,
                                    latenz::probe::measure_messages);
}
