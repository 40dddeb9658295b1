// SPDX-License-Identifier: Apache-2.0
// Waiting asleep by eventfds: calls that wait, loops of poll(2) and epoll(7) in their place, and
// how the descriptors come to another process.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <utility>

#include "latenz/icc.hpp"
#include "latenz/icc/linux_eventfd.hpp"
#include "latenz/icc/linux_memory.hpp"

namespace latenz::icc {
namespace {

struct Sample {
  std::uint32_t number;
  float angle;
};

constexpr std::int64_t ms = 1'000'000;
// A second without look: who is woken by less has been rung for.
using Asleep = Platform<Coherent, StandardOrder, Sleep<EventFd, 1'000'000'000>>;
using Box = Mailbox<Sample, Asleep>;
using Servo = Exchange<Sample, Sample, Asleep>;

Until<MonotonicClock> in(std::int64_t duration_ns) {
  return Until<MonotonicClock>::after(duration_ns);
}

bool readable(int fd, int longest_ms = 0) {
  pollfd asked{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&asked, 1, longest_ms) == 1 && (asked.revents & POLLIN) != 0;
}

template <class Channel>
struct Memory {
  Memory() { EXPECT_TRUE(bells) << bells.problem(); }
  template <class Endpoint>
  Endpoint ready(Opened<Endpoint> opened) {
    opened->use_bells(bells);
    return *opened;
  }
  auto create_writer() { return ready(Channel::Writer::create(all.data(), all.size(), "asleep")); }
  template <class... Index>
  auto attach_reader(Index... index) {
    return ready(Channel::Reader::attach(all.data(), all.size(), index...));
  }

