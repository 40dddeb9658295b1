// SPDX-License-Identifier: Apache-2.0
#include "intercore_measurement.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

#include "failure.hpp"

namespace latenz::probe {
namespace {

constexpr std::size_t warm_up_trips = 16;  // at the start of each block, not recorded
constexpr std::size_t page_bytes = 4096;

constexpr std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

/// Hands out parts of a mapping, each from a page of its own.
class Parts {
 public:
  explicit Parts(std::span<std::byte> whole) : rest_(whole) {}

  template <typename Value>
  std::span<Value> take(std::size_t count) {
    const auto part = rest_.first(whole_pages(count * sizeof(Value)));
    rest_ = rest_.subspan(part.size());
    return {reinterpret_cast<Value*>(part.data()), count};
  }

 private:
  std::span<std::byte> rest_;
};

std::size_t rounds_of(const IntercorePlan& plan) {
  return (plan.samples + plan.block - 1) / plan.block;
}

std::size_t memory_for(const IntercorePlan& plan) {
  return whole_pages(sizeof(Control)) + placements * (page_bytes + link_bytes) +
         whole_pages((plan.block + warm_up_trips) * sizeof(std::int64_t)) +
         whole_pages(rounds_of(plan) * sizeof(Round)) +
         block_kinds * whole_pages(plan.samples * sizeof(Sample));
}

/// Waits for a word of the other process between blocks: briefly by looking, then by letting others
/// run, since on a busy machine the other process may be one of them.
void wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  constexpr int looks = 20'000;
  for (int look = 0; word.load(std::memory_order_acquire) != value; ++look) {
    if (look >= looks) {
      sched_yield();
    }
  }
}

std::int64_t involuntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

std::int64_t median(std::span<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) {
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (address == MAP_FAILED) {
    throw Failure("--samples: shared memory for them is refused (" +
                  std::string(std::strerror(errno)) + "); ask for fewer");
  }
  bytes_ = {static_cast<std::byte*>(address), bytes};
}

SharedMemory::~SharedMemory() { munmap(bytes_.data(), bytes_.size()); }

Measurement::Measurement(const IntercorePlan& plan)
    : plan_(plan), parent_(getpid()), stamps_(Stamps::calibrated()), memory_(memory_for(plan)) {
  ChosenWait::chosen = plan.wait;
  Parts parts(memory_.bytes());
  control_ = new (parts.take<Control>(1).data()) Control;
  for (std::size_t i = 0; i < placements; ++i) {
    Placement& placement = placements_[i];
    placement.raw = raw_case();
    placement.measured = plan.through < Through::boost_spsc ? channel_case(plan.through, plan.bytes)
                                                            : peer_case(plan.through, plan.bytes);
    // On another line of its page each time.
    placement.raw_memory = parts.take<std::byte>(page_bytes).subspan(i * cache_line);
    placement.measured_memory = parts.take<std::byte>(link_bytes);
  }
  arrivals_ = parts.take<std::int64_t>(plan.block + warm_up_trips);
  rounds_ = parts.take<Round>(rounds_of(plan));
  for (auto& samples : samples_) {
    samples = parts.take<Sample>(plan.samples);
  }
}

std::span<const Sample> Measurement::samples(std::size_t kind) const {
  return samples_[kind].first(control_->samples[kind].load(std::memory_order_acquire));
}

std::span<const Round> Measurement::rounds() const {
  return rounds_.first(control_->rounds.load(std::memory_order_acquire));
}

std::size_t Measurement::block_count() const { return rounds_.size() * block_kinds; }

std::size_t Measurement::trips_of(std::size_t round) const {
  return std::min(plan_.block, plan_.samples - round * plan_.block);
}

void Measurement::be(LinkSide side) {
  int exit_code = 0;
  try {
    become_measuring_process(plan_.cpus[side == LinkSide::asking ? 0 : 1]);
    side == LinkSide::asking ? ask_all() : answer_all();
  } catch (const std::exception& error) {
    std::strncpy(control_->failure.data(), error.what(), control_->failure.size() - 1);
    exit_code = exit_bad_input;
  }
  _exit(exit_code);
}

/// Pins this process, and lets the kernel end it when the watching one ends.
void Measurement::become_measuring_process(unsigned cpu) const {
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cpu, &own);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || sched_setaffinity(0, sizeof own, &own) != 0) {
    throw Failure("--cpus: CPU " + std::to_string(cpu) + ": " + std::strerror(errno));
  }
  if (getppid() != parent_) {  // it ended before the kernel knew
    _exit(exit_bad_input);
  }
}

