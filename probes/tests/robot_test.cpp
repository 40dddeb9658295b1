// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "failure.hpp"
#include "robot_figures.hpp"
#include "robot_plan.hpp"
#include "robot_planner.hpp"
#include "robot_simulation.hpp"

namespace latenz::robot {
namespace {

constexpr std::int64_t ms = 1'000'000;

std::vector<Instants> cycles(std::int64_t count, std::int64_t latency_ns) {
  std::vector<Instants> found;
  for (std::int64_t k = 1; k <= count; ++k) {
    found.push_back({.due_ns = k * ms,
                     .activation_ns = k * ms + latency_ns,
                     .completion_ns = k * ms + latency_ns + 5000});
  }
  return found;
}

/// The first cycle after a pause of the servo follows `missed` cycles that never ran.
std::vector<Instants> cycles_with_pause(std::int64_t before, std::int64_t missed,
                                        std::int64_t after) {
  std::vector<Instants> found = cycles(before, 0);
  const std::int64_t due_ns = (before + 1) * ms;
  const std::int64_t late_ns = due_ns + missed * ms + ms / 2;
  found.push_back({.due_ns = due_ns, .activation_ns = late_ns, .completion_ns = late_ns});
  for (std::int64_t k = before + missed + 2; k <= before + missed + 1 + after; ++k) {
    found.push_back({.due_ns = k * ms, .activation_ns = k * ms, .completion_ns = k * ms});
  }
  return found;
}

std::size_t count_of(const std::vector<Step>& steps, Motion motion) {
  return static_cast<std::size_t>(std::ranges::count_if(
      steps, [motion](const Step& step) { return step.cycle.motion == motion; }));
}

TEST(RobotTrajectory, KeepsToTheLimitsAndIsNoSlowerThanTheyAre) {
  constexpr Limits limits{};
  Path path({}, most_joints);
  Segment segment = Segment{.knots = 0}.next(most_joints, limits);
  for (int stretch = 0; stretch < 300; ++stretch) {
    Reference greatest;
    double jerk = 0;
    for (std::size_t joint = 0; joint < most_joints; ++joint) {
      Reference before = segment.at(joint, segment.begin);
      for (std::int64_t knot = segment.begin; knot < segment.end(); ++knot) {
        for (int part = 1; part <= 20; ++part) {
          const Reference now = between(segment.at(joint, knot), segment.at(joint, knot + 1),
                                        static_cast<double>(part) / 20);
          greatest.velocity = std::max(greatest.velocity, std::fabs(now.velocity));
          greatest.acceleration = std::max(greatest.acceleration, std::fabs(now.acceleration));
          jerk = std::max(jerk, std::fabs(now.acceleration - before.acceleration) / (knot_s / 20));
          before = now;
        }
      }
    }
    EXPECT_LE(greatest.velocity, limits.velocity * (1 + 1e-9));
    EXPECT_LE(greatest.acceleration, limits.acceleration * (1 + 1e-9));
    EXPECT_LE(jerk, limits.jerk * (1 + 1e-6));
    // With one knot interval less, a joint would break a limit.
    double longest = 0;
    for (std::size_t joint = 0; joint < most_joints; ++joint) {
      longest = std::max(longest, std::fabs(segment.to[joint] - segment.from[joint]));
    }
    const double shorter_s = static_cast<double>(segment.knots - 1) * knot_s;
    EXPECT_TRUE(1.875 * longest > limits.velocity * shorter_s ||
                5.7735026919 * longest > limits.acceleration * shorter_s * shorter_s ||
                60 * longest > limits.jerk * shorter_s * shorter_s * shorter_s);
    path.move_to(segment.end());
    EXPECT_EQ(path.at(0, segment.end()).position, segment.to[0]);
    segment = segment.next(most_joints, limits);
  }
}

TEST(RobotTrajectory, BetweenKnotsLiesTheSamePolynomial) {
  const Segment segment{.knots = 37, .from = {-0.4}, .to = {0.9}};
  const Segment finer{.knots = 370, .from = {-0.4}, .to = {0.9}};
  for (std::int64_t k = 0; k < 370; ++k) {
    const Reference found =
        between(segment.at(0, k / 10), segment.at(0, k / 10 + 1), static_cast<double>(k % 10) / 10);
    EXPECT_NEAR(found.position, finer.at(0, k).position, 1e-13);
    EXPECT_NEAR(found.velocity, finer.at(0, k).velocity * 10, 1e-11);
    EXPECT_NEAR(found.acceleration, finer.at(0, k).acceleration * 100, 1e-8);
  }
}

TEST(RobotTrajectory, WaypointsFillTheRangeAndDiffer) {
  double sum = 0;
  for (std::uint32_t number = 1; number <= 10'000; ++number) {
    const double angle = waypoint(number, number % most_joints);
    EXPECT_GE(angle, -1);
    EXPECT_LT(angle, 1);
    sum += angle;
  }
  EXPECT_NEAR(sum / 10'000, 0, 0.03);
}

TEST(RobotDrive, OneLongStepIsManyShortOnes) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> torque(-8, 8);
  for (int attempt = 0; attempt < 50; ++attempt) {
    Motor whole{.position = torque(random), .velocity = torque(random), .torque = torque(random)};
    Motor parts = whole;
    const double command = torque(random);
    whole.advance(0.05, command);
    for (int step = 0; step < 5000; ++step) {
      parts.advance(0.00001, command);
    }
    EXPECT_NEAR(whole.position, parts.position, 1e-9);
    EXPECT_NEAR(whole.velocity, parts.velocity, 1e-9);
    EXPECT_NEAR(whole.torque, parts.torque, 1e-9);
  }
}

TEST(RobotDrive, SwitchesOffWhenCommandsStayAway) {
  Drive drive(10 * ms);
  drive.advance_to(ms);
  drive.command(ms, 5);
  Motor expected;
  expected.advance(0.010, 5);
  expected.advance(0.090, 0);
  drive.advance_to(101 * ms);
  EXPECT_NEAR(drive.motor().position, expected.position, 1e-12);
  EXPECT_NEAR(drive.motor().torque, 0, 1e-12);
}

TEST(RobotServo, OnTimeThereIsNoErrorToSpeakOf) {
  for (const Step& step : simulate({.joints = 3}, cycles(3000, 0))) {
    EXPECT_LE(std::abs(step.cycle.error_urad[step.joint]), 1);
  }
}

TEST(RobotServo, ConstantLatenessCostsVelocityTimesLateness) {
  constexpr double late_s = 100e-6;
  for (const Step& step : simulate({.joints = 3}, cycles(3000, 100'000))) {
    const double error_urad = step.cycle.error_urad[step.joint];
    EXPECT_NEAR(error_urad, step.reference.velocity * late_s * 1e6, 8);
  }
}

TEST(RobotServo, StopsSafelyOnceWhenThePlannerFallsSilent) {
  const ServoPlan plan{.joints = 2, .stale_ns = 100 * ms};
  const auto steps = simulate(plan, cycles(2000, 0), 1'005 * ms);
  // Published last at 1000 ms, so 1101 ms is the first cycle with set-points too old.
  for (const Step& step : steps) {
    const bool follows = step.cycle.due_ns >= 10 * ms && step.cycle.due_ns <= 1100 * ms;
    EXPECT_EQ(step.cycle.motion == Motion::following, follows) << step.cycle.due_ns;
  }
  EXPECT_GT(count_of(steps, Motion::stopping), 0U);
  const Step& last = steps.back();
  EXPECT_EQ(last.cycle.motion, Motion::standing);
  EXPECT_NEAR(last.motor.velocity, 0, 1e-3);
  EXPECT_LE(std::abs(last.cycle.error_urad[last.joint]), 10);
  for (const Step& step : steps) {
    EXPECT_LE(std::fabs(step.torque), Motor::torque_limit);
  }
}

TEST(RobotServo, MissesWithinTheLimitAreMadeUpForAndMoreStopTheRobot) {
  const ServoPlan plan{.joints = 2, .most_missed = 20};
  const auto bridged = simulate(plan, cycles_with_pause(1000, 20, 1000));
  EXPECT_EQ(count_of(bridged, Motion::stopping), 0U);
  const auto stopped = simulate(plan, cycles_with_pause(1000, 21, 2000));
  EXPECT_GT(count_of(stopped, Motion::stopping), 0U);
  // It stands, is given a way from there, and follows it: without a jump of the reference.
  EXPECT_EQ(stopped.back().cycle.motion, Motion::following);
  EXPECT_LE(std::abs(stopped.back().cycle.error_urad[0]), 1);
  for (std::size_t i = 2; i < stopped.size(); ++i) {
    const bool paused = stopped[i].cycle.due_ns - stopped[i - 2].cycle.due_ns > ms ||
                        stopped[i].cycle.activation_ns > stopped[i].cycle.due_ns;
    const double moved = stopped[i].reference.position - stopped[i - 2].reference.position;
    EXPECT_TRUE(paused || std::fabs(moved) < 0.03) << stopped[i].cycle.due_ns;
  }
}

TEST(RobotFigures, CountsWhatNeverRan) {
  Figures figures(1, ms);
  Cycle cycle;
  for (const std::int64_t due_ms : {1, 2, 3, 7, 8, 20}) {
    cycle.due_ns = due_ms * ms;
    cycle.activation_ns = cycle.due_ns + 1000;
    cycle.completion_ns = cycle.due_ns + 3000;
    figures.add(cycle);
  }
  EXPECT_EQ(figures.cycles(), 6);
  EXPECT_EQ(figures.missed(), 3 + 11);
  EXPECT_EQ(figures.max_latency_ns(), 3000);
}

TEST(RobotFigures, SpreadIsRootMeanSquareAndMagnitude) {
  Spread spread;
  for (const int value : {3, -4, 0, 5, -12}) {
    spread.add(value);
  }
  EXPECT_EQ(spread.max(), 12);
  EXPECT_EQ(spread.rms(), 6);  // sqrt(194 / 5) = 6.2
}

TEST(RobotFigures, StretchesGrowWithTimeAndLoseNothing) {
  std::mt19937_64 random(11);
  ErrorOverTime over_time;
  std::int64_t greatest = 0;
  std::int64_t missed = 0;
  std::int64_t time_ns = 12'345;
  for (int cycle = 0; cycle < 200'000; ++cycle) {
    const auto error = static_cast<std::int64_t>(random() % 1000);
    const auto skipped = static_cast<std::int64_t>(random() % 3);
    greatest = std::max(greatest, error);
    missed += skipped;
    over_time.add(time_ns, error, skipped);
    time_ns += ms * (skipped + 1);
  }
  const auto& stretches = over_time.stretches();
  EXPECT_LE(stretches.size(), ErrorOverTime::most_stretches);
  EXPECT_GT(stretches.size(), ErrorOverTime::most_stretches / 2 - 1);
  std::int64_t found_missed = 0;
  std::int64_t found_greatest = 0;
  for (const auto& stretch : stretches) {
    found_missed += stretch.missed;
    found_greatest = std::max(found_greatest, stretch.max_urad);
  }
  EXPECT_EQ(found_missed, missed);
  EXPECT_EQ(found_greatest, greatest);
  EXPECT_EQ(over_time.stretch_ns() % (10 * ms), 0);
}

TEST(RobotPlan, TunedIsTheDefault) {
  const std::array arguments{"--output=x", "--cpu=any", "--stale=20000000"};
  const RobotPlan plan = parse_robot_plan(arguments);
  EXPECT_EQ(plan.policy, probe::Policy::fifo);
  EXPECT_TRUE(plan.locked);
  EXPECT_FALSE(plan.cpu);
  EXPECT_EQ(plan.servo.stale_ns, 20 * ms);
}

TEST(RobotPlan, RefusesWhatDoesNotFit) {
  for (const char* const wrong :
       {"--joints=0", "--interval=5000000", "--stale=130000000", "--policy=deadline", "--cpu=none",
        "--memory=some", "--dma-latency=1", "--simulate=x"}) {
    const std::array arguments{"--output=x", wrong};
    EXPECT_THROW(static_cast<void>(parse_robot_plan(arguments)), probe::Failure) << wrong;
  }
}

TEST(RobotSimulation, RefusesInstantsThatCannotBe) {
  const std::string name = "latenz-instants-" + std::to_string(getpid());
  const auto path = std::filesystem::temp_directory_path() / name;
  const std::string header = "due_ns,activation_ns,completion_ns\n";
  const std::string first = "1000000,1000000,1000000\n";
  std::ofstream(path) << "time_ns\n" << first;
  EXPECT_THROW(static_cast<void>(read_instants(path, ms)), probe::Failure);
  for (const char* const rows :
       {"1,2", "1,2,3,4", "a,b,c", "0,0,0", "1000000,999999,1000000", "1000000,1000001,1000000",
        "1000000,1000000,1000000\n1000000,1000000,1000000", "99999999999999999999,1,1",
        "1000000,1000000,1000000\n2000001,2000001,2000001",
        "1000000,1000000,2000001\n2000000,2000000,2000000"}) {
    std::ofstream(path) << header << rows << "\n";
    EXPECT_THROW(static_cast<void>(read_instants(path, ms)), probe::Failure) << rows;
  }
  std::ofstream(path) << header << first << "3000000,3000001,3000002\n";
  EXPECT_EQ(read_instants(path, ms).back().completion_ns, 3'000'002);
  std::filesystem::remove(path);
  EXPECT_THROW(static_cast<void>(read_instants(path, ms)), probe::Failure);
}

}  // namespace
}  // namespace latenz::robot
