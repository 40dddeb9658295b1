// SPDX-License-Identifier: Apache-2.0
// Partitions that share memory at 0x7000'0000 talk through channels there: the first of the system
// writes, all others read. A message that is torn, lost or comes twice ends the reader as a fault;
// so does looking there without having the memory.
#include <algorithm>
#include <cstdint>

#include "bottom_handlers.hpp"
#include "guest.hpp"
#include "latenz/icc.hpp"

namespace {

using namespace latenz::icc;

/// Long enough that slots end amid its being written and read.
struct Block {
  std::uint32_t word[64];
};
struct Letter {
  std::uint32_t number;
};

/// Guests run with their MMU off: all memory is Device memory.
using Words = Platform<DeviceWord, StandardOrder, Spin>;
using Blocks = Latest<Block, 1, Words>;
using Letters = Mailbox<Letter, Words>;

void* const blocks = reinterpret_cast<void*>(0x7000'0000);
void* const letters = reinterpret_cast<void*>(0x7000'0000 + Blocks::bytes);

Block block_of(std::uint32_t number) {
  Block block;
  for (std::uint32_t& word : block.word) word = number;
  return block;
}

bool is_whole(const Block& block) {
  return std::ranges::all_of(block.word, [&](std::uint32_t word) { return word == block.word[0]; });
}

/// Progress: blocks written.
[[noreturn]] void write() {
  auto block_writer = Blocks::Writer::create(blocks, Blocks::bytes, "blocks");
  auto letter_writer = Letters::Writer::create(letters, Letters::bytes, "letters");
  for (Letter letter{1};;) {
    latenz::guests::report().progress = block_writer->number();
    block_writer->update(block_of(block_writer->number() + 1));
    if (letter_writer->try_write(letter) == Result::ok) ++letter.number;
  }
}

/// Progress: number of the newest block seen, and of letters read in the upper half.
[[noreturn]] void read() {
  auto block_reader = Blocks::Reader::attach_until(blocks, Blocks::bytes, Never{}, 0U);
  auto letter_reader = Letters::Reader::attach_until(letters, Letters::bytes, Never{});
  std::uint32_t seen = 0;
  std::uint32_t read = 0;
  for (;;) {
    Block block;
    if (block_reader->poll(block) == Freshness::updated) {
      if (!is_whole(block) || block.word[0] <= seen) __builtin_trap();
      seen = block.word[0];
    }
    Letter letter;
    if (letter_reader->try_read(letter) == Result::ok && letter.number != ++read) __builtin_trap();
    latenz::guests::report().progress = std::uint64_t{read} << 32U | seen;
  }
}

}  // namespace

extern "C" [[noreturn]] void firmware_main() {
  latenz::guests::start_bottom_handlers();
  latenz::guests::information().partition == 0 ? write() : read();
}
