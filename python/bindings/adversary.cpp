// SPDX-License-Identifier: Apache-2.0
// The search for arrivals that reach a bound, in steps without Python's lock.
#include "latenz/adversary.hpp"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "core.hpp"
#include "latenz/bound.hpp"
#include "latenz/system.hpp"

namespace nb = nanobind;

namespace latenz::python {
namespace {

/// An adversary with what it refers to.
class Search {
 public:
  Search(System system, Mode mode, std::int64_t horizon, std::uint64_t seed, bool hostile)
      : system_(std::move(system)),
        bounds_(bound(system_, mode, Duration(horizon))),
        adversary_(
            system_, mode, hostile ? bounds_.enforced : bounds_.queues, seed,
            [this] { look_for_signals(); }, hostile ? Hostile::other_partitions : Hostile::none) {}
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;
  Search(Search&&) = delete;
  Search& operator=(Search&&) = delete;
  ~Search() = default;

  void begin(std::size_t target, int simulations) {
    if (target >= system_.sources().size()) throw nb::index_error("no such source");
    const nb::gil_scoped_release release;
    adversary_.begin(target, simulations);
  }
  bool go_on(int simulations) {
    const nb::gil_scoped_release release;
    return adversary_.go_on(simulations);
  }
  void simplify(std::size_t source, int simulations) {
    if (source >= system_.sources().size()) throw nb::index_error("no such source");
    const nb::gil_scoped_release release;
    adversary_.simplify(source, simulations);
  }
  [[nodiscard]] int left() const { return adversary_.left(); }

  [[nodiscard]] std::optional<std::int64_t> highest(std::size_t source) const {
    const Attack& attack = attack_on(source);
    if (attack.arrivals.empty()) return std::nullopt;
    return attack.latency.ns();
  }
  [[nodiscard]] std::vector<std::vector<std::int64_t>> arrivals(std::size_t source) const {
    return attack_on(source).arrivals;
  }
  [[nodiscard]] std::vector<std::int64_t> monitored_from(std::size_t source) const {
    std::vector<std::int64_t> times;
    for (const Instant from : attack_on(source).monitored_from) times.push_back(from.ns());
    return times;
  }

 private:
  /// Ctrl-C raises KeyboardInterrupt soon, however long the searches are that Python asks for.
  void look_for_signals() {
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < std::chrono::milliseconds(50)) return;
    looked_ = now;
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

  [[nodiscard]] const Attack& attack_on(std::size_t source) const {
    if (source >= adversary_.attacks().size()) throw nb::index_error("no such source");
    return adversary_.attacks()[source];
  }

  std::chrono::steady_clock::time_point looked_;
  System system_;
  SystemBound bounds_;
  Adversary adversary_;
};

}  // namespace

void bind_adversary(nb::module_& module) {
  nb::class_<Search>(module, "Adversary")
      .def(nb::init<System, Mode, std::int64_t, std::uint64_t, bool>(), nb::arg("system"),
           nb::arg("mode"), nb::arg("horizon_ns"), nb::arg("seed"), nb::arg("hostile"))
      .def("begin", &Search::begin, nb::arg("target"), nb::arg("simulations"))
      .def("go_on", &Search::go_on, nb::arg("simulations"))
      .def("simplify", &Search::simplify, nb::arg("source"), nb::arg("simulations"))
      .def_prop_ro("left", &Search::left)
      .def("highest_ns", &Search::highest, nb::arg("source"))
      .def("arrivals_ns", &Search::arrivals, nb::arg("source"))
      .def("monitored_from_ns", &Search::monitored_from, nb::arg("source"));
}

}  // namespace latenz::python
