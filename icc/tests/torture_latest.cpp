// SPDX-License-Identifier: Apache-2.0
// One writer process flat out and three reader processes on shared memory: how many reads are torn,
// go backward or fail, and what a read costs, for `Latest` and for the publication's double buffer.
//
//   latenz-icc-torture --bytes 64|256|1024|4096 --reads N
//                      [--channel latest|double-buffer|both] [--pause-ns N]
//
// N is the number of checked reads of each channel, shared out among the readers. With both, the
// writer updates one channel after the other and the readers take turns, so that both channels meet
// the same load. Readers that never pause keep the memory's lines to themselves, so that the writer
// is slow; control tasks pause between reads and meet a writer at full speed: --pause-ns. Prints
// `progress n` once a second and JSON at the end, also when interrupted. Exit code 1 if a read of
// `Latest` was torn, backward or failed.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "double_buffer.hpp"
#include "latenz/icc/latest.hpp"

namespace latenz::icc {
namespace {

constexpr std::size_t readers = 3;
constexpr std::size_t timed_reads = 100;     // between two looks at the clock
constexpr std::size_t checked_reads = 400;   // between two timed blocks
constexpr std::size_t most_costs = 100'000;  // kept of each reader

template <std::size_t size>
struct Value {
  std::array<std::uint32_t, size / 4> word;  // all of them the value's number
};

struct Counts {
  std::uint64_t reads, torn, backward, failed;
};

struct alignas(line_bytes) ReaderLog {
  std::array<Counts, 2> counts;         // Latest, double buffer
  std::atomic<std::uint64_t> progress;  // checked reads of each
  std::uint64_t costs;                  // how many of the following
  std::array<std::array<float, most_costs>, 2> cost_ns;
};

struct Log {
  std::atomic<bool> stop;
  std::atomic<std::uint64_t> updates;
  std::array<ReaderLog, readers> of;
};

struct Setting {
  std::size_t bytes = 64;
  std::uint64_t reads = 1'000'000;
  std::int64_t pause_ns = 0;  // of a reader before each read
  bool latest = true, double_buffer = true;
};

volatile std::sig_atomic_t interrupted = 0;

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "latenz-icc-torture: %s\n", why.c_str());
  std::exit(2);
}

void* shared_memory(std::size_t bytes) {
  void* const mapped =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) refuse("no shared memory");
  return mapped;
}

// The writer has the first CPU for itself, and the readers the others: so that it runs while they
// read. A machine with one CPU still tears, at the scheduler's pleasure.
void take_cpus(bool writer) {
  cpu_set_t allowed, mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  bool first = true;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    if (first == writer) CPU_SET(cpu, &mine);
    first = false;
  }
  sched_setaffinity(0, sizeof mine, &mine);
}

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (std::int64_t{time.tv_sec} * 1'000'000'000) + time.tv_nsec;
}

template <class T>
bool is_torn(const T& value) {
  std::uint32_t differs = 0;
  for (const std::uint32_t word : value.word) differs |= word ^ value.word[0];
  return differs != 0;
}

template <std::size_t size>
struct Torture {
  using T = Value<size>;
  using Channel = Latest<T, readers>;
  using Buffer = testing::DoubleBuffer<T>;

  static void write(const Setting& setting, Log& log, void* memory) {
    take_cpus(true);
    auto writer = *Channel::Writer::attach(memory, Channel::bytes);
    Buffer buffer{static_cast<std::byte*>(memory) + Channel::bytes};
    T value{};
    std::uint32_t number = 0;
    while (!log.stop.load(std::memory_order_relaxed)) {
      value.word.fill(++number);
      if (setting.latest) writer.update(value);
      if (setting.double_buffer) buffer.update(value);
      log.updates.store(number, std::memory_order_relaxed);
    }
  }

