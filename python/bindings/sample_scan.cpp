// SPDX-License-Identifier: Apache-2.0
// Exact figures of any number of samples in bounded memory: gives the core's scan and refinements
// their memory, and keeps the first samples to place the window where they lie. Activations that
// were skipped count in a window of their own, which joins that of the samples at the end.
#include "latenz/sample_scan.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "core.hpp"
#include "latenz/rank_refinement.hpp"
#include "latenz/skipped.hpp"

namespace nb = nanobind;

namespace latenz::python {
namespace {

constexpr std::size_t early_values = std::size_t{1} << 16U;
constexpr std::size_t window_cells = std::size_t{1} << 22U;  // 4.2 ms in 1 ns cells: 32 MiB
constexpr std::size_t spill_capacity = std::size_t{1} << 20U;
constexpr std::size_t refinement_capacity = std::size_t{1} << 20U;
constexpr std::size_t block = 4096;  // samples that stay in the first-level cache
constexpr std::uint64_t most_skipped = std::uint64_t{1} << 28U;  // some seconds for two passes
constexpr std::uint64_t most_unknown = std::uint64_t{1} << 61U;

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

/// The counts of one view of the activations, and the order statistics that were found in them.
class View {
 public:
  [[nodiscard]] std::vector<std::int64_t>& early() { return early_; }
  [[nodiscard]] bool open() const { return window_.has_value(); }

  void add(const std::int64_t* values, std::size_t count) {
    n_ += count;
    if (window_) {
      window_->add(values, count);
    } else {
      early_.insert(early_.end(), values, values + count);
    }
  }

  void open_window(std::int64_t base) {
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

  /// Adds what another view counted; both have a window at the same base, or none.
  void merge(const View& other) {
    n_ += other.n_;
    early_.insert(early_.end(), other.early_.begin(), other.early_.end());
    if (window_) window_->merge(*other.window_);
  }

  [[nodiscard]] Moments moments() const {
    if (window_) return window_->moments();
    Moments moments;
    for (const auto value : early_) moments.add(value);
    return moments;
  }

  /// Looks for order statistics in what was kept; true if another pass is needed for some.
  bool want(const std::vector<std::uint64_t>& ranks) {
    order_.clear();
    pending_.clear();
    if (!window_) {
      std::sort(early_.begin(), early_.end());
    } else if (window_->spill_complete()) {
      std::sort(window_->spill(), window_->spill() + window_->spilled());
    }
    for (const auto rank : ranks) {
      if (rank < 1 || rank > n_) throw nb::index_error("no such rank");
      if (window_) {
        look_for(rank);
      } else {
        order_[rank] = early_[rank - 1];
      }
    }
    return !pending_.empty();
  }

  void refine(const std::int64_t* values, std::size_t count) {
    for (auto& pending : pending_) pending.refinement.add(values, count);
  }

  /// After a whole refining pass: true if yet another is needed.
  bool settle() {
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

  std::uint64_t n_ = 0;
  std::vector<std::int64_t> early_;
  std::unique_ptr<std::uint64_t[], Free> window_memory_;
  std::unique_ptr<std::uint64_t[], Free> outside_memory_;
  std::unique_ptr<std::int64_t[], Free> spill_;
  std::optional<SampleScan> window_;
  std::vector<Pending> pending_;
  std::map<std::uint64_t, std::int64_t> order_;
};

/// Samples, and the activations that were skipped after some of them: each by itself while they
/// are added, then the samples alone and all activations as they were due.
class Scan {
 public:
  Scan(std::vector<std::int64_t> thresholds, std::int64_t period_ns)
      : thresholds_(std::move(thresholds)),
        above_(thresholds_.size()),
        skipped_above_(thresholds_.size()),
        period_ns_(period_ns) {}

  void add(const Values& values, const std::optional<Values>& missed) {
    check_length(values, missed);
    const nb::gil_scoped_release release;
    if (due_known_) throw nb::value_error("ranks were asked for already");
    if (missed) count_skipped(values, *missed);
    for_each_block(values, [this](const std::int64_t* part, std::size_t count) {
      count_above(part, count, above_);
      samples_.add(part, count);
      open_when_many();
    });
    for_each_skipped(values, missed, [this](const std::int64_t* part, std::size_t count) {
      count_above(part, count, skipped_above_);
      due_.add(part, count);
      open_when_many();
    });
  }

  [[nodiscard]] Moments moments() const {
    const nb::gil_scoped_release release;
    return samples_.moments();
  }

  [[nodiscard]] Moments due_moments() const {
    const nb::gil_scoped_release release;
    Moments all = due_.moments();
    if (!due_known_) all.merge(samples_.moments());
    return all;
  }

  [[nodiscard]] const std::vector<std::uint64_t>& above() const { return above_; }
  [[nodiscard]] const std::vector<std::uint64_t>& skipped_above() const { return skipped_above_; }
  [[nodiscard]] std::uint64_t skipped() const { return skipped_; }
  [[nodiscard]] std::uint64_t unknown() const { return unknown_; }

  /// Looks for order statistics in what was kept; true if another pass is needed for some.
  bool want(const std::vector<std::uint64_t>& ranks, const std::vector<std::uint64_t>& due_ranks) {
    const nb::gil_scoped_release release;
    if (!due_ranks.empty() && !std::exchange(due_known_, true)) due_.merge(samples_);
    const bool samples_pending = samples_.want(ranks);
    return due_.want(due_ranks) || samples_pending;
  }

  void refine(const Values& values, const std::optional<Values>& missed) {
    check_length(values, missed);
    const nb::gil_scoped_release release;
    for_each_block(values, [this](const std::int64_t* part, std::size_t count) {
      samples_.refine(part, count);
      due_.refine(part, count);
    });
    for_each_skipped(values, missed, [this](const std::int64_t* part, std::size_t count) {
      due_.refine(part, count);
    });
  }

  /// After a whole refining pass: true if yet another is needed.
  bool settle() {
    const nb::gil_scoped_release release;
    const bool samples_pending = samples_.settle();
    return due_.settle() || samples_pending;
  }

  using Order = std::map<std::uint64_t, std::int64_t>;
  [[nodiscard]] const Order& order() const { return samples_.order(); }
  [[nodiscard]] const Order& due_order() const { return due_.order(); }

 private:
  static void check_length(const Values& values, const std::optional<Values>& missed) {
    if (missed && missed->size() != values.size()) {
      throw nb::value_error("latencies and missed differ in length");
    }
  }

  /// Counts first, so that what is refused costs no time.
  void count_skipped(const Values& values, const Values& missed) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t count = missed.data()[i];
      if (count == 0) continue;
      if (count < 0) throw nb::value_error("a negative number of missed activations");
      const auto waited = skipped_while_waiting(values.data()[i], count, period_ns_);
      skipped_ += waited;
      unknown_ += static_cast<std::uint64_t>(count) - waited;
      if (skipped_ > most_skipped || unknown_ > most_unknown) {
        throw nb::value_error("more missed activations than can be counted");
      }
    }
  }

