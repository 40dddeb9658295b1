// SPDX-License-Identifier: Apache-2.0
// Lists and text of varying length in a payload, which has none of its own: room for N, and how
// many of them count. In memory a count of 32 bits and N items (docs/icc-abi.md), for C and C++
// alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace latenz::icc {

namespace detail {

/// What FixedVector and FixedString share, as functions: a wire type has no base class.
struct Fixed {
  /// Read once: where a payload is used in place, an erring peer may change it meanwhile. A count
  /// that does not fit was not written by this library: then nothing is there.
  static constexpr std::uint32_t size(const std::uint32_t& count, std::uint32_t capacity) noexcept {
    const std::uint32_t read = once(count);
    return read <= capacity ? read : 0;
  }
  static constexpr std::uint32_t once(const std::uint32_t& count) noexcept {
    if (std::is_constant_evaluated()) {
      return count;
    }
    return *static_cast<const volatile std::uint32_t*>(&count);
  }
};

}  // namespace detail

/// Up to N elements of a wire type. An aggregate: `count` and `items` are public, as they are in C,
/// but only what `size` tells may be trusted. Memory that was lent holds an older message: begin
/// with `clear` or `assign`.
template <class T, std::size_t N>
struct FixedVector {
  static_assert(N >= 1 && N <= 65535, "latenz::icc: a FixedVector holds 1 to 65535 elements");

  std::uint32_t count = 0;  ///< of elements, as the peer wrote it
  T items[N] = {};

  static constexpr std::uint32_t capacity = N;

  /// Elements that are there; 0 if the count is damaged.
  [[nodiscard]] constexpr std::uint32_t size() const noexcept {
    return detail::Fixed::size(count, capacity);
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return size() == 0; }
  /// Whether the count says more than there is room for: memory or peer is broken.
  [[nodiscard]] constexpr bool is_damaged() const noexcept {
    return detail::Fixed::once(count) > capacity;
  }

  /// `index` is below `size`.
  [[nodiscard]] constexpr T& operator[](std::size_t index) noexcept { return items[index]; }
  [[nodiscard]] constexpr const T& operator[](std::size_t index) const noexcept {
    return items[index];
  }
  [[nodiscard]] constexpr T* begin() noexcept { return items; }
  [[nodiscard]] constexpr T* end() noexcept { return items + size(); }
  [[nodiscard]] constexpr const T* begin() const noexcept { return items; }
  [[nodiscard]] constexpr const T* end() const noexcept { return items + size(); }

  constexpr void clear() noexcept { count = 0; }

  /// False if it is full: then nothing has changed.
  [[nodiscard]] constexpr bool push_back(const T& element) noexcept {
    const std::uint32_t at = size();
    if (at == capacity) {
      return false;
    }
    items[at] = element;
    count = at + 1;
    return true;
  }

  /// Takes these in place of what was there; false if they are too many: then nothing has changed.
  [[nodiscard]] constexpr bool assign(std::span<const T> elements) noexcept {
    if (elements.size() > capacity) {
      return false;
    }
    std::copy(elements.begin(), elements.end(), items);
    count = static_cast<std::uint32_t>(elements.size());
    return true;
  }
};

/// Text of up to N bytes, without a zero at its end. In memory it is a FixedVector<char, N>.
template <std::size_t N>
struct FixedString {
  static_assert(N >= 1 && N <= 65535, "latenz::icc: a FixedString holds 1 to 65535 bytes");

  std::uint32_t count = 0;  ///< of bytes, as the peer wrote it
  char items[N] = {};

  static constexpr std::uint32_t capacity = N;

  /// Bytes that are there; 0 if the count is damaged.
  [[nodiscard]] constexpr std::uint32_t size() const noexcept {
    return detail::Fixed::size(count, capacity);
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return size() == 0; }
  /// Whether the count says more than there is room for: memory or peer is broken.
  [[nodiscard]] constexpr bool is_damaged() const noexcept {
    return detail::Fixed::once(count) > capacity;
  }
  /// The text where it stands.
  [[nodiscard]] constexpr std::string_view view() const noexcept { return {items, size()}; }

  constexpr void clear() noexcept { count = 0; }

  /// Takes this text; false if it is too long: then nothing has changed.
  [[nodiscard]] constexpr bool assign(std::string_view text) noexcept {
    if (text.size() > capacity) {
      return false;
    }
    std::copy(text.begin(), text.end(), items);
    count = static_cast<std::uint32_t>(text.size());
    return true;
  }
};

}  // namespace latenz::icc