  template <class Read>
  static void check(Read read, Counts& counts, std::uint32_t& last, std::int64_t pause_ns) {
    T value;
    for (std::size_t i = 0; i < checked_reads; ++i) {
      if (pause_ns != 0)
        for (const std::int64_t end = now_ns() + pause_ns; now_ns() < end;) Pause::pause();
      ++counts.reads;
      if (!read(value)) {
        ++counts.failed;
      } else if (is_torn(value)) {
        ++counts.torn;
      } else if (static_cast<std::int32_t>(value.word[0] - last) < 0) {
        ++counts.backward;
      } else {
        last = value.word[0];
      }
    }
  }

  template <class Read>
  static float cost_ns(Read read) {
    T value;
    const std::int64_t begin = now_ns();
    for (std::size_t i = 0; i < timed_reads; ++i) {
      read(value);
      asm volatile("" : : "r"(&value) : "memory");
    }
    return static_cast<float>(now_ns() - begin) / timed_reads;
  }

  static void read(const Setting& setting, Log& log, std::uint32_t index, void* memory) {
    take_cpus(false);
    auto reader = *Channel::Reader::attach(memory, Channel::bytes, index);
    Buffer buffer{static_cast<std::byte*>(memory) + Channel::bytes};
    const auto from_latest = [&](T& value) { return reader.read_latest(value); };
    const auto from_buffer = [&](T& value) {
      buffer.read_latest(value);
      return true;
    };
    ReaderLog& own = log.of[index];
    std::array<std::uint32_t, 2> last{};
    for (std::uint64_t done = 0; done < setting.reads / readers && !log.stop;
         done += checked_reads) {
      if (setting.latest) check(from_latest, own.counts[0], last[0], setting.pause_ns);
      if (setting.double_buffer) check(from_buffer, own.counts[1], last[1], setting.pause_ns);
      if (own.costs < most_costs) {
        if (setting.latest) own.cost_ns[0][own.costs] = cost_ns(from_latest);
        if (setting.double_buffer) own.cost_ns[1][own.costs] = cost_ns(from_buffer);
        ++own.costs;
      }
      own.progress.store(done + checked_reads, std::memory_order_relaxed);
    }
  }

  static bool run(const Setting& setting) {
    auto* log = new (shared_memory(sizeof(Log))) Log{};
    void* const memory = shared_memory(Channel::bytes + Buffer::bytes);
    auto first = *Channel::Writer::create(memory, Channel::bytes, "torture");
    first.update(T{});
    std::vector<pid_t> reading;
    const pid_t writing = start([&] { write(setting, *log, memory); });
    for (std::uint32_t i = 0; i < readers; ++i)
      reading.push_back(start([&, i] { read(setting, *log, i, memory); }));
    const std::int64_t begin = now_ns();
    watch(setting, *log, reading);
    const double took_s = static_cast<double>(now_ns() - begin) / 1e9;
    log->stop = true;
    waitpid(writing, nullptr, 0);
    print(setting, *log, took_s);
    const auto all = total(*log, 0);
    return setting.latest && all.torn + all.backward + all.failed != 0;
  }

  template <class Work>
  static pid_t start(Work work) {
    const pid_t child = fork();
    if (child < 0) refuse("no process");
    if (child == 0) {
      std::signal(SIGINT, SIG_IGN);
      work();
      _exit(0);
    }
    return child;
  }

