// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "failure.hpp"
#include "intercore_case.hpp"
#include "latenz/icc/exchange.hpp"
#include "latenz/icc/latest.hpp"
#include "latenz/icc/mailbox.hpp"
#include "latenz/icc/ring.hpp"

namespace latenz::probe {
namespace {

using Platform = icc::Platform<icc::Coherent, icc::StandardOrder, ChosenWait>;

/// The endpoint, or a `Failure` that says why there is none.
template <class Endpoint>
Endpoint required(icc::Opened<Endpoint> opened) {
  if (!opened) {
    std::array<char, 256> text{};
    opened.problem().describe(text.data(), text.size());
    throw Failure(std::string("the channel cannot be opened: ") + text.data());
  }
  return *opened;
}

/// An endpoint in half of the link's memory: created by the side that asks, which comes first.
template <class Endpoint, class... Index>
Endpoint opened(std::span<std::byte> memory, std::size_t half, LinkSide side, Index... index) {
  const auto place = memory.subspan(half * (memory.size() / 2), memory.size() / 2);
  return required(side == LinkSide::asking
                      ? Endpoint::create(place.data(), place.size(), "latenz-intercore", index...)
                      : Endpoint::attach(place.data(), place.size(), index...));
}

/// Repeats a call until it succeeds: a peer that was not scheduled for long is not gone. If it is,
/// the watching process ends this one.
template <class Call>
void insist(Call call) {
  while (call() != icc::Result::ok) {
  }
}

class RawLink {
 public:
  using Message = Signal;
  using Resources = NoResources;

  RawLink(std::span<std::byte> memory, LinkSide /*side*/, const Resources& /*none*/)
      : word_(*reinterpret_cast<std::uint32_t*>(memory.data())) {}

  void call(const Message& /*message*/, Message& /*reply*/) {
    icc::StandardOrder::store_release(word_, ++value_);
    wait_for(++value_);
  }

  template <class Received>
  void serve(Received received) {
    wait_for(++value_);
    received();
    icc::StandardOrder::store_release(word_, ++value_);
  }

 private:
  void wait_for(std::uint32_t value) const {
    while (icc::StandardOrder::load_acquire(word_) != value) {
      ChosenWait::pause();
    }
  }

  std::uint32_t& word_;
  std::uint32_t value_ = 0;
};

/// Two channels of one kind, one in each direction, both with a writing and a reading endpoint.
template <class Channel, class... Index>
class TwoWays {
 public:
  TwoWays(std::span<std::byte> memory, LinkSide side, Index... index)
      : writer(opened<typename Channel::Writer>(memory, side == LinkSide::asking ? 0 : 1, side)),
        reader(opened<typename Channel::Reader>(memory, side == LinkSide::asking ? 1 : 0, side,
                                                index...)) {}

  typename Channel::Writer writer;
  typename Channel::Reader reader;
};

/// Channels that deliver every message: mailboxes and rings.
template <class Message_, class Ways>
class DeliveringLink {
 public:
  using Message = Message_;
  using Resources = NoResources;

  void call(const Message& message, Message& reply) {
    insist([&] { return ways_.writer.write(message); });
    insist([&] { return ways_.reader.read(reply); });
  }

  template <class Received>
  void serve(Received received) {
    Message message;
    insist([&] { return ways_.reader.read(message); });
    received();
    insist([&] { return ways_.writer.write(message); });
  }

 protected:
  template <class... Index>
  explicit DeliveringLink(std::span<std::byte> memory, LinkSide side, Index... index)
      : ways_(memory, side, index...) {}

 private:
  Ways ways_;
};

template <std::size_t size>
using Mailboxes = TwoWays<icc::Mailbox<Message<size>, Platform>>;

template <std::size_t size>
class MailboxLink : public DeliveringLink<Message<size>, Mailboxes<size>> {
 public:
  MailboxLink(std::span<std::byte> memory, LinkSide side, const NoResources& /*none*/)
      : DeliveringLink<Message<size>, Mailboxes<size>>(memory, side) {}
};

/// Rings of eight slots with one lossless reader.
template <std::size_t size>
using Rings = TwoWays<icc::Ring<Message<size>, 8, 1, Platform>, std::uint32_t>;

template <std::size_t size>
class RingLink : public DeliveringLink<Message<size>, Rings<size>> {
 public:
  RingLink(std::span<std::byte> memory, LinkSide side, const NoResources& /*none*/)
      : DeliveringLink<Message<size>, Rings<size>>(memory, side, std::uint32_t{0}) {}
};

template <std::size_t size>
class ExchangeLink {
 public:
  using Message = probe::Message<size>;
  using Resources = NoResources;

  ExchangeLink(std::span<std::byte> memory, LinkSide side, const Resources& /*none*/) {
    if (side == LinkSide::asking) {
      client_ = opened<typename Channel::Client>(memory, 0, side);
    } else {
      server_ = opened<typename Channel::Server>(memory, 0, side);
    }
  }

  void call(const Message& message, Message& reply) {
    insist([&] { return client_.call(message, reply); });
  }

  template <class Received>
  void serve(Received received) {
    insist([&] {
      return server_.serve([&](const Message& message) {
        received();
        return message;
      });
    });
  }

 private:
  using Channel = icc::Exchange<Message, Message, Platform>;

  typename Channel::Client client_;
  typename Channel::Server server_;
};

template <std::size_t size>
class LatestLink {
 public:
  using Message = probe::Message<size>;
  using Resources = NoResources;

  LatestLink(std::span<std::byte> memory, LinkSide side, const Resources& /*none*/)
      : values_(memory, side, 0) {}

  void call(const Message& message, Message& reply) {
    values_.writer.update(message);
    await(reply);
  }

  template <class Received>
  void serve(Received received) {
    Message message;
    await(message);
    received();
    values_.writer.update(message);
  }

 private:
  void await(Message& message) {
    while (values_.reader.poll(message) != icc::Freshness::updated) {
      ChosenWait::pause();
    }
  }

  TwoWays<icc::Latest<Message, 1, Platform>, std::uint32_t> values_;
};

}  // namespace

std::unique_ptr<Case> raw_case() { return std::make_unique<CaseOf<RawLink>>(); }

std::unique_ptr<Case> channel_case(Through through, std::size_t bytes) {
  switch (through) {
    case Through::raw:
      return raw_case();
    case Through::mailbox:
      return case_of_size<MailboxLink>(bytes);
    case Through::exchange:
      return case_of_size<ExchangeLink>(bytes);
    case Through::ring:
      return case_of_size<RingLink>(bytes);
    case Through::latest:
      return case_of_size<LatestLink>(bytes);
    default:
      return nullptr;
  }
}

}  // namespace latenz::probe
