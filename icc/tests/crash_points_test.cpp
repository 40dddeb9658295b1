// SPDX-License-Identifier: Apache-2.0
// A process is ended before each single access to shared memory that its calls make, one death for
// each access, whatever the state of the channel; the other side, and the process begun anew, must
// find their way. Nothing here depends on time.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kill/mortal.hpp"
#include "latenz/icc.hpp"
#ifdef LATENZ_CRASH_C  // the same over the header for C
#include "mortal_c.hpp"
#endif

namespace {

#ifdef LATENZ_CRASH_C
using latenz::icc::c::Exchange;
using latenz::icc::c::Latest;
using latenz::icc::c::Mailbox;
using latenz::icc::c::Pool;
using latenz::icc::c::Ring;
#else
using latenz::icc::Exchange;
using latenz::icc::Latest;
using latenz::icc::Mailbox;
using latenz::icc::Pool;
using latenz::icc::Ring;
#endif
using latenz::icc::Checks;
using latenz::icc::Flaw;
using latenz::icc::Freshness;
using latenz::icc::Platform;
using latenz::icc::Result;
using latenz::icc::kill::Impatient;
using latenz::icc::kill::Message;
using latenz::icc::kill::Mortality;
using latenz::icc::kill::MortalMemory;
using latenz::icc::kill::MortalOrder;

constexpr std::uint32_t patience = 50;
using P = Platform<MortalMemory, MortalOrder, Impatient<latenz::icc::Spin, patience>>;

/// What outlives every process: counters of the test, and the memory of the channel.
struct Shared {
  std::uint64_t sent;       ///< number of the newest message that was begun
  std::uint64_t confirmed;  ///< newest one whose sending has returned `ok`
  std::uint64_t received;   ///< newest one that was delivered
  bool torn;
  bool twice;
  bool stale;
  bool unannounced;  ///< a message of a new incarnation before `peer_restarted`
  alignas(64) std::byte memory[16384];

  static Shared& make() {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return *static_cast<Shared*>(memory);
  }
  static void free(Shared& shared) { munmap(&shared, sizeof(Shared)); }

  Message next(std::uint32_t epoch) { return Message::make(++sent, epoch); }
};

/// The receiving side's view: nothing torn, nothing twice, restarts told first.
class Receipts {
 public:
  explicit Receipts(Shared& shared) : shared_{&shared} {}

  void note(const Message& message) {
    shared_->torn = shared_->torn || !message.is_whole();
    shared_->twice = shared_->twice || message.number <= shared_->received;
    shared_->unannounced = shared_->unannounced || (known_ != 0 && message.epoch > known_);
    shared_->received = std::max(shared_->received, message.number);
    known_ = std::max(known_, message.epoch);
  }
  void restarted(std::uint32_t epoch) { known_ = epoch; }

 private:
  Shared* shared_;
  std::uint32_t known_ = 0;  ///< newest incarnation of the sender that was told of; 0: none yet
};

/// One channel and its two sides; letters are calls. Each kind of channel adds its own.
template <class Channel_, class Sender_, class Receiver_>
class World {
 public:
  using Channel = Channel_;
  using Sender = Sender_;
  using Receiver = Receiver_;

