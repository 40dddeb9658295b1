// SPDX-License-Identifier: Apache-2.0
// How many messages a second one thread hands to another, through latenz::icc::Ring and through the
// queues that people use otherwise, all in turns; and how long each takes at a given rate.
//
//   throughput CPU CPU ROUNDS MESSAGES    prints one line of JSON a measurement
//   throughput --queues                   prints the queues that this was built with
//
// Built by bench/icc_throughput.py, with LATENZ_HAS_... for each peer that is installed.
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "latenz/icc/ring.hpp"
#include "messages.hpp"
#ifdef LATENZ_HAS_BOOST
#include <boost/lockfree/spsc_queue.hpp>
#endif
#ifdef LATENZ_HAS_READERWRITERQUEUE
#include <readerwriterqueue/readerwriterqueue.h>
#endif
#ifdef LATENZ_HAS_DPDK
#include <rte_ring.h>
#include <rte_ring_elem.h>
#endif

namespace {

using latenz::bench::Message;
using latenz::bench::now_ns;

constexpr std::size_t slots = 1024;

// A queue has push(messages, count) and pop(messages, count), which return how many went; `batches`
// tells whether more than one at once is an operation of its own.

template <class M>
class Icc {
 public:
  static constexpr const char* name = "icc-ring";
  static constexpr bool batches = true;

  std::size_t push(const M* messages, std::size_t count) {
    if (count == 1) return writer_.try_write(*messages) == latenz::icc::Result::ok ? 1 : 0;
    std::size_t done = 0;
    writer_.try_write_some(std::span(messages, count), done);
    return done;
  }
  std::size_t pop(M* messages, std::size_t count) {
    if (count == 1) return reader_.try_read(*messages) == latenz::icc::Result::ok ? 1 : 0;
    std::size_t done = 0;
    reader_.try_read_some(std::span(messages, count), done);
    return done;
  }

 private:
  using Ring = latenz::icc::Ring<M, slots, 1>;
  struct alignas(128) Memory {
    std::byte bytes[Ring::bytes]{};
  };
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  alignas(128) Ring::Writer writer_ = *Ring::Writer::create(memory_->bytes, Ring::bytes, "bench");
  alignas(128) Ring::Reader reader_ = *Ring::Reader::attach(memory_->bytes, Ring::bytes, 0);
};

/// The same without copies: messages are made and read where they are.
template <class M>
class IccLoans {
 public:
  static constexpr const char* name = "icc-ring-loans";
  static constexpr bool batches = false;

  template <class Make>
  std::size_t lend(Make make) {
    M* place = nullptr;
    if (writer_.try_loan(place) != latenz::icc::Result::ok) return 0;
    make(*place);
    writer_.publish();
    return 1;
  }
  template <class Use>
  std::size_t take(Use use) {
    const M* place = nullptr;
    if (reader_.try_take(place) != latenz::icc::Result::ok) return 0;
    use(*place);
    return reader_.release() == latenz::icc::Result::ok ? 1 : 0;
  }

 private:
  using Ring = latenz::icc::Ring<M, slots, 1>;
  struct alignas(128) Memory {
    std::byte bytes[Ring::bytes]{};
  };
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  alignas(128) Ring::Writer writer_ = *Ring::Writer::create(memory_->bytes, Ring::bytes, "bench");
  alignas(128) Ring::Reader reader_ = *Ring::Reader::attach(memory_->bytes, Ring::bytes, 0);
};

/// Of our own writing, after folly's and rigtorp's: an array, two indices, each side's copy of the
/// other's.
template <class M>
class CachedIndices {
 public:
  static constexpr const char* name = "cached-indices";
  static constexpr bool batches = false;

  std::size_t push(const M* messages, std::size_t /*count*/) {
    const std::size_t write = write_.load(std::memory_order_relaxed);
    const std::size_t next = write + 1 == all_.size() ? 0 : write + 1;
    if (next == seen_read_) {
      seen_read_ = read_.load(std::memory_order_acquire);
      if (next == seen_read_) return 0;
    }
    all_[write] = *messages;
    write_.store(next, std::memory_order_release);
    return 1;
  }
  std::size_t pop(M* messages, std::size_t /*count*/) {
    const std::size_t read = read_.load(std::memory_order_relaxed);
    if (read == seen_write_) {
      seen_write_ = write_.load(std::memory_order_acquire);
      if (read == seen_write_) return 0;
    }
    *messages = all_[read];
    read_.store(read + 1 == all_.size() ? 0 : read + 1, std::memory_order_release);
    return 1;
  }

