// SPDX-License-Identifier: Apache-2.0
// The two sides of a pool, as processes that may be killed; and its blocks, counted from outside.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "pairs.hpp"

namespace latenz::icc::kill {

/// A message is sent as one to six copies of it. The receiver holds each third one while it takes
/// the next, which it gives back first.
struct PoolPair {
  static constexpr const char* name = "pool";
  static constexpr std::uint32_t unhindered = never;
  static constexpr std::size_t longest = 6;
  static constexpr std::uint32_t smallest_blocks = 32;  // the largest are 2
  using Channel = of::Pool<longest, smallest_blocks, Message, P>;
  using Sender = Channel::Writer;
  using Receiver = Channel::Reader;

  static auto attach(void* memory) { return Receiver::attach(memory, Channel::bytes); }

  static Result send(Sender& sender, const Message& message, Deadline deadline, bool forever) {
    std::array<Message, longest> copies{};
    copies.fill(message);
    const auto all = std::span<const Message>{copies}.first(copies_of(message));
    if (forever) return sender.write(all);
    if (!is_even(message)) return sender.write_until(all, deadline);
    std::span<Message> place;
    const Result lent = sender.loan_until(all.size(), place, deadline);
    if (lent == Result::ok) {
      MortalMemory::write(place.data(), all.data(), all.size_bytes());
      sender.publish();
    }
    return lent;
  }

  static Result receive(Receiver& receiver, Message& message, Deadline deadline, bool forever) {
    if (forever) {
      std::array<Message, longest> copies{};
      std::size_t count = 0;
      const Result read = receiver.read(copies, count);
      if (read == Result::ok) message = one_of(std::span{copies}.first(count));
      return known(read);
    }
    std::span<const Message> place;
    const Result taken = receiver.take_until(place, deadline);
    if (taken != Result::ok) return known(taken);
    message = read_in_place(place);
    if (held.empty() && message.number % 3 == 0) {
      held = place;
      return Result::ok;
    }
    const bool given_back = receiver.release(place) == Result::ok;
    return given_back && gave_held_back(receiver) ? Result::ok : Result::layout_changed;
  }

  /// Blocks that are not free, beyond those of messages on their way or held: none, or they leaked.
  static std::uint64_t leaked(const void* memory) {
    const auto* words = static_cast<const std::uint32_t*>(memory);
    const auto word = [&](std::size_t offset, std::size_t i) { return words[offset / 4 + i]; };
    std::uint64_t taken = 0;
    std::uint64_t in_use = 0;
    for (std::size_t block = 0; block < plan.blocks; ++block) {
      const std::uint32_t state = word(plan.states, block);
      taken += state % 2;
      in_use += state != word(plan.tickets, block) ? 1 : 0;
    }
    const std::uint64_t wanted = word(plan.head, 0) - word(plan.taken, 0) + taken;
    return in_use - std::min(in_use, wanted) + (taken > 1 ? taken - 1 : 0);
  }

 private:
  static constexpr detail::PoolPlan plan =
      detail::plan_pool(detail::data_offset(detail::fields_of<Message>.size(), 2),
                        longest * sizeof(Message), smallest_blocks);

  static std::size_t copies_of(const Message& message) { return 1 + message.number % longest; }

  /// What all copies agree on; otherwise a message that is not whole.
  static Message one_of(std::span<const Message> copies) {
    if (copies.empty()) return {.number = 0, .epoch = 0, .checksum = 1, .fill = {}};
    Message one = copies.front();
    const auto same = [&one](const Message& copy) {
      return copy.is_whole() && copy.number == one.number && copy.epoch == one.epoch;
    };
    if (copies.size() != copies_of(one) || !std::ranges::all_of(copies, same)) ++one.checksum;
    return one;
  }
  static Message read_in_place(std::span<const Message> place) {
    std::array<Message, longest> copies{};
    MortalMemory::read(copies.data(), place.data(), place.size_bytes());
    return one_of(std::span<const Message>{copies}.first(place.size()));
  }
  /// It has stayed as it was, and is given back.
  static bool gave_held_back(Receiver& receiver) {
    if (held.empty()) return true;
    const Message message = read_in_place(held);
    const bool whole = message.is_whole() && message.number % 3 == 0;
    return receiver.release(std::exchange(held, {})) == Result::ok && whole;
  }
  /// `busy` would be a message that none has sent.
  static Result known(Result result) {
    return result == Result::busy ? Result::layout_changed : result;
  }

  static inline std::span<const Message> held;  ///< of this process
};

}  // namespace latenz::icc::kill
