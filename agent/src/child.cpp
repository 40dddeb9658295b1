// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "affinity.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "message.hpp"
#include "text.hpp"

namespace latenz::agent {
namespace {

using probe::Failure;
using probe::File;

constexpr int exit_not_started = 127;

/// The parent of each process of this machine.
std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto process = number(entry.path().filename().string());
    if (!process) continue;
    const std::string text = probe::first_line(entry.path() / "stat");
    // The name in parentheses may hold anything; the parent is the second word after it.
    const std::size_t end = text.rfind(") ");
    if (end == std::string::npos || text.size() < end + 5) continue;
    found[static_cast<pid_t>(*process)] =
        static_cast<pid_t>(std::strtol(text.c_str() + end + 4, nullptr, 10));
  }
  return found;
}

std::vector<pid_t> descendants() {
  const auto parent_of = parents();
  std::set<pid_t> family{getpid()};
  for (bool grown = true; grown;) {
    grown = false;
    for (const auto& [process, parent] : parent_of) {
      if (family.contains(parent) && family.insert(process).second) grown = true;
    }
  }
  family.erase(getpid());
  return {family.begin(), family.end()};
}

void open_as(int number, const std::string& path, int flags) {
  const File file(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.is_open()) dup2(file.descriptor(), number);
}

[[noreturn]] void become(const Order& order) {
  // Should someone kill the supervisor itself, the program goes with it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setsid();
  // What started the agent may ignore some, as nohup does; a program is to end when it is told to.
  for (int number = 1; number < NSIG; ++number) static_cast<void>(signal(number, SIG_DFL));
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  open_as(STDIN_FILENO, "/dev/null", O_RDONLY);
  open_as(STDOUT_FILENO, order.output, O_WRONLY | O_CREAT | O_APPEND);
  open_as(STDERR_FILENO, order.errors, O_WRONLY | O_CREAT | O_APPEND);
  // A filter may forbid it; the program says what follows.
  if (order.cpus) static_cast<void>(probe::stay_within(*order.cpus));
  std::vector<std::string> words = order.arguments;
  const bool own = words.front().starts_with('@');
  if (own) words.front().erase(0, 1);
  std::vector<char*> arguments;
  std::string name = "latenz-agent";
  if (own) arguments.push_back(name.data());
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (chdir(order.folder.c_str()) == 0 && setenv("TMPDIR", order.folder.c_str(), 1) == 0) {
    own ? execv("/proc/self/exe", arguments.data()) : execvp(arguments[0], arguments.data());
  }
  const std::string line = words.front() + ": " + std::strerror(errno) + "\n";
  [[maybe_unused]] const ssize_t told = write(STDERR_FILENO, line.data(), line.size());
  _exit(exit_not_started);
}

/// Waits for the program's end, or until it has to end; then for the grace time at most.
int watch(pid_t program, int control, std::int64_t grace_ms) {
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  const File signals(signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK));
  std::optional<std::int64_t> kill_ns;
  for (int status = 0;;) {
    // Everything that its descendants leave behind comes to us, too.
    for (pid_t process = 0; (process = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (process == program) return status;
    }
    std::int64_t left_ms = -1;
    if (kill_ns) {
      left_ms =
          (*kill_ns - probe::read_clock_ns(CLOCK_MONOTONIC)) / probe::nanoseconds_a_millisecond;
      if (left_ms <= 0) {
        kill(program, SIGKILL);
        left_ms = -1;
      }
    }
    std::array<pollfd, 2> waiting{pollfd{signals.descriptor(), POLLIN, 0},
                                  pollfd{kill_ns ? -1 : control, POLLIN, 0}};
    poll(waiting.data(), waiting.size(), static_cast<int>(left_ms));
    signalfd_siginfo read_off{};
    while (read(signals.descriptor(), &read_off, sizeof read_off) > 0) {
    }
    if (waiting[1].revents != 0) {
      kill(program, SIGINT);
      kill_ns = probe::read_clock_ns(CLOCK_MONOTONIC) + grace_ms * probe::nanoseconds_a_millisecond;
    }
  }
}

[[noreturn]] void supervise(const Order& order, int control) {
  close_others({control});
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t every;
  sigfillset(&every);
  sigprocmask(SIG_SETMASK, &every, nullptr);
  const pid_t program = fork();
  if (program == 0) become(order);
  if (program < 0) _exit(exit_not_started);
  const int status = watch(program, control, order.grace_ms);
  kill_descendants();
  _exit(exit_code(status));
}

}  // namespace

int exit_code(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void close_others(const std::vector<int>& kept) {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  std::vector<int> open_ones;
  while (const dirent* const entry = readdir(folder)) {
    if (const auto descriptor = number(entry->d_name)) {
      open_ones.push_back(static_cast<int>(*descriptor));
    }
  }
  closedir(folder);
  for (const int descriptor : open_ones) {
    if (descriptor > STDERR_FILENO && std::ranges::find(kept, descriptor) == kept.end()) {
      close(descriptor);
    }
  }
}

/// Again until none is left: one that forks meanwhile is found the next time round.
void kill_descendants() {
  constexpr timespec pause{.tv_sec = 0, .tv_nsec = 5'000'000};
  for (auto family = descendants(); !family.empty(); family = descendants()) {
    for (const pid_t process : family) kill(process, SIGKILL);
    nanosleep(&pause, nullptr);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
}

Child::Child(const Order& order) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Failure(std::strerror(errno));
  const File reading(ends[0]);
  control_ = File(ends[1]);
  supervisor_ = fork();
  if (supervisor_ < 0) throw Failure(std::string("no process can be had: ") + std::strerror(errno));
  if (supervisor_ == 0) supervise(order, reading.descriptor());
}

void Child::ended(int wait_status) {
  status_ = exit_code(wait_status);
  control_.close();
}

}  // namespace latenz::agent
