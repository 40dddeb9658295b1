// SPDX-License-Identifier: Apache-2.0
// One way of sending a message to another process and back, as both processes run it.
//
// A link is a class with these members:
//   using Message            what goes there and comes back
//   using Resources          what is taken before the process splits, NoResources if nothing
//   Link(memory, side, resources)  opens it: the side that asks first, then the other
//   call(message, reply)     sends, and waits for the reply
//   serve(received)          waits for a message, calls `received()`, sends the message back
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "intercore_plan.hpp"
#include "intercore_stamps.hpp"
#include "latenz/icc/wait.hpp"

namespace latenz::probe {

/// Shared memory of a link: as much for the way there as for the way back.
inline constexpr std::size_t link_bytes = 128UL * 1024;

enum class LinkSide : std::uint8_t { asking, answering };

/// What goes there and comes back; whole words where it has any, as in real messages.
template <std::size_t size>
struct Message {
  using Element =
      std::conditional_t<size % sizeof(std::uint32_t) == 0, std::uint32_t, std::uint8_t>;
  Element elements[size / sizeof(Element)];
};

struct NoResources {};

struct Signal {};  ///< a message without content

/// Content that differs from message to message and from place to place.
template <std::size_t size>
void fill(Message<size>& message, std::uint32_t number) {
  using Element = Message<size>::Element;
  std::uint32_t value = number * 2'654'435'761U;  // odd: even a byte differs from the one before
  for (Element& element : message.elements) {
    element = static_cast<Element>(value);
    value += 0x9E37'79B9U;
  }
}
inline void fill(Signal& /*message*/, std::uint32_t /*number*/) {}

template <std::size_t size>
[[nodiscard]] bool same(const Message<size>& one, const Message<size>& other) {
  return std::memcmp(&one, &other, size) == 0;
}
[[nodiscard]] inline bool same(const Signal& /*one*/, const Signal& /*other*/) { return true; }

/// Stamps of a message's way there and back.
struct Trip {
  std::int64_t begin;
  std::int64_t end;
};

/// What the asking side keeps from block to block.
struct Asking {
  Stamps stamps;
  std::uint32_t number = 0;   ///< of the message sent last
  std::uint64_t damaged = 0;  ///< messages that did not come back as they were
};

class Case {
 public:
  Case() = default;
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  virtual ~Case() = default;

  /// Opens the link in this process. Throws `Failure`.
  virtual void open(std::span<std::byte> memory, LinkSide side) = 0;

  /// Sends a message for each trip; returns how many before `stop` was set. Nothing between the
  /// stamps of a trip but the call itself.
  virtual std::size_t ask(std::span<Trip> trips, Asking& asking,
                          const std::atomic<std::uint32_t>& stop) = 0;

  /// Answers as many messages.
  virtual void answer(std::size_t count) = 0;

  /// The same, stamping the arrival of each.
  virtual void answer(std::span<std::int64_t> arrivals, const Stamps& stamps) = 0;
};

template <class Link>
class CaseOf final : public Case {
 public:
  void open(std::span<std::byte> memory, LinkSide side) override {
    link_ = std::make_unique<Link>(memory, side, resources_);
  }

  std::size_t ask(std::span<Trip> trips, Asking& asking,
                  const std::atomic<std::uint32_t>& stop) override {
    Link& link = *link_;
    typename Link::Message message{};
    typename Link::Message reply{};
    std::size_t done = 0;
    for (Trip& trip : trips) {
      if (stop.load(std::memory_order_relaxed) != 0) {
        break;
      }
      fill(message, ++asking.number);
      trip.begin = asking.stamps.begin();
      link.call(message, reply);
      trip.end = asking.stamps.end();
      asking.damaged += same(message, reply) ? 0 : 1;
      ++done;
    }
    return done;
  }

  void answer(std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) {
      link_->serve([] {});
    }
  }

  void answer(std::span<std::int64_t> arrivals, const Stamps& stamps) override {
    for (std::int64_t& arrival : arrivals) {
      std::int64_t stamp = 0;
      link_->serve([&] { stamp = stamps.end(); });
      arrival = stamp;
    }
  }

 private:
  Link::Resources resources_;
  std::unique_ptr<Link> link_;
};

/// Waits as the command line wants: chosen while the program runs, since each link is compiled for
/// thirteen sizes already.
struct ChosenWait : icc::Spin {
  static inline Waiting chosen = Waiting::pause;

  static void pause() noexcept {
    if (chosen == Waiting::pause) {
      icc::Pause::pause();
    }
  }
};

/// The case of a link template for messages of `bytes`, a power of two.
template <template <std::size_t> class Link>
std::unique_ptr<Case> case_of_size(std::size_t bytes) {
  std::unique_ptr<Case> found;
  const auto take = [&]<std::size_t size> {
    if (bytes == size) {
      found = std::make_unique<CaseOf<Link<size>>>();
    }
  };
  const auto look = [&]<std::size_t... exponent>(std::index_sequence<exponent...>) {
    (take.template operator()<std::size_t{1} << exponent>(), ...);
  };
  look(std::make_index_sequence<std::bit_width(most_message_bytes)>{});
  return found;
}

/// The raw limit: one word that both sides poll, even for one and odd for the other.
[[nodiscard]] std::unique_ptr<Case> raw_case();

/// A channel of latenz::icc, or the raw limit.
[[nodiscard]] std::unique_ptr<Case> channel_case(Through through, std::size_t bytes);

/// Something else that Linux or C++ programmers use. What the kernel has to provide is taken now,
/// before the process splits in two. Throws `Failure` if it does not.
[[nodiscard]] std::unique_ptr<Case> peer_case(Through through, std::size_t bytes);

}  // namespace latenz::probe
