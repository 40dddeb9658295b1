// SPDX-License-Identifier: Apache-2.0
// How long a message takes that is made and read where it lies, by its size: there and back between
// two threads through two rings, in turns with a word that both poll.
//
//   loans CPU CPU ROUNDS TRIPS    prints one line of JSON for each size and round
//
// Who makes a message writes its first and last word, and who takes it reads them: the rest of a
// large message is filled and read at the same price wherever it lies. Beside it the same by
// copying calls, and by the least that can copy: memcpy into as many slots in turn, and a word that
// tells. Built by bench/icc_loans.py.
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "latenz/icc/ring.hpp"
#include "messages.hpp"

namespace {

using latenz::bench::Message;
using latenz::bench::now_ns;

using latenz::icc::Result;

void stay_on(int cpu) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  pthread_setaffinity_np(pthread_self(), sizeof only, &only);
}

template <std::size_t size>
class Way {
  using M = Message<size>;
  using Ring = latenz::icc::Ring<M, 4, 1>;

 public:
  void send(std::uint32_t number) {
    M* message = nullptr;
    while (writer_.try_loan(message) != Result::ok) latenz::bench::pause();
    message->words[0] = number;
    message->words[size / 4 - 1] = number;
    writer_.publish();
  }
  /// The number of the message that came; 0: its ends differ.
  std::uint32_t receive() {
    const M* message = nullptr;
    while (reader_.try_take(message) != Result::ok) latenz::bench::pause();
    const std::uint32_t number = message->words[0];
    const bool whole = message->words[size / 4 - 1] == number;
    return reader_.release() == Result::ok && whole ? number : 0;
  }

 private:
  struct alignas(128) Memory {
    std::byte bytes[Ring::bytes]{};
  };
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  typename Ring::Writer writer_ = *Ring::Writer::create(memory_.get(), Ring::bytes, "there");
  typename Ring::Reader reader_ =
      *Ring::Reader::attach(memory_.get(), Ring::bytes, std::uint32_t{0});
};

template <std::size_t size>
class CopyingWay {
  using M = Message<size>;
  using Ring = latenz::icc::Ring<M, 4, 1>;

 public:
  void send(std::uint32_t number) {
    sent_.words[0] = sent_.words[size / 4 - 1] = number;
    while (writer_.try_write(sent_) != Result::ok) latenz::bench::pause();
  }
  std::uint32_t receive() {
    while (reader_.try_read(received_) != Result::ok) latenz::bench::pause();
    const std::uint32_t number = received_.words[0];
    return received_.words[size / 4 - 1] == number ? number : 0;
  }

 private:
  struct alignas(128) Memory {
    std::byte bytes[Ring::bytes]{};
  };
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  typename Ring::Writer writer_ = *Ring::Writer::create(memory_.get(), Ring::bytes, "there");
  typename Ring::Reader reader_ =
      *Ring::Reader::attach(memory_.get(), Ring::bytes, std::uint32_t{0});
  alignas(128) M sent_{};
  alignas(128) M received_{};
};

template <std::size_t size>
class MemcpyWay {
  using M = Message<size>;

 public:
  void send(std::uint32_t number) {
    sent_.words[0] = sent_.words[size / 4 - 1] = number;
    std::memcpy(&slots_[number % 4], &sent_, size);
    newest_.store(number, std::memory_order_release);
  }
  std::uint32_t receive() {
    const std::uint32_t number = ++seen_;
    while (newest_.load(std::memory_order_acquire) != number) latenz::bench::pause();
    std::memcpy(&received_, &slots_[number % 4], size);
    return received_.words[0] == number && received_.words[size / 4 - 1] == number ? number : 0;
  }

 private:
  alignas(128) M slots_[4]{};
  alignas(128) std::atomic<std::uint32_t> newest_{0};
  alignas(128) M sent_{};
  alignas(128) M received_{};
  std::uint32_t seen_ = 0;
};

class Word {
 public:
  void send(std::uint32_t number) { word_.store(number, std::memory_order_release); }
  std::uint32_t receive(std::uint32_t number) {
    while (word_.load(std::memory_order_acquire) != number) latenz::bench::pause();
    return number;
  }

 private:
  alignas(128) std::atomic<std::uint32_t> word_{0};
};

struct Setting {
  int cpus[2];
  std::uint32_t trips;
};

/// The median of all round trips, halved; `there` and `back` send and receive numbers from 1.
template <class Ask, class Answer>
double half_trip_ns(const Setting& setting, Ask ask, Answer answer) {
  std::atomic<bool> ready{false};
  std::thread other([&] {
    stay_on(setting.cpus[1]);
    ready = true;
    for (std::uint32_t n = 1; n <= setting.trips; ++n) answer(n);
  });
  while (!ready) sched_yield();
  std::vector<std::int64_t> took(setting.trips);
  for (std::uint32_t n = 1; n <= setting.trips; ++n) {
    const std::int64_t begin_ns = now_ns();
    ask(n);
    took[n - 1] = now_ns() - begin_ns;
  }
  other.join();
  const auto middle = took.begin() + setting.trips / 2;
  std::nth_element(took.begin(), middle, took.end());
  return static_cast<double>(*middle) / 2;
}

/// There and back by two ways of a kind; counts messages that came damaged.
template <class Kind>
double half_trip_of(const Setting& setting, std::uint32_t& wrong) {
  const auto there = std::make_unique<Kind>();
  const auto back = std::make_unique<Kind>();
  return half_trip_ns(
      setting,
      [&](std::uint32_t n) {
        there->send(n);
        wrong += back->receive() != n ? 1 : 0;
      },
      [&](std::uint32_t /*n*/) { back->send(there->receive()); });
}

template <std::size_t size>
void measure(std::size_t round, const Setting& setting) {
  Word one;
  const double raw = half_trip_ns(
      setting,
      [&](std::uint32_t n) {
        one.send(2 * n - 1);
        one.receive(2 * n);
      },
      [&](std::uint32_t n) {
        one.receive(2 * n - 1);
        one.send(2 * n);
      });
  std::uint32_t wrong = 0;
  const double loans = half_trip_of<Way<size>>(setting, wrong);
  const double copying = half_trip_of<CopyingWay<size>>(setting, wrong);
  const double least = half_trip_of<MemcpyWay<size>>(setting, wrong);
  std::printf(
      "{\"bytes\": %zu, \"round\": %zu, \"raw_ns\": %.1f, \"ns\": %.1f, \"copying_ns\": %.1f, "
      "\"memcpy_ns\": %.1f, \"wrong\": %u}\n",
      size, round, raw, loans, copying, least, wrong);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("loans: needs two CPUs, rounds, and round trips\n", stderr);
    return 2;
  }
  const Setting setting{.cpus = {std::atoi(argv[1]), std::atoi(argv[2])},
                        .trips = static_cast<std::uint32_t>(std::atoi(argv[4]))};
  stay_on(setting.cpus[0]);
  const std::size_t rounds = std::strtoull(argv[3], nullptr, 10);
  for (std::size_t round = 0; round < rounds; ++round) {
    measure<8>(round, setting);
    measure<64>(round, setting);
    measure<1024>(round, setting);
    measure<4096>(round, setting);
    measure<16384>(round, setting);
    measure<65536>(round, setting);
  }
  return 0;
}
