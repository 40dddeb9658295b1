// SPDX-License-Identifier: Apache-2.0
// A QEMU plugin: follows what caches of silicon could do to a program, and tells what may read old
// data. What is written is described in findings.hpp, what is modelled in docs/coherence.md.
//
//   -plugin file=latenz-coherence.so,output=FILE[,caches=empty|stale]
//
// All vCPUs must share one thread, as they do with -icount or -accel tcg,thread=single.
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checker.hpp"
#include "qemu_registers.hpp"

namespace latenz::coherence {
namespace {

/// QEMU's registers of a core that we read; null: it has none of that name.
struct Registers {
  std::array<qemu_plugin_register*, 31> general{};
  std::unordered_map<std::string, qemu_plugin_register*> by_name;

  [[nodiscard]] qemu_plugin_register* find(const char* name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  }
};

/// Names of the registers of each regime in QEMU; null: it has none.
struct ControlNames {
  const char* sctlr;
  const char* tcr;
  const char* ttbr0;
  const char* ttbr1;
  const char* mair;
};
constexpr std::array control_names{
    ControlNames{"SCTLR", "TCR_EL1", "TTBR0_EL1", "TTBR1_EL1", "MAIR_EL1"},
    ControlNames{"SCTLR_EL2", "TCR_EL2", "TTBR0_EL2", nullptr, "MAIR_EL2"},
    ControlNames{"SCTLR_EL3", "TCR_EL3", "TTBR0_EL3", nullptr, "MAIR_EL3"}};

/// An instruction that is to be followed.
struct Followed {
  const Site* site;
  Instruction instruction;
};

/// Instructions that are executed one after the other.
struct Block {
  const Site* site;
  std::uint64_t size;
  std::uint32_t instructions;
  bool written;          ///< somebody wrote them: each core's own instruction cache matters
  std::uint8_t seen_by;  ///< cores that have fetched them
};

class Plugin {
 public:
  explicit Plugin(const Emulator& emulator) : checker(emulator) {
    for (unsigned i = 0; i < most_cores; ++i) checker.core(i).number = i;
    buffer_ = g_byte_array_new();
  }

  Core& running() {
    const void* now = *current;
    if (now != last_identity_) [[unlikely]]
      change_core(now);
    return *last_;
  }

  void began() {
    if (thread_ == std::thread::id{}) {
      thread_ = std::this_thread::get_id();
      current = static_cast<const void* const*>(dlsym(RTLD_DEFAULT, "current_cpu"));
    }
    if (current == nullptr || thread_ != std::this_thread::get_id()) {
      checker.findings().note("vCPUs run in threads of their own: start QEMU with -icount");
      stopped = true;
      return;
    }
    Core& core = running();
    Registers& registers = registers_.at(core.number);
    if (registers.by_name.empty()) learn(registers);
    core.is_a64 = registers.general[0] != nullptr;
  }

  std::uint64_t value(const Core& core, const char* name) {
    return name == nullptr ? 0 : value(registers_.at(core.number).find(name));
  }
  std::uint64_t general(const Core& core, unsigned number) {
    return number == 31 ? 0 : value(registers_.at(core.number).general.at(number));
  }

  /// The exception level of the core, -1 for one that is not modelled (AArch32 above EL0).
  int level(const Core& core) {
    if (!core.is_a64) return 1;
    const std::uint64_t state = value(core, "cpsr");
    if ((state & 0x10U) != 0) return (state & 0xFU) == 0 ? 0 : -1;
    return static_cast<int>((state >> 2U) & 3U);
  }

  Site* site(std::uint64_t address, unsigned at_level) {
    Site*& found = sites_[(address << 2U) | at_level];
    if (found == nullptr) found = checker.findings().add(address, at_level);
    return found;
  }

  Checker checker;
  const void* const* current = nullptr;
  bool stopped = false;
  std::int64_t resumed_ns = 0;    ///< virtual time when a core last went on
  std::int64_t instructions = 0;  ///< executed since, of all cores

 private:
  std::uint64_t value(qemu_plugin_register* handle) {
    if (handle == nullptr) return 0;
    g_byte_array_set_size(buffer_, 0);
    const int size = qemu_plugin_read_register(handle, buffer_);
    std::uint64_t found = 0;
    if (size > 0 && size <= 8) std::memcpy(&found, buffer_->data, static_cast<std::size_t>(size));
    return found;
  }

  void change_core(const void* now) {
    unsigned number = 0;
    while (number < most_cores - 1 && checker.core(number).identity != nullptr &&
           checker.core(number).identity != now) {
      ++number;
    }
    last_ = &checker.core(number);
    last_->identity = last_identity_ = now;
  }

