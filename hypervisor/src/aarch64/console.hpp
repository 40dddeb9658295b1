// SPDX-License-Identifier: Apache-2.0
// The board's UART, shared: whole lines of partitions and of the hypervisor about them go into a
// ring of each partition. Whoever has time sends some characters, as many as the UART takes at
// once; no CPU waits for another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace latenz::hypervisor {

class Console {
 public:
  /// Characters that are sent at once, at most: an interrupt may come.
  static constexpr unsigned at_once = 4;

  /// Lets the board's UART send.
  static void start();

  /// Whether a line of any length has room in a partition's ring. By the CPU that executes it.
  static bool has_room(std::size_t partition);

  /// Says whose the lines of a ring are. The name lives on.
  static void name(std::size_t partition, std::string_view name);

  /// A line of a partition, its name before it: begun if there is room, gone on with, ended; then
  /// it may be sent. By the CPU that executes the partition.
  [[nodiscard]] static bool begin_line(std::size_t partition);
  static void add(std::size_t partition, char character);
  static void end_line(std::size_t partition);

  /// Counts one that had no room.
  static void lose_line(std::size_t partition);

  /// Tells of a fault of a partition, between its lines. It is worded when it is sent, by whoever
  /// has time for that. By the CPU that executes the partition.
  ///
  /// @param what  lives on
  static void tell_fault(std::size_t partition, const char* what, std::uint64_t program_counter,
                         std::uint64_t address);

  /// Lines of a partition that were dropped.
  static std::uint32_t lost(std::size_t partition);

  /// Sends at most so many characters; none if the UART takes none, or another CPU is at it.
  ///
  /// @return whether something may be left
  static bool pump(unsigned most);

  /// From now on only the caller sends: what is left, then what it prints. Only when nothing has to
  /// be in time any more.
  static void take();
  static void drain();
  static void print(std::string_view line);
};

}  // namespace latenz::hypervisor
