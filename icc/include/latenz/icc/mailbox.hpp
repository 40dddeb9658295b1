// SPDX-License-Identifier: Apache-2.0
// Mailbox: one writer, one reader, and each message is read before the next is written.
//
// For periodic communication: a control cycle that hands its input to another processor. In place
// of the publication's mailbox (coppik2025, section 4.1), whose one flag both sides set and reset:
// here each side counts in a word of its own, so that either side may restart at any time and no
// message is lost by a stale flag, torn, or delivered twice.
//
// The slot's lines belong to the writer while the counts are equal and to the reader while they are
// not. Payload first, counts last: a reader that polls does not take the line away half filled.
#pragma once

#include <cstddef>
#include <cstdint>

#include "latenz/icc/endpoint.hpp"
#include "latenz/icc/lines.hpp"

namespace latenz::icc {

template <class T, class P = Platform<>>
class Mailbox {
  using A = detail::Access<P>;

  static constexpr std::size_t fields = detail::fields_of<T>.size();
  static constexpr std::size_t slot_offset = detail::data_offset(fields, 2);
  static constexpr std::size_t slot_bytes =
      detail::whole_lines(sizeof(T) + 2 * sizeof(std::uint32_t));
  static constexpr std::uint32_t count_mask = 0x00FF'FFFF;

 public:
  /// Bytes of shared memory that the channel takes; they begin at a line.
  static constexpr std::size_t bytes = slot_offset + slot_bytes;

  static constexpr detail::Shape shape{
      .kind = ChannelKind::mailbox,
      .channel_bytes = bytes,
      .readers = 1,
      .slots = 1,
      .payload_bytes = {sizeof(T), 0},
      .fingerprint = {fingerprint<T>(), 0},
      .fields = {detail::fields_of<T>.data(), nullptr},
      .field_count = {fields, 0},
  };

  /// Who writes which lines.
  static constexpr auto lines() noexcept {
    return detail::lines_of<2>(shape,
                               LineRun{slot_offset, slot_bytes, LineOwner::in_turn, 0, "slot"});
  }

 private:
  struct Slot {
    std::byte* payload = nullptr;
    std::uint32_t* taken = nullptr;    ///< reader: count of the last message it took
    std::uint32_t* written = nullptr;  ///< writer: its epoch's low byte, and count

    Slot() = default;
    explicit Slot(void* memory) noexcept
        : payload{static_cast<std::byte*>(memory) + slot_offset},
          taken{reinterpret_cast<std::uint32_t*>(payload + slot_bytes) - 2},
          written{taken + 1} {}
  };

 public:
  /// The side that writes. For one thread.
  class Writer : public detail::Openable<Writer, Mailbox, P> {
    using Base = detail::Openable<Writer, Mailbox, P>;
    friend Base;

   public:
    Writer() = default;

    /// Writes if the message before has been read: `ok`, `full`, `peer_restarted`. Wait-free.
    Result try_write(const T& message) noexcept {
      const Result result = look();
      if (result == Result::ok) {
        put(message);
      }
      return result;
    }

    /// Writes as soon as the message before has been read. Blocking; after any other answer than
    /// `ok` nothing was written.
    Result write_until(const T& message, Deadline auto deadline) noexcept {
      const Result result = await_slot(deadline);
      if (result == Result::ok) {
        put(message);
      }
      return result;
    }

    /// The same without deadline: ends when the reader has read, restarted or is gone.
    Result write(const T& message) noexcept { return write_until(message, Never{}); }

    /// Where the next message may be made in place: otherwise as `try_write`. Nobody sees it before
    /// `publish`; a loan that is not published is the next one's. Wait-free.
    Result try_loan(T*& message) noexcept
      requires(P::Memory::in_place)
    {
      const Result result = look();
      return result == Result::ok ? lend(message) : result;
    }

    /// The same as soon as the message before has been read. Blocking.
    Result loan_until(T*& message, Deadline auto deadline) noexcept
      requires(P::Memory::in_place)
    {
      const Result result = await_slot(deadline);
      return result == Result::ok ? lend(message) : result;
    }

    /// Writes what was lent last; once for each loan. Wait-free.
    void publish() noexcept {
      if (lent_) {
        P::Memory::clean(slot_.payload, sizeof(T));
        tell();
      }
    }

    /// Whether the reader has taken all that was written. Wait-free.
    [[nodiscard]] bool free() const noexcept {
      // A look at the line of what is made there could discard it where memory is not coherent.
      return lent_ || A::load_acquire(*slot_.taken) == count_;
    }

   private:
    explicit Writer(void* memory) noexcept
        : Base{memory, 0},
          slot_{memory},
          reader_{detail::Header<P>{memory}.side(fields, 1)},
          count_{A::load_relaxed(*slot_.written) & count_mask} {
      this->enter();
    }

    [[nodiscard]] const detail::Peer<P>& peer() const noexcept { return reader_; }

    /// Whether the slot is free, or what is in the way.
    Result look() noexcept {
      if (reader_.restarted()) {
        return Result::peer_restarted;
      }
      return free() ? Result::ok : this->not_yet(Result::full);
    }

