// SPDX-License-Identifier: Apache-2.0
// A QEMU plugin: makes emulated cores that wait for interrupts wait equally long in every run.
//
// With -icount sleep=off, QEMU's main thread moves virtual time on to the next event once all vCPUs
// are halted. But a vCPU that executes WFI counts as halted before its last instructions are added
// to the virtual time; QEMU wakes its main thread up not only when all sleep, but for each event of
// the virtual clock as well, just when the vCPU begins to handle that; and if the main thread gets
// to look between the two, which the scheduler of the host decides, the next event comes late by
// those instructions (QEMU 10.0: rr_cpu_thread_fn, icount_handle_deadline,
// icount_start_warp_timer).
//
// The plugin lets a vCPU wait for interrupts only when the main thread has gone back to sleep, so
// that nothing but the vCPU itself, halted and accounted for, wakes it up again. The guest sees
// nothing of that: no virtual time passes meanwhile.
//
//   -plugin file=latenz-exact-wait.so
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "qemu_plugin.hpp"

namespace latenz::probe {
namespace {

/// QEMU's main thread, as the kernel tells of it.
class MainThread {
 public:
  /// Returns whether the kernel tells.
  [[nodiscard]] bool open() {
    // The main loop runs in the first thread, whose number is that of the process.
    const std::string folder = "/proc/self/task/" + std::to_string(getpid());
    state_ = ::open((folder + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
    call_ = ::open((folder + "/syscall").c_str(), O_RDONLY | O_CLOEXEC);
    return !text_of(state_).empty() && !text_of(call_).empty();
  }

  /// Returns whether it sleeps until something happens, and nothing has.
  ///
  /// Who is being woken up is no longer asleep for the first file, but may still be in the second.
  [[nodiscard]] bool rests() { return state() == 'S' && call() == SYS_ppoll; }

 private:
  [[nodiscard]] std::string_view text_of(int file) {
    const ssize_t size = pread(file, text_.data(), text_.size(), 0);
    return {text_.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
  }

  /// The letter after the number and the name, which stands in parentheses and may hold any.
  [[nodiscard]] char state() {
    const std::string_view text = text_of(state_);
    const std::size_t name_end = text.rfind(')');
    return name_end < text.size() - 2 ? text[name_end + 2] : '?';
  }

  /// The number of the system call it is blocked in, -1 if in none.
  [[nodiscard]] long call() {
    const std::string_view text = text_of(call_);
    long number = -1;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  int state_ = -1;
  int call_ = -1;
  std::array<char, 1024> text_{};
};

/// Far longer than the main thread is busy: only if it waits for the vCPUs itself, to end QEMU.
constexpr std::chrono::seconds longest_wait{10};

MainThread main_thread;

void waits_for_interrupt(unsigned /*vcpu*/, void* /*data*/) {
  if (main_thread.rests()) {
    return;
  }
  const auto limit = std::chrono::steady_clock::now() + longest_wait;
  while (!main_thread.rests()) {
    if (std::chrono::steady_clock::now() > limit) {
      (void)std::fputs("latenz-exact-wait: QEMU's main thread does not come to rest\n", stderr);
      return;
    }
    std::this_thread::yield();
  }
}

/// Whether an instruction of the A64, A32 or T32 set waits for interrupts.
bool is_wait(std::span<const std::uint8_t> code) {
  const std::uint32_t word = word_of(code);
  if (code.size() == 2) {
    return word == 0xbf30U;
  }
  const bool a64 = word == 0xd503207fU || (word & ~0x1fU) == 0xd5031020U;  // WFI, WFIT
  const bool a32 = (word & 0x0fffffffU) == 0x0320f003U;                    // whatever its condition
  return a64 || a32 || word == 0x8003f3afU;  // T32 has its halves the other way round
}

/// An instruction that waits ends its block.
// NOLINTNEXTLINE(misc-const-correctness) the type is QEMU's
void block_translated(qemu_plugin_id_t /*id*/, qemu_plugin_tb* block) {
  qemu_plugin_insn* last = qemu_plugin_tb_get_insn(block, qemu_plugin_tb_n_insns(block) - 1);
  std::array<std::uint8_t, 8> bytes{};
  if (is_wait(code_of(last, bytes))) {
    qemu_plugin_register_vcpu_insn_exec_cb(last, waits_for_interrupt, QEMU_PLUGIN_CB_NO_REGS,
                                           nullptr);
  }
}

}  // namespace

int install(qemu_plugin_id_t id, const qemu_info_t& info, std::span<char*> arguments) {
  const char* mistake = misfit(info);
  if (mistake == nullptr && !arguments.empty()) {
    mistake = "takes no arguments";
  }
  if (mistake == nullptr && !main_thread.open()) {
    mistake = "the kernel does not tell what QEMU's main thread does; is /proc mounted?";
  }
  if (mistake != nullptr) {
    (void)std::fprintf(stderr, "latenz-exact-wait: %s\n", mistake);
    return 1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
  return 0;
}

}  // namespace latenz::probe
