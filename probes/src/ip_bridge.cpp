// SPDX-License-Identifier: Apache-2.0
// latenz-ip-bridge: gives `latenz ip` the registers of this board's Latencies IPs, over TCP or
// standard input and output (`ssh board latenz-ip-bridge --stdio`). docs/ip.md.
//
// Whoever can connect can start and stop measurements, and nothing else. There is no password:
// listen on an address of a network that you trust, or let ssh carry it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

#include "clock.hpp"
#include "failure.hpp"
#include "file.hpp"
#include "ip_bridge_board.hpp"
#include "ip_bridge_protocol.hpp"
#include "options.hpp"
#include "program.hpp"
#include "wording.hpp"

namespace latenz::probe {
namespace {

struct Wanted {
  std::string address = "127.0.0.1";
  std::uint16_t port = 7421;
  bool stdio = false;
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
void serve(const BridgeBoard& board, int in, int out) {
  BridgeRequests requests;
  std::array<std::byte, 4096> buffer{};
  for (;;) {
    const ssize_t got = read(in, buffer.data(), buffer.size());
    if (got <= 0) return;
    requests.add(std::span(buffer).first(static_cast<std::size_t>(got)));
    while (const auto request = requests.next()) {
      const auto wait = [in](std::int64_t wait_ns) { wait_connected(in, wait_ns); };
      if (!write_all(out, board.answer(*request, wait)) || !request->is_known()) return;
    }
  }
}

void set(int socket, int level, int option, int value) {
  // A socket without it works, too.
  static_cast<void>(setsockopt(socket, level, option, &value, sizeof value));
}

/// Listens; the port that was chosen, if any would do, is put in `wanted`.
File listening(Wanted& wanted) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(wanted.port);
  if (inet_pton(AF_INET, wanted.address.c_str(), &address.sin_addr) != 1) {
    throw Failure("--address: '" + wanted.address + "' is no IPv4 address such as 192.168.1.10");
  }
  File listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, 1);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (!listener.is_open() || bind(listener.descriptor(), any, size) != 0 ||
      listen(listener.descriptor(), 1) != 0 ||
      getsockname(listener.descriptor(), any, &size) != 0) {
    throw Failure(worded("--address ", wanted.address, ", --port ", wanted.port,
                         ": cannot listen there: ", std::strerror(errno)));
  }
  wanted.port = ntohs(address.sin_port);
  return listener;
}

/// Serves one client after the other; one that has silently gone is noticed after half a minute.
[[noreturn]] void serve_tcp(const BridgeBoard& board, Wanted wanted) {
  const File listener = listening(wanted);
  print(stderr, worded("latenz-ip-bridge: ", board.windows(), " windows at ", wanted.address, ":",
                       wanted.port, "\n"));
  for (;;) {
    const File client(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.is_open()) {
      if (errno == ECONNABORTED) continue;  // gone before it was accepted
      throw Failure(worded("no client can be accepted: ", std::strerror(errno)));
    }
    set(client.descriptor(), IPPROTO_TCP, TCP_NODELAY, 1);
    set(client.descriptor(), SOL_SOCKET, SO_KEEPALIVE, 1);
    set(client.descriptor(), IPPROTO_TCP, TCP_KEEPIDLE, 15);
    set(client.descriptor(), IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(client.descriptor(), IPPROTO_TCP, TCP_KEEPCNT, 3);
    serve(board, client.descriptor(), client.descriptor());
  }
}

int bridge(std::span<const char* const> arguments) {
  Wanted wanted;
  bool help = false;
  const std::array<Option, 5> options{{
      {"--address", "ADDRESS", "IPv4 address of this board to listen on (127.0.0.1)",
       [&](std::string_view value) { wanted.address = value; }},
      {"--port", "PORT", "TCP port to listen on; 0: any that is free (7421)",
       [&](std::string_view value) {
         wanted.port = static_cast<std::uint16_t>(parse_integer("--port", value, 0, 65535));
       }},
      {"--stdio", "", "serve standard input and output instead, as for ssh",
       [&](std::string_view /*none*/) { wanted.stdio = true; }},
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
  const BridgeBoard board(wanted.root);
  if (!wanted.stdio) serve_tcp(board, wanted);
  serve(board, STDIN_FILENO, STDOUT_FILENO);
  return 0;
}

}  // namespace
}  // namespace latenz::probe

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-ip-bridge", count, arguments, latenz::probe::bridge);
}
