// SPDX-License-Identifier: Apache-2.0
// Samples that a stream ring writer puts in a ring in memory, so that a run has no end:
// freestanding, without heap, exceptions or waiting.
//
// The writer owns what lies between consumed and written + the writes under way; this reader owns
// the rest. The memory must not be cached, or be coherent with the writer's port. One thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "latenz/ip/register_access.hpp"
#include "latenz/ip/registers/stream_ring_writer.hpp"

namespace latenz::ip {

namespace ring = registers::stream_ring_writer;

/// One record of a stream, as latencies_ip sends it.
struct StreamSample {
  std::uint64_t start = 0;    ///< cycle of the interrupt
  std::uint64_t latency = 0;  ///< cycles
  std::uint8_t channel = 0;   ///< generic channel_g of the IP
  bool saturated = false;     ///< the latency was longer
  std::uint8_t sequence = 0;  ///< of the channel, modulo 128

  static constexpr std::uint32_t record_bytes = 16;
  static constexpr std::uint8_t sequence_modulus = 128;

  /// From the record's four words, lowest address first.
  static constexpr StreamSample decode(std::uint32_t word0, std::uint32_t word1,
                                       std::uint32_t word2, std::uint32_t word3) {
    return {.start = word0 | std::uint64_t{word1} << 32U,
            .latency = word2 | std::uint64_t{word3 & 0xFFFFU} << 32U,
            .channel = static_cast<std::uint8_t>(word3 >> 16U),
            .saturated = (word3 >> 24U & 1U) != 0,
            .sequence = static_cast<std::uint8_t>(word3 >> 25U)};
  }

  /// Records of this channel that were lost between the one before and this, modulo 128.
  [[nodiscard]] constexpr std::uint8_t lost_since(const StreamSample& before) const {
    return static_cast<std::uint8_t>((sequence_modulus + sequence - before.sequence - 1) %
                                     sequence_modulus);
  }
};

/// @tparam Registers how the writer's registers are reached
/// @tparam Memory    how the ring is reached: words at byte offsets from its base
template <RegisterAccess Registers, RegisterReads Memory>
class StreamRing {
 public:
  constexpr StreamRing(Registers registers, Memory memory)
      : registers_(registers), memory_(memory) {}

  /// Gives the writer its ring and lets it take records. Where it was on, it is stopped first, and
  /// what was not read is forgotten, a bus error included.
  ///
  /// @param base         the ring's address as the writer's port sees it: a multiple of 16
  /// @param log2_records its size: 2^log2_records records, fewer than 2^32 bytes
  /// @return false, with the writer stopped, if a parameter is wrong or writes are still under way:
  ///         then again later
  [[nodiscard]] bool start(std::uint64_t base, std::uint32_t log2_records) {
    registers_.write(ring::enable_offset, 0);
    constexpr std::uint32_t most_log2 = 27;
    if (base % StreamSample::record_bytes != 0 || log2_records > most_log2) return false;
    if ((registers_.read(ring::status_offset) & ring::status_idle_mask) == 0) return false;
    registers_.write(ring::base_low_offset, static_cast<std::uint32_t>(base));
    registers_.write(ring::base_high_offset, static_cast<std::uint32_t>(base >> 32U));
    registers_.write(ring::size_log2_offset, log2_records);
    consumed_ = registers_.read(ring::written_offset);
    registers_.write(ring::consumed_offset, consumed_);
    records_ = 1U << log2_records;
    resume();
    registers_.write(ring::enable_offset, ring::enable_mask);
    return true;
  }

  /// The writer takes no more; what it has written can be read.
  void stop() { registers_.write(ring::enable_offset, 0); }

  /// The writer's interrupt is raised while so many records wait; 0: never.
  void interrupt_from(std::uint32_t records) { registers_.write(ring::threshold_offset, records); }

  /// Records that wait to be read; none after a reset of the writer.
  [[nodiscard]] std::uint32_t available() {
    const std::uint32_t waiting = ahead();
    return waiting <= records_ ? waiting : 0;
  }

  /// Whether the writer counts more than the ring holds: it was reset, and only `start` helps.
  [[nodiscard]] bool was_reset() { return ahead() > records_; }

  /// Reads the oldest records, and gives their places back.
  ///
  /// @param use  called with each StreamSample, in order
  /// @param most records at most: bounds the time this takes
  /// @return records read
  template <typename Use>
  std::uint32_t read(Use use, std::uint32_t most) {
    const std::uint32_t waiting = available();
    const std::uint32_t count = waiting < most ? waiting : most;
    read_fence();
    for (std::uint32_t i = 0; i < count; ++i) use(record(consumed_ + i));
    consumed_ += count;
    read_fence();  // the places are free once they were read, not before
    if (count > 0) registers_.write(ring::consumed_offset, consumed_);
    return count;
  }

  /// Whether the memory refused a write: nothing more comes until `resume`.
  [[nodiscard]] bool bus_error() {
    return (registers_.read(ring::status_offset) & ring::status_bus_error_mask) != 0;
  }

  void resume() { registers_.write(ring::status_offset, ring::status_bus_error_mask); }

  /// Records lost in bus errors.
  [[nodiscard]] std::uint32_t dropped() { return registers_.read(ring::dropped_offset); }

 private:
  /// Orders what is read before it against all accesses after it, also for devices.
  static void read_fence() {
#if defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("dmb osh" ::: "memory");
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }

  [[nodiscard]] std::uint32_t ahead() { return registers_.read(ring::written_offset) - consumed_; }

  [[nodiscard]] StreamSample record(std::uint32_t number) {
    const std::uint32_t at = (number & (records_ - 1)) * StreamSample::record_bytes;
    const std::uint32_t word0 = memory_.read(at);
    const std::uint32_t word1 = memory_.read(at + 4);
    const std::uint32_t word2 = memory_.read(at + 8);
    return StreamSample::decode(word0, word1, word2, memory_.read(at + 12));
  }

  Registers registers_;
  Memory memory_;
  std::uint32_t consumed_ = 0;
  std::uint32_t records_ = 1;
};

}  // namespace latenz::ip
