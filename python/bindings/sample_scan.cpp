// SPDX-License-Identifier: Apache-2.0
// Exact figures of any number of samples in bounded memory: gives the core's scan and refinements
// their memory, and keeps the first samples to place the window where they lie.
#include "latenz/sample_scan.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include "core.hpp"
#include "latenz/rank_refinement.hpp"

namespace nb = nanobind;

namespace latenz::python {
namespace {

constexpr std::size_t early_samples = std::size_t{1} << 16U;
constexpr std::size_t window_cells = std::size_t{1} << 22U;  // 4.2 ms in 1 ns cells: 32 MiB
constexpr std::size_t spill_capacity = std::size_t{1} << 20U;
constexpr std::size_t refinement_capacity = std::size_t{1} << 20U;
constexpr std::size_t block = 4096;  // samples that stay in the first-level cache

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

/// Zeroed memory whose pages cost nothing until they are used.
template <typename Word>
std::unique_ptr<Word[], Free> zeroed(std::size_t words) {
  auto* memory = static_cast<Word*>(std::calloc(words, sizeof(Word)));
  if (memory == nullptr) throw std::bad_alloc();
  return std::unique_ptr<Word[], Free>(memory);
}

template <typename Work>
void for_each_block(const Values& values, Work work) {
  for (std::size_t start = 0; start < values.size(); start += block) {
    work(values.data() + start, std::min(block, values.size() - start));
  }
}

class Scan {
 public:
  explicit Scan(std::vector<std::int64_t> thresholds)
      : thresholds_(std::move(thresholds)), above_(thresholds_.size()) {}

  void add(const Values& values) {
    const nb::gil_scoped_release release;
    for_each_block(values, [this](const std::int64_t* part, std::size_t count) {
      n_ += count;
      count_above(part, count);
      if (window_) {
        window_->add(part, count);
      } else {
        keep_early(part, count);
      }
    });
  }

  [[nodiscard]] Moments moments() const {
    const nb::gil_scoped_release release;
    if (window_) return window_->moments();
    Moments moments;
    for (const auto value : early_) moments.add(value);
    return moments;
  }

  [[nodiscard]] const std::vector<std::uint64_t>& above() const { return above_; }

  /// Looks for order statistics in what was kept; true if another pass is needed for some.
  bool want(const std::vector<std::uint64_t>& ranks) {
    const nb::gil_scoped_release release;
    order_.clear();
    pending_.clear();
    if (!window_) {
      std::sort(early_.begin(), early_.end());
      for (const auto rank : ranks) order_[rank] = early_.at(rank - 1);
      return false;
    }
    if (window_->spill_complete()) {
      std::sort(window_->spill(), window_->spill() + window_->spilled());
    }
    for (const auto rank : ranks) {
      if (rank < 1 || rank > n_) throw nb::index_error("no such rank");
      look_for(rank);
    }
    return !pending_.empty();
  }

  void refine(const Values& values) {
    const nb::gil_scoped_release release;
    for_each_block(values, [this](const std::int64_t* part, std::size_t count) {
      for (auto& pending : pending_) pending.refinement.add(part, count);
    });
  }

  /// After a whole refining pass: true if yet another is needed.
  bool settle() {
    const nb::gil_scoped_release release;
    const std::vector<Pending> settled = std::exchange(pending_, {});
    for (const auto& pending : settled) {
      for (const auto rank : pending.ranks) found(rank, pending.refinement.locate(rank));
    }
    return !pending_.empty();
  }

  [[nodiscard]] const std::map<std::uint64_t, std::int64_t>& order() const { return order_; }

 private:
  struct Pending {
    RankInterval interval;
    std::vector<std::uint64_t> ranks;
    std::unique_ptr<std::int64_t[], Free> memory;
    RankRefinement refinement;
  };

  void count_above(const std::int64_t* values, std::size_t count) {
    for (std::size_t t = 0; t < thresholds_.size(); ++t) {
      const std::int64_t threshold = thresholds_[t];
      std::uint64_t above = 0;
      for (std::size_t i = 0; i < count; ++i) above += values[i] > threshold ? 1U : 0U;
      above_[t] += above;
    }
  }

  void keep_early(const std::int64_t* values, std::size_t count) {
    early_.insert(early_.end(), values, values + count);
    if (early_.size() >= early_samples) open_window();
  }

  void open_window() {
    const auto middle = early_.begin() + static_cast<std::ptrdiff_t>(early_.size() / 2);
    std::nth_element(early_.begin(), middle, early_.end());
    constexpr std::int64_t before_median = window_cells / 4;  // latencies have their tail above
    const std::int64_t base = std::max(*middle, INT64_MIN + before_median) - before_median;
    window_memory_ = zeroed<std::uint64_t>(window_cells);
    outside_memory_ = zeroed<std::uint64_t>(2 * SampleScan::outside.cells());
    spill_ = zeroed<std::int64_t>(spill_capacity);
    window_.emplace(
        SampleScan::Storage{
            .window = window_memory_.get(),
            .window_cells = window_cells,
            .below = outside_memory_.get(),
            .above = outside_memory_.get() + SampleScan::outside.cells(),
            .spill = spill_.get(),
            .spill_capacity = spill_capacity,
        },
        base);
    window_->add(early_.data(), early_.size());
    early_ = {};
  }

  void look_for(std::uint64_t rank) {
    const std::uint64_t in_window = n_ - window_->outside_window();
    const std::uint64_t below = window_->below_window();
    if (!window_->spill_complete() || (rank > below && rank <= below + in_window)) {
      found(rank, window_->locate(rank));
    } else {
      order_[rank] = spill_[(rank <= below ? rank : rank - in_window) - 1];
    }
  }

  void found(std::uint64_t rank, const RankInterval& interval) {
    if (interval.lowest == interval.highest) {
      order_[rank] = interval.lowest;
      return;
    }
    for (auto& pending : pending_) {
      if (pending.interval.before == interval.before) {
        pending.ranks.push_back(rank);
        return;
      }
    }
    auto memory = zeroed<std::int64_t>(refinement_capacity);
    const RankRefinement refinement(interval, memory.get(), refinement_capacity);
    pending_.push_back({interval, {rank}, std::move(memory), refinement});
  }

  std::vector<std::int64_t> thresholds_;
  std::vector<std::uint64_t> above_;
  std::uint64_t n_ = 0;
  std::vector<std::int64_t> early_;
  std::unique_ptr<std::uint64_t[], Free> window_memory_;
  std::unique_ptr<std::uint64_t[], Free> outside_memory_;
  std::unique_ptr<std::int64_t[], Free> spill_;
  std::optional<SampleScan> window_;
  std::vector<Pending> pending_;
  std::map<std::uint64_t, std::int64_t> order_;
};

}  // namespace

void bind_sample_scan(nb::module_& module) {
  nb::class_<Scan>(module, "SampleScan")
      .def(nb::init<std::vector<std::int64_t>>(), nb::arg("thresholds"))
      .def("add", &Scan::add, nb::arg("values"))
      .def("want", &Scan::want, nb::arg("ranks"))
      .def("refine", &Scan::refine, nb::arg("values"))
      .def("settle", &Scan::settle)
      .def_prop_ro("moments", &Scan::moments)
      .def_prop_ro("above", &Scan::above)
      .def_prop_ro("order", &Scan::order);
}

}  // namespace latenz::python
