// SPDX-License-Identifier: Apache-2.0
#include "hypervisor.hpp"

#include <algorithm>
#include <bit>

#include "aarch64/console.hpp"
#include "aarch64/own_translation.hpp"
#include "aarch64/power.hpp"
#include "aarch64/secure_monitor.hpp"
#include "aarch64/system_registers.hpp"
#include "boards/board.hpp"
#include "clock.hpp"
#include "configuration_check.hpp"
#include "latenz/text.hpp"

extern "C" {
extern const std::uint8_t guest_idle[];  // loader.S
extern const std::uint8_t guest_calibration[];
[[noreturn]] void resume_guest(latenz::hypervisor::Vcpu* vcpu);  // vectors.S
std::uint64_t pending_errors();                                  // vectors.S
void take_error();                                               // vectors.S
}

namespace latenz::hypervisor {
namespace {

constexpr std::uint32_t first_calibration = 0xCA1;
constexpr std::uint32_t second_calibration = 0xCA2;
constexpr std::uint32_t time_for_console = 0xCA3;

const Configuration& configuration_block() {
  return *reinterpret_cast<const Configuration*>(Configuration::address);
}

void refuse_if(std::string_view problem) {
  if (problem.empty()) return;
  Text<80> told;
  fail(told.add("configuration: ").add(problem).view());
}

/// A slot in which the counter may not even tick is none.
void refuse_short_slots(const Configuration& configuration) {
  const Clock clock(CntFrequency::read());
  for (std::uint32_t i = 0; i < configuration.slots; ++i) {
    if (clock.at_most(configuration.slot[i].length_ns) == Duration()) {
      fail("configuration: slot: shorter than a tick");
    }
  }
}

/// Executes the stub that tells how long a trap takes.
[[noreturn]] void calibrate(Processor& processor) {
  const auto offset = loader_offset(guest_calibration);
  processor.idle.reset(GuestMachine::loader + offset);
  processor.running = &processor.idle;
  processor.idle.load();
  resume_guest(&processor.idle);
}

}  // namespace

constinit Hypervisor hypervisor{};

// --- Start ---------------------------------------------------------------------------------------

void Hypervisor::begin() {
  // Without a board there is no console: nobody can be told.
  if (!choose_board(configuration_block().board)) SecureMonitor::power_off();
  Console::start();
  OwnTranslation::build();
  OwnTranslation::switch_on();
  configuration_ = &configuration_block();
  refuse_if(problem_of(*configuration_,
                       {.cpus = board().cpus, .not_for_guests = board().not_for_guests}));
  refuse_short_slots(*configuration_);
  OwnTranslation::add(*configuration_);
  refuse_if(problem_of_arrivals(*configuration_));
  board_distributor.start(board().gic);  // before partitions route their interrupts
  build();
  list_registers = VirtualControl(board().gic);
  prepare_slots();
  start_others();
  processors[0].start(0);
  calibrate(processors[0]);
}

void Hypervisor::build() {
  bool built = build_idle();
  for (std::uint32_t i = 0; i < configuration_->partitions; ++i) {
    built = built && partitions_[i].build(*configuration_, i);
  }
  if (!built) fail("configuration: partitions overlap, or need too many translation tables");
  for (std::uint32_t i = 0; i < configuration_->interrupts; ++i) {
    const InterruptEntry& each = configuration_->interrupt[i];
    board_distributor.route(each.interrupt, partitions_[each.partition].cpu());
    if (each.flags != 0) board_distributor.trigger_by_edge(each.interrupt);
  }
}

void Hypervisor::prepare_slots() {
  plan_.make(*configuration_, Clock(CntFrequency::read()));
  unfinished_ = plan_.cpus_with_slots();
  for (BitSet rest = unfinished_; rest != 0; rest &= rest - 1) {
    const auto cpu = static_cast<std::uint32_t>(std::countr_zero(rest));
    tdmas_[cpu].prepare(plan_, cpu, all(), room_);
    processors[cpu].tdma = &tdmas_[cpu];
  }
}

void Hypervisor::start_others() const {
  for (std::uint32_t cpu = 1; cpu < board().cpus; ++cpu) {
    if (plan_.partitions_of(cpu) == 0) continue;
    if (!Power::start_cpu(cpu)) fail("a CPU does not start");
  }
}

void Hypervisor::begin_secondary(std::uint32_t cpu) {
  processors[cpu].start(cpu);
  calibrate(processors[cpu]);
}

Vcpu* Hypervisor::run(Processor& processor, std::uint64_t trap_ticks) {
  processor.trap_ticks = trap_ticks;
  const auto idle = loader_offset(guest_idle);
  processor.idle.reset(GuestMachine::loader + idle);
  processor.idle.load();
  if (processor.tdma != nullptr) return processor.tdma->start(processor, trap_ticks);
  for (Partition& each : all()) {
    if (each.cpu() != processor.index) continue;
    each.vcpu.load();
    processor.running = &each.vcpu;
  }
  return processor.running;
}

// --- Traps and interrupts ------------------------------------------------------------------------

inline Vcpu* Hypervisor::interrupt(Processor& processor, std::uint64_t entered) {
  const std::uint32_t acknowledged = processor.interface.acknowledge();
  const std::uint32_t id = acknowledged & 0x3FFU;
  if (id >= InterruptId::spurious) {
    ++processor.spurious;
    return processor.running;
  }
  processor.interface.drop_priority(acknowledged);
  // No guest's: the usual direct interrupt waits for nothing else.
  if (id == InterruptId::arrival_timer && processor.tdma != nullptr) {
    return processor.tdma->interrupt(processor, entered, id);
  }
  VirtualGic& gic = processor.running->gic;
  const bool owned = gic.owns(id);  // stays active until the guest ends it
  if (owned) gic.signal_new(id);
  if (processor.tdma != nullptr) return processor.tdma->interrupt(processor, entered, id);
  if (id == InterruptId::maintenance) gic.flush();
  if (!owned && id < InterruptId::first_shared) processor.interface.deactivate(acknowledged);
  return processor.running;
}

/// Called by vectors.S, as those in entry.cpp are; here, so that the way of an interrupt is
/// shorter.
extern "C" Vcpu* on_interrupt(std::uint64_t entered, Processor* processor) {
  return Hypervisor::interrupt(*processor, entered);
}

Vcpu* Hypervisor::trap(Processor& processor, std::uint64_t entered) {
  Vcpu* vcpu = processor.running;
  if (vcpu == &processor.idle) return idle_trap(processor, entered);
  const Outcome outcome = serve_guest(partitions_[vcpu->partition]);
  if (outcome == Outcome::rang) {
    const auto source = static_cast<std::uint16_t>(configuration_->channel[vcpu->x[1]].source);
    return processor.tdma->ring(processor, entered, source);
  }
  if (outcome != Outcome::served) return partition_changed(processor, entered, outcome);
  processor.longest_service = std::max(processor.longest_service, now() - entered);
  return vcpu;
}

/// Nobody's: whoever ran before was asked when it was switched from.
Vcpu* Hypervisor::idle_error(Processor& processor) {
  ++processor.idle_errors;
  return processor.running;
}

/// Of a write that failed on the bus the processor learns late. Before another one runs, what the
/// one that was saved just now has caused is waited for: it is its own.
void Hypervisor::settle_errors(Processor& processor) {
  constexpr std::uint64_t asynchronous = 1ULL << 8U;  // ISR_EL1.A
  if ((pending_errors() & asynchronous) == 0) return;
  take_error();
  if (processor.running == &processor.idle) {
    ++processor.idle_errors;
    return;
  }
  const PartitionIndex index = processor.running->partition;
  const Outcome outcome = partitions_[index].fault("asynchronous error", 0);
  if (outcome != Outcome::served && processor.tdma != nullptr) {
    processor.tdma->settle(index, outcome);
  }
}

Vcpu* Hypervisor::error(Processor& processor, std::uint64_t entered) {
  if (processor.running == &processor.idle) return idle_error(processor);
  const PartitionIndex index = processor.running->partition;
  const Outcome outcome = partitions_[index].fault("asynchronous error", 0);
  if (outcome != Outcome::served) return partition_changed(processor, entered, outcome);
  processor.longest_service = std::max(processor.longest_service, now() - entered);
  return processor.running;
}

/// The first call tells how long the hypervisor has known of a trap, the second how long it took.
/// The third, whenever there is nothing else to do, gives time to the console.
Vcpu* Hypervisor::idle_trap(Processor& processor, std::uint64_t entered) {
  const std::uint32_t which = EsrEl2::read() & 0xFFFFU;
  if (which == time_for_console) {
    processor.idle.x[0] = Console::pump(Console::at_once) ? 1 : 0;
    processor.longest_service = std::max(processor.longest_service, now() - entered);
    return processor.running;
  }
  if (which == first_calibration) {
    processor.longest_service = now() - entered;
    return processor.running;
  }
  if (which != second_calibration) fail("the idle guest trapped");
  const std::uint64_t whole = processor.idle.x[2] - processor.idle.x[1];
  const std::uint64_t known = processor.longest_service;
  processor.longest_service = 0;
  return run(processor, whole > known ? whole - known : 0);
}

Vcpu* Hypervisor::partition_changed(Processor& processor, std::uint64_t entered, Outcome outcome) {
  if (processor.tdma != nullptr) {
    return processor.tdma->partition_changed(processor, entered, outcome);
  }
  if (outcome == Outcome::restarted) {
    processor.running->load_anew();
    return processor.running;
  }
  processor.running->save();
  settle_errors(processor);
  processor.running = &processor.idle;
  processor.idle.load();
  if (!any_running()) finish();
  return processor.running;
}

// --- What is -------------------------------------------------------------------------------------

bool Hypervisor::any_running() const {
  return std::any_of(all().begin(), all().end(),
                     [](const Partition& each) { return each.is_running(); });
}

std::uint64_t Hypervisor::first_slot(std::uint64_t earliest) {
  std::uint64_t none = 0;
  return first_slot_.compare_exchange_strong(none, earliest) ? earliest : none;
}

/// The others have ended a cycle by then. Who begins to count awaits nobody any more, whatever
/// guests begin anew.
std::uint64_t Hypervisor::first_cycle(std::uint64_t earliest) {
  const auto awaited = [](const Partition& each) { return each.awaited(); };
  std::uint64_t decided = first_cycle_;
  if (decided != 0 || std::ranges::any_of(all(), awaited)) return decided;
  earliest += static_cast<std::uint64_t>(plan_.wait_for_others().ns());
  return first_cycle_.compare_exchange_strong(decided, earliest) ? earliest : decided;
}

void Hypervisor::end_run(std::uint32_t cpu) {
  if (unfinished_.fetch_and(~bit(cpu)) == bit(cpu)) finish();
}

std::int64_t Hypervisor::ring(const Partition& partition, std::uint64_t channel) const {
  if (channel >= configuration_->channels ||
      configuration_->channel[channel].sender != partition.vcpu.partition) {
    return Hypercall::invalid_parameters;
  }
  const Tdma& tdma = tdmas_[partition.cpu()];
  if (!tdma.rings()) return Hypercall::not_yet;
  const auto source = static_cast<std::uint16_t>(configuration_->channel[channel].source);
  return tdma.dispatcher().is_masked(source) ? Hypercall::merged : Hypercall::rung;
}

std::int64_t Hypervisor::statistic(const Partition& partition, std::uint64_t which) const {
  std::uint64_t sum = 0;
  if (which == static_cast<std::uint64_t>(Statistic::restarts)) return partition.restarts();
  if (which > static_cast<std::uint64_t>(Statistic::restarts)) {
    return Hypercall::invalid_parameters;
  }
  for (std::uint32_t i = 0; i < configuration_->sources; ++i) {
    if (configuration_->source[i].partition != partition.vcpu.partition) continue;
    const SourceStatistics& source = room_.sources[i].statistics;
    const std::uint64_t told[] = {source.raised, source.completed, source.by_handling[1],
                                  source.denied, source.overruns,  source.pending()};
    sum += told[which];
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace latenz::hypervisor
