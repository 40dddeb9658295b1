// SPDX-License-Identifier: Apache-2.0
#include "aarch64/guest_access.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "aarch64/caches.hpp"
#include "aarch64/system_registers.hpp"
#include "guest_gic.hpp"
#include "hypervisor.hpp"

namespace latenz::hypervisor {
namespace {

/// Classes of exceptions, ESR_EL2[31:26].
enum class ExceptionClass : std::uint8_t {
  hypercall = 0x16,
  secure_call = 0x17,
  system_register = 0x18,
  instruction_abort = 0x20,
  data_abort = 0x24,
};

/// Function numbers of PSCI 1.0 (Arm DEN 0022D).
enum class Psci : std::uint32_t {
  version = 0x8400'0000,
  cpu_off = 0x8400'0002,
  affinity_info = 0x8400'0004,
  affinity_info_64 = 0xC400'0004,
  migrate_info_type = 0x8400'0006,
  system_off = 0x8400'0008,
  system_reset = 0x8400'0009,
  features = 0x8400'000A,
};
constexpr std::uint64_t not_supported = ~0ULL;
constexpr std::uint64_t migration_not_needed = 2;

constexpr std::uint64_t bits(std::uint64_t value, unsigned from, unsigned count) {
  return (value >> from) & ((1ULL << count) - 1);
}

/// x0 to x30; 31 is the zero register.
std::uint64_t read_x(const Vcpu& vcpu, std::uint64_t number) {
  return number == 31 ? 0 : vcpu.x[number];
}
void write_x(Vcpu& vcpu, std::uint64_t number, std::uint64_t value) {
  if (number != 31) vcpu.x[number] = value;
}

// --- Calls ---------------------------------------------------------------------------------------

bool is_psci(std::uint32_t function) {
  constexpr Psci known[] = {Psci::version,           Psci::cpu_off,    Psci::affinity_info,
                            Psci::affinity_info_64,  Psci::system_off, Psci::system_reset,
                            Psci::migrate_info_type, Psci::features};
  return std::ranges::find(known, static_cast<Psci>(function)) != std::end(known);
}

Outcome serve_psci(Partition& partition, Psci function) {
  std::uint64_t& result = partition.vcpu.x[0];
  switch (function) {
    case Psci::version:
      result = 0x1'0000;
      return Outcome::served;
    case Psci::affinity_info:
    case Psci::affinity_info_64:  // its only CPU is on
      result = partition.vcpu.x[1] == 0 && partition.vcpu.x[2] == 0 ? 0 : not_supported - 1;
      return Outcome::served;
    case Psci::migrate_info_type:
      result = migration_not_needed;
      return Outcome::served;
    case Psci::features:
      result = is_psci(static_cast<std::uint32_t>(partition.vcpu.x[1])) ? 0 : not_supported;
      return Outcome::served;
    case Psci::system_reset:
      partition.restart();
      return Outcome::restarted;
    case Psci::cpu_off:
    case Psci::system_off:
      partition.end(Partition::State::off);
      return Outcome::ended;
  }
  result = not_supported;
  return Outcome::served;
}

Outcome serve_call(Partition& partition) {
  const auto function = static_cast<std::uint32_t>(partition.vcpu.x[0]);
  if (is_psci(function)) return serve_psci(partition, static_cast<Psci>(function));
  std::uint64_t& result = partition.vcpu.x[0];
  switch (function) {
    case Hypercall::version:
      result = 0x1'0000;
      break;
    case Hypercall::ready:
      partition.say_ready();
      result = 0;
      break;
    case Hypercall::statistics:
      result = static_cast<std::uint64_t>(hypervisor.statistic(partition, partition.vcpu.x[1]));
      break;
    case Hypercall::notify: {
      const std::int64_t told = hypervisor.ring(partition, partition.vcpu.x[1]);
      result = static_cast<std::uint64_t>(told);
      if (told == Hypercall::rung) return Outcome::rang;
      break;
    }
    default:
      result = not_supported;
  }
  return Outcome::served;
}

// --- System registers ----------------------------------------------------------------------------

/// As the interrupt controller knows them: bits 21 to 10 and 4 to 1, op0, op2, op1, CRn, CRm.
constexpr std::uint32_t register_name(std::uint64_t syndrome) {
  return static_cast<std::uint32_t>(syndrome) & 0x3F'FC1EU;
}

/// Of the guest's interrupt controller; false if it has no such register.
bool serve_gic_register(Vcpu& vcpu, std::uint32_t name, std::uint64_t number, bool reads) {
  if (!GuestGic::has_register(name)) return false;
  if (reads) {
    write_x(vcpu, number, GuestGic::read_register(name));
  } else {
    GuestGic::write_register(vcpu.gic, name, read_x(vcpu, number));
  }
  Vcpu::skip_instruction();
  return true;
}

/// What is trapped: debug and performance registers and ACTLR_EL1 are there and do nothing; cache
/// maintenance by set and way is for one line, which is cleaned too whatever was asked for; all
/// else does not exist.
Outcome serve_system_register(Partition& partition, std::uint64_t syndrome) {
  const std::uint64_t op0 = bits(syndrome, 20, 2);
  const std::uint64_t crn = bits(syndrome, 10, 4);
  const std::uint64_t crm = bits(syndrome, 1, 4);
  const std::uint64_t number = bits(syndrome, 5, 5);
  const bool reads = (syndrome & 1U) != 0;
  if (serve_gic_register(partition.vcpu, register_name(syndrome), number, reads)) {
    return Outcome::served;
  }
  const bool debug = op0 == 2;
  const bool performance = op0 == 3 && (crn == 9 || (crn == 14 && crm >= 8));
  const bool auxiliary = op0 == 3 && crn == 1 && crm == 0;
  const bool maintenance = op0 == 1 && crn == 7;
  if (!debug && !performance && !auxiliary && !maintenance) {
    Vcpu::inject_undefined();
    return Outcome::served;
  }
  if (maintenance) Caches::clean_line(read_x(partition.vcpu, number));
  if (reads) write_x(partition.vcpu, number, 0);
  Vcpu::skip_instruction();
  return Outcome::served;
}

// --- Memory --------------------------------------------------------------------------------------

/// An access that a device is to answer, decoded from ESR_EL2 and the faulting address.
struct Access {
  std::uint64_t address;
  unsigned bytes;
  std::uint64_t number;  ///< of the register
  bool writes;
  bool sign_extends;
  bool wide;  ///< the register is 64 bits
};

/// Guest physical address, from HPFAR_EL2 and FAR_EL2.
std::uint64_t fault_address() {
  return (bits(HpfarEl2::read(), 4, 36) << 12U) | bits(FarEl2::read(), 0, 12);
}

/// Nothing if the hardware does not tell what was accessed how, or if it was wider than any
/// register here or not aligned: no device here takes that.
std::optional<Access> decode(std::uint64_t syndrome) {
  const bool told = bits(syndrome, 24, 1) != 0;
  const bool by_table_walk = bits(syndrome, 7, 1) != 0;
  const bool maintenance = bits(syndrome, 8, 1) != 0;
  const bool unmapped = bits(syndrome, 2, 4) == 1;  // a translation fault, of any level
  if (!told || by_table_walk || maintenance || !unmapped) return std::nullopt;
  const Access access = {.address = fault_address(),
                         .bytes = 1U << bits(syndrome, 22, 2),
                         .number = bits(syndrome, 16, 5),
                         .writes = bits(syndrome, 6, 1) != 0,
                         .sign_extends = bits(syndrome, 21, 1) != 0,
                         .wide = bits(syndrome, 15, 1) != 0};
  if (access.bytes > GuestGic::widest_access || access.address % access.bytes != 0)
    return std::nullopt;
  return access;
}

/// What a load leaves in the register.
std::uint64_t loaded(const Access& access, std::uint32_t value) {
  if (!access.sign_extends) return value;
  const unsigned unused = 64 - (8 * access.bytes);
  const auto extended = static_cast<std::int64_t>(std::uint64_t{value} << unused) >> unused;
  const auto result = static_cast<std::uint64_t>(extended);
  return access.wide ? result : result & 0xFFFF'FFFFU;
}

/// @param device at `begin`; of more than a word it takes the lower half
template <typename Device>
void access_device(Vcpu& vcpu, const Access& access, std::uint64_t begin, Device& device) {
  const auto offset = static_cast<std::uint32_t>(access.address - begin);
  if (access.writes) {
    const std::uint64_t mask = ~0ULL >> (64 - (8 * access.bytes));
    device.write(offset, access.bytes,
                 static_cast<std::uint32_t>(read_x(vcpu, access.number) & mask));
  } else {
    write_x(vcpu, access.number, loaded(access, device.read(offset, access.bytes)));
  }
  Vcpu::skip_instruction();
}

constexpr std::uint64_t page_of(std::uint64_t address) {
  return address & ~(TranslationTable::page - 1);
}

/// If the guest goes on, it finds out as if a bus had answered so.
Outcome fault(Partition& partition, const char* what, std::uint64_t syndrome) {
  const Outcome outcome = partition.fault(what, fault_address());
  if (outcome == Outcome::served) Vcpu::inject_abort(syndrome);
  return outcome;
}

Outcome serve_data_abort(Partition& partition, std::uint64_t syndrome) {
  const std::optional<Access> access = decode(syndrome);
  if (access && GuestGic::has(access->address - GuestMachine::distributor)) {
    const GuestGic gic(partition.vcpu.gic);
    access_device(partition.vcpu, *access, GuestMachine::distributor, gic);
    return Outcome::served;
  }
  constexpr unsigned word = 4;
  if (access && partition.has_console() && access->bytes <= word &&
      page_of(access->address) == GuestMachine::console) {
    access_device(partition.vcpu, *access, GuestMachine::console, partition.console);
    return Outcome::served;
  }
  return fault(partition, "forbidden access", syndrome);
}

}  // namespace

Outcome serve_guest(Partition& partition) {
  const std::uint64_t syndrome = EsrEl2::read();
  switch (static_cast<ExceptionClass>(bits(syndrome, 26, 6))) {
    case ExceptionClass::hypercall:
      return serve_call(partition);
    case ExceptionClass::secure_call:
      Vcpu::skip_instruction();
      return serve_call(partition);
    case ExceptionClass::system_register:
      return serve_system_register(partition, syndrome);
    case ExceptionClass::data_abort:
      return serve_data_abort(partition, syndrome);
    case ExceptionClass::instruction_abort:
      return fault(partition, "forbidden instruction fetch", syndrome);
  }
  Vcpu::inject_undefined();
  return Outcome::served;
}

}  // namespace latenz::hypervisor
