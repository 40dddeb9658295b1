// SPDX-License-Identifier: Apache-2.0
// The same as torture_languages.c in C++: torture_languages CHANNEL first|second FILE MESSAGES; on
// a board (TORTURE_ON_BOARD) the other side of it. Compiled with SLEEPS, sides wait asleep; with
// SLEEPS_BY_FD too, by eventfds, which come through the socket that is standard input.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#ifdef TORTURE_ON_BOARD
#include "latenz/board.hpp"
#else
#include "endless.hpp"
#include "latenz/icc/linux_memory.hpp"
#include "patient.hpp"
#endif
#include "robot.hpp"

namespace {

using namespace latenz::icc;
using robot::State;

#ifdef TORTURE_ON_BOARD
/// Never takes a silent peer for gone.
struct Patient : Pause {
  static constexpr std::uint32_t silent_beats = 0xFFFF'FFFF;
};
using P = Platform<NonCacheable, ArmSystemOrder, Patient>;

class Part {
 public:
  Part(std::byte* begin, std::size_t size) : begin_{begin}, size_{size} {}
  [[nodiscard]] std::byte* data() const { return begin_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::byte* begin_;
  std::size_t size_;
};
const Part* memory = nullptr;
[[noreturn]] void give_up() {
  latenz::board::print("cannot create");
  for (;;) Patient::pause();
}
#else
#ifdef SLEEPS_BY_FD    // until it is woken: one wake-up that is lost, and it stands still
using Wait = latenz::icc::tests::SleepEndlessByEventFd;
#elif defined(SLEEPS)  // until it is woken: one wake-up that is lost, and it stands still
using Wait = latenz::icc::tests::SleepEndless;
#else
using Wait = latenz::icc::tests::Patient;
#endif
using P = Platform<Coherent, StandardOrder, Wait>;
const LinuxMemory* memory = nullptr;
[[noreturn]] void give_up() { std::exit(2); }
#endif

#ifdef SLEEPS_BY_FD
/// Of any channel with two sides, which all have as many.
template <class Channel>
const EventFds<Channel>& bells(bool creates) {
  static const auto all = [creates] {
    auto made = creates ? EventFds<Channel>::create() : EventFds<Channel>::receive(0);
    if (!made || (creates && !made.send(0))) std::exit(3);
    return made;
  }();
  return all;
}
#endif

std::uint32_t errors = 0;
std::uint32_t messages = 0;

void require(bool right) { errors += right ? 0 : 1; }

State state_of(std::uint32_t number) {
  State state;
  std::memset(&state, 0, sizeof state);  // padding, which not all languages copy
  std::memset(&state, static_cast<int>(number % 251U), offsetof(State, name) + sizeof state.name);
  state.time_ns = number;
  return state;
}
void check(const State& got) {
  const State wanted = state_of(static_cast<std::uint32_t>(got.time_ns));
  require(std::memcmp(&got, &wanted, sizeof wanted) == 0);
}

template <class Channel, class Endpoint>
Endpoint ready(Endpoint endpoint, [[maybe_unused]] bool creates) {
#ifdef SLEEPS_BY_FD
  endpoint.use_bells(bells<Channel>(creates));
#endif
  return endpoint;
}
template <class Channel, class Endpoint>
Endpoint created(const char* name) {
  auto opened = Endpoint::create(memory->data(), memory->size(), name);
  if (!opened) give_up();
  return ready<Channel>(*opened, true);
}
template <class Channel, class Endpoint, class... Index>
Endpoint attached(Index... index) {
  return ready<Channel>(*Endpoint::attach_until(memory->data(), memory->size(), Never{}, index...),
                        false);
}
template <class Call>
void insist(Call call) {
  while (call() != Result::ok) {
  }
}

void command(bool first) {
  using Channel = robot::command<P>;
  if (first) {
    auto writer = created<Channel, Channel::Writer>("command");
    for (std::uint32_t n = 1; n <= messages; ++n) {
      if (robot::Target* place = nullptr; n % 5 == 0 && writer.try_loan(place) == Result::ok) {
        *place = {.angle = static_cast<float>(n), .cycle = n};
        writer.publish();
        continue;
      }
      insist([&] { return writer.write({.angle = static_cast<float>(n), .cycle = n}); });
    }
    return;
  }
  auto reader = attached<Channel, Channel::Reader>();
  for (std::uint32_t n = 1; n <= messages; ++n) {
    robot::Target target{};
    insist([&] { return reader.read(target); });
    require(target.cycle == n && target.angle == static_cast<float>(n));
  }
}

void servo(bool first) {
  using Channel = robot::servo<P>;
  if (first) {
    auto client = created<Channel, Channel::Client>("servo");
    for (std::uint32_t n = 1; n <= messages; ++n) {
      robot::Reached reached{};
      insist([&] { return client.call({.angle = static_cast<float>(n), .cycle = n}, reached); });
      require(reached.cycle == n + 1 && reached.angle == static_cast<float>(n));
    }
    return;
  }
  auto server = attached<Channel, Channel::Server>();
  for (std::uint32_t n = 1; n <= messages; ++n) {
    insist([&] {
      return server.serve([&](const robot::Target& target) {
        require(target.cycle == n);
        return robot::Reached{.angle = target.angle, .cycle = n + 1};
      });
    });
  }
}

void trace(bool first) {
  using Channel = robot::trace<P>;
  if (first) {
    auto writer = created<Channel, Channel::Writer>("trace");
    auto& reader =
        latenz::icc::detail::Header<P>{memory->data()}.side(Channel::shape.field_count[0], 1);
    while (P::Order::load_acquire(reader.presence.epoch) == 0) P::Wait::pause();
    for (std::uint32_t n = 1; n <= messages; ++n) {
      insist([&] { return writer.write(state_of(n)); });
    }
    return;
  }
  auto reader = attached<Channel, Channel::Reader>(std::uint32_t{0});
  std::array<State, 3> got;
  for (std::uint32_t n = 1; n <= messages;) {
    std::size_t count = 0;
    if (n % 2 == 0) {
      const State* place = nullptr;
      insist([&] { return reader.take_until(place, Never{}); });
      check(*place);
      require(place->time_ns == n++);
      require(reader.release() == Result::ok);
    } else if (reader.try_read_some(got, count) != Result::ok) {
      P::Wait::pause();
    }
    for (const State& each : std::span(got).first(count)) {
      check(each);
      require(each.time_ns == n++);
    }
  }
}

void state(bool first) {
  using Channel = robot::state<P>;
  if (first) {
    auto writer = created<Channel, Channel::Writer>("state");
    for (std::uint32_t n = 1; n <= messages; ++n) writer.update(state_of(n));
    return;
  }
  auto reader = attached<Channel, Channel::Reader>(std::uint32_t{1});
  State got = state_of(0);
  std::uint64_t last = 0;
  while (got.time_ns < messages) {
    if (reader.poll(got) == Freshness::updated) {
      check(got);
      require(got.time_ns > last);
      last = got.time_ns;
    } else {
      P::Wait::pause();
    }
  }
}

}  // namespace

#ifdef TORTURE_ON_BOARD
int main() {
  constexpr std::size_t half = latenz::board::shared_bytes / 2;
  constexpr void (*channels[])(bool) = {command, servo, state, trace};
  auto* begin = static_cast<std::byte*>(latenz::board::shared_memory);
  messages = TORTURE_MESSAGES;
  for (std::uint32_t way = 0; way < 2; ++way, begin += half) {
    for (std::size_t each = 0; each < 4; ++each) {
      const Part part{begin + (each * 0x1000), half - (each * 0x1000)};
      memory = &part;
      channels[each](way == 0);
    }
    latenz::board::print(latenz::board::Line().add(errors).add(" wrong way ").add(way));
  }
  return errors == 0 ? 0 : 1;
}
#else
int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string_view channel = argv[1];
  const bool first = std::string_view(argv[2]) == "first";
  const LinuxMemory mapped = LinuxMemory::file(argv[3]);
  if (!mapped) return 2;
  memory = &mapped;
  messages = static_cast<std::uint32_t>(std::strtoul(argv[4], nullptr, 10));
  if (channel == "command") command(first);
  if (channel == "servo") servo(first);
  if (channel == "trace") trace(first);
  if (channel == "state") state(first);
  std::printf("%u errors\n", errors);
  return errors == 0 ? 0 : 1;
}
#endif
