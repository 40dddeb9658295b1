// SPDX-License-Identifier: Apache-2.0
// Event models, systems and bounds. Python checks what it passes (latenz.system); here only what
// would break the core is refused.
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "core.hpp"
#include "latenz/bound.hpp"
#include "latenz/cost_curve.hpp"
#include "latenz/event_model.hpp"
#include "latenz/learner.hpp"
#include "latenz/monitor.hpp"
#include "latenz/printed_equations.hpp"
#include "latenz/system.hpp"

namespace nb = nanobind;

namespace latenz::python {
namespace {

using Nanoseconds = std::vector<std::int64_t>;
using Learner = DistanceLearner<longest_distance_vector>;
using Monitor = DistanceMonitor<longest_distance_vector>;

std::vector<Duration> durations(const Nanoseconds& nanoseconds) {
  if (nanoseconds.empty() || nanoseconds.size() > longest_distance_vector) {
    throw nb::value_error("a vector of minimum distances or of sums has 1 to 64 entries");
  }
  std::vector<Duration> result;
  for (const auto each : nanoseconds) {
    if (each < 0) throw nb::value_error("a minimum distance or a sum is not negative");
    result.emplace_back(each);
  }
  return result;
}

Nanoseconds nanoseconds(std::span<const Duration> durations) {
  Nanoseconds result;
  for (const auto each : durations) result.push_back(each.ns());
  return result;
}

std::optional<std::int64_t> bounded(Duration duration) {
  if (duration.is_unbounded()) return std::nullopt;
  return duration.ns();
}

DistanceVector distance_vector(const Nanoseconds& distances) {
  return DistanceVector(durations(distances));
}

System system(const std::vector<std::pair<std::uint32_t, std::int64_t>>& slots, const Costs& costs,
              const nb::sequence& sources) {
  std::vector<Slot> table;
  for (const auto& [partition, length] : slots) {
    if (length <= costs.slot_switch.ns() || length <= 0) {
      throw nb::value_error("a slot is longer than the slot switch");
    }
    table.push_back({partition, Duration(length)});
  }
  if (table.empty()) throw nb::value_error("a cycle has at least one slot");
  std::vector<Source> list;
  for (const nb::handle each : sources) list.push_back(nb::cast<const Source&>(each));
  System result(table, costs, std::move(list));
  for (const auto& each : result.sources()) {
    if (each.partition >= result.partitions()) throw nb::value_error("a partition has no slot");
  }
  return result;
}

/// Reads sequences one by one: several times faster than the conversion of whole vectors.
struct SystemOfPairs {
  static void init(System* self, const nb::sequence& slots, const Costs& costs,
                   const nb::sequence& sources) {
    std::vector<std::pair<std::uint32_t, std::int64_t>> pairs;
    for (const nb::handle each : slots) {
      pairs.emplace_back(nb::cast<std::uint32_t>(each[0]), nb::cast<std::int64_t>(each[1]));
    }
    new (self) System(system(pairs, costs, sources));
  }
};

template <typename Model>
auto eta() {
  return [](const Model& model, std::int64_t window) -> std::optional<Count> {
    const Count count = model.eta(Duration(window));
    if (count == endless) return std::nullopt;
    return count;
  };
}

template <typename Model>
auto delta() {
  return [](const Model& model, Count q) { return model.delta(q).ns(); };
}

SystemBound bound_of(const System& system, Mode mode, std::int64_t horizon) {
  const nb::gil_scoped_release release;
  return bound(system, mode, Duration(horizon));
}

std::optional<std::int64_t> printed(const System& system, std::size_t source,
                                    PrintedEquation::Number number, std::int64_t horizon) {
  if (source >= system.sources().size()) throw nb::index_error("no such source");
  return bounded(PrintedEquation(system, source, number, Duration(horizon)).latency());
}

void bind_models(nb::module_& module) {
  nb::class_<Periodic>(module, "Periodic")
      .def("__init__",
           [](Periodic* self, std::int64_t period, std::int64_t jitter, std::int64_t distance) {
             if (period <= 0) throw nb::value_error("a period is positive");
             new (self) Periodic(Duration(period), Duration(jitter), Duration(distance));
           })
      .def("eta", eta<Periodic>(), nb::arg("window_ns"))
      .def("delta", delta<Periodic>(), nb::arg("q"));
  nb::class_<DistanceVector>(module, "DistanceVector")
      .def("__init__",
           [](DistanceVector* self, const Nanoseconds& distances) {
             new (self) DistanceVector(distance_vector(distances));
           })
      .def("eta", eta<DistanceVector>(), nb::arg("window_ns"))
      .def("delta", delta<DistanceVector>(), nb::arg("q"))
      .def("closed", [](const DistanceVector& vector) { return nanoseconds(vector.closed()); });
  nb::class_<Unlimited>(module, "Unlimited").def(nb::init<>());
  nb::class_<CostCurve>(module, "CostCurve")
      .def("__init__",
           [](CostCurve* self, const Nanoseconds& sums) { new (self) CostCurve(durations(sums)); })
      .def(
          "sum", [](const CostCurve& curve, Count q) { return bounded(curve.sum(q)); },
          nb::arg("q"))
      .def("closed", [](const CostCurve& curve) { return nanoseconds(curve.closed()); });
}

EventModel event_model(const nb::handle model) {
  if (nb::isinstance<Periodic>(model)) return nb::cast<const Periodic&>(model);
  if (nb::isinstance<DistanceVector>(model)) return nb::cast<const DistanceVector&>(model);
  return nb::cast<const Unlimited&>(model);
}

void bind_system(nb::module_& module) {
  nb::enum_<Mode>(module, "Mode")
      .value("plain", Mode::plain)
      .value("paper", Mode::paper)
      .value("carry", Mode::carry);
  nb::class_<Costs>(module, "Costs")
      .def("__init__", [](Costs* self, std::int64_t slot_switch, std::int64_t monitor,
                          std::int64_t schedule, std::int64_t context_switch, std::int64_t limit) {
        new (self) Costs{Duration(slot_switch), Duration(monitor), Duration(schedule),
                         Duration(context_switch), Duration(limit)};
      });
  nb::class_<Source>(module, "Source")
      .def(
          "__init__",
          [](Source* self, std::uint32_t partition, std::int64_t top, std::int64_t bottom,
             const nb::object& arrival, const DistanceVector* monitor, bool learns,
             const CostCurve* top_sums) {
            if (bottom <= 0) throw nb::value_error("a bottom handler takes time");
            if (top_sums != nullptr && top_sums->sum(1) != Duration(top)) {
              throw nb::value_error("the first sum is one top handler alone");
            }
            new (self) Source{partition,
                              Duration(top),
                              Duration(bottom),
                              event_model(arrival),
                              monitor == nullptr ? std::nullopt : std::optional(*monitor),
                              learns,
                              top_sums == nullptr ? std::nullopt : std::optional(*top_sums)};
          },
          nb::arg("partition"), nb::arg("top_ns"), nb::arg("bottom_ns"), nb::arg("arrival"),
          nb::arg("monitor").none(), nb::arg("learns"), nb::arg("top_sums").none());
  nb::class_<System>(module, "System").def("__init__", &SystemOfPairs::init);
}

/// Everything at once, as numbers: an analysis in Python has little time.
nb::tuple evidence(const QueueBound& bound) {
  nb::list shares;
  for (const auto& share : bound.shares) {
    shares.append(nb::make_tuple(share.top_handlers, share.top.ns(), share.bottom_handlers,
                                 share.bottom.ns(), share.interposed, share.interposing.ns()));
  }
  return nb::make_tuple(static_cast<int>(bound.verdict), static_cast<int>(bound.reason),
                        bound.culprit, bound.interposed, bounded(bound.latency),
                        bounded(bound.busy_window), bound.offset.ns(), bound.blocked.ns(),
                        bound.switches.ns(), shares);
}

/// Why a partition has no enforced bound.
nb::tuple not_enforced(const SystemBound& bound, std::size_t partition) {
  const QueueBound& queue = bound.enforced.at(partition);
  return nb::make_tuple(static_cast<int>(queue.reason), queue.culprit, queue.interposed);
}

void bind_bounds(nb::module_& module) {
  nb::class_<SystemBound>(module, "SystemBound")
      .def_prop_ro("queues",
                   [](const SystemBound& bound) {
                     nb::list queues;
                     for (const auto& queue : bound.queues) queues.append(evidence(queue));
                     return queues;
                   })
      .def_prop_ro("enforced_ns",
                   [](const SystemBound& bound) {
                     nb::list latencies;
                     for (const auto& queue : bound.enforced) {
                       latencies.append(bounded(queue.latency));
                     }
                     return latencies;
                   })
      .def("not_enforced", &not_enforced)
      .def_prop_ro("promises", [](const SystemBound& bound) {
        const Promise& modelled = bound.promise;
        const Promise& enforced = bound.enforced_promise;
        return nb::make_tuple(bounded(enforced.per_cycle), nanoseconds(enforced.per_slot),
                              bounded(modelled.per_cycle), nanoseconds(modelled.per_slot));
      });
  module.def("bound", &bound_of, nb::arg("system"), nb::arg("mode"), nb::arg("horizon_ns"));
  nb::enum_<PrintedEquation::Number>(module, "Equation")
      .value("eq11", PrintedEquation::Number::eq11)
      .value("eq16", PrintedEquation::Number::eq16);
  module.def("printed", &printed, nb::arg("system"), nb::arg("source"), nb::arg("equation"),
             nb::arg("horizon_ns"));
}

void observe(Learner& learner, const Values& times) {
  const nb::gil_scoped_release release;
  for (std::size_t i = 0; i < times.size(); ++i) learner.observe(Instant(times.data()[i]));
}

void bind_monitor(nb::module_& module) {
  nb::class_<Learner>(module, "DistanceLearner")
      .def(nb::init<>())
      .def("observe", &observe, nb::arg("times_ns"))
      .def_prop_ro("observed_ns",
                   [](const Learner& learner) { return nanoseconds(learner.observed()); });
  nb::class_<Monitor>(module, "DistanceMonitor")
      .def("__init__",
           [](Monitor* self, const Nanoseconds& distances) {
             new (self) Monitor(durations(distances));
           })
      .def(
          "accept", [](Monitor& monitor, std::int64_t at) { return monitor.accept(Instant(at)); },
          nb::arg("at_ns"));
  module.def(
      "raise_to",
      [](const Nanoseconds& learned, const Nanoseconds& allowed) {
        auto raised = durations(learned);
        raise_to(raised, durations(allowed));
        return nanoseconds(raised);
      },
      nb::arg("learned_ns"), nb::arg("allowed_ns"));
}

}  // namespace

void bind_tdma(nb::module_& module) {
  bind_models(module);
  bind_system(module);
  bind_bounds(module);
  bind_monitor(module);
}

}  // namespace latenz::python
