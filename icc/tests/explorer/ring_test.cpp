// Ring: all states of lossless readers and of observers, and defects that must not go unseen.
#include "ring_scenario.hpp"

#include <gtest/gtest.h>

#include <string>

#include "mutants.hpp"
#include "proven.hpp"

namespace latenz::explorer {
namespace {

using enum Model;

template <std::size_t N, std::size_t L, class Payload = RelaxedPayload>
Report prove_ring(const RingSetting& setting) {
  std::string what = "Ring, " + std::to_string(N) + " slots, " + std::to_string(L) +
                     " lossless readers, " + std::to_string(setting.messages) + " messages";
  if (setting.observers != 0) {
    what += ", " + std::to_string(setting.observers) + " observers with " +
            std::to_string(setting.looks) + " looks" +
            (setting.observe_newest ? " at the newest" : "");
  }
  if (setting.way == Way::some) what += ", by twos";
  if (setting.way == Way::in_place) what += ", in place";
  if (std::is_same_v<Payload, PlainPayload>) what += ", plain payloads";
  if (setting.late) what += ", readers attach meanwhile";
  if (setting.impatient) what += ", late readers left behind";
  if (setting.writer_restarts + setting.reader_restarts != 0) {
    what += ", crashes " + std::to_string(setting.writer_restarts) + "+" +
            std::to_string(setting.reader_restarts);
  }
  return prove(what, setting.model, [&] { return RingScenarioOf<N, L, Payload>::run(setting); });
}

TEST(ExploredRing, LosslessReadersGetAllInOrder) {
  for (const Model model : {interleaving, weak}) {
    prove_ring<2, 1>({model, 6});
    prove_ring<2, 2>({model, 4});
    prove_ring<4, 1>({model, 6});
    prove_ring<2, 1, PlainPayload>({model, 6});
    prove_ring<2, 2, PlainPayload>({model, 4});
  }
}

TEST(ExploredRing, SeveralAtOnceAndInPlace) {
  for (const Model model : {interleaving, weak}) {
    for (const Way way : {Way::some, Way::in_place}) {
      prove_ring<2, 1, PlainPayload>({.model = model, .messages = 6, .way = way});
      prove_ring<4, 1, PlainPayload>({.model = model, .messages = 6, .way = way});
      prove_ring<2, 2, PlainPayload>({.model = model, .messages = 4, .way = way});
      prove_ring<2, 1>({.model = model, .messages = 5, .impatient = true, .way = way});
      prove_ring<4, 0>({.model = model, .messages = 6, .observers = 1, .looks = 2, .way = way});
      prove_ring<2, 1, PlainPayload>(
          {.model = model, .messages = 3, .writer_restarts = 1, .reader_restarts = 1, .way = way});
      prove_ring<4, 0>({.model = model,
                        .messages = 6,
                        .observers = 1,
                        .looks = 2,
                        .writer_restarts = 1,
                        .way = way});
      prove_ring<2, 1, PlainPayload>({.model = model, .messages = 4, .late = true, .way = way});
    }
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
    prove_ring<2, 1, PlainPayload>({.model = model, .messages = 4, .late = true});
}

TEST(ExploredRing, Farther) {
  if (!far()) GTEST_SKIP() << "LATENZ_EXPLORE=far explores farther, which takes minutes";
  for (const Model model : {interleaving, weak}) {
    prove_ring<4, 0>({model, 8, 1, 2});
    prove_ring<2, 0>({model, 3, 2, 2});
    prove_ring<2, 2>({model, 3, 1, 1});
    prove_ring<2, 1>({.model = model, .messages = 3, .writer_restarts = 2, .reader_restarts = 2});
    prove_ring<4, 0>(
        {.model = model, .messages = 6, .observers = 1, .looks = 2, .writer_restarts = 2});
  }
}

TEST(ExploredRing, TriesOfAnObserverAreBounded) {
  // four tries of at most: head, begun, two payload words, fence, begun
  const Report report = RingScenario<2, 0>::run({weak, 4, 1, 1});
  EXPECT_LE(report.most_accesses[1], 24U);
  EXPECT_GT(report.most_accesses[1], 6U);  // more than one try was needed
}

// Where things are for a payload of two words; the byte table is in docs/icc-abi.md.
template <std::size_t N, std::size_t L>
struct At {
  static constexpr std::size_t head = icc::detail::data_offset(2, 1 + L);
  static constexpr std::size_t left = head + 64;
  static constexpr std::size_t taken = left + (L == 0 ? 0 : 64);
  static constexpr std::size_t begun = icc::detail::whole_pairs(taken + (64 * L));
  static constexpr std::size_t slots = begun + 128;
  static constexpr std::size_t slots_end = slots + (8 * N);
  static bool is_payload(const Access& access) {
    return offset(access) >= slots && offset(access) < slots_end;
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
/// Where a race itself is an error.
void expect_race_caught(const std::string& defect, Mutant&& mutant,
                        const RingSetting& setting = {weak, 5}) {
  expect_caught("Ring: " + defect, RingScenarioOf<2, 1, PlainPayload>::run(setting, &mutant));
}

TEST(MutantOfRing, WriterWithoutReleaseFence) {
  expect_observer_caught("writer without release fence", without_fence(Kind::release_fence, 0));
}
TEST(MutantOfRing, ObserverWithoutAcquireFence) {
  expect_observer_caught("observer without acquire fence", without_fence(Kind::acquire_fence, 1));
}
TEST(MutantOfRing, HeadStoredRelaxed) {
  expect_race_caught("head stored relaxed", relaxed(Kind::store, At<2, 1>::head));
}
TEST(MutantOfRing, HeadLoadedRelaxed) {
  expect_race_caught("head loaded relaxed", relaxed(Kind::load, At<2, 1>::head));
}
TEST(MutantOfRing, TakenStoredRelaxed) {
  expect_race_caught("taken stored relaxed", relaxed(Kind::store, At<2, 1>::taken));
}
TEST(MutantOfRing, TakenLoadedRelaxed) {
  expect_race_caught("taken loaded relaxed", relaxed(Kind::load, At<2, 1>::taken));
}
TEST(MutantOfRing, WritingNotTold) {
  expect_observer_caught("writing is not told before it is done", Changed([](const Access& wanted) {
                           return is(wanted, Kind::store, At<2, 0>::begun) ? 0 : perform(wanted);
                         }),
                         {interleaving, 5, 1, 2});
}
TEST(MutantOfRing, OneOfSeveralTold) {
  expect_caught("Ring: of several messages only the first is told as begun", [] {
    Changed mutant([](Access wanted) {
      if (is(wanted, Kind::store, At<4, 0>::begun)) --wanted.value;
      return perform(wanted);
    });
    return RingScenario<4, 0>::run(
        {.model = interleaving, .messages = 6, .observers = 1, .looks = 2, .way = Way::some},
        &mutant);
  }());
}
TEST(MutantOfRing, ObserverLooksNotAgain) {
  expect_observer_caught("observer looks at what was begun before its copy only",
                         Changed([](const Access& wanted) {
                           if (is(wanted, Kind::load, At<2, 0>::begun) && thread() == 1)
                             return perform({Kind::load, true, At<2, 0>::head / 4});
                           return perform(wanted);
                         }),
                         {interleaving, 5, 1, 2});
}
TEST(MutantOfRing, RestartedWriterForgetsWhatItBegan) {
  // dies amid two messages; begun anew it writes one, and tells only that as begun
  Changed mutant([](const Access& wanted) {
    if (is(wanted, Kind::load, At<4, 0>::begun) && thread() == 0)
      return perform({Kind::load, false, At<4, 0>::head / 4});
    return perform(wanted);
  });
  expect_caught("Ring: restarted writer forgets what it had begun",
                RingScenario<4, 0>::run({.model = interleaving,
                                         .messages = 9,
                                         .observers = 1,
                                         .looks = 2,
                                         .writer_restarts = 1,
                                         .way = Way::some},
                                        &mutant));
}
TEST(MutantOfRing, HeadBeforeMessage) {
  expect_race_caught("head told before the message is there",
                     StoredLater(At<2, 1>::slots, At<2, 1>::slots_end, At<2, 1>::head));
}
TEST(MutantOfRing, LosslessReaderIgnored) {
  expect_race_caught("a lossless reader's count ignored", Changed([](const Access& wanted) {
                       if (is(wanted, Kind::load, At<2, 1>::taken) && thread() == 0)
                         return perform({Kind::load, true, At<2, 1>::head / 4});
                       return perform(wanted);
                     }));
}
TEST(MutantOfRing, ReaderLeftBehindDoesNotNotice) {
  expect_lossless_caught(
      "a reader left behind does not notice", Changed([](const Access& wanted) {
        return is(wanted, Kind::load, At<2, 1>::left) && thread() == 1 ? 0 : perform(wanted);
      }),
      {.model = interleaving, .messages = 5, .impatient = true});
}
TEST(MutantOfRing, ReaderLeftBehindWithoutAcquireFence) {
  expect_lossless_caught("a reader left behind, without acquire fence",
                         without_fence(Kind::acquire_fence, 1),
                         {.model = weak, .messages = 5, .impatient = true});
}
TEST(MutantOfRing, WriterWithoutFenceWhileAReaderAttaches) {
  expect_race_caught("writer without full fence while a reader attaches",
                     without_fence(Kind::full_fence, 0),
                     {.model = weak, .messages = 4, .late = true});
}
TEST(MutantOfRing, AttachingReaderWithoutFence) {
  expect_race_caught("attaching reader without full fence", without_fence(Kind::full_fence, 1),
                     {.model = weak, .messages = 4, .late = true});
}
// The reader's count goes up before the payload is copied.
class TakenBeforeCopied final : public Mutant {
 public:
  void begin() override { given_back_ = false; }
  std::uint32_t access(Access wanted) override {
    if (wanted.kind == Kind::read && At<2, 1>::is_payload(wanted) && !given_back_) {
      given_back_ = true;
      const std::uint32_t taken = perform({Kind::load, false, At<2, 1>::taken / 4});
      perform({Kind::store, true, At<2, 1>::taken / 4, taken + 1});
    }
    return perform(wanted);
  }

 private:
  bool given_back_ = false;
};
TEST(MutantOfRing, TakenBeforeCopied) {
  expect_race_caught("a slot given back before it is copied", TakenBeforeCopied());
}

}  // namespace
}  // namespace latenz::explorer
