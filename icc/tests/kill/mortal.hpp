// SPDX-License-Identifier: Apache-2.0
// Processes that end themselves, as SIGKILL does, before a chosen access to shared memory; and the
// messages by which survivors see what came of it.
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "latenz/icc.hpp"

namespace latenz::icc::kill {

/// How many accesses this process has left; 0: any number.
class Mortality {
 public:
  static void ends_before(std::uint32_t access) noexcept { left = access; }

  static void step() noexcept {
    if (left != 0 && --left == 0) {
      ::kill(getpid(), SIGKILL);
      pause();
    }
  }

 private:
  inline static std::uint32_t left = 0;
};

struct MortalOrder {
  static std::uint32_t load_relaxed(std::uint32_t& word) noexcept {
    Mortality::step();
    return StandardOrder::load_relaxed(word);
  }
  static std::uint32_t load_acquire(std::uint32_t& word) noexcept {
    Mortality::step();
    return StandardOrder::load_acquire(word);
  }
  static void store_relaxed(std::uint32_t& word, std::uint32_t value) noexcept {
    Mortality::step();
    StandardOrder::store_relaxed(word, value);
  }
  static void store_release(std::uint32_t& word, std::uint32_t value) noexcept {
    Mortality::step();
    StandardOrder::store_release(word, value);
  }
  static void acquire_fence() noexcept { StandardOrder::acquire_fence(); }
  static void release_fence() noexcept { StandardOrder::release_fence(); }
  static void full_fence() noexcept { StandardOrder::full_fence(); }
};

/// Copies word by word, so that a process can end in the middle of a payload.
struct MortalMemory : Coherent {
  static void write(void* shared, const void* own, std::size_t bytes) noexcept {
    copy(shared, own, bytes);
  }
  static void read(void* own, const void* shared, std::size_t bytes) noexcept {
    copy(own, shared, bytes);
  }

 private:
  static void copy(void* to, const void* from, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint32_t)) {
      Mortality::step();
      const std::size_t rest = bytes - at;
      std::memcpy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at,
                  rest < sizeof(std::uint32_t) ? rest : sizeof(std::uint32_t));
    }
  }
};

/// Gives up a silent peer soon.
template <class Wait, std::uint32_t checks>
struct Impatient : Wait {
  static constexpr std::uint32_t looks_per_check = 1;
  static constexpr std::uint32_t checks_per_beat = 1;
  static constexpr std::uint32_t silent_beats = checks;
};

/// What is sent. Numbers come from a counter outside the channel that no death sets back.
struct Message {
  std::uint64_t number;
  std::uint32_t epoch;  ///< of the sender
  std::uint32_t checksum;
  std::uint32_t fill[14];

  static Message make(std::uint64_t number, std::uint32_t epoch) noexcept {
    Message message{.number = number, .epoch = epoch, .checksum = 0, .fill = {}};
    std::uint32_t value = static_cast<std::uint32_t>(number * 2654435761U) ^ epoch;
    for (std::uint32_t& word : message.fill) {
      value = value * 1664525U + 1013904223U;
      word = value;
    }
    message.checksum = message.sum();
    return message;
  }

  [[nodiscard]] bool is_whole() const noexcept { return checksum == sum(); }

 private:
  [[nodiscard]] std::uint32_t sum() const noexcept {
    std::uint32_t hash = 2166136261U;
    const auto add = [&hash](std::uint32_t word) { hash = (hash ^ word) * 16777619U; };
    add(static_cast<std::uint32_t>(number));
    add(static_cast<std::uint32_t>(number >> 32U));
    add(epoch);
    for (const std::uint32_t word : fill) {
      add(word);
    }
    return hash;
  }
};

}  // namespace latenz::icc::kill
