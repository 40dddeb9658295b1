// SPDX-License-Identifier: Apache-2.0
#include "aarch64/tdma.hpp"

#include "basic_tdma_events.hpp"
#include "basic_tdma_visits.hpp"
#include "hypervisor.hpp"

namespace latenz::hypervisor {

bool SharedCpu::any_running() { return hypervisor.any_running(); }
std::uint64_t SharedCpu::first_slot(std::uint64_t earliest) {
  return hypervisor.first_slot(earliest);
}
std::uint64_t SharedCpu::first_cycle(std::uint64_t earliest) {
  return hypervisor.first_cycle(earliest);
}
void SharedCpu::settle_errors(Processor& processor) { hypervisor.settle_errors(processor); }
void SharedCpu::end_run(std::uint32_t cpu) { hypervisor.end_run(cpu); }

template class BasicTdma<SharedCpu>;

}  // namespace latenz::hypervisor
