// SPDX-License-Identifier: Apache-2.0
// The two sides of each kind of channel, as processes that may be killed: what they call, and what
// they hold each other's answers against.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "latenz/icc.hpp"
#include "latenz/icc/linux_memory.hpp"
#include "ledger.hpp"
#include "mortal.hpp"
#include "way.hpp"

namespace latenz::icc::kill {

constexpr std::int64_t deadline_ns = 2'000'000;

using Clock = MonotonicClock;
using Deadline = Until<Clock>;

inline void print(std::FILE* file, const std::string& text) {
  if (std::fputs(text.c_str(), file) == EOF || std::fflush(file) != 0) std::exit(2);
}

[[noreturn]] inline void give_up(const char* what) {
  print(stderr, std::string("latenz-icc-kill: ") + what + "\n");
  std::exit(2);
}

/// What a process has in hand: the test's memory, the channel's, and whether it is the survivor.
struct Party {
  Ledger* ledger;
  const char* name;
  bool survives;
  const void* bells;  ///< `Bells<Channel>`

  [[nodiscard]] bool goes_on() const { return ledger->stop == 0; }

  /// One call, judged by its answer. `call` takes the deadline, and answers a Result; with
  /// `forever` it has none, and only the peer's silence ends it.
  template <class Call>
  [[nodiscard]] Result judged(bool forever, Call call) const {
    const std::uint64_t death = ledger->death;
    const std::int64_t begin_ns = Clock::now_ns();
    const Result result = call(Deadline{begin_ns + deadline_ns});
    const std::int64_t excess_ns = Clock::now_ns() - begin_ns - deadline_ns;
    if (!survives) {
      return result;
    }
    const bool in_vain = result == Result::timeout || result == Result::peer_gone;
    if (result == Result::ok) ++ledger->survivors_successes;
    if (result == Result::peer_restarted) ++ledger->restarts_told;
    if (in_vain && death == 0 && ledger->death == 0) ++ledger->waited_in_vain;
    if (death != 0 && !forever) {
      ledger->note_excess(static_cast<std::uint64_t>(excess_ns > 0 ? excess_ns : 0));
    }
    if (death != 0 && in_vain) ledger->reported = death;
    return result;
  }
};

/// The receiving side's rules, besides those of the ledger.
template <class Channel>
class Inspector {
 public:
  Inspector(const Party& party, void* memory) : ledger_{party.ledger}, memory_{memory} {}

  /// Incarnation of the sender at this moment.
  [[nodiscard]] std::uint32_t senders_epoch() const {
    const auto& counts = Channel::shape.field_count;
    return MortalOrder::load_acquire(
        detail::Header<P>{memory_}.side(counts[0] + counts[1], 0).presence.epoch);
  }
  void restarted() { known_epoch_ = senders_epoch(); }
  void attached_anew() {
    restarted();
    is_first_ = true;
  }

  void receive(const Message& message, std::uint32_t epoch_before_call) {
    if (!message.is_whole()) ++ledger_->torn;
    constexpr bool drops_stale =
        Channel::shape.kind == ChannelKind::mailbox || Channel::shape.kind == ChannelKind::exchange;
    if (drops_stale && message.epoch < epoch_before_call) ++ledger_->stale;
    if (known_epoch_ != 0 && message.epoch > known_epoch_) ++ledger_->unannounced;
    known_epoch_ = std::max(known_epoch_, message.epoch);
    ledger_->deliver(message.number, is_first_);
    is_first_ = false;
  }

 private:
  Ledger* ledger_;
  void* memory_;
  std::uint32_t known_epoch_ = 0;
  bool is_first_ = true;
};

template <class Opened>
auto opened_or_give_up(Opened opened) {
  if (!opened) {
    std::array<char, 200> line{};
    opened.problem().describe(line.data(), line.size());
    give_up(line.data());
  }
  return *opened;
}

constexpr std::uint32_t never = 0xFFFF'FFFF;

/// One call that waits, of an end that only has one that does not: C's lend and take no later.
template <class Call>
Result asked(Deadline deadline, Call call) {
  for (;;) {
    const Result result = call();
    if (result != Result::empty && result != Result::full) return result;
    if (deadline.expired()) return Result::timeout;
    wait_a_little();
  }
}
template <class Sender, class Place>
Result lend(Sender& sender, Place*& place, Deadline deadline) {
  if constexpr (requires { sender.loan_until(place, deadline); }) {
    return sender.loan_until(place, deadline);
  } else {
    return asked(deadline, [&] { return sender.try_loan(place); });
  }
}
template <class Receiver, class Place>
Result take(Receiver& receiver, const Place*& place, Deadline deadline) {
  if constexpr (requires { receiver.take_until(place, deadline); }) {
    return receiver.take_until(place, deadline);
  } else {
    return asked(deadline, [&] { return receiver.try_take(place); });
  }
}

/// Makes what was lent; reads what was taken. A process may end at each word of it.
template <class Sender>
Result publish(Sender& sender, Result lent, Message* place, const Message& message) {
  if (lent == Result::ok) {
    MortalMemory::write(place, &message, sizeof message);
    sender.publish();
  }
  return lent;
}

inline bool is_even(const Message& message) { return message.number % 2 == 0; }

/// Each kind of channel: how its two sides are opened, and one call of each. `forever` waits
/// without deadline, which a dead peer must end as well. Half of the messages with a deadline are
/// made in place.
/// A sender that succeeds more than `unhindered` times beside a dead receiver waits for it no more.
struct MailboxPair {
  static constexpr const char* name = "mailbox";
  static constexpr std::uint32_t unhindered = never;
  using Channel = of::Mailbox<Message, P>;
  using Sender = Channel::Writer;
  using Receiver = Channel::Reader;

