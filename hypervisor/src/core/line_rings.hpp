// SPDX-License-Identifier: Apache-2.0
// Lines on their way to a console: a ring for each producer, one consumer for all. Nobody waits for
// anybody. Freestanding.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "latenz/text.hpp"

namespace latenz::hypervisor {

/// @tparam rings     how many; of each, one thread at a time adds
/// @tparam capacity  characters that a ring holds, a power of two
template <std::size_t rings, std::size_t capacity>
class LineRings {
 public:
  static constexpr std::size_t longest_line = 200;
  static_assert((capacity & (capacity - 1)) == 0 && capacity > longest_line);

  /// What a note is made of, for whoever words it.
  using Note = std::array<std::uint64_t, 3>;
  static constexpr std::uint32_t most_notes = 32;  ///< of a ring
  /// A piece of a note, in words.
  using Worded = Text<48>;

  /// Whether a line of any length has room. By the ring's producer.
  [[nodiscard]] bool has_room(std::size_t ring) const {
    const Ring& own = ring_[ring];
    const std::uint32_t waiting =
        own.added.load(std::memory_order_relaxed) - own.sent.load(std::memory_order_acquire);
    return capacity - waiting >= longest_line;
  }

  /// Begins a line, if one of any length has room. By the ring's producer, as are all up to note().
  [[nodiscard]] bool begin(std::size_t ring) {
    Ring& own = ring_[ring];
    own.written = own.added.load(std::memory_order_relaxed);
    return has_room(ring);
  }

  /// Goes on with the line; what is too long is cut. No character is zero.
  void write(std::size_t ring, std::string_view text) {
    Ring& own = ring_[ring];
    const std::uint32_t length = own.written - own.added.load(std::memory_order_relaxed);
    for (const char character : text.substr(0, longest_line - 1 - length)) {
      own.text[own.written++ % capacity] = character;
    }
  }

  /// Ends the line: now it may be sent.
  void end(std::size_t ring) {
    Ring& own = ring_[ring];
    own.text[own.written++ % capacity] = '\n';
    own.added.store(own.written, std::memory_order_release);
  }

  /// Counts a line that had no room.
  void lose(std::size_t ring) {
    Ring& own = ring_[ring];
    own.lost.store(own.lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  /// Adds a line that the consumer words when its turn comes: so few steps here, however long it
  /// is. Between lines.
  void note(std::size_t ring, const Note& note) {
    Ring& own = ring_[ring];
    const bool full =
        own.notes_added - own.notes_sent.load(std::memory_order_acquire) == most_notes;
    if (full || !has_room(ring)) {
      lose(ring);
      return;
    }
    own.note[own.notes_added++ % most_notes] = note;
    const std::uint32_t end = own.added.load(std::memory_order_relaxed);
    own.text[end % capacity] = note_follows;
    own.added.store(end + 1, std::memory_order_release);
  }

  /// Lines that had no room, or not from their beginning on. By anybody.
  [[nodiscard]] std::uint32_t lost(std::size_t ring) const {
    return ring_[ring].lost.load(std::memory_order_relaxed);
  }

  /// Hands at most so many characters to `put`, until that returns false; lines stay whole. A note
  /// is worded piece by piece by `word(ring, note, piece, text)`, which returns false if there is
  /// none any more; a piece is enough for once, and has nothing sent before it. By the consumer.
  ///
  /// @return false if nothing is left
  template <typename Put, typename Word>
  bool send(unsigned most, Put put, Word word) {
    for (unsigned i = 0; i < most; ++i) {
      if (!find()) return false;
      Ring& from = ring_[current_];
      const std::uint32_t at = from.sent.load(std::memory_order_relaxed);
      const char character = from.text[at % capacity];
      if (character == note_follows) {
        if (told_ == worded_.view().size()) {
          if (i == 0) word_note(from, at, put, word);
          return true;
        }
        if (!put(worded_.view()[told_])) return true;
        ++told_;
        continue;
      }
      if (!put(character)) return true;
      from.sent.store(at + 1, std::memory_order_release);
      if (character == '\n') current_ = (current_ + 1) % rings;
    }
    return true;
  }

  /// Whether nothing waits. By anybody.
  [[nodiscard]] bool empty() const {
    return std::none_of(ring_.begin(), ring_.end(), [](const Ring& each) { return each.waits(); });
  }

 private:
  struct Ring {
    std::atomic<std::uint32_t> added;       ///< characters, modulo 2^32; by the producer
    std::atomic<std::uint32_t> lost;        ///< by the producer
    std::atomic<std::uint32_t> sent;        ///< by the consumer
    std::atomic<std::uint32_t> notes_sent;  ///< by the consumer
    std::uint32_t notes_added;              ///< the producer's
    std::uint32_t written;  ///< end of the line that is not yet added; the producer's
    std::array<Note, most_notes> note;
    std::array<char, capacity> text;

    [[nodiscard]] bool waits() const {
      return added.load(std::memory_order_acquire) != sent.load(std::memory_order_relaxed);
    }
  };

  static constexpr char note_follows = '\0';

  /// Words the next piece of a note, or ends its line.
  template <typename Put, typename Word>
  void word_note(Ring& from, std::uint32_t at, Put put, Word word) {
    worded_.clear();
    told_ = 0;
    const std::uint32_t sent = from.notes_sent.load(std::memory_order_relaxed);
    if (word(current_, from.note[sent % most_notes], piece_, worded_)) {
      ++piece_;
      return;
    }
    if (!put('\n')) return;
    piece_ = 0;
    from.notes_sent.store(sent + 1, std::memory_order_release);
    from.sent.store(at + 1, std::memory_order_release);
    current_ = (current_ + 1) % rings;
  }

  /// Goes on to a ring in which something waits; only between lines, as lines are added whole.
  bool find() {
    for (std::size_t i = 0; i < rings; ++i) {
      if (ring_[current_].waits()) return true;
      current_ = (current_ + 1) % rings;
    }
    return false;
  }

  std::array<Ring, rings> ring_{};
  std::size_t current_ = 0;
  Worded worded_;         ///< the piece of a note that is being sent; the consumer's
  unsigned piece_ = 0;    ///< the one behind it
  std::size_t told_ = 0;  ///< of its characters
};

}  // namespace latenz::hypervisor
