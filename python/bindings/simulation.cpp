// SPDX-License-Identifier: Apache-2.0
// Simulations: run in steps without Python's lock, records and segments handed over in batches.
#include "latenz/simulator.hpp"

#include <memory>
#include <utility>
#include <vector>

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "core.hpp"
#include "latenz/arrivals.hpp"

namespace nb = nanobind;

namespace latenz::python {
namespace {

using Column = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

constexpr std::size_t batch = std::size_t{1} << 16U;

/// Hands a column of numbers to numpy, which frees it.
Column to_numpy(std::vector<std::int64_t> numbers) {
  auto owned = std::make_unique<std::vector<std::int64_t>>(std::move(numbers));
  auto* const column = owned.release();
  const nb::capsule free(column, [](void* memory) noexcept {
    delete static_cast<std::vector<std::int64_t>*>(memory);
  });
  return Column(column->data(), {column->size()}, free);
}

struct Segment {
  Activity activity;
  std::uint32_t partition;
  std::uint32_t source;
  Instant start;
  Instant end;
};

/// Collects IRQs, and what the processor does if asked for.
template <bool WithSegments>
struct Collector {
  static constexpr bool segments = WithSegments;
  std::vector<IrqRecord> irqs;
  std::vector<Segment> activities;

  void irq(const IrqRecord& record) { irqs.push_back(record); }
  void segment(Activity activity, std::uint32_t partition, std::uint32_t source, Instant start,
               Instant end) {
    activities.push_back({activity, partition, source, start, end});
  }
  [[nodiscard]] bool full() const { return irqs.size() >= batch || activities.size() >= batch; }
};

/// One source's arrivals: what Python describes, turned into a stream with a seed of its own.
struct Stream {
  enum class Kind : std::uint8_t { listed, periodic, exponential, sporadic } kind;
  std::vector<Values> times;  ///< listed: one array, kept alive here
  std::vector<Duration> figures;
  std::uint64_t seed = 0;

  [[nodiscard]] Arrivals open() const {
    switch (kind) {
      case Kind::listed:
        return Arrivals(ListedArrivals({times.front().data(), times.front().size()}));
      case Kind::periodic:
        return Arrivals(PeriodicArrivals(figures[0], figures[1], figures[2], seed));
      case Kind::exponential:
        return Arrivals(ExponentialArrivals(figures[0], figures[1], seed));
      case Kind::sporadic:
        break;
    }
    return Arrivals(SporadicArrivals(figures, seed));
  }
};

class AnySimulation {
 public:
  AnySimulation() = default;
  AnySimulation(const AnySimulation&) = delete;
  AnySimulation& operator=(const AnySimulation&) = delete;
  AnySimulation(AnySimulation&&) = delete;
  AnySimulation& operator=(AnySimulation&&) = delete;
  virtual ~AnySimulation() = default;
  virtual bool run(std::int64_t steps) = 0;
  virtual void monitor_from(std::size_t source, Instant at) = 0;
  virtual void limit_arrivals() = 0;
  [[nodiscard]] virtual std::span<const SourceFigures> figures() const = 0;
  [[nodiscard]] virtual std::int64_t now() const = 0;
  virtual std::vector<IrqRecord> take_irqs() = 0;
  virtual std::vector<Segment> take_segments() = 0;
};

template <typename Observer>
class SimulationOf final : public AnySimulation {
 public:
  SimulationOf(System system, Mode mode, std::vector<Stream> streams, std::int64_t irqs,
               bool from_top)
      : system_(std::move(system)),
        streams_(std::move(streams)),
        simulator_(system_, mode, open(streams_), irqs, from_top, observer_) {}

  bool run(std::int64_t steps) override {
    const nb::gil_scoped_release release;
    return simulator_.run(steps);
  }
  void monitor_from(std::size_t source, Instant at) override {
    if (source >= system_.sources().size()) throw nb::index_error("no such source");
    simulator_.monitor_from(source, at);
  }
  void limit_arrivals() override { simulator_.limit_arrivals(); }
  [[nodiscard]] std::span<const SourceFigures> figures() const override {
    return simulator_.figures();
  }
  [[nodiscard]] std::int64_t now() const override { return simulator_.now().ns(); }

  std::vector<IrqRecord> take_irqs() override {
    if constexpr (requires { observer_.irqs; }) return std::exchange(observer_.irqs, {});
    return {};
  }
  std::vector<Segment> take_segments() override {
    if constexpr (requires { observer_.irqs; }) return std::exchange(observer_.activities, {});
    return {};
  }

 private:
  static std::vector<Arrivals> open(const std::vector<Stream>& streams) {
    std::vector<Arrivals> result;
    for (const auto& stream : streams) result.push_back(stream.open());
    return result;
  }

