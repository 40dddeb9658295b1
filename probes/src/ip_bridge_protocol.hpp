// SPDX-License-Identifier: Apache-2.0
// Registers over a byte stream, as the simulated board serves them (docs/ip.md): little-endian
// frames, a response for each request, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latenz::probe {

/// Told where an answer has no other number to tell: of a description, and of a secret's first
/// part.
inline constexpr std::uint32_t bridge_version = 1;

enum class BridgeOperation : std::uint8_t {
  read = 1,
  write = 2,
  wait = 3,
  describe = 4,
  challenge = 5,
  prove = 6
};

enum class BridgeStatus : std::uint8_t {
  okay = 0,
  slave_error = 2,
  decode_error = 3,
  full = 251,          ///< as many clients as can be served are there
  busy = 252,          ///< another client changes something
  locked = 253,        ///< a secret is to be known first
  wrong_secret = 254,  ///< it is not known
  refused = 255
};

struct BridgeRequest {
  std::uint8_t operation;  ///< a BridgeOperation, or anything else: to be refused
  std::uint8_t window;
  std::uint16_t count;     ///< words
  std::uint32_t argument;  ///< read, write: byte address of the first word; wait: clock cycles
  std::vector<std::uint32_t> words;  ///< write, prove: `count` words; else none

  /// Otherwise nobody can tell where the next request begins.
  [[nodiscard]] bool is_known() const {
    return operation >= static_cast<std::uint8_t>(BridgeOperation::read) &&
           operation <= static_cast<std::uint8_t>(BridgeOperation::prove);
  }
};

/// Cuts a byte stream into requests.
class BridgeRequests {
 public:
  /// Takes what came next.
  void add(std::span<const std::byte> bytes);

  /// The next request, once all of it has come. Every stream of bytes is one of requests.
  [[nodiscard]] std::optional<BridgeRequest> next();

  /// Has a request begun to come?
  [[nodiscard]] bool has_part() const { return !pending_.empty(); }

 private:
  std::vector<std::byte> pending_;
};

/// What is answered to one request.
struct BridgeResponse {
  BridgeStatus status = BridgeStatus::okay;
  std::uint32_t failed_at = 0;       ///< index of the first word that failed
  std::vector<std::uint32_t> words;  ///< those read before it

  [[nodiscard]] std::vector<std::byte> bytes() const;
};

/// Bytes, whole words of them.
[[nodiscard]] std::vector<std::byte> bytes_response(std::span<const std::byte> bytes);
[[nodiscard]] std::vector<std::byte> words_as_bytes(std::span<const std::uint32_t> words);

/// The answer to `describe`: `count` is the number of bytes of the text, which is padded to words.
[[nodiscard]] std::vector<std::byte> describe_response(std::string_view json);

}  // namespace latenz::probe
