// SPDX-License-Identifier: Apache-2.0
// Waiting asleep under Linux: what a sleeper is told, by whom it is woken, and what it costs to
// sleep.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <type_traits>

#include "latenz/icc.hpp"
#include "latenz/icc/linux_memory.hpp"
#include "latenz/icc/linux_wait.hpp"

namespace latenz::icc {
namespace {

struct Sample {
  std::uint32_t number;
  float angle;
};

constexpr std::int64_t ms = 1'000'000;
using Asleep = Platform<Coherent, StandardOrder, Sleep<Futex>>;
using Box = Mailbox<Sample, Asleep>;
using PollingBox = Mailbox<Sample>;
using Servo = Exchange<Sample, Sample, Asleep>;

Until<MonotonicClock> in(std::int64_t duration_ns) {
  return Until<MonotonicClock>::after(duration_ns);
}

template <class Channel>
struct Memory {
  alignas(2 * line_bytes) std::array<std::byte, Channel::bytes> all{};

  auto create_writer() { return *Channel::Writer::create(all.data(), all.size(), "asleep"); }
  auto attach_reader() { return *Channel::Reader::attach(all.data(), all.size()); }
};

// Nothing for endpoints that poll, in memory of their own or the channel's.
static_assert(sizeof(Box::Writer) == sizeof(PollingBox::Writer));
static_assert(Box::bytes == PollingBox::bytes);
static_assert(std::is_same_v<Platform<>::Wait, Pause>);

TEST(Sleep, DeadlineIsKept) {
  Memory<Box> memory;
  [[maybe_unused]] const auto writer = memory.create_writer();
  auto reader = memory.attach_reader();
  Sample sample{};
  const std::int64_t begin_ns = MonotonicClock::now_ns();
  EXPECT_EQ(reader.read_until(sample, in(25 * ms)), Result::timeout);
  EXPECT_GE(MonotonicClock::now_ns() - begin_ns, 25 * ms);
  EXPECT_EQ(reader.read_until(sample, Until<MonotonicClock>{0}), Result::timeout);
  EXPECT_EQ(reader.read_until(sample, Checks{0}), Result::timeout);
}

TEST(Sleep, CostsNoProcessorTime) {
  Memory<Box> memory;
  [[maybe_unused]] const auto writer = memory.create_writer();
  auto reader = memory.attach_reader();
  Sample sample{};
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_THREAD, &before);
  EXPECT_EQ(reader.read_until(sample, in(100 * ms)), Result::timeout);
  getrusage(RUSAGE_THREAD, &after);
  EXPECT_GE(after.ru_nvcsw - before.ru_nvcsw, 1);   // it slept, which a spinner never does
  EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, 20);  // and no more often than it had to
}

