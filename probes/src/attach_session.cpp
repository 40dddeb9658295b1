// SPDX-License-Identifier: Apache-2.0
#include "attach_session.hpp"

#include <dirent.h>
#include <fnmatch.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <limits>

#include "affinity.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "program.hpp"
#include "recording_process.hpp"
#include "text.hpp"

namespace latenz::attach {
namespace {

using probe::Failure;
using probe::first_line;
using probe::read_clock_ns;

constexpr std::int64_t drain_every_ns = 20'000'000;
constexpr std::int64_t look_every_ns = 250'000'000;  ///< for new threads
constexpr std::int64_t account_every_ns = 1'000'000'000;
constexpr std::size_t frame_cycles = 4096;
constexpr std::size_t longest_name = 60;
constexpr const char* account_file = "attach.json";

std::string task_path(std::int32_t pid, std::int32_t tid) {
  return "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid);
}

/// The threads of a process, none if it has ended.
std::vector<std::int32_t> threads_of(std::int32_t pid) {
  std::vector<std::int32_t> found;
  const std::string path = "/proc/" + std::to_string(pid) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    std::int32_t tid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), tid);
    if (error == std::errc() && end == name.data() + name.size()) {
      found.push_back(tid);
    }
  }
  return found;
}

/// Whether a process has ended, though its parent has not asked how. One whose main thread alone
/// has ended goes on.
bool is_zombie(std::int32_t pid) {
  if (threads_of(pid).size() > 1) {
    return false;
  }
  const std::string stat = first_line("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat.compare(name_end + 2, 1, "Z") == 0;
}

/// A name for a folder out of what a thread calls itself.
std::string as_folder(std::string_view name) {
  std::string safe;
  for (const char letter : name.substr(0, longest_name)) {
    const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') || letter == '_' || letter == '.' ||
                          letter == '+' || letter == '=' || letter == '@' || letter == '-';
    if (is_plain || (!safe.empty() && safe.back() != '-')) {
      safe += is_plain ? letter : '-';
    }
  }
  const auto first = safe.find_first_not_of(".-");
  const auto last = safe.find_last_not_of(".-");
  return first == std::string::npos ? "thread" : safe.substr(first, last - first + 1);
}

/// The period that a SCHED_DEADLINE thread has asked for; 0: it has none.
std::int64_t reserved_period_ns(std::int32_t tid) {
  struct {  // sched_attr, as its first version has it
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime;
    std::uint64_t deadline;
    std::uint64_t period;
  } found{};
  if (syscall(SYS_sched_getattr, tid, &found, sizeof found, 0) != 0) {
    return 0;
  }
  return static_cast<std::int64_t>(found.period);
}

/// Where tracefs is; mounted for this process alone if nobody has.
std::filesystem::path find_tracefs() {
  const auto is_there = [](const std::string& path) {
    return access((path + "/events/sched/sched_switch/id").c_str(), R_OK) == 0;
  };
  for (const char* path : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    if (is_there(path)) {
      return path;
    }
  }
  constexpr const char* place = "/sys/kernel/tracing";
  if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
      mount("tracefs", place, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0 &&
      is_there(place)) {
    return place;
  }
  if (geteuid() != 0) {
    throw Failure("the kernel's tracing file system may not be read; run as root");
  }
  throw Failure(
      "the kernel's tracing file system is not mounted; as root: "
      "mount -t tracefs tracefs /sys/kernel/tracing (it needs CONFIG_FTRACE=y)");
}

}  // namespace

bool Session::is_wanted(std::int32_t tid, const std::string& comm) const {
  if (!plan_.threads.empty() && std::ranges::find(plan_.threads, tid) == plan_.threads.end()) {
    return false;
  }
  return plan_.glob.empty() || fnmatch(plan_.glob.c_str(), comm.c_str(), 0) == 0;
}

/// Programs may start and end threads all day long. At least one is kept, to tell of in the end.
void Session::forget_the_gone() {
  std::vector<std::int32_t> gone;
  for (const auto& [tid, thread] : builder_.threads()) {
    if (thread->is_gone() && !recordings_.contains(tid)) {
      gone.push_back(tid);
    }
  }
  for (const std::int32_t tid : gone) {
    if (identities_.size() == 1) {
      return;
    }
    programs_.forget(tid);
    builder_.forget(tid);
    identities_.erase(tid);
    seen_ns_.erase(tid);
    deadlines_.erase(tid);
  }
}

