// SPDX-License-Identifier: Apache-2.0
#include "latenz/histogram.hpp"

#include <vector>

#include "core.hpp"

namespace nb = nanobind;

namespace latenz::python {
namespace {

/// A histogram with the memory of its counts.
class OwnedHistogram {
 public:
  OwnedHistogram(std::uint64_t lowest, std::uint64_t highest, unsigned digits)
      : layout_(checked(lowest, highest, digits)),
        counts_(layout_.cells()),
        histogram_(layout_, counts_.data()) {}

  OwnedHistogram(const OwnedHistogram&) = delete;
  OwnedHistogram& operator=(const OwnedHistogram&) = delete;

  /// Both return how many samples did not fit in the range.
  std::uint64_t record(const Values& values) {
    const nb::gil_scoped_release release;
    std::uint64_t beyond = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      beyond += histogram_.record(values.data()[i]) ? 0U : 1U;
    }
    return beyond;
  }

  std::uint64_t record_counts(const Values& values, const Values& counts) {
    if (values.size() != counts.size()) throw nb::value_error("values and counts differ in length");
    const nb::gil_scoped_release release;
    std::uint64_t beyond = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto times = static_cast<std::uint64_t>(counts.data()[i]);
      beyond += histogram_.record(values.data()[i], times) ? 0U : times;
    }
    return beyond;
  }

  std::uint64_t merge(const OwnedHistogram& other) { return histogram_.merge(other.histogram_); }
  [[nodiscard]] std::uint64_t n() const { return histogram_.n(); }
  [[nodiscard]] std::size_t cells() const { return layout_.cells(); }
  [[nodiscard]] std::uint64_t lowest_of(std::size_t cell) const { return layout_.lowest_of(cell); }
  [[nodiscard]] std::size_t index(std::uint64_t value) const { return layout_.index(value); }
  [[nodiscard]] std::uint64_t width_at(std::uint64_t value) const {
    return layout_.width_at(value);
  }

  /// The cell of the rank-th smallest sample.
  [[nodiscard]] std::size_t cell_of_rank(std::uint64_t rank) const {
    if (rank < 1 || rank > n()) throw nb::index_error("no such rank");
    return histogram_.cell_of_rank(rank);
  }

  /// The counts themselves, to be read and written in place.
  nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>> counts() {
    return {counts_.data(), {counts_.size()}, nb::find(this)};
  }

 private:
  static HistogramLayout checked(std::uint64_t lowest, std::uint64_t highest, unsigned digits) {
    if (!HistogramLayout::valid(lowest, highest, digits)) {
      throw nb::value_error("no such histogram: 1 <= lowest <= highest / 2, 1 to 5 digits");
    }
    return {lowest, highest, digits};
  }

  HistogramLayout layout_;
  std::vector<std::uint64_t> counts_;
  Histogram histogram_;
};

}  // namespace

void bind_histogram(nb::module_& module) {
  nb::class_<OwnedHistogram>(module, "Histogram")
      .def(nb::init<std::uint64_t, std::uint64_t, unsigned>(), nb::arg("lowest_discernible"),
           nb::arg("highest"), nb::arg("significant_digits"))
      .def("record", &OwnedHistogram::record, nb::arg("values"))
      .def("record_counts", &OwnedHistogram::record_counts, nb::arg("values"), nb::arg("counts"))
      .def("merge", &OwnedHistogram::merge, nb::arg("other"))
      .def("lowest_of", &OwnedHistogram::lowest_of, nb::arg("cell"))
      .def("index", &OwnedHistogram::index, nb::arg("value"))
      .def("width_at", &OwnedHistogram::width_at, nb::arg("value"))
      .def("cell_of_rank", &OwnedHistogram::cell_of_rank, nb::arg("rank"))
      .def_prop_ro("n", &OwnedHistogram::n)
      .def_prop_ro("cells", &OwnedHistogram::cells)
      .def_prop_ro("counts", &OwnedHistogram::counts);
}

}  // namespace latenz::python
