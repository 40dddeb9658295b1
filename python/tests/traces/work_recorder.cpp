// SPDX-License-Identifier: Apache-2.0
// A QEMU plugin for tests: what an emulated x86 processor executed before it switched threads.
//
//   -plugin file=work_recorder.so,start=A,interrupt=A,switch=A,least=N,windows=N,output=FILE
//
// Addresses A are hexadecimal. `start` is executed first when the kernel begins to trace,
// `interrupt` is where it enters its timer's interrupt, `switch` where it changes to another
// thread. For each switch that comes at least so many instructions after the last interrupt, it
// writes, as 64-bit numbers: how many blocks follow, how many instructions were executed at the
// interrupt and at the switch, and of each block from `before` instructions ahead of the interrupt
// on, its address and the number of instructions executed when it began. There must be one
// processor.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "qemu_plugin.hpp"

namespace latenz::probe {
namespace {

constexpr std::size_t ring_size = std::size_t{1} << 19;  // a power of two
constexpr std::uint64_t before = 200'000;                // instructions

struct Began {
  std::uint64_t address;
  std::uint64_t executed;
};

struct Recorder {
  std::FILE* output = nullptr;
  std::uint64_t start = 0;
  bool started = false;
  std::uint64_t interrupt = 0;
  std::uint64_t change = 0;
  std::uint64_t least = 10'000;
  std::uint64_t windows = 300;
  std::uint64_t executed = 0;
  std::uint64_t blocks = 0;
  std::uint64_t entered = 0;  ///< instructions at the last interrupt; 0: none since a switch
  std::vector<Began> ring = std::vector<Began>(ring_size);

  void began(std::uint64_t address, std::uint64_t instructions) {
    started |= address == start;
    if (address == interrupt) {
      entered = executed;
    } else if (address == change) {
      if (started && entered != 0 && executed - entered >= least && windows > 0) {
        write();
        --windows;
      }
      entered = 0;
    }
    ring[blocks % ring_size] = {address, executed};
    ++blocks;
    executed += instructions;
  }

  void write() {
    std::uint64_t first = blocks;
    const std::uint64_t oldest = blocks > ring_size ? blocks - ring_size : 0;
    while (first > oldest && ring[(first - 1) % ring_size].executed + before > entered) {
      --first;
    }
    const std::uint64_t head[] = {blocks - first, entered, executed};
    (void)std::fwrite(head, sizeof head, 1, output);
    for (; first < blocks; ++first) {
      (void)std::fwrite(&ring[first % ring_size], sizeof(Began), 1, output);
    }
    (void)std::fflush(output);
  }
};

Recorder* recorder = nullptr;

struct Block {
  std::uint64_t address;
  std::uint64_t instructions;
};

void block_began(unsigned /*vcpu*/, void* data) {
  const Block* block = static_cast<const Block*>(data);
  recorder->began(block->address, block->instructions);
}

void block_translated(qemu_plugin_id_t /*id*/, qemu_plugin_tb* translated) {
  // QEMU keeps the pointer for as long as the block; translations of a short run are few
  auto* block = new Block{qemu_plugin_tb_vaddr(translated), qemu_plugin_tb_n_insns(translated)};
  qemu_plugin_register_vcpu_tb_exec_cb(translated, block_began, QEMU_PLUGIN_CB_NO_REGS, block);
}

std::uint64_t number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x");
  text.remove_prefix(hexadecimal ? 2 : 0);
  std::uint64_t value = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  return value;
}

}  // namespace

int install(qemu_plugin_id_t id, const qemu_info_t& info, std::span<char*> arguments) {
  if (misfit(info) != nullptr || info.system.smp_vcpus != 1) {
    return 1;
  }
  recorder = new Recorder;
  for (const std::string_view argument : arguments) {
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const std::string_view value = argument.substr(equals + 1);
    if (name == "start") {
      recorder->start = number(value);
    } else if (name == "interrupt") {
      recorder->interrupt = number(value);
    } else if (name == "switch") {
      recorder->change = number(value);
    } else if (name == "least") {
      recorder->least = number(value);
    } else if (name == "windows") {
      recorder->windows = number(value);
    } else {
      recorder->output = std::fopen(value.data(), "wbe");
    }
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
  return recorder->output == nullptr ? 1 : 0;
}

}  // namespace latenz::probe
