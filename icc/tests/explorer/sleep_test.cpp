// Waiting asleep: no wake-up is lost in any state, and defects that must not go unseen.
#include "sleep_scenario.hpp"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <utility>

#include "mutants.hpp"
#include "proven.hpp"

namespace latenz::explorer {
namespace {

using enum Model;

// Whose bells: the word of `Sleep<Futex>`, or the eventfds of `Sleep<EventFd>`.
using Word = ExploredBell;
using Own = ExploredOwnBell;

template <class Scenario, class Bell>
Report prove_sleep(std::string what, const SleepSetting& setting) {
  what += std::is_same_v<Bell, Own> ? ", asleep by own bells, " : ", asleep, ";
  what += std::to_string(setting.messages) + " " + Scenario::unit;
  if (setting.loop) what += ", in loops";
  if (setting.late) what += ", attached to meanwhile";
  if (setting.may_lose()) {
    what += ", crashes " + std::to_string(setting.restarts_of_first) + "+" +
            std::to_string(setting.restarts_of_others);
  }
  return prove(what, setting.model, [&] { return Scenario::run(setting); });
}
template <class Bell>
Report prove_mailbox(const SleepSetting& setting) {
  return prove_sleep<SleepingMailbox<Bell>, Bell>("Mailbox", setting);
}
template <class Bell>
Report prove_exchange(const SleepSetting& setting) {
  return prove_sleep<SleepingExchange<Bell>, Bell>("Exchange", setting);
}
template <class Bell, std::uint32_t readers = 1>
Report prove_ring(const SleepSetting& setting) {
  return prove_sleep<SleepingRing<Bell, readers>, Bell>(
      "Ring, 2 slots, " + std::to_string(readers) + " lossless readers", setting);
}

template <class Bell>
class ExploredSleep : public testing::Test {};
#ifdef LATENZ_EXPLORE_SLEEP
using Bells = testing::Types<Word>;
#elif defined(LATENZ_EXPLORE_OWN_BELLS)
using Bells = testing::Types<Own>;
#else
using Bells = testing::Types<Word, Own>;
#endif
TYPED_TEST_SUITE(ExploredSleep, Bells);

TYPED_TEST(ExploredSleep, NoWakeUpIsLost) {
  for (const Model model : {interleaving, weak}) {
    prove_mailbox<TypeParam>({model, 2});
    prove_exchange<TypeParam>({model, 1});
  }
  prove_ring<TypeParam>({interleaving, 3});
}

TYPED_TEST(ExploredSleep, OthersAttachMeanwhile) {
  for (const Model model : {interleaving, weak}) {
    prove_mailbox<TypeParam>({.model = model, .messages = 1, .late = true});
    prove_exchange<TypeParam>({.model = model, .messages = 1, .late = true});
  }
  prove_ring<TypeParam>({.messages = 3, .late = true});
}

TYPED_TEST(ExploredSleep, CrashesAtEveryAccess) {
  for (const Model model : {interleaving, weak}) {
    prove_mailbox<TypeParam>({model, 1, 0, 1});
  }
  prove_mailbox<TypeParam>({interleaving, 1, 1, 0});
  prove_exchange<TypeParam>({interleaving, 1, 0, 1});
  prove_ring<TypeParam>({interleaving, 1, 1, 0});
  prove_ring<TypeParam>({interleaving, 1, 0, 1});
}

TYPED_TEST(ExploredSleep, Farther) {
  if (!far()) GTEST_SKIP() << "LATENZ_EXPLORE=far explores farther, which takes minutes";
  for (const Model model : {interleaving, weak}) {
    prove_exchange<TypeParam>({model, 2});
    prove_ring<TypeParam>({model, 3});
  }
  prove_mailbox<TypeParam>({interleaving, 3});
  prove_mailbox<TypeParam>({weak, 1, 1, 0});
  prove_exchange<TypeParam>({interleaving, 1, 1, 0});
}

#ifndef LATENZ_EXPLORE_SLEEP
// A loop of epoll(7) in place of calls that wait: arm, check, wait.
TEST(ExploredSleepInLoops, NoWakeUpIsLost) {
  for (const Model model : {interleaving, weak}) {
    prove_mailbox<Own>({.model = model, .messages = 2, .loop = true});
    prove_exchange<Own>({.model = model, .messages = 1, .loop = true});
  }
  prove_ring<Own>({.messages = 3, .loop = true});
  prove_mailbox<Own>({.messages = 1, .late = true, .loop = true});
  prove_ring<Own>({.messages = 3, .late = true, .loop = true});
}

TEST(ExploredSleepInLoops, CrashesAtEveryAccess) {
  prove_mailbox<Own>({.messages = 1, .restarts_of_first = 1, .loop = true});
  prove_mailbox<Own>({.messages = 1, .restarts_of_others = 1, .loop = true});
  prove_exchange<Own>({.messages = 1, .restarts_of_others = 1, .loop = true});
}
#endif

constexpr std::size_t written = icc::detail::data_offset(2, 2) + 60;  // of the mailbox

// Changes accesses of one side's operations; `before_` is the access before this one.
class OfSide : public Mutant {
 public:
  explicit OfSide(int of) : of_(of) {}
  void begin() override {
    before_ = {Kind::choice};
    forget();
  }
  std::uint32_t access(Access wanted) final {
    if (thread() != of_) return perform(wanted);
    const std::uint32_t value = change(wanted);
    before_ = wanted;
    return value;
  }