void Measurement::ask_all() {
  trips_.resize(plan_.block + warm_up_trips);
  durations_.resize(plan_.block);
  asking_.stamps = stamps_;
  open(LinkSide::asking);
  for (std::size_t round = 0; round < rounds_.size(); ++round) {
    for (std::size_t kind = 0; kind < block_kinds; ++kind) {
      ask_block(static_cast<BlockKind>(kind), round);
      if (control_->stop.load(std::memory_order_relaxed) != 0) {
        return;
      }
    }
    rounds_[round] = {.raw_ticks = median_ticks_[0], .case_ticks = median_ticks_[1]};
    control_->rounds.store(static_cast<std::uint32_t>(round + 1), std::memory_order_release);
  }
}

void Measurement::open(LinkSide side) {
  for (const Placement& placement : placements_) {
    placement.raw->open(placement.raw_memory, side);
    placement.measured->open(placement.measured_memory, side);
  }
}

void Measurement::ask_block(BlockKind kind, std::size_t round) {
  const std::uint32_t block = control_->block.load(std::memory_order_relaxed) + 1;
  control_->block.store(block, std::memory_order_release);
  wait_for(control_->answering, block);
  const auto trips = std::span(trips_).first(trips_of(round) + warm_up_trips);
  std::size_t done = case_of(kind, round).ask(trips, asking_, control_->stop);
  control_->damaged.store(asking_.damaged, std::memory_order_relaxed);
  control_->asking_switches.store(involuntary_switches(), std::memory_order_relaxed);
  if (done == trips.size()) {
    wait_for(control_->answering, block + 1);
  } else if (done > 0) {
    --done;  // its arrival may not be written yet
  }
  keep(kind, trips.first(done));
}

void Measurement::keep(BlockKind kind, std::span<const Trip> trips) {
  if (trips.size() <= warm_up_trips) {
    return;
  }
  const auto place = static_cast<std::size_t>(kind);
  std::uint32_t kept = control_->samples[place].load(std::memory_order_relaxed);
  for (std::size_t i = warm_up_trips; i < trips.size(); ++i) {
    const std::int64_t round_trip = trips[i].end - trips[i].begin;
    durations_[i - warm_up_trips] = round_trip;
    const std::int64_t latency_ns = kind == BlockKind::one_way
                                        ? stamps_.duration_ns(arrivals_[i] - trips[i].begin)
                                        : (stamps_.duration_ns(round_trip) + 1) / 2;
    samples_[place][kept] = {.t_ns = stamps_.time_ns(trips[i].begin), .latency_ns = latency_ns};
    ++kept;
  }
  median_ticks_[place] = median(std::span(durations_).first(trips.size() - warm_up_trips));
  control_->samples[place].store(kept, std::memory_order_release);
}

void Measurement::answer_all() {
  for (std::uint32_t block = 1; block <= block_count(); ++block) {
    wait_for(control_->block, block);
    if (block == 1) {
      open(LinkSide::answering);
    }
    control_->answering.store(block, std::memory_order_release);
    const auto kind = static_cast<BlockKind>((block - 1) % block_kinds);
    const std::size_t round = (block - 1) / block_kinds;
    const std::size_t count = trips_of(round) + warm_up_trips;
    if (kind == BlockKind::one_way) {
      case_of(kind, round).answer(arrivals_.first(count), stamps_);
    } else {
      case_of(kind, round).answer(count);
    }
    control_->answering_switches.store(involuntary_switches(), std::memory_order_relaxed);
    control_->answering.store(block + 1, std::memory_order_release);
  }
}

}  // namespace latenz::probe
