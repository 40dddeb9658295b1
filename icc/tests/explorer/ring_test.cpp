// Ring: all states of lossless readers and of observers, and defects that must not go unseen.
#include "ring_scenario.hpp"

#include <gtest/gtest.h>

#include <string>

#include "mutants.hpp"
#include "proven.hpp"

namespace latenz::explorer {
namespace {

using enum Model;

template <std::size_t N, std::size_t L>
Report prove_ring(const RingSetting& setting) {
  std::string what = "Ring, " + std::to_string(N) + " slots, " + std::to_string(L) +
                     " lossless readers, " + std::to_string(setting.messages) + " messages";
  if (setting.observers != 0) {
    what += ", " + std::to_string(setting.observers) + " observers with " +
            std::to_string(setting.looks) + " looks" +
            (setting.observe_newest ? " at the newest" : "");
  }
  if (setting.late) what += ", readers attach meanwhile";
  if (setting.impatient) what += ", late readers left behind";
  if (setting.writer_restarts + setting.reader_restarts != 0) {
    what += ", crashes " + std::to_string(setting.writer_restarts) + "+" +
            std::to_string(setting.reader_restarts);
  }
  return prove(what, setting.model, [&] { return RingScenario<N, L>::run(setting); });
}

TEST(ExploredRing, LosslessReadersGetAllInOrder) {
  for (const Model model : {interleaving, weak}) {
    prove_ring<2, 1>({model, 6});
    prove_ring<2, 2>({model, 4});
    prove_ring<4, 1>({model, 6});
  }
}

TEST(ExploredRing, LateReadersLeftBehind) {
  for (const Model model : {interleaving, weak})
    prove_ring<2, 1>({.model = model, .messages = 5, .impatient = true});
}

TEST(ExploredRing, ObserversNeverAcceptWhatIsTorn) {
  for (const Model model : {interleaving, weak}) {
    for (const bool newest : {false, true}) prove_ring<2, 0>({model, 4, 1, 2, newest});
    prove_ring<2, 0>({model, 2, 2, 1});
    prove_ring<4, 0>({model, 6, 1, 2});
    prove_ring<2, 1>({model, 3, 1, 1});
  }
}

TEST(ExploredRing, CrashesAtEveryAccess) {
  for (const Model model : {interleaving, weak}) {
    prove_ring<2, 1>({.model = model, .messages = 3, .writer_restarts = 1, .reader_restarts = 1});
    prove_ring<2, 0>(
        {.model = model, .messages = 3, .observers = 1, .looks = 2, .writer_restarts = 1});
  }
}

TEST(ExploredRing, ReadersAttachMeanwhile) {
  for (const Model model : {interleaving, weak})
    prove_ring<2, 1>({.model = model, .messages = 4, .late = true});
}

TEST(ExploredRing, Farther) {
  if (!far()) GTEST_SKIP() << "LATENZ_EXPLORE=far explores farther, which takes minutes";
  for (const Model model : {interleaving, weak}) {
    prove_ring<4, 0>({model, 10, 1, 3});
    prove_ring<2, 0>({model, 3, 2, 2});
    prove_ring<2, 2>({model, 3, 1, 1});
    prove_ring<2, 1>({.model = model, .messages = 3, .writer_restarts = 2, .reader_restarts = 2});
    prove_ring<4, 0>(
        {.model = model, .messages = 6, .observers = 1, .looks = 2, .writer_restarts = 2});
  }
}

TEST(ExploredRing, TriesOfAnObserverAreBounded) {
  // four tries of at most: head, state, two payload words, fence, state
  const Report report = RingScenario<2, 0>::run({weak, 4, 1, 1});
  EXPECT_LE(report.most_accesses[1], 24U);
  EXPECT_GT(report.most_accesses[1], 6U);  // more than one try was needed
}

// Where things are for a payload of two words; the byte table is in docs/icc-abi.md.
template <std::size_t N, std::size_t L>
struct At {
  static constexpr std::size_t head = icc::detail::data_offset(2, 1 + L);
  static constexpr std::size_t taken = head + 64;
  static constexpr std::size_t slots = taken + (64 * L);
  static constexpr std::size_t slots_end = slots + (16 * N);
  static bool is_state(const Access& access) {
    const std::size_t at = offset(access);
    return at >= slots && at < slots_end && (at - slots) % 16 == 8;
  }
  static_assert(slots + 64 == RingScenario<N, L>::Channel::bytes);
};

void expect_observer_caught(const std::string& defect, Mutant&& mutant,
                            const RingSetting& setting = {weak, 5, 1, 2}) {
  expect_caught("Ring: " + defect, RingScenario<2, 0>::run(setting, &mutant));
}
void expect_lossless_caught(const std::string& defect, Mutant&& mutant,
                            const RingSetting& setting = {weak, 5}) {
  expect_caught("Ring: " + defect, RingScenario<2, 1>::run(setting, &mutant));
}

TEST(MutantOfRing, WriterWithoutReleaseFence) {
  expect_observer_caught("writer without release fence", without_fence(Kind::release_fence, 0));
}
TEST(MutantOfRing, ObserverWithoutAcquireFence) {
  expect_observer_caught("observer without acquire fence", without_fence(Kind::acquire_fence, 1));
}
TEST(MutantOfRing, StateStoredRelaxed) {
  expect_observer_caught("state and head stored relaxed", Changed([](Access wanted) {
                           if (wanted.kind == Kind::store) wanted.ordered = false;
                           return perform(wanted);
                         }));
}
TEST(MutantOfRing, StateAndHeadLoadedRelaxed) {
  expect_observer_caught("state and head loaded relaxed", Changed([](Access wanted) {
                           if (wanted.kind == Kind::load) wanted.ordered = false;
                           return perform(wanted);
                         }));
}
TEST(MutantOfRing, StateNotMarkedWhileWriting) {
  expect_observer_caught("slot not marked while it is written", Changed([](const Access& wanted) {
                           const bool mark = wanted.kind == Kind::store && wanted.value % 2 == 1 &&
                                             At<2, 0>::is_state(wanted);
                           return mark ? 0 : perform(wanted);
                         }),
                         {interleaving, 5, 1, 2});
}

// The second look at a slot's state gives what the first one gave.
class StateCheckedOnce final : public Mutant {
 public:
  void begin() override { looks_ = 0; }
  std::uint32_t access(Access wanted) override {
    if (wanted.kind != Kind::load || !At<2, 0>::is_state(wanted)) return perform(wanted);
    if (++looks_ % 2 == 1) first_ = perform(wanted);
    return first_;
  }

