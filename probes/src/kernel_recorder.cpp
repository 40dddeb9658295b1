// SPDX-License-Identifier: Apache-2.0
// A QEMU plugin: tells `KernelWindows` what an unmodified Linux kernel for arm64 does on one CPU.
//
// It watches instructions of the kernel that mask interrupts, return from exceptions, sleep or
// change the running thread, accesses to the running thread's preemption count and flags, and the
// entries of a few functions. Where these are, it is told:
//
//   -plugin file=latenz-kernel-recorder.so,layout=FILE,output=FILE
//
// The layout has a NAME=NUMBER in each line, decimal or with 0x in front; see `take`. When QEMU
// ends, the windows are written to `output` as one JSON document.
//
// The recorder changes neither registers nor memory nor the instruction count of the guest, so a
// run with -icount gives the same samples with and without it. There must be one vCPU: QEMU 9.2 and
// 10 attribute the inline count of instructions to the vCPU that translated a block, which need not
// be the one that executes it.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernel_windows.hpp"
#include "qemu_plugin.hpp"
#include "qemu_registers.hpp"

namespace latenz::probe {
namespace {

constexpr std::uint64_t lowest_of_kernel = 0xffff'0000'0000'0000;
constexpr std::uint64_t masks_interrupts = 0x80;     // PSTATE.I as in DAIF and SPSR_EL1
constexpr std::uint64_t needs_scheduler = 1U << 1U;  // TIF_NEED_RESCHED
constexpr std::size_t name_size = 16;                // TASK_COMM_LEN
constexpr unsigned no_register = 32;

/// What a layout may tell. All of it is needed, but what is 0 by default.
struct Layout {
  std::uint64_t preemptible = 0;
  std::uint64_t priority = 0;
  std::uint64_t vectors = 0;
  std::uint64_t schedule = 0;  ///< the function __schedule
  std::uint64_t schedule_end = 0;
  std::uint64_t schedule_tail = 0;
  std::uint64_t schedule_tail_end = 0;
  std::uint64_t preempt_schedule_irq = 0;
  std::uint64_t do_notify_resume = 0;
  std::uint64_t hrtimer_wakeup = 0;
  std::uint64_t ktime_get = 0;
  std::uint64_t ktime_get_end = 0;
  std::uint64_t generic_handle_domain_irq = 0;
  std::uint64_t task_preempt_count = 0;  ///< offsets in task_struct
  std::uint64_t task_priority = 0;
  std::uint64_t task_pid = 0;
  std::uint64_t task_name = 0;
  std::uint64_t timer_expires = 0;  ///< offsets in hrtimer_sleeper
  std::uint64_t timer_task = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> loops;  ///< functions that test flags
  std::vector<std::pair<std::uint64_t, std::uint64_t>> tests;  ///< that test the count; none: all
};

struct Recorder {
  Layout layout;
  std::string output;
  std::unique_ptr<KernelWindows> windows;
  qemu_plugin_scoreboard* score = nullptr;
  const std::uint64_t* executed = nullptr;
  std::array<qemu_plugin_register*, 31> general{};
  qemu_plugin_register* saved_state = nullptr;
  GByteArray* buffer = nullptr;
  std::uint64_t current = 0;
  unsigned counter_register = no_register;
  std::uint64_t counter_read_at = 0;  ///< the instruction after
  std::uint64_t counter_read_when = 0;
  std::uint64_t counter = 0;      ///< as last read
  std::int64_t clock_offset = 0;  ///< from the kernel's monotonic clock to the counter
  bool clock_known = false;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
  bool stopped = false;

  [[nodiscard]] std::uint64_t now() const { return *executed; }

  [[nodiscard]] std::uint64_t value(qemu_plugin_register* handle) const {
    g_byte_array_set_size(buffer, 0);
    const int size = qemu_plugin_read_register(handle, buffer);
    std::uint64_t found = 0;
    if (size > 0 && size <= 8) {
      std::memcpy(&found, buffer->data, static_cast<std::size_t>(size));
    }
    return found;
  }

  [[nodiscard]] std::uint64_t general_register(unsigned number) {
    return number < general.size() ? value(general.at(number)) : 0;
  }

  template <typename Number>
  [[nodiscard]] Number memory(std::uint64_t address) {
    Number found{};
    if (qemu_plugin_read_memory_vaddr(address, buffer, sizeof found) &&
        buffer->len == sizeof found) {
      std::memcpy(&found, buffer->data, sizeof found);
    } else {
      windows->lost("memory of the kernel could not be read");
    }
    return found;
  }

