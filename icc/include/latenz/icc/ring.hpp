// SPDX-License-Identifier: Apache-2.0
// Ring: a stream of messages in N slots, for lossless readers and for any number of onlookers.
//
// - Up to L lossless readers, each with a line of its own, get every message in order; the writer
//   waits for them (`full`), and may leave a dead one behind.
// - Observers only read: nobody knows of them, their number is unlimited, and they may map the
// memory
//   read-only. They try a bounded number of times and say `busy` when the writer was faster, and
//   count what they lost.
// - With L = 0 the writer never waits.
//
// Each slot has a word behind its payload: 2 n - 1 while message n is being written, 2 n when it is
// complete. Payloads are copied in words by relaxed atomic accesses, since an observer may read
// while the writer writes; what was torn is thrown away by the second look at the word.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "latenz/icc/endpoint.hpp"
#include "latenz/icc/lines.hpp"

namespace latenz::icc {

template <class T, std::size_t N, std::size_t L = 0, class P = Platform<>>
class Ring {
  static_assert(N >= 2 && (N & (N - 1)) == 0 && N <= 1U << 20U,
                "a ring has a power of two of slots, since message numbers wrap");
  static_assert(L <= 32, "a ring has at most 32 lossless readers");

  using A = detail::Access<P>;
  static constexpr std::size_t word_bytes = sizeof(std::uint32_t);
  static constexpr std::size_t words = (sizeof(T) + word_bytes - 1) / word_bytes;
  static constexpr std::size_t slot_words = (words + 2) / 2 * 2;

  static constexpr std::size_t fields = detail::fields_of<T>.size();
  static constexpr std::size_t head_offset = detail::data_offset(fields, 1 + L);
  static constexpr std::size_t taken_offset = head_offset + line_bytes;
  static constexpr std::size_t slots_offset = taken_offset + L * line_bytes;