  System system_;
  std::vector<Stream> streams_;
  Observer observer_;
  Simulator<Observer> simulator_;
};

enum class Watch : std::uint8_t { figures, irqs, segments };

std::unique_ptr<AnySimulation> simulation(const System& system, Mode mode,
                                          const std::vector<Stream>& streams, std::int64_t irqs,
                                          bool from_top, Watch watch) {
  if (streams.size() != system.sources().size()) {
    throw nb::value_error("each source has its arrivals");
  }
  switch (watch) {
    case Watch::irqs:
      return std::make_unique<SimulationOf<Collector<false>>>(system, mode, streams, irqs,
                                                              from_top);
    case Watch::segments:
      return std::make_unique<SimulationOf<Collector<true>>>(system, mode, streams, irqs, from_top);
    case Watch::figures:
      break;
  }
  return std::make_unique<SimulationOf<NoObserver>>(system, mode, streams, irqs, from_top);
}

nb::object figures(const AnySimulation& simulation) {
  nb::list result;
  for (const auto& each : simulation.figures()) {
    WideInteger<2> sum;
    sum.limb[0] = static_cast<std::uint64_t>(each.sum);
    sum.limb[1] = static_cast<std::uint64_t>(each.sum >> 64U);
    result.append(nb::make_tuple(each.n, each.min.ns(), each.max.ns(), to_python(sum, true),
                                 each.by_handling[0], each.by_handling[1], each.by_handling[2]));
  }
  return result;
}

template <typename Item, typename... Parts>
nb::tuple columns(const std::vector<Item>& items, Parts... parts) {
  const auto column = [&items](auto part) {
    std::vector<std::int64_t> numbers;
    numbers.reserve(items.size());
    for (const auto& item : items) numbers.push_back(part(item));
    return to_numpy(std::move(numbers));
  };
  return nb::make_tuple(column(parts)...);
}

nb::tuple take_irqs(AnySimulation& simulation) {
  return columns(
      simulation.take_irqs(), [](const IrqRecord& irq) { return std::int64_t{irq.source}; },
      [](const IrqRecord& irq) { return static_cast<std::int64_t>(irq.handling); },
      [](const IrqRecord& irq) { return irq.arrival.ns(); },
      [](const IrqRecord& irq) { return irq.top_start.ns(); },
      [](const IrqRecord& irq) { return irq.end.ns(); });
}

nb::tuple take_segments(AnySimulation& simulation) {
  return columns(
      simulation.take_segments(),
      [](const Segment& segment) { return static_cast<std::int64_t>(segment.activity); },
      [](const Segment& segment) { return std::int64_t{segment.partition}; },
      [](const Segment& segment) { return std::int64_t{segment.source}; },
      [](const Segment& segment) { return segment.start.ns(); },
      [](const Segment& segment) { return segment.end.ns(); });
}

Stream drawn(Stream::Kind kind, const std::vector<std::int64_t>& figures, std::uint64_t seed) {
  Stream stream{.kind = kind, .times = {}, .figures = {}, .seed = seed};
  for (const auto each : figures) stream.figures.emplace_back(each);
  return stream;
}

}  // namespace

void bind_simulation(nb::module_& module) {
  nb::enum_<Watch>(module, "Watch")
      .value("figures", Watch::figures)
      .value("irqs", Watch::irqs)
      .value("segments", Watch::segments);
  nb::class_<Stream>(module, "Stream");
  module.def("listed", [](const Values& times) {
    return Stream{.kind = Stream::Kind::listed, .times = {times}, .figures = {}};
  });
  module.def("periodic", [](std::int64_t period, std::int64_t jitter, std::int64_t min_distance,
                            std::uint64_t seed) {
    if (period <= 0) throw nb::value_error("a period is positive");
    return drawn(Stream::Kind::periodic, {period, jitter, min_distance}, seed);
  });
  module.def("exponential", [](std::int64_t mean, std::int64_t min_distance, std::uint64_t seed) {
    return drawn(Stream::Kind::exponential, {mean, min_distance}, seed);
  });
  module.def("sporadic", [](const std::vector<std::int64_t>& distances, std::uint64_t seed) {
    if (distances.empty()) throw nb::value_error("a vector of minimum distances has entries");
    return drawn(Stream::Kind::sporadic, distances, seed);
  });
  nb::class_<AnySimulation>(module, "Simulation")
      .def("run", &AnySimulation::run, nb::arg("steps"))
      .def("monitor_from", [](AnySimulation& simulation, std::size_t source,
                              std::int64_t at) { simulation.monitor_from(source, Instant(at)); })
      .def("limit_arrivals", &AnySimulation::limit_arrivals)
      .def_prop_ro("now_ns", &AnySimulation::now)
      .def("figures", &figures)
      .def("take_irqs", &take_irqs)
      .def("take_segments", &take_segments);
  module.def("simulation", &simulation, nb::arg("system"), nb::arg("mode"), nb::arg("streams"),
             nb::arg("irqs"), nb::arg("from_top"), nb::arg("watch"));
}

}  // namespace latenz::python
