// SPDX-License-Identifier: Apache-2.0
// A QEMU plugin: a flight recorder for the way an interrupt takes to its handler.
//
// It keeps the translation blocks that all vCPUs executed last, with how many instructions of each
// were executed, and the device accesses among them. Whenever a vCPU has entered a handler and then
// reads a counter or a device for the first time, which is the handler's first action, it writes
// the last `window` instructions down, up to and with that one.
//
//   -plugin file=latenz-path-recorder.so,handler=0x40001234,captures=400,output=FILE
//
// `handler` may be given several times; `skip` entries into handlers are not written down.
// What is written, line by line:
//
//   latenz-path 1 TARGET VCPUS
//   block ID ADDRESS CODE          hexadecimal; instructions as in memory, separated by dots
//   capture NUMBER                 from 0; followed, in the order of execution, by
//   run VCPU ID EXECUTED           so many instructions of the block
//   io VCPU ADDRESS r|w DEVICE     access to a device by the instruction there
//   end
//   fault TEXT                     nothing more is recorded
//
// The last instruction of a `run` that is followed by an exception may not have been completed.
// The recorder changes neither registers nor memory nor the instruction count of the guest, so a
// run with -icount gives the same samples with and without it. All vCPUs must share one thread, as
// they do with -icount; otherwise there is no order between them, and the recorder says so.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "qemu_plugin.hpp"

namespace latenz::probe {
namespace {

constexpr std::size_t ring_size = std::size_t{1} << 16;  // events; a power of two
constexpr std::uint64_t largest_window = ring_size / 2;  // the ring holds a whole one
constexpr std::uint64_t most_captures = 1'000'000;
constexpr unsigned most_cpus = 8;
constexpr std::uint64_t counted = 1U << 16U;  // marks the number of executed instructions

struct Block {
  std::uint64_t address;
  std::uint32_t id;
  std::string code;  ///< as it is written
  bool written;
};

/// A block ran or, where there is a device, an instruction reached it.
struct Event {
  Block* block;
  const char* device;
  std::uint64_t address;  ///< of the instruction that reached the device
  std::uint32_t executed;
  std::uint16_t vcpu;
  bool store;
};

/// What is known about a vCPU.
struct Cpu {
  const void* identity = nullptr;  ///< QEMU's own object
  std::uint64_t next_event = 0;    ///< after the event of the block it is in; 0: none yet
  bool in_handler = false;         ///< it has entered one, and has not acted yet
};

/// How many instructions of the current block were executed, kept by code that QEMU generates.
///
/// Without threads for vCPUs, QEMU 9.2 and 10 take the vCPU that translated a block for the one
/// that executes it, and spoil its number while they multiply it by the size of an element. One
/// byte is the size that does no harm: the number stands at a byte that depends on the vCPU, and is
/// found by the mark above it.
class Progress {
 public:
  Progress() : scores_(qemu_plugin_scoreboard_new(1)) {}

  [[nodiscard]] qemu_plugin_u64 variable() const { return {.score = scores_, .offset = 0}; }

  /// To be called once there is a vCPU.
  void begin() { bytes_ = static_cast<std::uint8_t*>(qemu_plugin_scoreboard_find(scores_, 0)); }

  void clear() { std::fill_n(bytes_, size, std::uint8_t{0}); }

  [[nodiscard]] std::uint32_t executed() const {
    const std::span<const std::uint8_t> bytes(bytes_, size);
    for (std::size_t i = size; i-- > 2;) {
      if (bytes[i] != 0) {
        return bytes[i - 2] | (unsigned{bytes[i - 1]} << 8U);
      }
    }
    return 0;
  }

