// SPDX-License-Identifier: Apache-2.0
#include "robot_figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace latenz::robot {

void Spread::add(std::int64_t value) {
  const auto magnitude = static_cast<double>(value);
  ++n_;
  squares_ += magnitude * magnitude;
  max_ = std::max(max_, std::abs(value));
}

std::int64_t Spread::rms() const {
  return n_ == 0 ? 0 : std::llround(std::sqrt(squares_ / static_cast<double>(n_)));
}

void ErrorOverTime::add(std::int64_t time_ns, std::int64_t error_urad, std::int64_t missed) {
  begin_ns_ = begin_ns_.value_or(time_ns);
  const std::int64_t since_ns = time_ns - *begin_ns_;
  while (since_ns / stretch_ns_ >= static_cast<std::int64_t>(most_stretches)) {
    for (std::size_t i = 0; i < stretches_.size(); ++i) {
      Stretch& half = stretches_[i / 2];
      const Stretch whole = stretches_[i];
      half = i % 2 == 0 ? whole
                        : Stretch{.max_urad = std::max(half.max_urad, whole.max_urad),
                                  .missed = half.missed + whole.missed};
    }
    stretches_.resize((stretches_.size() + 1) / 2);
    stretch_ns_ *= 2;
  }
  const auto place = static_cast<std::size_t>(since_ns / stretch_ns_);
  stretches_.resize(std::max(stretches_.size(), place + 1));
  Stretch& stretch = stretches_[place];
  stretch.max_urad = std::max(stretch.max_urad, error_urad);
  stretch.missed += missed;
}

void Figures::add(const Cycle& cycle) {
  const std::int64_t latency_ns = cycle.activation_ns - cycle.due_ns;
  std::int64_t missed = 0;
  if (last_) {
    missed = (cycle.due_ns - last_->due_ns) / interval_ns_ - 1;
    jitter_.add(latency_ns - (last_->activation_ns - last_->due_ns));
  }
  last_ = cycle;
  ++cycles_;
  missed_ += missed;
  saturated_ += cycle.saturated ? 1 : 0;
  max_latency_ns_ = std::max(max_latency_ns_, cycle.completion_ns - cycle.due_ns);
  if (cycle.set_point_age_ns >= 0) {
    age_.add(cycle.set_point_age_ns);
  }
  std::int64_t greatest_urad = 0;
  for (std::size_t joint = 0; cycle.tracked && joint < joints_; ++joint) {
    const std::int64_t error_urad = cycle.error_urad[joint];
    error_.add(error_urad);
    joint_errors_[joint].add(error_urad);
    greatest_urad = std::max(greatest_urad, std::abs(error_urad));
  }
  tracked_ += cycle.tracked ? 1 : 0;
  over_time_.add(cycle.due_ns, greatest_urad, missed);
}

void Figures::write(probe::Json& json) const {
  json.member("cycles", cycles_).member("missed", missed_).member("tracked", tracked_);
  json.member("saturated", saturated_);
  json.member("error_rms_urad", error_.rms()).member("error_max_urad", error_.max());
  json.key("joints").open_array();
  for (std::size_t joint = 0; joint < joints_; ++joint) {
    const Spread& error = joint_errors_[joint];
    json.open_object().member("error_rms_urad", error.rms());
    json.member("error_max_urad", error.max()).close_object();
  }
  json.close_array();
  json.member("jitter_rms_ns", jitter_.rms()).member("jitter_max_ns", jitter_.max());
  json.member("set_point_age_max_ns", age_.max());
  json.key("over_time").open_object().member("stretch_ns", over_time_.stretch_ns());
  json.key("max_urad").open_array();
  for (const auto& stretch : over_time_.stretches()) {
    json.value(stretch.max_urad);
  }
  json.close_array().key("missed").open_array();
  for (const auto& stretch : over_time_.stretches()) {
    json.value(stretch.missed);
  }
  json.close_array().close_object();
}

}  // namespace latenz::robot
