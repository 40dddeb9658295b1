// SPDX-License-Identifier: Apache-2.0
#include "task.hpp"

#include "parameters.hpp"
#include "rpmsg_peer.hpp"
#include "side.hpp"

namespace latenz::pair {
namespace {

constexpr std::array<char, 8> magic = {'L', 'A', 'T', 'E', 'N', 'Z', 'I', 'C'};

/// Those whose waiting calls can sleep.
constexpr bool has_doorbell(Through through) {
  return through == Through::mailbox || through == Through::exchange || through == Through::ring ||
         through == Through::rpmsg;
}

constexpr Task as_built() {
  Task block{
      .magic = magic,
      .version = Task::current_version,
      .size = sizeof(Task),
      .kind = Kind::measure,
      .through = Through::exchange,
      .bytes = 8,
      .samples = 1000,
      .warm_up = 10,
      .memory = Memory::ocm,
      .direction = Direction::there,
      .load = Load::none,
      .seed = 1,
      .restarts = 0,
      .wait = Wait::poll,
      .crc = 0,
  };
  block.crc = block.expected_crc();
  return block;
}

/// All that the firmware's output wants to know of its parameters.
constexpr firmware::Parameters only_sender() {
  firmware::Parameters known{};
  known.sender = Side::sender;
  return known;
}

std::string_view problem_of_measurement(const Task& asked) {
  const bool is_power = asked.bytes != 0 && (asked.bytes & (asked.bytes - 1)) == 0;
  if (!is_power || asked.bytes > 4096) return "task bytes: not a power of two up to 4096";
  if (asked.through == Through::rpmsg && asked.bytes > peer::rpmsg_payload_bytes)
    return "task bytes: more than the 496 that a buffer of rpmsg carries";
  if (asked.wait == Wait::doorbell && !has_doorbell(asked.through))
    return "task wait: nobody waits for a doorbell there";
  if (asked.wait == Wait::doorbell && asked.bytes != 8 && asked.bytes != 64 && asked.bytes != 256)
    return "task bytes: by doorbell 8, 64 or 256";
  if (asked.samples > Task::max_samples || asked.warm_up > Task::max_samples - asked.samples)
    return "task samples: more than 100000 with warm-up";
  return {};
}

}  // namespace

// Volatile: the host changes it after the compiler has seen it.
extern "C" {
[[gnu::section(".parameters"), gnu::used]] constinit const volatile Task task_block = as_built();
}

const Task& task() { return const_cast<const Task&>(task_block); }

std::string_view Task::problem() const {
  if (magic != pair::magic || size != sizeof(Task)) return "task block: not found";
  if (version != current_version) return "task block: not of version 2";
  if (crc != expected_crc()) return "task block: wrong checksum";
  if (kind > Kind::restart) return "task kind: not 0 to 3";
  if (through > Through::rpmsg) return "task through: not 0 to 6";
  if (memory > Memory::tcm) return "task memory: not 0 to 3";
  if (direction > Direction::back) return "task direction: not 0 or 1";
  if (load > Load::memory) return "task load: not 0 to 2";
  if (restarts > 1) return "task restarts: not 0 or 1";
  if (wait > Wait::doorbell) return "task wait: not 0 or 1";
  if (samples < 1) return "task samples: 0";
  return kind == Kind::measure ? problem_of_measurement(*this) : std::string_view{};
}

}  // namespace latenz::pair

namespace latenz::firmware {

const Parameters& parameters() {
  static constexpr Parameters known = pair::only_sender();
  return known;
}

}  // namespace latenz::firmware
