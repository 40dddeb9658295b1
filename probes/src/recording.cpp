// SPDX-License-Identifier: Apache-2.0
#include "recording.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "affinity.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "recording_process.hpp"
#include "text.hpp"

namespace latenz::probe {
namespace {

constexpr std::size_t frame_records = 8192;
constexpr int drains_a_reading = 4;  // /proc is read every 200 ms
constexpr int drains_a_save = 3;     // histograms are saved every 150 ms
constexpr off_t reserved_bytes = 256LL * 1024;

/// Most memory this program held; getrusage would include what its parent held when it started it.
std::int64_t largest_memory_kib() {
  Text file = Text::of_file("/proc/self/status");
  std::string line;
  while (file.line(line)) {
    if (line.starts_with("VmHWM:")) {
      return std::strtoll(line.c_str() + line.find_first_of("0123456789"), nullptr, 10);
    }
  }
  return 0;
}

template <typename Value>
std::optional<Value> at(const std::vector<Value>& values, std::size_t place) {
  return place < values.size() ? std::optional(values[place]) : std::nullopt;
}

/// "LOC:12 24:ttyS0:3": the three that advanced most on a CPU between two readings.
std::string busiest(const SystemReading& before, const SystemReading& now, unsigned cpu) {
  std::vector<std::pair<std::uint64_t, std::string>> advanced;
  for (const auto& [name, counts] : now.interrupts) {
    const auto earlier = before.interrupts.find(name);
    const std::uint64_t base =
        earlier == before.interrupts.end() ? 0 : at(earlier->second, cpu).value_or(0);
    if (const std::uint64_t count = at(counts, cpu).value_or(0) - base; count > 0) {
      advanced.emplace_back(count, name);
    }
  }
  std::ranges::sort(advanced, std::greater<>());
  advanced.resize(std::min<std::size_t>(advanced.size(), 3));
  std::string text;
  for (const auto& [count, name] : advanced) {
    text += (text.empty() ? "" : " ") + name + ":" + std::to_string(count);
  }
  return text;
}

std::string task_name(const LateWakeup& late) {
  const auto* const end = std::ranges::find(late.last_command, '\0');
  const auto thread = static_cast<std::uint32_t>(late.last_task);
  return std::string(late.last_command.begin(), end) + ":" + std::to_string(thread);
}

template <typename Value>
void add_if_known(Json& json, std::string_view name, const std::optional<Value>& value) {
  if (value) {
    json.member(name, *value);
  }
}

}  // namespace

Recording::Recording(const Shared& shared, std::vector<std::unique_ptr<MeasuringThread>>& threads)
    : shared_(shared),
      plan_(shared.plan),
      buffer_(frame_records),
      late_buffer_(frame_records / 64),
      reader_(shared.plan.is_pinned() ? shared.plan.cpus : cpus_of(enterable_cpus()),
              !shared.counters.attached()) {
  const auto account_path = plan_.output / "probe.json";
  if (std::filesystem::exists(account_path)) {
    throw Failure(account_path.string() + ": holds a recording already; name another folder");
  }
  const auto folders = thread_folders(plan_);
  tracks_.resize(threads.size());
  for (std::size_t i = 0; i < threads.size(); ++i) {
    Track& track = tracks_[i];
    track.thread = threads[i].get();
    track.folder = folders[i];
    const auto folder = plan_.output / track.folder;
    create_folder(folder);
    const auto cpu = track.thread->cpu();
    if (plan_.keep == Keep::samples) {
      track.journal.emplace(folder / "samples.journal", cpu, plan_.interval_ns);
    } else {
      track.histogram.emplace(folder, cpu, plan_.interval_ns);
    }
  }
  reserve_space();
  before_ = latest_ = reader_.read(read_clock_ns(plan_.clock_id()));
  first_smis_ = before_.smis;
  watch_clocks();
}

/// A file without a name, so that nothing is left of it whatever happens.
void Recording::reserve_space() {
  const auto path = plan_.output / "probe.json.reserve";
  reserve_ = File::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (reserve_.is_open()) {
    unlink(path.c_str());
    // Without the reserve the last account may be lost on a full disk, but no sample is.
    static_cast<void>(posix_fallocate(reserve_.descriptor(), 0, reserved_bytes));
  }
}

int Recording::drain() {
  int error = 0;
  ++drains_;
  for (Track& track : tracks_) {
    error = std::max(error, drain_samples(track));
    if (track.histogram && drains_ % drains_a_save == 0) {
      error = std::max(error, track.histogram->save());
    }
  }
  drain_late();
  return error;
}

int Recording::Track::append(std::span<const Sample> samples) {
  if (journal) {
    return journal->append(samples);
  }
  return histogram ? histogram->append(samples) : 0;
}

int Recording::drain_samples(Track& track) {
  while (track.error == 0) {
    const std::size_t count = track.thread->samples().pop(buffer_);
    const std::span<const Sample> samples(buffer_.data(), count);
    track.error = track.append(samples);
    track.kept += track.error == 0 ? static_cast<std::int64_t>(count) : 0;
    if (count < buffer_.size()) {
      break;
    }
  }
  return track.error;
}

void Recording::drain_late() {
  std::optional<SystemReading> now;
  const auto read_now = [&] { return reader_.read(read_clock_ns(plan_.clock_id())); };
  for (Track& track : tracks_) {
    while (const std::size_t count = track.thread->late().pop(late_buffer_)) {
      now = now ? now : read_now();
      for (std::size_t i = 0; i < count; ++i) {
        keep_worst(track, late_buffer_[i], *now);
      }
    }
  }
  if (drains_ % drains_a_reading == 0) {
    before_ = std::exchange(latest_, now ? std::move(*now) : read_now());
  }
}

void Recording::keep_worst(Track& track, const LateWakeup& late, const SystemReading& now) {
  const auto later = [](const WorstSample& one, const WorstSample& other) {
    return one.late.sample.latency_ns > other.late.sample.latency_ns;
  };
  track.worst.push_back(explain(late, now));
  std::ranges::stable_sort(track.worst, later);
  track.worst.resize(std::min(track.worst.size(), plan_.worst));
}

WorstSample Recording::explain(const LateWakeup& late, const SystemReading& now) const {
  const SystemReading& base = latest_.taken_ns <= late.since_ns ? latest_ : before_;
  WorstSample worst;
  worst.late = late;
  worst.window_ns = now.taken_ns - base.taken_ns;
  worst.frequency_khz = SystemReader::frequency_khz(late.cpu);
  const auto steal_before = at(base.steal_ns, late.cpu);
  const auto steal_now = at(now.steal_ns, late.cpu);
  if (steal_before && steal_now) {
    worst.steal_ns = *steal_now - *steal_before;
  }
  const auto smis_before = at(base.smis, late.cpu).value_or(std::nullopt);
  const auto smis_now = at(now.smis, late.cpu).value_or(std::nullopt);
  if (smis_before && smis_now) {
    worst.smis = (*smis_now - *smis_before) & 0xFFFFFFFFU;
  }
  if (!shared_.counters.attached()) {
    worst.busiest_interrupts = busiest(base, now, late.cpu);
  } else if (late.counts[0] > 0) {
    worst.last_interrupt = SystemReader::interrupt_name(late.last_interrupt);
  }
  return worst;
}

int Recording::finish() {
  int error = drain();
  latest_ = reader_.read(read_clock_ns(plan_.clock_id()));
  watch_clocks();
  for (Track& track : tracks_) {
    if (track.histogram) {
      error = std::max({error, track.histogram->finish(), track.histogram->save()});
    }
  }
  return error;
}

int Recording::save_account(std::string_view status) {
  if (n() == saved_n_ && status == saved_status_) {
    return 0;
  }
  const std::int64_t account_n = n();
  const int error = replace_file(plan_.output / "probe.json", account(status));
  if (error == 0) {
    saved_n_ = account_n;
    saved_status_ = status;
  }
  return error;
}

std::int64_t Recording::n() const {
  std::int64_t total = 0;
  for (const Track& track : tracks_) {
    total += track.thread->n();
  }
  return total;
}

std::optional<std::int64_t> Recording::max_ns() const {
  std::optional<std::int64_t> max_ns;
  for (const Track& track : tracks_) {
    if (track.thread->n() > 0) {
      max_ns = std::max(max_ns.value_or(track.thread->max_ns()), track.thread->max_ns());
    }
  }
  return max_ns;
}

std::string Recording::account(std::string_view status) const {
  timespec resolution{};
  clock_getres(plan_.clock_id(), &resolution);
  Json json;
  json.open_object().member("version", 1).member("program", "latenz-wakeup");
  json.member("program_version", LATENZ_VERSION).member("status", status);
  json.member("clock", name_of(plan_.clock, clock_names));
  json.member("clock_resolution_ns", resolution.tv_nsec);
  json.member("policy", name_of(plan_.policy, policy_names)).key("priority");
  has_priority(plan_.policy) ? json.value(plan_.priority) : json.null();
  json.member("interval_ns", plan_.interval_ns).member("warm_up_ns", plan_.warm_up_ns);
  json.member("keep", name_of(plan_.keep, keep_names));
  json.member("context", shared_.counters.attached() ? "exact" : "window");
  json.member("started_realtime_ns", circumstances_.started_realtime_ns);
  json.member("dma_latency", circumstances_.dma_latency).key("dma_latency_ns");
  plan_.dma_latency_us ? json.value(std::int64_t{*plan_.dma_latency_us} * 1000) : json.null();
  json.member("mlockall", circumstances_.memory_locked);
  json.member("suspended_ns", clocks_.suspended_ns()).member("clock_steps", clocks_.steps());
  json.member("clock_stepped_ns", clocks_.stepped_ns());
  json.key("threads").open_array();
  for (const Track& track : tracks_) {
    add_track(json, track);
  }
  json.close_array().member("cpu_time_ns", read_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
  json.member("max_rss_kib", largest_memory_kib());
  return json.close_object().text() + "\n";
}

void Recording::add_track(Json& json, const Track& track) const {
  const MeasuringThread& thread = *track.thread;
  const std::int64_t n = thread.n();
  json.open_object().member("cpu", thread.cpu());
  json.member("folder", track.folder).member("pinned", thread.cpu().has_value());
  add_places(json, thread);
  json.member("n", n).member("missed", thread.missed());
  json.member("kept", track.kept)
      .member("lost", thread.lost())
      .member("worst_lost", thread.late_lost());
  json.key("min_ns");
  n > 0 ? json.value(thread.min_ns()) : json.null();
  json.key("max_ns");
  n > 0 ? json.value(thread.max_ns()) : json.null();
  json.key("worst").open_array();
  for (const WorstSample& worst : track.worst) {
    add_worst(json, worst);
  }
  json.close_array().close_object();
}

/// Where the samples were taken, and how often firmware held that CPU up meanwhile.
void Recording::add_places(Json& json, const MeasuringThread& thread) const {
  json.key("ran_on").open_object();
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (const std::int64_t taken = thread.taken_on(cpu); taken > 0) {
      json.member(std::to_string(cpu), taken);
    }
  }
  json.close_object().key("smis");
  const auto cpu = thread.cpu();
  const auto first = cpu ? at(first_smis_, *cpu).value_or(std::nullopt) : std::nullopt;
  const auto latest = cpu ? at(latest_.smis, *cpu).value_or(std::nullopt) : std::nullopt;
  first&& latest ? json.value((*latest - *first) & 0xFFFFFFFFU) : json.null();
}

void Recording::add_worst(Json& json, const WorstSample& worst) const {
  const LateWakeup& late = worst.late;
  json.open_object().member("t_ns", late.sample.t_ns).member("latency_ns", late.sample.latency_ns);
  json.member("missed", late.missed).key("context").open_object().member("cpu", late.cpu);
  if (late.cpu != late.cpu_before) {
    json.member("moved_from", late.cpu_before);
  } else if (shared_.counters.attached()) {
    json.member("exact_ns", late.sample.t_ns + late.sample.latency_ns - late.since_ns);
    for (std::size_t kind = 0; kind < counter_kinds; ++kind) {
      if (shared_.counters.counts(kind)) {
        json.member(counter_names[kind], late.counts[kind]);
      }
    }
    json.member("ran_before", task_name(late));
    if (!worst.last_interrupt.empty()) {
      json.member("last_interrupt", worst.last_interrupt);
    }
  }
  json.member("own_involuntary_switches", late.involuntary_switches);
  json.member("own_page_faults", late.own_page_faults);
  json.member("own_window_ns", late.sample.t_ns + late.sample.latency_ns - late.own_since_ns);
  if (!worst.busiest_interrupts.empty()) {
    json.member("window_interrupts", worst.busiest_interrupts);
  }
  add_if_known(json, "window_steal_ns", worst.steal_ns);
  add_if_known(json, "window_smis", worst.smis);
  json.member("window_ns", worst.window_ns);
  add_if_known(json, "frequency_khz", worst.frequency_khz);
  json.close_object().close_object();
}

}  // namespace latenz::probe
