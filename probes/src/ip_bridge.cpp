// SPDX-License-Identifier: Apache-2.0
// latenz-ip-bridge: gives `latenz ip` the registers of this board's Latencies IPs, over TCP or
// standard input and output (`ssh board latenz-ip-bridge --stdio`). docs/ip.md.
//
// Whoever is let in can start and stop measurements, and nothing else. On another address than this
// board's own only those are let in who know a secret.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clock.hpp"
#include "failure.hpp"
#include "file.hpp"
#include "ip_bridge_board.hpp"
#include "ip_bridge_secret.hpp"
#include "ip_bridge_server.hpp"
#include "ip_bridge_session.hpp"
#include "options.hpp"
#include "program.hpp"
#include "wording.hpp"

namespace latenz::probe {
namespace {

struct Wanted {
  std::string address = "127.0.0.1";
  std::uint16_t port = 7421;
  bool stdio = false;
  std::string secret;  ///< the file that holds it
  std::string root = "/";
};

/// Lets time pass, but no longer than somebody waits for it.
void wait_connected(int in, std::int64_t wait_ns) {
  pollfd connection{.fd = in, .events = POLLRDHUP, .revents = 0};
  const timespec time = to_timespec(wait_ns);
  static_cast<void>(ppoll(&connection, 1, &time, nullptr));
}

bool write_all(int out, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(out, bytes.data(), bytes.size());
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

/// Answers requests until the other side has gone, or says what is none.
void serve_stdio(const BridgeBoard& board) {
  BridgeTurn turn;
  BridgeSession session(board, turn, {}, 0);
  std::array<std::byte, 4096> buffer{};
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got <= 0) return;
    session.add(std::span(buffer).first(static_cast<std::size_t>(got)));
    while (const auto answer = session.next(read_clock_ns(CLOCK_MONOTONIC))) {
      if (answer->wait_ns > 0) wait_connected(STDIN_FILENO, answer->wait_ns);
      if (!write_all(STDOUT_FILENO, answer->bytes) || answer->is_last) return;
    }
  }
}

/// Listens; the port that was chosen, if any would do, is put in `wanted`.
File listening(Wanted& wanted) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(wanted.port);
  if (inet_pton(AF_INET, wanted.address.c_str(), &address.sin_addr) != 1) {
    throw Failure("--address: '" + wanted.address +
                  "' is not an IPv4 address such as 192.168.1.10");
  }
  constexpr std::uint32_t loopback = 127;  // 127.0.0.0/8
  if (ntohl(address.sin_addr.s_addr) >> 24U != loopback && wanted.secret.empty()) {
    throw Failure("--address " + wanted.address +
                  ": others can connect there; give --secret FILE, or keep 127.0.0.1 and come "
                  "through ssh -L");
  }
  File listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int reuse = 1;  // a socket without it works, too
  static_cast<void>(
      setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse));
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (!listener.is_open() || bind(listener.descriptor(), any, size) != 0 ||
      listen(listener.descriptor(), SOMAXCONN) != 0 ||
      getsockname(listener.descriptor(), any, &size) != 0) {
    throw Failure(worded("--address ", wanted.address, ", --port ", wanted.port,
                         ": cannot listen there: ", std::strerror(errno)));
  }
  wanted.port = ntohs(address.sin_port);
  return listener;
}

[[noreturn]] void serve_tcp(const BridgeBoard& board, Wanted wanted) {
  std::vector<std::byte> secret;
  if (!wanted.secret.empty()) secret = read_bridge_secret(wanted.secret);
  const File listener = listening(wanted);
  print(stderr, worded("latenz-ip-bridge: ", board.windows(), " windows at ", wanted.address, ":",
                       wanted.port, "\n"));
  BridgeServer(board, secret).serve(listener);
}

int bridge(std::span<const char* const> arguments) {
  Wanted wanted;
  bool help = false;
  const std::array<Option, 6> options{{
      {"--address", "ADDRESS", "IPv4 address of this board to listen on (127.0.0.1)",
       [&](std::string_view value) { wanted.address = value; }},
      {"--port", "PORT", "TCP port to listen on; 0: any that is free (7421)",
       [&](std::string_view value) {
         wanted.port = static_cast<std::uint16_t>(parse_integer("--port", value, 0, 65535));
       }},
      {"--stdio", "", "serve standard input and output instead, as for ssh",
       [&](std::string_view /*none*/) { wanted.stdio = true; }},
      {"--secret", "FILE", "let in only those who know what this file holds, which is yours alone",
       [&](std::string_view value) { wanted.secret = value; }},
      {"--root", "FOLDER", "where sys, proc and dev are (/)",
       [&](std::string_view value) { wanted.root = value; }},
      {"--help", "", "print this text", [&](std::string_view /*none*/) { help = true; }},
  }};
  parse_options(options, arguments);
  if (help) {
    print(stdout,
          help_text("latenz-ip-bridge",
                    "Gives latenz ip the registers of this board's Latencies IPs.", options));
    return 0;
  }
  static_cast<void>(
      std::signal(SIGPIPE, SIG_IGN));  // a client that has gone is seen when it is written to
  if (wanted.stdio && !wanted.secret.empty()) {
    throw Failure("--secret: whoever started --stdio is let in; omit it");
  }
  const BridgeBoard board(wanted.root);
  if (!wanted.stdio) serve_tcp(board, wanted);
  serve_stdio(board);
  return 0;
}

}  // namespace
}  // namespace latenz::probe

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-ip-bridge", count, arguments, latenz::probe::bridge);
}
