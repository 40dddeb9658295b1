// SPDX-License-Identifier: Apache-2.0
// A real-time core beside Linux: answers what Linux asks by channels in on-chip memory and in DDR,
// until Linux wants it to stop. icc/examples/linux_echo.cpp is the other side.
#include "board.hpp"
#include "echo_messages.hpp"
#include "output.hpp"

namespace latenz::firmware {
namespace {

/// Without memory protection unit all memory is Device memory.
using Channel = echo::Channel<icc::ZynqMpDevice>;

/// Serves one channel, which Linux creates when it likes.
class Place {
 public:
  explicit Place(std::uintptr_t address) : memory_{reinterpret_cast<void*>(address)} {}

  void look() {
    if (!is_open_) {
      auto opened = Channel::Server::attach(memory_, Channel::bytes);
      is_open_ = static_cast<bool>(opened);
      if (is_open_) server_ = *opened;
      return;
    }
    echo::Message request;
    const icc::Result result = server_.try_take(request);
    if (result == icc::Result::ok) server_.answer(echo::answer(request));
    is_open_ = result != icc::Result::layout_changed;
  }

 private:
  void* memory_;
  bool is_open_ = false;
  Channel::Server server_;
};

}  // namespace

/// For vectors.S.
extern "C" {
extern void (*const interrupt_handler)();
void (*const interrupt_handler)() = [] { fail("an interrupt that nobody wanted"); };
}

extern "C" [[noreturn]] void firmware_main(unsigned /*entry_level*/) {
  Board::prepare(false);
  Board::Supervision::begin();
  Board::Supervision::enter(ControlState::running);
  Place places[] = {Place{echo::zynqmp_places[0]}, Place{echo::zynqmp_places[1]}};
  while (!Board::Supervision::is_wanted(ControlCommand::stop)) {
    for (Place& place : places) place.look();
    Board::Supervision::beat();
  }
  Board::Supervision::obey();
  Board::Supervision::enter(ControlState::stopped);
  for (;;) Board::power_off();
}

}  // namespace latenz::firmware