 protected:
  virtual void forget() {}
  virtual std::uint32_t change(const Access& wanted) = 0;
  [[nodiscard]] const Access& before() const { return before_; }

 private:
  int of_;
  Access before_{Kind::choice};
};

// A full fence left out behind a store to one of two words.
class FenceLeftOut final : public OfSide {
 public:
  FenceLeftOut(int of, std::size_t behind, std::size_t or_behind)
      : OfSide(of), behind_(behind), or_behind_(or_behind) {}

 protected:
  std::uint32_t change(const Access& wanted) override {
    const bool there = is(before(), Kind::store, behind_) || is(before(), Kind::store, or_behind_);
    return wanted.kind == Kind::full_fence && there ? 0 : perform(wanted);
  }

 private:
  std::size_t behind_, or_behind_;
};

// The reader, about to sleep, takes what it saw before it told so for its last look at messages,
// and at its peer unless only the first is left out.
class LastLookLeftOut final : public OfSide {
 public:
  explicit LastLookLeftOut(bool at_peer = true) : OfSide(1), at_peer_(at_peer) {}

 protected:
  void forget() override { tells_ = false; }
  std::uint32_t change(const Access& wanted) override {
    if (is(wanted, Kind::store, asleep_at(1))) tells_ = wanted.value != 0;
    const bool looks =
        is(wanted, Kind::load, written) || (at_peer_ && is(wanted, Kind::load, open_at(0)));
    if (tells_ && looks) return wanted.word == written / 4 ? seen_ : 1;
    const std::uint32_t value = perform(wanted);
    if (is(wanted, Kind::load, written)) seen_ = value;
    return value;
  }

 private:
  bool at_peer_;
  bool tells_ = false;
  std::uint32_t seen_ = 0;
};

// The reader reads `rings` when it has told that it sleeps, behind its fence: 1 is what it sleeps
// on, 0 means that the kernel finds something else.
class RingsReadBehindTheFence final : public OfSide {
 public:
  RingsReadBehindTheFence() : OfSide(1) {}

 protected:
  void forget() override { fenced_ = false; }
  std::uint32_t change(const Access& wanted) override {
    if (is(wanted, Kind::store, asleep_at(1))) fenced_ = false;
    const std::uint32_t value =
        is(wanted, Kind::load, rings_at(0)) && !fenced_ ? 1 : perform(wanted);
    if (wanted.kind == Kind::full_fence) {
      fenced_ = true;
      rings_ = perform({Kind::load, false, rings_at(0) / 4});
    }
    if (is(wanted, Kind::load, rings_at(0)) && fenced_) return value == rings_ ? 1 : 0;
    return value;
  }

 private:
  bool fenced_ = false;
  std::uint32_t rings_ = 0;
};

// The writer's store comes later: behind its look at who sleeps, or behind its ring's count.
class StoredBehindTheRing final : public OfSide {
 public:
  explicit StoredBehindTheRing(bool behind_the_count)
      : OfSide(0), behind_count_(behind_the_count) {}

