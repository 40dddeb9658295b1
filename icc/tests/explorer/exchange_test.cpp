// Exchange: all states, with crashes at every access, and defects that must not go unseen.
#include "exchange_scenario.hpp"

#include <gtest/gtest.h>

#include <string>

#include "mutants.hpp"
#include "proven.hpp"

namespace latenz::explorer {
namespace {

using enum Model;

constexpr std::size_t one_line = 2, two_lines = 17;  // words of payload

template <std::size_t words>
Report prove_exchange(const ExchangeSetting& setting) {
  std::string what = "Exchange, " + std::string(words == one_line ? "one line, " : "two lines, ") +
                     std::to_string(setting.calls) + " calls";
  if (setting.waiting) what += ", waiting";
  if (setting.in_place) what += ", in place";
  if (setting.late == Late::first) what += ", client attaches meanwhile";
  if (setting.late == Late::second) what += ", server attaches meanwhile";
  if (setting.client_restarts + setting.server_restarts != 0) {
    what += ", crashes " + std::to_string(setting.client_restarts) + "+" +
            std::to_string(setting.server_restarts);
  }
  return prove(what, setting.model, [&] { return ExchangeScenario<words>::run(setting); });
}

TEST(ExploredExchange, EachRequestOnceAndItsOwnReply) {
  for (const Model model : {interleaving, weak}) {
    prove_exchange<one_line>({model, 6});
    prove_exchange<two_lines>({model, 3});
  }
}

TEST(ExploredExchange, CrashesAtEveryAccess) {
  for (const Model model : {interleaving, weak}) {
    prove_exchange<one_line>({model, 4, 1, 0});
    prove_exchange<one_line>({model, 4, 0, 1});
    prove_exchange<one_line>({model, 3, 1, 1});
    prove_exchange<two_lines>({model, 2, 1, 1});
  }
}

// Also deaths between loan and publish, of requests and of replies.
TEST(ExploredExchange, InPlace) {
  for (const Model model : {interleaving, weak}) {
    prove_exchange<one_line>({.model = model, .calls = 6, .in_place = true});
    prove_exchange<one_line>({model, 3, 1, 1, false, 0, Late::nobody, true});
    prove_exchange<two_lines>({model, 2, 1, 0, false, 0, Late::nobody, true});
  }
}

// The header for C and that for C++ are one program, with other padding between their members.
TEST(ExploredExchange, AsManyStatesInBothLanguages) {
  const Report report = ExchangeScenario<one_line>::run({interleaving, 3, 1, 1});
#ifndef __clang__  // which keeps padding: forget_padding
  EXPECT_EQ(report.states, 9830U);
#endif
  EXPECT_TRUE(report.passed());
}

TEST(ExploredExchange, OneSideAttachesMeanwhile) {
  for (const Model model : {interleaving, weak}) {
    for (const Late late : {Late::first, Late::second}) {
      prove_exchange<one_line>({.model = model, .calls = 3, .late = late});
      prove_exchange<one_line>({model, 2, 1, 1, false, 0, late});
      prove_exchange<one_line>({model, 1, 1, 0, true, 2, late});
      prove_exchange<one_line>({model, 1, 0, 1, true, 2, late});
    }
  }
}

TEST(ExploredExchange, WaitingCalls) {
  for (const Model model : {interleaving, weak}) {
    prove_exchange<one_line>({model, 2, 0, 0, true, 3});
    prove_exchange<one_line>({model, 1, 1, 1, true, 2});
  }
}

TEST(ExploredExchange, Farther) {
  if (!far()) GTEST_SKIP() << "LATENZ_EXPLORE=far explores farther, which takes minutes";
  for (const Model model : {interleaving, weak}) {
    prove_exchange<one_line>({model, 3, 2, 2});
    prove_exchange<two_lines>({model, 3, 2, 1});
    prove_exchange<one_line>({model, 2, 1, 1, true, 3});
  }
}

// Where things are for payloads of two words; the byte table is in docs/icc-abi.md.
constexpr std::size_t fields = 2, client_epoch = icc::detail::sides_offset(fields),
                      server_epoch = client_epoch + sizeof(icc::detail::Side),
                      slot = icc::detail::data_offset(fields, 2), turn = slot + 60;
static_assert(ExchangeScenario<one_line>::Channel::bytes == slot + 64);

template <std::size_t words = one_line>
void expect_exchange_caught(const std::string& defect, Mutant&& mutant,
                            const ExchangeSetting& setting = {weak, 3}) {
  expect_caught("Exchange: " + defect, ExchangeScenario<words>::run(setting, &mutant));
}

TEST(MutantOfExchange, TurnStoredRelaxed) {
  expect_exchange_caught("turn stored relaxed", relaxed(Kind::store, turn));
}
TEST(MutantOfExchange, TurnLoadedRelaxed) {
  expect_exchange_caught("turn loaded relaxed", relaxed(Kind::load, turn));
}
TEST(MutantOfExchange, TurnPassedBeforeThePayloadIsThere) {
  expect_exchange_caught("turn passed before the payload is there",
                         StoredLater(slot, slot + 8, turn), {interleaving, 3});
}

TEST(MutantOfExchange, SecondLineAfterTheTurn) {
  using Channel = ExchangeScenario<two_lines>::Channel;
  constexpr std::size_t last = Channel::bytes - 4;
  expect_exchange_caught<two_lines>("the second line's payload stored after the turn",
                                    StoredLater(last - 60, last, last));
}

constexpr ExchangeSetting in_place{.calls = 3, .in_place = true};
TEST(MutantOfExchange, PublishedBeforeItIsMade) {
  expect_exchange_caught("published before it is made", StoredLater(slot, slot + 8, turn),
                         in_place);
}
TEST(MutantOfExchange, TakenBeforeItIsPublished) {
  // the server takes what the client still makes; at its next look it has the turn
  expect_exchange_caught("taken before it is published",
                         loads(turn, 1, [](std::uint32_t word) { return word | 1U; }), in_place);
}

Changed without_epoch(int of) {
  return Changed([=](Access wanted) {
    if (is(wanted, Kind::store, turn) && thread() == of)
      wanted.value = (wanted.value & 0xFFFFFFU) | 1U << 24U;
    const std::uint32_t value = perform(wanted);
    const std::size_t epoch = of == 0 ? client_epoch : server_epoch;
    return is(wanted, Kind::load, epoch) && value != 0 && thread() != of ? 1 : value;
  });
}
TEST(MutantOfExchange, ClientsRestartUnseen) {
  expect_exchange_caught("no epoch: the client's restart goes unseen", without_epoch(0),
                         {interleaving, 3, 1, 0});
}
TEST(MutantOfExchange, ServersRestartUnseen) {
  expect_exchange_caught("no epoch: the server's restart goes unseen", without_epoch(1),
                         {interleaving, 3, 0, 1});
}

// A restarted server looks at the turn as if it had nothing to hand back.
class NothingHandedBack final : public Mutant {
 public:
  void begin() override { attaching_ = false; }
  std::uint32_t access(Access wanted) override {
    if (is(wanted, Kind::load, 0)) attaching_ = true;  // the magic
    const std::uint32_t value = perform(wanted);
    const bool looks = attaching_ && thread() == 1 && is(wanted, Kind::load, turn);
    return looks ? value & ~1U : value;
  }

 private:
  bool attaching_ = false;
};
TEST(MutantOfExchange, RestartedServerActsAgain) {
  expect_exchange_caught("restarted server acts again on the request it had", NothingHandedBack(),
                         {interleaving, 3, 0, 1});
}

TEST(MutantOfExchange, LateReplyTaken) {
  // what hands a request back looks like an answer: the client takes its own request for a reply
  expect_exchange_caught("handing back looks like answering", Changed([](Access wanted) {
                           static std::uint32_t had = 0;
                           if (is(wanted, Kind::load, turn) && thread() == 1) {
                             had = perform(wanted);
                             return had;
                           }
                           if (is(wanted, Kind::store, turn) && thread() == 1 &&
                               (wanted.value & 0xFFFFFFU) - (had & 0xFFFFFFU) == 3)
                             wanted.value -= 2;
                           return perform(wanted);
                         }),
                         {.calls = 2, .server_restarts = 1, .late = Late::second});
}

}  // namespace
}  // namespace latenz::explorer
