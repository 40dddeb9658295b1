// SPDX-License-Identifier: Apache-2.0
// One side begins anew at any access to shared memory: jumps to its entry point, where all that it
// knew is lost. The other side goes on, is told, and gets no letter twice, torn, or out of order.
#include "latenz/icc/exchange.hpp"
#include "latenz/icc/latest.hpp"
#include "latenz/icc/mailbox.hpp"
#include "latenz/icc/ring.hpp"
#include "latenz/split_mix.hpp"
#include "letter.hpp"
#include "meeting.hpp"
#include "platform.hpp"
#include "report.hpp"
#include "task.hpp"
#include "tasks.hpp"

extern "C" [[noreturn]] void _start();  // start.S

namespace latenz::pair {
namespace {

/// Lives that end after so many accesses at most: some end while attaching, others after several
/// letters.
constexpr std::uint32_t longest_life = 600;
constexpr std::uint32_t peaceful_letters = 50;
constexpr std::uint32_t seed_of_letters = 0x5EED;
constexpr std::size_t room = 0x1000;

bool this_side_begins() { return Side::first == (task().direction == Direction::there); }

/// Whether this is the side that restarts.
bool is_mortal() { return this_side_begins() == (task().restarts == 0); }

/// The accesses to shared memory of a side that restarts, counted down.
class Fate {
 public:
  static void access() {
    if (left_ == 0) return;
    --left_;
    if (left_ == 0) _start();
  }
  static void set(std::uint32_t accesses) { left_ = accesses; }

 private:
  static inline std::uint32_t left_ = 0;  ///< 0: for ever
};

struct MortalOrder : icc::ArmSystemOrder {
  static std::uint32_t load_relaxed(std::uint32_t& word) noexcept {
    Fate::access();
    return ArmSystemOrder::load_relaxed(word);
  }
  static std::uint32_t load_acquire(std::uint32_t& word) noexcept {
    Fate::access();
    return ArmSystemOrder::load_acquire(word);
  }
  static void store_relaxed(std::uint32_t& word, std::uint32_t value) noexcept {
    Fate::access();
    ArmSystemOrder::store_relaxed(word, value);
  }
  static void store_release(std::uint32_t& word, std::uint32_t value) noexcept {
    Fate::access();
    ArmSystemOrder::store_release(word, value);
  }
};

/// Copies may end after any word.
struct MortalMemory : Uncached {
  static void write(void* shared, const void* own, std::size_t bytes) noexcept {
    copy(static_cast<std::byte*>(shared), static_cast<const std::byte*>(own), bytes);
  }
  static void read(void* own, const void* shared, std::size_t bytes) noexcept {
    copy(static_cast<std::byte*>(own), static_cast<const std::byte*>(shared), bytes);
  }

 private:
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    for (std::size_t done = 0; done < bytes; done += sizeof(std::uint32_t)) {
      Fate::access();
      const std::size_t left = bytes - done;
      Uncached::write(to + done, from + done, left < 4 ? left : 4);
    }
  }
};

using Mortal = icc::Platform<MortalMemory, MortalOrder, Waiting>;

/// What the two sides do with a kind of channel: `send`; `receive` and `confirm`. `has_readers`:
/// its reader has an index.
struct ByMailbox {
  static constexpr std::string_view name = "mailbox";
  static constexpr bool has_readers = false;
  static constexpr bool may_repeat = false;
  using Channel = icc::Mailbox<Letter, Mortal>;
  using Sender = Channel::Writer;
  using Receiver = Channel::Reader;

  static icc::Result send(Sender& sender, const Letter& letter) { return sender.write(letter); }
  static icc::Result receive(Receiver& receiver, Letter& letter) { return receiver.read(letter); }
  static void confirm(Receiver& /*receiver*/, const Letter& /*letter*/) {}
};

struct ByExchange {
  static constexpr std::string_view name = "exchange";
  static constexpr bool has_readers = false;
  static constexpr bool may_repeat = false;
  using Channel = icc::Exchange<Letter, Letter, Mortal>;
  using Sender = Channel::Client;
  using Receiver = Channel::Server;

