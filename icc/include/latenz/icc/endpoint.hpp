// SPDX-License-Identifier: Apache-2.0
// What all endpoints do: come, go, wait for the other side and notice what happens to it.
#pragma once

#include <algorithm>
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
  /// Not so: it has left, and what it wrote before is there.
  [[nodiscard]] bool open() const noexcept {
    return Access<P>::load_acquire(side_->presence.open) != 0;
  }
  /// What changes while it lives and waits.
  [[nodiscard]] std::uint32_t signs_of_life() const noexcept {
    const std::uint32_t beats = Access<P>::load_relaxed(side_->pulse.beats);
    if constexpr (Sleeping<typename P::Wait>) {
      return beats + Access<P>::load_relaxed(side_->pulse.rings);
    } else {
      return beats;
    }
  }
  /// The word on which those sleep who wait for this side.
  [[nodiscard]] std::uint32_t& rings() const noexcept { return side_->pulse.rings; }

  /// Whether the peer is another incarnation than last time; its first coming is not a restart.
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

  [[nodiscard]] Side* own_side() const noexcept { return side_; }
  [[nodiscard]] Side* first_side(const Shape& shape) const noexcept {
    return &Header<P>{memory_}.side(fields(shape), 0);
  }

  /// Shows this incarnation to the other side.
  void show() noexcept {
    if constexpr (Sleeping<typename P::Wait>) {  // an earlier one may have died asleep
      Access<P>::store_relaxed(side_->pulse.asleep, 0);
    }
    Access<P>::store_relaxed(side_->presence.open, 1);
    Access<P>::store_release(side_->presence.epoch, epoch_);
  }

  /// Wakes those of the sides [first, end) that sleep. After a store that they may be waiting for:
  /// of the fence here and the one of `tell_asleep`, one comes first. Either a sleeper sees that
  /// store at its last look, or it is seen here to be asleep.
  void ring(Side* sides, std::uint32_t first, std::uint32_t end) noexcept {
    P::Order::full_fence();
    bool counted = false;
    for (std::uint32_t side = first; side != end; ++side) {
      if (Access<P>::load_relaxed(sides[side].pulse.asleep) == 0) {
        continue;
      }
      std::uint32_t& rings = side_->pulse.rings;
      if (!counted) {
        Access<P>::store_relaxed(rings, Access<P>::load_relaxed(rings) + 1);
        counted = true;
      }
      if constexpr (OwnBells<typename P::Wait>) {
        bell_.ring(side);
      } else {
        P::Wait::Bell::wake(rings);  // all of them sleep on this word
        return;
      }
    }
  }

  [[nodiscard]] auto& bell() noexcept { return bell_; }
  [[nodiscard]] const auto& bell() const noexcept { return bell_; }

  /// Tells that this side wants to be woken. What is looked at from here on is the last look: what
  /// comes after it rings.
  void tell_asleep() noexcept {
    if constexpr (OwnBells<typename P::Wait>) {
      bell_.silence();  // before this side is seen asleep: no ring that is meant for this sleep
    }
    Access<P>::store_relaxed(side_->pulse.asleep, 1);
    P::Order::full_fence();
  }
  void tell_awake() noexcept { Access<P>::store_relaxed(side_->pulse.asleep, 0); }

  /// What has become of the peer.
  [[nodiscard]] Result look_at(const Peer<P>& peer) const noexcept {
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
        if constexpr (Sleeping<typename P::Wait>) {
          sleep(peer, ready, deadline);
        } else {
          P::Wait::pause();
        }
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

  /// Sleeps until the peer rings, the deadline, or for the longest sleep; not at all if the last
  /// look tells that there is nothing to wait for any more. Whoever rings after the peer's count
  /// was read makes the bell return at once; whoever stored before it could see this side asleep is
  /// seen by the last look (`ring`).
  template <class Ready, Deadline D>
  void sleep(const Peer<P>& peer, Ready& ready, D& deadline) noexcept {
    std::uint32_t rings = 0;
    if constexpr (!OwnBells<typename P::Wait>) {
      rings = Access<P>::load_relaxed(peer.rings());
    }
    tell_asleep();
    if (!ready() && look_at(peer) == Result::ok) {
      bell_.wait(peer.rings(), rings, longest_sleep_ns(deadline));
    }
    tell_awake();
  }

  template <Deadline D>
  static std::int64_t longest_sleep_ns(D& deadline) noexcept {
    constexpr std::int64_t longest_ns = P::Wait::longest_sleep_ns;
    if constexpr (requires { deadline.left_ns(); }) {
      return std::min<std::int64_t>(longest_ns, deadline.left_ns());
    } else {
      return longest_ns;
    }
  }

  /// Gives a sign of life, and looks what has become of the peer. Rarely, since it moves lines that
  /// nobody needs for the message itself.
  Result look_after(const Peer<P>& peer) noexcept {
    beat();
    return look_at(peer);
  }

  /// Whether the peer has given no sign of life for long.
  static bool is_silent(const Peer<P>& peer, std::uint32_t& heard,
                        std::uint32_t& silent_beats) noexcept {
    const std::uint32_t signs = peer.signs_of_life();
    silent_beats = signs == heard ? silent_beats + 1 : 0;
    heard = signs;
    return silent_beats >= P::Wait::silent_beats;
  }

  void* memory_ = nullptr;
  Side* side_ = nullptr;
  std::uint32_t generation_ = 0;
  std::uint32_t epoch_ = 0;
  std::uint32_t beats_ = 0;
  std::uint32_t dropped_ = 0;
  [[no_unique_address]] typename KeptBell<typename P::Wait>::Type bell_;
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

  /// Leaves: the other side's calls answer `peer_gone` from now on. Wait-free.
  void close() noexcept {
    if (this->own_side() != nullptr) {
      Access<P>::store_release(this->own_side()->presence.open, 0);
      notify();
    }
  }

  /// Gives this side the channel's bells (`EventFds<Channel>`), and rings for those who sleep
  /// already: first of all, since until then it rings for nobody. Wait-free.
  template <class Bells>
  void use_bells(const Bells& all) noexcept
    requires(OwnBells<typename P::Wait>)
  {
    static_assert(Bells::sides == 1 + Channel::shape.readers, "another channel's bells");
    const Side* const sides = this->first_side(Channel::shape);
    this->bell() = {all, static_cast<std::uint32_t>(this->own_side() - sides)};
    notify();
  }

  /// What a loop of poll(2) or epoll(7) waits for, behind `arm`; -1 before `use_bells`.
  [[nodiscard]] int fd() const noexcept
    requires(OwnBells<typename P::Wait>)
  {
    return this->bell().fd();
  }

  /// For a loop that waits by itself: arm, check, wait. From here on all that a waiting call waits
  /// for makes `fd()` readable, until the next `arm`. `ok`: now check by a `try_` call, and wait
  /// for `fd()` if it finds nothing. `peer_gone`, `peer_restarted`, `layout_changed`: check, but do
  /// not wait. Wait-free, with a system call.
  Result arm() noexcept
    requires(OwnBells<typename P::Wait>)
  {
    this->tell_asleep();
    if constexpr (requires(const Self& self) { self.peer(); }) {
      return this->look_at(static_cast<Self&>(*this).peer());
    } else {
      return this->not_yet(Result::ok);
    }
  }

  /// Awake: nobody rings any more, which saves the others a system call with each write. Wait-free.
  void disarm() noexcept
    requires(OwnBells<typename P::Wait>)
  {
    this->tell_awake();
  }

 protected:
  // Protected, not private: an exchange has a class in between.
  // NOLINTBEGIN(bugprone-crtp-constructor-accessibility)
  Openable() = default;
  Openable(void* memory, std::size_t side) noexcept : Endpoint<P>{memory, Channel::shape, side} {}
  // NOLINTEND(bugprone-crtp-constructor-accessibility)

  /// Shows this incarnation to the other side; the last step of attaching.
  void enter() noexcept {
    this->show();
    notify();
  }

  /// Follows each store that another side may be waiting for. Side 0 and the others wait for each
  /// other, those others not among themselves.
  void notify() noexcept {
    if constexpr (!Sleeping<typename P::Wait>) {
      P::Wait::notify();
    } else if constexpr (Channel::shape.readers != 0) {
      Side* const sides = this->first_side(Channel::shape);
      if (this->own_side() == sides) {
        this->ring(sides, 1, 1 + Channel::shape.readers);
      } else {
        this->ring(sides, 0, 1);
      }
    }
  }

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