 private:
  static constexpr std::size_t size = most_cpus - 1 + sizeof(std::uint64_t);
  qemu_plugin_scoreboard* scores_;
  std::uint8_t* bytes_ = nullptr;
};

struct Recorder {
  std::FILE* output = nullptr;
  std::vector<std::uint64_t> handlers;
  std::uint64_t captures = 1;
  std::uint64_t skip = 0;
  std::uint64_t window = 16384;
  std::uint64_t captured = 0;
  bool stopped = false;
  std::thread::id thread;
  const void* const* running = nullptr;  ///< QEMU's vCPU that runs; null: there is only one
  Progress progress;
  std::array<Cpu, most_cpus> cpus{};
  unsigned current = 0;  ///< the vCPU that began the last block
  std::unordered_map<std::string, Block*> blocks;
  std::vector<Event> ring = std::vector<Event>(ring_size);
  std::uint64_t events = 0;

  [[nodiscard]] Event& event(std::uint64_t number) { return ring[number % ring_size]; }

  void stop(const char* reason) {
    if (!stopped) {
      (void)std::fprintf(output, "fault %s\n", reason);
      (void)std::fflush(output);
      stopped = true;
    }
  }

  /// The number of the vCPU that runs, in the order in which they began.
  [[nodiscard]] unsigned vcpu() {
    if (running == nullptr) {
      return 0;
    }
    unsigned number = 0;
    while (number < most_cpus - 1 && cpus.at(number).identity != nullptr &&
           cpus.at(number).identity != *running) {
      ++number;
    }
    cpus.at(number).identity = *running;
    return number;
  }

  /// Takes down how many instructions of the last block were executed.
  void close_block() {
    const Cpu& cpu = cpus.at(current);
    if (cpu.next_event != 0 && events - cpu.next_event < ring_size) {
      event(cpu.next_event - 1).executed = progress.executed();
    }
  }

  void block_began(Block* block) {
    close_block();
    progress.clear();
    current = vcpu();
    event(events) = {.block = block,
                     .device = nullptr,
                     .address = 0,
                     .executed = 0,
                     .vcpu = static_cast<std::uint16_t>(current),
                     .store = false};
    cpus.at(current).next_event = ++events;
  }

  void device_reached(std::uint64_t address, bool store, const char* device) {
    event(events) = {.block = nullptr,
                     .device = device,
                     .address = address,
                     .executed = 0,
                     .vcpu = static_cast<std::uint16_t>(current),
                     .store = store};
    ++events;
  }

  void handler_entered() {
    if (skip > 0) {
      --skip;
    } else {
      cpus.at(current).in_handler = true;
    }
  }

  /// A counter or a device was read: the first time in a handler, that is what is waited for.
  void acted() {
    Cpu& cpu = cpus.at(current);
    if (!cpu.in_handler) {
      return;
    }
    cpu.in_handler = false;
    close_block();
    write(window_begin());
    ++captured;
    if (captured == captures) {
      stopped = true;
    }
  }

  /// Returns the event with which the last `window` instructions begin.
  [[nodiscard]] std::uint64_t window_begin() {
    const std::uint64_t oldest = events > ring_size ? events - ring_size : 0;
    std::uint64_t first = events;
    for (std::uint64_t instructions = 0; first > oldest && instructions < window;) {
      --first;
      instructions += event(first).executed;
    }
    return first;
  }