/// Ordinary threads of a program that has real-time ones, such as its main loop, are not what it is
/// about: they are measured if they are asked for, or if no real-time one is periodic.
bool Session::is_beside_the_point(std::int32_t tid) const {
  if (!plan_.trace.empty() || !plan_.threads.empty() || !plan_.glob.empty()) {
    return false;
  }
  const auto is_real_time = [](std::int32_t each) {
    const int policy = sched_getscheduler(each);
    constexpr int deadline_policy = 6;
    return policy == SCHED_FIFO || policy == SCHED_RR || policy == deadline_policy;
  };
  if (is_real_time(tid)) {
    return false;
  }
  const bool has_others =
      std::ranges::any_of(identities_, [&](const auto& each) { return is_real_time(each.first); });
  const std::int64_t waited_ns = read_clock_ns(CLOCK_MONOTONIC) - seen_ns_.at(tid);
  return has_others && (!recordings_.empty() || waited_ns * 2 < plan_.learning_ns);
}

/// All threads are watched, also those that are not recorded: they wake the others up, start
/// their timers, and stand in their way.
void Session::look_for_threads() {
  forget_the_gone();
  constexpr int deadline_policy = 6;
  all_gone_ = true;
  for (const std::int32_t pid : plan_.processes) {
    if (is_zombie(pid)) {
      continue;
    }
    for (const std::int32_t tid : threads_of(pid)) {
      all_gone_ =
          all_gone_ && builder_.threads().contains(tid) && builder_.threads().at(tid)->is_gone();
      const bool is_deadline = sched_getscheduler(tid) == deadline_policy;
      const bool is_known = identities_.contains(tid);
      if (is_known && !is_deadline) {
        continue;
      }
      if (is_known && deadlines_.contains(tid)) {
        continue;
      }
      if (!programs_.watch(tid, is_deadline)) {
        continue;
      }
      if (is_deadline) {
        deadlines_.insert(tid);
      }
      if (is_known) {
        programs_.forget_timers();
        continue;
      }
      seen_ns_[tid] = read_clock_ns(CLOCK_MONOTONIC);
      builder_.watch(tid, is_deadline);
      builder_.set_name(tid, first_line(task_path(pid, tid) + "/comm"));
      identities_[tid] = {
          .pid = pid, .comm = first_line(task_path(pid, tid) + "/comm"), .folder = {}, .calls = {}};
    }
  }
}

Recording& Session::recording_of(std::int32_t tid) { return *recordings_.at(tid); }

void Session::begin_recordings() {
  for (const auto& [tid, thread] : builder_.threads()) {
    if (thread->grid() == nullptr || recordings_.contains(tid)) {
      continue;
    }
    if (!plan_.begins.empty() && thread->grid()->kind.by != WakeKind::By::mark) {
      continue;
    }
    Identity& identity = identities_[tid];
    if (plan_.trace.empty()) {  // it may have named itself meanwhile
      const std::string comm = first_line(task_path(identity.pid, tid) + "/comm");
      identity.comm = comm.empty() ? identity.comm : comm;
    }
    if (is_wanted(tid, identity.comm) && !is_beside_the_point(tid)) {
      record(*thread, identity);
    }
  }
}

void Session::record(ThreadCycles& thread, Identity& identity) {
  const std::int32_t tid = thread.tid();
  if (plan_.trace.empty() && thread.grid()->kind.by == WakeKind::By::deadline) {
    thread.refine_period(reserved_period_ns(tid));
  }
  const std::string wanted = as_folder(identity.comm);
  std::string folder = wanted;
  for (int copy = 2; std::filesystem::exists(plan_.output / folder); ++copy) {
    folder = wanted + "-" + std::to_string(copy);
  }
  probe::create_folder(plan_.output / folder);
  identity.folder = folder;
  const std::int64_t period_ns = thread.grid()->is_exact ? thread.grid()->period_ns : 0;
  recordings_.emplace(
      tid,
      std::make_unique<Recording>(Recording{
          .journal = probe::JournalWriter(plan_.output / folder / "samples.journal", std::nullopt,
                                          period_ns, probe::JournalWriter::Content::cycles),
          .held = {}}));
  thread.record_into([this, tid](const CycleRecord& cycle) {
    Recording& recording = recording_of(tid);
    recording.held.push_back(cycle);
    if (recording.held.size() == frame_cycles && output_error_ == 0) {
      output_error_ = recording.flush();
    }
  });
  if (account_.source == "bpf") {
    calls_before_[tid] = programs_.calls(tid);
  }
  if (first_recording_ns_ == 0) {
    first_recording_ns_ = read_clock_ns(CLOCK_MONOTONIC);
  }
  save("running");
}