  World() : shared{Shared::make()}, receipts{shared} {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() { Shared::free(shared); }

  bool open_sender() {
    auto opened = Sender::create(shared.memory, Channel::bytes, "crash");
    if (opened) sender = *opened;
    return static_cast<bool>(opened);
  }
  bool open_receiver() {
    if constexpr (requires { Receiver::attach(shared.memory, Channel::bytes); }) {
      return keep(Receiver::attach(shared.memory, Channel::bytes));
    } else {
      return keep(Receiver::attach(shared.memory, Channel::bytes, 0));
    }
  }

  Flaw flaw = Flaw::none;  ///< of the last `open_receiver`
  Shared& shared;
  Receipts receipts;
  Sender sender;
  Receiver receiver;
  bool sender_heard_restart = false;
  bool receiver_heard_restart = false;

 protected:
  /// Makes what was lent; the process may end at each word of it.
  template <class Lender>
  static Result publish(Lender& lender, Result lent, Message* place, const Message& message) {
    if (lent == Result::ok) {
      MortalMemory::write(place, &message, sizeof message);
      lender.publish();
    }
    return lent;
  }
  void receiver_hears(Result result) {
    if (result == Result::peer_restarted) {
      receiver_heard_restart = true;
      receipts.restarted(sender.epoch());
    }
  }
  Result sender_hears(Result result, std::uint64_t number) {
    sender_heard_restart = sender_heard_restart || result == Result::peer_restarted;
    if (result == Result::ok) shared.confirmed = number;
    return result;
  }
  /// A message that was sent by an incarnation of which nothing may be delivered any more.
  void expect_of_living(const Message& message) {
    shared.stale = shared.stale || message.epoch < sender.epoch();
  }

 private:
  bool keep(latenz::icc::Opened<Receiver> opened) {
    flaw = opened.problem().flaw;
    if (opened) receiver = *opened;
    return static_cast<bool>(opened);
  }
};

/// Messages one after the other, copied (S, s; R, r) or in place (L, T).
template <class Channel>
class Stream : public World<Channel, typename Channel::Writer, typename Channel::Reader> {
 public:
  static constexpr std::string_view calls = "SsLRrT";
  static constexpr std::string_view sender_calls = "SsL";

  Result call(char letter) {
    Message message{};
    switch (letter) {
      case 'S':
        message = this->shared.next(this->sender.epoch());
        return this->sender_hears(this->sender.try_write(message), message.number);
      case 's':
        message = this->shared.next(this->sender.epoch());
        return this->sender_hears(this->sender.write_until(message, Checks{1}), message.number);
      case 'L':
        return send_in_place();
      case 'T':
        return receive_in_place();
      case 'R':
        return received(this->receiver.try_read(message), message);
      default:
        return received(this->receiver.read_until(message, Checks{1}), message);
    }
  }
  Result wait_for_sender() {
    Message message{};
    return received(this->receiver.read(message), message);
  }
  Result wait_for_receiver() {
    const Message message = this->shared.next(this->sender.epoch());
    return this->sender_hears(this->sender.write(message), message.number);
  }

 private:
  Result received(Result result, const Message& message) {
    this->receiver_hears(result);
    if (result == Result::ok) note(message);
    return result;
  }
  void note(const Message& message) {
    this->receipts.note(message);
    if (Channel::shape.kind == latenz::icc::ChannelKind::mailbox) this->expect_of_living(message);
  }
  Result send_in_place() {
    const Message message = this->shared.next(this->sender.epoch());
    Message* place = nullptr;
    const Result lent = this->sender.try_loan(place);
    return this->sender_hears(this->publish(this->sender, lent, place, message), message.number);
  }
  Result receive_in_place() {
    const Message* place = nullptr;
    Message message{};
    Result result = this->receiver.try_take(place);
    this->receiver_hears(result);
    if (result == Result::ok) {
      MortalMemory::read(&message, place, sizeof message);
      result = this->receiver.release();
      if (result == Result::ok) note(message);
    }
    return result;
  }
};

class MailboxWorld : public Stream<Mailbox<Message, P>> {
 public:
  static std::vector<std::string> states() {
    return {"", "S", "SR", "SRS", "SRSR", "SRSRS", "LTL"};
  }
};

/// Also two at once (D, d).
class RingWorld : public Stream<Ring<Message, 2, 1, P>> {
 public:
  static constexpr std::string_view calls = "SsDLRrdT";
  static constexpr std::string_view sender_calls = "SsDL";
  static std::vector<std::string> states() {
    return {"", "S", "SS", "SSS", "SR", "SRS", "SSR", "SSRS", "SSRSRR", "D", "DdL", "LTLT"};
  }

  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method): no world is used by its base
  Result call(char letter) {
    switch (letter) {
      case 'D':
        return send_two();
      case 'd':
        return receive_two();
      default:
        return Stream::call(letter);
    }
  }