  static void learn(Registers& registers) {
    GArray* all = qemu_plugin_get_registers();
    const std::span<const qemu_plugin_reg_descriptor> found(
        reinterpret_cast<const qemu_plugin_reg_descriptor*>(all->data), all->len);
    for (const qemu_plugin_reg_descriptor& each : found) {
      registers.by_name.emplace(each.name, each.handle);
    }
    for (unsigned i = 0; i < registers.general.size(); ++i) {
      registers.general.at(i) = registers.find(("x" + std::to_string(i)).c_str());
    }
    (void)g_array_free(all, 1);
  }

  std::array<Registers, most_cores> registers_;
  std::unordered_map<std::uint64_t, Site*> sites_;
  GByteArray* buffer_ = nullptr;
  const void* last_identity_ = nullptr;
  Core* last_ = nullptr;
  std::thread::id thread_;
};

// QEMU's callbacks carry no pointer to what a plugin knows, so there is one. It is never destroyed:
// vCPUs still run while QEMU's main thread leaves.
Plugin* plugin = nullptr;

using PhysicalAccess = void (*)(std::uint64_t address, void* buffer, std::uint64_t size,
                                bool write);
using ClockNs = std::int64_t (*)(int clock);
PhysicalAccess physical_access = nullptr;
ClockNs clock_ns = nullptr;

bool read_memory(std::uint64_t address, std::uint64_t& found) {
  physical_access(address, &found, sizeof found, false);
  return true;
}

/// QEMU's clock stands still within a block and must not be read there: it is read when a core goes
/// on, and an instruction counted as 1 ns since.
std::int64_t time_ns() { return plugin->resumed_ns + plugin->instructions; }

void read_controls(Core& core) {
  for (std::size_t i = 0; i < regimes; ++i) {
    const ControlNames& names = control_names.at(i);
    core.controls.at(i) = {.sctlr = plugin->value(core, names.sctlr),
                           .tcr = plugin->value(core, names.tcr),
                           .ttbr0 = plugin->value(core, names.ttbr0),
                           .ttbr1 = plugin->value(core, names.ttbr1),
                           .mair = plugin->value(core, names.mair)};
  }
  core.controls[0].hcr = plugin->value(core, "HCR_EL2");
  core.controls[0].vtcr = plugin->value(core, "VTCR_EL2");
  core.controls[0].vttbr = plugin->value(core, "VTTBR_EL2");
}

void vcpu_began(qemu_plugin_id_t /*id*/, unsigned /*vcpu*/) { plugin->began(); }

/// A core goes on that had stopped, perhaps after a reset.
void vcpu_resumed(qemu_plugin_id_t /*id*/, unsigned /*vcpu*/) {
  constexpr int virtual_clock = 1;
  if (plugin->stopped || plugin->current == nullptr || *plugin->current == nullptr) return;
  plugin->running().controls_known = false;
  plugin->resumed_ns = clock_ns(virtual_clock);
  plugin->instructions = 0;
}

Reached reached(qemu_plugin_meminfo_t info, std::uint64_t address) {
  const qemu_plugin_hwaddr* place = qemu_plugin_get_hwaddr(info, address);
  if (place == nullptr) return {};
  return {.known = true,
          .device = qemu_plugin_hwaddr_is_io(place),
          .physical = qemu_plugin_hwaddr_phys_addr(place)};
}

// NOLINTBEGIN(misc-const-correctness) the types of what QEMU calls are its own
void memory_accessed(unsigned /*vcpu*/, qemu_plugin_meminfo_t info, std::uint64_t address,
                     void* data) {
  if (plugin->stopped) return;
  const Site& site = *static_cast<const Site*>(data);
  plugin->checker.access(
      plugin->running(), site, address, std::uint64_t{1} << qemu_plugin_mem_size_shift(info),
      qemu_plugin_mem_is_store(info), [info, address] { return reached(info, address); });
}

void maintenance_executed(unsigned /*vcpu*/, void* data) {
  if (plugin->stopped) return;
  const Followed& followed = *static_cast<const Followed*>(data);
  Core& core = plugin->running();
  plugin->checker.maintain(core, *followed.site, followed.instruction,
                           plugin->general(core, followed.instruction.argument));
}
// NOLINTEND(misc-const-correctness)

void block_began(unsigned /*vcpu*/, void* data) {
  auto& block = *static_cast<Block*>(data);
  plugin->instructions += block.instructions;
  if (!block.written || plugin->stopped) return;
  Core& core = plugin->running();
  const auto bit = static_cast<std::uint8_t>(1U << core.number);
  if ((block.seen_by & bit) != 0) return;
  block.seen_by |= bit;
  (void)plugin->checker.fetch(core, *block.site, block.size);
}

void follow(qemu_plugin_insn* instruction, unsigned level, bool is_a64) {
  const Site* site = plugin->site(qemu_plugin_insn_vaddr(instruction), level);
  qemu_plugin_register_vcpu_mem_cb(instruction, memory_accessed, QEMU_PLUGIN_CB_NO_REGS,
                                   QEMU_PLUGIN_MEM_RW, const_cast<Site*>(site));
  std::array<std::uint8_t, 8> bytes{};
  const Instruction what = decoded(word_of(probe::code_of(instruction, bytes)));
  if (what.operation != Operation::other && is_a64) {
    qemu_plugin_register_vcpu_insn_exec_cb(instruction, maintenance_executed, QEMU_PLUGIN_CB_R_REGS,
                                           new Followed{site, what});
  }
}

void block_translated(qemu_plugin_id_t /*id*/, qemu_plugin_tb* translated) {
  if (plugin->stopped) return;
  Core& core = plugin->running();
  const int level = plugin->level(core);
  if (level < 0) {
    plugin->checker.findings().note("a core runs AArch32 above EL0, which is not modelled");
    plugin->stopped = true;
    return;
  }
  // QEMU translates anew for each exception level, so the level of a block is known.
  const auto at_level = static_cast<unsigned>(level);
  const std::size_t count = qemu_plugin_tb_n_insns(translated);
  const std::uint64_t begin = qemu_plugin_tb_vaddr(translated);
  const std::uint64_t last = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(translated, count - 1));
  auto* block = new Block{.site = plugin->site(begin, at_level),
                          .size = last - begin + 4,
                          .instructions = static_cast<std::uint32_t>(count),
                          .written = false,
                          .seen_by = static_cast<std::uint8_t>(1U << core.number)};
  block->written = plugin->checker.fetch(core, *block->site, block->size);
  qemu_plugin_register_vcpu_tb_exec_cb(translated, block_began, QEMU_PLUGIN_CB_NO_REGS, block);
  for (std::size_t i = 0; i < count; ++i) {
    follow(qemu_plugin_tb_get_insn(translated, i), at_level, core.is_a64);
  }
}

void ended(qemu_plugin_id_t /*id*/, void* /*data*/) { plugin->checker.end(); }

int refuse(const char* what, const char* which = "") {
  (void)std::fprintf(stderr, "latenz-coherence: %s%s\n", what, which);
  return 1;
}

/// Takes one NAME=VALUE.
bool take(std::string_view argument, std::string& output) {
  if (argument == "caches=empty") plugin->checker.begin_empty();
  if (argument.starts_with("caches=")) {
    return argument == "caches=empty" || argument == "caches=stale";
  }
  constexpr std::string_view name = "output=";
  if (!argument.starts_with(name)) return false;
  output = argument.substr(name.size());
  return !output.empty();
}

bool find_functions() {
  physical_access = reinterpret_cast<PhysicalAccess>(dlsym(RTLD_DEFAULT, "cpu_physical_memory_rw"));
  clock_ns = reinterpret_cast<ClockNs>(dlsym(RTLD_DEFAULT, "qemu_clock_get_ns"));
  return physical_access != nullptr && clock_ns != nullptr;
}

}  // namespace
}  // namespace latenz::coherence

