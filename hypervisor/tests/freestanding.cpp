// SPDX-License-Identifier: Apache-2.0
// Compiled with -ffreestanding, no exceptions, no RTTI: the dispatcher keeps its promise, and a
// static one is zero until it begins, with its room.
#include <cstdint>

#include "dispatcher.hpp"
#include "trace.hpp"

namespace {

constinit latenz::hypervisor::Dispatcher::Room room;
constinit latenz::hypervisor::Dispatcher dispatcher;

}  // namespace

void begin(const latenz::hypervisor::DispatcherPlan& plan) {
  dispatcher.use(room);
  dispatcher.begin(plan);
}

void start_slot() { dispatcher.start_slot(); }

latenz::hypervisor::Top raise(std::uint16_t source, latenz::Instant arrival, latenz::Instant now) {
  return dispatcher.raise(source, arrival, now);
}

void charge(latenz::Duration executed) { dispatcher.charge(executed); }

latenz::hypervisor::Finished finish_bottom(latenz::Instant now) {
  return dispatcher.finish_bottom(now);
}

latenz::hypervisor::Next next() { return dispatcher.next(); }

void stop(latenz::hypervisor::PartitionIndex partition) { dispatcher.stop(partition); }

void restart(latenz::hypervisor::PartitionIndex partition) { dispatcher.restart(partition); }
