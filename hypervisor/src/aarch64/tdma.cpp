// SPDX-License-Identifier: Apache-2.0
#include "aarch64/tdma.hpp"

#include "basic_tdma_events.hpp"
#include "basic_tdma_visits.hpp"
#include "hypervisor.hpp"

namespace latenz::hypervisor {

bool SharedCpu::any_running() { return hypervisor.any_running(); }
bool SharedCpu::any_awaited() { return hypervisor.any_awaited(); }
void SharedCpu::settle_errors(Processor& processor) { hypervisor.settle_errors(processor); }
void SharedCpu::finish() { hypervisor.finish(); }

template class BasicTdma<SharedCpu>;

}  // namespace latenz::hypervisor
