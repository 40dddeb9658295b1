// SPDX-License-Identifier: Apache-2.0
// latenz-agent: everything that Latenz runs on a machine where it is not installed.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <utility>

#include "attach_session.hpp"
#include "cpu_load.hpp"
#include "failure.hpp"
#include "keeper.hpp"
#include "link.hpp"
#include "memory_load_program.hpp"
#include "program.hpp"
#include "wakeup.hpp"

namespace latenz::agent {
namespace {

using probe::Failure;
using probe::File;
using Arguments = std::span<const char* const>;

constexpr std::string_view usage =
    "it is started by latenz --on; by hand: latenz-agent wakeup|memory|cpu|attach --help";

std::string checked_token(std::string_view text) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0; };
  if (text.empty() || text.size() > 64 || !std::ranges::all_of(text, allowed)) {
    throw Failure("the token has other characters than letters and digits");
  }
  return std::string(text);
}

void detach_streams() {
  const File nothing = File::open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    dup2(nothing.descriptor(), stream);
  }
}

/// A keeper that belongs to no session; tells through the pipe what kept it from starting.
[[noreturn]] void keep(File listening, const std::string& folder, File told) {
  if (setsid() < 0 || fork() != 0) _exit(0);
  detach_streams();
  try {
    if (chdir("/") != 0) throw Failure(std::strerror(errno));
    Keeper keeper(std::move(listening), folder);
    told.close();  // it serves
    keeper.serve();
  } catch (const std::exception& error) {
    const std::string line = error.what();
    [[maybe_unused]] const ssize_t written = write(told.descriptor(), line.data(), line.size());
    remove_folder(folder);
    _exit(probe::exit_bad_input);
  }
  _exit(0);
}

/// TOKEN FOLDER: starts the keeper, then is its first link.
int begin(Arguments arguments) {
  if (arguments.size() != 2) throw Failure(std::string(usage));
  const std::string token = checked_token(arguments[0]);
  const std::string folder = arguments[1];
  File listening = listen_for_links(token);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Failure(std::strerror(errno));
  const File heard(ends[0]);
  File told(ends[1]);
  const pid_t first = fork();
  if (first < 0) throw Failure(std::strerror(errno));
  if (first == 0) keep(std::move(listening), folder, std::move(told));
  told.close();
  listening.close();
  while (waitpid(first, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::array<char, 512> line{};
  const ssize_t length = read(heard.descriptor(), line.data(), line.size());
  if (length > 0) throw Failure(std::string(line.data(), static_cast<std::size_t>(length)));
  copy_link(connect_to_keeper(token), token);
  return 0;
}

/// TOKEN: a further link to the keeper.
int link(Arguments arguments) {
  if (arguments.size() != 1) throw Failure(std::string(usage));
  const std::string token = checked_token(arguments[0]);
  copy_link(connect_to_keeper(token), token);
  return 0;
}

int run(Arguments arguments) {
  const std::string_view verb = arguments.empty() ? "" : arguments[0];
  if (verb == "begin") return begin(arguments.subspan(1));
  if (verb == "link") return link(arguments.subspan(1));
  if (verb == "wakeup") return probe::measure_wakeups(arguments.subspan(1));
  if (verb == "memory") return probe::load_memory(arguments.subspan(1));
  if (verb == "cpu") return probe::load_cpus(arguments.subspan(1));
  if (verb == "attach") return attach::attach(arguments.subspan(1));
  if (verb == "--version") {
    probe::print(stdout, "latenz-agent " LATENZ_VERSION "\n");
    return 0;
  }
  throw Failure(std::string(usage));
}

}  // namespace
}  // namespace latenz::agent

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-agent", count, arguments, latenz::agent::run);
}
