// SPDX-License-Identifier: Apache-2.0
// What all endpoints do: come, go, wait for the other side and notice what happens to it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "latenz/icc/channel.hpp"
#include "latenz/icc/deadline.hpp"
#include "latenz/icc/platform.hpp"
#include "latenz/icc/problem.hpp"
#include "latenz/icc/result.hpp"

namespace latenz::icc::detail {

/// The other side as one endpoint knows it.
template <class P>
class Peer {
 public:
  Peer() = default;
  explicit Peer(Side& side) noexcept : side_{&side}, epoch_{epoch()} {}

  /// Incarnation in shared memory; 0: never there.
  [[nodiscard]] std::uint32_t epoch() const noexcept {
    return Access<P>::load_acquire(side_->presence.epoch);
  }
  [[nodiscard]] std::uint32_t known_epoch() const noexcept { return epoch_; }
  [[nodiscard]] bool open() const noexcept {
    return Access<P>::load_relaxed(side_->presence.open) != 0;
  }
  [[nodiscard]] std::uint32_t beats() const noexcept {
    return Access<P>::load_relaxed(side_->pulse.beats);
  }

  /// Whether the peer is another incarnation than last time; its first coming is no restart.
  bool restarted() noexcept { return turned_into(epoch()); }

  /// The same for an incarnation of which a message tells.
  bool turned_into(std::uint32_t epoch) noexcept {
    const std::uint32_t before = epoch_;
    epoch_ = epoch;
    return before != epoch && before != 0;
  }

 private:
  Side* side_ = nullptr;
  std::uint32_t epoch_ = 0;
};

/// An endpoint's own place in a channel.
template <class P>
class Endpoint {
 public:
  /// Tells the other side that this one is alive; wait-free. Waiting calls do so by themselves.
  void beat() noexcept {
    if (side_ == nullptr) {
      return;
    }
    ++beats_;
    Access<P>::store_relaxed(side_->pulse.beats, beats_);
  }

  /// Leaves: the other side's calls answer `peer_gone` from now on. Wait-free.
  void close() noexcept {
    if (side_ != nullptr) {
      Access<P>::store_release(side_->presence.open, 0);
    }
  }

  /// Which incarnation of this side this is, from 1.
  [[nodiscard]] std::uint32_t epoch() const noexcept { return epoch_; }

  /// Stale messages that this side has thrown away, over all its incarnations.
  [[nodiscard]] std::uint32_t dropped() const noexcept { return dropped_; }

 protected:
  /// Nothing: an `Opened` without endpoint holds one.
  Endpoint() = default;

  Endpoint(void* memory, const Shape& shape, std::size_t own) noexcept
      : memory_{memory},
        side_{&Header<P>{memory}.side(fields(shape), own)},
        generation_{Access<P>::load_relaxed(Header<P>{memory}.identity().generation)},
        epoch_{following(Access<P>::load_relaxed(side_->presence.epoch))},
        beats_{Access<P>::load_relaxed(side_->pulse.beats)},
        dropped_{Access<P>::load_relaxed(side_->presence.dropped)} {}

  /// Shows this incarnation to the other side; the last step of attaching.
  void enter() noexcept {
    Access<P>::store_relaxed(side_->presence.open, 1);
    Access<P>::store_release(side_->presence.epoch, epoch_);
    P::Wait::notify();
  }

  [[nodiscard]] bool is_restart() const noexcept { return epoch_ != 1; }

  /// Whether the header is still the one that was attached to.
  [[nodiscard]] bool formatted_anew() const noexcept {
    Identity& identity = Header<P>{memory_}.identity();
    return Access<P>::load_relaxed(identity.generation) != generation_;
  }

  void count_dropped(std::uint32_t messages = 1) noexcept {
    dropped_ += messages;
    Access<P>::store_relaxed(side_->presence.dropped, dropped_);
  }

  /// What a `try_` call answers when its turn has not come.
  [[nodiscard]] Result not_yet(Result usual) const noexcept {
    return formatted_anew() ? Result::layout_changed : usual;
  }

  /// Looks until `ready()`, the deadline, or there is no such peer to wait for any more.
  template <class Ready, Deadline D>
  Result wait_until(Peer<P>& peer, Ready ready, D& deadline) noexcept {
    std::uint32_t heard = 0;
    std::uint32_t silent_beats = 0;
    for (std::uint32_t check = 1;; ++check) {
      for (std::uint32_t look = 0; look < P::Wait::looks_per_check; ++look) {
        if (ready()) {
          return Result::ok;
        }
        P::Wait::pause();
      }
      const bool late = deadline.expired();
      if (late || check % P::Wait::checks_per_beat == 0) {
        const Result result = look_after(peer);
        if (late || result != Result::ok) {
          return result == Result::ok ? Result::timeout : result;
        }
        if (std::same_as<D, Never> && is_silent(peer, heard, silent_beats)) {
          return Result::peer_gone;
        }
      }
    }
  }