 public:
  /// Bytes of shared memory that the channel takes; they begin at a line.
  static constexpr std::size_t bytes =
      slots_offset + detail::whole_lines(N * slot_words * word_bytes);
  static_assert(bytes <= 0xFFFF'FFFF);

  static constexpr detail::Shape shape{
      .kind = ChannelKind::ring,
      .channel_bytes = static_cast<std::uint32_t>(bytes),
      .readers = L,
      .slots = N,
      .payload_bytes = {sizeof(T), 0},
      .fingerprint = {fingerprint<T>(), 0},
      .fields = {detail::fields_of<T>.data(), nullptr},
      .field_count = {fields, 0},
  };

  /// Who writes which lines.
  static constexpr auto lines() noexcept {
    return detail::lines_of<1 + L>(
        shape, LineRun{head_offset, line_bytes, LineOwner::side, 0, "head"},
        LineRun{taken_offset, L * line_bytes, LineOwner::each_reader, 0, "taken"},
        LineRun{slots_offset, static_cast<std::uint32_t>(bytes - slots_offset), LineOwner::side, 0,
                "slots"});
  }

 private:
  /// The slots, as words.
  struct Data {
    std::byte* base = nullptr;

    [[nodiscard]] std::uint32_t& word(std::size_t offset) const noexcept {
      return *reinterpret_cast<std::uint32_t*>(base + offset);
    }
    /// Number of the newest complete message.
    [[nodiscard]] std::uint32_t& head() const noexcept { return word(head_offset); }
    /// Number of the last message that a lossless reader has taken.
    [[nodiscard]] std::uint32_t& taken(std::size_t reader) const noexcept {
      return word(taken_offset + reader * line_bytes);
    }
    [[nodiscard]] std::uint32_t* slot(std::uint32_t number) const noexcept {
      return &word(slots_offset + number % N * slot_words * word_bytes);
    }

    void write(std::uint32_t number, const T& message) const noexcept {
      std::uint32_t* slot_of = slot(number);
      std::uint32_t& state = slot_of[words];
      A::store_relaxed(state, 2 * number - 1);
      P::Order::release_fence();
      std::array<std::uint32_t, words> own{};
      __builtin_memcpy(own.data(), &message, sizeof message);
      for (std::size_t i = 0; i < words; ++i) {
        P::Order::store_relaxed(slot_of[i], own[i]);
      }
      P::Memory::clean(slot_of, sizeof own);
      A::store_release(state, 2 * number);
      A::store_release(head(), number);
      P::Wait::notify();
    }

    /// Copies message `number`; false if it is not (or no longer) there whole.
    bool read(std::uint32_t number, T& message) const noexcept {
      std::uint32_t* slot_of = slot(number);
      std::uint32_t& state = slot_of[words];
      if (A::load_acquire(state) != 2 * number) {
        return false;
      }
      std::array<std::uint32_t, words> own;
      P::Memory::invalidate(slot_of, sizeof own);
      for (std::size_t i = 0; i < words; ++i) {
        own[i] = P::Order::load_relaxed(slot_of[i]);
      }
      P::Order::acquire_fence();
      if (A::load_relaxed(state) != 2 * number) {
        return false;
      }
      __builtin_memcpy(&message, own.data(), sizeof message);
      return true;
    }
  };

 public:
  /// The side that writes. For one thread.
  class Writer : public detail::Openable<Writer, Ring, P> {
    using Base = detail::Openable<Writer, Ring, P>;
    friend Base;

   public:
    Writer() = default;

    /// Writes if every lossless reader has a slot free: `ok`, `full`. Wait-free: L loads and a
    /// copy. With L = 0 always `ok`.
    Result try_write(const T& message) noexcept {
      if (late_reader() != L) {
        return this->not_yet(Result::full);
      }
      put(message);
      return Result::ok;
    }

    /// Writes as soon as every lossless reader has a slot free. Blocking. After any other answer
    /// than `ok` nothing was written and `late_reader` tells for whom it waited.
    Result write_until(const T& message, Deadline auto deadline) noexcept {
      for (std::size_t late = late_reader(); late != L; late = late_reader()) {
        detail::Peer<P> reader{side_of(late)};
        const Result result =
            this->wait_until(reader, [this, late] { return !is_late(late); }, deadline);
        if (result != Result::ok) {
          return result;
        }
      }
      put(message);
      return Result::ok;
    }

    /// The same without deadline.
    Result write(const T& message) noexcept { return write_until(message, Never{}); }

    /// Index of a lossless reader that has no slot free; L if there is none. Wait-free.
    [[nodiscard]] std::size_t late_reader() const noexcept {
      for (std::size_t reader = 0; reader < L; ++reader) {
        if (is_late(reader)) {
          return reader;
        }
      }
      return L;
    }

    /// Waits for this lossless reader no more, until it attaches anew. Wait-free.
    void leave_behind(std::size_t reader) noexcept {
      if (reader < L) {
        left_behind_[reader] = A::load_acquire(side_of(reader).presence.epoch);
      }
    }

    /// Number of the newest message, from 1 and wrapping.
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

   private:
    explicit Writer(void* memory) noexcept
        : Base{memory, 0},
          data_{static_cast<std::byte*>(memory)},
          number_{A::load_relaxed(data_.head())} {
      this->enter();
    }

    [[nodiscard]] detail::Side& side_of(std::size_t reader) const noexcept {
      return detail::Header<P>{data_.base}.side(fields, 1 + reader);
    }

    [[nodiscard]] bool is_served(std::size_t reader) const noexcept {
      detail::Presence& presence = side_of(reader).presence;
      return A::load_acquire(presence.open) != 0 &&
             A::load_acquire(presence.epoch) != left_behind_[reader];
    }

    /// A reader that is there and has not taken the message whose slot comes next.
    [[nodiscard]] bool is_late(std::size_t reader) const noexcept {
      if (!is_served(reader)) {
        P::Order::full_fence();  // one that attaches now sees the newest message, or is seen here
        if (!is_served(reader)) {
          return false;
        }
      }
      return number_ - A::load_acquire(data_.taken(reader)) >= N;
    }

    void put(const T& message) noexcept {
      ++number_;
      data_.write(number_, message);
    }

    Data data_;
    std::uint32_t number_ = 0;
    std::array<std::uint32_t, L == 0 ? 1 : L> left_behind_{};  ///< epochs; 0: none
  };

  /// A lossless reader, one of L. For one thread. A restarted reader goes on behind what is there.
  class Reader : public detail::Openable<Reader, Ring, P, std::uint32_t> {
    using Base = detail::Openable<Reader, Ring, P, std::uint32_t>;
    friend Base;

   public:
    Reader() = default;

    /// Reads the next message: `ok`, `empty`, `peer_restarted`, `busy` if the writer has left this
    /// reader behind (attach anew). Wait-free.
    Result try_read(T& message) noexcept {
      if (writer_.restarted()) {
        return Result::peer_restarted;
      }
      return is_there() ? take(message) : this->not_yet(Result::empty);
    }

    /// Reads the next message as soon as it is there. Blocking.
    Result read_until(T& message, Deadline auto deadline) noexcept {
      const Result result = this->wait_until(writer_, [this] { return is_there(); }, deadline);
      if (writer_.restarted()) {
        return Result::peer_restarted;
      }
      return result == Result::ok ? take(message) : result;
    }

    /// The same without deadline.
    Result read(T& message) noexcept { return read_until(message, Never{}); }

   private:
    Reader(void* memory, std::uint32_t index) noexcept
        : Base{memory, 1 + index},
          data_{static_cast<std::byte*>(memory)},
          writer_{detail::Header<P>{memory}.side(fields, 0)},
          taken_{&data_.taken(index)} {
      const std::uint32_t taken_before = A::load_relaxed(*taken_);
      go_to_newest();
      if (this->is_restart()) {
        this->count_dropped(number_ - taken_before);
      }
      this->enter();
      P::Order::full_fence();  // from here on the writer waits for this reader
      go_to_newest();
    }

    void go_to_newest() noexcept {
      number_ = A::load_acquire(data_.head());
      A::store_release(*taken_, number_);
    }

    [[nodiscard]] bool is_there() const noexcept {
      return A::load_acquire(data_.head()) != number_;
    }

    Result take(T& message) noexcept {
      if (!data_.read(number_ + 1, message)) {
        return Result::busy;
      }
      ++number_;
      A::store_release(*taken_, number_);
      P::Wait::notify();
      return Result::ok;
    }

    Data data_;
    detail::Peer<P> writer_;
    std::uint32_t* taken_ = nullptr;
    std::uint32_t number_ = 0;
  };

  /// A reader that nobody knows of. For one thread. Only reads shared memory.
  class Observer {
   public:
    static constexpr int tries = 4;

    Observer() = default;

    /// As `Reader::attach`, leaving no trace in the memory. Wait-free.
    static Opened<Observer> attach(void* memory, std::size_t size) noexcept {
      if (const Problem problem = detail::check_memory(memory, size, shape)) {
        return Opened<Observer>{problem};
      }
      if (const Problem problem = detail::compare<P>(memory, size, shape)) {
        return Opened<Observer>{problem};
      }
      return Opened<Observer>{Observer{memory}};
    }

    /// Copies the newest message, seen or not: `ok`, `empty`, `busy` after `tries` tries.
    Result read_latest(T& message) noexcept {
      for (int i = 0; i < tries; ++i) {
        const std::uint32_t newest = A::load_acquire(data_.head());
        if (newest == 0) {
          return Result::empty;
        }
        if (data_.read(newest, message)) {
          number_ = newest;
          return Result::ok;
        }
      }
      return Result::busy;
    }

    /// Copies the message after the one seen last; skips what the writer has overwritten, and
    /// counts it: `ok`, `empty`, `busy` after `tries` tries.
    Result try_read(T& message) noexcept {
      for (int i = 0; i < tries; ++i) {
        const std::uint32_t newest = A::load_acquire(data_.head());
        if (newest == number_) {
          return Result::empty;
        }
        std::uint32_t next = number_ + 1;
        if (newest - number_ >= N) {  // the slot after the newest may be in the writer's hands
          next = newest - static_cast<std::uint32_t>(N - 2);
        }
        if (data_.read(next, message)) {
          lost_ += next - number_ - 1;
          number_ = next;
          return Result::ok;
        }
      }
      return Result::busy;
    }

    /// Messages that were overwritten before this observer came to them, since it attached.
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

    /// Number of the message seen last.
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

   private:
    explicit Observer(void* memory) noexcept
        : data_{static_cast<std::byte*>(memory)}, number_{A::load_acquire(data_.head())} {}

    Data data_;
    std::uint32_t number_ = 0;
    std::uint64_t lost_ = 0;
  };
};

}  // namespace latenz::icc