  alignas(2 * line_bytes) std::array<std::byte, Channel::bytes> all{};
  EventFds<Channel> bells = EventFds<Channel>::create();
};

TEST(SleepByEventFd, CallsThatWait) {
  Memory<Box> memory;
  auto writer = memory.create_writer();
  auto reader = memory.attach_reader();
  Sample sample{};
  EXPECT_EQ(reader.read_until(sample, in(5 * ms)), Result::timeout);
  constexpr std::uint32_t messages = 2000;
  std::thread other([&] {
    for (std::uint32_t n = 1; n <= messages; ++n) EXPECT_EQ(writer.write({n, 0}), Result::ok);
  });
  for (std::uint32_t n = 1; n <= messages; ++n) {
    EXPECT_EQ(reader.read(sample), Result::ok);
    EXPECT_EQ(sample.number, n);
  }
  other.join();
  std::thread leaving([&] {
    usleep(10'000);
    writer.close();
  });
  EXPECT_EQ(reader.read(sample), Result::peer_gone);
  leaving.join();
}

TEST(SleepByEventFd, EachReaderOfARingIsWoken) {
  using Stream = Ring<Sample, 2, 3, Asleep>;
  Memory<Stream> memory;
  auto writer = memory.create_writer();
  constexpr std::uint32_t messages = 500;
  std::array<std::thread, 3> readers;
  for (std::uint32_t i = 0; i < 3; ++i) {
    readers[i] = std::thread([reader = memory.attach_reader(i)]() mutable {
      Sample sample{};
      for (std::uint32_t n = 1; n <= messages; ++n) {
        EXPECT_EQ(reader.read(sample), Result::ok);
        EXPECT_EQ(sample.number, n);
      }
    });
  }
  for (std::uint32_t n = 1; n <= messages; ++n) EXPECT_EQ(writer.write({n, 0}), Result::ok);
  for (std::thread& reader : readers) reader.join();
}

TEST(SleepByEventFd, DescriptorIsReadableWhenWhatIsAwaitedHasCome) {
  Memory<Box> memory;
  auto writer = memory.create_writer();
  auto reader = memory.attach_reader();
  Sample sample{};
  EXPECT_EQ(reader.arm(), Result::ok);
  EXPECT_EQ(reader.try_read(sample), Result::empty);
  EXPECT_FALSE(readable(reader.fd()));
  EXPECT_EQ(writer.try_write({1, 0}), Result::ok);
  EXPECT_TRUE(readable(reader.fd()));
  EXPECT_TRUE(readable(reader.fd()));  // until it is armed again
  EXPECT_EQ(reader.arm(), Result::ok);
  EXPECT_FALSE(readable(reader.fd()));  // which is why the check comes behind it:
  EXPECT_EQ(reader.try_read(sample), Result::ok);
  reader.disarm();
  EXPECT_EQ(writer.try_write({2, 0}), Result::ok);
  EXPECT_FALSE(readable(reader.fd()));  // not armed: nobody rings

  EXPECT_EQ(writer.arm(), Result::ok);
  EXPECT_EQ(writer.try_write({3, 0}), Result::full);
  EXPECT_FALSE(readable(writer.fd()));
  EXPECT_EQ(reader.try_read(sample), Result::ok);
  EXPECT_TRUE(readable(writer.fd()));
}

TEST(SleepByEventFd, ComingAndLeavingMakeItReadable) {
  Memory<Box> memory;
  auto writer = memory.create_writer();
  auto reader = memory.attach_reader();
  Sample sample{};
  EXPECT_EQ(reader.arm(), Result::ok);
  writer.close();
  EXPECT_TRUE(readable(reader.fd()));
  EXPECT_EQ(reader.arm(), Result::peer_gone);
  EXPECT_FALSE(readable(reader.fd()));
  [[maybe_unused]] const auto restarted = memory.create_writer();
  EXPECT_TRUE(readable(reader.fd()));
  EXPECT_EQ(reader.arm(), Result::peer_restarted);
  EXPECT_EQ(reader.try_read(sample), Result::peer_restarted);
  EXPECT_EQ(reader.arm(), Result::ok);
  memory.all.fill(std::byte{});  // somebody else's channel
  EXPECT_EQ(reader.arm(), Result::layout_changed);
}

TEST(SleepByEventFd, ReaderOfALatestIsWokenByAnUpdate) {
  using State = Latest<Sample, 2, Asleep>;
  Memory<State> memory;
  auto writer = memory.create_writer();
  auto first = memory.attach_reader(0U);
  auto second = memory.attach_reader(1U);
  EXPECT_EQ(first.arm(), Result::ok);
  EXPECT_EQ(second.arm(), Result::ok);
  writer.update({1, 0});
  EXPECT_TRUE(readable(first.fd()));
  EXPECT_TRUE(readable(second.fd()));
}

// Somebody who sleeps already when the other side is given its eventfds, behind what it wrote.
TEST(SleepByEventFd, TakenIntoUseLate) {
  Memory<Box> memory;
  auto writer = *Box::Writer::create(memory.all.data(), memory.all.size(), "late");
  EXPECT_EQ(writer.fd(), -1);
  auto reader = memory.attach_reader();
  EXPECT_EQ(reader.arm(), Result::ok);
  EXPECT_EQ(writer.write({1, 0}), Result::ok);
  EXPECT_FALSE(readable(reader.fd()));
  writer.use_bells(memory.bells);
  EXPECT_TRUE(readable(reader.fd()));
}

TEST(SleepByEventFd, WithoutDescriptorsItLooksNowAndThen) {
  using Soon = Mailbox<Sample, Platform<Coherent, StandardOrder, Sleep<EventFd>>>;
  alignas(2 * line_bytes) std::array<std::byte, Soon::bytes> all{};
  auto writer = *Soon::Writer::create(all.data(), all.size(), "mute");
  auto reader = *Soon::Reader::attach(all.data(), all.size());
  std::thread other([&] {
    for (std::uint32_t n = 1; n <= 5; ++n) EXPECT_EQ(writer.write({n, 0}), Result::ok);
  });
  Sample sample{};
  for (std::uint32_t n = 1; n <= 5; ++n) {
    EXPECT_EQ(reader.read(sample), Result::ok);
    EXPECT_EQ(sample.number, n);
  }
  other.join();
}

void nothing(int /*signal*/) {}

TEST(SleepByEventFd, SignalsDoNotEndAWait) {
  struct sigaction action{};
  action.sa_handler = nothing;  // and no SA_RESTART
  sigaction(SIGUSR1, &action, nullptr);
  Memory<Box> memory;
  auto writer = memory.create_writer();
  auto reader = memory.attach_reader();
  const pthread_t sleeper = pthread_self();
  std::thread other([&] {
    for (int i = 0; i < 500; ++i) {
      pthread_kill(sleeper, SIGUSR1);
      usleep(20);
    }
    EXPECT_EQ(writer.write({3, 0}), Result::ok);
  });
  Sample sample{};
  EXPECT_EQ(reader.read(sample), Result::ok);
  other.join();
}

LinuxMemory shared_memory(std::size_t bytes) {
  char name[40];
  std::snprintf(name, sizeof name, "/latenz-eventfd-test-%d", static_cast<int>(getpid()));
  LinuxMemory memory = LinuxMemory::create_shared(name, bytes);
  LinuxMemory::remove_shared(name);
  EXPECT_TRUE(memory) << memory.problem();
  return memory;
}

constexpr std::uint32_t calls = 2000;
constexpr int patience_ms = 60'000;  // far beyond any delay: a wake-up that is lost fails the test

// The loop of docs/icc-linux.md, for the channel and another descriptor.
int serve_in_loop(const LinuxMemory& memory, const EventFds<Servo>& bells, int stop) {
  auto server = *Servo::Server::attach_until(memory.data(), memory.size(), in(60'000 * ms));
  server.use_bells(bells);
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  for (const int fd : {server.fd(), stop}) {
    epoll_event wanted{.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(loop, EPOLL_CTL_ADD, fd, &wanted);
  }
  for (;;) {
    Sample request{};
    const Result armed = server.arm();
    const Result checked = server.try_take(request);
    if (checked == Result::ok) server.answer({.number = request.number + 1, .angle = 0});
    if (checked != Result::empty) continue;
    if (armed == Result::peer_gone) return 0;
    if (armed != Result::ok) continue;
    epoll_event event{};
    if (epoll_wait(loop, &event, 1, patience_ms) != 1) return 3;
    if (event.data.fd == stop) return 4;
  }
}

void call_server(const LinuxMemory& memory, const EventFds<Servo>& bells) {
  auto client = *Servo::Client::create(memory.data(), memory.size(), "servo");
  client.use_bells(bells);
  Sample reply{};
  for (std::uint32_t n = 1; n <= calls; ++n) {
    ASSERT_EQ(client.call_until({n, 0}, reply, in(std::int64_t{patience_ms} * ms)), Result::ok);
    EXPECT_EQ(reply.number, n + 1);
  }
  client.close();
}

int exit_code_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SleepByEventFd, LoopOfEpollInAChildThatInheritsThem) {
  const LinuxMemory memory = shared_memory(Servo::bytes);
  const auto bells = EventFds<Servo>::create();
  std::array<int, 2> stop{};
  ASSERT_EQ(pipe(stop.data()), 0);
  const pid_t child = fork();
  if (child == 0) std::_Exit(serve_in_loop(memory, bells, stop[0]));
  call_server(memory, bells);
  EXPECT_EQ(exit_code_of(child), 0);
}

TEST(SleepByEventFd, LoopOfEpollInAProcessToWhichTheyAreSent) {
  const LinuxMemory memory = shared_memory(Servo::bytes);
  std::array<int, 2> sockets{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
  const pid_t child = fork();  // before there are eventfds that it could inherit
  if (child == 0) {
    const auto received = EventFds<Servo>::receive(sockets[1]);
    std::_Exit(received ? serve_in_loop(memory, received, sockets[1]) : 5);
  }
  const auto bells = EventFds<Servo>::create();
  ASSERT_TRUE(bells.send(sockets[0]));
  call_server(memory, bells);
  EXPECT_EQ(exit_code_of(child), 0);
}

TEST(EventFds, WhatIsNotReceived) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()), 0);
  using Stream = Ring<Sample, 2, 3, Asleep>;
  const auto next_free_fd = [] {
    const int fd = dup(0);
    close(fd);
    return fd;
  };
  const int before = next_free_fd();
  const auto expect_refused = [&](const char* problem) {
    const auto received = EventFds<Servo>::receive(sockets[1]);
    EXPECT_FALSE(received);
    EXPECT_STREQ(received.problem(), problem);
  };
  {
    const auto four = EventFds<Stream>::create();
    ASSERT_TRUE(four.send(sockets[0]));
    expect_refused("no eventfds of a channel with as many sides");
    const std::uint32_t two = 2;  // it says so, and sends none
    ASSERT_EQ(write(sockets[0], &two, sizeof two), ssize_t{sizeof two});
    expect_refused("no eventfds of a channel with as many sides");
  }
  EXPECT_EQ(next_free_fd(), before);  // nothing leaked
  close(sockets[0]);
  expect_refused("the sender has closed the socket");
  EXPECT_FALSE(EventFds<Servo>::receive(-1));
  const auto bells = EventFds<Servo>::create();
  EXPECT_FALSE(bells.send(-1));
  close(sockets[1]);
}

TEST(EventFds, AreClosedOnceWhenMoved) {
  auto first = EventFds<Servo>::create();
  const int fd = first.of(0);
  auto second = std::move(first);
  EXPECT_EQ(second.of(0), fd);
  EXPECT_EQ(first.of(0), -1);  // NOLINT(bugprone-use-after-move): on purpose
  EXPECT_EQ(second.of(2), -1);
  second = EventFds<Servo>::create();
  EXPECT_FALSE(readable(second.of(0)));
  EXPECT_GE(second.of(0), 0);
}

}  // namespace
}  // namespace latenz::icc
