// SPDX-License-Identifier: Apache-2.0
// Ring: a stream of messages in N slots, for lossless readers and for any number of onlookers.
//
// - Up to L lossless readers, each with a line of its own, get every message in order; the writer
//   waits for them (`full`), and may leave a dead one behind.
// - Observers only read: nobody knows of them, their number is unlimited, and they may map the
//   memory read-only. They try a bounded number of times and say `busy` when the writer was faster,
//   and count what they lost.
// - With L = 0 the writer never waits.
//
// Each side looks at the other's count only when what it knows of it is used up, so a stream moves
// few lines besides its payloads. Payloads are copied in bulk, as wide as the memory allows, or
// used where they are. An observer may read while the writer writes: the writer tells in `begun`
// which messages it has begun to write, and what may be torn is thrown away by a look at that word
// behind the copy.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

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
  static constexpr std::size_t slot_bytes = (sizeof(T) + word_bytes - 1) / word_bytes * word_bytes;

  static constexpr std::size_t fields = detail::fields_of<T>.size();
  static constexpr std::size_t head_offset = detail::data_offset(fields, 1 + L);
  static constexpr std::size_t left_offset = head_offset + line_bytes;
  static constexpr std::size_t left_bytes = detail::whole_lines(L * word_bytes);
  static constexpr std::size_t taken_offset = left_offset + left_bytes;
  // In a pair of lines of its own: no reader fetches it by accident.
  static constexpr std::size_t begun_offset = detail::whole_pairs(taken_offset + L * line_bytes);
  static constexpr std::size_t slots_offset = begun_offset + 2 * line_bytes;

 public:
  /// Bytes of shared memory that the channel takes; they begin at a line.
  static constexpr std::size_t bytes = slots_offset + detail::whole_lines(N * slot_bytes);
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
        LineRun{left_offset, left_bytes, LineOwner::side, 0, "left behind"},
        LineRun{taken_offset, L * line_bytes, LineOwner::each_reader, 0, "taken"},
        LineRun{taken_offset + L * line_bytes,
                static_cast<std::uint32_t>(begun_offset - taken_offset - L * line_bytes),
                LineOwner::creator, 0, "unused"},
        LineRun{begun_offset, 2 * line_bytes, LineOwner::side, 0, "begun"},
        LineRun{slots_offset, static_cast<std::uint32_t>(bytes - slots_offset), LineOwner::side, 0,
                "slots"});
  }

 private:
  /// Slots and control words.
  struct Data {
    std::byte* base = nullptr;

    [[nodiscard]] std::uint32_t& word(std::size_t offset) const noexcept {
      return *reinterpret_cast<std::uint32_t*>(base + offset);
    }
    /// Number of the newest complete message.
    [[nodiscard]] std::uint32_t& head() const noexcept { return word(head_offset); }
    /// Number of the newest message whose slot the writer has begun to write; never falls.
    [[nodiscard]] std::uint32_t& begun() const noexcept { return word(begun_offset); }
    /// Epoch in which the writer has left a lossless reader behind; 0: never.
    [[nodiscard]] std::uint32_t& left(std::size_t reader) const noexcept {
      return word(left_offset + reader * word_bytes);
    }
    /// Number of the last message that a lossless reader has taken.
    [[nodiscard]] std::uint32_t& taken(std::size_t reader) const noexcept {
      return word(taken_offset + reader * line_bytes);
    }
    [[nodiscard]] std::byte* slot(std::uint32_t number) const noexcept {
      return base + slots_offset + number % N * slot_bytes;
    }

    void write(std::uint32_t number, const T& message) const noexcept {
      A::write(slot(number), &message, sizeof message);
    }
    void read(std::uint32_t number, T& message) const noexcept {
      A::read(&message, slot(number), sizeof message);
    }
    void write(std::uint32_t first, std::span<const T> messages) const noexcept {
      move(first, messages.size(),
           [messages](std::byte* slot, std::size_t at, std::size_t together) {
             A::write(slot, messages.data() + at, together * sizeof(T));
           });
    }
    void read(std::uint32_t first, std::span<T> messages) const noexcept {
      move(first, messages.size(),
           [messages](const std::byte* slot, std::size_t at, std::size_t together) {
             A::read(messages.data() + at, slot, together * sizeof(T));
           });
    }

   private:
    /// Calls `copy(slot, index of the message, how many together)`: all that lie side by side at
    /// once.
    template <class Copy>
    void move(std::uint32_t first, std::size_t count, Copy copy) const noexcept {
      for (std::size_t at = 0; at < count;) {
        const auto number = static_cast<std::uint32_t>(first + at);
        const std::size_t together =
            slot_bytes == sizeof(T) ? std::min<std::size_t>(count - at, N - number % N) : 1;
        copy(slot(number), at, together);
        at += together;
      }
    }
  };

 public:
  /// The side that writes. For one thread.
  class Writer : public detail::Openable<Writer, Ring, P> {
    using Base = detail::Openable<Writer, Ring, P>;
    friend Base;

   public:
    Writer() = default;

    /// Writes if every lossless reader has a slot free: `ok`, `full`. Wait-free: a copy, and 3 L
    /// loads each time the slots known to be free are used up. With L = 0 always `ok`.
    Result try_write(const T& message) noexcept {
      if (free_slots() == 0) {
        return this->not_yet(Result::full);
      }
      put(message, 1);
      return Result::ok;
    }

    /// Writes as many of these as there are slots known to be free, all at once: `ok` and how many,
    /// at least one; `full` if none is free. Wait-free. While it writes, as many of the oldest
    /// messages cannot be observed.
    Result try_write_some(std::span<const T> messages, std::size_t& count) noexcept {
      count = std::min<std::size_t>(messages.size(), free_slots());
      if (count == 0) {
        return messages.empty() ? Result::ok : this->not_yet(Result::full);
      }
      put(messages.first(count), count);
      return Result::ok;
    }

    /// Writes as soon as every lossless reader has a slot free. Blocking. After any other answer
    /// than `ok` nothing was written and `late_reader` tells for whom it waited.
    Result write_until(const T& message, Deadline auto deadline) noexcept {
      const Result result = await_slot(deadline);
      if (result == Result::ok) {
        put(message, 1);
      }
      return result;
    }

    /// The same without deadline.
    Result write(const T& message) noexcept { return write_until(message, Never{}); }

    /// Where the next message may be made in place: `ok`, `full`. Nobody sees it before `publish`;
    /// a loan that is not published is the next one's. Wait-free.
    Result try_loan(T*& message) noexcept
      requires(P::Memory::in_place)
    {
      if (free_slots() == 0) {
        return this->not_yet(Result::full);
      }
      message = lend();
      return Result::ok;
    }

    /// The same as soon as every lossless reader has a slot free. Blocking.
    Result loan_until(T*& message, Deadline auto deadline) noexcept
      requires(P::Memory::in_place)
    {
      const Result result = await_slot(deadline);
      if (result == Result::ok) {
        message = lend();
      }
      return result;
    }

    /// Makes what was lent last the newest message; once for each loan. Wait-free.
    void publish() noexcept {
      if (lent_) {
        lent_ = false;
        P::Memory::clean(data_.slot(number_ + 1), sizeof(T));
        tell(1);
      }
    }

    /// Index of a lossless reader that has no slot free; L if there is none. Wait-free.
    [[nodiscard]] std::size_t late_reader() const noexcept {
      for (std::size_t reader = 0; reader < L; ++reader) {
        if (free_slots_of(reader) == 0) {
          return reader;
        }
      }
      return L;
    }

    /// Waits for this lossless reader no more, until it attaches anew. Wait-free.
    void leave_behind(std::size_t reader) noexcept {
      if (reader < L) {
        A::store_relaxed(data_.left(reader), A::load_acquire(side_of(reader).presence.epoch));
      }
    }

    /// Number of the newest message, from 1 and wrapping.
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

   private:
    explicit Writer(void* memory) noexcept
        : Base{memory, 0},
          data_{static_cast<std::byte*>(memory)},
          number_{A::load_relaxed(data_.head())},
          limit_{number_},
          begun_{A::load_relaxed(data_.begun())} {
      this->enter();
    }

    [[nodiscard]] detail::Side& side_of(std::size_t reader) const noexcept {
      return detail::Header<P>{data_.base}.side(fields, 1 + reader);
    }

    [[nodiscard]] bool is_served(std::size_t reader) const noexcept {
      detail::Presence& presence = side_of(reader).presence;
      return A::load_acquire(presence.open) != 0 &&
             A::load_acquire(presence.epoch) != A::load_relaxed(data_.left(reader));
    }

    /// Slots that this reader leaves to messages behind the newest.
    [[nodiscard]] std::uint32_t free_slots_of(std::size_t reader) const noexcept {
      if (!is_served(reader)) {
        P::Order::full_fence();  // one that attaches now sees the newest message, or is seen here
        if (!is_served(reader)) {
          return N;
        }
      }
      const std::uint32_t waiting = number_ - A::load_acquire(data_.taken(reader));
      return waiting < N ? N - waiting : 0;
    }

    /// At most so many more messages overtake nobody. Readers are looked at only when those known
    /// to be free are used up: what they take meanwhile, or begin to read, only makes more.
    [[nodiscard]] std::uint32_t free_slots() noexcept {
      if constexpr (L == 0) {
        return N;
      } else {
        if (limit_ == number_) {
          std::uint32_t least = N;
          for (std::size_t reader = 0; reader < L; ++reader) {
            least = std::min(least, free_slots_of(reader));
          }
          limit_ = number_ + least;
        }
        return limit_ - number_;
      }
    }

    Result await_slot(Deadline auto& deadline) noexcept {
      while (free_slots() == 0) {
        const std::size_t late = late_reader();
        if (late == L) {
          continue;
        }
        detail::Peer<P> reader{side_of(late)};
        const Result result =
            this->wait_until(reader, [this, late] { return free_slots_of(late) != 0; }, deadline);
        if (result != Result::ok) {
          return result;
        }
      }
      return Result::ok;
    }

    /// Slots up to this message are in the writer's hands from now on.
    void begin(std::uint32_t last) noexcept {
      if (static_cast<std::int32_t>(last - begun_) > 0) {  // not so: a predecessor died there
        begun_ = last;
        A::store_relaxed(data_.begun(), last);
      }
      P::Order::release_fence();
    }

    /// `what`: one message, or a span of `count`.
    template <class What>
    void put(const What& what, std::size_t count) noexcept {
      begin(number_ + static_cast<std::uint32_t>(count));
      data_.write(number_ + 1, what);
      lent_ = false;
      tell(static_cast<std::uint32_t>(count));
    }

    T* lend() noexcept {
      begin(number_ + 1);
      lent_ = true;
      return reinterpret_cast<T*>(data_.slot(number_ + 1));
    }

    void tell(std::uint32_t count) noexcept {
      number_ += count;
      A::store_release(data_.head(), number_);
      this->notify();
    }

    Data data_;
    std::uint32_t number_ = 0;
    std::uint32_t limit_ = 0;  ///< up to this message no lossless reader is overtaken
    std::uint32_t begun_ = 0;
    bool lent_ = false;
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
      const Result result = look();
      return result == Result::ok ? copy(message, 1) : result;
    }

    /// Reads as many messages as are known to be there and fit, in order: `ok` and how many, at
    /// least one; otherwise as `try_read`. Wait-free.
    Result try_read_some(std::span<T> messages, std::size_t& count) noexcept {
      count = 0;
      if (messages.empty()) {
        return Result::ok;
      }
      Result result = look();
      if (result == Result::ok) {
        const std::size_t there = std::min<std::size_t>(messages.size(), seen_ - number_);
        result = copy(messages.first(there), there);
        count = result == Result::ok ? there : 0;
      }
      return result;
    }

    /// Reads the next message as soon as it is there. Blocking.
    Result read_until(T& message, Deadline auto deadline) noexcept {
      const Result result = await_message(deadline);
      return result == Result::ok ? copy(message, 1) : result;
    }

    /// The same without deadline.
    Result read(T& message) noexcept { return read_until(message, Never{}); }

    /// The next message where it stands, without a copy; it stays until `release`. Otherwise as
    /// `try_read`. Wait-free.
    Result try_take(const T*& message) noexcept
      requires(P::Memory::in_place)
    {
      const Result result = look();
      return result == Result::ok ? hold(message) : result;
    }

    /// The same as soon as it is there. Blocking.
    Result take_until(const T*& message, Deadline auto deadline) noexcept
      requires(P::Memory::in_place)
    {
      const Result result = await_message(deadline);
      return result == Result::ok ? hold(message) : result;
    }

    /// Gives the slot taken last back: `ok`; `busy` if the writer has left this reader behind
    /// meanwhile, so that what was read there may be torn; `empty` if nothing was taken. Wait-free.
    Result release() noexcept {
      if (!holds_) {
        return Result::empty;
      }
      holds_ = false;
      return finish(1);
    }

   private:
    Reader(void* memory, std::uint32_t index) noexcept
        : Base{memory, 1 + index},
          data_{static_cast<std::byte*>(memory)},
          writer_{detail::Header<P>{memory}.side(fields, 0)},
          taken_{&data_.taken(index)},
          left_{&data_.left(index)} {
      const std::uint32_t taken_before = A::load_relaxed(*taken_);
      go_to_newest();
      if (this->is_restart()) {
        this->count_dropped(number_ - taken_before);
      }
      this->enter();
      P::Order::full_fence();  // from here on the writer waits for this reader
      go_to_newest();
      this->notify();
    }

    [[nodiscard]] const detail::Peer<P>& peer() const noexcept { return writer_; }

    void go_to_newest() noexcept {
      number_ = A::load_acquire(data_.head());
      seen_ = number_;
      A::store_release(*taken_, number_);
    }

    [[nodiscard]] bool is_there() noexcept {
      if (seen_ == number_) {
        seen_ = A::load_acquire(data_.head());
      }
      return seen_ != number_;
    }

    /// Whether a message is there, or what is in its place.
    Result look() noexcept {
      if (writer_.restarted()) {
        return Result::peer_restarted;
      }
      if (!is_there()) {
        return this->not_yet(Result::empty);
      }
      return seen_ - number_ <= N ? Result::ok : Result::busy;
    }

    Result await_message(Deadline auto& deadline) noexcept {
      const Result result = this->wait_until(writer_, [this] { return is_there(); }, deadline);
      if (writer_.restarted()) {
        return Result::peer_restarted;
      }
      return result == Result::ok && seen_ - number_ > N ? Result::busy : result;
    }

    Result hold(const T*& message) noexcept {
      P::Memory::invalidate(data_.slot(number_ + 1), sizeof(T));
      message = reinterpret_cast<const T*>(data_.slot(number_ + 1));
      holds_ = true;
      return Result::ok;
    }

    /// `to`: one message, or a span of `count`.
    template <class To>
    Result copy(To&& to, std::size_t count) noexcept {
      data_.read(number_ + 1, to);
      holds_ = false;
      return finish(static_cast<std::uint32_t>(count));
    }

    /// Messages were read: whole, unless the writer has left this reader behind.
    Result finish(std::uint32_t count) noexcept {
      P::Order::acquire_fence();
      if (A::load_relaxed(*left_) == this->epoch()) {
        return Result::busy;
      }
      number_ += count;
      A::store_release(*taken_, number_);
      this->notify();
      return Result::ok;
    }

    Data data_;
    detail::Peer<P> writer_;
    std::uint32_t* taken_ = nullptr;
    std::uint32_t* left_ = nullptr;
    std::uint32_t number_ = 0;
    std::uint32_t seen_ = 0;  ///< newest message that is known to be there
    bool holds_ = false;
  };

  /// A reader that nobody knows of. For one thread. Only reads shared memory. After another answer
  /// than `ok` the message may hold anything.
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
        if (copy(newest, message)) {
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
        const std::uint32_t begun = A::load_relaxed(data_.begun());
        if (static_cast<std::int32_t>(begun - N - next) >= 0) {  // the writer writes several
          next = begun - static_cast<std::uint32_t>(N - 1);
          if (static_cast<std::int32_t>(next - newest) > 0) {
            next = newest;
          }
        }
        if (copy(next, message)) {
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

    /// Copies message `number`, which is complete; false if it was overwritten meanwhile.
    bool copy(std::uint32_t number, T& message) const noexcept {
      data_.read(number, message);
      P::Order::acquire_fence();
      return static_cast<std::int32_t>(A::load_relaxed(data_.begun()) - number) <
             static_cast<std::int32_t>(N);
    }

    Data data_;
    std::uint32_t number_ = 0;
    std::uint64_t lost_ = 0;
  };
};

}  // namespace latenz::icc
