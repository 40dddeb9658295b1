// SPDX-License-Identifier: Apache-2.0
// One of two programs that talk to each other: the same source on Cortex-A53 and Cortex-R5.
#include "clocks.hpp"
#include "here.hpp"
#include "load.hpp"
#include "meeting.hpp"
#include "memory_map.hpp"
#include "report.hpp"
#include "task.hpp"
#include "tasks.hpp"

namespace latenz::pair {

extern "C" [[noreturn]] void firmware_main(unsigned /*entry_level*/) {
  MemoryMap::enable();  // before anything that a compiler may do unaligned
  Here::prepare();
  const Task& wanted = task();
  if (const auto problem = wanted.problem(); !problem.empty()) firmware::fail(problem);
  if (!Here::has(wanted.memory)) firmware::fail("task memory: not on this board");
  if (wanted.kind != Kind::restart || !resumes_after_restart()) {
    Meeting::begin();
    Clocks::start();
    if (Side::first) load_another_core(wanted.load);
  }
  constexpr void (*tasks[])() = {measure, check, meet_unlike, restart};  // by `Kind`
  tasks[static_cast<std::uint32_t>(wanted.kind)]();
  Meeting::step();
  firmware::output().end({});
  Meeting::step();  // who may switch off waits until the other has said all
  firmware::finish();
}

}  // namespace latenz::pair