 private:
  Result send_two() {
    const std::array<Message, 2> both{shared.next(sender.epoch()), shared.next(sender.epoch())};
    std::size_t count = 0;
    const Result result = sender.try_write_some(both, count);
    return sender_hears(result, both.at(count == 2 ? 1 : 0).number);
  }
  Result receive_two() {
    std::array<Message, 2> messages{};
    std::size_t count = 0;
    const Result result = receiver.try_read_some(messages, count);
    receiver_hears(result);
    for (std::size_t i = 0; i < count; ++i) receipts.note(messages.at(i));
    return result;
  }
};

using TestPool = Pool<1, 2, Message, P>;
/// Copied (S, s; R, r) or in place (L, T); also held (H), until that is given back (G).
class PoolWorld : public World<TestPool, TestPool::Writer, TestPool::Reader> {
 public:
  static constexpr std::string_view calls = "SsLRrTHG";
  static constexpr std::string_view sender_calls = "SsL";
  static std::vector<std::string> states() {
    return {"", "S", "SR", "SRS", "SS", "SSH", "SH", "SSHRS", "LTLT", "SHSG"};
  }

  Result call(char letter) {
    Message message{};
    std::size_t count = 0;
    switch (letter) {
      case 'S':
        return send([&](const Message& next) { return sender.try_write(one(next)); });
      case 's':
        return send([&](const Message& next) { return sender.write_until(one(next), Checks{1}); });
      case 'L':
        return send([&](const Message& next) {
          std::span<Message> place;
          const Result lent = sender.try_loan(1, place);
          return publish(sender, lent, place.data(), next);
        });
      case 'R':
        return received(receiver.try_read(all(message), count), message);
      case 'r':
        return received(receiver.read_until(all(message), count, Checks{1}), message);
      case 'T':
        return take();
      case 'H':
        return hold();
      default:
        return give_back();
    }
  }
  Result wait_for_sender() {
    Message message{};
    std::size_t count = 0;
    return received(receiver.read(all(message), count), message);
  }
  Result wait_for_receiver() {
    return send([&](const Message& next) { return sender.write(one(next)); });
  }
  /// Both blocks for a message are free once all is read and given back, and no more than those.
  bool has_all_blocks() {
    give_back();
    for (int i = 0; i < 4; ++i) call('R');
    return call('S') == Result::ok && call('L') == Result::ok && call('S') == Result::full;
  }

 private:
  static std::span<const Message> one(const Message& message) { return {&message, 1}; }
  static std::span<Message, 1> all(Message& message) { return std::span<Message, 1>(&message, 1); }

  template <class Write>
  Result send(Write write) {
    const Message next = shared.next(sender.epoch());
    return sender_hears(write(next), next.number);
  }
  Result received(Result result, const Message& message) {
    receiver_hears(result);
    if (result == Result::ok) receipts.note(message);
    return result;
  }
  Result take() {
    std::span<const Message> place;
    const Result result = receiver.try_take(place);
    Message message{};
    if (result == Result::ok) {
      MortalMemory::read(&message, place.data(), sizeof message);
      receiver.release(place);
    }
    return received(result, message);
  }
  Result hold() {
    if (!held_.empty()) return Result::busy;
    const Result result = receiver.try_take(held_);
    Message message{};
    if (result == Result::ok) MortalMemory::read(&message, held_.data(), sizeof message);
    return received(result, message);
  }
  Result give_back() {
    const Result result = held_.empty() ? Result::empty : receiver.release(held_);
    held_ = {};
    return result;
  }

  std::span<const Message> held_;
};

using TestExchange = Exchange<Message, Message, P>;
/// Requests are numbered; a reply repeats its request. Copied (S, R, A, C) or in place (L, T, a,
/// c).
class ExchangeWorld : public World<TestExchange, TestExchange::Client, TestExchange::Server> {
 public:
  static constexpr std::string_view calls = "SCLcRrATa";
  static constexpr std::string_view sender_calls = "SCLc";
  static std::vector<std::string> states() {
    return {"", "S", "SR", "SRA", "SRAC", "SRACS", "SRACSR", "SRACSRA", "LTac"};
  }

