// Latest: all states for one to three readers, and defects that must not go unseen.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "latest_scenario.hpp"
#include "mutants.hpp"
#include "proven.hpp"

namespace latenz::explorer {
namespace {

using enum Model;

template <std::size_t R>
Report prove_latest(const LatestSetting& setting) {
  const auto times = [](std::uint32_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  std::string what = "Latest, " + times(R, "reader") + ", " + times(setting.updates, "update") +
                     ", " + times(setting.reads, "read");
  if (setting.look == Look::view) what += " in place";
  if (setting.floor == Floor::signalled) what += ", updates signalled";
  if (setting.late) what += ", readers attach meanwhile";
  if (setting.writer_restarts + setting.reader_restarts != 0) {
    what += ", crashes " + std::to_string(setting.writer_restarts) + "+" +
            std::to_string(setting.reader_restarts);
  }
  return prove(what, setting.model, [&] { return LatestScenario<R>::run(setting); });
}

TEST(ExploredLatest, OneReader) {
  prove_latest<1>({interleaving, 6, 3, Look::poll, Floor::noted});
  prove_latest<1>({interleaving, 4, 3, Look::read_latest, Floor::noted});
  prove_latest<1>({weak, 5, 3, Look::poll});
  prove_latest<1>({weak, 3, 2, Look::poll, Floor::signalled});
}

TEST(ExploredLatest, TwoReaders) {
  prove_latest<2>({interleaving, 3, 1, Look::poll, Floor::noted});
  prove_latest<2>({interleaving, 2, 2, Look::poll, Floor::noted});
  prove_latest<2>({weak, 2, 2, Look::poll});
  prove_latest<2>({weak, 2, 1, Look::poll, Floor::signalled});
}

TEST(ExploredLatest, ThreeReaders) {
  prove_latest<3>({interleaving, 2, 1, Look::poll, Floor::noted});
  prove_latest<3>({weak, 2, 1, Look::poll});
}

TEST(ExploredLatest, ViewsStayAsTheyAre) {
  prove_latest<1>({interleaving, 5, 3, Look::view, Floor::noted});
  prove_latest<1>({weak, 4, 3, Look::view});
  prove_latest<2>({weak, 2, 1, Look::view});
}

TEST(ExploredLatest, CrashesAtEveryAccess) {
  prove_latest<1>({interleaving, 3, 2, Look::view, Floor::noted, 1, 1});
  prove_latest<1>({interleaving, 4, 2, Look::poll, Floor::noted, 2, 0});
  prove_latest<1>({weak, 3, 2, Look::poll, Floor::none, 1, 1});
  prove_latest<2>({interleaving, 2, 1, Look::poll, Floor::noted, 1, 0});
}

TEST(ExploredLatest, ReadersAttachMeanwhile) {
  for (const Model model : {interleaving, weak}) {
    prove_latest<1>({.model = model, .updates = 3, .reads = 2, .late = true});
    prove_latest<2>({.model = model, .updates = 2, .reads = 1, .late = true});
  }
}

TEST(ExploredLatest, Farther) {
  if (!far()) GTEST_SKIP() << "LATENZ_EXPLORE=far explores farther, which takes minutes";
  prove_latest<1>({interleaving, 12, 5, Look::view, Floor::noted});
  prove_latest<1>({weak, 8, 4, Look::view});
  prove_latest<1>({interleaving, 4, 3, Look::view, Floor::noted, 2, 1});
  prove_latest<1>({weak, 4, 2, Look::view, Floor::none, 2, 1});
  prove_latest<2>({interleaving, 4, 2, Look::poll, Floor::noted});
  prove_latest<2>({weak, 3, 2, Look::poll});
  prove_latest<2>({weak, 4, 1, Look::view});
  prove_latest<2>({interleaving, 3, 1, Look::poll, Floor::noted, 1, 1});
  prove_latest<3>({interleaving, 3, 1, Look::poll, Floor::noted});
  prove_latest<3>({weak, 3, 1, Look::poll});
}

TEST(ExploredLatest, AccessesOfEachCallAreBounded) {
  const auto accesses = []<std::size_t R>(const LatestSetting& setting) {
    return LatestScenario<R>::run(setting).most_accesses;
  };
  const LatestSetting few{interleaving, 3, 2, Look::read_latest};
  // writer: fence, R announcements, two payload words, number, newest, latest, updates;
  // reader: updates, latest, generation, announcement, fence, newest, number, two payload words
  EXPECT_EQ(accesses.operator()<1>(few), (std::vector<std::uint32_t>{8, 9}));
  EXPECT_EQ(accesses.operator()<2>({interleaving, 2, 1}), (std::vector<std::uint32_t>{9, 9, 9}));
  EXPECT_EQ(accesses.operator()<3>({interleaving, 1, 1}),
            (std::vector<std::uint32_t>{10, 9, 9, 9}));
}

// Where things are for a payload of two words; the byte table is in docs/icc-abi.md.
template <std::size_t R>
struct At {
  static constexpr std::size_t updates = icc::detail::data_offset(2, 1 + R);
  static constexpr std::size_t latest = updates + 4;
  static constexpr std::size_t newest = latest + 4;
  static constexpr std::size_t newest_end = newest + (4 * (R + 1));
  static constexpr std::size_t announcements = updates + 64;
  static constexpr std::size_t slots = announcements + (64 * R);
  static constexpr std::size_t slots_end = slots + (std::size_t{64} * 2 * (R + 1));
  static_assert(slots_end == LatestScenario<R>::Channel::bytes);
};

template <std::size_t R = 1>
void expect_latest_caught(const std::string& defect, Mutant&& mutant,
                          const LatestSetting& setting = {weak, 4, 3}) {
  expect_caught("Latest: " + defect, LatestScenario<R>::run(setting, &mutant));
}

TEST(MutantOfLatest, ReaderWithoutFence) {
  expect_latest_caught("reader without full fence", without_fence(Kind::full_fence, 1));
}
TEST(MutantOfLatest, WriterWithoutFence) {
  expect_latest_caught("writer without full fence", without_fence(Kind::full_fence, 0));
}
TEST(MutantOfLatest, AnnouncementStoredRelaxed) {
  expect_latest_caught("announcement stored relaxed", relaxed(Kind::store, At<1>::announcements));
}
TEST(MutantOfLatest, AnnouncementLoadedRelaxed) {
  expect_latest_caught("announcement loaded relaxed", relaxed(Kind::load, At<1>::announcements));
}
TEST(MutantOfLatest, NewestStoredRelaxed) {
  expect_latest_caught("newest slot stored relaxed",
                       relaxed(Kind::store, At<1>::newest, At<1>::newest_end));
}
TEST(MutantOfLatest, NewestLoadedRelaxed) {
  expect_latest_caught("newest slot loaded relaxed",
                       relaxed(Kind::load, At<1>::newest, At<1>::newest_end));
}
TEST(MutantOfLatest, LatestStoredRelaxed) {
  expect_latest_caught("latest pair stored relaxed", relaxed(Kind::store, At<1>::latest));
}
TEST(MutantOfLatest, UpdatesStoredRelaxed) {
  expect_latest_caught("updates stored relaxed", relaxed(Kind::store, At<1>::updates));
}
TEST(MutantOfLatest, UpdatesLoadedRelaxed) {
  expect_latest_caught("updates loaded relaxed", relaxed(Kind::load, At<1>::updates));
}
// No defect: the reader's full fence makes an acquire load of the relaxed one.
TEST(MutantOfLatest, LatestLoadedRelaxedIsEnough) {
  Changed mutant = relaxed(Kind::load, At<1>::latest);
  EXPECT_TRUE(LatestScenario<1>::run({weak, 4, 3}, &mutant).passed());
}
TEST(MutantOfLatest, LatestBeforeNewest) {
  expect_latest_caught("latest pair stored before the newest slot",
                       StoredLater(At<1>::newest, At<1>::newest_end, At<1>::latest));
}
TEST(MutantOfLatest, LatestBeforePayload) {
  expect_latest_caught("newest slot told before its payload is there",
                       StoredLater(At<1>::slots, At<1>::slots_end, At<1>::latest));
}
TEST(MutantOfLatest, UpdatesBeforeLatest) {
  expect_latest_caught("updates stored before the latest pair",
                       StoredLater(At<1>::latest, At<1>::latest + 4, At<1>::updates),
                       {interleaving, 4, 3, Look::poll, Floor::noted});
}
TEST(MutantOfLatest, AnnouncementsIgnored) {
  expect_latest_caught("announcements ignored: a slot in use is taken again",
                       loads(At<1>::announcements, 0, [](std::uint32_t) { return 0U; }),
                       {interleaving, 4, 2});
}
TEST(MutantOfLatest, OneReaderForgotten) {
  expect_latest_caught<2>("one reader of two forgotten",
                          loads(At<2>::announcements + 64, 0, [](std::uint32_t) { return 0U; }),
                          {interleaving, 3, 1});
}
TEST(MutantOfLatest, SlotOfTheNewestValueWrittenAgain) {
  expect_latest_caught("the slot of the newest value is the next to be written",
                       Changed([](Access wanted) {
                         if (wanted.kind == Kind::store && offset(wanted) >= At<1>::newest &&
                             offset(wanted) < At<1>::newest_end)
                           wanted.value ^= 1U;
                         return perform(wanted);
                       }),
                       {interleaving, 4, 2});
}
TEST(MutantOfLatest, OnePairTooFew) {
  // the last pair is the first one under another number
  expect_latest_caught("one pair too few", Changed([](Access wanted) {
                         const std::size_t at = offset(wanted);
                         if (at >= At<1>::slots + 128 && at < At<1>::slots_end)
                           wanted.word -= 128 / 4;
                         if (at == At<1>::newest + 4) wanted.word -= 1;
                         return perform(wanted);
                       }),
                       {interleaving, 4, 2});
}
TEST(MutantOfLatest, ReaderMovesThoughNothingNewerIsComplete) {
  expect_latest_caught<2>("reader moves though nothing newer is complete",
                          loads(At<2>::updates, 1, [](std::uint32_t n) { return n + 100; }),
                          {interleaving, 3, 2});
}
TEST(MutantOfLatest, RestartedWriterLeavesTheInterruptedUpdate) {
  // its numbers of slots, which tell of the interrupted update, are not looked at
  expect_latest_caught("restarted writer does not complete the interrupted update",
                       Changed([](const Access& wanted) {
                         const std::uint32_t value = perform(wanted);
                         const bool number = wanted.kind == Kind::load &&
                                             offset(wanted) >= At<1>::slots && thread() == 0;
                         return number ? 0 : value;
                       }),
                       {interleaving, 4, 2, Look::poll, Floor::noted, 2, 0});
}

}  // namespace
}  // namespace latenz::explorer
