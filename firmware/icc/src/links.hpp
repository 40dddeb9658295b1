// SPDX-License-Identifier: Apache-2.0
// A way for a message there and another one back, by each kind of channel. One side begins, the
// other answers; each opens the link with its role.
//
//   open(begins, memory)  both sides at once
//   trip(message)         who begins: sends the message, and waits for what comes back in it
//   take(message)         who answers: waits for a message
//   give(message)         who answers: sends one back
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "latenz/icc/exchange.hpp"
#include "latenz/icc/latest.hpp"
#include "latenz/icc/mailbox.hpp"
#include "latenz/icc/ring.hpp"
#include "meeting.hpp"
#include "platform.hpp"
#include "report.hpp"

namespace latenz::pair {

template <std::size_t size>
struct Message {
  std::uint8_t data[size];
};

/// Two channels of which each side creates the one it writes.
template <class Channel, class... ReaderIndex>
class TwoWays {
 protected:
  void open(bool begins, Area area, ReaderIndex... index) {
    void* out = at(area, begins ? 0 : 1);
    void* in = at(area, begins ? 1 : 0);
    auto created = Channel::Writer::create(out, channel_room, begins ? "there" : "back");
    writer_ = demand(created, "create");
    Meeting::step();
    auto attached = Channel::Reader::attach(in, channel_room, index...);
    reader_ = demand(attached, "attach");
    Meeting::step();
  }

  static void* at(Area area, std::size_t way) {
    return reinterpret_cast<void*>(area.begin + (way * channel_room));
  }

  Channel::Writer writer_;
  Channel::Reader reader_;
};

template <icc::WireType T, class P>
class MailboxLink : protected TwoWays<icc::Mailbox<T, P>> {
 public:
  static constexpr std::string_view name = "mailbox";

  void open(bool begins, Area area) { TwoWays<icc::Mailbox<T, P>>::open(begins, area); }

  void trip(T& message) {
    give(message);
    take(message);
  }
  void take(T& message) { demand(this->reader_.read(message), "read"); }
  void give(const T& message) { demand(this->writer_.write(message), "write"); }
};

template <icc::WireType T, class P>
class RingLink : protected TwoWays<icc::Ring<T, 2, 1, P>, std::uint32_t> {
 public:
  static constexpr std::string_view name = "ring";

  void open(bool begins, Area area) {
    TwoWays<icc::Ring<T, 2, 1, P>, std::uint32_t>::open(begins, area, 0);
  }

  void trip(T& message) {
    give(message);
    take(message);
  }
  void take(T& message) { demand(this->reader_.read(message), "read"); }
  void give(const T& message) { demand(this->writer_.write(message), "write"); }

  /// Whether it could be done now.
  bool try_take(T& message) { return done(this->reader_.try_read(message), icc::Result::empty); }
  bool try_give(const T& message) {
    return done(this->writer_.try_write(message), icc::Result::full);
  }

 private:
  static bool done(icc::Result result, icc::Result not_yet) {
    if (result == not_yet) return false;
    demand(result, "ring");
    return true;
  }
};

template <icc::WireType T, class P>
class LatestLink : protected TwoWays<icc::Latest<T, 1, P>, std::uint32_t> {
 public:
  static constexpr std::string_view name = "latest";

  void open(bool begins, Area area) {
    TwoWays<icc::Latest<T, 1, P>, std::uint32_t>::open(begins, area, 0);
  }

  void trip(T& message) {
    give(message);
    take(message);
  }
  void take(T& message) {
    while (!try_take(message)) P::Wait::pause();
  }
  bool try_take(T& message) { return this->reader_.poll(message) == icc::Freshness::updated; }
  void give(const T& message) { this->writer_.update(message); }
};

template <icc::WireType T, class P>
class ExchangeLink {
  using Channel = icc::Exchange<T, T, P>;

 public:
  static constexpr std::string_view name = "exchange";

  void open(bool begins, Area area) {
    void* const memory = reinterpret_cast<void*>(area.begin);
    if (begins) {
      auto created = Channel::Client::create(memory, channel_room, "there and back");
      client_ = demand(created, "create");
    }
    Meeting::step();
    if (!begins) {
      auto attached = Channel::Server::attach(memory, channel_room);
      server_ = demand(attached, "attach");
    }
    Meeting::step();
  }

  void trip(T& message) { demand(client_.call(message, message), "call"); }
  void take(T& message) { demand(server_.take_until(message, icc::Never{}), "take"); }
  void give(const T& message) { demand(server_.answer(message), "answer"); }

 private:
  Channel::Client client_;
  Channel::Server server_;
};

/// One word that both look at: the least that shared memory can do.
template <class P>
class RawLink {
  using Order = P::Order;

 public:
  /// The word may hold anything.
  void open(bool begins, Area area) {
    word_ = reinterpret_cast<std::uint32_t*>(area.begin + (2 * channel_room));
    if (begins) Order::store_release(*word_, 0);
    Meeting::step();
  }

  void trip() {
    give();
    take();
  }
  void take() {
    ++last_;
    while (Order::load_acquire(*word_) != last_) P::Wait::pause();
  }
  void give() {
    ++last_;
    Order::store_release(*word_, last_);
  }

 private:
  std::uint32_t* word_ = nullptr;
  std::uint32_t last_ = 0;  ///< both sides count both ways
};

/// The same as a link that carries nothing: the message stays where it is.
template <class T, class P>
class WordLink : RawLink<P> {
 public:
  static constexpr std::string_view name = "raw";

  void open(bool begins, Area area) { RawLink<P>::open(begins, {area.begin + 64, area.size - 64}); }
  void trip(const T& /*message*/) { RawLink<P>::trip(); }
  void take(const T& /*message*/) { RawLink<P>::take(); }
  void give(const T& /*message*/) { RawLink<P>::give(); }
};

}  // namespace latenz::pair
