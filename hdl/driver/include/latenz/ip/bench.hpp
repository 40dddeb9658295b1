// SPDX-License-Identifier: Apache-2.0
// The processor's part in the bench (hdl/latency_bench): the handler of the logic's interrupt, and
// series of both Latencies IPs. Freestanding; the timer that asks for data is the caller's.
#pragma once

#include <cstdint>

#include "latenz/ip/latencies.hpp"
#include "latenz/ip/random_data_generator.hpp"

namespace latenz::ip {

/// Which latency: from the processor's interrupt to the logic's, or from there to the first word
/// that the handler has read.
enum class Way : std::uint8_t { t1, t2 };

/// @tparam Registers how all registers are reached
template <RegisterAccess Registers>
class Bench {
 public:
  constexpr Bench(const RandomDataGenerator<Registers>& generator, const Latencies<Registers>& t1,
                  const Latencies<Registers>& t2)
      : generator_(generator), t1_(t1), t2_(t2) {}

  /// How many samples a series can hold.
  [[nodiscard]] constexpr std::uint32_t capacity() const {
    return t1_.configuration().depth < t2_.configuration().depth ? t1_.configuration().depth
                                                                 : t2_.configuration().depth;
  }

  /// Begins a series of both, before the first interrupt. Words left over from before are read
  /// away: while they wait the logic's interrupt has no edge.
  ///
  /// @return whether both measure now; if not, nobody is there
  [[nodiscard]] bool start() {
    generator_.discard();
    handled_ = 0;
    t1_.start_series();
    t2_.start_series();
    return t1_.is_measuring() && t2_.is_measuring();
  }

  /// The handler of the logic's interrupt, as its first action: reads the words, nothing else.
  /// No other access of these registers may come from this core while a series runs: the handler
  /// would have to wait for it, and T2 would contain that.
  [[gnu::always_inline]] void on_interrupt() {
    static_cast<void>(generator_.drain([](std::uint32_t) {}));
    handled_ = handled_ + 1;
  }

  /// Interrupts handled in this series; needs no access.
  [[nodiscard]] std::uint32_t handled() const { return handled_; }

  /// Ends the series, with no interrupt under way.
  ///
  /// @return whether each IP has a sample of every interrupt handled
  [[nodiscard]] bool stop() {
    t1_.stop_series();
    t2_.stop_series();
    return t1_.num() == handled_ && t2_.num() == handled_;
  }

  /// A sample of the series that was stopped.
  ///
  /// @param index below `handled()` and `capacity()`
  [[nodiscard]] Sample sample(Way way, std::uint32_t index) {
    return way == Way::t1 ? t1_.sample(index) : t2_.sample(index);
  }

 private:
  RandomDataGenerator<Registers> generator_;
  Latencies<Registers> t1_;
  Latencies<Registers> t2_;
  volatile std::uint32_t handled_ = 0;  ///< written by the handler
};

}  // namespace latenz::ip
