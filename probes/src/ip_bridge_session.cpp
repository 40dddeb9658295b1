// SPDX-License-Identifier: Apache-2.0
#include "ip_bridge_session.hpp"

namespace latenz::probe {
namespace {

BridgeAnswer only_status(BridgeStatus status, bool is_last = false) {
  const std::uint32_t version = status == BridgeStatus::locked ? bridge_version : 0;
  return {.bytes = BridgeResponse{.status = status, .failed_at = version, .words = {}}.bytes(),
          .is_last = is_last};
}

bool is(const BridgeRequest& request, BridgeOperation operation) {
  return request.operation == static_cast<std::uint8_t>(operation);
}

}  // namespace

void BridgeTurn::seen(std::uint64_t client, std::int64_t now_ns) {
  if (owner_ == client) seen_ns_ = now_ns;
}

bool BridgeTurn::take(std::uint64_t client, std::int64_t now_ns) {
  if (!owner_ || now_ns - seen_ns_ > silence_ns) owner_ = client;
  seen(client, now_ns);
  return owner_ == client;
}

void BridgeTurn::leave(std::uint64_t client) {
  if (owner_ == client) owner_.reset();
}

std::optional<BridgeAnswer> BridgeSession::next(std::int64_t now_ns) {
  const auto request = requests_.next();
  if (!request) return std::nullopt;
  return answer(*request, now_ns);
}

BridgeAnswer BridgeSession::answer(const BridgeRequest& request, std::int64_t now_ns) {
  if (!request.is_known()) return only_status(BridgeStatus::refused, true);
  if (is(request, BridgeOperation::challenge) || is(request, BridgeOperation::prove)) {
    return shake_hands(request);
  }
  if (locked_) return only_status(BridgeStatus::locked);
  admitted_ = true;
  turn_->seen(client_, now_ns);
  if (board_->is_change(request) && !turn_->take(client_, now_ns)) {
    return only_status(BridgeStatus::busy);
  }
  return {.bytes = board_->answer(request), .wait_ns = board_->wait_ns(request)};
}

/// One try a connection.
BridgeAnswer BridgeSession::shake_hands(const BridgeRequest& request) {
  if (!locked_) return only_status(BridgeStatus::refused, true);
  if (is(request, BridgeOperation::challenge)) {
    const auto nonce = handshake_.challenge();
    if (!nonce) return only_status(BridgeStatus::refused, true);
    return {.bytes = bytes_response(*nonce)};
  }
  const auto proof = handshake_.answer(words_as_bytes(request.words));
  if (!proof) return only_status(BridgeStatus::wrong_secret, true);
  locked_ = false;
  admitted_ = true;
  return {.bytes = bytes_response(*proof)};
}

}  // namespace latenz::probe
