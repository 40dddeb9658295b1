// SPDX-License-Identifier: Apache-2.0
// Measures a link: round trips by the clock of who begins, ways there by both clocks, and in turns
// with them round trips of a single word, which nothing between two processors can be faster than.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "clocks.hpp"
#include "links.hpp"
#include "meeting.hpp"
#include "report.hpp"
#include "task.hpp"

namespace latenz::pair {

struct Sample {
  std::uint32_t began;       ///< in ticks of who begins
  std::uint32_t round_trip;  ///< ticks
  std::uint32_t one_way;     ///< ticks, to when the message was whole in the other's memory
  std::uint32_t raw;         ///< ticks of a single word's round trip
};

/// Says what was measured; only who begins has something to say. `has_round_trip`: whether the way
/// back is as the way there.
void report(std::string_view link, std::span<const Sample> samples, bool has_round_trip);

/// Not cleared at the start: every sample is written before it is read.
extern Sample sample_store[Task::max_samples];

template <template <class, class> class LinkOf, class Message, class P = Between>
class Measurement {
  using Link = LinkOf<Message, P>;

 public:
  static void take(const Task& wanted) {
    static Measurement all;
    const bool begins = Side::first == (wanted.direction == Direction::there);
    const Area area = area_of(wanted.memory);
    all.raw_.open(begins, area);
    all.link_.open(begins, area);
    const std::uint32_t count = wanted.warm_up + wanted.samples;
    if (!begins) {
      all.answer(count);
      return;
    }
    all.begin(count);
    report(Link::name, {sample_store + wanted.warm_up, wanted.samples}, true);
  }

 private:
  void begin(std::uint32_t count) {
    std::fill(std::begin(message_.data), std::end(message_.data), std::uint8_t{0});
    for (std::uint32_t i = 0; i < count; ++i) {
      Sample& next = sample_store[i];
      next.began = Clocks::now();
      raw_.trip();
      const std::uint32_t trip_began = Clocks::now();
      next.raw = trip_began - next.began;
      mark(i);
      const std::uint32_t before = Clocks::now();
      link_.trip(message_);
      next.round_trip = Clocks::now() - before;
      demand_marked(i);
      mark(i + 1);
      const std::uint32_t sent = Clocks::now();
      link_.trip(message_);
      next.one_way = Clocks::own_time(Meeting::stamps.other().read()) - sent;
      demand_marked(i + 1);
    }
  }

  void answer(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      raw_.take();
      raw_.give();
      link_.take(message_);
      link_.give(message_);
      link_.take(message_);
      Meeting::stamps.own().write(Clocks::now());
      link_.give(message_);
    }
  }

  /// A message that comes back is the one that was sent: first and last byte tell.
  void mark(std::uint32_t number) {
    message_.data[0] = static_cast<std::uint8_t>(number);
    message_.data[sizeof message_.data - 1] = static_cast<std::uint8_t>(number);
  }

  void demand_marked(std::uint32_t number) const {
    const auto expected = static_cast<std::uint8_t>(number);
    if (message_.data[0] != expected || message_.data[sizeof message_.data - 1] != expected) {
      firmware::fail("another message came back than was sent");
    }
  }

  Link link_;
  RawLink<Between> raw_;
  Message message_;
};

/// Sizes of messages, as powers of two.
template <std::size_t... exponent>
using Sizes = std::index_sequence<exponent...>;
using AllSizes = std::make_index_sequence<13>;  ///< 1, 2, 4, ... 4096

/// Calls `take` of the measurement with messages of the wanted size.
template <template <class, class> class Link, class P = Between, std::size_t... exponent>
void measure_link(const Task& wanted, Sizes<exponent...> /*sizes*/) {
  ((wanted.bytes == std::size_t{1} << exponent
        ? Measurement<Link, Message<std::size_t{1} << exponent>, P>::take(wanted)
        : void()),
   ...);
}

void measure_raw(const Task& wanted);
void measure_mailbox(const Task& wanted);
void measure_exchange(const Task& wanted);
void measure_latest(const Task& wanted);
void measure_ring(const Task& wanted);
void measure_interrupt(const Task& wanted);
void measure_rpmsg(const Task& wanted);

}  // namespace latenz::pair
