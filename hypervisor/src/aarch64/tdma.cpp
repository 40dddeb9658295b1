// SPDX-License-Identifier: Apache-2.0
#include "aarch64/tdma.hpp"

#include <algorithm>
#include <bit>

#include "aarch64/system_registers.hpp"
#include "hypervisor.hpp"

namespace latenz::hypervisor {
namespace {

Instant instant(std::uint64_t tick) { return Instant(static_cast<std::int64_t>(tick)); }
std::uint64_t tick(Instant at) { return static_cast<std::uint64_t>(at.ns()); }

std::uint32_t cut(std::int64_t ticks) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ticks, 0, UINT32_MAX));
}

std::uint32_t detail_of(const Top& top) {
  return static_cast<std::uint32_t>(top.handling) | (top.accepted ? TopDetail::accepted : 0U) |
         (top.asked ? TopDetail::asked : 0U);
}

constexpr std::uint64_t time_to_begin_ns = 100'000;

}  // namespace

// --- Plan ----------------------------------------------------------------------------------------

void Tdma::prepare(const Configuration& configuration, std::span<Partition> partitions) {
  const Clock clock(CntFrequency::read());
  configuration_ = &configuration;
  partitions_ = partitions;
  plan_slots(clock);
  plan_sources(clock);
  plan_devices();
  convert_arrivals(clock);
  plan_.mode = configuration.mode;
  plan_.slots = std::span(slots_).first(configuration.slots);
  plan_.sources = std::span(sources_).first(configuration.sources);
}

void Tdma::plan_slots(const Clock& clock) {
  for (std::uint32_t i = 0; i < configuration_->slots; ++i) {
    const SlotEntry& slot = configuration_->slot[i];
    slots_[i] = {.partition = static_cast<PartitionIndex>(slot.partition),
                 .length = clock.at_most(slot.length_ns),
                 .remainder = clock.remainder(slot.length_ns)};
  }
}

void Tdma::plan_sources(const Clock& clock) {
  for (std::size_t i = 0; i < distances_.size(); ++i) {
    distances_[i] = clock.at_most(static_cast<std::uint64_t>(configuration_->distance_ns[i]));
  }
  for (std::uint32_t i = 0; i < configuration_->sources; ++i) {
    const SourceEntry& source = configuration_->source[i];
    sources_[i] = {
        .partition = static_cast<PartitionIndex>(source.partition),
        .monitored = (source.flags & SourceEntry::monitored) != 0,
        .distances = std::span(distances_).subspan(source.first_distance, source.distances),
        .bottom = clock.at_least(source.bottom_ns),
        .learned = source.learned,
        .learn_events = source.learn_events,
        .limit = planned_limit(clock, i)};
    interrupts_[i] = source.interrupt;
  }
}

/// Rounded so that no stream that keeps its limit in nanoseconds exceeds it in ticks: the time from
/// one stamp to another can be too short by less than one.
const Limit* Tdma::planned_limit(const Clock& clock, std::uint32_t source) {
  const SourceEntry& entry = configuration_->source[source];
  if (entry.limit_distances == 0 && entry.limit_period_ns == 0) return nullptr;
  const Duration jitter =
      clock.at_least(entry.limit_jitter_ns) + Duration(clock.is_exact() ? 0 : 1);
  Late<Limit>& limit = limits_[source];
  limit.make(std::span(distances_).subspan(entry.first_limit_distance, entry.limit_distances),
             clock.at_most(entry.limit_period_ns), jitter);
  return limit.operator->();
}

void Tdma::plan_devices() {
  std::size_t found = 0;
  const auto sources = static_cast<std::uint16_t>(configuration_->sources);
  for (std::uint16_t i = 0; i < sources; ++i) {
    if (!is_device(i)) continue;
    board_distributor.route(interrupts_[i], 0);
    device_list_[found++] = i;
    device_bits_ |= std::uint32_t{1} << i;
  }
  devices_ = std::span(device_list_).first(found);
}

void Tdma::convert_arrivals(const Clock& clock) {
  auto* entries = reinterpret_cast<ArrivalEntry*>(configuration_->arrivals);
  for (std::uint64_t i = 0; i < configuration_->arrival_count; ++i) {
    entries[i].time_ns = clock.nearest(entries[i].time_ns);
  }
  ArrivalList::find_runs({entries, configuration_->arrival_count});
  arrival_period_ = clock.duration(configuration_->arrival_period_ns);
}

// --- From the first slot to the last -------------------------------------------------------------

