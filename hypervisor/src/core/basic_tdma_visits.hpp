// SPDX-License-Identifier: Apache-2.0
// Members of BasicTdma: a visit, from entering the hypervisor to the guest that goes on.
// Freestanding.
#pragma once

#include <algorithm>
#include <cstdint>

#include "basic_tdma.hpp"

namespace latenz::hypervisor {

template <SharedMachine Machine>
BasicTdma<Machine>::Vcpu* BasicTdma<Machine>::interrupt(Processor& processor, std::uint64_t entered,
                                                        std::uint32_t id) {
  if (id == InterruptId::arrival_timer && short_way_ && raise_in_own_slot(processor, entered))
    return processor.running;
  return visit(processor, entered, id);
}

/// The short way for what comes in its partition's slot while nothing else goes on: the guest gets
/// it at once, and all that is to be noted of it is noted when the hypervisor is entered next. Who
/// runs does not change, and timers that are due by now interrupt again.
template <SharedMachine Machine>
inline bool BasicTdma<Machine>::raise_in_own_slot(Processor& processor, std::uint64_t entered) {
  const Instant arrival = arrivals_.time();
  Vcpu& vcpu = *processor.running;
  const bool in_slot = arrival >= dispatcher_.slot_start() && arrival < dispatcher_.slot_end();
  if (!in_slot || arrival > instant_of(entered)) return false;
  const std::uint16_t source = arrivals_.source();
  const PartitionIndex partition = plan_->partition(source);
  if (vcpu.partition != partition || !dispatcher_.queue(partition).empty()) return false;
  short_way_ = false;
  presented_[partition] = true;
  vcpu.gic.signal_new(plan_->interrupt(source));
  arrivals_.advance();
  arm_arrival_timer();
  processor.interface.deactivate(InterruptId::arrival_timer);
  machine_.finish_writes();
  unnoted_ = {
      .any = true, .source = source, .arrival = arrival, .began = entered, .ended = machine_.now()};
  return true;
}

template <SharedMachine Machine>
BasicTdma<Machine>::Vcpu* BasicTdma<Machine>::visit(Processor& processor, std::uint64_t entered,
                                                    std::uint32_t id) {
  begin_visit(entered);
  provoked_ = id == InterruptId::virtual_timer || id == InterruptId::maintenance ||
              processor.running->gic.owns(id);
  if (is_presented(*processor.running)) end_bottom_handlers(processor, entered);
  serve(processor, entered, id);
  return resume(processor, entered, id);
}

/// What the guest has done until then, and what is left of the visit before.
template <SharedMachine Machine>
void BasicTdma<Machine>::begin_visit(std::uint64_t entered) {
  entered_ = entered;
  others_from_ = 0;
  if (unnoted_.any) catch_up();
  if (job_runs_) charge(entered);
}

/// Notes the interrupt that went the short way, before anything else happens: a section of its own.
template <SharedMachine Machine>
void BasicTdma<Machine>::catch_up() {
  unnoted_.any = false;
  raise(unnoted_.source, unnoted_.arrival, unnoted_.began);
  close(unnoted_.ended);
  open(TraceKind::catch_up, entered_, plan_->partition(unnoted_.source), unnoted_.source, 0, 0);
  entered_ = machine_.now();
  close(entered_);
}

template <SharedMachine Machine>
void BasicTdma<Machine>::charge(std::uint64_t entered) {
  dispatcher_.charge(Duration(static_cast<std::int64_t>(entered - resumed_)));
  job_executed_ += entered - resumed_;
}

template <SharedMachine Machine>
void BasicTdma<Machine>::serve(Processor& processor, std::uint64_t entered, std::uint32_t id) {
  if (id == InterruptId::maintenance) {
    processor.running->gic.flush();
  } else if (id >= InterruptId::first_shared) {
    const std::uint16_t* const device = devices_.find(id);
    if (device != nullptr) {
      raise_now(entered, *device);
    } else {
      signal_to_owner(processor, id);
    }
  }
}

template <SharedMachine Machine>
BasicTdma<Machine>::Vcpu* BasicTdma<Machine>::partition_changed(Processor& processor,
                                                                std::uint64_t entered,
                                                                Outcome outcome) {
  const PartitionIndex index = processor.running->partition;
  begin_visit(entered);
  provoked_ = true;
  settle(index, outcome);
  if (outcome == Outcome::restarted) processor.running->load_anew();
  entered_ = machine_.now();
  processor.longest_service = std::max(processor.longest_service, entered_ - entered);
  return resume(processor, entered, InterruptId::spurious);
}

template <SharedMachine Machine>
BasicTdma<Machine>::Vcpu* BasicTdma<Machine>::ring(Processor& processor, std::uint64_t entered,
                                                   std::uint16_t source) {
  begin_visit(entered);
  provoked_ = true;
  if (is_presented(*processor.running)) end_bottom_handlers(processor, entered);
  raise_now(entered, source);
  return resume(processor, entered, InterruptId::spurious);
}

template <SharedMachine Machine>
void BasicTdma<Machine>::settle(PartitionIndex index, Outcome outcome) {
  presented_[index] = false;
  if (outcome == Outcome::restarted) {
    dispatcher_.restart(index);
  } else {
    dispatcher_.stop(index);
    devices_.lose(machine_.distributor(), index);
  }
}

/// Looked for whatever interrupt came: a completion comes before the slot's edge, an arrival or the
/// budget's end of the same time (R6). What it takes is of the IRQ's top handler: see `Costs`.
template <SharedMachine Machine>
void BasicTdma<Machine>::end_bottom_handlers(Processor& processor, std::uint64_t entered) {
  Vcpu& vcpu = *processor.running;
  vcpu.gic.each_ended([&](std::uint32_t id) {
    const auto& queue = dispatcher_.queue(vcpu.partition);
    if (queue.empty()) return;
    const std::uint16_t source = queue.head().source;
    const SourceEntry& entry = plan_->configuration().source[source];
    if (entry.interrupt != id) return;
    presented_[vcpu.partition] = false;
    provoked_ = false;
    if (plan_->is_device(source)) processor.interface.deactivate(id);
    const Finished finished = dispatcher_.finish_bottom(instant_of(entered));
    open(TraceKind::bottom_end, entered, vcpu.partition, finished.source,
         cut(finished.latency.ns()), static_cast<std::uint32_t>(finished.handling));
  });
}

// --- What runs -----------------------------------------------------------------------------------

/// Serves what is due until nothing changes any more; jobs end and start on the way.
template <SharedMachine Machine>
Next BasicTdma<Machine>::decide() {
  while (true) {
    serve_due_events();
    const std::uint64_t began = machine_.now();
    const Next next = dispatcher_.next();
    if (next.settled()) return next;
    provoked_ = false;
    const PartitionIndex partition = plan_->partition(next.job_source);
    if (next.job_ended) {
      open(TraceKind::job_end, began, partition, next.job_source,
           static_cast<std::uint32_t>(job_executed_), next.overrun ? 1 : 0);
    } else {
      job_executed_ = 0;
      open(TraceKind::job_start, began, partition, next.job_source,
           static_cast<std::uint32_t>(machine_.now() - began), 0);
    }
  }
}

/// @param id what came, spurious if nothing did
template <SharedMachine Machine>
BasicTdma<Machine>::Vcpu* BasicTdma<Machine>::resume(Processor& processor, std::uint64_t entered,
                                                     std::uint32_t id) {
  const Next next = decide();
  Vcpu& vcpu = next.partition == nobody ? processor.idle : partitions_[next.partition].vcpu;
  if (&vcpu != processor.running) {
    processor.running->save();
    machine_.settle_errors(processor);
    vcpu.load();
    processor.running = &vcpu;
  }
  present(vcpu);
  job_runs_ = next.interposed;
  short_way_ = short_way_is_open();
  const std::uint64_t at = machine_.now();
  if (provoked_ && !sections_.any_open())
    processor.longest_service = std::max(processor.longest_service, at - entered);
  close(at);
  resumed_ = at + trap_ticks_ - provoked_ticks(entered, at + trap_ticks_);
  leave(processor, next, resumed_, id);
  return &vcpu;
}

/// An interrupt that its limit does not permit does not go it.
template <SharedMachine Machine>
bool BasicTdma<Machine>::short_way_is_open() const {
  if (job_runs_ || arrivals_.done()) return false;
  return arrivals_.time() >= dispatcher_.permitted_from(arrivals_.source());
}

/// Of a visit that the guest of a job caused, what counts as the job's execution: all until
/// something of others was served.
template <SharedMachine Machine>
std::uint64_t BasicTdma<Machine>::provoked_ticks(std::uint64_t entered, std::uint64_t left) const {
  if (!job_runs_ || !provoked_) return 0;
  return (others_from_ == 0 ? left : others_from_) - entered;
}

/// The last of a visit. An interrupt's reason is gone before it is deactivated, and all that was
/// written to the interrupt controller is there before the guest goes on.
template <SharedMachine Machine>
void BasicTdma<Machine>::leave(const Processor& processor, const Next& next, std::uint64_t at,
                               std::uint32_t id) const {
  arm_slot_timer(next, at);
  const bool own = id == InterruptId::maintenance || id == InterruptId::slot_timer ||
                   id == InterruptId::arrival_timer;
  if (own) processor.interface.deactivate(id);
  machine_.finish_writes();
}

/// The guest sees the head of its partition's queue, and the next one when that has ended: so they
/// are counted, whatever one interrupt line could remember.
template <SharedMachine Machine>
void BasicTdma<Machine>::present(Vcpu& vcpu) {
  if (vcpu.partition == nobody || presented_[vcpu.partition]) return;
  const auto& queue = dispatcher_.queue(vcpu.partition);
  if (queue.empty()) return;
  presented_[vcpu.partition] = true;
  vcpu.gic.signal_new(plan_->interrupt(queue.head().source));
}

template <SharedMachine Machine>
void BasicTdma<Machine>::arm_slot_timer(const Next& next, std::uint64_t at) const {
  const Instant budget_end = instant_of(at) + next.budget;
  machine_.arm_slot_timer(tick_of(std::min(budget_end, dispatcher_.slot_end())));
}

/// Ends the section before, if one is open.
template <SharedMachine Machine>
void BasicTdma<Machine>::open(TraceKind kind, std::uint64_t at, PartitionIndex partition,
                              std::uint16_t source, std::uint32_t value, std::uint32_t detail) {
  sections_.open({.start = at,
                  .duration = 0,
                  .value = value,
                  .kind = kind,
                  .partition = partition,
                  .source = source,
                  .detail = detail});
}

template <SharedMachine Machine>
void BasicTdma<Machine>::close(std::uint64_t at) {
  sections_.close(at);
}

}  // namespace latenz::hypervisor
