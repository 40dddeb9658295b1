// SPDX-License-Identifier: Apache-2.0
// Random data generator, registers: byte offsets, and where the fields are: value = (word & mask)
// >> shift. Resets are those of an IP with everything. An interrupt from the processor makes random
// words; the generator's own interrupt says that they can be read.
// Generated from hdl/registers/random_data_generator.rdl by hdl/registers/generate: edit that, not
// this.
#pragma once

#include <cstdint>

namespace latenz::ip::registers::random_data_generator {

/// Data.
inline constexpr std::uint32_t data_offset = 0x00;
/// The oldest word. Reading takes it out of the FIFO; with an empty FIFO the read answers SLVERR
/// and changes nothing.
inline constexpr std::uint32_t data_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t data_shift = 0;

/// Seed.
inline constexpr std::uint32_t seed_offset = 0x04;
inline constexpr std::uint32_t seed_reset = 0x00000001;
/// Writing it restarts the sequence of random words from this value; 0 counts as 1.
inline constexpr std::uint32_t seed_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t seed_shift = 0;

/// Words.
inline constexpr std::uint32_t words_offset = 0x08;
/// How many words an interrupt makes: more than fit fill the FIFO; 0 makes none and no interrupt.
inline constexpr std::uint32_t words_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t words_shift = 0;

/// Level.
inline constexpr std::uint32_t level_offset = 0x0C;
/// Words in the FIFO.
inline constexpr std::uint32_t level_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t level_shift = 0;

/// Status.
inline constexpr std::uint32_t status_offset = 0x10;
/// The FIFO is empty.
inline constexpr std::uint32_t status_empty_mask = 0x00000001;
inline constexpr std::uint32_t status_empty_shift = 0;
/// The FIFO is full.
inline constexpr std::uint32_t status_full_mask = 0x00000002;
inline constexpr std::uint32_t status_full_shift = 1;
/// Words are being made.
inline constexpr std::uint32_t status_busy_mask = 0x00000004;
inline constexpr std::uint32_t status_busy_shift = 2;

/// Overruns.
inline constexpr std::uint32_t overruns_offset = 0x14;
/// Requests that came while busy or before the FIFO was drained; stops at its maximum.
inline constexpr std::uint32_t overruns_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t overruns_shift = 0;

/// Requests.
inline constexpr std::uint32_t requests_offset = 0x18;
/// Rising edges of ps_pl_irq, overruns among them; stops at its maximum.
inline constexpr std::uint32_t requests_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t requests_shift = 0;

}  // namespace latenz::ip::registers::random_data_generator
