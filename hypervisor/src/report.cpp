// SPDX-License-Identifier: Apache-2.0
// What the hypervisor tells when all is over, as frames on the console: what it is, the trace, the
// statistics.
#include <algorithm>
#include <atomic>
#include <bit>

#include "aarch64/console.hpp"
#include "aarch64/power.hpp"
#include "aarch64/system_registers.hpp"
#include "boards/board.hpp"
#include "hypervisor.hpp"
#include "latenz/text.hpp"
#include "output.hpp"

namespace latenz::hypervisor {
namespace {

using Line = Text<600>;

std::uint64_t ticks(Duration duration) { return static_cast<std::uint64_t>(duration.ns()); }

std::string_view name_of(Partition::State state) {
  switch (state) {
    case Partition::State::stopped:
      return "stopped";
    case Partition::State::off:
      return "off";
    default:
      return "running";
  }
}

void add_figure(Line& line, std::string_view name, std::uint64_t value) {
  line.add(",\"").add(name).add("\":").add(value);
}

void add_learned(Text<1600>& line, const SourceMonitor& monitor) {
  line.add(",\"learned_ticks\":[");
  bool first = true;
  std::array<Duration, longest_distance_vector> room{};
  for (const Duration distance : monitor.guaranteed(room)) {
    line.add(first ? "" : ",").add(ticks(distance));
    first = false;
  }
  line.add("]}");
}

void tell_hello() {
  Line line;
  line.add(R"({"program":"hypervisor","version":")").add(LATENZ_VERSION).add(R"(","board":")");
  line.add(board().name).add(R"(","counter_hz":)").add(CntFrequency::read()).add("}");
  output().text(FrameKind::hello, line.view());
}

}  // namespace

void fail(std::string_view reason) {
  constexpr std::uint64_t translates = 1;  // before, memory is a device's: no CPU may lock it
  if ((SctlrEl2::read() & translates) != 0) Console::take();
  Text<100> told;
  output().text(FrameKind::fault, told.add("hypervisor: ").add(reason).view());
  output().end({});
  Power::off();
}

/// Of the first CPU trace.bin, of CPU 1 trace-1.bin, and so on.
void Hypervisor::tell_traces() const {
  for (BitSet rest = plan_.cpus_with_slots(); rest != 0; rest &= rest - 1) {
    const auto cpu = static_cast<std::uint32_t>(std::countr_zero(rest));
    Text<16> name;
    name.add("trace");
    if (cpu > 0) name.add("-").add(cpu);
    File::begin(name.add(".bin").view());
    tdmas_[cpu].trace().each([&](const TraceRecord& record) {
      File::add({reinterpret_cast<const char*>(&record), sizeof record});
    });
    File::end();
  }
}

void Hypervisor::tell_sources() const {
  const auto sources = static_cast<std::uint16_t>(configuration_->sources);
  for (std::uint16_t i = 0; i < sources; ++i) {
    const auto partition = static_cast<PartitionIndex>(configuration_->source[i].partition);
    const Tdma& tdma = tdmas_[partitions_[partition].cpu()];
    const SourceStatistics& figures = tdma.dispatcher().statistics(i);
    Line line;
    line.add(i == 0 ? "" : ",").add(R"({"name":")").add(text_of(configuration_->source[i].name));
    line.add("\"");
    add_figure(line, "raised", figures.raised);
    add_figure(line, "completed", figures.completed);
    add_figure(line, "direct", figures.by_handling[0]);
    add_figure(line, "interposed", figures.by_handling[1]);
    add_figure(line, "delayed", figures.by_handling[2]);
    add_figure(line, "denied", figures.denied);
    add_figure(line, "overruns", figures.overruns);
    add_figure(line, "overflowed", figures.overflowed);
    add_figure(line, "dropped", figures.dropped);
    add_figure(line, "masked", figures.masked);
    add_figure(line, "longest_queue", tdma.run().longest_queue(partition));
    add_figure(line, "min_ticks", figures.completed > 0 ? ticks(figures.least_latency) : 0);
    add_figure(line, "max_ticks", ticks(figures.most_latency));
    add_figure(line, "sum_ticks", ticks(figures.all_latencies));
    File::add(line.view());
    Text<1600> learned;
    add_learned(learned, tdma.dispatcher().monitor(i));
    File::add(learned.view());
  }
}

void Hypervisor::tell_partitions() const {
  bool first = true;
  for (const Partition& each : all()) {
    Line line;
    line.add(first ? "" : ",").add(R"({"name":")").add(each.name());
    line.add(R"(","state":")").add(name_of(each.state())).add("\"");
    add_figure(line, "faults", each.health().faults());
    add_figure(line, "expiries", each.health().expiries());
    add_figure(line, "restarts", each.restarts());
    add_figure(line, "progress", each.progress());
    add_figure(line, "lost_lines", Console::lost(each.vcpu.partition));
    File::add(line.add("}").view());
    first = false;
  }
}

/// What is of one CPU; of slots and a trace it may have none.
void Hypervisor::add_cpu(Text<600>& line, std::uint32_t cpu) const {
  const Tdma& tdma = tdmas_[cpu];
  const Processor& processor = processors[cpu];
  line.add("\"cpu\":").add(cpu);
  add_figure(line, "epoch_tick", static_cast<std::uint64_t>(tdma.run().epoch().ns()));
  add_figure(line, "cycles", tdma.run().cycles());
  add_figure(line, "trap_ticks", std::max(tdma.trap_ticks(), processor.trap_ticks));
  add_figure(line, "longest_service_ticks", processor.longest_service);
  add_figure(line, "spurious_entries", processor.spurious);
  add_figure(line, "records_written", tdma.trace().written());
  add_figure(line, "records_kept", tdma.trace().kept());
  add_figure(line, "latest_slot_ticks", ticks(tdma.run().latest_slot()));
}

/// The first CPU with slots, then what is of the whole board, then other CPUs with slots.
void Hypervisor::tell_statistics() const {
  BitSet others = plan_.cpus_with_slots();
  File::begin("statistics.json");
  Line line;
  line.add("{");
  add_cpu(line, others == 0 ? 0 : static_cast<std::uint32_t>(std::countr_zero(others)));
  add_figure(line, "counter_hz", CntFrequency::read());
  std::uint64_t idle_errors = 0;
  for (const Processor& each : processors) idle_errors += each.idle_errors;
  add_figure(line, "idle_errors", idle_errors);
  File::add(line.add(",\"others\":[").view());
  for (others &= others - 1; others != 0; others &= others - 1) {
    Line other;
    other.add("{");
    add_cpu(other, static_cast<std::uint32_t>(std::countr_zero(others)));
    File::add(other.add((others & (others - 1)) == 0 ? "}" : "},").view());
  }
  File::add("],\"sources\":[");
  tell_sources();
  File::add("],\"partitions\":[");
  tell_partitions();
  File::add("]}");
  File::end();
}

void Hypervisor::finish() {
  static std::atomic<bool> finished;
  while (finished.exchange(true, std::memory_order_acquire)) asm volatile("wfi");  // by another CPU
  Console::take();
  Console::drain();
  tell_hello();
  tell_traces();
  tell_statistics();
  output().end({});
  Power::off();
}

}  // namespace latenz::hypervisor