  Result call(char letter) {
    switch (letter) {
      case 'S':
        return post();
      case 'C':
        return collect();
      case 'L':
        return post_in_place();
      case 'c':
        return collect_in_place();
      case 'T':
        return take_in_place();
      case 'a':
        return answer_in_place();
      case 'A':
        return receiver.answer(taken_);
      default:
        return take(letter == 'R' ? receiver.try_take(taken_)
                                  : receiver.take_until(taken_, Checks{1}));
    }
  }
  Result wait_for_sender() { return take(receiver.take_until(taken_, latenz::icc::Never{})); }
  Result wait_for_receiver() {
    const Message request = shared.next(sender.epoch());
    Message reply{};
    return replied(sender.call(request, reply), reply, request.number);
  }

 private:
  Result post() {
    const Message request = shared.next(sender.epoch());
    return posted(sender.try_post(request), request);
  }
  Result post_in_place() {
    const Message request = shared.next(sender.epoch());
    Message* place = nullptr;
    const Result lent = sender.try_loan(place);
    return posted(publish(sender, lent, place, request), request);
  }
  Result posted(Result result, const Message& request) {
    sender_heard_restart = sender_heard_restart || result == Result::peer_restarted;
    if (result == Result::ok) asked_ = request.number;
    return result;
  }
  Result collect() {
    Message reply{};
    return replied(sender.try_collect(reply), reply, asked_);
  }
  Result collect_in_place() {
    const Message* place = nullptr;
    Message reply{};
    Result result = sender.try_take(place);
    if (result == Result::ok) {
      MortalMemory::read(&reply, place, sizeof reply);
      result = sender.release();
    }
    return replied(result, reply, asked_);
  }
  Result take_in_place() {
    const Message* place = nullptr;
    const Result result = receiver.try_take(place);
    if (result == Result::ok) MortalMemory::read(&taken_, place, sizeof taken_);
    return take(result);
  }
  Result answer_in_place() {
    Message* place = nullptr;
    const Result lent = receiver.try_loan(place);
    return publish(receiver, lent, place, taken_);
  }
  Result replied(Result result, const Message& reply, std::uint64_t asked) {
    if (result == Result::ok) {
      shared.torn = shared.torn || !reply.is_whole() || reply.number != asked;
      shared.twice = shared.twice || reply.number <= shared.confirmed;
    }
    return sender_hears(result, asked);
  }
  Result take(Result result) {
    receiver_hears(result);
    if (result == Result::ok) {
      receipts.note(taken_);
      expect_of_living(taken_);
    }
    return result;
  }

  Message taken_{};
  std::uint64_t asked_ = 0;
};

using TestLatest = Latest<Message, 1, P>;
class LatestWorld : public World<TestLatest, TestLatest::Writer, TestLatest::Reader> {
 public:
  static constexpr std::string_view calls = "SBRV";
  static constexpr std::string_view sender_calls = "SB";
  static std::vector<std::string> states() {
    return {"", "S", "SR", "SRS", "SRSR", "SRSSR", "SRSSSRSR"};
  }

  Result call(char letter) {
    switch (letter) {
      case 'S': {
        const Message message = shared.next(sender.epoch());
        sender.update(message);
        return sender_hears(Result::ok, message.number);
      }
      case 'B': {
        const Message message = shared.next(sender.epoch());
        MortalMemory::write(&sender.begin_update(), &message, sizeof message);
        sender.publish();
        return sender_hears(Result::ok, message.number);
      }
      case 'R':
        return poll();
      default:
        return view();
    }
  }

