// SPDX-License-Identifier: Apache-2.0
#include "aarch64/partition.hpp"

#include <algorithm>

#include "aarch64/caches.hpp"
#include "aarch64/system_registers.hpp"
#include "boards/board.hpp"
#include "guest_gic.hpp"

extern "C" const std::uint8_t guest_loader[];  // loader.S

namespace latenz::hypervisor {
namespace {

constexpr std::uint64_t page = TranslationTable::page;

std::uint64_t rounded_up(std::uint64_t size, std::uint64_t to) { return (size + to - 1) / to * to; }

std::uint64_t attributes_of(const MappingEntry& mapping) {
  if ((mapping.flags & MappingEntry::device) != 0) return Stage2::registers;
  return (mapping.flags & MappingEntry::writable) != 0 ? Stage2::shared : Stage2::constants;
}

}  // namespace

bool Partition::build(const Configuration& configuration, std::uint32_t index) {
  entry_ = &configuration.partition[index];
  health_.begin(*entry_, Clock(CntFrequency::read()));
  Console::name(index, name());
  console.begin(index);
  tell(configuration, index);
  own_interrupts(configuration, index);
  if (!map_machine() || !map(configuration, index)) return false;
  vcpu.partition = static_cast<std::uint8_t>(index);
  vcpu.translation = table_.address() | (static_cast<std::uint64_t>(index + 1) << 48U);
  vcpu.gic.reset();
  vcpu.reset(GuestMachine::loader);
  clean(configuration, index);
  return true;
}

/// What its guest reads first, past the caches, and what others may have cached of its memory: the
/// hypervisor of the information page, a boot loader of the rest. Its own memory the loader cleans.
void Partition::clean(const Configuration& configuration, std::uint32_t index) const {
  const auto at = [](const void* object) { return reinterpret_cast<std::uint64_t>(object); };
  Caches::clean_to_memory(at(&information_), page);
  Caches::clean_to_memory(at(&report_), page);
  for (const ImageEntry& image : entry_->images) Caches::clean_to_memory(image.stored, image.size);
  for (std::uint32_t i = 0; i < configuration.mappings; ++i) {
    const MappingEntry& each = configuration.mapping[i];
    if (each.partition != index || (each.flags & MappingEntry::device) != 0) continue;
    Caches::clean_to_memory(each.physical, each.size);
  }
}

std::uint64_t Partition::progress() const {
  Caches::forget_line(&report_.progress);  // the guest may write past the caches
  return *const_cast<const volatile std::uint64_t*>(&report_.progress);
}

void Partition::tell(const Configuration& configuration, std::uint32_t index) {
  information_.magic = InformationPage::expected_magic;
  information_.version = InformationPage::current_version;
  information_.partition = index;
  information_.counter_hz = CntFrequency::read();
  information_.memory_begin = entry_->memory_guest;
  information_.memory_size = entry_->memory_size;
  information_.entry = entry_->entry;
  information_.argument = entry_->argument;
  for (const ImageEntry& image : entry_->images) {
    if (image.size == 0) continue;
    information_.copy[information_.copies++] = {GuestMachine::store + image.stored, image.target,
                                                image.size};
  }
  for (std::uint32_t i = 0; i < configuration.sources; ++i) {
    const SourceEntry& source = configuration.source[i];
    if (source.partition != index) continue;
    information_.source[information_.sources++] = {source.interrupt, 0, source.bottom_ns};
  }
  tell_slots(configuration);
  tell_channels(configuration, index);
}

void Partition::tell_slots(const Configuration& configuration) {
  for (std::uint32_t i = 0; i < configuration.slots; ++i) {
    const SlotEntry& slot = configuration.slot[i];
    if (configuration.cpu_of(slot.partition) != cpu()) continue;
    information_.slot[information_.slots++] = {information_.cycle_ns, slot.length_ns,
                                               slot.partition, 0};
    information_.cycle_ns += slot.length_ns;
  }
}

void Partition::tell_first_slot(std::uint64_t tick) {
  health_.watch_from(tick);
  information_.first_slot = tick;
  Caches::write_back_line(&information_.first_slot);  // the guest may read past the caches
}

void Partition::tell_channels(const Configuration& configuration, std::uint32_t index) {
  for (std::uint32_t i = 0; i < configuration.channels; ++i) {
    const ChannelEntry& channel = configuration.channel[i];
    const SourceEntry& source = configuration.source[channel.source];
    if (channel.sender != index && source.partition != index) continue;
    information_.channel[information_.channels++] = {.name = channel.name,
                                                     .number = i,
                                                     .sends = channel.sender == index ? 1U : 0U,
                                                     .interrupt = source.interrupt,
                                                     .reserved = 0,
                                                     .address = channel.guest,
                                                     .size = channel.size};
  }
}

void Partition::own_interrupts(const Configuration& configuration, std::uint32_t index) {
  vcpu.gic.own(InterruptId::virtual_timer, false);
  for (std::uint32_t i = 0; i < configuration.interrupts; ++i) {
    const InterruptEntry& each = configuration.interrupt[i];
    if (each.partition != index) continue;
    vcpu.gic.own(each.interrupt, true);
    if (each.flags != 0) vcpu.gic.comes_by_edge(each.interrupt);
  }
  for (std::uint32_t i = 0; i < configuration.sources; ++i) {
    const SourceEntry& each = configuration.source[i];
    if (each.partition != index) continue;
    vcpu.gic.watch(each.interrupt);
    if ((each.flags & SourceEntry::by_edge) != 0) vcpu.gic.comes_by_edge(each.interrupt);
  }
}

bool Partition::map_machine() {
  const auto at = [](const void* object) { return reinterpret_cast<std::uint64_t>(object); };
  return GuestGic::map(table_, board().gic) &&
         table_.map(GuestMachine::information, at(&information_), page, Stage2::constants) &&
         table_.map(GuestMachine::report, at(&report_), page, Stage2::shared) &&
         table_.map(GuestMachine::loader, at(guest_loader), page, Stage2::code);
}

bool Partition::map(const Configuration& configuration, std::uint32_t index) {
  bool mapped =
      table_.map(entry_->memory_guest, entry_->memory, entry_->memory_size, Stage2::memory);
  for (const ImageEntry& image : entry_->images) {
    const std::uint64_t size = rounded_up(image.size, TranslationTable::block);
    mapped = mapped &&
             table_.map(GuestMachine::store + image.stored, image.stored, size, Stage2::constants);
  }
  for (std::uint32_t i = 0; i < configuration.mappings; ++i) {
    const MappingEntry& each = configuration.mapping[i];
    if (each.partition != index) continue;
    mapped = mapped && table_.map(each.guest, each.physical, each.size, attributes_of(each));
  }
  return mapped;
}

void Partition::restart() {
  ++restarts_;
  health_.watch_from(now());
  ready_.store(false, std::memory_order_release);
  vcpu.reset(GuestMachine::loader);
  vcpu.gic.reset();
  forget_translations();
}

/// What its former life had translated; another partition may be loaded now.
void Partition::forget_translations() const {
  const std::uint64_t loaded = VttbrEl2::read();
  VttbrEl2::write(vcpu.translation);
  instruction_barrier();
  forget_guest_translations();
  VttbrEl2::write(loaded);
  instruction_barrier();
}

Outcome Partition::react(Reaction reaction, const char* what, std::uint64_t program_counter,
                         std::uint64_t address) {
  console.end_line();
  Console::tell_fault(vcpu.partition, what, program_counter, address);
  const Reaction becomes = health_.fault(is_running() ? reaction : Reaction::report, now());
  note_condition();
  if (becomes == Reaction::report) return Outcome::served;
  if (becomes == Reaction::stop) {
    end(State::stopped);
    return Outcome::ended;
  }
  restart();
  return Outcome::restarted;
}

void Partition::note_condition() {
  constexpr std::uint32_t most_faults = UINT16_MAX >> 2U;
  condition_ = static_cast<std::uint16_t>(static_cast<std::uint32_t>(state()) |
                                          std::min(health_.faults(), most_faults) << 2U);
}

Outcome Partition::watch(std::uint64_t tick, bool runs) {
  if (!is_watched() || !is_running() || !health_.expires(progress(), tick)) return Outcome::served;
  const std::uint64_t place = runs ? ElrEl2::read() : vcpu.program_counter;
  return react(entry_->on_watchdog, "watchdog expired", place, 0);
}

}  // namespace latenz::hypervisor
