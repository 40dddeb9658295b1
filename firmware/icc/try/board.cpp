// SPDX-License-Identifier: Apache-2.0
// Around a user's program: starts the processor, calls its `main`, and ends with it.
#include "latenz/board.hpp"

#include "clocks.hpp"
#include "here.hpp"
#include "meeting.hpp"
#include "memory_map.hpp"
#include "places.hpp"
#include "report.hpp"
#include "side.hpp"

int main();

namespace latenz {
namespace board {

static_assert(shared_bytes == pair::meeting_place - pair::on_chip.begin);

std::int64_t Clock::now_ns() {  // asked more often than the counter wraps, every 4.29 s
  static std::uint32_t last = 0;
  static std::int64_t passed = 0;
  const std::uint32_t now = pair::CycleCounter::now();
  passed += now - last;
  last = now;
  return passed;
}

void print(std::string_view line) {
  pair::note(pair::Line().add(pair::Side::name).add(": ").add(line));
}

// As board.h declares them.
extern "C" {
void latenz_board_print(const char* line);
std::int64_t latenz_board_now_ns();
void latenz_board_print(const char* line) { print(line); }
std::int64_t latenz_board_now_ns() { return Clock::now_ns(); }
}

}  // namespace board

namespace firmware {

const Parameters& parameters() {
  static constexpr Parameters known = [] {
    Parameters made{};
    made.sender = pair::Side::sender;
    return made;
  }();
  return known;
}

extern "C" {
extern void (*const interrupt_handler)();
void (*const interrupt_handler)() = [] { fail("an interrupt, though none is enabled"); };
}

extern "C" [[noreturn]] void firmware_main(unsigned /*entry_level*/) {
  pair::MemoryMap::enable();  // before anything that a compiler may do unaligned
  pair::Here::prepare();
#ifdef __aarch64__
  asm volatile("msr cpacr_el1, %0\n isb" ::"r"(std::uint64_t{3} << 20U));  // your floats
#endif
  pair::CycleCounter::start();
  pair::Meeting::begin();
  if (const int code = main(); code != 0) {
    fail(pair::Line()
             .add(pair::Side::name)
             .add(": main returned ")
             .add(static_cast<std::uint64_t>(static_cast<unsigned>(code)))
             .view());
  }
  output().end({});
  pair::Meeting::step();  // who may switch off waits until the other has said all
  finish();
}

}  // namespace firmware
}  // namespace latenz