  static auto attach(void* memory) { return Receiver::attach(memory, Channel::bytes); }
  static Result send(Sender& sender, const Message& message, Deadline deadline, bool forever) {
    if (forever || !is_even(message)) {
      return forever ? sender.write(message) : sender.write_until(message, deadline);
    }
    Message* place = nullptr;
    const Result lent = lend(sender, place, deadline);
    return publish(sender, lent, place, message);
  }
  static Result receive(Receiver& receiver, Message& message, Deadline deadline, bool forever) {
    if (forever) return receiver.read(message);
    const Message* place = nullptr;
    const Result taken = take(receiver, place, deadline);
    if (taken != Result::ok) return taken;
    MortalMemory::read(&message, place, sizeof message);
    return receiver.release();
  }
};

/// The reply repeats the request.
struct ExchangePair {
  static constexpr const char* name = "exchange";
  static constexpr std::uint32_t unhindered = never;
  using Channel = of::Exchange<Message, Message, P>;
  using Sender = Channel::Client;
  using Receiver = Channel::Server;

  static auto attach(void* memory) { return Receiver::attach(memory, Channel::bytes); }
  static Result send(Sender& sender, const Message& message, Deadline deadline, bool forever) {
    Message reply{};
    const Result result = call(sender, message, reply, deadline, forever);
    const bool right = reply.is_whole() && reply.number == message.number;
    return result == Result::ok && !right ? Result::layout_changed : result;
  }
  static Result receive(Receiver& receiver, Message& message, Deadline deadline, bool forever) {
    const auto answer = [&message](const Message& request) {
      message = request;
      return request;
    };
    if (forever) return receiver.serve_until(answer, Never{});
    const Message* place = nullptr;
    const Result taken = take(receiver, place, deadline);
    if (taken != Result::ok) return taken;
    MortalMemory::read(&message, place, sizeof message);
    Message* reply = nullptr;
    const Result lent = receiver.try_loan(reply);
    return publish(receiver, lent, reply, message);
  }

 private:
  static Result call(Sender& sender, const Message& message, Message& reply, Deadline deadline,
                     bool forever) {
    if (forever) return sender.call(message, reply);
    if (!is_even(message)) return sender.call_until(message, reply, deadline);
    Message* place = nullptr;
    const Result lent = lend(sender, place, deadline);
    if (publish(sender, lent, place, message) != Result::ok) return lent;
    const Message* came = nullptr;
    const Result taken = take(sender, came, deadline);
    if (taken != Result::ok) return taken;
    MortalMemory::read(&reply, came, sizeof reply);
    return sender.release();
  }
};

/// Nobody waits for anybody, so the tester's own deadline ends waiting for a new value.
struct LatestPair {
  static constexpr const char* name = "latest";
  static constexpr std::uint32_t unhindered = 0;
  using Channel = of::Latest<Message, 2, P>;
  using Sender = Channel::Writer;
  using Receiver = Channel::Reader;

  static auto attach(void* memory) { return Receiver::attach(memory, Channel::bytes, 1); }
  static Result send(Sender& sender, const Message& message, Deadline /*deadline*/, bool in_place) {
    if (in_place) {
      MortalMemory::write(&sender.begin_update(), &message, sizeof message);
      sender.publish();
    } else {
      sender.update(message);
    }
    return Result::ok;
  }
  static Result receive(Receiver& receiver, Message& message, Deadline deadline, bool /*forever*/) {
    while (!deadline.expired()) {
      arm(receiver);
      if (const Result result = receiver.check_writer(); result != Result::ok) return result;
      if (updated(receiver, message)) return Result::ok;
      rest(receiver);
    }
    return Result::timeout;
  }

 private:
  /// Copied by the channel, or in turns by the tester from where it stands.
  static bool updated(Receiver& receiver, Message& message) {
    const std::uint32_t seen = receiver.number();
    if (seen % 2 == 0) return receiver.poll(message) == Freshness::updated;
    const Message* const newest = receiver.view();
    if (newest == nullptr || receiver.number() == seen) return false;
    MortalMemory::read(&message, newest, sizeof message);
    return true;
  }
};

struct RingPair {
  static constexpr const char* name = "ring";
  static constexpr std::uint32_t unhindered = 4;
  using Channel = of::Ring<Message, 4, 1, P>;
  using Sender = Channel::Writer;
  using Receiver = Channel::Reader;