TEST(Sleep, MessageWakesItsReader) {
  Memory<Box> memory;
  auto writer = memory.create_writer();
  auto reader = memory.attach_reader();
  std::thread other([&] {
    usleep(20'000);
    EXPECT_EQ(writer.write({7, 0}), Result::ok);
    EXPECT_EQ(writer.write({8, 0}), Result::ok);  // sleeps until the first one is read
  });
  Sample sample{};
  EXPECT_EQ(reader.read(sample), Result::ok);
  EXPECT_EQ(sample.number, 7U);
  EXPECT_EQ(reader.read(sample), Result::ok);
  EXPECT_EQ(sample.number, 8U);
  other.join();
}

TEST(Sleep, LeavingWakes) {
  Memory<Box> memory;
  auto writer = memory.create_writer();
  auto reader = memory.attach_reader();
  std::thread other([&] {
    usleep(20'000);
    writer.close();
  });
  Sample sample{};
  EXPECT_EQ(reader.read(sample), Result::peer_gone);
  other.join();
}

TEST(Sleep, WriterOfARingSleepsUntilASlotIsFree) {
  using Stream = Ring<Sample, 2, 2, Asleep>;
  Memory<Stream> memory;
  auto writer = memory.create_writer();
  auto first = *Stream::Reader::attach(memory.all.data(), memory.all.size(), 0);
  auto second = *Stream::Reader::attach(memory.all.data(), memory.all.size(), 1);
  constexpr std::uint32_t messages = 1000;
  const auto read_all = [](Stream::Reader& reader) {
    Sample sample{};
    for (std::uint32_t n = 1; n <= messages; ++n) {
      EXPECT_EQ(reader.read(sample), Result::ok);
      EXPECT_EQ(sample.number, n);
    }
  };
  std::thread one(read_all, std::ref(first));
  std::thread two(read_all, std::ref(second));
  for (std::uint32_t n = 1; n <= messages; ++n) EXPECT_EQ(writer.write({n, 0}), Result::ok);
  one.join();
  two.join();
}

// One side sleeps, the other one polls and never rings: late by a sleep at most, but not for ever.
TEST(Sleep, ReaderThatSleepsAndWriterThatPolls) {
  Memory<Box> memory;
  auto writer = *PollingBox::Writer::create(memory.all.data(), memory.all.size(), "polls");
  auto reader = memory.attach_reader();
  std::thread other([&] {
    for (std::uint32_t n = 1; n <= 20; ++n) EXPECT_EQ(writer.write({n, 0}), Result::ok);
  });
  Sample sample{};
  for (std::uint32_t n = 1; n <= 20; ++n) {
    EXPECT_EQ(reader.read(sample), Result::ok);
    EXPECT_EQ(sample.number, n);
  }
  other.join();
}

TEST(Sleep, WriterThatSleepsAndReaderThatPolls) {
  Memory<Box> memory;
  auto sleeper = memory.create_writer();
  auto poller = *PollingBox::Reader::attach(memory.all.data(), memory.all.size());
  Sample sample{};
  EXPECT_EQ(sleeper.write({21, 0}), Result::ok);
  EXPECT_EQ(sleeper.write_until({22, 0}, in(30 * ms)), Result::timeout);
  EXPECT_EQ(poller.read(sample), Result::ok);
  EXPECT_EQ(sample.number, 21U);
  EXPECT_EQ(sleeper.write({22, 0}), Result::ok);
}

void nothing(int /*signal*/) {}

TEST(Sleep, SignalsNeitherEndItNorLoseAWakeUp) {
  Memory<Box> memory;
  auto writer = memory.create_writer();
  auto reader = memory.attach_reader();
  struct sigaction action{};
  action.sa_handler = nothing;  // and no SA_RESTART
  sigaction(SIGUSR1, &action, nullptr);
  Sample sample{};
  const pthread_t sleeper = pthread_self();
  std::thread other([&] {
    for (int i = 0; i < 2000; ++i) {
      pthread_kill(sleeper, SIGUSR1);
      usleep(20);
    }
    EXPECT_EQ(writer.write({3, 0}), Result::ok);
  });
  EXPECT_EQ(reader.read(sample), Result::ok);  // thousands of looks are no silence
  EXPECT_EQ(sample.number, 3U);
  other.join();
}

// The servers of a process that is killed while this one sleeps, and of the one that follows.
TEST(Sleep, DeathAndRestartOfAPeer) {
  char name[40];
  std::snprintf(name, sizeof name, "/latenz-sleep-test-%d", static_cast<int>(getpid()));
  const LinuxMemory memory = LinuxMemory::create_shared(name, Servo::bytes);
  LinuxMemory::remove_shared(name);
  ASSERT_TRUE(memory) << memory.problem();
  auto client = *Servo::Client::create(memory.data(), memory.size(), "servo");
  const auto start_server = [&](bool answers) {
    const pid_t child = fork();
    if (child != 0) {
      return child;
    }
    auto server = *Servo::Server::attach(memory.data(), memory.size());
    Sample request{};
    while (server.take_until(request, Never{}) == Result::ok) {
      if (!answers) {
        pause();  // until it is killed
      }
      server.answer(request);
    }
    std::_Exit(0);
  };
  Sample reply{};
  const pid_t first = start_server(false);
  EXPECT_EQ(client.call_until({1, 0}, reply, in(200 * ms)), Result::timeout);
  kill(first, SIGKILL);
  waitpid(first, nullptr, 0);
  EXPECT_EQ(client.call_until({2, 0}, reply, in(20 * ms)), Result::timeout);
  pid_t second = 0;
  std::thread starting([&] {
    usleep(20'000);
    second = start_server(true);
  });
  EXPECT_EQ(client.call_until({3, 0}, reply, in(10'000 * ms)), Result::peer_restarted);
  starting.join();
  EXPECT_EQ(client.call_until({4, 0}, reply, in(10'000 * ms)), Result::ok);
  EXPECT_EQ(reply.number, 4U);
  client.close();
  int status = -1;
  waitpid(second, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Sleep, ChannelFormattedAnewIsNoticed) {
  Memory<Servo> memory;
  [[maybe_unused]] const auto writer =
      *Box::Writer::create(memory.all.data(), memory.all.size(), "box");
  auto reader = *Box::Reader::attach(memory.all.data(), memory.all.size());
  [[maybe_unused]] const auto client =
      *Servo::Client::create(memory.all.data(), memory.all.size(), "servo");
  Sample sample{};
  EXPECT_EQ(reader.read_until(sample, in(10'000 * ms)), Result::layout_changed);
}

TEST(Sleep, WaitsForAChannelThatComes) {
  Memory<Box> memory;
  EXPECT_EQ(
      Box::Reader::attach_until(memory.all.data(), memory.all.size(), in(5 * ms)).problem().flaw,
      Flaw::not_ready);
  std::thread other([&] {
    usleep(10'000);
    memory.create_writer();
  });
  EXPECT_TRUE(Box::Reader::attach_until(memory.all.data(), memory.all.size(), in(10'000 * ms)));
  other.join();
}

TEST(Futex, ReturnsAtOnceForAnotherValue) {
  std::uint32_t word = 1;
  const std::int64_t begin_ns = MonotonicClock::now_ns();
  Futex::wait(word, 0, 60'000 * ms);
  EXPECT_LT(MonotonicClock::now_ns() - begin_ns, 50'000 * ms);
}

}  // namespace
}  // namespace latenz::icc
