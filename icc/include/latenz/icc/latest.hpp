// SPDX-License-Identifier: Apache-2.0
// Latest: the newest value of one writer for a fixed number of readers, never torn at any rate.
//
// For sporadic communication: state that one side updates when it likes and others read when they
// like. In place of the publication's double buffer (coppik2025, section 4.2), which tears when two
// updates fall into one read. Writer and readers are wait-free: nobody waits for anybody, a dead
// reader costs nothing but its slots, a dead writer leaves its last value.
//
// Announced pairs (after Simpson's four slots, for any number of readers): R + 1 pairs of slots. A
// reader announces the pair it is going to read; the writer avoids announced pairs, and inside a
// pair writes the slot that is not the newest. Full fences between the reader's announcement and
// its look at the pair, and between the writer's last stores and its next look at the
// announcements, leave at most one update that can still touch an announced pair, and that one
// writes the slot that the reader does not read. docs/icc-proof.md has the argument.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "latenz/icc/endpoint.hpp"
#include "latenz/icc/lines.hpp"

namespace latenz::icc {

/// What a reader got.
enum class Freshness : std::uint8_t {
  empty,      ///< nothing has been written yet
  unchanged,  ///< nothing newer than what this reader saw last
  updated,
};

template <class T, std::size_t R = 1, class P = Platform<>>
class Latest {
  static_assert(R >= 1 && R <= 32, "a Latest has 1 to 32 readers");

  using A = detail::Access<P>;

  static constexpr std::size_t pairs = R + 1;

  /// Written by the writer alone.
  struct alignas(line_bytes) Control {
    std::uint32_t updates;        ///< number of the newest value; stored last
    std::uint32_t latest;         ///< its pair, plus 1; 0: none yet
    std::uint32_t newest[pairs];  ///< of each pair, the slot written last
  };
  /// Written by one reader alone.
  struct alignas(line_bytes) Announcement {
    std::uint32_t pair;  ///< plus 1; 0: none
  };

  static constexpr std::size_t fields = detail::fields_of<T>.size();
  static constexpr std::size_t control_offset = detail::data_offset(fields, 1 + R);
  static constexpr std::size_t announcement_offset = control_offset + sizeof(Control);
  static constexpr std::size_t slots_offset = announcement_offset + R * sizeof(Announcement);
  static constexpr std::size_t number_offset =
      (sizeof(T) + sizeof(std::uint32_t) - 1) / sizeof(std::uint32_t) * sizeof(std::uint32_t);
  static constexpr std::size_t slot_bytes =
      detail::whole_lines(number_offset + sizeof(std::uint32_t));

 public:
  /// Bytes of shared memory that the channel takes; they begin at a line.
  static constexpr std::size_t bytes = slots_offset + 2 * pairs * slot_bytes;

  static constexpr detail::Shape shape{
      .kind = ChannelKind::latest,
      .channel_bytes = bytes,
      .readers = R,
      .slots = 2 * pairs,
      .payload_bytes = {sizeof(T), 0},
      .fingerprint = {fingerprint<T>(), 0},
      .fields = {detail::fields_of<T>.data(), nullptr},
      .field_count = {fields, 0},
  };

  /// Who writes which lines.
  static constexpr auto lines() noexcept {
    return detail::lines_of<1 + R>(
        shape, LineRun{control_offset, sizeof(Control), LineOwner::side, 0, "control"},
        LineRun{announcement_offset, R * sizeof(Announcement), LineOwner::each_reader, 0,
                "announcements"},
        LineRun{slots_offset, 2 * pairs * slot_bytes, LineOwner::side, 0, "slots"});
  }

 private:
  struct Data {
    std::byte* base = nullptr;