 private:
  static std::size_t fields(const Shape& shape) noexcept {
    return shape.field_count[0] + shape.field_count[1];
  }

  /// Messages carry the low byte of their sender's epoch; 0 there means never.
  static constexpr std::uint32_t following(std::uint32_t epoch) noexcept {
    ++epoch;
    return (epoch & 0xFFU) == 0 ? epoch + 1 : epoch;
  }

  /// Gives a sign of life, and looks what has become of the peer. Rarely, since it moves lines that
  /// nobody needs for the message itself.
  Result look_after(const Peer<P>& peer) noexcept {
    beat();
    if (formatted_anew()) {
      return Result::layout_changed;
    }
    if (peer.known_epoch() == 0) {
      return Result::ok;
    }
    if (peer.epoch() != peer.known_epoch()) {
      return Result::peer_restarted;
    }
    return peer.open() ? Result::ok : Result::peer_gone;
  }

  /// Whether the peer has given no sign of life for long.
  static bool is_silent(const Peer<P>& peer, std::uint32_t& heard,
                        std::uint32_t& silent_beats) noexcept {
    const std::uint32_t beats = peer.beats();
    silent_beats = beats == heard ? silent_beats + 1 : 0;
    heard = beats;
    return silent_beats >= P::Wait::silent_beats;
  }

  void* memory_ = nullptr;
  Side* side_ = nullptr;
  std::uint32_t generation_ = 0;
  std::uint32_t epoch_ = 0;
  std::uint32_t beats_ = 0;
  std::uint32_t dropped_ = 0;
};

/// Whether a channel of this shape can be in this memory.
inline Problem check_memory(const void* memory, std::size_t size, const Shape& shape) noexcept {
  const bool aligned = reinterpret_cast<std::uintptr_t>(memory) % line_bytes == 0;
  if (memory != nullptr && aligned && size >= shape.channel_bytes) {
    return {};
  }
  return {.flaw = Flaw::no_memory,
          .here = shape.channel_bytes,
          .there = static_cast<std::uint32_t>(size)};
}

/// The ways to open an endpoint `Self` of `Channel`. `Index` is its number among sides that are
/// many: `create(memory, size, name, index)`.
template <class Self, class Channel, class P, class... Index>
class Openable : public Endpoint<P> {
 public:
  /// Formats the memory, unless the very same channel is there already: then its creator has
  /// restarted, and goes on with what is there. Wait-free. Exactly one side of a channel creates;
  /// `name` (at most 31 letters count) is for people who look at the memory.
  static Opened<Self> create(void* memory, std::size_t size, const char* name,
                             Index... index) noexcept {
    if (const Problem problem = check(memory, size, index...)) {
      return Opened<Self>{problem};
    }
    if (compare<P>(memory, size, Channel::shape)) {
      format<P>(memory, Channel::shape, name);
    }
    return Opened<Self>{Self{memory, index...}};
  }

  /// Finds the channel that another side has created, or says what differs. Wait-free.
  static Opened<Self> attach(void* memory, std::size_t size, Index... index) noexcept {
    if (const Problem problem = check(memory, size, index...)) {
      return Opened<Self>{problem};
    }
    if (const Problem problem = compare<P>(memory, size, Channel::shape)) {
      return Opened<Self>{problem};
    }
    return Opened<Self>{Self{memory, index...}};
  }

  /// The same, waiting for the channel to be created; any other problem ends it at once.
  static Opened<Self> attach_until(void* memory, std::size_t size, Deadline auto deadline,
                                   Index... index) noexcept {
    for (;;) {
      const Opened<Self> opened = attach(memory, size, index...);
      if (opened || opened.problem().flaw != Flaw::not_ready || deadline.expired()) {
        return opened;
      }
      P::Wait::pause();
    }
  }

 protected:
  // Protected, not private: an exchange has a class in between.
  // NOLINTBEGIN(bugprone-crtp-constructor-accessibility)
  Openable() = default;
  Openable(void* memory, std::size_t side) noexcept : Endpoint<P>{memory, Channel::shape, side} {}
  // NOLINTEND(bugprone-crtp-constructor-accessibility)

 private:
  static Problem check(void* memory, std::size_t size, Index... index) noexcept {
    Problem problem = check_memory(memory, size, Channel::shape);
    if constexpr (sizeof...(Index) != 0) {
      const std::uint32_t readers = Channel::shape.readers;
      if (const std::uint32_t reader{index...}; !problem && reader >= readers) {
        problem = {.flaw = Flaw::reader, .here = reader, .there = readers};
      }
    }
    return problem;
  }
};

}  // namespace latenz::icc::detail
