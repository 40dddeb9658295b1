// SPDX-License-Identifier: Apache-2.0
// The resident loader of a real-time core that nobody can hold or reset: waits until Linux has put
// a program into memory, starts it, and gets the core back when the program ends or crashes. On
// silicon Linux' remoteproc and the core's reset do this.
#include <cstdint>

#include "latenz/resident_loader.hpp"

namespace latenz::firmware {
namespace {

/// In loader_start.S.
extern "C" {
extern char loader_return[];
extern const std::uint32_t loader_vectors[];
extern const std::uint32_t loader_vectors_end[];
}

volatile LoaderBlock& block() {
  return *reinterpret_cast<volatile LoaderBlock*>(LoaderBlock::zynqmp_address);
}

/// Reading the block in a tight loop would slow the emulator down; at `wfe` it goes on with the
/// other cores.
void pause() {
  for (unsigned i = 0; i < 1000; ++i) asm volatile("nop");
  asm volatile("wfe");
}

/// The program before may have placed its own.
void place_vectors() {
  auto* place = reinterpret_cast<volatile std::uint32_t*>(0xFFFF'0000);
  for (const std::uint32_t* word = loader_vectors; word != loader_vectors_end; ++word) {
    *place++ = *word;
  }
}

/// What was written to memory as data is executed from now on.
void synchronise_instructions() {
  asm volatile("dsb\n mcr p15, 0, %0, c7, c5, 0\n dsb\n isb" ::"r"(0) : "memory");
}

[[noreturn]] void serve(LoaderState state) {
  block().state = state;
  while (block().request == block().answered) pause();
  place_vectors();
  block().state = LoaderState::started;
  block().answered = block().request;
  synchronise_instructions();
  reinterpret_cast<void (*)()>(block().entry)();
  __builtin_unreachable();
}

}  // namespace

/// The core has just been switched on.
extern "C" [[noreturn]] void loader_begin() {
  block().version = LoaderBlock::current_version;
  block().way_back = reinterpret_cast<std::uint32_t>(loader_return);
  block().exception = 0;
  block().exception_address = 0;
  block().answered = 0;
  block().request = 0;
  block().magic = LoaderBlock::expected_magic;
  serve(LoaderState::waiting);
}

/// A program is done.
extern "C" [[noreturn]] void loader_ended() { serve(LoaderState::waiting); }

/// A program met an exception; `vector`: its place in the table.
extern "C" [[noreturn]] void loader_crashed(std::uint32_t vector, std::uint32_t address) {
  block().exception = vector;
  block().exception_address = address;
  serve(LoaderState::crashed);
}

}  // namespace latenz::firmware