  static auto attach(void* memory) { return Receiver::attach(memory, Channel::bytes, 0); }
  static Result send(Sender& sender, const Message& message, Deadline deadline, bool forever) {
    const Result result = is_even(message) && !forever
                              ? send_in_place(sender, message, deadline)
                              : send_copy(sender, message, deadline, forever);
    if (result == Result::peer_gone) sender.leave_behind(0);
    return result;
  }
  static Result receive(Receiver& receiver, Message& message, Deadline deadline, bool forever) {
    if (forever) return receiver.read(message);
    const Message* place = nullptr;
    const Result taken = take(receiver, place, deadline);
    if (taken != Result::ok) return taken;
    MortalMemory::read(&message, place, sizeof message);
    return receiver.release();  // `busy`: left behind meanwhile, and what was read may be torn
  }

 private:
  static Result send_copy(Sender& sender, const Message& message, Deadline deadline, bool forever) {
    return forever ? sender.write(message) : sender.write_until(message, deadline);
  }
  static Result send_in_place(Sender& sender, const Message& message, Deadline deadline) {
    Message* place = nullptr;
    const Result lent = lend(sender, place, deadline);
    return publish(sender, lent, place, message);
  }
};

/// Whether a dead receiver is noticed by the sender at all: a Latest has no use for that.
template <class Pair>
constexpr bool sender_waits = !std::is_same_v<Pair, LatestPair>;
/// Whether the sender is told that a receiver has begun anew: readers of a Ring come and go.
template <class Pair>
constexpr bool sender_is_told = sender_waits<Pair> && !std::is_same_v<Pair, RingPair>;

template <class Pair>
void send_all(const Party& party, void* memory) {
  const auto& bells = *static_cast<const Bells<typename Pair::Channel>*>(party.bells);
  auto sender = opened_or_give_up(Pair::Sender::create(memory, Pair::Channel::bytes, Pair::name));
  bells.give_to(sender);
  std::uint64_t seen = 0;  // death
  std::uint32_t unhindered = 0;
  while (party.goes_on()) {
    const std::uint64_t number = ++party.ledger->sent;
    const Message message = Message::make(number, sender.epoch());
    const bool forever = number % 4 == 0;
    const Result result = party.judged(
        forever, [&](Deadline deadline) { return Pair::send(sender, message, deadline, forever); });
    if (result == Result::ok) party.ledger->confirm(number);
    if (result == Result::layout_changed) ++party.ledger->unexpected;
    const std::uint64_t death = party.ledger->death;
    unhindered = death != 0 && death == seen && result == Result::ok ? unhindered + 1 : 0;
    seen = death;
    if (party.survives && unhindered > Pair::unhindered) party.ledger->reported = death;
    if (!sender_waits<Pair>) {
      P::Wait::pause();
    }
  }
}

/// Looks at a ring from outside as well; nothing may be torn there either.
template <class Pair>
void receive_all(const Party& party, void* memory) {
  const auto& bells = *static_cast<const Bells<typename Pair::Channel>*>(party.bells);
  Inspector<typename Pair::Channel> inspector{party, memory};
  auto receiver = opened_or_give_up(Pair::attach(memory));
  bells.give_to(receiver);
  for (std::uint32_t calls = 0; party.goes_on(); ++calls) {
    Message message{};
    const bool forever = calls % 4 == 0;
    const std::uint32_t epoch = inspector.senders_epoch();
    const Result result = party.judged(forever, [&](Deadline deadline) {
      return Pair::receive(receiver, message, deadline, forever);
    });
    if (result == Result::peer_restarted) inspector.restarted();
    if (result == Result::ok) inspector.receive(message, epoch);
    if (result == Result::busy) {  // left behind by a sender that found this side silent
      receiver = opened_or_give_up(Pair::attach(memory));
      bells.give_to(receiver);
      inspector.attached_anew();
    }
    if (result == Result::layout_changed) ++party.ledger->unexpected;
    if constexpr (std::is_same_v<Pair, RingPair>) {
      auto observer =
          opened_or_give_up(Pair::Channel::Observer::attach(memory, Pair::Channel::bytes));
      if (observer.read_latest(message) == Result::ok && !message.is_whole()) {
        ++party.ledger->torn;
      }
    }
  }
}

template <class Pair>
[[noreturn]] void live(const Party& party, bool sends, std::uint32_t last_access) {
  const LinuxMemory memory = LinuxMemory::shared(party.name, Pair::Channel::bytes);
  if (!memory) give_up(memory.problem());
  Mortality::ends_before(last_access);
  sends ? send_all<Pair>(party, memory.data()) : receive_all<Pair>(party, memory.data());
  Mortality::ends_before(0);
  _exit(0);
}

}  // namespace latenz::icc::kill