  static void watch(const Setting& setting, Log& log, std::vector<pid_t> reading) {
    for (int tenths = 1; !reading.empty(); ++tenths) {
      if (interrupted != 0) log.stop = true;
      usleep(100'000);
      std::erase_if(reading, [](pid_t child) { return waitpid(child, nullptr, WNOHANG) == child; });
      if (tenths % 10 != 0) continue;
      std::uint64_t done = 0;
      for (const ReaderLog& each : log.of) done += each.progress;
      std::printf("progress %llu\n",
                  static_cast<unsigned long long>(std::min(done, setting.reads)));
      std::fflush(stdout);
    }
  }

  static Counts total(const Log& log, std::size_t channel) {
    Counts sum{};
    for (const ReaderLog& each : log.of) {
      sum.reads += each.counts[channel].reads;
      sum.torn += each.counts[channel].torn;
      sum.backward += each.counts[channel].backward;
      sum.failed += each.counts[channel].failed;
    }
    return sum;
  }

  static double median_cost_ns(const Log& log, std::size_t channel) {
    std::vector<float> all;
    for (const ReaderLog& each : log.of) {
      all.insert(all.end(), each.cost_ns[channel].begin(),
                 each.cost_ns[channel].begin() + static_cast<std::ptrdiff_t>(each.costs));
    }
    if (all.empty()) return 0;
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    return *middle;
  }

  static void print(const Setting& setting, const Log& log, double took_s) {
    std::printf(
        "{\"payload_bytes\": %zu, \"reader_processes\": %zu, \"pause_ns\": %lld, \"took_s\": %.1f, "
        "\"updates_of_each_channel\": %llu, \"interrupted\": %s",
        size, readers, static_cast<long long>(setting.pause_ns), took_s,
        static_cast<unsigned long long>(log.updates.load()), interrupted != 0 ? "true" : "false");
    const std::array names = {"latest", "double_buffer"};
    for (std::size_t channel = 0; channel < 2; ++channel) {
      if (!(channel == 0 ? setting.latest : setting.double_buffer)) continue;
      const Counts sum = total(log, channel);
      const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
      std::printf(
          ", \"%s\": {\"reads\": %llu, \"torn\": %llu, \"backward\": %llu, "
          "\"failed\": %llu, \"torn_per_million\": %.2f, \"median_read_ns\": %.1f}",
          names[channel], number(sum.reads), number(sum.torn), number(sum.backward),
          number(sum.failed),
          sum.reads == 0 ? 0.0
                         : static_cast<double>(sum.torn) * 1e6 / static_cast<double>(sum.reads),
          median_cost_ns(log, channel));
    }
    std::puts("}");
  }
};

template <class Number>
Number number_of(std::string_view option, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0)
    refuse(std::string(option) + " takes a whole number from 1, not '" + std::string(text) + "'");
  return value;
}

Setting setting_of(const std::vector<std::string_view>& words) {
  Setting setting;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (i + 1 == words.size()) refuse("a value must follow " + std::string(words[i]));
    const std::string_view option = words[i], value = words[i + 1];
    if (option == "--bytes") {
      setting.bytes = number_of<std::size_t>(option, value);
    } else if (option == "--reads") {
      setting.reads = number_of<std::uint64_t>(option, value);
    } else if (option == "--pause-ns") {
      setting.pause_ns = number_of<std::int64_t>(option, value);
    } else if (option == "--channel" &&
               (value == "latest" || value == "double-buffer" || value == "both")) {
      setting.latest = value != "double-buffer";
      setting.double_buffer = value != "latest";
    } else {
      refuse("'" + std::string(option) + " " + std::string(value) +
             "' is not known; options are --bytes, --reads, --pause-ns and --channel latest, "
             "double-buffer or both");
    }
  }
  return setting;
}

bool run(const Setting& setting) {
  switch (setting.bytes) {
    case 64:
      return Torture<64>::run(setting);
    case 256:
      return Torture<256>::run(setting);
    case 1024:
      return Torture<1024>::run(setting);
    case 4096:
      return Torture<4096>::run(setting);
    default:
      refuse("--bytes is 64, 256, 1024 or 4096, not " + std::to_string(setting.bytes));
  }
}

}  // namespace
}  // namespace latenz::icc

int main(int argc, char** argv) {
  using namespace latenz::icc;
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
  const bool broken = run(setting_of({argv + 1, argv + argc}));
  if (broken) return 1;
  return interrupted != 0 ? 130 : 0;
}