namespace latenz::probe {

using namespace latenz::coherence;

int install(qemu_plugin_id_t id, const qemu_info_t& info, std::span<char*> arguments) {
  if (const char* mistake = misfit(info); mistake != nullptr) return refuse(mistake);
  if (std::string_view(info.target_name) != "aarch64") return refuse("only for aarch64");
  if (std::cmp_greater(info.system.smp_vcpus, most_cores)) return refuse("at most 7 CPUs");
  if (!find_functions()) return refuse("this QEMU does not let plugins read its memory");
  plugin =
      new Plugin({.read_memory = read_memory, .time_ns = time_ns, .read_controls = read_controls});
  std::string output;
  for (const char* argument : arguments) {
    if (!take(argument, output)) return refuse("wrong argument: ", argument);
  }
  if (output.empty()) return refuse("output=FILE is needed");
  if (!plugin->checker.findings().open(output.c_str())) {
    return refuse("cannot write ", output.c_str());
  }
  plugin->checker.findings().begin(info.target_name, info.system.smp_vcpus);
  qemu_plugin_register_vcpu_init_cb(id, vcpu_began);
  qemu_plugin_register_vcpu_resume_cb(id, vcpu_resumed);
  qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
  qemu_plugin_register_atexit_cb(id, ended, nullptr);
  return 0;
}

}  // namespace latenz::probe