    [[nodiscard]] Control& control() const noexcept {
      return *reinterpret_cast<Control*>(base + control_offset);
    }
    [[nodiscard]] std::uint32_t& announcement(std::size_t reader) const noexcept {
      // NOLINTNEXTLINE(clang-analyzer-core.NullPointerArithm): whoever calls it is open
      auto* all = reinterpret_cast<Announcement*>(base + announcement_offset);
      return all[reader].pair;
    }
    [[nodiscard]] std::byte* slot(std::uint32_t pair, std::uint32_t which) const noexcept {
      return base + slots_offset + (2 * pair + which) * slot_bytes;
    }
    [[nodiscard]] static std::uint32_t& number_of(std::byte* slot) noexcept {
      return *reinterpret_cast<std::uint32_t*>(slot + number_offset);
    }
  };

 public:
  /// The side that writes. For one thread.
  class Writer : public detail::Openable<Writer, Latest, P> {
    using Base = detail::Openable<Writer, Latest, P>;
    friend Base;

   public:
    Writer() = default;

    /// Makes `value` the newest. Wait-free: R loads, a copy, a fence, four stores.
    void update(const T& value) noexcept {
      choose();
      P::Memory::write(slot(), &value, sizeof value);
      publish();
    }

    /// Where the next value may be made in place. Nobody sees it before `publish`. Wait-free.
    T& begin_update() noexcept
      requires(P::Memory::in_place)
    {
      choose();
      return *reinterpret_cast<T*>(slot());
    }

    /// Makes what `begin_update` returned the newest value; once for each. Wait-free.
    void publish() noexcept {
      if (which_ == newest_[pair_]) {
        return;
      }
      ++number_;
      A::store_relaxed(Data::number_of(slot()), number_);
      P::Memory::clean(slot(), sizeof(T));
      newest_[pair_] = which_;
      A::store_release(data_.control().newest[pair_], which_);
      latest_ = pair_;
      A::store_release(data_.control().latest, pair_ + 1);
      A::store_release(data_.control().updates, number_);
      this->notify();
    }

    /// Number of the newest value, from 1 and wrapping; a restarted writer goes on.
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

   private:
    explicit Writer(void* memory) noexcept
        : Base{memory, 0}, data_{static_cast<std::byte*>(memory)} {
      Control& control = data_.control();
      const std::uint32_t latest = A::load_relaxed(control.latest);
      latest_ = latest == 0 || latest > pairs ? 0 : latest - 1;
      for (std::size_t pair = 0; pair < pairs; ++pair) {
        newest_[pair] = A::load_relaxed(control.newest[pair]) & 1U;
      }
      number_ = A::load_relaxed(control.updates);
      complete_interrupted();
      this->enter();
    }

    /// An earlier incarnation may have ended amid its last stores. A reader may have its value
    /// already, so it becomes the newest.
    void complete_interrupted() noexcept {
      for (std::uint32_t pair = 0; pair < pairs; ++pair) {
        std::byte* slot = data_.slot(pair, newest_[pair]);
        if (A::load_relaxed(Data::number_of(slot)) == number_ + 1) {
          ++number_;
          latest_ = pair;
          A::store_release(data_.control().latest, pair + 1);
          A::store_release(data_.control().updates, number_);
          return;
        }
      }
    }

    [[nodiscard]] std::byte* slot() const noexcept { return data_.slot(pair_, which_); }

    /// Chooses a slot that nobody reads: in the newest pair if it is not announced.
    void choose() noexcept {
      P::Order::full_fence();
      std::uint64_t announced = 0;
      for (std::size_t reader = 0; reader < R; ++reader) {
        announced |= std::uint64_t{1} << (A::load_acquire(data_.announcement(reader)) & 63U);
      }
      pair_ = latest_;
      for (std::uint32_t pair = 0; (announced >> (pair_ + 1U) & 1U) != 0 && pair < pairs; ++pair) {
        pair_ = pair;
      }
      which_ = 1 - newest_[pair_];
    }

    Data data_;
    std::array<std::uint32_t, pairs> newest_{};
    std::uint32_t latest_ = 0;
    std::uint32_t number_ = 0;
    std::uint32_t pair_ = 0;
    std::uint32_t which_ = 0;
  };

