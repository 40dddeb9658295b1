// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) and HMAC (RFC 2104), for boards that have no library of them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace latenz::probe {

using Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  static constexpr std::size_t block_bytes = 64;

  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      block_[size_++ % block_bytes] = byte;
      if (size_ % block_bytes == 0) compress();
    }
  }

  /// Of all that was added; nothing can be added after that.
  [[nodiscard]] Digest digest() {
    const std::uint64_t bits = size_ * 8;
    add_one(std::byte{0x80});
    while (size_ % block_bytes != block_bytes - sizeof bits) add_one(std::byte{0});
    for (unsigned shift = 64; shift > 0; shift -= 8) {
      add_one(static_cast<std::byte>(bits >> (shift - 8)));
    }
    Digest digest{};
    for (std::size_t i = 0; i < digest.size(); ++i) {
      digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - (8 * (i % 4))));
    }
    return digest;
  }

 private:
  /// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
  static constexpr std::array<std::uint32_t, 64> constants{
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
      0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
      0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
      0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
      0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
      0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
      0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
      0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
      0xc67178f2};

  void add_one(std::byte byte) { add(std::span(&byte, 1)); }

  void compress() {
    std::array<std::uint32_t, 64> words{};
    for (std::size_t i = 0; i < block_bytes; ++i) {
      words[i / 4] = words[i / 4] << 8U | std::to_integer<std::uint32_t>(block_[i]);
    }
    for (std::size_t i = 16; i < words.size(); ++i) {
      const std::uint32_t early = words[i - 15];
      const std::uint32_t late = words[i - 2];
      words[i] = words[i - 16] + words[i - 7] +
                 (std::rotr(early, 7) ^ std::rotr(early, 18) ^ early >> 3U) +
                 (std::rotr(late, 17) ^ std::rotr(late, 19) ^ late >> 10U);
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                  ((e & f) ^ (~e & g)) + constants[i] + words[i];
      const std::uint32_t second =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + first;
      d = c;
      c = b;
      b = a;
      a = first + second;
    }
    const std::array<std::uint32_t, 8> done{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < done.size(); ++i) state_[i] += done[i];
  }

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, block_bytes> block_{};
  std::uint64_t size_ = 0;
};

[[nodiscard]] inline Digest hmac_sha256(std::span<const std::byte> key,
                                        std::span<const std::byte> message) {
  std::array<std::byte, Sha256::block_bytes> padded{};
  if (key.size() > padded.size()) {
    Sha256 shortened;
    shortened.add(key);
    std::ranges::copy(shortened.digest(), padded.begin());
  } else {
    std::ranges::copy(key, padded.begin());
  }
  const auto flipped = [&padded](std::byte mask) {
    auto block = padded;
    for (std::byte& byte : block) byte ^= mask;
    return block;
  };
  Sha256 inner;
  inner.add(flipped(std::byte{0x36}));
  inner.add(message);
  Sha256 outer;
  outer.add(flipped(std::byte{0x5c}));
  outer.add(inner.digest());
  return outer.digest();
}

/// In a time that does not tell where they differ.
[[nodiscard]] inline bool same_digest(std::span<const std::byte> a, const Digest& b) {
  if (a.size() != b.size()) return false;
  std::byte difference{0};
  for (std::size_t i = 0; i < b.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

}  // namespace latenz::probe
