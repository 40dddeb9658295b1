// SPDX-License-Identifier: Apache-2.0
// Members of BasicTdma: the run from its first slot to its last, and the events of which it
// consists, slots' edges and arrivals. Freestanding.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "basic_tdma.hpp"
#include "clock.hpp"

namespace latenz::hypervisor {

/// @param took ticks that the monitor took
constexpr std::uint32_t detail_of(const Top& top, std::uint64_t took) {
  return static_cast<std::uint32_t>(top.handling) | (top.accepted ? TopDetail::accepted : 0U) |
         (top.asked ? TopDetail::asked : 0U) |
         (static_cast<std::uint32_t>(std::min<std::uint64_t>(took, 0xFFFF))
          << TopDetail::monitor_shift);
}

/// From the plan's making to its first slot: to begin takes 200 us with as many sources as there
/// may be, and the first slot's switch would seem to take what is left.
inline constexpr std::uint64_t time_to_begin_ns = 400'000;

// --- From the first slot to the last -------------------------------------------------------------

template <SharedMachine Machine>
void BasicTdma<Machine>::prepare(const TdmaPlan& plan, std::uint32_t cpu,
                                 std::span<Partition> partitions, Dispatcher::Room& room) {
  plan_ = &plan;
  cpu_ = cpu;
  partitions_ = partitions;
  dispatcher_.use(room);
  devices_.begin(plan, cpu, machine_.distributor());
}

template <SharedMachine Machine>
BasicTdma<Machine>::Vcpu* BasicTdma<Machine>::start(Processor& processor,
                                                    std::uint64_t trap_ticks) {
  const Clock clock(machine_.counter_hz());
  processor_ = &processor;
  begin_dispatcher(
      instant_of(machine_.first_slot(machine_.now() + clock.nearest(time_to_begin_ns))));
  const std::uint64_t began = machine_.now();
  leave(processor, {}, began, InterruptId::slot_timer);  // after its last stamp: counts as leaving
  trap_ticks_ = trap_ticks + (machine_.now() - began);
  return resume(processor, began, InterruptId::spurious);
}

/// @param epoch when the first slot begins; guests are told
template <SharedMachine Machine>
void BasicTdma<Machine>::begin_dispatcher(Instant epoch) {
  dispatcher_.begin(plan_->from(epoch, cpu_));
  each_own_partition([&](Partition& each) { each.tell_first_slot(tick_of(epoch)); });
}

/// All begins anew, a while from now: until then nothing runs. Not while guests are awaited.
template <SharedMachine Machine>
bool BasicTdma<Machine>::measure_from_here() {
  const Clock clock(machine_.counter_hz());
  const Instant earliest = dispatcher_.slot_end() + clock.duration(time_to_begin_ns);
  const std::uint64_t decided = machine_.first_cycle(tick_of(earliest));
  if (decided == 0) return false;
  const Instant epoch = instant_of(decided);
  begin_dispatcher(epoch);
  each_own_partition([this](const Partition& each) {
    if (!each.is_running()) dispatcher_.stop(each.vcpu.partition);
    any_watched_ = any_watched_ || each.is_watched();
  });
  arrivals_.begin(plan_->arrivals(), epoch, plan_->sources_of(cpu_));
  sections_.place(plan_->trace_of(cpu_));
  presented_.fill(false);
  sections_.forget();
  run_.begin(epoch);
  provoked_ = false;  // all this was nobody's
  arm_arrival_timer();
  return true;
}

/// A list without any of this CPU's: the run ends when no guest runs.
template <SharedMachine Machine>
void BasicTdma<Machine>::end_if_all_is_done() {
  if (!arrivals_.has_any()) {
    if (!machine_.any_running()) return end_run();
    if (least_cycles() == 0) return;
  }
  if (!all_raised()) return;
  devices_.disable(machine_.distributor());
  if (dispatcher_.idle() || run_.is_stuck(dispatcher_)) end_run();
}

/// What this CPU tells is complete. Its guests run on while others are not done.
template <SharedMachine Machine>
void BasicTdma<Machine>::end_run() {
  run_.end();
  sections_.end();
  machine_.end_run(cpu_);
}

/// Nothing of the list is to come any more, and the run is long enough; devices never have done.
template <SharedMachine Machine>
bool BasicTdma<Machine>::all_raised() const {
  const bool none_waits = (dispatcher_.masked() & ~devices_.bits()) == 0;
  return arrivals_.done() && none_waits && run_.cycles() >= least_cycles();
}

// --- Events --------------------------------------------------------------------------------------

/// Rules R1 and R6: in the order of their times, the slot's edge before an arrival of that time.
template <SharedMachine Machine>
void BasicTdma<Machine>::serve_due_events() {
  while (next_event() <= instant_of(machine_.now())) serve_event();
}

template <SharedMachine Machine>
Instant BasicTdma<Machine>::next_event() const {
  return std::min(arrivals_.time(), dispatcher_.slot_end());
}

template <SharedMachine Machine>
void BasicTdma<Machine>::serve_event() {
  if (others_from_ == 0) others_from_ = machine_.now();
  if (arrivals_.time() < dispatcher_.slot_end()) {
    raise_arrival();
  } else {
    switch_slot();
  }
}

template <SharedMachine Machine>
void BasicTdma<Machine>::switch_slot() {
  const bool cycle_ends =
      dispatcher_.owner() != nobody && dispatcher_.slot() + 1 == plan_->slots_of(cpu_);
  if (cycle_ends && run_.measuring()) {
    run_.count_cycle();
    end_if_all_is_done();
  }
  const bool awaits = !run_.measuring() && !run_.is_over();
  if (cycle_ends && awaits && measure_from_here()) return;
  const PartitionIndex before = dispatcher_.owner();
  dispatcher_.start_slot();
  if (before == nobody && run_.measuring()) devices_.enable(machine_.distributor(), dispatcher_);
  const Instant edge = dispatcher_.slot_start();
  const std::uint64_t began = sections_.any_open() ? machine_.now() : entered_;
  if (before != nobody) {
    const Partition& owner = partitions_[before];
    const std::uint64_t progress = owner.progress();
    open(TraceKind::progress, began, before, owner.condition(),
         static_cast<std::uint32_t>(progress), static_cast<std::uint32_t>(progress >> 32U));
  }
  const Duration lateness = instant_of(began) - edge;
  run_.note_slot(lateness);
  open(TraceKind::slot_switch, began, dispatcher_.owner(), 0, cut(lateness.ns()),
       static_cast<std::uint32_t>(dispatcher_.slot()));
  if (any_watched_) watch();
  if (dispatcher_.any_masked()) unmask();
}

/// The watchdog of the slot's owner. It is looked at, and carried out, in the owner's own slots.
template <SharedMachine Machine>
void BasicTdma<Machine>::watch() {
  Partition& owner = partitions_[dispatcher_.owner()];
  const bool runs = processor_->running == &owner.vcpu;
  const Outcome outcome = owner.watch(tick_of(dispatcher_.slot_start()), runs);
  if (outcome == Outcome::served) return;
  settle(dispatcher_.owner(), outcome);
  if (outcome == Outcome::restarted && runs) owner.vcpu.load_anew();
}

template <SharedMachine Machine>
void BasicTdma<Machine>::raise_arrival() {
  const Instant arrival = arrivals_.time();
  const std::uint16_t source = arrivals_.source();
  arrivals_.advance();
  raise_if_permitted(source, arrival, sections_.any_open() ? machine_.now() : entered_);
  arm_arrival_timer();
}

/// A device does not tell when its interrupt came, a guest rings its doorbell by entering the
/// hypervisor: the stamp is when it was entered. What was due by then comes first, though its timer
/// may be signalled later.
template <SharedMachine Machine>
void BasicTdma<Machine>::raise_now(std::uint64_t entered, std::uint16_t source) {
  const Instant arrival = instant_of(entered);
  while (next_event() <= arrival) serve_event();
  raise_if_permitted(source, arrival, sections_.any_open() ? machine_.now() : entered);
}

/// An interrupt of a device that is no source: if its owner does not run, it waits for its slot.
template <SharedMachine Machine>
void BasicTdma<Machine>::signal_to_owner(const Processor& processor, std::uint32_t id) {
  for (Partition& partition : partitions_) {
    if (&partition.vcpu != processor.running && partition.vcpu.gic.owns(id)) {
      partition.vcpu.gic.signal_later(id);
    }
  }
}

/// Rule R7.
template <SharedMachine Machine>
void BasicTdma<Machine>::raise_if_permitted(std::uint16_t source, Instant arrival,
                                            std::uint64_t began) {
  if (dispatcher_.permits(source, arrival)) {
    raise(source, arrival, began);
  } else {
    mask(source, began);
  }
}

/// Until unmask() the source does not interrupt, and what comes of it merges with what waits: an
/// interrupt controller keeps one edge of a masked line, and so does the list.
template <SharedMachine Machine>
void BasicTdma<Machine>::mask(std::uint16_t source, std::uint64_t began) {
  open(TraceKind::limit, began, plan_->partition(source), source, 0, 0);
  if (plan_->is_device(source)) {
    devices_.mask(machine_.distributor(), source);
  } else {
    arrivals_.mask(source);
  }
}

/// A slot begins: what waits of the list of arrivals arrives at its start.
template <SharedMachine Machine>
void BasicTdma<Machine>::unmask() {
  for (std::uint32_t rest = dispatcher_.unmask(); rest != 0; rest &= rest - 1) {
    const auto source = static_cast<std::uint16_t>(std::countr_zero(rest));
    if (!plan_->is_device(source)) {
      raise(source, dispatcher_.slot_start(), machine_.now());
      arrivals_.unmask(source, dispatcher_.slot_start());  // of its top handler's section
    } else if (!dispatcher_.stopped(plan_->partition(source)) && !all_raised()) {
      machine_.distributor().enable(plan_->interrupt(source));
    }
  }
  arm_arrival_timer();
}

template <SharedMachine Machine>
void BasicTdma<Machine>::raise(std::uint16_t source, Instant arrival, std::uint64_t began) {
  const PartitionIndex partition = plan_->partition(source);
  open(TraceKind::top_handler, began, partition, source, cut((instant_of(began) - arrival).ns()),
       0);
  const std::uint64_t asked = machine_.now();
  const Top top = dispatcher_.decide(source, arrival);
  const std::uint64_t answered = machine_.now();
  dispatcher_.enqueue(source, arrival, instant_of(began), top);
  sections_.set_detail(detail_of(top, answered - asked));
  run_.note_queue(partition, dispatcher_.queue(partition).size());
}

template <SharedMachine Machine>
void BasicTdma<Machine>::arm_arrival_timer() const {
  if (arrivals_.done()) {
    machine_.stop_arrival_timer();
  } else {
    machine_.arm_arrival_timer(tick_of(arrivals_.time()));
  }
}

}  // namespace latenz::hypervisor
