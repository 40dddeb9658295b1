// SPDX-License-Identifier: Apache-2.0
// latenz-memory-load: keeps the memory of each CPU busy, and tells at its end how busy.
#include "memory_load_program.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "affinity.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "json.hpp"
#include "memory_load.hpp"
#include "options.hpp"
#include "program.hpp"
#include "real_time.hpp"
#include "text.hpp"

namespace latenz::probe {
namespace {

struct LoadPlan {
  std::vector<unsigned> cpus;
  std::int64_t array_bytes = 32LL * 1024 * 1024;
  std::optional<std::size_t> kernel;  ///< absent: all in turn
  std::optional<std::int64_t> duration_ns;
  bool help = false;
  bool version = false;
};

std::vector<Option> options_of(LoadPlan& plan, std::optional<std::string>& cpus) {
  return {
      {"--cpus", "LIST",
       "one thread for each CPU named, such as 0,2-3 (default: those it was put on)",
       [&cpus](std::string_view text) { cpus = text; }},
      {"--array-bytes", "BYTES",
       "size of each of the three arrays of a thread (default: 33554432); more than the caches",
       [&plan](std::string_view text) {
         plan.array_bytes = parse_integer("--array-bytes", text, 4096, 1LL << 40);
       }},
      {"--kernel", "NAME", "copy, scale, add or triad (default: all in turn)",
       [&plan](std::string_view text) {
         plan.kernel = parse_choice("--kernel", text, stream_kernel_names);
       }},
      {"--duration", "NS", "end after this time (default: run until SIGINT or SIGTERM)",
       [&plan](std::string_view text) {
         plan.duration_ns = parse_integer("--duration", text, 1, 1'000'000'000'000'000'000);
       }},
      {"--help", "", "print this text", [&plan](std::string_view /*none*/) { plan.help = true; }},
      {"--version", "", "print the version",
       [&plan](std::string_view /*none*/) { plan.version = true; }},
  };
}

std::string memory_load_help() {
  LoadPlan plan;
  std::optional<std::string> cpus;
  return help_text("latenz-memory-load", R"(
Loads the memory with the kernels of STREAM (copy, scale, add, triad), one thread a CPU, until its
duration is over or a signal comes; then prints the bandwidth it achieved as JSON.

Exit code: 0 done, also when ended by SIGINT or SIGTERM; 2 wrong usage or not enough memory.
)",
                   options_of(plan, cpus));
}

/// What the kernel could give without taking from others, in bytes; 0 if it does not tell.
std::int64_t available_memory() {
  Text file = Text::of_file("/proc/meminfo");
  std::string key;
  std::string unit;
  for (std::int64_t kib = 0; file >> key >> kib; file.line(unit)) {
    if (key == "MemAvailable:") {
      return kib * 1024;
    }
  }
  return 0;
}

/// Taking more than there is would end in the kernel killing some program.
void check_memory(const LoadPlan& plan) {
  const auto threads = static_cast<std::int64_t>(plan.cpus.size());
  const std::int64_t available = available_memory();
  if (available > 0 && plan.array_bytes > available / 3 / threads) {
    throw Failure("--array-bytes: three arrays for each of " + std::to_string(threads) +
                  " threads do not fit in memory; write at most " +
                  std::to_string(available / 3 / threads));
  }
}

/// Memory that is given back at the end; taken before the load starts, so that lack of it is told.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes) {
    void* const start =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
      throw Failure("--array-bytes: " + std::string(std::strerror(errno)) + " for " +
                    std::to_string(bytes) + " bytes a thread; write less");
    }
    start_ = static_cast<double*>(start);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { munmap(start_, bytes_); }

  [[nodiscard]] std::span<double> doubles() const { return {start_, bytes_ / sizeof(double)}; }

 private:
  double* start_ = nullptr;
  std::size_t bytes_;
};

struct Loader {
  Loader(unsigned number, std::size_t bytes) : cpu(number), memory(bytes) {}
  unsigned cpu;
  Memory memory;
  std::array<StreamWork, stream_kernels> work{};
};

