// SPDX-License-Identifier: Apache-2.0
#include "histogram_recorder.hpp"

#include <algorithm>
#include <cstring>

#include "clock.hpp"
#include "failure.hpp"
#include "json.hpp"

namespace latenz::probe {
namespace {

constexpr unsigned significant_digits = 3;

}  // namespace

LatencyHistogram::LatencyHistogram()
    : layout_(1, std::numeric_limits<std::int64_t>::max(), significant_digits),
      counts_(layout_.cells()),
      negative_counts_(layout_.cells()) {}

void LatencyHistogram::record(std::int64_t latency_ns) {
  if (latency_ns >= 0) {
    ++counts_[layout_.index(static_cast<std::uint64_t>(latency_ns))];
  } else {
    ++negative_counts_[layout_.index(static_cast<std::uint64_t>(-1 - latency_ns))];
  }
}

std::vector<LatencyHistogram::Cell> LatencyHistogram::cells() const {
  std::vector<Cell> filled;
  for (std::size_t cell = negative_counts_.size(); cell-- > 0;) {
    if (negative_counts_[cell] != 0) {
      const std::uint64_t mirrored = layout_.lowest_of(cell);
      const std::uint64_t width = layout_.width_at(mirrored);
      filled.push_back(
          {-static_cast<std::int64_t>(mirrored + (width - 1)) - 1, width, negative_counts_[cell]});
    }
  }
  for (std::size_t cell = 0; cell < counts_.size(); ++cell) {
    if (counts_[cell] != 0) {
      const std::uint64_t lowest = layout_.lowest_of(cell);
      filled.push_back(
          {static_cast<std::int64_t>(lowest), layout_.width_at(lowest), counts_[cell]});
    }
  }
  return filled;
}

void ExactSum::add(std::int64_t value_ns) {
  seconds_ += value_ns / nanoseconds_a_second;
  nanoseconds_ += value_ns % nanoseconds_a_second;
  if (nanoseconds_ < 0) {
    nanoseconds_ += nanoseconds_a_second;
    --seconds_;
  } else if (nanoseconds_ >= nanoseconds_a_second) {
    nanoseconds_ -= nanoseconds_a_second;
    ++seconds_;
  }
}

std::string ExactSum::text() const {
  const bool negative = seconds_ < 0;
  const bool borrow = negative && nanoseconds_ > 0;
  const std::int64_t seconds = negative ? -(seconds_ + (borrow ? 1 : 0)) : seconds_;
  const std::int64_t rest = borrow ? nanoseconds_a_second - nanoseconds_ : nanoseconds_;
  const std::string sign = negative ? "-" : "";
  if (seconds == 0) {
    return sign + std::to_string(rest);
  }
  const std::string digits =
      std::to_string(nanoseconds_a_second + rest).substr(1);  // with leading zeros
  return sign + std::to_string(seconds) + digits;
}

HistogramRecorder::HistogramRecorder(const std::filesystem::path& folder,
                                     std::optional<unsigned> cpu, std::int64_t period_ns)
    : path_(folder / "histogram.json"),
      cpu_(cpu),
      period_ns_(period_ns),
      peaks_(folder / "peaks.journal", cpu, 0) {
  if (const int error = save(); error != 0) {
    throw Failure(path_.string() + ": " + std::strerror(error) +
                  "; make room or name another folder");
  }
}

int HistogramRecorder::append(std::span<const Sample> samples) {
  std::vector<Sample> over;
  for (const Sample& sample : samples) {
    add(sample);
    if (peak_ && sample.t_ns / nanoseconds_a_second != peak_->t_ns / nanoseconds_a_second) {
      over.push_back(*peak_);
      peak_.reset();
    }
    if (!peak_ || sample.latency_ns > peak_->latency_ns) {
      peak_ = sample;
    }
  }
  return peaks_.append(over);
}

void HistogramRecorder::add(const Sample& sample) {
  if (n_ > 0) {
    missed_ += (sample.t_ns - last_due_ns_) / period_ns_ - 1;
  }
  last_due_ns_ = sample.t_ns;
  ++n_;
  sum_.add(sample.latency_ns);
  min_ns_ = std::min(min_ns_, sample.latency_ns);
  if (sample.latency_ns > max_.latency_ns) {
    max_ = sample;
  }
  histogram_.record(sample.latency_ns);
}

int HistogramRecorder::save() {
  if (n_ == saved_n_) {
    return 0;
  }
  const int error = replace_file(path_, to_json());
  saved_n_ = error == 0 ? n_ : saved_n_;
  return error;
}

int HistogramRecorder::finish() {
  if (!peak_) {
    return 0;
  }
  const Sample last = *peak_;
  peak_.reset();
  return peaks_.append({&last, 1});
}

std::string HistogramRecorder::to_json() const {
  Json json;
  json.open_object().member("version", 1).member("cpu", cpu_).member("period_ns", period_ns_);
  json.member("n", n_).member("sum_ns", sum_.text());
  json.member("min_ns", n_ > 0 ? min_ns_ : 0).member("max_ns", n_ > 0 ? max_.latency_ns : 0);
  json.member("max_t_ns", max_.t_ns).member("missed", missed_);
  json.key("cells").open_array();
  for (const auto& [lowest_ns, width_ns, count] : histogram_.cells()) {
    json.open_array().value(lowest_ns).value(width_ns).value(count).close_array();
  }
  return json.close_array().close_object().text() + "\n";
}

}  // namespace latenz::probe
