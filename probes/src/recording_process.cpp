// SPDX-License-Identifier: Apache-2.0
#include "recording_process.hpp"

#include <cerrno>
#include <cstring>

#include "affinity.hpp"
#include "failure.hpp"

namespace latenz::probe {

sigset_t block_ending_signals() {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction inherited{};
    sigaction(number, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN) {
      sigaddset(&ending, number);
    }
  }
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  return ending;
}

void ignore_output_signals() {
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);  // a reader of the progress may go away
  sigaction(SIGXFSZ, &ignore, nullptr);  // a file size limit is a full disk
}

void leave_measured_cpus(const std::vector<unsigned>& cpus) {
  // Where it was put comes first: what is not measured may still be isolated.
  for (cpu_set_t others : {inherited_cpus(), enterable_cpus()}) {
    for (const unsigned cpu : cpus) {
      CPU_CLR(cpu, &others);
    }
    if (CPU_COUNT(&others) > 0) {
      // Where that is refused, it stays where it is.
      static_cast<void>(stay_within(others));
      return;
    }
  }
}

void create_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw Failure(folder.string() + ": " + error.message() + "; name another folder by --output");
  }
}

std::string_view status_of_output(int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return full ? "disk full" : "output failed";
}

std::string told_output_error(std::string_view program, const std::filesystem::path& output,
                              int error) {
  return std::string(program) + ": " + output.string() + ": " + std::strerror(error) +
         "; the samples before it are kept\n";
}

}  // namespace latenz::probe