void Session::flush() {
  for (const auto& [tid, recording] : recordings_) {
    if (const int error = recording->flush(); error != 0 && output_error_ == 0) {
      output_error_ = error;
    }
  }
}

void Session::save(std::string_view status) {
  account_.status = status;
  if (account_.source == "bpf") {
    for (const auto& [tid, before] : calls_before_) {
      const Programs::Calls now = programs_.calls(tid);
      for (std::size_t call = 0; call < now.size(); ++call) {
        if (now[call] > before[call]) {
          identities_[tid].calls[call] = now[call] - before[call];
        }
      }
    }
    account_.lost = programs_.lost();
    account_.costs = programs_.costs();
  }
  const std::string text = told(account_, builder_, identities_, functions_) + "\n";
  if (const int error = probe::replace_file(plan_.output / account_file, text);
      error != 0 && output_error_ == 0) {
    output_error_ = error;
  }
}

void Session::read_clocks() {
  ClockBases bases;
  // Of several readings the closest: being held up in between only makes the distance larger.
  bases.real_ns = bases.boot_ns = bases.tai_ns = std::numeric_limits<std::int64_t>::max();
  constexpr int readings = 5;
  for (int i = 0; i < readings; ++i) {
    for (const auto& [clock, base] :
         {std::pair{CLOCK_REALTIME, &bases.real_ns}, std::pair{CLOCK_BOOTTIME, &bases.boot_ns},
          std::pair{CLOCK_TAI, &bases.tai_ns}}) {
      const std::int64_t before_ns = read_clock_ns(CLOCK_MONOTONIC);
      *base = std::min(*base, read_clock_ns(clock) - before_ns);
    }
  }
  builder_.set_bases(bases);
}

/// Streams the symbols: there are many, and a handful is wanted.
void Session::name_functions() {
  std::set<std::uint64_t> wanted;
  for (const auto& [tid, thread] : builder_.threads()) {
    if (thread->grid() == nullptr) {
      continue;
    }
    const std::int64_t address = thread->grid()->kind.function;
    if (address != 0 && !functions_.contains(address)) {
      wanted.insert(static_cast<std::uint64_t>(address));
    }
  }
  if (wanted.empty() || !plan_.trace.empty()) {
    return;
  }
  for (const std::uint64_t address : wanted) functions_[static_cast<std::int64_t>(address)] = "";
  probe::Text file = probe::Text::of_file("/proc/kallsyms");
  for (std::string line; file.line(line);) {
    std::uint64_t address = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
    if (error != std::errc() || address == 0 || !wanted.contains(address)) {
      continue;
    }
    const std::string_view rest(end, static_cast<std::size_t>(line.data() + line.size() - end));
    constexpr std::size_t to_name = 3;  // " t "
    if (rest.size() <= to_name) {
      continue;
    }
    const std::string_view name = rest.substr(to_name);
    functions_[static_cast<std::int64_t>(address)] = name.substr(0, name.find('\t'));
  }
}

/// Has the kernel tell when the program comes to where the user has its cycles begin and end.
void Session::mark_places() {
  for (const auto& [names, value] :
       {std::pair{&plan_.begins, begin_mark}, std::pair{&plan_.ends, end_mark}}) {
    for (const PlaceName& name : *names) {
      bool is_found = false;
      for (const std::int32_t pid : plan_.processes) {
        const std::vector<Place> places = find_place(name, pid);
        for (const Place& place : places) programs_.mark(place, pid, value);
        is_found = is_found || !places.empty();
      }
      if (!is_found) {
        throw Failure(name.text + ": the process has no " + name.program + " mapped; see /proc/" +
                      std::to_string(plan_.processes.front()) + "/maps");
      }
    }
  }
}

/// If their threads leave CPUs free, we are there.
void Session::leave_their_cpus() const {
  cpu_set_t theirs;
  CPU_ZERO(&theirs);
  for (const auto& [tid, identity] : identities_) {
    cpu_set_t mask;
    if (sched_getaffinity(tid, sizeof mask, &mask) != 0) {
      continue;
    }
    CPU_OR(&theirs, &theirs, &mask);
  }
  probe::leave_measured_cpus(probe::cpus_of(theirs));
}

bool Session::is_over(std::int64_t now_ns) {
  if (all_gone_ || output_error_ != 0) {
    return true;
  }
  if (!recordings_.empty()) {
    return plan_.duration_ns != 0 && now_ns - first_recording_ns_ >= plan_.duration_ns;
  }
  const auto has_time = [&](const auto& each) { return now_ns - each.second < plan_.learning_ns; };
  return std::ranges::none_of(seen_ns_, has_time);
}

