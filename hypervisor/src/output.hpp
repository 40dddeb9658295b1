// SPDX-License-Identifier: Apache-2.0
// What the hypervisor tells the host, in frames on the board's console.
#pragma once

#include <cstdint>
#include <string_view>

#include "aarch64/console.hpp"
#include "latenz/frame_sender.hpp"
#include "latenz/text.hpp"

namespace latenz::hypervisor {

using Output = FrameSender<void (*)(std::string_view)>;

inline Output& output() {
  constexpr std::uint8_t number = 3;  // 0 to 2: firmware, Linux, Xen's Dom0
  static Output sender(Console::print, number);
  return sender;
}

/// A file of the run's folder, sent in pieces.
class File {
 public:
  static void begin(std::string_view name) {
    const auto length = static_cast<char>(name.size());
    Text<32> head;
    add(head.add({&length, 1}).add(name).view());
  }

  static void add(std::string_view piece) {
    output().bytes(FrameKind::file,
                   {reinterpret_cast<const std::uint8_t*>(piece.data()), piece.size()}, true);
  }

  static void end() { output().bytes(FrameKind::file, {}); }
};

}  // namespace latenz::hypervisor
