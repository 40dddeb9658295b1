// SPDX-License-Identifier: Apache-2.0
#include "ip_bridge_server.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "clock.hpp"
#include "failure.hpp"
#include "wording.hpp"

namespace latenz::probe {
namespace {

constexpr std::size_t most_clients = 16;
constexpr std::int64_t limit_ns = 10'000'000'000;  // for the first request, and within each
constexpr short gone = POLLRDHUP | POLLHUP | POLLERR;

void set(const File& socket, int level, int option, int value) {
  // A socket without it works, too.
  static_cast<void>(setsockopt(socket.descriptor(), level, option, &value, sizeof value));
}

/// One that has silently gone is noticed after half a minute.
void set_up(const File& socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

bool is_for_later() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

void BridgeServer::serve(const File& listener) {
  for (;;) {
    if (wait_for_events(listener, read_clock_ns(CLOCK_MONOTONIC)) < 0 && errno != EINTR) {
      throw Failure(worded("clients cannot be waited for: ", std::strerror(errno)));
    }
    const std::int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
    std::size_t i = 1;
    for (Client& client : clients_) {
      advance(client, events_[i++], now_ns);
      client.is_gone |= has_limit(client, now_ns) && now_ns - client.since_ns > limit_ns;
      if (client.is_gone) client.session.leave();
    }
    clients_.remove_if([](const Client& client) { return client.is_gone; });
    if (events_[0] != 0) take_in(listener, now_ns);
  }
}

/// Is the client to do something soon? One that is let in may be silent between requests.
bool BridgeServer::has_limit(const Client& client, std::int64_t now_ns) {
  if (now_ns < client.wait_until_ns) return false;
  return !client.out.empty() || !client.session.is_admitted() || client.session.is_within_request();
}

int BridgeServer::wait_for_events(const File& listener, std::int64_t now_ns) {
  std::vector<pollfd> polled{{.fd = listener.descriptor(), .events = POLLIN, .revents = 0}};
  std::int64_t until_ns = now_ns + 3600 * nanoseconds_a_second;
  for (const Client& client : clients_) {
    const bool waits = now_ns < client.wait_until_ns;
    const short wanted = client.out.empty() ? POLLIN : POLLOUT;
    polled.push_back({.fd = client.socket.descriptor(),
                      .events = waits ? short{POLLRDHUP} : wanted,
                      .revents = 0});
    if (waits) until_ns = std::min(until_ns, client.wait_until_ns);
    if (has_limit(client, now_ns)) until_ns = std::min(until_ns, client.since_ns + limit_ns + 1);
    if (client.out.empty() && client.has_more) until_ns = now_ns;
  }
  const timespec time = to_timespec(std::max<std::int64_t>(until_ns - now_ns, 0));
  const int ready = ppoll(polled.data(), polled.size(), &time, nullptr);
  events_.clear();
  for (const pollfd& each : polled) events_.push_back(ready > 0 ? each.revents : short{0});
  return ready;
}

/// At most one request a round: the others come in between.
void BridgeServer::advance(Client& client, short events, std::int64_t now_ns) {
  if (client.out.empty()) {
    if ((events & (POLLIN | gone)) != 0) receive(client, now_ns);
    if (client.has_more) answer(client, now_ns);
  } else if (now_ns < client.wait_until_ns && (events & gone) != 0) {
    client.wait_until_ns = now_ns;  // nobody waits for it any more
  }
  if (!client.out.empty() && now_ns >= client.wait_until_ns) send(client, now_ns);
}

void BridgeServer::answer(Client& client, std::int64_t now_ns) {
  auto answer = client.session.next(now_ns);
  client.has_more = answer.has_value();
  if (!answer) return;
  client.out = std::move(answer->bytes);
  client.is_last = answer->is_last;
  client.wait_until_ns = now_ns + answer->wait_ns;
  if (client.session.is_admitted()) client.since_ns = client.wait_until_ns;
}

void BridgeServer::receive(Client& client, std::int64_t now_ns) {
  std::array<std::byte, 4096> buffer{};
  const ssize_t got = recv(client.socket.descriptor(), buffer.data(), buffer.size(), 0);
  if (got <= 0) {
    client.is_gone |= got == 0 || !is_for_later();
    return;
  }
  const bool begins = !client.session.is_within_request();
  if (client.session.is_admitted() && begins) client.since_ns = now_ns;
  client.session.add(std::span(buffer).first(static_cast<std::size_t>(got)));
  client.has_more = true;
}

void BridgeServer::send(Client& client, std::int64_t now_ns) {
  const auto left = std::span(client.out).subspan(client.sent);
  const ssize_t sent =
      ::send(client.socket.descriptor(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    client.is_gone |= !is_for_later();
    return;
  }
  client.sent += static_cast<std::size_t>(sent);
  if (client.session.is_admitted()) client.since_ns = now_ns;
  if (client.sent < client.out.size()) return;
  client.out.clear();
  client.sent = 0;
  client.is_gone |= client.is_last;
}

void BridgeServer::take_in(const File& listener, std::int64_t now_ns) {
  File socket(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open()) {
    if (is_for_later() || errno == ECONNABORTED) return;  // gone before it was accepted
    throw Failure(worded("no client can be accepted: ", std::strerror(errno)));
  }
  if (!make_room()) {
    const auto full = BridgeResponse{.status = BridgeStatus::full, .words = {}}.bytes();
    static_cast<void>(
        ::send(socket.descriptor(), full.data(), full.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    static_cast<void>(shutdown(socket.descriptor(), SHUT_WR));
    return;
  }
  set_up(socket);
  clients_.push_back({.socket = std::move(socket),
                      .session = BridgeSession(*board_, turn_, secret_, next_client_++),
                      .since_ns = now_ns,
                      .out = {}});
}

/// Who has not been let in makes room for the next.
bool BridgeServer::make_room() {
  if (clients_.size() < most_clients) return true;
  const auto stranger = std::ranges::find_if(
      clients_, [](const Client& client) { return !client.session.is_admitted(); });
  if (stranger == clients_.end()) return false;
  clients_.erase(stranger);
  return true;
}

}  // namespace latenz::probe
