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
      if (reader_.restarted()) {
        return Result::peer_restarted;
      }
      if (!free()) {
        return this->not_yet(Result::full);
      }
      put(message);
      return Result::ok;
    }

    /// Writes as soon as the message before has been read. Blocking; after any other answer than
    /// `ok` nothing was written.
    Result write_until(const T& message, Deadline auto deadline) noexcept {
      const Result result = this->wait_until(reader_, [this] { return free(); }, deadline);
      if (reader_.restarted()) {
        return Result::peer_restarted;
      }
      if (result == Result::ok) {
        put(message);
      }
      return result;
    }

    /// The same without deadline: ends when the reader has read, restarted or is gone.
    Result write(const T& message) noexcept { return write_until(message, Never{}); }

    /// Whether the reader has taken all that was written. Wait-free.
    [[nodiscard]] bool free() const noexcept { return A::load_acquire(*slot_.taken) == count_; }

   private:
    explicit Writer(void* memory) noexcept
        : Base{memory, 0},
          slot_{memory},
          reader_{detail::Header<P>{memory}.side(fields, 1)},
          count_{A::load_relaxed(*slot_.written) & count_mask} {
      this->enter();
    }

    [[nodiscard]] const detail::Peer<P>& peer() const noexcept { return reader_; }

    void put(const T& message) noexcept {
      count_ = (count_ + 1) & count_mask;
      A::write(slot_.payload, &message, sizeof message);
      A::store_release(*slot_.written, this->epoch() << 24U | count_);
      this->notify();
    }

    Slot slot_;
    detail::Peer<P> reader_;
    std::uint32_t count_ = 0;
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
      const std::uint32_t written = look();
      if (fresh(written)) {
        return take_waiting(message, written);
      }
      return writer_.restarted() ? Result::peer_restarted : this->not_yet(Result::empty);
    }

    /// Reads as soon as a message is there. Blocking; after any other answer than `ok` `message`
    /// is untouched.
    Result read_until(T& message, Deadline auto deadline) noexcept {
      std::uint32_t written = look();
      if (fresh(written)) {
        return take_waiting(message, written);
      }
      const Result result = this->wait_until(
          writer_,
          [this, &written] {
            written = look();
            return fresh(written);
          },
          deadline);
      if (result == Result::ok) {
        return take(message, written);
      }
      return writer_.restarted() ? Result::peer_restarted : result;
    }

    /// The same without deadline: ends when a message is there or the writer restarted or is gone.
    Result read(T& message) noexcept { return read_until(message, Never{}); }

   private:
    explicit Reader(void* memory) noexcept
        : Base{memory, 1},
          slot_{memory},
          writer_{detail::Header<P>{memory}.side(fields, 0)},
          count_{A::load_relaxed(*slot_.taken)} {
      const std::uint32_t written = look();
      if (this->is_restart() && fresh(written)) {
        drop(written);
      }
      this->enter();
    }

    [[nodiscard]] const detail::Peer<P>& peer() const noexcept { return writer_; }
    [[nodiscard]] std::uint32_t look() const noexcept { return A::load_acquire(*slot_.written); }
    [[nodiscard]] bool fresh(std::uint32_t written) const noexcept {
      return (written & count_mask) != count_;
    }

    /// A message that was there before the call may be one of an incarnation that is no more.
    Result take_waiting(T& message, std::uint32_t written) noexcept {
      const std::uint32_t now = writer_.epoch();
      if ((written >> 24U) != (now & 0xFFU)) {
        drop(written);
        writer_.turned_into(now);
        return Result::peer_restarted;
      }
      return take(message, written);
    }

    Result take(T& message, std::uint32_t written) noexcept {
      if (!is_of_known_writer(written) && (writer_.restarted() || !is_of_known_writer(written))) {
        return Result::peer_restarted;
      }
      A::read(&message, slot_.payload, sizeof message);
      acknowledge(written);
      return Result::ok;
    }

    [[nodiscard]] bool is_of_known_writer(std::uint32_t written) const noexcept {
      return (written >> 24U) == (writer_.known_epoch() & 0xFFU);
    }

    void drop(std::uint32_t written) noexcept {
      acknowledge(written);
      this->count_dropped();
    }

    void acknowledge(std::uint32_t written) noexcept {
      count_ = written & count_mask;
      A::store_release(*slot_.taken, count_);
      this->notify();
    }

    Slot slot_;
    detail::Peer<P> writer_;
    std::uint32_t count_ = 0;
  };
};

}  // namespace latenz::icc