Vcpu* Tdma::start(Processor& processor, std::uint64_t trap_ticks) {
  const Clock clock(CntFrequency::read());
  plan_.epoch = instant(now() + clock.nearest(time_to_begin_ns));
  dispatcher_.begin(plan_);
  const std::uint64_t began = now();
  leave(processor, {}, began, InterruptId::slot_timer);  // after its last stamp: counts as leaving
  trap_ticks_ = trap_ticks + (now() - began);
  return resume(processor, began, InterruptId::spurious);
}

/// All begins anew, a while from now: until then nothing runs.
void Tdma::measure_from_here() {
  const Clock clock(CntFrequency::read());
  plan_.epoch = epoch_ = dispatcher_.slot_end() + clock.duration(time_to_begin_ns);
  dispatcher_.begin(plan_);
  for (const Partition& each : partitions_) {
    if (!each.is_running()) dispatcher_.stop(each.vcpu.partition);
  }
  arrivals_.begin({reinterpret_cast<const ArrivalEntry*>(configuration_->arrivals),
                   configuration_->arrival_count},
                  configuration_->arrival_repeats, arrival_period_, epoch_);
  if ((configuration_->flags & Configuration::trace_on) != 0) {
    trace_.place(
        {reinterpret_cast<TraceRecord*>(configuration_->trace), configuration_->trace_records});
  }
  presented_.fill(false);
  section_.open = false;
  latest_slot_ = Duration();
  cycles_ = 0;
  measuring_ = true;
  provoked_ = false;  // all this was nobody's
  arm_arrival_timer();
}

void Tdma::end_if_all_is_done() {
  if (configuration_->arrival_count == 0) {
    if (!hypervisor.any_running()) hypervisor.finish();
    if (configuration_->least_cycles == 0) return;
  }
  if (!all_raised()) return;
  disable_devices();
  if (dispatcher_.idle() || is_stuck()) hypervisor.finish();
}

/// Nothing of the list is to come any more, and the run is long enough; devices never have done.
bool Tdma::all_raised() const {
  const bool none_waits = (dispatcher_.masked() & ~device_bits_) == 0;
  return arrivals_.done() && none_waits && cycles_ >= configuration_->least_cycles;
}

/// The interrupt of a source's device is active for as long as it is in the queue: so it comes
/// again, if its device still asks, when its bottom handler has ended.
void Tdma::enable_devices() const {
  for (const std::uint16_t each : devices_) {
    if (!dispatcher_.stopped(sources_[each].partition)) board_distributor.enable(interrupts_[each]);
  }
}

void Tdma::disable_devices() const {
  for (const std::uint16_t each : devices_) board_distributor.disable(interrupts_[each]);
}

/// The partition has been stopped, its queue is empty.
void Tdma::lose_devices(PartitionIndex partition) const {
  for (const std::uint16_t each : devices_) {
    if (sources_[each].partition != partition) continue;
    board_distributor.disable(interrupts_[each]);
    board_distributor.clear_active(interrupts_[each]);
  }
}

/// A guest may never end a bottom handler: when none has ended for long, nobody waits any more.
bool Tdma::is_stuck() {
  constexpr std::uint64_t most_cycles_without_end = 100;
  std::uint64_t completed = 0;
  const auto sources = static_cast<std::uint16_t>(dispatcher_.sources());
  for (std::uint16_t i = 0; i < sources; ++i) {
    completed += dispatcher_.statistics(i).completed;
  }
  stuck_cycles_ = completed == completed_ ? stuck_cycles_ + 1 : 0;
  completed_ = completed;
  return stuck_cycles_ >= most_cycles_without_end;
}

// --- Events --------------------------------------------------------------------------------------

/// The short way for what comes in its partition's slot while nothing else goes on: the guest gets
/// it at once, and all that is to be noted of it is noted when the hypervisor is entered next. Who
/// runs does not change, and timers that are due by now interrupt again.
inline bool Tdma::raise_in_own_slot(Processor& processor, std::uint64_t entered) {
  const Instant arrival = arrivals_.time();
  Vcpu& vcpu = *processor.running;
  const bool in_slot = arrival >= dispatcher_.slot_start() && arrival < dispatcher_.slot_end();
  if (!in_slot || arrival > instant(entered)) return false;
  const std::uint16_t source = arrivals_.source();
  const PartitionIndex partition = sources_[source].partition;
  if (vcpu.partition != partition || !dispatcher_.queue(partition).empty()) return false;
  short_way_ = false;
  presented_[partition] = true;
  vcpu.gic.signal_new(interrupts_[source]);
  arrivals_.advance();
  arm_arrival_timer();
  processor.interface.deactivate(InterruptId::arrival_timer);
  late_ = {.any = true, .source = source, .arrival = arrival, .began = entered, .ended = now()};
  return true;
}

