// SPDX-License-Identifier: Apache-2.0
// What may be true of one line of memory on silicon: which of its bytes are newer in a cache than
// in memory, and the other way round.
//
// All of it says "may": a cache may write a dirty line back, or drop a clean one, at any time, and
// may keep either for ever. A program is right if it reads what was written last whatever the
// caches do.
#pragma once

#include <cstdint>

namespace latenz::coherence {

inline constexpr unsigned line_bits = 6;
inline constexpr std::uint64_t line_size = std::uint64_t{1} << line_bits;

/// An instruction on a core, as `number of the site` * 8 + `core`; 0: nobody that we saw.
using Place = std::uint32_t;

/// Why what is read may be old.
enum class Cause : std::uint8_t {
  none,
  dirty,         ///< newer in a cache than in memory, from which it is read
  stale,         ///< newer in memory than in a cache, from which it may be read
  overwritten,   ///< written in memory, while a dirty line could still be written back over it
  discarded,     ///< written into a cache, and invalidated there before it was written back
  incomplete,    ///< the maintenance that would do was not followed by a barrier
  uncleaned,     ///< written as data, not cleaned to where instructions are read
  instructions,  ///< written, and instruction caches not invalidated since
};

/// Some of a line's bytes, one bit each.
using Bytes = std::uint64_t;

/// Returns the bytes that an access of a size at an address touches in its first line.
constexpr Bytes bytes_at(std::uint64_t address, std::uint64_t size) {
  const std::uint64_t first = address % line_size;
  return (size >= line_size ? ~Bytes{0} : (Bytes{1} << size) - 1) << first;
}

/// A cause, and who is to blame.
struct Hazard {
  Cause cause = Cause::none;
  Place by = 0;
};

/// The state of a line's data, which maintenance changes.
struct Data {
  Bytes dirty = 0;        ///< newer in the caches than in memory
  Bytes stale = 0;        ///< newer in memory than in the caches
  Bytes lost = 0;         ///< its last value may be nowhere
  bool modified = false;  ///< a cache may write the line back
};

/// When something happens; time is the number of the last maintenance.
struct Moment {
  std::uint32_t now = 0;
  std::uint32_t all_dropped = 0;  ///< when all cores' instruction caches dropped everything
};

/// A line of memory and what the caches of all coherent cores may hold of it.
class Line {
 public:
  /// Reads through a cache. Returns whether what is read may be old.
  Hazard read_cached(Bytes bytes, unsigned core) {
    resident_ |= bit(core);
    return suspect(bytes & data_.stale) ? cached_hazard(data_, bytes) : Hazard{};
  }

  /// Reads memory. Returns whether what is read may be old.
  [[nodiscard]] Hazard read_uncached(Bytes bytes) const {
    return suspect(bytes & data_.dirty) || data_.modified ? uncached_hazard(data_, bytes)
                                                          : Hazard{};
  }

  void write_cached(Bytes bytes, unsigned core, Place by, Moment moment) {
    write_code(bytes, moment);
    resident_ |= bit(core);
    data_.dirty |= bytes;
    data_.stale &= ~bytes;
    data_.lost &= ~bytes;
    data_.modified = true;
    in_memory_ = false;
    cached_by_ = written_by_ = by;
    written_ = moment.now;
  }

  /// Writes memory; `mapped` says that a cacheable mapping is in force, by which a core may fetch
  /// the line into its cache without being asked.
  void write_uncached(Bytes bytes, bool mapped, Place by, Moment moment) {
    write_code(bytes, moment);
    data_.dirty &= ~bytes;
    data_.lost &= ~bytes;
    if (mapped || resident_ != 0) data_.stale |= bytes;
    in_memory_ = data_.dirty == 0;
    uncached_by_ = written_by_ = by;
    written_ = moment.now;
  }

  /// Writes the line back to memory, if it is dirty.
  void clean(Place by) {
    if (data_.modified) {
      lose(data_.stale, Cause::overwritten, uncached_by_, by);
      data_.stale = 0;
    }
    data_.dirty = 0;
    data_.modified = false;
  }

  /// Drops the line from all caches; what was not written back is lost.
  void invalidate(Place by) {
    lose(data_.dirty, Cause::discarded, cached_by_, by);
    data_ = {.lost = data_.lost};
    resident_ = 0;
  }