 private:
  std::vector<M> all_ = std::vector<M>(slots + 1);
  alignas(128) std::atomic<std::size_t> write_{0};
  alignas(128) std::size_t seen_read_ = 0;
  alignas(128) std::atomic<std::size_t> read_{0};
  alignas(128) std::size_t seen_write_ = 0;
};

#ifdef LATENZ_HAS_BOOST
template <class M>
class Boost {
 public:
  static constexpr const char* name = "boost-spsc";
  static constexpr bool batches = true;

  std::size_t push(const M* messages, std::size_t count) {
    return count == 1 ? (queue_.push(*messages) ? 1 : 0) : queue_.push(messages, count);
  }
  std::size_t pop(M* messages, std::size_t count) {
    return count == 1 ? (queue_.pop(*messages) ? 1 : 0) : queue_.pop(messages, count);
  }

 private:
  boost::lockfree::spsc_queue<M, boost::lockfree::capacity<slots>> queue_;
};
#endif

#ifdef LATENZ_HAS_READERWRITERQUEUE
template <class M>
class Moodycamel {
 public:
  static constexpr const char* name = "readerwriterqueue";
  static constexpr bool batches = false;

  std::size_t push(const M* messages, std::size_t /*count*/) {
    return queue_.try_enqueue(*messages) ? 1 : 0;
  }
  std::size_t pop(M* messages, std::size_t /*count*/) {
    return queue_.try_dequeue(*messages) ? 1 : 0;
  }

 private:
  moodycamel::ReaderWriterQueue<M> queue_{slots};
};
#endif

#ifdef LATENZ_HAS_DPDK
template <class M>
class Dpdk {
 public:
  static constexpr const char* name = "rte_ring";
  static constexpr bool batches = true;

  Dpdk() {
    const ssize_t bytes = rte_ring_get_memsize_elem(sizeof(M), slots);
    memory_ = std::aligned_alloc(128, static_cast<std::size_t>(bytes + 127) / 128 * 128);
    ring_ = static_cast<rte_ring*>(memory_);
    if (rte_ring_init(ring_, "bench", slots, RING_F_SP_ENQ | RING_F_SC_DEQ) != 0) std::abort();
  }
  Dpdk(const Dpdk&) = delete;
  Dpdk& operator=(const Dpdk&) = delete;
  ~Dpdk() { std::free(memory_); }

  std::size_t push(const M* messages, std::size_t count) {
    return rte_ring_sp_enqueue_burst_elem(ring_, messages, sizeof(M), static_cast<unsigned>(count),
                                          nullptr);
  }
  std::size_t pop(M* messages, std::size_t count) {
    return rte_ring_sc_dequeue_burst_elem(ring_, messages, sizeof(M), static_cast<unsigned>(count),
                                          nullptr);
  }

 private:
  void* memory_ = nullptr;
  rte_ring* ring_ = nullptr;
};
#endif

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
    std::fprintf(stderr, "throughput: cannot run on CPU %d\n", cpu);
    std::exit(2);
  }
}

struct Setting {
  int cpus[2];
  std::size_t messages;
};

struct Outcome {
  std::int64_t taken_ns = 0;
  std::uint64_t wrong = 0;
};

constexpr std::size_t most_at_once = 32;

/// Each message tells its number in its first word and in its last.
template <class M>
void number(M& message, std::uint32_t at) {
  message.words[0] = at;
  message.words[sizeof(M) / 4 - 1] = at;
}

/// The copies are made, whatever of them is looked at.
template <class M>
void keep(M* messages) {
  asm volatile("" : : "r"(messages) : "memory");
}

template <class Queue, class M>
void receive(Queue& queue, std::size_t batch, std::size_t total, std::uint64_t& wrong) {
  std::uint32_t expected = 0;
  const auto check = [&](const M& got) {
    wrong += got.words[0] != expected || got.words[sizeof(M) / 4 - 1] != expected ? 1 : 0;
    ++expected;
  };
  std::array<M, most_at_once> messages;
  for (std::size_t done = 0; done < total;) {
    std::size_t count = 0;
    if constexpr (requires { queue.take(check); }) {
      count = queue.take(check);
    } else {
      count = queue.pop(messages.data(), batch);
      keep(messages.data());
      for (std::size_t i = 0; i < count; ++i) check(messages[i]);
    }
    if (count == 0) latenz::bench::pause();
    done += count;
  }
}

