// SPDX-License-Identifier: Apache-2.0
// Stream ring writer, registers: byte offsets, and where the fields are: value = (word & mask) >>
// shift. Resets are those of an IP with everything. Records of 16 bytes from a stream to a ring in
// memory. written and consumed count records modulo 2**32 and are never reset but by aresetn:
// record i lies at base + 16 (i mod 2**size_log2).
// Generated from hdl/registers/stream_ring_writer.rdl by hdl/registers/generate: edit that, not
// this.
#pragma once

#include <cstdint>

namespace latenz::ip::registers::stream_ring_writer {

/// Enable.
inline constexpr std::uint32_t enable_offset = 0x00;
inline constexpr std::uint32_t enable_reset = 0x00000000;
/// 1: take records from the stream. 0: the stream waits; the writes under way are finished.
inline constexpr std::uint32_t enable_mask = 0x00000001;
inline constexpr std::uint32_t enable_shift = 0;

/// Base address, low word.
inline constexpr std::uint32_t base_low_offset = 0x04;
inline constexpr std::uint32_t base_low_reset = 0x00000000;
/// Address of the ring in memory, bits 31:4; a multiple of 16. Change it only while disabled and
/// idle.
inline constexpr std::uint32_t base_low_mask = 0xFFFFFFF0;
inline constexpr std::uint32_t base_low_shift = 4;

/// Base address, high word.
inline constexpr std::uint32_t base_high_offset = 0x08;
inline constexpr std::uint32_t base_high_reset = 0x00000000;
/// Address of the ring in memory, from bit 32 on; bits the bus does not have read 0.
inline constexpr std::uint32_t base_high_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t base_high_shift = 0;

/// Size of the ring.
inline constexpr std::uint32_t size_log2_offset = 0x0C;
inline constexpr std::uint32_t size_log2_reset = 0x00000000;
/// The ring has 2**size_log2 records. Change it only while disabled and idle.
inline constexpr std::uint32_t size_log2_mask = 0x0000001F;
inline constexpr std::uint32_t size_log2_shift = 0;

/// Records written.
inline constexpr std::uint32_t written_offset = 0x10;
/// Records that are in memory: counted when the memory has answered.
inline constexpr std::uint32_t written_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t written_shift = 0;

/// Records consumed.
inline constexpr std::uint32_t consumed_offset = 0x14;
inline constexpr std::uint32_t consumed_reset = 0x00000000;
/// Records that software does not need any more, counted as written is. No place is written again
/// before.
inline constexpr std::uint32_t consumed_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t consumed_shift = 0;

/// Records dropped.
inline constexpr std::uint32_t dropped_offset = 0x18;
/// Records that were taken from the stream and lost in a bus error; stops at its greatest value.
inline constexpr std::uint32_t dropped_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t dropped_shift = 0;

/// Status.
inline constexpr std::uint32_t status_offset = 0x1C;
/// The ring has no place: the stream waits.
inline constexpr std::uint32_t status_full_mask = 0x00000001;
inline constexpr std::uint32_t status_full_shift = 0;
/// No write is under way.
inline constexpr std::uint32_t status_idle_mask = 0x00000002;
inline constexpr std::uint32_t status_idle_shift = 1;
/// The memory refused a write (SLVERR, DECERR). Nothing more is taken until 1 is written here; then
/// the ring goes on behind the last record written.
inline constexpr std::uint32_t status_bus_error_mask = 0x00000004;
inline constexpr std::uint32_t status_bus_error_shift = 2;

/// Interrupt threshold.
inline constexpr std::uint32_t threshold_offset = 0x20;
inline constexpr std::uint32_t threshold_reset = 0x00000000;
/// interrupt is 1 while at least so many records are written and not consumed; 0: never.
inline constexpr std::uint32_t threshold_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t threshold_shift = 0;

}  // namespace latenz::ip::registers::stream_ring_writer