Vcpu* Tdma::interrupt(Processor& processor, std::uint64_t entered, std::uint32_t id) {
  if (id == InterruptId::arrival_timer && short_way_ && raise_in_own_slot(processor, entered))
    return processor.running;
  return visit(processor, entered, id);
}

Vcpu* Tdma::visit(Processor& processor, std::uint64_t entered, std::uint32_t id) {
  begin_visit(entered);
  provoked_ = id == InterruptId::virtual_timer || id == InterruptId::maintenance ||
              processor.running->gic.owns(id);
  if (is_presented(*processor.running)) end_bottom_handlers(processor, entered);
  serve(processor, entered, id);
  return resume(processor, entered, id);
}

/// What the guest has done until then, and what is left of the visit before.
void Tdma::begin_visit(std::uint64_t entered) {
  entered_ = entered;
  others_from_ = 0;
  if (late_.any) catch_up();
  if (job_runs_) charge(entered);
}

/// Notes the interrupt that went the short way, before anything else happens: a section of its own.
void Tdma::catch_up() {
  late_.any = false;
  raise(late_.source, late_.arrival, late_.began);
  close(late_.ended);
  open(TraceKind::catch_up, entered_, sources_[late_.source].partition, late_.source, 0, 0);
  entered_ = now();
  close(entered_);
}

void Tdma::charge(std::uint64_t entered) {
  dispatcher_.charge(Duration(static_cast<std::int64_t>(entered - resumed_)));
  job_executed_ += entered - resumed_;
}

void Tdma::serve(Processor& processor, std::uint64_t entered, std::uint32_t id) {
  if (id == InterruptId::maintenance) {
    processor.running->gic.flush();
  } else if (id >= InterruptId::first_shared) {
    const auto device =
        std::ranges::find_if(devices_, [&](auto each) { return interrupts_[each] == id; });
    if (device != devices_.end()) {
      raise_device(entered, *device);
    } else {
      signal_to_owner(processor, id);
    }
  }
}

Vcpu* Tdma::partition_changed(Processor& processor, std::uint64_t entered, Outcome outcome) {
  const PartitionIndex index = processor.running->partition;
  begin_visit(entered);
  provoked_ = true;
  settle(index, outcome);
  if (outcome == Outcome::restarted) processor.running->load();
  entered_ = now();
  processor.longest_service = std::max(processor.longest_service, entered_ - entered);
  return resume(processor, entered, InterruptId::spurious);
}

void Tdma::settle(PartitionIndex index, Outcome outcome) {
  presented_[index] = false;
  if (outcome == Outcome::restarted) {
    dispatcher_.restart(index);
  } else {
    dispatcher_.stop(index);
    lose_devices(index);
  }
}

/// Rules R1 and R6: in the order of their times, the slot's edge before an arrival of that time.
void Tdma::serve_due_events() {
  while (next_event() <= instant(now())) serve_event();
}

Instant Tdma::next_event() const { return std::min(arrivals_.time(), dispatcher_.slot_end()); }

void Tdma::serve_event() {
  if (others_from_ == 0) others_from_ = now();
  if (arrivals_.time() < dispatcher_.slot_end()) {
    raise_arrival();
  } else {
    switch_slot();
  }
}

void Tdma::switch_slot() {
  const bool cycle_ends =
      dispatcher_.owner() != nobody && dispatcher_.slot() + 1 == plan_.slots.size();
  if (cycle_ends && measuring_) {
    ++cycles_;
    end_if_all_is_done();
  }
  if (cycle_ends && !measuring_ && !hypervisor.any_awaited()) {
    measure_from_here();
    return;
  }
  const PartitionIndex before = dispatcher_.owner();
  dispatcher_.start_slot();
  if (before == nobody && measuring_) enable_devices();
  const Instant edge = dispatcher_.slot_start();
  const std::uint64_t began = section_.open ? now() : entered_;
  if (before != nobody) {
    const std::uint64_t progress = partitions_[before].progress();
    open(TraceKind::progress, began, before, 0, static_cast<std::uint32_t>(progress),
         static_cast<std::uint32_t>(progress >> 32U));
  }
  const Duration late = instant(began) - edge;
  latest_slot_ = std::max(latest_slot_, late);
  open(TraceKind::slot_switch, began, dispatcher_.owner(), 0, cut(late.ns()),
       static_cast<std::uint32_t>(dispatcher_.slot()));
  if (dispatcher_.any_masked()) unmask();
}