[[noreturn]] void Session::refuse_nothing_periodic() const {
  std::string seen;
  std::size_t told = 0;
  std::size_t count = 0;
  for (const auto& [tid, identity] : identities_) {
    if (!is_wanted(tid, identity.comm)) {
      continue;
    }
    ++count;
    constexpr std::size_t most_told = 4;
    if (told == most_told) {
      continue;
    }
    ++told;
    std::string name;
    for (const char letter : identity.comm) name += letter >= ' ' && letter <= '~' ? letter : '?';
    seen += (seen.empty() ? "" : ", ") + name + " (" + std::to_string(tid) + ") woke up " +
            std::to_string(builder_.threads().at(tid)->wakes()) + " times";
  }
  if (count == 0) {
    throw Failure("no thread has such a name or number; see ps -eLo pid,tid,comm");
  }
  const std::string after = all_gone_ ? " before all of them ended" : "";
  if (!plan_.begins.empty()) {
    throw Failure("none of " + std::to_string(count) + " threads came to " +
                  plan_.begins.front().text + " 12 times" + after);
  }
  throw Failure("none of " + std::to_string(count) + " threads wakes up periodically" + after +
                ": " + seen + (count > told ? ", ..." : "") +
                "; a cycle needs at least 12 wake-ups of one kind that are equally far apart");
}

int Session::end(int ending_signal) {
  for (const auto& [tid, thread] : builder_.threads()) thread->close();
  flush();
  std::string status = "complete";
  int code = 0;
  if (output_error_ != 0) {
    status = probe::status_of_output(output_error_);
    code = probe::exit_output_failed;
  } else if (ending_signal != 0) {
    status = "interrupted";
    constexpr int by_signal = 128;
    code = by_signal + ending_signal;
  } else if (all_gone_) {
    status = "ended";
  }
  const int error = output_error_;
  name_functions();  // only now: reading the symbols holds a CPU up
  save(status);
  if (error != 0 || output_error_ != 0) {
    probe::print(stderr, probe::told_output_error("latenz-attach", plan_.output, output_error_));
    return probe::exit_output_failed;
  }
  if (recordings_.empty() && ending_signal == 0) refuse_nothing_periodic();
  return code;
}

int Session::perform() {
  const sigset_t ending = probe::block_ending_signals();
  probe::ignore_output_signals();
  probe::create_folder(plan_.output);
  account_.source = "bpf";
  programs_.attach(find_tracefs(), plan_.count_cost);
  account_.absent = programs_.absent();
  account_.started_ns = read_clock_ns(CLOCK_MONOTONIC);
  read_clocks();
  look_for_threads();
  if (all_gone_) {
    throw Failure("the process has ended");
  }
  mark_places();
  leave_their_cpus();
  save("running");
  const timespec pause = probe::to_timespec(drain_every_ns);
  std::int64_t next_look_ns = 0;
  std::int64_t next_account_ns = 0;
  std::uint64_t lost = 0;
  int signal = 0;
  while (true) {
    signal = std::max(0, sigtimedwait(&ending, nullptr, &pause));
    programs_.drain([this](const Event& event) { take(event); });
    if (const std::uint64_t now_lost = programs_.lost(); now_lost != lost) {
      lost = now_lost;
      builder_.lost();
    }
    begin_recordings();
    flush();
    const std::int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
    if (now_ns >= next_look_ns) {
      next_look_ns = now_ns + look_every_ns;
      look_for_threads();
    }
    if (now_ns >= next_account_ns) {
      next_account_ns = now_ns + account_every_ns;
      read_clocks();
      save("running");
      for (const auto& [tid, thread] : builder_.threads()) thread->forget_recent();
    }
    if (signal != 0 || is_over(now_ns)) {
      break;
    }
  }
  programs_.drain([this](const Event& event) { take(event); });  // what came in meanwhile
  return end(signal);
}

int attach(std::span<const char* const> arguments, int (Session::*read_trace)()) {
  Plan plan = parse_plan(arguments);
  if (plan.help || plan.version) {
    probe::print(stdout, plan.help ? plan_help() : "latenz-attach " LATENZ_VERSION "\n");
    return 0;
  }
  const bool is_trace = !plan.trace.empty();
  if (is_trace && read_trace == nullptr) {
    throw Failure("--trace: traces are read where Latenz is installed");
  }
  Session session(std::move(plan));
  return is_trace ? (session.*read_trace)() : session.perform();
}

}  // namespace latenz::attach
