// SPDX-License-Identifier: Apache-2.0
// One client of the bridge: what it sent, and what it is answered. No sockets here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ip_bridge_board.hpp"
#include "ip_bridge_protocol.hpp"
#include "ip_bridge_secret.hpp"

namespace latenz::probe {

/// Whose turn it is to change something: the first one that does, until it leaves, or is silent
/// while another wants to.
class BridgeTurn {
 public:
  static constexpr std::int64_t silence_ns = 5'000'000'000;

  /// A client is there at that time.
  void seen(std::uint64_t client, std::int64_t now_ns);
  /// Takes the turn if it is free.
  [[nodiscard]] bool take(std::uint64_t client, std::int64_t now_ns);
  void leave(std::uint64_t client);

 private:
  std::optional<std::uint64_t> owner_;
  std::int64_t seen_ns_ = 0;
};

struct BridgeAnswer {
  std::vector<std::byte> bytes;
  std::int64_t wait_ns = 0;  ///< it is sent after that
  bool is_last = false;      ///< then the connection is closed
};

class BridgeSession {
 public:
  /// Both outlive this, and the secret; without one nobody is asked for it.
  BridgeSession(const BridgeBoard& board, BridgeTurn& turn, std::span<const std::byte> secret,
                std::uint64_t client)
      : board_(&board),
        turn_(&turn),
        handshake_(secret),
        locked_(!secret.empty()),
        client_(client) {}

  void add(std::span<const std::byte> bytes) { requests_.add(bytes); }

  /// Of the next request; nothing if it has not come whole.
  [[nodiscard]] std::optional<BridgeAnswer> next(std::int64_t now_ns);

  /// Has it asked for something that only those may who are let in?
  [[nodiscard]] bool is_admitted() const { return admitted_; }
  [[nodiscard]] bool is_within_request() const { return requests_.has_part(); }
  void leave() { turn_->leave(client_); }

 private:
  [[nodiscard]] BridgeAnswer answer(const BridgeRequest& request, std::int64_t now_ns);
  [[nodiscard]] BridgeAnswer shake_hands(const BridgeRequest& request);

  const BridgeBoard* board_;
  BridgeTurn* turn_;
  BridgeHandshake handshake_;
  bool locked_;
  bool admitted_ = false;
  std::uint64_t client_;
  BridgeRequests requests_;
};

}  // namespace latenz::probe