void Tdma::raise_arrival() {
  const Instant arrival = arrivals_.time();
  const std::uint16_t source = arrivals_.source();
  arrivals_.advance();
  raise_if_permitted(source, arrival, section_.open ? now() : entered_);
  pass_over_masked();
  arm_arrival_timer();
}

/// A device does not tell when its interrupt came: the stamp is when the hypervisor was entered.
/// What was due by then comes first, though its timer may be signalled later.
void Tdma::raise_device(std::uint64_t entered, std::uint16_t source) {
  const Instant arrival = instant(entered);
  while (next_event() <= arrival) serve_event();
  raise_if_permitted(source, arrival, section_.open ? now() : entered);
}

/// An interrupt of a device that is no source: if its owner does not run, it waits for its slot.
void Tdma::signal_to_owner(const Processor& processor, std::uint32_t id) {
  for (Partition& partition : partitions_) {
    if (&partition.vcpu != processor.running && partition.vcpu.gic.owns(id)) {
      partition.vcpu.gic.signal_later(id);
    }
  }
}

/// Rule R7.
void Tdma::raise_if_permitted(std::uint16_t source, Instant arrival, std::uint64_t began) {
  if (dispatcher_.permits(source, arrival)) {
    raise(source, arrival, began);
  } else {
    mask(source, began);
  }
}

/// Until unmask() the source does not interrupt. A device that still asks then does so at once: its
/// level is pending by itself.
void Tdma::mask(std::uint16_t source, std::uint64_t began) {
  open(TraceKind::limit, began, sources_[source].partition, source, 0, 0);
  if (!is_device(source)) return;
  board_distributor.disable(interrupts_[source]);
  board_distributor.clear_active(interrupts_[source]);
}

/// A slot begins: what waits of the list of arrivals arrives at its start.
void Tdma::unmask() {
  for (std::uint32_t rest = dispatcher_.unmask(); rest != 0; rest &= rest - 1) {
    const auto source = static_cast<std::uint16_t>(std::countr_zero(rest));
    if (!is_device(source)) {
      raise(source, dispatcher_.slot_start(), now());
    } else if (!dispatcher_.stopped(sources_[source].partition) && !all_raised()) {
      board_distributor.enable(interrupts_[source]);
    }
  }
  pass_over_masked();
  arm_arrival_timer();
}

/// As at an interrupt controller, which keeps one edge of a masked line: what the list has of
/// masked sources in this slot merges with what waits of them.
void Tdma::pass_over_masked() {
  if (!dispatcher_.any_masked()) return;
  while (arrivals_.time() < dispatcher_.slot_end() && dispatcher_.is_masked(arrivals_.source())) {
    arrivals_.pass_over(dispatcher_.slot_end());
  }
}

void Tdma::raise(std::uint16_t source, Instant arrival, std::uint64_t began) {
  const PartitionIndex partition = sources_[source].partition;
  open(TraceKind::top_handler, began, partition, source, cut((instant(began) - arrival).ns()), 0);
  const std::uint64_t asked = now();
  const Top top = dispatcher_.decide(source, arrival);
  const std::uint64_t answered = now();
  dispatcher_.enqueue(source, arrival, instant(began), top);
  section_.record.detail =
      detail_of(top) |
      (static_cast<std::uint32_t>(std::min<std::uint64_t>(answered - asked, 0xFFFF))
       << TopDetail::monitor_shift);
  longest_queue_[partition] =
      std::max(longest_queue_[partition], dispatcher_.queue(partition).size());
}

/// Looked for whatever interrupt came: a completion comes before the slot's edge, an arrival or the
/// budget's end of the same time (R6). What it takes is of the IRQ's top handler: see `Costs`.
void Tdma::end_bottom_handlers(Processor& processor, std::uint64_t entered) {
  Vcpu& vcpu = *processor.running;
  vcpu.gic.each_ended([&](std::uint32_t id) {
    const Dispatcher::Queue& queue = dispatcher_.queue(vcpu.partition);
    if (queue.empty()) return;
    const std::uint16_t source = queue.head().source;
    const SourceEntry& entry = configuration_->source[source];
    if (entry.interrupt != id) return;
    presented_[vcpu.partition] = false;
    provoked_ = false;
    if (is_device(source)) processor.interface.deactivate(id);
    const Finished finished = dispatcher_.finish_bottom(instant(entered));
    open(TraceKind::bottom_end, entered, vcpu.partition, finished.source,
         cut(finished.latency.ns()), static_cast<std::uint32_t>(finished.handling));
  });
}