  /// A side that reads, one of R. For one thread. Values never go back for one reader; across
  /// readers, one may see a value while another, a moment later, still sees the one before.
  class Reader : public detail::Openable<Reader, Latest, P, std::uint32_t> {
    using Base = detail::Openable<Reader, Latest, P, std::uint32_t>;
    friend Base;

   public:
    Reader() = default;

    /// Copies the newest value into `value` if this reader has not seen it. Wait-free: at most five
    /// loads, a store, a fence and a copy. `empty` as well if the memory was formatted for another
    /// channel (`check_writer`).
    Freshness poll(T& value) noexcept {
      const Freshness freshness = advance();
      if (freshness == Freshness::updated) {
        A::read(&value, slot_, sizeof value);
      }
      return freshness;
    }

    /// Copies the newest value, seen or not; false: nothing has been written yet. Wait-free.
    /// The publication's name for its double buffer's call.
    bool read_latest(T& value) noexcept {
      if (advance() == Freshness::empty) {
        return false;
      }
      A::read(&value, slot_, sizeof value);
      return true;
    }

    /// The newest value where it stands, without a copy; null: nothing has been written yet. Valid
    /// and unchanging until this reader's next call, however long that takes. Wait-free.
    const T* view() noexcept
      requires(P::Memory::in_place)
    {
      if (advance() == Freshness::empty) {
        return nullptr;
      }
      P::Memory::invalidate(slot_, sizeof(T));
      return reinterpret_cast<const T*>(slot_);
    }

    /// Number of the value seen last (see `Writer::number`).
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

    /// Values that this reader has never seen because newer ones came, since it attached.
    [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }

    /// Whether the writer is the one it was: `ok`, `peer_restarted` (told once), `peer_gone` if it
    /// has left, `layout_changed`. Wait-free. Values remain readable in the first three cases.
    Result check_writer() noexcept {
      if (this->formatted_anew()) {
        return Result::layout_changed;
      }
      if (writer_.restarted()) {
        return Result::peer_restarted;
      }
      return writer_.known_epoch() != 0 && !writer_.open() ? Result::peer_gone : Result::ok;
    }

   private:
    Reader(void* memory, std::uint32_t index) noexcept
        : Base{memory, 1 + index},
          data_{static_cast<std::byte*>(memory)},
          writer_{detail::Header<P>{memory}.side(fields, 0)},
          announcement_{&data_.announcement(index)} {
      this->enter();
    }

    [[nodiscard]] const detail::Peer<P>& peer() const noexcept { return writer_; }

    /// Moves to the newest value. The announcement moves only if a value is complete that is newer
    /// than the one seen: so numbers never fall, and what is unchanged stays protected.
    Freshness advance() noexcept {
      Control& control = data_.control();
      const std::uint32_t updates = A::load_acquire(control.updates);
      if (slot_ != nullptr && (updates == number_ || updates + 1 == number_)) {
        return Freshness::unchanged;
      }
      const std::uint32_t latest = A::load_acquire(control.latest);
      if (latest == 0 || latest > pairs || this->formatted_anew()) {
        return Freshness::empty;
      }
      A::store_release(*announcement_, latest);
      P::Order::full_fence();
      const std::uint32_t which = A::load_acquire(control.newest[latest - 1]) & 1U;
      std::byte* slot = data_.slot(latest - 1, which);
      const std::uint32_t number = A::load_relaxed(Data::number_of(slot));
      if (slot_ != nullptr) {
        missed_ += number - number_ - 1;
      }
      slot_ = slot;
      number_ = number;
      return Freshness::updated;
    }

    Data data_;
    detail::Peer<P> writer_;
    std::uint32_t* announcement_ = nullptr;
    std::byte* slot_ = nullptr;
    std::uint32_t number_ = 0;
    std::uint64_t missed_ = 0;
  };
};

}  // namespace latenz::icc
