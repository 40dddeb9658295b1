// SPDX-License-Identifier: Apache-2.0
// Driver of the random data generator, whose interrupt the Latencies IP measures: freestanding.
#pragma once

#include <cstdint>

#include "latenz/ip/register_access.hpp"
#include "latenz/ip/registers/random_data_generator.hpp"

namespace latenz::ip {

namespace generator = registers::random_data_generator;

/// @tparam Registers how its registers are reached
template <RegisterAccess Registers>
class RandomDataGenerator {
 public:
  explicit constexpr RandomDataGenerator(Registers registers) : registers_(registers) {}

  /// Reads what an interrupt announced; the interrupt falls when nothing is left.
  ///
  /// For the interrupt handler, as its first action: the first access is the read of data that ends
  /// the measured latency, so nothing is asked before. Only after an interrupt: reading data that
  /// is not there is a bus error.
  ///
  /// @param use called with each word
  /// @return words read
  template <typename Use>
  [[gnu::always_inline]] std::uint32_t drain(Use use) {
    std::uint32_t words = 0;
    do {
      use(registers_.read(generator::data_offset));
      ++words;
    } while ((status() & generator::status_empty_mask) == 0);
    return words;
  }

  /// Reads what is there, if anything is: for before a series.
  void discard() {
    for (std::uint32_t left = level(); left > 0; --left) {
      static_cast<void>(registers_.read(generator::data_offset));
    }
  }

  /// Begins the sequence anew: the same seed makes the same words. Not 0, which the shift register
  /// would never leave.
  bool set_seed(std::uint32_t seed) {
    if (seed == 0) return false;
    registers_.write(generator::seed_offset, seed);
    return true;
  }

  /// How many words an interrupt asks for: from 1 to the depth of the generator's memory.
  void set_words(std::uint32_t words) { registers_.write(generator::words_offset, words); }

  [[nodiscard]] std::uint32_t words() { return registers_.read(generator::words_offset); }

  /// Words that wait to be read.
  [[nodiscard]] std::uint32_t level() { return registers_.read(generator::level_offset); }

  [[nodiscard]] bool empty() { return (status() & generator::status_empty_mask) != 0; }
  [[nodiscard]] bool full() { return (status() & generator::status_full_mask) != 0; }
  [[nodiscard]] bool busy() { return (status() & generator::status_busy_mask) != 0; }

  /// Interrupts that asked for data while it was made, or not yet read.
  [[nodiscard]] std::uint32_t overruns() { return registers_.read(generator::overruns_offset); }

  /// Interrupts that asked for data.
  [[nodiscard]] std::uint32_t requests() { return registers_.read(generator::requests_offset); }

 private:
  [[nodiscard]] std::uint32_t status() { return registers_.read(generator::status_offset); }

  Registers registers_;
};

}  // namespace latenz::ip