template <class Queue, class M>
void send(Queue& queue, std::size_t batch, std::size_t total) {
  std::array<M, most_at_once> messages{};
  std::uint32_t next = 0;
  const auto make = [&next](M& message) { number(message, next); };
  for (std::size_t done = 0; done < total; done += batch) {
    if constexpr (requires { queue.lend(make); }) {
      while (queue.lend(make) == 0) latenz::bench::pause();
      ++next;
    } else {
      for (std::size_t i = 0; i < batch; ++i) number(messages[i], next++);
      keep(messages.data());
      for (std::size_t sent = 0; sent < batch;) {
        const std::size_t count = queue.push(messages.data() + sent, batch - sent);
        if (count == 0) latenz::bench::pause();
        sent += count;
      }
    }
  }
}

template <class Queue, class M>
Outcome stream(Queue& queue, std::size_t batch, const Setting& setting) {
  std::atomic<int> ready{0};
  Outcome outcome;
  const std::size_t total = setting.messages / batch * batch;
  std::int64_t end_ns = 0;
  pin(setting.cpus[1]);  // inherited by the thread: as real-time it must not wait for this one
  std::thread reading([&] {
    ready.store(1);
    receive<Queue, M>(queue, batch, total, outcome.wrong);
    end_ns = now_ns();
  });
  pin(setting.cpus[0]);
  while (ready.load() == 0) latenz::bench::pause();
  const std::int64_t begin_ns = now_ns();
  send<Queue, M>(queue, batch, total);
  reading.join();
  outcome.taken_ns = end_ns - begin_ns;
  return outcome;
}

template <template <class> class Queue, std::size_t size>
void measure(std::size_t batch, std::size_t round, const Setting& setting) {
  using M = Message<size>;
  if (batch > 1 && !Queue<M>::batches) return;
  auto queue = std::make_unique<Queue<M>>();
  Setting fewer = setting;
  fewer.messages = setting.messages / (size > 1024 ? 8 : 1);
  const Outcome outcome = stream<Queue<M>, M>(*queue, batch, fewer);
  const std::size_t total = fewer.messages / batch * batch;
  std::printf(
      "{\"queue\": \"%s\", \"bytes\": %zu, \"batch\": %zu, \"round\": %zu, \"messages\": %zu, "
      "\"taken_ns\": %lld, \"wrong\": %llu}\n",
      Queue<M>::name, size, batch, round, total, static_cast<long long>(outcome.taken_ns),
      static_cast<unsigned long long>(outcome.wrong));
}

template <std::size_t size>
void measure_all(std::size_t batch, std::size_t round, const Setting& setting) {
  measure<Icc, size>(batch, round, setting);
  measure<IccLoans, size>(batch, round, setting);
  measure<CachedIndices, size>(batch, round, setting);
#ifdef LATENZ_HAS_BOOST
  measure<Boost, size>(batch, round, setting);
#endif
#ifdef LATENZ_HAS_READERWRITERQUEUE
  measure<Moodycamel, size>(batch, round, setting);
#endif
#ifdef LATENZ_HAS_DPDK
  measure<Dpdk, size>(batch, round, setting);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("throughput: needs two CPUs, rounds, and messages\n", stderr);
    return 2;
  }
  const Setting setting{.cpus = {std::atoi(argv[1]), std::atoi(argv[2])},
                        .messages = std::strtoull(argv[4], nullptr, 10)};
  const std::size_t rounds = std::strtoull(argv[3], nullptr, 10);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (const std::size_t batch : {std::size_t{1}, std::size_t{8}, std::size_t{32}}) {
      measure_all<4>(batch, round, setting);
      measure_all<8>(batch, round, setting);
      measure_all<64>(batch, round, setting);
      measure_all<256>(batch, round, setting);
      measure_all<1024>(batch, round, setting);
      measure_all<4096>(batch, round, setting);
    }
    std::fflush(stdout);
  }
  return 0;
}
