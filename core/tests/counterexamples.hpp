// SPDX-License-Identifier: Apache-2.0
// Eight systems in which Eqs. (11) and (16) of beckert2014, as printed, are exceeded, with what a
// slow model, written independently of this code, says about them. All times in ns.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "latenz/system.hpp"

struct ExpectedFigures {
  std::int64_t bound[3];      ///< sound bounds in modes plain, paper and carry
  std::int64_t eq11;          ///< as printed
  std::int64_t eq16;          ///< as printed
  std::int64_t simulated[3];  ///< highest latency for the listed arrivals
};

struct Counterexample {
  std::string name;
  latenz::System system;
  std::vector<std::vector<std::int64_t>> arrivals;  ///< by source
  std::vector<ExpectedFigures> expected;            ///< by source
};

namespace counterexamples {

inline constexpr latenz::Mode modes[] = {latenz::Mode::plain, latenz::Mode::paper,
                                         latenz::Mode::carry};

inline latenz::DistanceVector vector(std::initializer_list<std::int64_t> distances_ns) {
  std::vector<latenz::Duration> distances;
  for (const std::int64_t ns : distances_ns) {
    distances.emplace_back(ns);
  }
  return latenz::DistanceVector(distances);
}

/// A source with a top handler of 5 us that comes every 10 ms.
inline latenz::Source every_10_ms(std::uint32_t partition, std::int64_t bottom_ns) {
  return {.partition = partition,
          .top = latenz::Duration(5000),
          .bottom = latenz::Duration(bottom_ns),
          .arrival = latenz::Periodic(latenz::Duration(10'000'000), {}, {}),
          .monitor = {}};
}

/// The same with a monitor that it keeps.
inline latenz::Source monitored(std::uint32_t partition, std::int64_t bottom_ns) {
  latenz::Source source = every_10_ms(partition, bottom_ns);
  source.monitor = vector({10'000'000});
  return source;
}

/// Partition i owns slot i.
inline latenz::System system(std::initializer_list<std::int64_t> slots_ns, latenz::Costs costs,
                             std::vector<latenz::Source> sources) {
  std::vector<latenz::Slot> slots;
  for (const std::int64_t ns : slots_ns) {
    slots.push_back(
        {.partition = static_cast<std::uint32_t>(slots.size()), .length = latenz::Duration(ns)});
  }
  return {slots, costs, std::move(sources)};
}

inline latenz::Costs costs(std::int64_t slot_switch, std::int64_t monitor, std::int64_t schedule,
                           std::int64_t context_switch) {
  return {.slot_switch = latenz::Duration(slot_switch),
          .monitor = latenz::Duration(monitor),
          .schedule = latenz::Duration(schedule),
          .context_switch = latenz::Duration(context_switch)};
}

inline std::vector<Counterexample> all() {
  constexpr std::int64_t slot = 1'000'000;
  const latenz::Costs usual = costs(0, 1000, 4000, 25'000);
  latenz::Source bursty = monitored(0, 40'000);
  bursty.arrival = vector({100'000, 800'000});
  bursty.monitor = vector({600'000});
  return {
      {.name = "own-slot-switch",
       .system = system({slot, slot}, costs(50'000, 0, 0, 0), {every_10_ms(0, 40'000)}),
       .arrivals = {{1'000'000}},
       .expected = {{.bound = {1'095'000, 1'095'000, 1'095'000},
                     .eq11 = 1'045'000,
                     .eq16 = 45'000,
                     .simulated = {1'090'000, 1'090'000, 1'090'000}}}},
      {.name = "shared-queue",
       .system = system({slot, slot}, costs(0, 0, 0, 0),
                        {every_10_ms(0, 40'000), every_10_ms(0, 200'000)}),
       .arrivals = {{1'000'000}, {999'999}},
       .expected = {{.bound = {1'250'000, 1'250'000, 1'250'000},
                     .eq11 = 1'050'000,
                     .eq16 = 50'000,
                     .simulated = {1'240'000, 1'240'000, 1'240'000}},
                    {.bound = {1'250'000, 1'250'000, 1'250'000},
                     .eq11 = 1'210'000,
                     .eq16 = 210'000,
                     .simulated = {1'200'001, 1'200'001, 1'200'001}}}},
      {.name = "slot-end-cut",
       .system = system({slot, slot}, usual, {monitored(0, 40'000)}),
       .arrivals = {{975'000}},
       .expected = {{.bound = {1'045'000, 1'100'000, 100'000},
                     .eq11 = 1'045'000,
                     .eq16 = 100'000,
                     .simulated = {1'045'000, 1'045'000, 75'000}}}},
      {.name = "other-interposed",
       .system = system({slot, slot, slot}, usual, {monitored(0, 40'000), monitored(1, 300'000)}),
       .arrivals = {{2'300'000}, {2'299'999}},
       .expected = {{.bound = {2'050'000, 2'460'000, 460'000},
                     .eq11 = 2'050'000,
                     .eq16 = 105'000,
                     .simulated = {740'000, 434'999, 434'999}},
                    {.bound = {2'310'000, 2'460'000, 460'000},
                     .eq11 = 2'310'000,
                     .eq16 = 365'000,
                     .simulated = {2'000'001, 341'000, 341'000}}}},
      {.name = "other-monitor-cost",
       .system = system(
           {slot, slot, slot}, costs(0, 20'000, 4000, 25'000),
           {monitored(0, 40'000), monitored(0, 1000), monitored(0, 1000), monitored(0, 1000)}),
       .arrivals = {{2'300'000}, {2'299'997}, {2'299'998}, {2'299'999}},
       .expected = {{.bound = {2'063'000, 2'359'000, 359'000},
                     .eq11 = 2'060'000,
                     .eq16 = 134'000,
                     .simulated = {743'000, 333'997, 333'997}},
                    {.bound = {2'063'000, 2'359'000, 359'000},
                     .eq11 = 2'021'000,
                     .eq16 = 95'000,
                     .simulated = {701'003, 130'000, 130'000}},
                    {.bound = {2'063'000, 2'359'000, 359'000},
                     .eq11 = 2'021'000,
                     .eq16 = 95'000,
                     .simulated = {702'002, 184'999, 184'999}},
                    {.bound = {2'063'000, 2'359'000, 359'000},
                     .eq11 = 2'021'000,
                     .eq16 = 95'000,
                     .simulated = {703'001, 239'998, 239'998}}}},
      {.name = "direct-hit-by-interposed",
       .system = system({slot, slot}, usual, {every_10_ms(0, 40'000), monitored(1, 300'000)}),
       .arrivals = {{1'000'000}, {2'000'000}},
       .expected = {{.bound = {1'050'000, 1'405'000, 1'405'000},
                     .eq11 = 1'050'000,
                     .eq16 = 105'000,
                     .simulated = {1'045'000, 1'400'000, 1'400'000}},
                    {.bound = {1'310'000, 1'365'000, 365'000},
                     .eq11 = 1'310'000,
                     .eq16 = 365'000,
                     .simulated = {1'300'000, 335'000, 335'000}}}},
      {.name = "one-violation-shifts-queue",
       .system = system({slot, 3 * slot}, usual, {bursty}),
       .arrivals = {{1'000'000, 1'100'000, 1'900'000, 2'700'000}},
       .expected = {{.bound = {3'080'000, 3'424'000, 3'424'000},
                     .eq11 = 3'080'000,
                     .eq16 = 100'000,
                     .simulated = {3'040'000, 1'340'000, 1'340'000}}}},
      {.name = "switch-inside-interposed",
       .system =
           system({slot, slot, slot}, costs(50'000, 1000, 4000, 25'000), {monitored(0, 40'000)}),
       .arrivals = {{1'990'000}},
       .expected = {{.bound = {2'095'000, 2'150'000, 150'000},
                     .eq11 = 2'045'000,
                     .eq16 = 100'000,
                     .simulated = {1'100'000, 125'000, 125'000}}}},
  };
}

}  // namespace counterexamples