    Result await_slot(Deadline auto& deadline) noexcept {
      const Result result = this->wait_until(reader_, [this] { return free(); }, deadline);
      return reader_.restarted() ? Result::peer_restarted : result;
    }

    void put(const T& message) noexcept {
      A::write(slot_.payload, &message, sizeof message);
      tell();
    }

    Result lend(T*& message) noexcept {
      lent_ = true;
      message = reinterpret_cast<T*>(slot_.payload);
      return Result::ok;
    }

    /// Gives the slot to the reader.
    void tell() noexcept {
      lent_ = false;
      count_ = (count_ + 1) & count_mask;
      A::store_release(*slot_.written, this->epoch() << 24U | count_);
      this->notify();
    }

    Slot slot_;
    detail::Peer<P> reader_;
    std::uint32_t count_ = 0;
    bool lent_ = false;
  };

  /// The side that reads. For one thread. A restarted reader drops the message that waits for it:
  /// an earlier incarnation may have acted on it.
  class Reader : public detail::Openable<Reader, Mailbox, P> {
    using Base = detail::Openable<Reader, Mailbox, P>;
    friend Base;

   public:
    Reader() = default;

    /// Reads if a message is there: `ok`, `empty`, `peer_restarted`. Wait-free.
    Result try_read(T& message) noexcept {
      const Result result = find();
      return result == Result::ok ? copy(message) : result;
    }

    /// Reads as soon as a message is there. Blocking; after any other answer than `ok` `message`
    /// is untouched.
    Result read_until(T& message, Deadline auto deadline) noexcept {
      const Result result = await_message(deadline);
      return result == Result::ok ? copy(message) : result;
    }

    /// The same without deadline: ends when a message is there or the writer restarted or is gone.
    Result read(T& message) noexcept { return read_until(message, Never{}); }

    /// The message where it stands, without a copy; it stays until `release`, and no other is
    /// written meanwhile. Otherwise as `try_read`. Wait-free.
    Result try_take(const T*& message) noexcept
      requires(P::Memory::in_place)
    {
      const Result result = find();
      return result == Result::ok ? hold(message) : result;
    }

    /// The same as soon as it is there. Blocking.
    Result take_until(const T*& message, Deadline auto deadline) noexcept
      requires(P::Memory::in_place)
    {
      const Result result = await_message(deadline);
      return result == Result::ok ? hold(message) : result;
    }

    /// Gives the slot taken last back: `ok`, `empty` if nothing was taken. Wait-free.
    Result release() noexcept {
      if (!holds_) {
        return Result::empty;
      }
      acknowledge();
      return Result::ok;
    }

   private:
    explicit Reader(void* memory) noexcept
        : Base{memory, 1},
          slot_{memory},
          writer_{detail::Header<P>{memory}.side(fields, 0)},
          count_{A::load_relaxed(*slot_.taken)} {
      if (is_there() && this->is_restart()) {
        drop();
      }
      this->enter();
    }

    [[nodiscard]] const detail::Peer<P>& peer() const noexcept { return writer_; }

    bool is_there() noexcept {
      written_ = A::load_acquire(*slot_.written);
      return (written_ & count_mask) != count_;
    }

    /// Whether a message is there, or what is in its place.
    Result find() noexcept {
      if (is_there()) {
        return check_waiting();
      }
      return writer_.restarted() ? Result::peer_restarted : this->not_yet(Result::empty);
    }

    Result await_message(Deadline auto& deadline) noexcept {
      if (is_there()) {
        return check_waiting();
      }
      const Result result = this->wait_until(writer_, [this] { return is_there(); }, deadline);
      if (result == Result::ok) {
        return check();
      }
      return writer_.restarted() ? Result::peer_restarted : result;
    }

    /// A message that was there before the call may be one of an incarnation that is no more.
    Result check_waiting() noexcept {
      const std::uint32_t now = writer_.epoch();
      if ((written_ >> 24U) != (now & 0xFFU)) {
        drop();
        writer_.turned_into(now);
        return Result::peer_restarted;
      }
      return check();
    }

    Result check() noexcept {
      return !is_of_known_writer() && (writer_.restarted() || !is_of_known_writer())
                 ? Result::peer_restarted
                 : Result::ok;
    }

    [[nodiscard]] bool is_of_known_writer() const noexcept {
      return (written_ >> 24U) == (writer_.known_epoch() & 0xFFU);
    }

    Result copy(T& message) noexcept {
      A::read(&message, slot_.payload, sizeof message);
      acknowledge();
      return Result::ok;
    }

    Result hold(const T*& message) noexcept {
      P::Memory::invalidate(slot_.payload, sizeof(T));
      message = reinterpret_cast<const T*>(slot_.payload);
      holds_ = true;
      return Result::ok;
    }

    void drop() noexcept {
      acknowledge();
      this->count_dropped();
    }

    void acknowledge() noexcept {
      holds_ = false;
      count_ = written_ & count_mask;
      A::store_release(*slot_.taken, count_);
      this->notify();
    }

    Slot slot_;
    detail::Peer<P> writer_;
    std::uint32_t count_ = 0;
    std::uint32_t written_ = 0;  ///< as seen at the last look
    bool holds_ = false;
  };
};

}  // namespace latenz::icc