// --- What runs -----------------------------------------------------------------------------------

/// Serves what is due until nothing changes any more; jobs end and start on the way.
Next Tdma::decide() {
  while (true) {
    serve_due_events();
    const std::uint64_t began = now();
    const Next next = dispatcher_.next();
    if (next.settled()) return next;
    provoked_ = false;
    const PartitionIndex partition = sources_[next.job_source].partition;
    if (next.job_ended) {
      open(TraceKind::job_end, began, partition, next.job_source,
           static_cast<std::uint32_t>(job_executed_), next.overrun ? 1 : 0);
    } else {
      job_executed_ = 0;
      open(TraceKind::job_start, began, partition, next.job_source,
           static_cast<std::uint32_t>(now() - began), 0);
    }
  }
}

/// @param id what came, spurious if nothing did
Vcpu* Tdma::resume(Processor& processor, std::uint64_t entered, std::uint32_t id) {
  const Next next = decide();
  Vcpu& vcpu = next.partition == nobody ? processor.idle : partitions_[next.partition].vcpu;
  if (&vcpu != processor.running) {
    processor.running->save();
    hypervisor.settle_errors(processor);
    vcpu.load();
    processor.running = &vcpu;
  }
  present(vcpu);
  job_runs_ = next.interposed;
  short_way_ = short_way_is_open();
  const std::uint64_t at = now();
  if (provoked_ && !section_.open)
    processor.longest_service = std::max(processor.longest_service, at - entered);
  close(at);
  resumed_ = at + trap_ticks_ - provoked_ticks(entered, at + trap_ticks_);
  leave(processor, next, resumed_, id);
  return &vcpu;
}

/// An interrupt that its limit does not permit does not go it, and none while a source is masked.
bool Tdma::short_way_is_open() const {
  if (job_runs_ || dispatcher_.any_masked() || arrivals_.done()) return false;
  return arrivals_.time() >= dispatcher_.permitted_from(arrivals_.source());
}

/// Of a visit that the guest of a job caused, what counts as the job's execution: all until
/// something of others was served.
std::uint64_t Tdma::provoked_ticks(std::uint64_t entered, std::uint64_t left) const {
  if (!job_runs_ || !provoked_) return 0;
  return (others_from_ == 0 ? left : others_from_) - entered;
}

/// The last of a visit. An interrupt's reason is gone before it is deactivated, and all that was
/// written to the interrupt controller is there before the guest goes on.
void Tdma::leave(const Processor& processor, const Next& next, std::uint64_t at,
                 std::uint32_t id) const {
  arm_slot_timer(next, at);
  const bool own = id == InterruptId::maintenance || id == InterruptId::slot_timer ||
                   id == InterruptId::arrival_timer;
  if (own) processor.interface.deactivate(id);
  data_barrier();
}

/// The guest sees the head of its partition's queue, and the next one when that has ended: so they
/// are counted, whatever one interrupt line could remember.
void Tdma::present(Vcpu& vcpu) {
  if (vcpu.partition == idle_partition || presented_[vcpu.partition]) return;
  const Dispatcher::Queue& queue = dispatcher_.queue(vcpu.partition);
  if (queue.empty()) return;
  presented_[vcpu.partition] = true;
  vcpu.gic.signal_new(interrupts_[queue.head().source]);
}

void Tdma::arm_arrival_timer() const {
  if (arrivals_.done()) {
    CntpControl::write(0);
  } else {
    CntpCompare::write(tick(arrivals_.time()));
    CntpControl::write(1);
  }
}

void Tdma::arm_slot_timer(const Next& next, std::uint64_t at) const {
  const Instant budget_end = instant(at) + next.budget;
  CnthpCompare::write(tick(std::min(budget_end, dispatcher_.slot_end())));
  CnthpControl::write(1);
}

// --- Trace ---------------------------------------------------------------------------------------

/// Ends the section before, if one is open.
void Tdma::open(TraceKind kind, std::uint64_t at, PartitionIndex partition, std::uint16_t source,
                std::uint32_t value, std::uint32_t detail) {
  close(at);
  section_ = {.record = {.start = at,
                         .duration = 0,
                         .value = value,
                         .kind = kind,
                         .partition = partition,
                         .source = source,
                         .detail = detail},
              .open = true};
}

void Tdma::close(std::uint64_t at) {
  if (!section_.open) return;
  section_.record.duration = static_cast<std::uint32_t>(at - section_.record.start);
  trace_.write(section_.record);
  section_.open = false;
}

}  // namespace latenz::hypervisor
