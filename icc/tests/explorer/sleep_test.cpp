// Waiting asleep: no wake-up is lost in any state, and defects that must not go unseen.
#include "sleep_scenario.hpp"

#include <gtest/gtest.h>

#include <string>

#include "mutants.hpp"
#include "proven.hpp"

namespace latenz::explorer {
namespace {

using enum Model;

template <class Scenario>
Report prove_sleep(std::string what, const SleepSetting& setting) {
  what += ", asleep, " + std::to_string(setting.messages) +
          (std::is_same_v<Scenario, SleepingExchange> ? " calls" : " messages");
  if (setting.late) what += ", attached to meanwhile";
  if (setting.may_lose()) {
    what += ", crashes " + std::to_string(setting.restarts_of_first) + "+" +
            std::to_string(setting.restarts_of_others);
  }
  return prove(what, setting.model, [&] { return Scenario::run(setting); });
}

template <std::uint32_t readers>
Report prove_ring_sleep(const SleepSetting& setting) {
  return prove_sleep<SleepingRing<readers>>(
      "Ring, 2 slots, " + std::to_string(readers) + " lossless readers", setting);
}

TEST(ExploredSleep, NoWakeUpIsLost) {
  for (const Model model : {interleaving, weak}) {
    prove_sleep<SleepingMailbox>("Mailbox", {model, 2});
    prove_sleep<SleepingExchange>("Exchange", {model, 1});
  }
  prove_ring_sleep<1>({interleaving, 3});
}

TEST(ExploredSleep, OthersAttachMeanwhile) {
  for (const Model model : {interleaving, weak}) {
    prove_sleep<SleepingMailbox>("Mailbox", {.model = model, .messages = 1, .late = true});
    prove_sleep<SleepingExchange>("Exchange", {.model = model, .messages = 1, .late = true});
  }
  prove_ring_sleep<1>({.messages = 3, .late = true});
}

TEST(ExploredSleep, CrashesAtEveryAccess) {
  for (const Model model : {interleaving, weak}) {
    prove_sleep<SleepingMailbox>("Mailbox", {model, 1, 0, 1});
  }
  prove_sleep<SleepingMailbox>("Mailbox", {interleaving, 1, 1, 0});
  prove_sleep<SleepingExchange>("Exchange", {interleaving, 1, 0, 1});
  prove_ring_sleep<1>({interleaving, 1, 1, 0});
  prove_ring_sleep<1>({interleaving, 1, 0, 1});
}

TEST(ExploredSleep, Farther) {
  if (!far()) GTEST_SKIP() << "LATENZ_EXPLORE=far explores farther, which takes minutes";
  for (const Model model : {interleaving, weak}) {
    prove_sleep<SleepingExchange>("Exchange", {model, 2});
    prove_ring_sleep<1>({model, 3});
  }
  prove_sleep<SleepingMailbox>("Mailbox", {interleaving, 3});
  prove_sleep<SleepingMailbox>("Mailbox", {weak, 1, 1, 0});
  prove_sleep<SleepingExchange>("Exchange", {interleaving, 1, 1, 0});
}

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

// The reader, about to sleep, takes what it saw before it told so for its last look.
class LastLookLeftOut final : public OfSide {
 public:
  LastLookLeftOut() : OfSide(1) {}

 protected:
  void forget() override { tells_ = false; }
  std::uint32_t change(const Access& wanted) override {
    if (is(wanted, Kind::store, asleep_at(1))) tells_ = wanted.value != 0;
    const bool looks = is(wanted, Kind::load, written) || is(wanted, Kind::load, open_at(0));
    if (tells_ && looks) return wanted.word == written / 4 ? seen_ : 1;
    const std::uint32_t value = perform(wanted);
    if (is(wanted, Kind::load, written)) seen_ = value;
    return value;
  }

 private:
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

void expect_sleep_caught(const std::string& defect, Mutant&& mutant,
                         const SleepSetting& setting = {interleaving, 2}) {
  expect_caught("Sleep: " + defect, SleepingMailbox::run(setting, &mutant));
}

TEST(MutantOfSleep, WakerWithoutFence) {
  expect_sleep_caught("waker without full fence", FenceLeftOut(0, written, open_at(0)), {weak, 2});
}
TEST(MutantOfSleep, SleeperWithoutFence) {
  expect_sleep_caught("sleeper without full fence", FenceLeftOut(1, asleep_at(1), asleep_at(1)),
                      {weak, 2});
}
TEST(MutantOfSleep, LastLookLeftOut) {
  expect_sleep_caught("sleeper without last look", LastLookLeftOut());
}
TEST(MutantOfSleep, RingsReadWhenItSleeps) {
  // whatever the kernel finds is what is slept on
  expect_sleep_caught("rings read behind the last look",
                      loads(rings_at(0), 1, [](std::uint32_t) { return 0U; }));
}
TEST(MutantOfSleep, RingsReadBehindTheFence) {
  expect_sleep_caught("rings read between the fence and the last look", RingsReadBehindTheFence(),
                      {weak, 2});
}
TEST(MutantOfSleep, LooksForSleepersBeforeItStores) {
  expect_sleep_caught("waker looks who sleeps before it stores", StoredBehindTheRing(false));
}
TEST(MutantOfSleep, RingsBeforeItStores) {
  expect_sleep_caught("waker rings before it stores", StoredBehindTheRing(true));
}
TEST(MutantOfSleep, RingWithoutCount) {
  expect_sleep_caught("ring without count", Changed([](const Access& wanted) {
                        return is(wanted, Kind::store, rings_at(0)) ? 0 : perform(wanted);
                      }));
}
TEST(MutantOfSleep, RingWithoutWake) {
  expect_sleep_caught("ring without wake", Changed([](const Access& wanted) {
                        const bool wakes = is(wanted, Kind::choice, rings_at(0)) && thread() == 0;
                        return wakes ? 1 : perform(wanted);
                      }));
}
TEST(MutantOfSleep, AsleepNeverTold) {
  expect_sleep_caught("asleep never told", Changed([](const Access& wanted) {
                        return is(wanted, Kind::store, asleep_at(1)) ? 0 : perform(wanted);
                      }));
}
TEST(MutantOfSleep, LeavesWithoutRing) {
  expect_sleep_caught("leaves without ring", SleeperNotSeen(0, open_at(0), 0));
}
TEST(MutantOfSleep, RestartsWithoutRing) {
  // its predecessor died between the message and the ring
  expect_sleep_caught("restarts without ring", SleeperNotSeen(0, open_at(0), 1),
                      {interleaving, 2, 1, 0});
}
TEST(MutantOfSleep, AttachingReaderOfARingMovesWithoutRing) {
  // it goes on to the newest message once more when the writer waits for it already
  SleeperNotSeen mutant(1, open_at(1), 1, 1);
  expect_caught("Sleep: attaching reader of a ring moves without ring",
                SleepingRing<1>::run({.messages = 4, .late = true}, &mutant));
}

}  // namespace
}  // namespace latenz::explorer