  /// Some core has the line in its cache from before the program was entered.
  void inherit() { resident_ |= bit(inherited); }

  /// Returns whether no cache but this core's own, and what all cores share, may hold the line.
  [[nodiscard]] bool is_private_to(unsigned core) const {
    return (resident_ & ~(bit(core) | bit(inherited))) == 0;
  }

  /// Returns whether reading the bytes would be wrong if the data were still as given: in the state
  /// before maintenance that is not known to be complete.
  [[nodiscard]] Hazard hazard_of(const Data& before, Bytes bytes, bool cached) const {
    return cached ? cached_hazard(before, bytes) : uncached_hazard(before, bytes);
  }

  [[nodiscard]] const Data& data() const { return data_; }
  [[nodiscard]] Place written_by() const { return written_by_; }
  [[nodiscard]] std::uint32_t written() const { return written_; }
  [[nodiscard]] bool was_written() const { return written_by_ != 0; }

  /// Data was cleaned to where instructions are read, by maintenance that was begun at a time.
  void unify(std::uint32_t begun, std::uint32_t now) {
    if (begun > written_ && unified_ <= written_) unified_ = now;
  }
  /// Instruction caches of all cores were told to drop the line.
  void invalidate_instructions(std::uint32_t begun) { instructions_ = begun; }

  /// Returns whether instructions fetched through caches may be old; `all_dropped`: when the core's
  /// whole instruction cache was last told to drop everything.
  [[nodiscard]] Hazard fetch_cached(Bytes bytes, std::uint32_t all_dropped) const {
    if ((bytes & code_) == 0) return {};
    if (!is_unified()) return {Cause::uncleaned, written_by_};
    return is_dropped(all_dropped) ? Hazard{} : Hazard{Cause::instructions, written_by_};
  }

  std::uint8_t unfinished = 0;  ///< cores with maintenance of the line that no barrier followed

 private:
  static constexpr unsigned inherited = 7;
  static constexpr std::uint8_t bit(unsigned core) { return static_cast<std::uint8_t>(1U << core); }

  [[nodiscard]] bool is_unified() const { return in_memory_ || unified_ > written_; }
  [[nodiscard]] bool is_dropped(std::uint32_t all_dropped) const {
    const std::uint32_t reached = in_memory_ ? written_ : unified_;
    return instructions_ > reached || all_dropped > reached;
  }

  /// What is written next to instructions that are in order does not make them old.
  void write_code(Bytes bytes, Moment moment) {
    if (is_unified() && is_dropped(moment.all_dropped)) code_ = 0;
    code_ |= bytes;
  }

  [[nodiscard]] bool suspect(Bytes old) const { return (old | data_.lost) != 0; }

  [[nodiscard]] Hazard cached_hazard(const Data& data, Bytes bytes) const {
    if ((data.lost & bytes) != 0) return {lost_how_, lost_by_};
    if ((data.stale & bytes) != 0) return {Cause::stale, uncached_by_};
    return {};
  }

  [[nodiscard]] Hazard uncached_hazard(const Data& data, Bytes bytes) const {
    if ((data.lost & bytes) != 0) return {lost_how_, lost_by_};
    if ((data.dirty & bytes) != 0) return {Cause::dirty, cached_by_};
    if (data.modified && (data.stale & bytes) != 0) return {Cause::overwritten, uncached_by_};
    return {};
  }

  void lose(Bytes bytes, Cause how, Place writer, Place by) {
    if (bytes == 0) return;
    data_.lost |= bytes;
    lost_how_ = how;
    lost_by_ = writer != 0 ? writer : by;
  }

  Data data_;
  Place cached_by_ = 0;    ///< who wrote last into a cache
  Place uncached_by_ = 0;  ///< who wrote last into memory
  Place written_by_ = 0;
  Place lost_by_ = 0;
  Bytes code_ = 0;             ///< written since all cores were told of instructions written before
  std::uint32_t written_ = 0;  ///< when
  std::uint32_t unified_ = 0;  ///< when it was cleaned to where instructions are read
  std::uint32_t instructions_ = 0;  ///< when instruction caches dropped it
  std::uint8_t resident_ = 0;       ///< whose caches may hold it
  Cause lost_how_ = Cause::none;
  bool in_memory_ = true;  ///< no byte of it was written into a cache since it was last in memory
};

}  // namespace latenz::coherence
