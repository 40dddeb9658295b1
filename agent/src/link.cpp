// SPDX-License-Identifier: Apache-2.0
#include "link.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "message.hpp"

namespace latenz::agent {
namespace {

bool write_whole(int to, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = write(to, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

/// Passes on what there is; false at the end.
bool pass(int from, int to) {
  std::array<char, 65536> part{};
  const ssize_t got = read(from, part.data(), part.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  return got > 0 && write_whole(to, part.data(), static_cast<std::size_t>(got));
}

}  // namespace

void copy_link(const probe::File& keeper, const std::string& token) {
  static_cast<void>(signal(SIGPIPE, SIG_IGN));
  const std::string line =
      "\nlatenz-agent " + std::to_string(protocol_version) + " " + token + "\n";
  bool going_on = write_whole(STDOUT_FILENO, line.data(), line.size());
  while (going_on) {
    std::array<pollfd, 2> waiting{pollfd{STDIN_FILENO, POLLIN, 0},
                                  pollfd{keeper.descriptor(), POLLIN, 0}};
    if (poll(waiting.data(), waiting.size(), -1) < 0) continue;
    if (waiting[1].revents != 0) going_on = pass(keeper.descriptor(), STDOUT_FILENO);
    if (going_on && waiting[0].revents != 0) going_on = pass(STDIN_FILENO, keeper.descriptor());
  }
}

}  // namespace latenz::agent
