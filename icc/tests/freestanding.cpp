// SPDX-License-Identifier: Apache-2.0
// One of each channel as firmware uses them: what its object asks of the target, and which
// instructions it has, is looked at by packaging/test_icc_freestanding.py.
#include <cstddef>
#include <cstdint>

#include "latenz/icc.hpp"

namespace icc = latenz::icc;

namespace firmware {

struct Command {
  float target[6];
  std::uint64_t at_ns;
};

struct State {
  double angle[6];
  std::uint8_t tag[3];
};

#if defined(__aarch64__) || defined(__arm__)
using Uncached = icc::ZynqMp;
using Device = icc::ZynqMpDevice;
#else
using Uncached = icc::Platform<icc::NonCacheable>;
using Device = icc::Platform<icc::DeviceWord>;
#endif

template <class P>
struct Channels {
  using Commands = icc::Mailbox<Command, P>;
  using Servo = icc::Exchange<Command, State, P>;
  using States = icc::Latest<State, 3, P>;
  using Trace = icc::Ring<State, 16, 1, P>;
  using Scans = icc::Pool<100, 8, State, P>;

  static icc::Result write(void* memory, std::size_t bytes, const Command& command) {
    auto writer = Commands::Writer::create(memory, bytes, "commands");
    return writer ? writer->write_until(command, icc::Checks{1000}) : icc::Result::timeout;
  }
  static icc::Result read(void* memory, std::size_t bytes, Command& command) {
    auto reader = Commands::Reader::attach(memory, bytes);
    return reader ? reader->read_until(command, icc::Checks{1000}) : icc::Result::timeout;
  }
  static icc::Result send(void* memory, std::size_t bytes, const State& state) {
    auto writer = Scans::Writer::create(memory, bytes, "scans");
    return writer ? writer->write_until({&state, 1}, icc::Checks{1000}) : icc::Result::timeout;
  }
  static icc::Result receive(void* memory, std::size_t bytes, State (&states)[100]) {
    auto reader = Scans::Reader::attach(memory, bytes);
    std::size_t count = 0;
    return reader ? reader->read_until(states, count, icc::Checks{1000}) : icc::Result::timeout;
  }
  static icc::Result call(void* memory, std::size_t bytes, const Command& command, State& state) {
    auto client = Servo::Client::create(memory, bytes, "servo");
    return client ? client->call_until(command, state, icc::Checks{1000}) : icc::Result::timeout;
  }
  static icc::Result serve(void* memory, std::size_t bytes) {
    auto server = Servo::Server::attach(memory, bytes);
    if (!server) {
      return icc::Result::timeout;
    }
    return server->serve_until([](const Command&) { return State{}; }, icc::Checks{1000});
  }
  static void update(void* memory, std::size_t bytes, const State& state) {
    if (auto writer = States::Writer::create(memory, bytes, "states")) {
      writer->update(state);
    }
  }
  static bool look(void* memory, std::size_t bytes, State& state) {
    auto reader = States::Reader::attach(memory, bytes, 2);
    return reader && reader->read_latest(state);
  }
  static icc::Result trace(void* memory, std::size_t bytes, const State& state) {
    auto writer = Trace::Writer::create(memory, bytes, "trace");
    return writer ? writer->try_write(state) : icc::Result::timeout;
  }
  static icc::Result follow(void* memory, std::size_t bytes, State& state) {
    auto reader = Trace::Reader::attach(memory, bytes, 0);
    return reader ? reader->try_read(state) : icc::Result::timeout;
  }
  static icc::Result observe(void* memory, std::size_t bytes, State& state) {
    auto observer = Trace::Observer::attach(memory, bytes);
    return observer ? observer->read_latest(state) : icc::Result::timeout;
  }
};

}  // namespace firmware

template struct firmware::Channels<icc::Platform<>>;
template struct firmware::Channels<firmware::Uncached>;
template struct firmware::Channels<firmware::Device>;

std::size_t explain(const icc::Problem& problem, char* text, std::size_t bytes) {
  return problem.describe(text, bytes);
}