  void write(std::uint64_t first) {
    for (std::uint64_t number = first; number < events; ++number) {
      Block* block = event(number).block;
      if (block != nullptr && !block->written) {
        (void)std::fprintf(output, "block %u %llx %s\n", block->id,
                           static_cast<unsigned long long>(block->address), block->code.c_str());
        block->written = true;
      }
    }
    (void)std::fprintf(output, "capture %llu\n", static_cast<unsigned long long>(captured));
    for (std::uint64_t number = first; number < events; ++number) {
      const Event& each = event(number);
      if (each.block == nullptr) {
        (void)std::fprintf(output, "io %u %llx %c %s\n", each.vcpu,
                           static_cast<unsigned long long>(each.address), each.store ? 'w' : 'r',
                           each.device);
      } else if (each.executed > 0) {
        (void)std::fprintf(output, "run %u %u %u\n", each.vcpu, each.block->id, each.executed);
      }
    }
    (void)std::fputs("end\n", output);
    if (std::fflush(output) != 0) {
      (void)std::fputs("latenz-path-recorder: the output cannot be written\n", stderr);
      stopped = true;
    }
  }
};

// QEMU's callbacks carry no pointer to what a plugin knows, so there is one recorder. It is never
// destroyed: vCPUs still run while QEMU's main thread leaves.
Recorder* recorder = nullptr;

void vcpu_began(qemu_plugin_id_t /*id*/, unsigned /*vcpu*/) {
  if (recorder->thread == std::thread::id{}) {
    recorder->thread = std::this_thread::get_id();
    recorder->progress.begin();
    // The number that callbacks are given may be that of another vCPU: see Progress.
    recorder->running = static_cast<const void* const*>(dlsym(RTLD_DEFAULT, "current_cpu"));
  } else if (recorder->running == nullptr) {
    recorder->stop("this QEMU does not tell which of its CPUs runs");
  } else if (recorder->thread != std::this_thread::get_id()) {
    recorder->stop("vCPUs run in threads of their own: start QEMU with -icount");
  }
}

void block_began(unsigned /*vcpu*/, void* block) {
  if (!recorder->stopped) {
    recorder->block_began(static_cast<Block*>(block));
  }
}

void memory_accessed(unsigned /*vcpu*/, qemu_plugin_meminfo_t info, std::uint64_t address,
                     void* instruction) {
  if (recorder->stopped) {
    return;
  }
  const qemu_plugin_hwaddr* place = qemu_plugin_get_hwaddr(info, address);
  if (place != nullptr && qemu_plugin_hwaddr_is_io(place)) {
    const bool store = qemu_plugin_mem_is_store(info);
    recorder->device_reached(std::bit_cast<std::uintptr_t>(instruction), store,
                             qemu_plugin_hwaddr_device_name(place));
    if (!store) {
      recorder->acted();
    }
  }
}

void counter_read(unsigned /*vcpu*/, void* /*data*/) {
  if (!recorder->stopped) {
    recorder->acted();
  }
}

void handler_entered(unsigned /*vcpu*/, void* /*data*/) {
  if (!recorder->stopped) {
    recorder->handler_entered();
  }
}

/// Whether an instruction of the A64, A32 or T32 set reads a counter of the generic timer.
bool reads_counter(std::span<const std::uint8_t> code) {
  if (code.size() != 4) {
    return false;
  }
  const std::uint32_t word = word_of(code);
  const std::uint32_t mrs = word & ~0x1fU;       // of CNTPCT_EL0, CNTVCT_EL0, CNTPCTSS, CNTVCTSS
  const auto is_mrrc = [](std::uint32_t each) {  // of CNTPCT, CNTVCT
    const std::uint32_t fixed = each & 0x0ff00fffU;
    return fixed == 0x0c500f0eU || fixed == 0x0c500f1eU;
  };
  return mrs == 0xd53be020U || mrs == 0xd53be040U || mrs == 0xd53be0a0U || mrs == 0xd53be0c0U ||
         is_mrrc(word) || is_mrrc(std::rotl(word, 16));  // T32 has its halves the other way round
}

/// The code of a block in hexadecimal, its instructions separated by dots.
std::string written_code(const qemu_plugin_tb* block) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string code;
  std::array<std::uint8_t, 8> bytes{};
  for (std::size_t i = 0; i < qemu_plugin_tb_n_insns(block); ++i) {
    if (i > 0) {
      code += '.';
    }
    for (const std::uint8_t byte : code_of(qemu_plugin_tb_get_insn(block, i), bytes)) {
      code += digits[byte >> 4U];
      code += digits[byte & 15U];
    }
  }
  return code;
}

/// QEMU translates the same code again and again; it stays one block.
Block* block_for(const qemu_plugin_tb* translated) {
  const std::uint64_t address = qemu_plugin_tb_vaddr(translated);
  std::string code = written_code(translated);
  Block*& known = recorder->blocks[std::to_string(address) + ':' + code];
  if (known == nullptr) {
    known = new Block{.address = address,
                      .id = static_cast<std::uint32_t>(recorder->blocks.size() - 1),
                      .code = std::move(code),
                      .written = false};
  }
  return known;
}

void block_translated(qemu_plugin_id_t /*id*/, qemu_plugin_tb* translated) {
  if (recorder->stopped) {
    return;
  }
  qemu_plugin_register_vcpu_tb_exec_cb(translated, block_began, QEMU_PLUGIN_CB_NO_REGS,
                                       block_for(translated));
  std::array<std::uint8_t, 8> bytes{};
  for (std::size_t i = 0; i < qemu_plugin_tb_n_insns(translated); ++i) {
    qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(translated, i);
    const std::uint64_t address = qemu_plugin_insn_vaddr(instruction);
    qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(instruction, QEMU_PLUGIN_INLINE_STORE_U64,
                                                        recorder->progress.variable(),
                                                        (i + 1) | counted);
    qemu_plugin_register_vcpu_mem_cb(instruction, memory_accessed, QEMU_PLUGIN_CB_NO_REGS,
                                     QEMU_PLUGIN_MEM_RW,
                                     std::bit_cast<void*>(static_cast<std::uintptr_t>(address)));
    if (std::ranges::find(recorder->handlers, address) != recorder->handlers.end()) {
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, handler_entered, QEMU_PLUGIN_CB_NO_REGS,
                                             nullptr);
    }
    if (reads_counter(code_of(instruction, bytes))) {
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, counter_read, QEMU_PLUGIN_CB_NO_REGS,
                                             nullptr);
    }
  }
}

