// SPDX-License-Identifier: Apache-2.0
// latenz-robot: a servo in real time, its planner, and what delays do to the control error.
// docs/robot.md
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "activation.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "file.hpp"
#include "journal_writer.hpp"
#include "json.hpp"
#include "latenz/icc/linux_memory.hpp"
#include "program.hpp"
#include "real_time.hpp"
#include "recording_process.hpp"
#include "refusal.hpp"
#include "ring.hpp"
#include "robot_figures.hpp"
#include "robot_plan.hpp"
#include "robot_planner.hpp"
#include "robot_simulation.hpp"

namespace latenz::robot {
namespace {

using probe::Failure;
using probe::File;
using probe::Json;
using probe::read_clock_ns;
using probe::Sample;

constexpr int exit_planner_ended = 3;
constexpr std::int64_t drain_every_ns = 50'000'000;
constexpr std::int64_t account_every_ns = 1'000'000'000;
constexpr std::int64_t start_delay_ns = 20'000'000;
constexpr std::int64_t patience_ns = 30'000'000'000;
constexpr std::size_t ring_cycles = 65'536;  // 4 s at the shortest interval, and more
constexpr std::size_t frame_cycles = 4096;

/// What the kernel did to the servo's thread while it was measured.
struct Disturbance {
  std::int64_t page_faults = 0;
  std::int64_t involuntary_switches = 0;
};

Disturbance disturbance() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return {.page_faults = usage.ru_minflt + usage.ru_majflt,
          .involuntary_switches = usage.ru_nivcsw};
}

/// The real-time thread: sleeps, acts, commands, and leaves a record of each cycle.
class ServoThread {
 public:
  ServoThread(const RobotPlan& plan, const icc::LinuxMemory& memory);
  ~ServoThread();
  ServoThread(const ServoThread&) = delete;
  ServoThread& operator=(const ServoThread&) = delete;

  /// Waits for the planner, then starts. Throws `Failure`.
  void start();
  /// Ends the thread, waking it if it sleeps.
  void end();

