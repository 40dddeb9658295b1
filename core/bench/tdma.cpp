// SPDX-License-Identifier: Apache-2.0
// Times the analysis and the simulator from C++; prints one JSON object. Run by bench/tdma.py.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "latenz/bound.hpp"
#include "latenz/simulator.hpp"

namespace {

using namespace latenz;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

constexpr std::int64_t us = 1000;

double elapsed_ns(Clock::time_point since) {
  return std::chrono::duration<double, std::nano>(Clock::now() - since).count();
}

/// beckert2014, section 6.1: three slots; C_BH' = 144.4 us. Monitors grant what is up to a fifth
/// closer than sources come, so that bounds and enforced bounds differ.
System system_of(std::size_t sources, Duration distance) {
  const std::vector<Slot> slots = {
      {0, Duration(6000 * us)}, {1, Duration(6000 * us)}, {2, Duration(2000 * us)}};
  const Costs costs{Duration(50 * us), Duration(640), Duration(4385), Duration(50 * us)};
  const std::vector<Duration> monitor = {Duration(distance.ns() / 5 * 4)};
  std::vector<Source> list;
  list.reserve(sources);
  for (std::size_t i = 0; i < sources; ++i) {
    list.push_back({static_cast<std::uint32_t>(i % 3), Duration(5 * us), Duration(40 * us),
                    Periodic(distance, Duration(), Duration()), DistanceVector(monitor)});
  }
  return {slots, costs, std::move(list)};
}

double bound_ns(Mode mode, std::size_t sources) {
  const int repetitions = static_cast<int>(6000 / sources);
  std::int64_t sum = 0;
  const auto begin = Clock::now();
  for (int i = 0; i < repetitions; ++i) {
    const System system = system_of(sources, Duration((14440 * us) + i));
    sum += bound(system, mode).queues.front().latency.ns();
  }
  return sum > 0 ? elapsed_ns(begin) / repetitions : 0;
}

double simulated_irq_ns(Mode mode, Duration mean, std::int64_t irqs) {
  const System system = system_of(1, mean);
  std::vector<Arrivals> arrivals;
  arrivals.emplace_back(ExponentialArrivals(mean, Duration(), 1));
  NoObserver observer;
  const auto begin = Clock::now();
  Simulator<NoObserver> simulator(system, mode, std::move(arrivals), irqs, false, observer);
  while (!simulator.run(INT64_MAX)) {
  }
  return elapsed_ns(begin) / static_cast<double>(simulator.figures().front().n);
}

}  // namespace

int main() {  // NOLINT(bugprone-exception-escape): a benchmark may end like that
  constexpr std::int64_t irqs = 3'000'000;
  const struct {
    const char* name;
    Mode mode;
  } modes[] = {{"plain", Mode::plain}, {"paper", Mode::paper}, {"carry", Mode::carry}};
  std::printf("{");
  for (const auto& [name, mode] : modes) {
    for (const std::size_t sources : {3, 12}) {
      double best_bound = bound_ns(mode, sources);
      for (int i = 0; i < 8; ++i) {
        best_bound = std::min(best_bound, bound_ns(mode, sources));
      }
      std::printf("\"bound_%s_%zu_sources_ns\": %.0f, ", name, sources, best_bound);
    }
    for (const std::int64_t percent : {1, 10}) {
      const Duration mean(14440 * us / percent);
      double best = simulated_irq_ns(mode, mean, irqs);
      for (int i = 0; i < 2; ++i) {
        best = std::min(best, simulated_irq_ns(mode, mean, irqs));
      }
      std::printf("\"simulated_irq_%s_%lld_percent_ns\": %.1f, ", name,
                  static_cast<long long>(percent), best);
    }
  }
  std::printf("\"irqs\": %lld}\n", static_cast<long long>(irqs));
}