 protected:
  void forget() override { holds_ = false; }
  std::uint32_t change(const Access& wanted) override {
    if (is(wanted, Kind::store, written)) {
      held_ = wanted;
      holds_ = true;
      return 0;
    }
    const std::uint32_t value = perform(wanted);
    const bool looked = is(wanted, Kind::load, asleep_at(1)) && (!behind_count_ || value == 0);
    if (holds_ && (looked || is(wanted, Kind::store, rings_at(0)))) {
      holds_ = false;
      perform(held_);
    }
    return value;
  }

 private:
  bool behind_count_;
  bool holds_ = false;
  Access held_{Kind::choice};
};

// Behind the store of `value` to `at`, a side does not see that the other one sleeps.
class SleeperNotSeen final : public OfSide {
 public:
  SleeperNotSeen(int of, std::size_t at, std::uint32_t value, std::uint32_t looks_before = 0)
      : OfSide(of), at_(at), value_(value), looks_before_(looks_before) {}

 protected:
  void forget() override {
    stored_ = false;
    looks_ = 0;
  }
  std::uint32_t change(const Access& wanted) override {
    if (is(wanted, Kind::store, at_) && wanted.value == value_) stored_ = true;
    const bool looks = stored_ && is(wanted, Kind::load, asleep_at(thread() == 0 ? 1 : 0));
    return looks && looks_++ >= looks_before_ ? 0 : perform(wanted);
  }

 private:
  std::size_t at_;
  std::uint32_t value_, looks_before_;
  bool stored_ = false;
  std::uint32_t looks_ = 0;
};

template <class Bell>
std::string named(const std::string& defect) {
  return (std::is_same_v<Bell, Own> ? "Sleep by own bells: " : "Sleep: ") + defect;
}

template <class Bell>
void expect_sleep_caught(const std::string& defect, Mutant& mutant,
                         const SleepSetting& setting = {interleaving, 2}) {
  expect_caught(named<Bell>(defect), SleepingMailbox<Bell>::run(setting, &mutant));
}

template <class Bell>
class MutantOfSleep : public testing::Test {};
TYPED_TEST_SUITE(MutantOfSleep, Bells);

TYPED_TEST(MutantOfSleep, WakerWithoutFence) {
  auto mutant = FenceLeftOut(0, written, open_at(0));
  expect_sleep_caught<TypeParam>("waker without full fence", mutant, {weak, 2});
}
TYPED_TEST(MutantOfSleep, SleeperWithoutFence) {
  auto mutant = FenceLeftOut(1, asleep_at(1), asleep_at(1));
  expect_sleep_caught<TypeParam>("sleeper without full fence", mutant, {weak, 2});
}
TYPED_TEST(MutantOfSleep, LastLookLeftOut) {
  auto mutant = LastLookLeftOut();
  expect_sleep_caught<TypeParam>("sleeper without last look", mutant);
}
#ifndef LATENZ_EXPLORE_OWN_BELLS
TEST(MutantOfSleepByWord, RingsReadWhenItSleeps) {
  // whatever the kernel finds is what is slept on
  auto mutant = loads(rings_at(0), 1, [](std::uint32_t) { return 0U; });
  expect_sleep_caught<Word>("rings read behind the last look", mutant);
}
TEST(MutantOfSleepByWord, RingsReadBehindTheFence) {
  auto mutant = RingsReadBehindTheFence();
  expect_sleep_caught<Word>("rings read between the fence and the last look", mutant, {weak, 2});
}
#endif
TYPED_TEST(MutantOfSleep, LooksForSleepersBeforeItStores) {
  auto mutant = StoredBehindTheRing(false);
  expect_sleep_caught<TypeParam>("waker looks who sleeps before it stores", mutant);
}
TYPED_TEST(MutantOfSleep, RingsBeforeItStores) {
  auto mutant = StoredBehindTheRing(true);
  expect_sleep_caught<TypeParam>("waker rings before it stores", mutant);
}
#ifndef LATENZ_EXPLORE_OWN_BELLS
TEST(MutantOfSleepByWord, RingWithoutCount) {
  auto mutant = Changed([](const Access& wanted) {
    return is(wanted, Kind::store, rings_at(0)) ? 0 : perform(wanted);
  });
  expect_sleep_caught<Word>("ring without count", mutant);
}
#endif
TYPED_TEST(MutantOfSleep, RingWithoutWake) {
  auto mutant = Changed([](const Access& wanted) {
    const bool wakes = is(wanted, Kind::choice, rings_at(0)) && thread() == 0;
    return wakes ? 1 : perform(wanted);
  });
  expect_sleep_caught<TypeParam>("ring without wake", mutant);
}
TYPED_TEST(MutantOfSleep, AsleepNeverTold) {
  auto mutant = Changed([](const Access& wanted) {
    return is(wanted, Kind::store, asleep_at(1)) ? 0 : perform(wanted);
  });
  expect_sleep_caught<TypeParam>("asleep never told", mutant);
}
TYPED_TEST(MutantOfSleep, LeavesWithoutRing) {
  auto mutant = SleeperNotSeen(0, open_at(0), 0);
  expect_sleep_caught<TypeParam>("leaves without ring", mutant);
}
TYPED_TEST(MutantOfSleep, RestartsWithoutRing) {
  // its predecessor died between the message and the ring
  auto mutant = SleeperNotSeen(0, open_at(0), 1);
  expect_sleep_caught<TypeParam>("restarts without ring", mutant, {interleaving, 2, 1, 0});
}
TYPED_TEST(MutantOfSleep, AttachingReaderOfARingMovesWithoutRing) {
  // it goes on to the newest message once more when the writer waits for it already
  SleeperNotSeen mutant(1, open_at(1), 1, 1);
  expect_caught(named<TypeParam>("attaching reader of a ring moves without ring"),
                SleepingRing<TypeParam, 1>::run({.messages = 4, .late = true}, &mutant));
}

#ifndef LATENZ_EXPLORE_SLEEP
// The reader forgets rings when it waits, in place of before it is seen asleep.
class SilencedWhenItWaits final : public OfSide {
 public:
  SilencedWhenItWaits() : OfSide(1) {}

