// Bells as Linux has them, without timeout, for sides that sleep: one that is a word in shared
// memory (futex), and one that each side has of its own (eventfd).
#pragma once

#include <cstddef>
#include <cstdint>

#include "access.hpp"
#include "latenz/icc.hpp"
#include "mutants.hpp"

namespace latenz::explorer {

// Where the words of side `of` are, for payloads of two fields; the byte table is in
// docs/icc-abi.md.
constexpr std::size_t side_at(std::size_t of) {
  return icc::detail::sides_offset(2) + (of * sizeof(icc::detail::Side));
}
constexpr std::size_t open_at(std::size_t of) { return side_at(of) + 4; }
constexpr std::size_t beats_at(std::size_t of) { return side_at(of) + 64; }
constexpr std::size_t asleep_at(std::size_t of) { return side_at(of) + 68; }
constexpr std::size_t rings_at(std::size_t of) { return side_at(of) + 72; }

// The word of a shared bell: a futex as its manual page tells: comparing and going to sleep are one
// step as seen by those who wake, and both ends pass the kernel's lock. Thread n is side n. It
// reads `rings` as its caller does, so that a mutant may change what is compared.
class ExploredBell {
 public:
  static void wait(std::uint32_t& word, std::uint32_t value, std::int64_t /*longest_ns*/) {
    const std::uint16_t rings = Arena::number(&word);
    const std::uint16_t bed = bed_of(thread(), side_of(rings));
    access({Kind::choice, false, rings, 1});  // others may do anything between last look and this
    note(bed, 1);
    perform({Kind::full_fence});
    if (access({Kind::load, false, rings}) != value) {
      note(bed, 0);
      return;
    }
    perform({Kind::await, false, bed});
  }

  static void wake(std::uint32_t& word) {
    const std::uint16_t rings = Arena::number(&word);
    if (side_of(rings) != thread()) fail("rings with another side's bell");
    perform({Kind::full_fence});
    if (access({Kind::choice, false, rings, 1}) != 0) return;  // a mutant that does not wake
    for (int sleeper = 0; sleeper < most_sides; ++sleeper)
      if ((sleeper == 0) != (thread() == 0)) note(bed_of(sleeper, thread()), 0);
  }

 private:
  static constexpr int most_sides = 3;

  static int side_of(std::uint16_t rings) {
    const std::size_t at = std::size_t{rings} * 4;
    for (int side = 0; side < most_sides; ++side)
      if (at == rings_at(static_cast<std::size_t>(side))) return side;
    fail("sleeps on a word that is not a bell");
  }

  // The variable that is 1 while side `sleeper` sleeps on the word of side `waker`: one is side 0.
  static std::uint16_t bed_of(int sleeper, int waker) {
    if ((sleeper == 0) == (waker == 0)) fail("waits for a side that does not wake it");
    return static_cast<std::uint16_t>(sleeper == 0 ? waker : most_sides - 1 + sleeper);
  }
};

// An eventfd as its manual page tells: writing makes it readable, reading makes it unreadable, and
// who polls goes on while it is readable. It is given no say in the order of memory, though the
// kernel's lock has one. Variable n is 1 while that of side n is not readable; thread n is side n.
class ExploredOwnBell {
 public:
  ExploredOwnBell() = default;
  template <class Bells>
  ExploredOwnBell(const Bells& /*all*/, std::uint32_t own) : own_(static_cast<int>(own)) {
    if (thread() >= 0 && own_ != thread()) fail("another side's bell");
  }

  [[nodiscard]] int fd() const { return own_; }

  void silence() const {
    if (own_ >= 0 && step(asleep_at(static_cast<std::size_t>(own_))) == 0) set(own_, 1);
  }
  void ring(std::uint32_t side) const {
    if (own_ >= 0 && step(rings_at(static_cast<std::size_t>(own_))) == 0)
      set(static_cast<int>(side), 0);
  }
  void wait(const std::uint32_t& /*word*/, std::uint32_t /*value*/,
            std::int64_t /*longest_ns*/) const {
    poll(own_);
  }
  static void poll(int fd) {
    if (step(beats_at(static_cast<std::size_t>(fd))) != 0) set(fd, 1);
    perform({Kind::await, false, static_cast<std::uint16_t>(fd)});
  }

 private:
  static void set(int side, std::uint32_t value) { note(static_cast<std::uint16_t>(side), value); }
  // The others may do anything before; not 0: a mutant that does not do it, or does it here.
  static std::uint32_t step(std::size_t at) {
    return access({Kind::choice, false, static_cast<std::uint16_t>(at / 4), 1});
  }

  int own_ = -1;
};

/// What an endpoint is given: how many there are.
struct OwnBells {
  std::uint32_t sides = 0;
};
template <class Channel>
struct ExploredBells : OwnBells {
  static constexpr std::uint32_t sides = 1 + Channel::shape.readers;
};
/// The same for endpoints that keep a pointer to them.
template <class Channel>
inline constexpr OwnBells bells_of{1 + Channel::shape.readers};

}  // namespace latenz::explorer