  static icc::Result send(Sender& sender, const Letter& letter) {
    Letter reply{};
    const icc::Result result = sender.call(letter, reply);
    if (result == icc::Result::ok && !(reply == letter)) firmware::fail("exchange: another reply");
    return result;
  }
  static icc::Result receive(Receiver& receiver, Letter& letter) {
    return receiver.take_until(letter, icc::Never{});
  }
  static void confirm(Receiver& receiver, const Letter& letter) {
    demand(receiver.answer(letter), name);
  }
};

struct ByRing {
  static constexpr std::string_view name = "ring";
  static constexpr bool has_readers = true;
  static constexpr bool may_repeat = false;
  using Channel = icc::Ring<Letter, 4, 1, Mortal>;
  using Sender = Channel::Writer;
  using Receiver = Channel::Reader;

  static icc::Result send(Sender& sender, const Letter& letter) { return sender.write(letter); }
  static icc::Result receive(Receiver& receiver, Letter& letter) { return receiver.read(letter); }
  static void confirm(Receiver& /*receiver*/, const Letter& /*letter*/) {}
};

struct ByLatest {
  static constexpr std::string_view name = "latest";
  static constexpr bool has_readers = true;
  /// A reader that begins anew sees the newest value, which it may have seen before.
  static constexpr bool may_repeat = true;
  using Channel = icc::Latest<Letter, 1, Mortal>;
  using Sender = Channel::Writer;
  using Receiver = Channel::Reader;

  static icc::Result send(Sender& sender, const Letter& letter) {
    sender.update(letter);
    Waiting::pause();
    return icc::Result::ok;
  }
  static icc::Result receive(Receiver& receiver, Letter& letter) {
    while (receiver.poll(letter) != icc::Freshness::updated) {
      if (receiver.check_writer() == icc::Result::peer_restarted) {
        return icc::Result::peer_restarted;
      }
      Waiting::pause();
    }
    return icc::Result::ok;
  }
  static void confirm(Receiver& /*receiver*/, const Letter& /*letter*/) {}
};

/// What outlasts a restart, in words of the meeting: a side that restarts knows nothing else.
struct Remembered {
  static std::uint32_t restarts() {
    return (is_mortal() ? Meeting::lives.own() : Meeting::lives.other()).read();
  }
  static bool all_restarts_done() { return restarts() == task().samples; }
  static std::uint32_t number() { return Meeting::numbers.own().read(); }
  static void set_number(std::uint32_t number) { Meeting::numbers.own().write(number); }
  static std::uint32_t phase() { return Meeting::phases.own().read(); }