  [[nodiscard]] bool finished() const { return finished_.load(std::memory_order_acquire); }
  [[nodiscard]] bool standing() const { return standing_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t lost() const { return lost_.load(std::memory_order_relaxed); }
  /// Measured cycles on another CPU than the servo's: others moved it.
  [[nodiscard]] std::int64_t elsewhere() const {
    return elsewhere_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] Stops stops() const {
    return {.stale = stale_.load(std::memory_order_relaxed),
            .missed = missed_.load(std::memory_order_relaxed)};
  }
  /// Known once it has finished.
  [[nodiscard]] const Disturbance& disturbed() const { return disturbed_; }
  probe::Ring<Cycle>& cycles() { return cycles_; }

 private:
  void run();
  [[nodiscard]] int become_real_time() const;
  void control(std::int64_t first_due_ns);
  void cycle(const probe::Activation& activation, bool recorded);

  const RobotPlan& plan_;
  StatusChannel::Writer status_;
  SetPointChannel::Reader set_points_;
  std::byte* set_point_memory_;
  Servo servo_;
  probe::Ring<Cycle> cycles_{ring_cycles};
  std::thread thread_;
  std::atomic<int> setup_error_{-1};           ///< -1: still setting up; 0: ready; otherwise errno
  std::atomic<std::int64_t> first_due_ns_{0};  ///< 0: not yet, -1: never
  Disturbance disturbed_;
  alignas(probe::cache_line) std::atomic<bool> stop_{false};
  std::atomic<bool> finished_{false};
  std::atomic<bool> standing_{true};
  std::atomic<std::int64_t> lost_{0};
  std::atomic<std::int64_t> elsewhere_{0};
  std::atomic<std::uint32_t> stale_{0};
  std::atomic<std::uint32_t> missed_{0};
};

ServoThread::ServoThread(const RobotPlan& plan, const icc::LinuxMemory& memory)
    : plan_(plan), set_point_memory_(static_cast<std::byte*>(memory.data())), servo_(plan.servo) {
  auto opened = StatusChannel::Writer::create(set_point_memory_ + status_offset,
                                              StatusChannel::bytes, "status");
  if (!opened) {
    throw Failure("the channel to the planner cannot be created");
  }
  status_ = *opened;
}

ServoThread::~ServoThread() { end(); }

void ServoThread::start() {
  const auto patience = icc::Until<icc::MonotonicClock>::after(patience_ns);
  auto opened = SetPointChannel::Reader::attach_until(set_point_memory_, SetPointChannel::bytes,
                                                      patience, std::uint32_t{0});
  if (!opened) {
    throw Failure("the planner's process did not start within 30 s");
  }
  set_points_ = *opened;
  thread_ = std::thread([this] { run(); });
  setup_error_.wait(-1);
  if (setup_error_ == EPERM) {
    throw Failure("--policy fifo: " + probe::why_refused(probe::read_rights(), plan_.priority) +
                  "; or use --policy other");
  }
  if (setup_error_ != 0) {
    throw Failure(std::string("--cpu or --policy: ") + std::strerror(setup_error_));
  }
  first_due_ns_ = read_clock_ns(CLOCK_MONOTONIC) + start_delay_ns;
  first_due_ns_.notify_one();
}

/// A signal that comes just before the thread falls asleep is lost on it, so they are repeated.
void ServoThread::end() {
  if (!thread_.joinable()) {
    return;
  }
  stop_.store(true, std::memory_order_relaxed);
  std::int64_t never = 0;
  if (first_due_ns_.compare_exchange_strong(never, -1)) {
    first_due_ns_.notify_one();
  }
  while (!finished()) {
    pthread_kill(thread_.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  thread_.join();
}

void ServoThread::run() {
  probe::prefault_stack();
  setup_error_ = become_real_time();
  setup_error_.notify_one();
  first_due_ns_.wait(0);
  if (first_due_ns_ > 0) {
    control(first_due_ns_);
  }
  finished_.store(true, std::memory_order_release);
}

int ServoThread::become_real_time() const {
  if (const int error = plan_.cpu ? probe::stay_on(*plan_.cpu) : 0; error != 0) {
    return error;
  }
  return plan_.policy == probe::Policy::fifo ? probe::take_policy(SCHED_FIFO, plan_.priority) : 0;
}

/// No system call but the sleep, no memory but what is in place already.
void ServoThread::control(std::int64_t first_due_ns) {
  probe::Activations activations(CLOCK_MONOTONIC, first_due_ns, plan_.servo.interval_ns);
  const std::int64_t record_from_ns = first_due_ns + plan_.warm_up_ns;
  const std::int64_t end_ns = record_from_ns + plan_.duration_ns.value_or(0);
  Disturbance before = disturbance();
  probe::Ending ending;
  bool recording = false;
  while (!stop_.load(std::memory_order_relaxed)) {
    const auto activation = activations.next();
    if (!activation) {
      continue;  // a signal: see whether it means stop
    }
    if (!recording && activation->due_ns >= record_from_ns) {
      recording = true;
      before = disturbance();
    }
    if (recording && plan_.cpu && sched_getcpu() != static_cast<int>(*plan_.cpu)) {
      elsewhere_.store(elsewhere_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    cycle(*activation, recording);
    if (plan_.duration_ns && ending.is_reached(*activation, activations.next_due_ns(), end_ns)) {
      break;
    }
  }
  const Disturbance after = disturbance();
  disturbed_ = {.page_faults = after.page_faults - before.page_faults,
                .involuntary_switches = after.involuntary_switches - before.involuntary_switches};
}

void ServoThread::cycle(const probe::Activation& activation, bool recorded) {
  constexpr auto relaxed = std::memory_order_relaxed;
  Cycle done = servo_.act(activation.due_ns, activation.running_ns(), set_points_.view());
  servo_.describe(activation.due_ns, status_.begin_update());
  status_.publish();
  done.completion_ns = read_clock_ns(CLOCK_MONOTONIC);
  servo_.command(done.completion_ns);
  standing_.store(done.motion == Motion::standing, relaxed);
  stale_.store(servo_.stops().stale, relaxed);
  missed_.store(servo_.stops().missed, relaxed);
  if (recorded && !cycles_.push(done)) {
    lost_.store(lost_.load(relaxed) + 1, relaxed);
  }
}

/// One of the two sample sets: a journal in a folder of its own.
struct Track {
  Track(const std::filesystem::path& output, std::string_view name, const RobotPlan& plan)
      : folder(output / name),
        journal((probe::create_folder(folder), folder / "samples.journal"), plan.cpu,
                plan.servo.interval_ns) {}

  std::filesystem::path folder;
  probe::JournalWriter journal;
};

class RobotRun {
 public:
  explicit RobotRun(RobotPlan plan) : plan_(std::move(plan)) {}
  RobotRun(const RobotRun&) = delete;
  RobotRun& operator=(const RobotRun&) = delete;
  ~RobotRun() { end_planner(); }

  int perform();

 private:
  void prepare();
  void start_planner();
  void tune();
  void watch(const sigset_t& ending);
  void drain();
  void fail(int error) { output_error_ = output_error_ == 0 ? error : output_error_; }
  void end_planner();
  [[nodiscard]] bool planner_ended();
  [[nodiscard]] int close();
  [[nodiscard]] int save(std::string_view status) const;
  [[nodiscard]] std::string account(std::string_view status) const;

  RobotPlan plan_;
  std::unique_ptr<icc::LinuxMemory> memory_;
  std::unique_ptr<ServoThread> servo_;
  std::vector<Track> tracks_;
  std::unique_ptr<Figures> figures_;
  std::vector<Cycle> buffer_ = std::vector<Cycle>(frame_cycles);
  std::vector<Sample> samples_;
  File dma_latency_;
  std::string_view dma_latency_state_ = "off";
  bool locked_ = false;
  pid_t planner_ = 0;
  std::string planner_end_;
  std::int64_t next_account_ns_ = 0;
  int ending_signal_ = 0;
  int output_error_ = 0;
};

int RobotRun::perform() {
  const sigset_t ending = probe::block_ending_signals();
  prepare();
  start_planner();
  struct sigaction nudge{};
  nudge.sa_handler = [](int) {};
  sigaction(SIGUSR1, &nudge, nullptr);
  probe::ignore_output_signals();
  servo_ = std::make_unique<ServoThread>(plan_, *memory_);
  tune();
  if (const int error = save("running"); error != 0) {
    throw Failure((plan_.output / "robot.json").string() + ": " + std::strerror(error) +
                  "; make room or name another folder");
  }
  servo_->start();
  watch(ending);
  servo_->end();
  end_planner();
  drain();
  return close();
}

void RobotRun::prepare() {
  const auto account_path = plan_.output / "robot.json";
  if (std::filesystem::exists(account_path)) {
    throw Failure(account_path.string() + ": holds a recording already; name another folder");
  }
  for (const std::string_view name : {"activation", "completion"}) {
    tracks_.emplace_back(plan_.output, name, plan_);
  }
  figures_ = std::make_unique<Figures>(plan_.servo.joints, plan_.servo.interval_ns);
  const std::string name = "/latenz-robot-" + std::to_string(getpid());
  memory_ = std::make_unique<icc::LinuxMemory>(
      icc::LinuxMemory::create_shared(name.c_str(), shared_bytes));
  icc::LinuxMemory::remove_shared(name.c_str());  // both processes inherit the mapping
  if (!*memory_) {
    throw Failure(memory_->problem());
  }
}

void RobotRun::start_planner() {
  if (plan_.cpu) {
    probe::leave_measured_cpus({*plan_.cpu});
  }
  planner_ = fork();
  if (planner_ < 0) {
    throw Failure(std::string("cannot start a process: ") + std::strerror(errno));
  }
  if (planner_ == 0) {
    run_planner(*memory_, plan_.servo.joints);
  }
}

void RobotRun::tune() {
  locked_ = plan_.locked && mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
  if (plan_.dma_latency_us) {
    dma_latency_state_ = probe::hold_dma_latency(*plan_.dma_latency_us, dma_latency_);
  }
}

/// Without its planner the robot stops safely, and then the run ends.
void RobotRun::watch(const sigset_t& ending) {
  const timespec drain_every = probe::to_timespec(drain_every_ns);
  while (!servo_->finished() && ending_signal_ == 0 && output_error_ == 0 &&
         !(planner_ended() && servo_->standing())) {
    ending_signal_ = std::max(0, sigtimedwait(&ending, nullptr, &drain_every));
    drain();
    const std::int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
    if (now_ns >= next_account_ns_) {
      next_account_ns_ = now_ns + account_every_ns;
      fail(save("running"));
    }
  }
}

void RobotRun::drain() {
  for (std::size_t count = buffer_.size(); count == buffer_.size() && output_error_ == 0;) {
    count = servo_->cycles().pop(buffer_);
    const std::span<const Cycle> cycles(buffer_.data(), count);
    const std::array<std::int64_t Cycle::*, 2> ends{&Cycle::activation_ns, &Cycle::completion_ns};
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
      samples_.clear();
      for (const Cycle& cycle : cycles) {
        samples_.push_back({.t_ns = cycle.due_ns, .latency_ns = cycle.*ends[i] - cycle.due_ns});
      }
      fail(tracks_[i].journal.append(samples_));
    }
    std::ranges::for_each(cycles, [this](const Cycle& cycle) { figures_->add(cycle); });
  }
}

bool RobotRun::planner_ended() {
  int status = 0;
  if (planner_ > 0 && waitpid(planner_, &status, WNOHANG) == planner_) {
    planner_ = 0;
    planner_end_ = WIFSIGNALED(status) ? "the planner's process was ended by signal " +
                                             std::to_string(WTERMSIG(status))
                                       : "the planner's process ended";
  }
  return planner_ == 0;
}

void RobotRun::end_planner() {
  if (planner_ > 0) {
    kill(planner_, SIGKILL);
    waitpid(planner_, nullptr, 0);
    planner_ = 0;
  }
}

int RobotRun::close() {
  std::string status = "complete";
  int exit_code = 0;
  if (output_error_ != 0) {
    status = probe::status_of_output(output_error_);
    exit_code = probe::exit_output_failed;
  } else if (ending_signal_ != 0) {
    status = "interrupted";
    exit_code = 128 + ending_signal_;
  } else if (!planner_end_.empty()) {
    status = planner_end_;
    exit_code = exit_planner_ended;
    probe::print(stderr, "latenz-robot: " + planner_end_ +
                             "; the robot stopped safely, and the samples are kept\n");
  }
  const int error = save(status);
  if (output_error_ != 0 || error != 0) {
    const int reason = output_error_ != 0 ? output_error_ : error;
    probe::print(stderr, probe::told_output_error("latenz-robot", plan_.output, reason));
    return probe::exit_output_failed;
  }
  return exit_code;
}

int RobotRun::save(std::string_view status) const {
  return probe::replace_file(plan_.output / "robot.json", account(status));
}

std::string RobotRun::account(std::string_view status) const {
  const Stops stops = servo_->stops();
  Json json;
  json.open_object().member("version", 1).member("program", "latenz-robot");
  json.member("program_version", LATENZ_VERSION).member("status", status);
  json.key("cpu");
  plan_.cpu ? json.value(*plan_.cpu) : json.null();
  json.member("policy", probe::name_of(plan_.policy, probe::policy_names)).key("priority");
  plan_.policy == probe::Policy::fifo ? json.value(plan_.priority) : json.null();
  json.member("memory_locked", locked_).member("dma_latency", dma_latency_state_);
  json.member("interval_ns", plan_.servo.interval_ns).member("warm_up_ns", plan_.warm_up_ns);
  json.member("stale_ns", plan_.servo.stale_ns).member("most_missed", plan_.servo.most_missed);
  json.member("safe_stops", stops.all()).member("stops_stale", stops.stale);
  json.member("stops_missed", stops.missed).member("lost", servo_->lost());
  json.member("elsewhere", servo_->elsewhere());
  figures_->write(json);
  json.key("max_ns");
  figures_->cycles() > 0 ? json.value(figures_->max_latency_ns()) : json.null();
  if (servo_->finished()) {
    json.member("page_faults", servo_->disturbed().page_faults);
    json.member("involuntary_switches", servo_->disturbed().involuntary_switches);
  }
  return json.close_object().text() + "\n";
}

int control_robot(std::span<const char* const> arguments) {
  RobotPlan plan = parse_robot_plan(arguments);
  if (plan.help || plan.version) {
    probe::print(stdout, plan.help ? robot_help() : "latenz-robot " LATENZ_VERSION "\n");
    return 0;
  }
  if (!plan.simulate.empty()) {
    const auto instants = read_instants(plan.simulate, plan.servo.interval_ns);
    probe::print(stdout, to_csv(simulate(plan.servo, instants)));
    return 0;
  }
  return RobotRun(std::move(plan)).perform();
}

}  // namespace
}  // namespace latenz::robot

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-robot", count, arguments, latenz::robot::control_robot);
}
