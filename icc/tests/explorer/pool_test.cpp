// Pool: all states of a writer and a reader, and defects that must not go unseen.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "mutants.hpp"
#include "pool_scenario.hpp"
#include "proven.hpp"

namespace latenz::explorer {
namespace {

using enum Model;

constexpr std::size_t longest = 9;  // more than a line: a class of its own

template <std::size_t Max = 1>
Report prove_pool(const PoolSetting& setting) {
  std::string what = "Pool, " + std::to_string(setting.messages) + " messages";
  if (setting.holding) what += ", in place, given back in another order";
  if (setting.long_ones) what += ", two sizes";
  if (setting.writer_restarts + setting.reader_restarts != 0) {
    what += ", crashes " + std::to_string(setting.writer_restarts) + "+" +
            std::to_string(setting.reader_restarts);
  }
  return prove(what, setting.model, [&] { return PoolScenario<Max>::run(setting); });
}

TEST(ExploredPool, AllMessagesInOrder) {
  for (const Model model : {interleaving, weak}) {
    prove_pool({.model = model, .messages = 6});
    prove_pool({.model = model, .messages = 6, .holding = true});
    prove_pool<longest>({.model = model, .messages = 6, .holding = true, .long_ones = true});
  }
}

TEST(ExploredPool, CrashesAtEveryAccess) {
  for (const Model model : {interleaving, weak}) {
    for (const bool holding : {false, true}) {
      prove_pool({.model = model, .messages = 3, .holding = holding, .writer_restarts = 1});
      prove_pool({.model = model, .messages = 3, .holding = holding, .reader_restarts = 1});
    }
    prove_pool({.model = model,
                .messages = 3,
                .holding = true,
                .writer_restarts = 1,
                .reader_restarts = 1});
  }
}

TEST(ExploredPool, Farther) {
  if (!far()) GTEST_SKIP() << "LATENZ_EXPLORE=far explores farther, which takes minutes";
  for (const Model model : {interleaving, weak}) {
    prove_pool({.model = model, .messages = 8, .holding = true});
    prove_pool({.model = model, .messages = 3, .writer_restarts = 1, .reader_restarts = 1});
    prove_pool<longest>({.model = model,
                         .messages = 3,
                         .holding = true,
                         .long_ones = true,
                         .writer_restarts = 1,
                         .reader_restarts = 1});
    prove_pool({.model = model,
                .messages = 3,
                .holding = true,
                .writer_restarts = 2,
                .reader_restarts = 2});
  }
}

TEST(ExploredPool, CallsAreBounded) {
  const Report report = PoolScenario<1>::run({.model = weak, .messages = 6});
  // ticket and state of both blocks, two words of payload, four of the entry, head, ticket
  EXPECT_LE(report.most_accesses[0], 16U);
  // epoch, head, four of the entry, taken, state four times, two words of payload
  EXPECT_LE(report.most_accesses[1], 16U);
}

// Where things are for items of two words; the byte table is in docs/icc-abi.md.
constexpr std::size_t head = icc::detail::data_offset(2, 2);
constexpr std::size_t tickets = head + 64;
constexpr std::size_t table = tickets + 64;
constexpr std::size_t taken = icc::detail::whole_pairs(table + 64);
constexpr std::size_t states = taken + 64;
constexpr std::size_t blocks = icc::detail::whole_pairs(states + 64);
static_assert(blocks + 128 == PoolScenario<1>::Channel::bytes);

bool is_in(const Access& access, Kind kind, std::size_t at, std::size_t end) {
  return access.kind == kind && offset(access) >= at && offset(access) < end;
}

void expect_pool_caught(const std::string& defect, Mutant&& mutant,
                        const PoolSetting& setting = {.model = weak, .messages = 5}) {
  expect_caught("Pool: " + defect, PoolScenario<1>::run(setting, &mutant));
}
constexpr PoolSetting dying_writer{.messages = 3, .holding = true, .writer_restarts = 1};
constexpr PoolSetting dying_reader{.messages = 3, .holding = true, .reader_restarts = 1};

TEST(MutantOfPool, HeadStoredRelaxed) {
  expect_pool_caught("head stored relaxed", relaxed(Kind::store, head));
}
TEST(MutantOfPool, HeadLoadedRelaxed) {
  expect_pool_caught("head loaded relaxed", relaxed(Kind::load, head));
}
TEST(MutantOfPool, StateStoredRelaxed) {
  expect_pool_caught("state stored relaxed", relaxed(Kind::store, states, states + 8));
}
TEST(MutantOfPool, StateLoadedRelaxed) {
  expect_pool_caught("state loaded relaxed", relaxed(Kind::load, states, states + 8));
}
TEST(MutantOfPool, HeadBeforeEntry) {
  expect_pool_caught("head told before the entry is there", StoredLater(table, table + 64, head));
}
TEST(MutantOfPool, HeadBeforeMessage) {
  expect_pool_caught("head told before the message is there",
                     StoredLater(blocks, blocks + 128, head));
}
TEST(MutantOfPool, BlockOfTheReaderLent) {
  expect_pool_caught("a block lent that the reader has", Changed([](const Access& wanted) {
                       if (is_in(wanted, Kind::load, states, states + 8) && thread() == 0) {
                         Access its = wanted;
                         its.word =
                             static_cast<std::uint16_t>(wanted.word - (states - tickets) / 4);
                         return perform(its);
                       }
                       return perform(wanted);
                     }));
}
TEST(MutantOfPool, GivenBackWhenTaken) {
  expect_pool_caught("a block given back when it is taken", Changed([](Access wanted) {
                       if (is_in(wanted, Kind::store, states, states + 8) && wanted.value % 2 == 1)
                         ++wanted.value;
                       return perform(wanted);
                     }),
                     {.model = weak, .messages = 5, .holding = false});
}

// The ticket comes before the head that makes the message count.
class TicketFirst final : public Mutant {
 public:
  void begin() override { head_.reset(); }
  std::uint32_t access(Access wanted) override {
    if (is(wanted, Kind::store, head) && thread() == 0) {
      head_ = wanted;
      return 0;
    }
    const std::uint32_t value = perform(wanted);
    if (is_in(wanted, Kind::store, tickets, tickets + 8) && head_) {
      perform(*head_);
      head_.reset();
    }
    return value;
  }