  [[nodiscard]] Place place(std::uint64_t address) { return {address, general_register(30)}; }

  [[nodiscard]] Task task(std::uint64_t address) {
    Task found{.address = address,
               .pid = memory<std::int32_t>(address + layout.task_pid),
               .priority = memory<std::int32_t>(address + layout.task_priority),
               .preempt_count = memory<std::uint32_t>(address + layout.task_preempt_count),
               .name = {}};
    if (qemu_plugin_read_memory_vaddr(address + layout.task_name, buffer, name_size)) {
      const std::string_view name(reinterpret_cast<const char*>(buffer->data), buffer->len);
      found.name = name.substr(0, name.find('\0'));
    }
    return found;
  }
};

// QEMU's callbacks carry no pointer to what a plugin knows, so there is one recorder. It is never
// destroyed: vCPUs still run while QEMU's main thread leaves.
Recorder* recorder = nullptr;

/// Keeps QEMU's main thread, which writes at the end, from what a vCPU's thread tells.
class Turn {
 public:
  Turn() {
    while (recorder->busy.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Turn() { recorder->busy.clear(std::memory_order_release); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const { return !recorder->stopped; }
};

std::uint64_t address_of(void* data) { return std::bit_cast<std::uintptr_t>(data); }

void* data_of(std::uint64_t address) {
  return std::bit_cast<void*>(static_cast<std::uintptr_t>(address));
}

// Exceptions

void interrupt_entered(unsigned /*vcpu*/, void* /*data*/) {
  if (const Turn turn; turn) {
    recorder->windows->interrupt_entered(recorder->now());
  }
}

void user_exception_entered(unsigned /*vcpu*/, void* address) {
  if (const Turn turn; turn) {
    recorder->windows->exception_entered(recorder->now(), true, {address_of(address), 0});
  }
}

void kernel_exception_entered(unsigned /*vcpu*/, void* address) {
  if (const Turn turn; turn) {
    recorder->windows->exception_entered(recorder->now(), false, {address_of(address), 0});
  }
}

void returns(unsigned /*vcpu*/, void* address) {
  if (const Turn turn; turn) {
    const std::uint64_t state = recorder->value(recorder->saved_state);
    recorder->windows->returned(recorder->now(), (state & 0xfU) == 0,
                                (state & masks_interrupts) == 0, {address_of(address), 0});
  }
}

// Masking

void masks(unsigned /*vcpu*/, void* address) {
  if (const Turn turn; turn) {
    recorder->windows->masked(recorder->now(), false, recorder->place(address_of(address)));
  }
}

void unmasks(unsigned /*vcpu*/, void* address) {
  if (const Turn turn; turn) {
    recorder->windows->masked(recorder->now(), true, recorder->place(address_of(address)));
  }
}

/// Five bits of an address that are all 1 in the kernel and all 0 in programs: a register goes
/// there.
constexpr unsigned register_at = 56;

std::uint64_t with_register(std::uint64_t address, unsigned number) {
  return (address & ~(std::uint64_t{31} << register_at)) | (std::uint64_t{number} << register_at);
}

std::uint64_t without_register(std::uint64_t address) {
  const std::uint64_t bits = std::uint64_t{31} << register_at;
  return address >= std::uint64_t{7} << 61U ? address | bits : address & ~bits;
}

unsigned register_of(std::uint64_t data) { return (data >> register_at) & 31U; }

void restores_mask(unsigned /*vcpu*/, void* data) {
  if (const Turn turn; turn) {
    const std::uint64_t address = without_register(address_of(data));
    const std::uint64_t state = recorder->general_register(register_of(address_of(data)));
    recorder->windows->masked(recorder->now(), (state & masks_interrupts) == 0,
                              recorder->place(address));
  }
}

// The running thread

void changes_current(unsigned /*vcpu*/, void* data) {
  if (const Turn turn; turn) {
    const std::uint64_t value = recorder->general_register(register_of(address_of(data)));
    // On the way to user mode the register takes the program's stack pointer.
    if (value >= lowest_of_kernel && value != recorder->current) {
      recorder->current = value;
      recorder->windows->switched(recorder->task(value));
    }
  }
}

void count_accessed(unsigned /*vcpu*/, qemu_plugin_meminfo_t info, std::uint64_t address,
                    void* instruction) {
  if (address != recorder->current + recorder->layout.task_preempt_count) {
    return;
  }
  if (const Turn turn; turn) {
    const std::uint64_t at = address_of(instruction);
    const qemu_plugin_mem_value value = qemu_plugin_mem_get_value(info);
    const auto count = static_cast<std::uint32_t>(value.data.u64);
    if (qemu_plugin_mem_is_store(info)) {
      recorder->windows->counted(recorder->now(), count, recorder->place(at));
    } else {
      recorder->windows->tested(recorder->now(), count, value.data.u64 >> 32U == 0,
                                recorder->place(at));
    }
  }
}

void flags_read(unsigned /*vcpu*/, qemu_plugin_meminfo_t info, std::uint64_t address,
                void* instruction) {
  if (address != recorder->current) {
    return;
  }
  if (const Turn turn; turn) {
    const bool needed = (qemu_plugin_mem_get_value(info).data.u64 & needs_scheduler) != 0;
    recorder->windows->loop_tested(recorder->now(), needed,
                                   recorder->place(address_of(instruction)));
  }
}

// The scheduler

void schedule_called(unsigned /*vcpu*/, void* address) {
  if (const Turn turn; turn && recorder->current != 0) {
    const auto count =
        recorder->memory<std::uint32_t>(recorder->current + recorder->layout.task_preempt_count);
    recorder->windows->schedule_called(recorder->now(), count,
                                       recorder->place(address_of(address)));
  }
}

void schedule_returned(unsigned /*vcpu*/, void* address) {
  if (const Turn turn; turn) {
    recorder->windows->schedule_returned(recorder->now(), recorder->place(address_of(address)));
  }
}

void preempts_kernel(unsigned /*vcpu*/, void* address) {
  if (const Turn turn; turn) {
    recorder->windows->preempts_kernel(recorder->now(), {address_of(address), 0});
  }
}

void works_before_user(unsigned /*vcpu*/, void* address) {
  if (const Turn turn; turn) {
    const bool needed = (recorder->general_register(1) & needs_scheduler) != 0;
    recorder->windows->works_before_user(recorder->now(), needed, {address_of(address), 0});
  }
}

void waits(unsigned /*vcpu*/, void* address) {
  if (const Turn turn; turn) {
    recorder->windows->waits(recorder->now(), recorder->place(address_of(address)));
  }
}

// Clocks and timers

void reads_counter(unsigned /*vcpu*/, void* data) {
  if (const Turn turn; turn) {
    recorder->counter_register = register_of(address_of(data));
    recorder->counter_read_at = without_register(address_of(data)) + 4;
    recorder->counter_read_when = recorder->now();
  }
}

/// The instruction after one that reads the counter.
void counter_was_read(unsigned /*vcpu*/, void* data) {
  // An interrupt may come between the two, and read the counter itself.
  if (const Turn turn; turn && recorder->counter_register != no_register &&
                       recorder->counter_read_at == address_of(data)) {
    recorder->counter = recorder->general_register(recorder->counter_register);
    recorder->counter_register = no_register;
    recorder->windows->counter_read(recorder->counter_read_when, recorder->counter);
    if (address_of(data) < lowest_of_kernel) {
      recorder->windows->user_read_counter(recorder->now(), {address_of(data), 0});
    }
  }
}

void monotonic_clock_read(unsigned /*vcpu*/, void* /*data*/) {
  if (const Turn turn; turn) {
    recorder->clock_offset =
        static_cast<std::int64_t>(recorder->counter - recorder->general_register(0));
    recorder->clock_known = true;
  }
}

void timer_wakes(unsigned /*vcpu*/, void* /*data*/) {
  if (const Turn turn; turn) {
    if (!recorder->clock_known) {
      recorder->windows->lost("a timer came before the kernel's clock was known");
      return;
    }
    const std::uint64_t timer = recorder->general_register(0);
    const auto due = recorder->memory<std::uint64_t>(timer + recorder->layout.timer_expires);
    const auto task = recorder->memory<std::uint64_t>(timer + recorder->layout.timer_task);
    if (task != 0) {
      recorder->windows->wake_up(recorder->task(task),
                                 due + static_cast<std::uint64_t>(recorder->clock_offset));
    }
  }
}

void interrupt_named(unsigned /*vcpu*/, void* /*data*/) {
  if (const Turn turn; turn) {
    recorder->windows->interrupt_named(recorder->general_register(1));
  }
}

// Translation

using Called = qemu_plugin_vcpu_udata_cb_t;

bool within(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges,
            std::uint64_t address) {
  return std::ranges::any_of(
      ranges, [&](const auto& each) { return address >= each.first && address < each.second; });
}

bool reads_virtual_counter(std::uint32_t word) {  // mrs of CNTVCT_EL0, CNTVCTSS_EL0
  return (word & ~0x1fU) == 0xd53be040U || (word & ~0x1fU) == 0xd53be0c0U;
}

/// What is told when an instruction is executed, by what it is.
std::pair<Called, std::uint64_t> by_instruction(std::uint32_t word, std::uint64_t address) {
  const std::uint64_t with = with_register(address, word & 31U);
  if ((word & 0xfffff0ffU) == 0xd50340dfU) {  // msr daifset
    return {(word & 0x200U) != 0 ? masks : nullptr, address};
  }
  if ((word & 0xfffff0ffU) == 0xd50340ffU) {  // msr daifclr
    return {(word & 0x200U) != 0 ? unmasks : nullptr, address};
  }
  if ((word & ~0x1fU) == 0xd51b4220U) {  // msr daif
    return {restores_mask, with};
  }
  if ((word & ~0x1fU) == 0xd5184100U) {  // msr sp_el0
    return {changes_current, with};
  }
  if (word == 0xd69f03e0U) {  // eret
    return {returns, address};
  }
  if (word == 0xd503207fU) {  // wfi
    return {waits, address};
  }
  return {nullptr, 0};
}

/// What is told when an instruction is executed, by where it is.
Called by_place(std::uint32_t word, std::uint64_t address) {
  const Layout& layout = recorder->layout;
  const bool is_return = word == 0xd65f03c0U || word == 0xd65f0bffU || word == 0xd65f0fffU;
  if (is_return) {
    if ((address >= layout.schedule && address < layout.schedule_end) ||
        (address >= layout.schedule_tail && address < layout.schedule_tail_end)) {
      return schedule_returned;
    }
    if (address >= layout.ktime_get && address < layout.ktime_get_end) {
      return monotonic_clock_read;
    }
  }
  if (address >= layout.vectors && address < layout.vectors + 0x800 &&
      (address - layout.vectors) % 0x80 == 0) {
    const std::uint64_t number = (address - layout.vectors) / 0x80;
    if (number % 4 == 1) {
      return interrupt_entered;
    }
    return number < 8 ? kernel_exception_entered : user_exception_entered;
  }
  const std::array<std::pair<std::uint64_t, Called>, 5> functions{{
      {layout.schedule, schedule_called},
      {layout.preempt_schedule_irq, preempts_kernel},
      {layout.do_notify_resume, works_before_user},
      {layout.hrtimer_wakeup, timer_wakes},
      {layout.generic_handle_domain_irq, interrupt_named},
  }};
  const auto* const found =
      std::ranges::find(functions, address, &std::pair<std::uint64_t, Called>::first);
  return found == functions.end() ? nullptr : found->second;
}

/// Returns whether the instruction's accesses are watched.
bool watch_memory(qemu_plugin_insn* instruction, std::uint32_t word, std::uint64_t address) {
  const Layout& layout = recorder->layout;
  const std::uint64_t scaled = (word >> 10U) & 0xfffU;
  const std::uint32_t kind = word & 0xffc00000U;
  const bool stores = (kind == 0xb9000000U && scaled * 4 == layout.task_preempt_count) ||
                      (kind == 0xf9000000U && scaled * 8 == layout.task_preempt_count);
  const bool loads = kind == 0xf9400000U && scaled * 8 == layout.task_preempt_count &&
                     (layout.tests.empty() || within(layout.tests, address));
  const bool flags = kind == 0xf9400000U && scaled == 0 && within(layout.loops, address);
  if (stores || loads || flags) {
    qemu_plugin_register_vcpu_mem_cb(instruction, stores || loads ? count_accessed : flags_read,
                                     QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_MEM_RW, data_of(address));
    return true;
  }
  return false;
}

/// Returns whether something is told.
bool call_at(qemu_plugin_insn* instruction, Called called, std::uint64_t data) {
  if (called != nullptr) {
    qemu_plugin_register_vcpu_insn_exec_cb(instruction, called, QEMU_PLUGIN_CB_R_REGS,
                                           data_of(data));
  }
  return called != nullptr;
}

/// Whether nothing but the next instruction can follow: it computes with general registers.
bool only_computes(std::uint32_t word) {
  const std::uint32_t group = (word >> 25U) & 0xfU;  // the A64 set's top level of encoding
  return (group & 0xeU) == 0x8U || (group & 0x7U) == 0x5U;
}

/// Counts the instructions of a block. Those that only compute are counted together with the one
/// after them, as one that raises an exception must not be counted before what precedes it.
class Counting {
 public:
  /// Takes the next instruction; `told`: something is told of it, which must see the exact count.
  void take(qemu_plugin_insn* instruction, std::uint32_t word, bool told) {
    if (told) {
      finish();
    }
    if (first_ == nullptr) {
      first_ = instruction;
    }
    ++count_;
    if (told || !only_computes(word)) {
      finish();
    }
  }

  void finish() {
    if (first_ != nullptr) {
      qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
          std::exchange(first_, nullptr), QEMU_PLUGIN_INLINE_ADD_U64,
          {.score = recorder->score, .offset = 0}, std::exchange(count_, 0));
    }
  }

 private:
  qemu_plugin_insn* first_ = nullptr;
  std::uint64_t count_ = 0;
};

/// Whether a block begins right after an instruction that reads the counter, which ends a block.
bool follows_counter(std::uint64_t address) {
  std::uint32_t before = 0;
  if (!qemu_plugin_read_memory_vaddr(address - sizeof before, recorder->buffer, sizeof before) ||
      recorder->buffer->len != sizeof before) {
    return false;
  }
  std::memcpy(&before, recorder->buffer->data, sizeof before);
  return reads_virtual_counter(before);
}

// NOLINTNEXTLINE(misc-const-correctness): QEMU's type of the callback
void block_translated(qemu_plugin_id_t /*id*/, qemu_plugin_tb* translated) {
  const Turn turn;
  if (!turn) {
    return;
  }
  std::array<std::uint8_t, 8> bytes{};
  bool after_counter = follows_counter(qemu_plugin_tb_vaddr(translated));
  Counting counting;
  for (std::size_t i = 0; i < qemu_plugin_tb_n_insns(translated); ++i) {
    qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(translated, i);
    const std::uint64_t address = qemu_plugin_insn_vaddr(instruction);
    const std::uint32_t word = word_of(code_of(instruction, bytes));
    bool told = false;
    if (std::exchange(after_counter, reads_virtual_counter(word))) {
      told = call_at(instruction, counter_was_read, address);
    }
    if (address >= lowest_of_kernel) {
      told = call_at(instruction, by_place(word, address), address) || told;
      const auto [called, data] = by_instruction(word, address);
      told = call_at(instruction, called, data) || told;
      told = watch_memory(instruction, word, address) || told;
    }
    if (after_counter) {
      told = call_at(instruction, reads_counter, with_register(address, word & 31U)) || told;
    }
    counting.take(instruction, word, told);
  }
  counting.finish();
}

void vcpu_began(qemu_plugin_id_t /*id*/, unsigned /*vcpu*/) {
  const Turn turn;
  recorder->executed =
      static_cast<const std::uint64_t*>(qemu_plugin_scoreboard_find(recorder->score, 0));
  GArray* all = qemu_plugin_get_registers();
  const std::span<const qemu_plugin_reg_descriptor> found(
      reinterpret_cast<const qemu_plugin_reg_descriptor*>(all->data), all->len);
  for (const qemu_plugin_reg_descriptor& each : found) {
    const std::string_view name = each.name;
    if (name == "SPSR_EL1") {
      recorder->saved_state = each.handle;
    }
    for (unsigned i = 0; i < recorder->general.size(); ++i) {
      if (name == "x" + std::to_string(i)) {
        recorder->general.at(i) = each.handle;
      }
    }
  }
  (void)g_array_free(all, 1);
  if (recorder->saved_state == nullptr || recorder->general.at(30) == nullptr) {
    (void)std::fputs("latenz-kernel-recorder: this QEMU does not show the registers\n", stderr);
    recorder->stopped = true;
  }
}

void emulator_ends(qemu_plugin_id_t /*id*/, void* /*data*/) {
  const Turn turn;
  if (!turn || recorder->executed == nullptr) {
    return;
  }
  recorder->stopped = true;
  const std::string text = recorder->windows->report(recorder->now());
  std::FILE* file = std::fopen(recorder->output.c_str(), "we");
  const bool written = file != nullptr && std::fputs(text.c_str(), file) >= 0;
  if (!written || std::fclose(file) != 0) {
    (void)std::fputs("latenz-kernel-recorder: the output cannot be written\n", stderr);
  }
}

// Arguments

bool parse(std::string_view text, std::uint64_t& number) {
  const bool hexadecimal = text.starts_with("0x");
  text.remove_prefix(hexadecimal ? 2 : 0);
  const std::span<const char> digits = text;
  const char* end = std::to_address(digits.end());
  const auto [rest, error] =
      std::from_chars(std::to_address(digits.begin()), end, number, hexadecimal ? 16 : 10);
  return error == std::errc{} && rest == end && !text.empty();
}

/// Reads a layout; returns the line that is wrong, or what is missing, empty if all is right.
std::string take(const std::string& path) {
  Layout& layout = recorder->layout;
  const std::map<std::string, std::uint64_t*, std::less<>> numbers{
      {"preemptible", &layout.preemptible},
      {"priority", &layout.priority},
      {"vectors", &layout.vectors},
      {"schedule", &layout.schedule},
      {"schedule_end", &layout.schedule_end},
      {"schedule_tail", &layout.schedule_tail},
      {"schedule_tail_end", &layout.schedule_tail_end},
      {"preempt_schedule_irq", &layout.preempt_schedule_irq},
      {"do_notify_resume", &layout.do_notify_resume},
      {"hrtimer_wakeup", &layout.hrtimer_wakeup},
      {"ktime_get", &layout.ktime_get},
      {"ktime_get_end", &layout.ktime_get_end},
      {"generic_handle_domain_irq", &layout.generic_handle_domain_irq},
      {"task_preempt_count", &layout.task_preempt_count},
      {"task_priority", &layout.task_priority},
      {"task_pid", &layout.task_pid},
      {"task_name", &layout.task_name},
      {"timer_expires", &layout.timer_expires},
      {"timer_task", &layout.timer_task},
  };
  std::map<std::string, bool, std::less<>> seen;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::string_view text = line;
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : text.substr(equals + 1);
    if (name == "loop" || name == "test") {  // FROM-TO
      const std::size_t dash = value.find('-');
      auto& ranges = name == "loop" ? layout.loops : layout.tests;
      auto& [from, to] = ranges.emplace_back();
      if (dash == std::string_view::npos || !parse(value.substr(0, dash), from) ||
          !parse(value.substr(dash + 1), to)) {
        return line;
      }
      continue;
    }
    const auto known = numbers.find(name);
    if (known == numbers.end() || !parse(value, *known->second)) {
      return line;
    }
    seen[std::string(name)] = true;
  }
  for (const auto& [name, number] : numbers) {
    if (!seen[name]) {
      return name + " is missing";
    }
  }
  return {};
}

int refuse(const char* what, const std::string& which = {}) {
  (void)std::fprintf(stderr, "latenz-kernel-recorder: %s%s\n", what, which.c_str());
  return 1;
}

}  // namespace

int install(qemu_plugin_id_t id, const qemu_info_t& info, std::span<char*> arguments) {
  if (const char* mistake = misfit(info); mistake != nullptr) {
    return refuse(mistake);
  }
  if (std::string_view(info.target_name) != "aarch64") {
    return refuse("only kernels for aarch64 are known, not for ", info.target_name);
  }
  if (info.system.smp_vcpus != 1) {
    return refuse("one CPU is recorded; with several, QEMU's plugins cannot count instructions");
  }
  recorder = new Recorder;
  std::string layout;
  for (const char* argument : arguments) {
    const std::string_view text = argument;
    if (text.starts_with("layout=")) {
      layout = text.substr(7);
    } else if (text.starts_with("output=")) {
      recorder->output = text.substr(7);
    } else {
      return refuse("wrong argument: ", argument);
    }
  }
  if (layout.empty() || recorder->output.empty()) {
    return refuse("layout=FILE and output=FILE are needed");
  }
  if (const std::string wrong = take(layout); !wrong.empty()) {
    return refuse("wrong layout: ", wrong);
  }
  recorder->windows = std::make_unique<KernelWindows>(
      KernelSettings{.preemptible = recorder->layout.preemptible != 0,
                     .priority = static_cast<std::int32_t>(recorder->layout.priority)});
  recorder->buffer = g_byte_array_new();
  recorder->score = qemu_plugin_scoreboard_new(sizeof(std::uint64_t));
  qemu_plugin_register_vcpu_init_cb(id, vcpu_began);
  qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
  qemu_plugin_register_atexit_cb(id, emulator_ends, nullptr);
  return 0;
}

}  // namespace latenz::probe
