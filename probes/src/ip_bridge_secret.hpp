// SPDX-License-Identifier: Apache-2.0
// How a client and a board show each other that they know a secret, without telling it
// (docs/ip.md).
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sha256.hpp"

namespace latenz::probe {

using BridgeNonce = std::array<std::byte, 32>;

/// The content of a file that nobody but its owner can read, without the line's end. Throws
/// `Failure` if there is none, others may read it, or it is shorter than 32 characters.
[[nodiscard]] std::vector<std::byte> read_bridge_secret(const std::filesystem::path& path);

/// The board's side of one connection.
class BridgeHandshake {
 public:
  /// @param secret outlives this
  explicit BridgeHandshake(std::span<const std::byte> secret) : secret_(secret) {}

  /// A number that is used for this connection only; nothing if it was asked for before.
  [[nodiscard]] std::optional<BridgeNonce> challenge();

  /// What the board answers to the client's own number and its proof, 32 bytes each; nothing if
  /// that shows no knowledge of the secret.
  [[nodiscard]] std::optional<Digest> answer(std::span<const std::byte> numbers);

  [[nodiscard]] bool is_done() const { return is_done_; }

 private:
  [[nodiscard]] Digest proof(std::string_view who, std::span<const std::byte> client) const;

  std::span<const std::byte> secret_;
  std::optional<BridgeNonce> nonce_;
  bool is_done_ = false;
};

}  // namespace latenz::probe
