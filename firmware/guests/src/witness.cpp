// SPDX-License-Identifier: Apache-2.0
// A partition that fills its memory, and looks for ever whether all is as it left it. Its progress
// is the number of blocks found whole; at the first damage it says so and stays at `damaged`.
#include <cstddef>
#include <cstdint>
#include <span>

#include "bottom_handlers.hpp"
#include "cpu.hpp"
#include "guest.hpp"
#include "latenz/split_mix.hpp"
#include "latenz/text.hpp"

extern "C" std::byte image_end;  // image.ld

namespace latenz::guests {
namespace {

constexpr std::size_t words_of_block = 512;
constexpr std::uint64_t damaged = ~std::uint64_t{0};

/// All memory behind the image, without what does not fill a block.
std::span<volatile std::uint64_t> own_memory() {
  constexpr std::uintptr_t block_bytes = words_of_block * sizeof(std::uint64_t);
  const InformationPage& known = information();
  const auto image = reinterpret_cast<std::uintptr_t>(&image_end);
  const std::uintptr_t begin = (image + block_bytes - 1) / block_bytes * block_bytes;
  const std::uintptr_t end = known.memory_begin + known.memory_size;
  return {reinterpret_cast<volatile std::uint64_t*>(begin), (end - begin) / sizeof(std::uint64_t)};
}

SplitMix64 pattern(std::size_t block) { return SplitMix64(block); }

void fill(std::span<volatile std::uint64_t> memory) {
  for (std::size_t block = 0; block < memory.size() / words_of_block; ++block) {
    SplitMix64 values = pattern(block);
    for (auto& word : memory.subspan(block * words_of_block, words_of_block)) word = values.next();
  }
}

void tell_damage(const volatile std::uint64_t& word) {
  Text<80> text;
  text.add("damaged: ").add_hex(reinterpret_cast<std::uintptr_t>(&word)).add("\n");
  say(text.view());
  report().progress = damaged;
  while (true) firmware::Cpu::wait_for_interrupt();
}

void look(std::span<volatile std::uint64_t> memory) {
  for (std::size_t block = 0; block < memory.size() / words_of_block; ++block) {
    SplitMix64 values = pattern(block);
    for (const auto& word : memory.subspan(block * words_of_block, words_of_block)) {
      if (word != values.next()) tell_damage(word);
    }
    report().progress = report().progress + 1;
  }
}

}  // namespace

extern "C" [[noreturn]] void firmware_main() {
  const auto memory = own_memory();
  fill(memory);
  report().progress = 0;
  start_bottom_handlers();
  say("looking\n");
  while (true) look(memory);
}

}  // namespace latenz::guests
