// SPDX-License-Identifier: Apache-2.0
// The words by which the two programs find each other, go step by step, and compare their clocks.
// They lie in on-chip memory, which may hold anything when the first program starts.
#pragma once

#include <cstdint>

#include "latenz/icc/order.hpp"
#include "places.hpp"
#include "side.hpp"

namespace latenz::pair {

/// A word that one side writes, alone in its line.
class Word {
 public:
  constexpr explicit Word(unsigned line) : line_(line) {}

  [[nodiscard]] std::uint32_t read() const { return Order::load_acquire(word()); }
  void write(std::uint32_t value) const { Order::store_release(word(), value); }

  /// Waits until the word has a value.
  void await(std::uint32_t value) const {
    while (read() != value) Side::give_way();
  }

 private:
  using Order = icc::ArmSystemOrder;

  [[nodiscard]] std::uint32_t& word() const {
    return *reinterpret_cast<std::uint32_t*>(meeting_place + (std::uintptr_t{line_} * 64));
  }

  unsigned line_;
};

/// A word of each side.
class Words {
 public:
  constexpr explicit Words(unsigned line)
      : own_(line + (Side::first ? 0 : 1)), other_(line + (Side::first ? 1 : 0)) {}

  [[nodiscard]] const Word& own() const { return own_; }
  [[nodiscard]] const Word& other() const { return other_; }

 private:
  Word own_;
  Word other_;
};

class Meeting {
 public:
  /// Returns once both programs are here. They may start in any order, and find words of earlier
  /// runs: the number of this run is one that no word has.
  static void begin() {
    if constexpr (Side::first) {
      std::uint32_t run = call.read() + 1;
      while (run == 0 || run == answer.read() || run == agreed.read()) ++run;
      call.write(run);
      answer.await(run);
      steps.own().write(0);
      agreed.write(run);
    } else {
      agreed.write(0);
      steps.own().write(0);
      while (true) {
        const std::uint32_t run = call.read();
        answer.write(run);
        if (run != 0 && agreed.read() == run) break;
        Side::give_way();
      }
    }
  }

  /// Waits until the other side has come to this step, too; steps follow each other.
  static void step() {
    const std::uint32_t next = steps.own().read() + 1;
    steps.own().write(next);
    while (static_cast<std::int32_t>(steps.other().read() - next) < 0) Side::give_way();
  }

  /// The number of this run, for words that outlast a restart of one side.
  static std::uint32_t run() { return agreed.read(); }

  static constexpr Words times{6};     ///< for clocks
  static constexpr Words marks{8};     ///< for clocks
  static constexpr Words stamps{10};   ///< when a message was seen
  static constexpr Words mortals{12};  ///< the run in which a side restarts; see restart.cpp
  static constexpr Words lives{14};    ///< its restarts
  static constexpr Words numbers{16};  ///< of letters
  static constexpr Words phases{18};   ///< of the task

 private:
  static constexpr Word call{0};
  static constexpr Word answer{1};
  static constexpr Word agreed{2};
  static constexpr Words steps{4};
};

}  // namespace latenz::pair
