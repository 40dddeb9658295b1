// SPDX-License-Identifier: Apache-2.0
// Two processes that wait for each other asleep: is a wake-up ever lost, and what waiting costs.
//
//   latenz-icc-sleep torture futex|eventfd|c mailbox|exchange|ring MESSAGES [CPU]
//   latenz-icc-sleep cost pause|yield|sleep CALLS PERIOD_US
//
// torture: nobody wakes by himself, so that who is not woken stands still, which ends the program
// after a minute with exit code 1. Random delays before each call move both sides against each
// other. With a CPU both run on that one: then nearly each message is slept for. c: latenz/icc.h,
// by futexes. Prints JSON: messages, sleeps (voluntary context switches of both, as the kernel
// counts them), rings.
//
// cost: a client calls once a period and a server answers, by an exchange with this wait policy.
// Prints JSON: percentiles of a call's time, and both processes' processor time in all.
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <vector>

#include "endless.hpp"
#include "latenz/icc.hpp"
#include "latenz/icc/linux_memory.hpp"
#include "latenz/icc/linux_wait.hpp"
#include "sleeping_c.hpp"

namespace latenz::icc {
namespace {

constexpr std::uint8_t patience_s = 60;
constexpr std::uint32_t messages_per_sign = 1U << 14U;

using tests::Endless;
using ByFutex = Platform<Coherent, StandardOrder, tests::SleepEndless>;
using ByEventFd = Platform<Coherent, StandardOrder, tests::SleepEndlessByEventFd>;

struct Number {
  std::uint32_t value;
  std::uint32_t again;
};

[[noreturn]] void stop(const char* what) {
  std::fprintf(stderr, "latenz-icc-sleep: %s\n", what);
  std::exit(1);
}

void require(bool holds, const char* what) {
  if (!holds) stop(what);
}

volatile std::uint32_t newest_message = 0;  ///< of this process

/// Slow is not still: a machine that has other work may take minutes for what resets the alarm.
void stands_still(int /*signal*/) {
  static std::uint32_t before = 0;
  if (newest_message != before) {
    before = newest_message;
    alarm(patience_s);
    return;
  }
  constexpr std::string_view told = "latenz-icc-sleep: nothing for a minute: a wake-up was lost\n";
  const ssize_t ignored = write(STDERR_FILENO, told.data(), told.size());
  _exit(ignored == 0 ? 2 : 1);
}

/// Waits a random while, mostly none, at most some microseconds.
class Delay {
 public:
  explicit Delay(std::uint32_t seed) : state_{seed} {}
  void operator()() {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 17U;
    state_ ^= state_ << 5U;
    for (std::uint32_t left = (state_ & 3U) == 0 ? state_ >> 4U & 1023U : 0; left != 0; --left)
      asm volatile("" ::: "memory");
  }