/// Reads a whole number, decimal or with 0x in front; false: it is none, or out of bounds.
bool parse(std::string_view text, std::uint64_t least, std::uint64_t most, std::uint64_t& number) {
  const bool hexadecimal = text.starts_with("0x");
  text.remove_prefix(hexadecimal ? 2 : 0);
  const std::span<const char> digits = text;
  const char* end = std::to_address(digits.end());
  const auto [rest, error] =
      std::from_chars(std::to_address(digits.begin()), end, number, hexadecimal ? 16 : 10);
  return error == std::errc{} && rest == end && number >= least && number <= most;
}

/// Takes one NAME=VALUE.
bool take(std::string_view argument, std::string& output) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos) {
    return false;
  }
  const std::string_view name = argument.substr(0, equals);
  const std::string_view value = argument.substr(equals + 1);
  if (name == "output") {
    output = value;
    return !value.empty();
  }
  if (name == "handler") {
    return parse(value, 0, UINT64_MAX, recorder->handlers.emplace_back());
  }
  if (name == "captures") {
    return parse(value, 1, most_captures, recorder->captures);
  }
  if (name == "skip") {
    return parse(value, 0, most_captures, recorder->skip);
  }
  return name == "window" && parse(value, 1, largest_window, recorder->window);
}

int refuse(const char* what, const char* which = "") {
  (void)std::fprintf(stderr, "latenz-path-recorder: %s%s\n", what, which);
  return 1;
}

}  // namespace

int install(qemu_plugin_id_t id, const qemu_info_t& info, std::span<char*> arguments) {
  if (const char* mistake = misfit(info); mistake != nullptr) {
    return refuse(mistake);
  }
  if (std::cmp_greater(info.system.smp_vcpus, most_cpus)) {
    return refuse("at most 8 CPUs are recorded");
  }
  recorder = new Recorder;
  std::string output;
  for (const char* argument : arguments) {
    if (!take(argument, output)) {
      return refuse("wrong argument: ", argument);
    }
  }
  if (recorder->handlers.empty() || output.empty()) {
    return refuse("handler=ADDRESS and output=FILE are needed");
  }
  recorder->output = std::fopen(output.c_str(), "we");
  if (recorder->output == nullptr) {
    return refuse("cannot write ", output.c_str());
  }
  (void)std::fprintf(recorder->output, "latenz-path 1 %s %d\n", info.target_name,
                     info.system.smp_vcpus);
  (void)std::fflush(recorder->output);
  qemu_plugin_register_vcpu_init_cb(id, vcpu_began);
  qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
  return 0;
}

}  // namespace latenz::probe
