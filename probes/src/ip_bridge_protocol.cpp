// SPDX-License-Identifier: Apache-2.0
#include "ip_bridge_protocol.hpp"

#include <limits>

#include "failure.hpp"

namespace latenz::probe {
namespace {

constexpr std::size_t header_bytes = 8;
constexpr std::size_t word_bytes = 4;

std::uint32_t number_at(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  std::uint32_t number = 0;
  for (std::size_t i = size; i-- > 0;) {
    number = number << 8U | std::to_integer<std::uint32_t>(bytes[at + i]);
  }
  return number;
}

void append(std::vector<std::byte>& bytes, std::uint32_t number, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    bytes.push_back(static_cast<std::byte>(number >> (8 * i)));
  }
}

std::vector<std::byte> header(BridgeStatus status, std::uint16_t count, std::uint32_t failed_at) {
  std::vector<std::byte> bytes;
  append(bytes, static_cast<std::uint8_t>(status), 1);
  append(bytes, 0, 1);
  append(bytes, count, 2);
  append(bytes, failed_at, word_bytes);
  return bytes;
}

}  // namespace

void BridgeRequests::add(std::span<const std::byte> bytes) {
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
}

std::optional<BridgeRequest> BridgeRequests::next() {
  if (pending_.size() < header_bytes) return std::nullopt;
  BridgeRequest request{.operation = std::to_integer<std::uint8_t>(pending_[0]),
                        .window = std::to_integer<std::uint8_t>(pending_[1]),
                        .count = static_cast<std::uint16_t>(number_at(pending_, 2, 2)),
                        .argument = number_at(pending_, 4, word_bytes),
                        .words = {}};
  const bool writes = request.operation == static_cast<std::uint8_t>(BridgeOperation::write) ||
                      request.operation == static_cast<std::uint8_t>(BridgeOperation::prove);
  const std::size_t words = writes ? request.count : 0;
  const std::size_t size = header_bytes + (words * word_bytes);
  if (pending_.size() < size) return std::nullopt;
  request.words.reserve(words);
  for (std::size_t at = header_bytes; at < size; at += word_bytes) {
    request.words.push_back(number_at(pending_, at, word_bytes));
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(size));
  return request;
}

std::vector<std::byte> BridgeResponse::bytes() const {
  std::vector<std::byte> bytes =
      header(status, static_cast<std::uint16_t>(words.size()), failed_at);
  for (const std::uint32_t word : words) append(bytes, word, word_bytes);
  return bytes;
}

std::vector<std::byte> bytes_response(std::span<const std::byte> bytes) {
  std::vector<std::byte> response = header(
      BridgeStatus::okay, static_cast<std::uint16_t>(bytes.size() / word_bytes), bridge_version);
  response.insert(response.end(), bytes.begin(), bytes.end());
  return response;
}

std::vector<std::byte> words_as_bytes(std::span<const std::uint32_t> words) {
  std::vector<std::byte> bytes;
  for (const std::uint32_t word : words) append(bytes, word, word_bytes);
  return bytes;
}

std::vector<std::byte> describe_response(std::string_view json) {
  if (json.size() > std::numeric_limits<std::uint16_t>::max()) {
    throw Failure("the description of this board is longer than 65535 bytes; name fewer devices");
  }
  std::vector<std::byte> bytes =
      header(BridgeStatus::okay, static_cast<std::uint16_t>(json.size()), bridge_version);
  for (const char character : json) bytes.push_back(static_cast<std::byte>(character));
  while (bytes.size() % word_bytes != 0) bytes.push_back(std::byte{' '});
  return bytes;
}

}  // namespace latenz::probe