  template <typename Work>
  void for_each_skipped(const Values& values, const std::optional<Values>& missed, Work work) {
    if (!missed) return;
    std::array<std::int64_t, block> part;
    SkippedLatencies skipped(values.data(), missed->data(), values.size(), period_ns_);
    while (const std::size_t count = skipped.next(part.data(), part.size())) {
      work(part.data(), count);
    }
  }

  void count_above(const std::int64_t* values, std::size_t count,
                   std::vector<std::uint64_t>& totals) const {
    for (std::size_t t = 0; t < thresholds_.size(); ++t) {
      const std::int64_t threshold = thresholds_[t];
      std::uint64_t above = 0;
      for (std::size_t i = 0; i < count; ++i) above += values[i] > threshold ? 1U : 0U;
      totals[t] += above;
    }
  }

  /// Places both windows where the first samples lie, once there are many values.
  void open_when_many() {
    if (samples_.open() || samples_.early().size() + due_.early().size() < early_values) return;
    std::vector<std::int64_t>& early = samples_.early();
    const auto middle = early.begin() + static_cast<std::ptrdiff_t>(early.size() / 2);
    std::nth_element(early.begin(), middle, early.end());
    constexpr std::int64_t before_median = window_cells / 4;  // latencies have their tail above
    const std::int64_t base = std::max(*middle, INT64_MIN + before_median) - before_median;
    samples_.open_window(base);
    due_.open_window(base);
  }

  std::vector<std::int64_t> thresholds_;
  std::vector<std::uint64_t> above_;
  std::vector<std::uint64_t> skipped_above_;
  std::int64_t period_ns_;
  std::uint64_t skipped_ = 0;
  std::uint64_t unknown_ = 0;
  bool due_known_ = false;
  View samples_;
  View due_;  ///< only the skipped activations until `due_known_`, then all of them
};

}  // namespace

void bind_sample_scan(nb::module_& module) {
  module.attr("MOST_SKIPPED") = most_skipped;
  nb::class_<Scan>(module, "SampleScan")
      .def(nb::init<std::vector<std::int64_t>, std::int64_t>(), nb::arg("thresholds"),
           nb::arg("period_ns") = 0)
      .def("add", &Scan::add, nb::arg("values"), nb::arg("missed") = nb::none())
      .def("want", &Scan::want, nb::arg("ranks"),
           nb::arg("due_ranks") = std::vector<std::uint64_t>())
      .def("refine", &Scan::refine, nb::arg("values"), nb::arg("missed") = nb::none())
      .def("settle", &Scan::settle)
      .def_prop_ro("moments", &Scan::moments)
      .def_prop_ro("due_moments", &Scan::due_moments)
      .def_prop_ro("above", &Scan::above)
      .def_prop_ro("skipped_above", &Scan::skipped_above)
      .def_prop_ro("skipped", &Scan::skipped)
      .def_prop_ro("unknown", &Scan::unknown)
      .def_prop_ro("order", &Scan::order)
      .def_prop_ro("due_order", &Scan::due_order);
}

}  // namespace latenz::python
