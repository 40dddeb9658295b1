// SPDX-License-Identifier: Apache-2.0
// Integers wider than 64 bits, for exact totals and sums of squares of any number of latencies.
// Freestanding; works where the compiler has no 128-bit type (Cortex-R5).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace latenz {

/// Two's complement integer of `Limbs` 64-bit limbs, least significant first; wraps on overflow.
/// Whether it is read as signed is up to its user: `negative()` looks at the top bit.
template <std::size_t Limbs>
struct WideInteger {
  std::uint64_t limb[Limbs] = {};

  constexpr WideInteger() = default;

  [[nodiscard]] static constexpr WideInteger from_signed(std::int64_t value) {
    WideInteger wide;
    for (std::size_t i = 1; i < Limbs; ++i) {
      wide.limb[i] = value < 0 ? ~std::uint64_t{0} : 0;
    }
    wide.limb[0] = static_cast<std::uint64_t>(value);
    return wide;
  }

  [[nodiscard]] static constexpr WideInteger from_unsigned(std::uint64_t value) {
    WideInteger wide;
    wide.limb[0] = value;
    return wide;
  }

  constexpr WideInteger& operator+=(const WideInteger& other) {
    for (std::size_t i = 0; i < Limbs; ++i) {
      add_limb(i, other.limb[i]);
    }
    return *this;
  }

  constexpr WideInteger& operator-=(const WideInteger& other) { return *this += other.negated(); }

  [[nodiscard]] constexpr WideInteger negated() const {
    WideInteger result;
    for (std::size_t i = 0; i < Limbs; ++i) {
      result.limb[i] = ~limb[i];
    }
    return result += from_unsigned(1);
  }

  [[nodiscard]] constexpr bool negative() const { return (limb[Limbs - 1] >> 63U) != 0; }

  [[nodiscard]] constexpr WideInteger magnitude() const { return negative() ? negated() : *this; }

  /// Extends (or cuts) an unsigned value to another number of limbs.
  template <std::size_t Other>
  [[nodiscard]] constexpr WideInteger<Other> resized() const {
    WideInteger<Other> result;
    for (std::size_t i = 0; i < std::min(Limbs, Other); ++i) {
      result.limb[i] = limb[i];
    }
    return result;
  }

  /// Adds `factor * other`, shifted up by `shift` limbs; all unsigned.
  template <std::size_t Other>
  constexpr void add_product(const WideInteger<Other>& other, std::uint64_t factor,
                             std::size_t shift = 0) {
    for (std::size_t i = 0; i < Other && i + shift < Limbs; ++i) {
      add_at(i + shift, multiply(other.limb[i], factor));
    }
  }

  /// Nearest double to the unsigned value.
  [[nodiscard]] constexpr double to_double() const {
    std::size_t top = Limbs - 1;
    while (top > 0 && limb[top] == 0) {
      --top;
    }
    if (top == 0) {
      return static_cast<double>(limb[0]);
    }
    const auto shift = static_cast<unsigned>(std::countl_zero(limb[top]));
    std::uint64_t leading = limb[top] << shift;
    std::uint64_t rest = limb[top - 1];
    if (shift != 0) {
      leading |= rest >> (64 - shift);
      rest <<= shift;
    }
    for (std::size_t i = 0; i + 1 < top; ++i) {
      rest |= limb[i];
    }
    if (rest != 0) {
      leading |= 1U;  // a sticky bit below the 53 that count: rounds as the whole would
    }
    const std::uint64_t exponent = (64 * top) - shift;
    return static_cast<double>(leading) * std::bit_cast<double>((1023 + exponent) << 52U);
  }

  constexpr bool operator==(const WideInteger&) const = default;

  /// The whole product of two 64-bit numbers.
  [[nodiscard]] static constexpr WideInteger<2> multiply(std::uint64_t a, std::uint64_t b) {
    WideInteger<2> product;
#ifdef __SIZEOF_INT128__
    __extension__ using Wide = unsigned __int128;
    const Wide whole = static_cast<Wide>(a) * b;
    product.limb[0] = static_cast<std::uint64_t>(whole);
    product.limb[1] = static_cast<std::uint64_t>(whole >> 64U);
#else
    product = multiply_by_halves(a, b);
#endif
    return product;
  }

  /// The same where the compiler has no 128-bit type.
  [[nodiscard]] static constexpr WideInteger<2> multiply_by_halves(std::uint64_t a,
                                                                   std::uint64_t b) {
    constexpr std::uint64_t low_half = 0xFFFF'FFFFU;
    const std::uint64_t low = (a & low_half) * (b & low_half);
    const std::uint64_t left = (a >> 32U) * (b & low_half);
    const std::uint64_t right = (a & low_half) * (b >> 32U);
    const std::uint64_t middle = (low >> 32U) + (left & low_half) + (right & low_half);
    WideInteger<2> product;
    product.limb[0] = (low & low_half) | (middle << 32U);
    product.limb[1] = ((a >> 32U) * (b >> 32U)) + (left >> 32U) + (right >> 32U) + (middle >> 32U);
    return product;
  }

 private:
  constexpr void add_limb(std::size_t position, std::uint64_t addend) {
    for (std::size_t i = position; i < Limbs && addend != 0; ++i) {
      limb[i] += addend;
      addend = limb[i] < addend ? 1U : 0U;  // the carry: seldom goes further
    }
  }

  constexpr void add_at(std::size_t position, const WideInteger<2>& addend) {
    add_limb(position, addend.limb[0]);
    add_limb(position + 1, addend.limb[1]);
  }
};

}  // namespace latenz
