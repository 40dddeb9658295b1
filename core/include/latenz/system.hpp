// SPDX-License-Identifier: Apache-2.0
// A system of partitions and interrupt sources under TDMA, as the analysis, the simulator and the
// adversary see it (beckert2014, sections 3 to 5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "latenz/cost_curve.hpp"
#include "latenz/event_model.hpp"
#include "latenz/slot_table.hpp"
#include "latenz/time.hpp"

namespace latenz {

/// How interrupts of partitions that do not own the slot are handled.
enum class Mode : std::uint8_t {
  plain,  ///< TDMA only: bottom handlers run in their own partition's slots
  paper,  ///< as published: a foreign-slot IRQ that the monitor grants is interposed at once
  carry,  ///< repaired: the monitor sees every IRQ, and an accepted one that is still pending at
          ///< the end of its own slot is interposed then
};

/// What the hypervisor itself costs.
struct Costs {
  Duration slot_switch;          ///< at the start of every slot
  Duration monitor;              ///< C_Mon
  Duration schedule;             ///< C_sched
  Duration context_switch;       ///< C_ctx
  Duration limit = Duration(0);  ///< C_lim, to mask a source that exceeds its limit (R7)

  /// What interposing adds to a bottom handler, Eq. (13).
  [[nodiscard]] constexpr Duration interposing() const { return schedule + (context_switch * 2); }
};

/// An interrupt source.
struct Source {
  std::uint32_t partition = 0;
  Duration top;     ///< C_TH, the top handler's worst case
  Duration bottom;  ///< C_BH, the bottom handler's worst case
  EventModel arrival;
  std::optional<DistanceVector> monitor;  ///< none: never interposed
  bool learns = false;  ///< its first IRQs are only learned from: no monitor accepts them
  std::optional<CostCurve> top_sums = std::nullopt;  ///< of consecutive top handlers, the first sum
                                                     ///< being `top`; none: each may take `top`
};

/// Partitions are numbered 0 .. partitions() - 1. The owner of the numbers has checked the rest:
/// every source's partition has a slot, costs are not negative, bottom handlers take time.
class System {
 public:
  System(std::span<const Slot> slots, Costs costs, std::vector<Source> sources)
      : table_(slots, costs.slot_switch), costs_(costs), sources_(std::move(sources)) {
    for (const Slot& slot : slots) {
      partitions_ = std::max<std::size_t>(partitions_, slot.partition + std::size_t{1});
    }
  }

  [[nodiscard]] const SlotTable& table() const { return table_; }
  [[nodiscard]] const Costs& costs() const { return costs_; }
  [[nodiscard]] std::span<const Source> sources() const { return sources_; }
  [[nodiscard]] std::size_t partitions() const { return partitions_; }

  /// The top handler with what the monitor adds, Eq. (15). Without a monitor nothing is added.
  [[nodiscard]] Duration top_cost(const Source& source, Mode mode) const {
    return source.top + asking_cost(source, mode);
  }

  /// What the monitor adds to each top handler: it is not a part of a source's cost curve.
  [[nodiscard]] Duration asking_cost(const Source& source, Mode mode) const {
    return mode != Mode::plain && source.monitor ? costs_.monitor : Duration();
  }

  /// Whether a source may ever be interposed.
  [[nodiscard]] static bool interposed(const Source& source, Mode mode) {
    return mode != Mode::plain && source.monitor.has_value();
  }

 private:
  SlotTable table_;
  Costs costs_;
  std::vector<Source> sources_;
  std::size_t partitions_ = 0;
};

}  // namespace latenz
