// SPDX-License-Identifier: Apache-2.0
// How lateness lies in time, for columns as Python has them.
#include "latenz/lateness_scan.hpp"

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "core.hpp"

namespace nb = nanobind;

namespace latenz::python {
namespace {

using Watch = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
using Found = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::int64_t>;
constexpr std::int64_t longest = INT64_MAX / 4;  // sums of two times stay in 64 bits

template <typename Word>
nb::ndarray<nb::numpy, const Word, nb::ndim<1>> array(const std::vector<Word>& cells) {
  auto* copy = new std::vector<Word>(cells);
  const nb::capsule owner(
      copy, [](void* memory) noexcept { delete static_cast<std::vector<Word>*>(memory); });
  return {copy->data(), {copy->size()}, owner};
}

class LatenessColumns {
 public:
  LatenessColumns(const std::vector<Watch>& watches, std::int64_t period_ns, std::int64_t cell_ns,
                  std::size_t most_cells)
      : scan_(checked(watches), positive(cell_ns), most_cells), period_ns_(period_ns) {
    if (period_ns < 0 || period_ns > longest || most_cells < 2 || most_cells % 2 != 0) {
      throw nb::value_error("a negative period, or an odd number of cells");
    }
  }

  void add(const Values& latency_ns, const std::optional<Values>& missed,
           const std::optional<Values>& due_ns) {
    const std::size_t n = latency_ns.size();
    if ((missed && missed->size() != n) || (due_ns && due_ns->size() != n)) {
      throw nb::value_error("columns differ in length");
    }
    const nb::gil_scoped_release release;
    const auto* skipped_data = missed ? missed->data() : nullptr;
    const auto* due_data = due_ns ? due_ns->data() : nullptr;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t skipped = skipped_data == nullptr ? 0 : bounded(skipped_data[i], longest);
      const std::int64_t latency = std::min(latency_ns.data()[i], longest);
      if (due_data != nullptr) next_due_ns_ = since_first(due_data[i]);
      // More than it waited for cannot have been skipped.
      const std::int64_t waits =
          period_ns_ > 0 ? std::max<std::int64_t>(latency, 0) / period_ns_ : 0;
      scan_.add(next_due_ns_, latency, static_cast<std::uint64_t>(std::min(skipped, waits)),
                period_ns_);
      if (due_data == nullptr) advance(skipped);
    }
  }

  [[nodiscard]] std::vector<Found> found() const {
    std::vector<Found> all;
    for (const auto& each : scan_.seen()) {
      all.emplace_back(each.late, each.episodes, each.groups, each.longest_ns);
    }
    return all;
  }

  [[nodiscard]] const LatenessScan& scan() const { return scan_; }

 private:
  /// Times count from the first one, so that any epoch will do.
  std::int64_t since_first(std::int64_t due_ns) {
    if (!first_due_ns_) first_due_ns_ = due_ns;
    if (due_ns <= *first_due_ns_) return 0;
    const auto since =
        static_cast<std::uint64_t>(due_ns) - static_cast<std::uint64_t>(*first_due_ns_);
    return static_cast<std::int64_t>(std::min(since, static_cast<std::uint64_t>(longest)));
  }

  static std::int64_t bounded(std::int64_t value, std::int64_t most) {
    return std::clamp<std::int64_t>(value, 0, most);
  }

  static std::int64_t positive(std::int64_t cell_ns) {
    if (cell_ns < 1 || cell_ns > longest) throw nb::value_error("a cell without length");
    return cell_ns;
  }

  static std::vector<LatenessWatch> checked(const std::vector<Watch>& watches) {
    std::vector<LatenessWatch> all;
    for (const auto& [limit_ns, pause_ns, burst_ns] : watches) {
      if (pause_ns < 0 || burst_ns < 1 || limit_ns < -1) throw nb::value_error("a negative time");
      all.push_back({limit_ns, pause_ns, burst_ns});
    }
    return all;
  }

  /// The activation after the next one that is not skipped.
  void advance(std::int64_t skipped) {
    if (period_ns_ == 0) return;
    const std::int64_t steps = std::min(skipped, (longest - next_due_ns_) / period_ns_) + 1;
    next_due_ns_ = std::min(next_due_ns_ + steps * period_ns_, longest);
  }

  LatenessScan scan_;
  std::int64_t period_ns_;
  std::int64_t next_due_ns_ = 0;
  std::optional<std::int64_t> first_due_ns_;
};

}  // namespace

void bind_lateness_scan(nb::module_& module) {
  nb::class_<LatenessColumns>(module, "LatenessScan")
      .def(nb::init<const std::vector<Watch>&, std::int64_t, std::int64_t, std::size_t>(),
           nb::arg("watches"), nb::arg("period_ns"), nb::arg("cell_ns"), nb::arg("most_cells"))
      .def("add", &LatenessColumns::add, nb::arg("latency_ns"), nb::arg("missed").none(),
           nb::arg("due_ns").none())
      .def_prop_ro("found", &LatenessColumns::found)
      .def_prop_ro("first_ns", [](const LatenessColumns& self) { return self.scan().first_ns(); })
      .def_prop_ro("last_ns", [](const LatenessColumns& self) { return self.scan().last_ns(); })
      .def_prop_ro("cell_ns", [](const LatenessColumns& self) { return self.scan().cell_ns(); })
      .def_prop_ro(
          "highest", [](const LatenessColumns& self) { return array(self.scan().highest()); },
          nb::rv_policy::move)
      .def_prop_ro(
          "due", [](const LatenessColumns& self) { return array(self.scan().due()); },
          nb::rv_policy::move)
      .def(
          "late",
          [](const LatenessColumns& self, std::size_t watch) {
            return array(self.scan().late(watch));
          },
          nb::arg("watch"))
      .def(
          "begun",
          [](const LatenessColumns& self, std::size_t watch) {
            return array(self.scan().begun(watch));
          },
          nb::arg("watch"));
}

}  // namespace latenz::python