 private:
  std::optional<Access> head_;
};
TEST(MutantOfPool, TicketFirst) {
  expect_pool_caught("the ticket before the message counts", TicketFirst(), dying_writer);
}
TEST(MutantOfPool, RestartedWriterMendsNoTicket) {
  expect_pool_caught("restarted writer does not mend the newest ticket",
                     Changed([](const Access& wanted) {
                       return is_in(wanted, Kind::store, tickets, tickets + 8) && !wanted.ordered
                                  ? 0
                                  : perform(wanted);
                     }),
                     dying_writer);
}
// An attaching reader's stores of odd states, or of even ones, are not made.
class Attaching final : public Mutant {
 public:
  explicit Attaching(std::uint32_t parity) : parity_(parity) {}
  void begin() override { attaches_ = false; }
  std::uint32_t access(Access wanted) override {
    // only attaching looks at the magic
    if (thread() == 1 && is(wanted, Kind::load, 0)) attaches_ = true;
    if (attaches_ && is_in(wanted, Kind::store, states, states + 8) && wanted.value % 2 == parity_)
      return 0;
    return perform(wanted);
  }

 private:
  std::uint32_t parity_;
  bool attaches_ = false;
};
TEST(MutantOfPool, RestartedReaderGivesNothingBack) {
  expect_pool_caught("restarted reader gives nothing back", Attaching(0), dying_reader);
}
TEST(MutantOfPool, RestartedReaderMendsNoState) {
  expect_pool_caught("restarted reader does not mend the last state", Attaching(1), dying_reader);
}

}  // namespace
}  // namespace latenz::explorer
