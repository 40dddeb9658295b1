// SPDX-License-Identifier: Apache-2.0
#include "robot_planner.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "activation.hpp"

namespace latenz::robot {
namespace {

constexpr std::int64_t lead_ns = 20'000'000;  // the way begins so long after its first publication
constexpr std::int64_t patience_ns = 5'000'000'000;

}  // namespace

void Planner::begin(std::int64_t now_ns, const Status& status) {
  after_stop_ = status.stops;
  Angles start{};
  std::ranges::copy(status.position, start.begin());
  path_.emplace(start, joints_);
  origin_ns_ = now_ns + lead_ns;
}

bool Planner::plan(std::int64_t now_ns, const Status* status, SetPoints& points) {
  if (status != nullptr && status->standing != 0 && (!path_ || status->stops != after_stop_)) {
    begin(now_ns, *status);
  }
  if (!path_) {
    return false;
  }
  // Rounded down, also before the way begins.
  const std::int64_t since_ns = now_ns - origin_ns_;
  const std::int64_t knot = since_ns / knot_ns - (since_ns % knot_ns < 0 ? 1 : 0) - knots_before;
  points.published_ns = now_ns;
  points.first_ns = origin_ns_ + knot * knot_ns;
  points.after_stop = after_stop_;
  path_->move_to(knot);
  for (std::size_t k = 0; k < window_knots; ++k) {
    for (std::size_t joint = 0; joint < most_joints; ++joint) {
      const Reference reference = path_->at(joint, knot + static_cast<std::int64_t>(k));
      points.position[k * most_joints + joint] = reference.position;
      points.velocity[k * most_joints + joint] = reference.velocity;
      points.acceleration[k * most_joints + joint] = reference.acceleration;
    }
  }
  return true;
}

void run_planner(const icc::LinuxMemory& memory, std::size_t joints) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto* const base = static_cast<std::byte*>(memory.data());
  auto writer = SetPointChannel::Writer::create(base, SetPointChannel::bytes, "set-points");
  const auto patience = icc::Until<icc::MonotonicClock>::after(patience_ns);
  auto reader = StatusChannel::Reader::attach_until(base + status_offset, StatusChannel::bytes,
                                                    patience, std::uint32_t{0});
  if (!writer || !reader) {
    _exit(1);
  }
  Planner planner(joints);
  probe::Activations activations(CLOCK_MONOTONIC, probe::read_clock_ns(CLOCK_MONOTONIC),
                                 plan_every_ns);
  for (;;) {
    static_cast<void>(activations.next());
    const std::int64_t now_ns = probe::read_clock_ns(CLOCK_MONOTONIC);
    if (planner.plan(now_ns, reader->view(), writer->begin_update())) {
      writer->publish();
    }
  }
}

}  // namespace latenz::robot