 private:
  Result poll() {
    const std::uint64_t confirmed = shared.confirmed;
    receiver_hears(receiver.check_writer());
    Message message{};
    const Freshness freshness = receiver.poll(message);
    if (freshness == Freshness::updated) {
      shared.stale = shared.stale || message.number < confirmed;
      receipts.note(message);
    } else {
      shared.stale = shared.stale || shared.received < confirmed;
    }
    return freshness == Freshness::updated ? Result::ok : Result::empty;
  }
  Result view() {
    receiver_hears(receiver.check_writer());
    const Message* message = receiver.view();
    shared.torn = shared.torn || (message != nullptr && !message->is_whole());
    return message == nullptr ? Result::empty : Result::ok;
  }
};

/// Runs an action in a process that ends before its n-th access; whether it did end there.
template <class Action>
bool ends_before(std::uint32_t access, Action action) {
  const pid_t child = fork();
  if (child == 0) {
    Mortality::ends_before(access);
    action();
    Mortality::ends_before(0);
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status);
}

template <class World>
class CrashPoints : public testing::Test {};

using Worlds = testing::Types<MailboxWorld, ExchangeWorld, RingWorld, LatestWorld, PoolWorld>;

class Names {
 public:
  template <class World>
  // NOLINTNEXTLINE(readability-identifier-naming): googletest's name
  static const char* GetName(int /*index*/) {
    if (std::is_same_v<World, MailboxWorld>) return "mailbox";
    if (std::is_same_v<World, ExchangeWorld>) return "exchange";
    if (std::is_same_v<World, PoolWorld>) return "pool";
    return std::is_same_v<World, RingWorld> ? "ring" : "latest";
  }
};
TYPED_TEST_SUITE(CrashPoints, Worlds, Names);

template <class World>
void expect_clean(const World& world) {
  EXPECT_FALSE(world.shared.torn);
  EXPECT_FALSE(world.shared.twice);
  EXPECT_FALSE(world.shared.stale);
  EXPECT_FALSE(world.shared.unannounced);
}

template <class World>
void play(World& world, std::string_view calls) {
  for (const char letter : calls) world.call(letter);
}

/// While the other side is dead, waiting ends, once what the dead side left has been taken: a
/// message, or the news that it had begun anew.
template <class World>
void expect_end_of_waiting(World& world, bool sender_died) {
  if constexpr (!std::is_same_v<World, LatestWorld>) {
    Result result = Result::ok;
    for (int i = 0; i < 5 && result != Result::peer_gone; ++i) {
      if constexpr (std::is_same_v<World, ExchangeWorld>) world.call('A');
      result = sender_died ? world.wait_for_sender() : world.wait_for_receiver();
    }
    EXPECT_EQ(result, Result::peer_gone) << name_of(result);
  } else if (sender_died) {
    world.call('R');  // nothing to wait for: the last value stays
  }
}

/// After a restart messages pass again, and the survivor was told of the restart before.
template <class World>
void expect_recovery(World& world, bool sender_died) {
  const std::uint64_t before = world.shared.sent;
  for (int round = 0; round < 6 && world.shared.received <= before; ++round) {
    play(world, std::is_same_v<World, ExchangeWorld> ? "SRAC" : "SR");
  }
  EXPECT_GT(world.shared.received, before) << "no message passes any more";
  if constexpr (std::is_same_v<World, ExchangeWorld>) {
    EXPECT_GT(world.shared.confirmed, before) << "no reply passes any more";
  }
  if constexpr (std::is_same_v<World, PoolWorld>) {
    EXPECT_TRUE(world.has_all_blocks()) << "a block has leaked";
  }
  if (sender_died) {
    EXPECT_TRUE(world.receiver_heard_restart);
  } else if constexpr (std::is_same_v<World, MailboxWorld> ||
                       std::is_same_v<World, ExchangeWorld>) {
    EXPECT_TRUE(world.sender_heard_restart);
  }
}

template <class World>
bool open_again(World& world, bool sender) {
  return sender ? world.open_sender() : world.open_receiver();
}

/// One death: opened channel, state, call that is cut short, end of waiting, restart, recovery.
/// With `dies_again` the restart is cut short as well, before that access.
template <class World>
bool survive(const std::string& state, char victim_call, std::uint32_t access,
             std::uint32_t dies_again) {
  World world;
  const bool sender_died =
      victim_call == 'W' || World::sender_calls.find(victim_call) != std::string_view::npos;
  if (!world.open_sender() || !world.open_receiver()) {
    ADD_FAILURE() << "cannot be opened";
    return false;
  }
  play(world, state);
  const bool reopens = victim_call == 'W' || victim_call == 'E';
  const bool died = ends_before(access, [&] {
    if (reopens) {
      open_again(world, sender_died);
    } else {
      world.call(victim_call);
    }
  });
  expect_end_of_waiting(world, sender_died);
  bool died_again = false;
  if (dies_again != 0) {
    died_again = ends_before(dies_again, [&] { open_again(world, sender_died); });
  }
  EXPECT_TRUE(open_again(world, sender_died));
  expect_recovery(world, sender_died);
  expect_clean(world);
  return dies_again != 0 ? died_again : died;
}

constexpr std::uint32_t most_accesses = 2000;

TYPED_TEST(CrashPoints, EveryAccessOfACallMayBeTheLast) {
  for (const std::string& state : TypeParam::states()) {
    for (const char call : TypeParam::calls) {
      std::uint32_t access = 1;
      while (access < most_accesses && survive<TypeParam>(state, call, access, 0)) {
        if (this->HasFailure()) FAIL() << "state '" << state << "', " << call << ' ' << access;
        ++access;
      }
      EXPECT_LT(access, most_accesses);
    }
  }
}

TYPED_TEST(CrashPoints, EveryAccessOfARestartMayBeTheLast) {
  for (const std::string& state : TypeParam::states()) {
    for (const char side : {'W', 'E'}) {
      std::uint32_t access = 1;
      while (access < most_accesses && survive<TypeParam>(state, side, access, 0)) {
        if (this->HasFailure()) FAIL() << "state '" << state << "', " << side << ' ' << access;
        ++access;
      }
      EXPECT_GT(access, 20) << "a restart makes more accesses than that";
      EXPECT_LT(access, most_accesses);
    }
  }
}

TYPED_TEST(CrashPoints, ACallAndTheRestartAfterItMayBothBeCutShort) {
  for (std::uint32_t access = 1; access < 30; access += 2) {
    std::uint32_t again = 1;
    while (again < most_accesses &&
           survive<TypeParam>(TypeParam::states()[1], 'S', access, again)) {
      if (this->HasFailure()) FAIL() << access << ", then " << again;
      again += 7;
    }
  }
}

/// The survivor goes on between two deaths of its peer, and both of them may be anywhere.
TYPED_TEST(CrashPoints, TheSameCallMayBeCutShortTwice) {
  for (const std::string& state : {TypeParam::states()[2], TypeParam::states()[3]}) {
    for (std::uint32_t first = 1; first < 30; ++first) {
      for (std::uint32_t second = 1; second < 30; second += 1 + first % 3) {
        TypeParam world;
        ASSERT_TRUE(world.open_sender() && world.open_receiver());
        play(world, state);
        for (const std::uint32_t access : {first, second}) {
          ends_before(access, [&] { world.call('S'); });
          world.call('R');
          ASSERT_TRUE(world.open_sender());
        }
        expect_recovery(world, true);
        expect_clean(world);
        if (this->HasFailure()) FAIL() << "state '" << state << "', " << first << ", " << second;
      }
    }
  }
}

TYPED_TEST(CrashPoints, ACreatorMayEndAnywhereInFormatting) {
  std::uint32_t access = 1;
  for (bool died = true; died && access < most_accesses; access += 3) {
    TypeParam world;
    ASSERT_TRUE(
        latenz::icc::Mailbox<std::uint16_t>::Writer::create(world.shared.memory, 4096, "another"));
    died = ends_before(access, [&] { world.open_sender(); });
    if (world.open_receiver()) {
      EXPECT_NE(world.call('R'), Result::ok) << "nothing has been sent";
    } else {
      EXPECT_NE(world.flaw, Flaw::abi_version) << "the other channel, or none, but no half one";
    }
    EXPECT_TRUE(world.open_sender());
    EXPECT_TRUE(world.open_receiver());
    play(world, std::is_same_v<TypeParam, ExchangeWorld> ? "SRACSRAC" : "SRSRSR");
    EXPECT_GE(world.shared.received, 2);
    expect_clean(world);
    if (this->HasFailure()) FAIL() << "access " << access;
  }
  EXPECT_GT(access, 100);
  EXPECT_LT(access, most_accesses);
}

}  // namespace