 private:
  std::uint32_t state_;
};

/// Counts messages, and sets the alarm anew.
void count(std::uint32_t message) {
  newest_message = message;
  if (message % messages_per_sign == 1) alarm(patience_s);
}

/// What both processes share besides the channel.
struct Beside {
  std::atomic<std::uint32_t> attached;
  std::uint64_t rings_of_second;
};
Beside* beside = nullptr;

void await_second() {
  while (beside->attached == 0) sched_yield();
}

/// As soon as the other side has created the channel.
template <class Endpoint, class... Index>
Endpoint attached(void* memory, std::size_t bytes, Index... index) {
  for (;;) {
    if (auto opened = Endpoint::attach(memory, bytes, index...)) return *opened;
    sched_yield();
  }
}

/// Calls `one(number)` for each message, after a delay.
template <class One>
void for_each_message(std::uint32_t messages, std::uint32_t seed, One one) {
  Delay delay{seed};
  for (std::uint32_t n = 1; n <= messages; ++n) {
    count(n);
    delay();
    one(n);
  }
}

/// What wakes the sides besides words in memory: nothing, or descriptors made before the fork.
template <class Of>
struct Bells {
  void give_to(auto& endpoint) const {
    if constexpr (requires { endpoint.use_bells(all); }) endpoint.use_bells(all);
  }
  EventFds<Of> all = EventFds<Of>::create();
};

/// Of a mailbox or a ring, whose reader is told its index.
template <class Of, class... Index>
struct StreamOfNumbers {
  using Channel = Of;
  static void first(void* memory, const Bells<Of>& bells, std::uint32_t messages) {
    auto writer = *Channel::Writer::create(memory, Channel::bytes, "tortured");
    bells.give_to(writer);
    await_second();  // a ring waits for nobody who is not there
    for_each_message(messages, 1, [&](std::uint32_t n) {
      require(writer.write({n, ~n}) == Result::ok, "a message could not be written");
    });
  }
  static void second(void* memory, const Bells<Of>& bells, std::uint32_t messages) {
    auto reader = attached<typename Channel::Reader>(memory, Channel::bytes, Index{}...);
    bells.give_to(reader);
    beside->attached = 1;
    Number got{};
    for_each_message(messages, 2, [&](std::uint32_t n) {
      require(reader.read(got) == Result::ok, "a message could not be read");
      require(got.value == n && got.again == ~n, "not the next message");
    });
  }
};

template <class Of>
struct ExchangeOfNumbers {
  using Channel = Of;
  static void first(void* memory, const Bells<Of>& bells, std::uint32_t messages) {
    auto client = *Channel::Client::create(memory, Channel::bytes, "tortured");
    bells.give_to(client);
    Number reply{};
    for_each_message(messages, 1, [&](std::uint32_t n) {
      require(client.call({n, ~n}, reply) == Result::ok, "a call was not answered");
      require(reply.value == ~n && reply.again == n, "another call's reply");
    });
  }
  static void second(void* memory, const Bells<Of>& bells, std::uint32_t messages) {
    auto server = attached<typename Channel::Server>(memory, Channel::bytes);
    bells.give_to(server);
    const auto answer = [](const Number& request) {
      return Number{.value = request.again, .again = request.value};
    };
    for_each_message(messages, 2, [&](std::uint32_t /*number*/) {
      require(server.serve_until(answer, Never{}) == Result::ok, "no request came");
    });
  }
};

/// Memory that this process and its children share.
LinuxMemory shared_memory(std::size_t bytes) {
  char name[32];
  std::snprintf(name, sizeof name, "/latenz-icc-sleep-%d", static_cast<int>(getpid()));
  LinuxMemory memory = LinuxMemory::create_shared(name, bytes);
  LinuxMemory::remove_shared(name);
  if (!memory) stop(memory.problem());
  return memory;
}

rusage used(int whose) {
  rusage told{};
  getrusage(whose, &told);
  return told;
}

/// Runs both sides, the second one in a child; what the child was used for is `RUSAGE_CHILDREN`'s.
template <class First, class Second>
void run_both(First first, Second second) {
  const pid_t child = fork();
  require(child >= 0, "cannot fork");
  if (child == 0) {
    second();
    std::_Exit(0);
  }
  first();
  int status = 0;
  waitpid(child, &status, 0);
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other side failed");
}

/// Both sides to come run on this one.
void stay_on(std::uint32_t cpu) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  require(sched_setaffinity(0, sizeof only, &only) == 0, "no such CPU for this program");
}

template <class Numbers>
void torture(std::uint32_t messages) {
  const Bells<typename Numbers::Channel> bells;
  require(static_cast<bool>(bells.all), bells.all.problem());
  constexpr std::size_t bytes = detail::whole_lines(Numbers::Channel::bytes);
  const LinuxMemory memory = shared_memory(bytes + line_bytes);
  beside = reinterpret_cast<Beside*>(static_cast<std::byte*>(memory.data()) + bytes);
  std::signal(SIGALRM, stands_still);
  const std::int64_t begin_ns = MonotonicClock::now_ns();
  run_both([&] { Numbers::first(memory.data(), bells, messages); },
           [&] {
             Numbers::second(memory.data(), bells, messages);
             beside->rings_of_second = Endless::rings;
           });
  const std::int64_t taken_ns = MonotonicClock::now_ns() - begin_ns;
  const std::uint64_t rings = Endless::rings + beside->rings_of_second;
  std::printf("{\"messages\": %u, \"sleeps\": %ld, \"rings\": %llu, \"taken_ns\": %lld}\n",
              messages, used(RUSAGE_SELF).ru_nvcsw + used(RUSAGE_CHILDREN).ru_nvcsw,
              static_cast<unsigned long long>(rings), static_cast<long long>(taken_ns));
}

std::int64_t cpu_ns(int whose) {
  const rusage told = used(whose);
  const auto ns = [](const timeval& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + std::int64_t{time.tv_usec} * 1000;
  };
  return ns(told.ru_utime) + ns(told.ru_stime);
}

void sleep_until(std::int64_t time_ns) {
  const timespec until{time_ns / 1'000'000'000, time_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

template <class Wait>
void cost(std::uint32_t calls, std::uint32_t period_us) {
  using Channel = Exchange<Number, Number, Platform<Coherent, StandardOrder, Wait>>;
  const LinuxMemory memory = shared_memory(Channel::bytes);
  std::vector<std::int64_t> took_ns;
  took_ns.reserve(calls);
  const auto ask = [&] {
    auto client = *Channel::Client::create(memory.data(), Channel::bytes, "asked");
    std::int64_t next_ns = MonotonicClock::now_ns();
    Number reply{};
    for (std::uint32_t n = 0; n < calls; ++n) {
      sleep_until(next_ns += std::int64_t{period_us} * 1000);
      const std::int64_t begin_ns = MonotonicClock::now_ns();
      require(client.call({n, 0}, reply) == Result::ok, "a call was not answered");
      took_ns.push_back(MonotonicClock::now_ns() - begin_ns);
    }
    client.close();
  };
  const auto answer = [&] {
    auto server = *Channel::Server::attach_until(memory.data(), Channel::bytes, Never{});
    while (server.serve([](const Number& request) { return request; }) == Result::ok) {
    }
  };
  const std::int64_t begin_ns = MonotonicClock::now_ns();
  run_both(ask, answer);
  const std::int64_t taken_ns = MonotonicClock::now_ns() - begin_ns;
  const std::int64_t used_ns = cpu_ns(RUSAGE_SELF) + cpu_ns(RUSAGE_CHILDREN);
  std::ranges::sort(took_ns);
  std::printf(
      "{\"calls\": %u, \"p50_ns\": %lld, \"p99_ns\": %lld, \"max_ns\": %lld, "
      "\"taken_ns\": %lld, \"cpu_ns\": %lld}\n",
      calls, static_cast<long long>(took_ns[calls / 2]),
      static_cast<long long>(took_ns[calls * std::size_t{99} / 100]),
      static_cast<long long>(took_ns.back()), static_cast<long long>(taken_ns),
      static_cast<long long>(used_ns));
}

bool number_of(const char* text, std::uint32_t& number) {
  const char* const end = text + std::strlen(text);
  const auto read = std::from_chars(text, end, number);
  return read.ec == std::errc{} && read.ptr == end && number != 0;
}

template <template <class, class> class MailboxOf, template <class, class, class> class ExchangeOf,
          template <class, std::size_t, std::size_t, class> class RingOf, class P>
bool torture_one(std::string_view which, std::uint32_t messages) {
  if (which == "mailbox") return torture<StreamOfNumbers<MailboxOf<Number, P>>>(messages), true;
  if (which == "exchange")
    return torture<ExchangeOfNumbers<ExchangeOf<Number, Number, P>>>(messages), true;
  if (which == "ring")
    return torture<StreamOfNumbers<RingOf<Number, 4, 1, P>, std::uint32_t>>(messages), true;
  return false;
}

bool torture_by(std::string_view bell, std::string_view which, std::uint32_t messages) {
  if (bell == "futex") return torture_one<Mailbox, Exchange, Ring, ByFutex>(which, messages);
  if (bell == "eventfd") return torture_one<Mailbox, Exchange, Ring, ByEventFd>(which, messages);
  if (bell == "c") return torture_one<c::Mailbox, c::Exchange, c::Ring, ByFutex>(which, messages);
  return false;
}

bool run(int words, char* const* word) {
  std::uint32_t count = 0;
  std::uint32_t period_us = 0;
  if (words < 5) return false;
  const std::string_view what{word[1]};
  const std::string_view which{word[2]};
  if (what == "torture" && words <= 6 && number_of(word[4], count)) {
    std::uint32_t cpu = 0;
    if (words == 6) {
      const char* const end = word[5] + std::strlen(word[5]);
      const auto read = std::from_chars(word[5], end, cpu);
      if (read.ec != std::errc{} || read.ptr != end || cpu >= CPU_SETSIZE) return false;
      stay_on(cpu);
    }
    return torture_by(which, word[3], count);
  }
  if (what == "cost" && words == 5 && number_of(word[3], count) && number_of(word[4], period_us)) {
    if (which == "pause") return cost<Pause>(count, period_us), true;
    if (which == "yield") return cost<Yield>(count, period_us), true;
    if (which == "sleep") return cost<Sleep<Futex>>(count, period_us), true;
  }
  return false;
}

}  // namespace
}  // namespace latenz::icc

int main(int words, char* const* word) {
  if (latenz::icc::run(words, word)) return 0;
  std::fprintf(
      stderr,
      "latenz-icc-sleep: say torture futex|eventfd|c mailbox|exchange|ring MESSAGES [CPU], "
      "or cost pause|yield|sleep CALLS PERIOD_US\n");
  return 2;
}
