// SPDX-License-Identifier: Apache-2.0
// Serves several clients of the bridge in turn, so that none waits for another that is silent,
// slow, or does not take what it is answered.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include "file.hpp"
#include "ip_bridge_session.hpp"

namespace latenz::probe {

class BridgeServer {
 public:
  /// Both outlive this; without a secret nobody is asked for one.
  BridgeServer(const BridgeBoard& board, std::span<const std::byte> secret)
      : board_(&board), secret_(secret) {}

  /// Throws `Failure` if nobody can be served any more.
  [[noreturn]] void serve(const File& listener);

 private:
  struct Client {
    File socket;
    BridgeSession session;
    std::int64_t since_ns;  ///< when it came; if it is let in: last did what was expected of it
    std::vector<std::byte> out;
    std::size_t sent = 0;
    std::int64_t wait_until_ns = 0;
    bool is_last = false;  ///< what is sent is the last it gets
    bool has_more = true;  ///< a whole request may be there already
    bool is_gone = false;
  };

  [[nodiscard]] int wait_for_events(const File& listener, std::int64_t now_ns);
  [[nodiscard]] static bool has_limit(const Client& client, std::int64_t now_ns);
  void take_in(const File& listener, std::int64_t now_ns);
  [[nodiscard]] bool make_room();
  static void advance(Client& client, short events, std::int64_t now_ns);
  static void answer(Client& client, std::int64_t now_ns);
  static void receive(Client& client, std::int64_t now_ns);
  static void send(Client& client, std::int64_t now_ns);

  const BridgeBoard* board_;
  std::span<const std::byte> secret_;
  BridgeTurn turn_;
  std::list<Client> clients_;
  std::vector<short> events_;  ///< of the listener, then of each client
  std::uint64_t next_client_ = 0;
};

}  // namespace latenz::probe