  /// Begins a phase: a kind of channel.
  static void set_phase(std::uint32_t phase) {
    Meeting::lives.own().write(0);
    set_number(0);
    Meeting::phases.own().write(phase);
  }
};

/// Of the last life.
struct Account {
  std::uint32_t letters = 0;  ///< that arrived
  std::uint32_t told = 0;     ///< restarts of the other side that calls told of
  std::uint32_t epoch = 0;    ///< lives of this side that came to use the channel
};

/// A call that may tell of a restart, and nothing else that is no success.
bool arrived(icc::Result result, Account& account, std::string_view name) {
  if (result == icc::Result::peer_restarted) {
    ++account.told;
    return false;
  }
  demand(result, name);
  ++account.letters;
  return true;
}

template <class By>
Account send_all(void* memory) {
  auto opened = By::Sender::create(memory, room, "restart");
  auto& sender = demand(opened, "create");
  Account account{.epoch = sender.epoch()};
  for (std::uint32_t peaceful = 0; peaceful < peaceful_letters;) {
    const std::uint32_t number = Remembered::number() + 1;
    Remembered::set_number(number);
    Letter letter = Letter::of(number, seed_of_letters);
    letter.last = peaceful + 1 == peaceful_letters ? 1 : 0;
    letter.sum = letter.expected_sum();
    const bool all_done = Remembered::all_restarts_done();
    if (!arrived(By::send(sender, letter), account, By::name)) continue;
    if (all_done) ++peaceful;
  }
  return account;
}

template <class By>
auto attach(void* memory) {
  if constexpr (By::has_readers) {
    return By::Receiver::attach_until(memory, room, icc::Never{}, 0U);
  } else {
    return By::Receiver::attach_until(memory, room, icc::Never{});
  }
}

template <class By>
Account receive_all(void* memory) {
  auto opened = attach<By>(memory);
  auto& receiver = demand(opened, "attach");
  Account account{.epoch = receiver.epoch()};
  while (true) {
    Letter letter{};
    if (!arrived(By::receive(receiver, letter), account, By::name)) continue;
    if (!letter.whole()) firmware::fail(Line().add(By::name).add(": torn letter").view());
    const bool again = By::may_repeat && letter.number == Remembered::number();
    if (letter.number <= Remembered::number() && !again) {
      firmware::fail(
          Line().add(By::name).add(": letter ").add(letter.number).add(" came again").view());
    }
    Remembered::set_number(letter.number);
    By::confirm(receiver, letter);  // after it is remembered: whoever begins anew must not get it
    if (letter.last != 0) return account;
  }
}

/// A life of the side that restarts is as long as chance wants it; the last one has no end.
void begin_life(std::uint32_t phase) {
  const std::uint32_t life = Remembered::restarts();
  const bool last = !is_mortal() || Remembered::all_restarts_done();
  SplitMix64 random((std::uint64_t{task().seed} << 32U) + (phase << 24U) + life);
  Fate::set(last ? 0 : 1 + static_cast<std::uint32_t>(random.next() % longest_life));
}

/// By the side that survived: frames of the other one begin anew with every life.
void tell(std::string_view name, const Account& account) {
  Line line;
  line.add(name).add(": ").add(Remembered::restarts()).add(" restarts, ");
  line.add(Meeting::stamps.other().read()).add(" lives, told of ").add(account.told).add(", ");
  note(line.add(account.letters).add(" letters"));
}

template <class By>
void go_through(std::uint32_t phase) {
  if (Remembered::phase() > phase) return;
  auto* memory = reinterpret_cast<std::byte*>(area_of(task().memory).begin) + (phase * room);
  begin_life(phase);
  const Account account = this_side_begins() ? send_all<By>(memory) : receive_all<By>(memory);
  Meeting::stamps.own().write(account.epoch);
  Meeting::step();
  if (!is_mortal()) tell(By::name, account);
  Meeting::step();
  Remembered::set_phase(phase + 1);
  Meeting::step();
}

/// Nothing of earlier runs may look like a channel.
void clear(Area area) {
  auto* words = reinterpret_cast<volatile std::uint32_t*>(area.begin);
  for (std::size_t i = 0; i < 4 * room / sizeof(std::uint32_t); ++i) words[i] = 0;
}

}  // namespace

bool resumes_after_restart() {
  if (Meeting::run() == 0 || Meeting::mortals.own().read() != Meeting::run()) return false;
  Meeting::lives.own().write(Meeting::lives.own().read() + 1);
  return true;
}

void restart() {
  if (Meeting::mortals.own().read() != Meeting::run()) {
    Remembered::set_phase(0);
    if (this_side_begins()) clear(area_of(task().memory));
    Meeting::step();
    if (is_mortal()) Meeting::mortals.own().write(Meeting::run());
  }
  go_through<ByMailbox>(0);
  go_through<ByExchange>(1);
  go_through<ByRing>(2);
  go_through<ByLatest>(3);
  Meeting::mortals.own().write(0);
}

}  // namespace latenz::pair