 protected:
  std::uint32_t change(const Access& wanted) override {
    const std::uint32_t value = perform(wanted);
    const bool silences = is(wanted, Kind::choice, asleep_at(1));
    const bool waits = is(wanted, Kind::choice, beats_at(1));
    return silences || waits ? 1 : value;
  }
};

TEST(MutantOfSleepByOwnBells, SilencedBehindTheLastLook) {
  SilencedWhenItWaits mutant;
  expect_sleep_caught<Own>("silenced behind the last look", mutant);
}
TEST(MutantOfSleepByOwnBells, InALoopSilencedBehindTheCheck) {
  SilencedWhenItWaits mutant;
  expect_sleep_caught<Own>("in a loop, silenced behind the check", mutant,
                           {.messages = 2, .loop = true});
}
TEST(MutantOfSleepByOwnBells, InALoopNotChecked) {
  LastLookLeftOut mutant(false);
  expect_sleep_caught<Own>("in a loop, armed and not checked", mutant,
                           {.messages = 2, .loop = true});
}
TEST(MutantOfSleepByOwnBells, TakenIntoUseWithoutRing) {
  // its predecessor died between the message and the ring; attaching itself rings nobody yet
  SleeperNotSeen mutant(0, open_at(0), 1, 1);
  expect_sleep_caught<Own>("taken into use without ring", mutant, {interleaving, 2, 1, 0});
}
TEST(MutantOfSleepByOwnBells, OnlyTheFirstSleeperIsRung) {
  class OnlyTheFirst final : public OfSide {
   public:
    OnlyTheFirst() : OfSide(0) {}

   protected:
    void forget() override { rung_ = false; }
    std::uint32_t change(const Access& wanted) override {
      const std::uint32_t value = perform(wanted);
      return is(wanted, Kind::choice, rings_at(0)) && std::exchange(rung_, true) ? 1 : value;
    }

   private:
    bool rung_ = false;
  };
  OnlyTheFirst mutant;
  expect_caught(named<Own>("only the first sleeper is rung"),
                SleepingRing<Own, 2>::run({.messages = 1}, &mutant));
}
#endif

}  // namespace
}  // namespace latenz::explorer
