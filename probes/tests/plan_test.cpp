// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include <gtest/gtest.h>

#include "failure.hpp"

namespace latenz::probe {
namespace {

Plan plan_of(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"--output", "somewhere"});
  return parse_plan(arguments);
}

TEST(Plan, DefaultsAreThoseOfTheHelp) {
  const Plan plan = plan_of({});
  EXPECT_EQ(plan.policy, Policy::fifo);
  EXPECT_EQ(plan.priority, 80);
  EXPECT_EQ(plan.interval_ns, 1'000'000);
  EXPECT_EQ(plan.dma_latency_us, std::nullopt);
  EXPECT_EQ(plan.total_ns(), std::nullopt);
  EXPECT_FALSE(plan.cpus.empty());
}

TEST(Plan, TotalFollowsFromDurationOrCount) {
  EXPECT_EQ(plan_of({"--duration", "5"}).total_ns(), 5);
  EXPECT_EQ(plan_of({"--count", "7", "--interval", "10000"}).total_ns(), 70'000);
}

TEST(Plan, ThreadsSpreadEvenlyUnlessToldOtherwise) {
  Plan plan = plan_of({"--interval", "100000"});
  plan.cpus = {0, 1, 0, 1};
  EXPECT_EQ(plan.offset_of(0), 0);
  EXPECT_EQ(plan.offset_of(3), 75'000);
  plan.offset_ns = 10;
  EXPECT_EQ(plan.offset_of(3), 30);
}

TEST(Plan, RefusesContradictionsAndImpossibleValues) {
  const std::vector<std::vector<const char*>> wrong{
      {"--duration", "1", "--count", "1"},
      {"--interval", "9999"},
      {"--interval", "1ms"},
      {"--priority", "0"},
      {"--priority", "100"},
      {"--policy", "FIFO"},
      {"--clock", "tai"},
      {"--dma-latency", "1500"},
      {"--dma-latency", "-1"},
      {"--trace-snapshot"},
      {"--trace-instance", "x"},
      {"--break-above", "1", "--trace-instance", "../x"},
      {"--break-above", "1", "--trace-instance", ".."},
      {"--break-above", "1", "--trace-instance", ""},
      {"--count", "0"},
      {"--worst", "1001"},
      {"--keep", "everything"},
      {"--output", "twice"}};
  for (const auto& arguments : wrong) {
    EXPECT_THROW(plan_of(arguments), Failure) << arguments.front();
  }
  EXPECT_THROW(static_cast<void>(parse_plan({})), Failure);
}

TEST(Plan, DmaLatencyIsHeldInMicroseconds) {
  EXPECT_EQ(plan_of({"--dma-latency", "3000"}).dma_latency_us, 3);
  EXPECT_EQ(plan_of({"--dma-latency", "off"}).dma_latency_us, std::nullopt);
}

TEST(ThreadFolders, AreDistinctOnRepeatedCpus) {
  Plan plan;
  plan.cpus = {0, 1, 0, 1, 0};
  EXPECT_EQ(thread_folders(plan),
            (std::vector<std::string>{"cpu0", "cpu1", "cpu0-2", "cpu1-2", "cpu0-3"}));
}

TEST(ThreadFolders, NameNoCpuThatTheThreadsAreNotBoundTo) {
  Plan plan;
  plan.policy = Policy::deadline;
  plan.cpus = {1, 1};
  EXPECT_EQ(thread_folders(plan), (std::vector<std::string>{"thread0", "thread1"}));
}

}  // namespace
}  // namespace latenz::probe
