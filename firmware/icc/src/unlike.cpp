// SPDX-License-Identifier: Apache-2.0
// Types that differ in one way from those of the channel's creator, and damaged memory: attaching
// must say what is wrong. Who begins creates; the other one attaches, and tells what it was told.
#include <iterator>

#include "latenz/icc/exchange.hpp"
#include "latenz/icc/latest.hpp"
#include "latenz/icc/mailbox.hpp"
#include "latenz/icc/ring.hpp"
#include "latenz/split_mix.hpp"
#include "meeting.hpp"
#include "platform.hpp"
#include "report.hpp"
#include "task.hpp"
#include "tasks.hpp"

namespace latenz::pair {
namespace {

enum class Mode : std::uint8_t { off, on };
enum class WideMode : std::uint16_t { off, on };

struct Motion {
  std::uint32_t number;
  std::int32_t position_um;
  std::int16_t speed[3];
  Mode mode;
  std::uint8_t flags;
  float torque;
  std::uint64_t time_ns;
};

struct Renamed {
  std::uint32_t number;
  std::int32_t position_nm;
  std::int16_t speed[3];
  Mode mode;
  std::uint8_t flags;
  float torque;
  std::uint64_t time_ns;
};

struct Swapped {
  std::uint32_t number;
  std::int32_t position_um;
  std::int16_t speed[3];
  std::uint8_t flags;
  Mode mode;
  float torque;
  std::uint64_t time_ns;
};

struct NoFloat {
  std::uint32_t number;
  std::int32_t position_um;
  std::int16_t speed[3];
  Mode mode;
  std::uint8_t flags;
  std::uint32_t torque;
  std::uint64_t time_ns;
};

struct OtherSign {
  std::uint32_t number;
  std::uint32_t position_um;
  std::int16_t speed[3];
  Mode mode;
  std::uint8_t flags;
  float torque;
  std::uint64_t time_ns;
};

struct OtherLength {
  std::uint32_t number;
  std::int32_t position_um;
  std::int16_t speed[2];
  Mode mode;
  std::uint8_t flags[3];
  float torque;
  std::uint64_t time_ns;
};

struct WiderEnumeration {
  std::uint32_t number;
  std::int32_t position_um;
  std::int16_t speed[3];
  WideMode mode;
  float torque;
  std::uint64_t time_ns;
};

struct SplitTime {
  std::uint32_t number;
  std::int32_t position_um;
  std::int16_t speed[3];
  Mode mode;
  std::uint8_t flags;
  float torque;
  std::uint32_t time_ns[2];
};

struct OneMore {
  std::uint32_t number;
  std::int32_t position_um;
  std::int16_t speed[3];
  Mode mode;
  std::uint8_t flags;
  float torque;
  std::uint64_t time_ns;
  std::uint64_t age_ns;
};

struct OneLess {
  std::uint32_t number;
  std::int32_t position_um;
  std::int16_t speed[3];
  Mode mode;
  std::uint8_t flags;
  float torque;
};

using Channel = icc::Exchange<Motion, std::uint32_t, Between>;
constexpr std::size_t room = 0x1000;

template <class Endpoint, class... Index>
void try_to_attach(std::string_view name, void* memory, Index... index) {
  const auto opened = Endpoint::attach(memory, room, index...);
  char text[200] = "accepted";
  if (!opened) opened.problem().describe(text, sizeof text);
  note(Line().add(name).add(": ").add(text));
}

template <class Request>
void try_type(std::string_view name, void* memory) {
  try_to_attach<typename icc::Exchange<Request, std::uint32_t, Between>::Server>(name, memory);
}

void try_unlike_types(void* memory) {
  try_type<Renamed>("renamed field", memory);
  try_type<Swapped>("swapped fields", memory);
  try_type<NoFloat>("integer for float", memory);
  try_type<OtherSign>("other sign", memory);
  try_type<OtherLength>("other array length", memory);
  try_type<WiderEnumeration>("wider enumeration", memory);
  try_type<SplitTime>("two words for one", memory);
  try_type<OneMore>("one field more", memory);
  try_type<OneLess>("one field less", memory);
  try_to_attach<icc::Exchange<Motion, std::int32_t, Between>::Server>("other reply", memory);
  try_to_attach<icc::Mailbox<Motion, Between>::Reader>("other kind", memory);
}

void try_unlike_channels(std::byte* memory) {
  try_to_attach<icc::Ring<Motion, 8, 1, Between>::Reader>("other slots", memory + room, 0U);
  try_to_attach<icc::Ring<Motion, 4, 2, Between>::Reader>("other readers", memory + room, 0U);
  try_to_attach<icc::Latest<Motion, 1, Between>::Reader>("no such reader", memory + (2 * room), 1U);
  try_to_attach<Channel::Server>("nothing there", memory + (3 * room));
  try_to_attach<Channel::Server>("not at a line", memory + 4);
}

/// Every word of the header in turn holds something else: all but these must be refused. The words
/// that do not matter are listed.
void try_damaged_words(std::byte* memory, std::uint32_t seed) {
  constexpr std::size_t words =
      icc::detail::sides_offset(Channel::shape.field_count[0] + Channel::shape.field_count[1]) /
      sizeof(std::uint32_t);
  SplitMix64 random(seed);
  Line accepted;
  accepted.add("accepted although damaged, words:");
  std::uint32_t refused = 0;
  auto* header = reinterpret_cast<volatile std::uint32_t*>(memory);
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint32_t right = header[i];
    bool harmless = true;
    const auto drawn = static_cast<std::uint32_t>(random.next());
    const std::uint32_t wrongs[] = {right ^ (1U << (drawn % 32)), ~right, 0, 0xFFFF'FFFF, drawn};
    for (const std::uint32_t wrong : wrongs) {
      if (wrong == right) continue;
      header[i] = wrong;
      Side::synchronise();
      if (!Channel::Server::attach(memory, room)) {
        harmless = false;
        ++refused;
      }
    }
    header[i] = right;
    if (harmless) accepted.add(" ").add(i);
  }
  note(accepted);
  note(Line().add("refused: ").add(refused));
}

/// Whatever lies there when a program starts.
void fill_with_garbage(std::byte* memory, std::uint32_t seed) {
  SplitMix64 random(seed);
  auto* words = reinterpret_cast<volatile std::uint32_t*>(memory);
  for (std::size_t i = 0; i < 4 * room / sizeof(std::uint32_t); ++i) {
    words[i] = static_cast<std::uint32_t>(random.next());
  }
}

void create_all(std::byte* memory) {
  auto exchange = Channel::Client::create(memory, room, "exchange");
  demand(exchange, "create exchange");
  auto ring = icc::Ring<Motion, 4, 1, Between>::Writer::create(memory + room, room, "ring");
  demand(ring, "create ring");
  auto latest =
      icc::Latest<Motion, 1, Between>::Writer::create(memory + (2 * room), room, "latest");
  demand(latest, "create latest");
}

}  // namespace

void meet_unlike() {
  const Task& wanted = task();
  const bool begins = Side::first == (wanted.direction == Direction::there);
  auto* memory = reinterpret_cast<std::byte*>(area_of(wanted.memory).begin);
  if (begins) {
    fill_with_garbage(memory, wanted.seed);
    create_all(memory);
    Meeting::step();
    Meeting::step();
    return;
  }
  Meeting::step();
  try_type<Motion>("the same", memory);
  try_unlike_types(memory);
  try_unlike_channels(memory);
  try_damaged_words(memory, wanted.seed);
  try_type<Motion>("the same again", memory);
  Meeting::step();
}

}  // namespace latenz::pair