void load(Loader& loader, std::optional<std::size_t> only, const std::atomic<bool>& stop) {
  static_cast<void>(stay_on(loader.cpu));  // it is one of those that can be entered
  StreamArrays arrays(loader.memory.doubles());
  for (std::size_t turn = 0; !stop.load(std::memory_order_relaxed); ++turn) {
    const std::size_t kernel = only.value_or(turn % stream_kernels);
    const std::int64_t begin_ns = read_clock_ns(CLOCK_MONOTONIC);
    const auto elements = static_cast<std::int64_t>(arrays.run(kernel, stop));
    StreamWork& work = loader.work[kernel];
    work.busy_ns += read_clock_ns(CLOCK_MONOTONIC) - begin_ns;
    work.bytes += elements * stream_bytes_per_element[kernel];
  }
}

/// Waits until the duration is over or a signal comes.
void wait_for_end(std::optional<std::int64_t> duration_ns, const sigset_t& ending) {
  int number = 0;
  if (!duration_ns) {
    sigwait(&ending, &number);
    return;
  }
  const timespec duration = to_timespec(*duration_ns);
  sigtimedwait(&ending, nullptr, &duration);
}

std::int64_t per_second(const StreamWork& work) {
  return work.busy_ns == 0 ? 0
                           : static_cast<std::int64_t>(static_cast<double>(work.bytes) * 1e9 /
                                                       static_cast<double>(work.busy_ns));
}

std::string result(const LoadPlan& plan, const std::vector<std::unique_ptr<Loader>>& loaders,
                   std::int64_t duration_ns) {
  std::int64_t bytes = 0;
  Json json;
  json.open_object().member("version", 1).member("program", "latenz-memory-load");
  json.member("program_version", LATENZ_VERSION).member("duration_ns", duration_ns);
  json.member("array_bytes", plan.array_bytes).key("threads").open_array();
  for (const auto& loader : loaders) {
    json.open_object().member("cpu", loader->cpu).key("kernels").open_object();
    for (std::size_t kernel = 0; kernel < stream_kernels; ++kernel) {
      const StreamWork& work = loader->work[kernel];
      bytes += work.bytes;
      json.key(stream_kernel_names[kernel]).open_object().member("bytes", work.bytes);
      json.member("busy_ns", work.busy_ns).member("bytes_per_s", per_second(work)).close_object();
    }
    json.close_object().close_object();
  }
  json.close_array().member("bytes", bytes);
  json.member("bytes_per_s", per_second({.bytes = bytes, .busy_ns = duration_ns}));
  return json.close_object().text() + "\n";
}

LoadPlan parse(std::span<const char* const> arguments) {
  LoadPlan plan;
  std::optional<std::string> cpus;
  parse_options(options_of(plan, cpus), arguments);
  // A load does not go to isolated CPUs unless it is sent there.
  plan.cpus = cpus ? chosen_cpus("--cpus", cpus) : cpus_of(inherited_cpus());
  return plan;
}

}  // namespace

int load_memory(std::span<const char* const> arguments) {
  const LoadPlan plan = parse(arguments);
  if (plan.help || plan.version) {
    print(stdout, plan.help ? memory_load_help() : "latenz-memory-load " LATENZ_VERSION "\n");
    return 0;
  }
  check_memory(plan);
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGINT);
  sigaddset(&ending, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  std::vector<std::unique_ptr<Loader>> loaders;
  loaders.reserve(plan.cpus.size());
  for (const unsigned cpu : plan.cpus) {
    loaders.push_back(
        std::make_unique<Loader>(cpu, static_cast<std::size_t>(3 * plan.array_bytes)));
  }
  std::atomic<bool> stop{false};
  const std::int64_t begin_ns = read_clock_ns(CLOCK_MONOTONIC);
  {
    std::vector<std::jthread> threads;
    threads.reserve(loaders.size());
    for (const auto& loader : loaders) {
      threads.emplace_back([&loader, &plan, &stop] { load(*loader, plan.kernel, stop); });
    }
    wait_for_end(plan.duration_ns, ending);
    stop = true;
  }
  print(stdout, result(plan, loaders, read_clock_ns(CLOCK_MONOTONIC) - begin_ns));
  return 0;
}

}  // namespace latenz::probe
