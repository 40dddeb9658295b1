// SPDX-License-Identifier: Apache-2.0
// What the hypervisor tells when all is over, as frames on the console: what it is, the trace, the
// statistics.
#include <atomic>

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

void Hypervisor::tell_trace() const {
  File::begin("trace.bin");
  tdma_.trace().each([&](const TraceRecord& record) {
    File::add({reinterpret_cast<const char*>(&record), sizeof record});
  });
  File::end();
}

void Hypervisor::tell_sources() const {
  const auto sources = static_cast<std::uint16_t>(tdma_.dispatcher().sources());
  for (std::uint16_t i = 0; i < sources; ++i) {
    const SourceStatistics& figures = tdma_.dispatcher().statistics(i);
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
    add_figure(line, "longest_queue",
               tdma_.run().longest_queue(
                   static_cast<PartitionIndex>(configuration_->source[i].partition)));
    add_figure(line, "min_ticks", figures.completed > 0 ? ticks(figures.least_latency) : 0);
    add_figure(line, "max_ticks", ticks(figures.most_latency));
    add_figure(line, "sum_ticks", ticks(figures.all_latencies));
    File::add(line.view());
    Text<1600> learned;
    add_learned(learned, tdma_.dispatcher().monitor(i));
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

void Hypervisor::tell_statistics() const {
  File::begin("statistics.json");
  Line line;
  line.add("{\"counter_hz\":").add(CntFrequency::read());
  add_figure(line, "epoch_tick", static_cast<std::uint64_t>(tdma_.run().epoch().ns()));
  add_figure(line, "cycles", tdma_.run().cycles());
  add_figure(line, "trap_ticks", configuration_->slots > 0 ? tdma_.trap_ticks() : trap_ticks_);
  add_figure(line, "longest_service_ticks", processors[0].longest_service);
  add_figure(line, "spurious_entries", processors[0].spurious);
  add_figure(line, "records_written", tdma_.trace().written());
  add_figure(line, "records_kept", tdma_.trace().kept());
  add_figure(line, "latest_slot_ticks", ticks(tdma_.run().latest_slot()));
  std::uint64_t idle_errors = 0;
  for (const Processor& each : processors) idle_errors += each.idle_errors;
  add_figure(line, "idle_errors", idle_errors);
  File::add(line.add(",\"sources\":[").view());
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
  if (configuration_->slots > 0) tell_trace();
  tell_statistics();
  output().end({});
  Power::off();
}

}  // namespace latenz::hypervisor