 private:
  int looks_ = 0;
  std::uint32_t first_ = 0;
};
TEST(MutantOfRing, StateCheckedOnce) {
  expect_observer_caught("state checked only once", StateCheckedOnce(), {interleaving, 5, 1, 2});
}
TEST(MutantOfRing, HeadBeforeMessage) {
  expect_lossless_caught("head told before the message is there",
                         StoredLater(At<2, 1>::slots, At<2, 1>::slots_end, At<2, 1>::head));
}
TEST(MutantOfRing, LosslessReaderIgnored) {
  expect_lossless_caught("a lossless reader's count ignored", Changed([](const Access& wanted) {
                           if (is(wanted, Kind::load, At<2, 1>::taken) && thread() == 0)
                             return perform({Kind::load, true, At<2, 1>::head / 4});
                           return perform(wanted);
                         }));
}
TEST(MutantOfRing, WriterWithoutFenceWhileAReaderAttaches) {
  expect_lossless_caught("writer without full fence while a reader attaches",
                         without_fence(Kind::full_fence, 0),
                         {.model = weak, .messages = 4, .late = true});
}
TEST(MutantOfRing, AttachingReaderWithoutFence) {
  expect_lossless_caught("attaching reader without full fence", without_fence(Kind::full_fence, 1),
                         {.model = weak, .messages = 4, .late = true});
}
TEST(MutantOfRing, TakenBeforeCopied) {
  expect_lossless_caught(
      "a slot given back before it is copied", Changed([](const Access& wanted) {
        const std::uint32_t value = perform(wanted);
        if (wanted.kind == Kind::load && At<2, 1>::is_state(wanted) && wanted.ordered)
          perform({Kind::store, true, At<2, 1>::taken / 4, value / 2});
        return value;
      }));
}

}  // namespace
}  // namespace latenz::explorer
