// SPDX-License-Identifier: Apache-2.0
#include "latenz/moments.hpp"

#include <cmath>
#include <optional>
#include <stdexcept>

#include <nanobind/stl/optional.h>

#include "core.hpp"

namespace nb = nanobind;

namespace latenz::python {
namespace {

void add(Moments& moments, const Values& values) {
  const nb::gil_scoped_release release;
  for (std::size_t i = 0; i < values.size(); ++i) moments.add(values.data()[i]);
}

void add_counts(Moments& moments, const Values& values, const Values& counts) {
  if (values.size() != counts.size()) throw nb::value_error("values and counts differ in length");
  const nb::gil_scoped_release release;
  for (std::size_t i = 0; i < values.size(); ++i) {
    moments.add(values.data()[i], static_cast<std::uint64_t>(counts.data()[i]));
  }
}

template <auto Figure, std::uint64_t Least>
std::optional<double> figure(const Moments& moments) {
  if (moments.n() < Least) return std::nullopt;
  return (moments.*Figure)();
}

std::optional<double> stdev(const Moments& moments) {
  if (moments.n() < 2) return std::nullopt;
  return std::sqrt(moments.variance());
}

}  // namespace

void bind_moments(nb::module_& module) {
  nb::class_<Moments>(module, "Moments")
      .def(nb::init<>())
      .def("add", &add, nb::arg("values"))
      .def("add_counts", &add_counts, nb::arg("values"), nb::arg("counts"))
      .def("merge", &Moments::merge, nb::arg("other"))
      .def_prop_ro("n", &Moments::n)
      .def_prop_ro("min", &Moments::min)
      .def_prop_ro("max", &Moments::max)
      .def_prop_ro("sum", [](const Moments& moments) { return to_python(moments.sum(), true); })
      .def_prop_ro(
          "sum_of_squares",
          [](const Moments& moments) { return to_python(moments.sum_of_squares(), false); })
      .def_prop_ro("mean", &figure<&Moments::mean, 1>)
      .def_prop_ro("jitter", &figure<&Moments::jitter, 1>)
      .def_prop_ro("stdev", &stdev);
}

}  // namespace latenz::python
