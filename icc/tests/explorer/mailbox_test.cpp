// Mailbox: all states, with crashes at every access, and defects that must not go unseen.
#include "mailbox_scenario.hpp"

#include <gtest/gtest.h>

#include <string>

#include "mutants.hpp"
#include "proven.hpp"

namespace latenz::explorer {
namespace {

using enum Model;

Report prove_mailbox(const MailboxSetting& setting) {
  std::string what = "Mailbox, " + std::to_string(setting.messages) + " messages";
  if (setting.waiting) what += ", waiting calls";
  if (setting.in_place) what += ", in place";
  if (setting.late == Late::first) what += ", writer attaches meanwhile";
  if (setting.late == Late::second) what += ", reader attaches meanwhile";
  if (setting.writer_restarts + setting.reader_restarts != 0) {
    what += ", crashes " + std::to_string(setting.writer_restarts) + "+" +
            std::to_string(setting.reader_restarts);
  }
  return prove(what, setting.model, [&] { return MailboxScenario::run(setting); });
}

TEST(ExploredMailbox, EachMessageOnceAndInOrder) {
  for (const Model model : {interleaving, weak}) prove_mailbox({model, 6});
}

TEST(ExploredMailbox, CrashesAtEveryAccess) {
  for (const Model model : {interleaving, weak}) {
    prove_mailbox({model, 4, 1, 0});
    prove_mailbox({model, 4, 0, 1});
    prove_mailbox({model, 3, 2, 2});
  }
}

TEST(ExploredMailbox, OneSideAttachesMeanwhile) {
  for (const Model model : {interleaving, weak}) {
    for (const Late late : {Late::first, Late::second}) {
      prove_mailbox({.model = model, .messages = 3, .late = late});
      prove_mailbox({model, 3, 1, 1, false, 0, late});
      prove_mailbox({model, 2, 1, 0, true, 3, late});
    }
  }
}

TEST(ExploredMailbox, WaitingCalls) {
  for (const Model model : {interleaving, weak}) {
    prove_mailbox({model, 2, 0, 0, true, 3});
    prove_mailbox({model, 2, 1, 1, true, 3});
  }
}

// Also deaths between loan and publish, and between taking and giving back.
TEST(ExploredMailbox, InPlace) {
  for (const Model model : {interleaving, weak}) {
    prove_mailbox({.model = model, .messages = 6, .in_place = true});
    prove_mailbox({model, 3, 1, 1, false, 0, Late::nobody, true});
    prove_mailbox({model, 3, 2, 0, false, 0, Late::second, true});
  }
}

TEST(ExploredMailbox, Farther) {
  if (!far()) GTEST_SKIP() << "LATENZ_EXPLORE=far explores farther, which takes minutes";
  for (const Model model : {interleaving, weak}) {
    prove_mailbox({model, 4, 3, 3});
    prove_mailbox({model, 3, 2, 1, true, 3});
  }
}

TEST(ExploredMailbox, AccessesOfEachCallAreBounded) {
  // try_write: reader's epoch, taken, two payload words, written;
  // try_read: written, writer's epoch, two payload words, taken
  EXPECT_EQ(MailboxScenario::run({interleaving, 3}).most_accesses,
            (std::vector<std::uint32_t>{5, 5}));
}

// Where things are for a payload of two words; the byte table is in docs/icc-abi.md.
constexpr std::size_t fields = 2, writer_epoch = icc::detail::sides_offset(fields),
                      slot = icc::detail::data_offset(fields, 2), taken = slot + 56,
                      written = slot + 60;
static_assert(MailboxScenario::Channel::bytes == slot + 64);

void expect_mailbox_caught(const std::string& defect, Mutant&& mutant,
                           const MailboxSetting& setting = {weak, 3}) {
  expect_caught("Mailbox: " + defect, MailboxScenario::run(setting, &mutant));
}

TEST(MutantOfMailbox, WrittenStoredRelaxed) {
  expect_mailbox_caught("count of messages stored relaxed", relaxed(Kind::store, written));
}
TEST(MutantOfMailbox, WrittenLoadedRelaxed) {
  expect_mailbox_caught("count of messages loaded relaxed", relaxed(Kind::load, written));
}
TEST(MutantOfMailbox, TakenStoredRelaxed) {
  expect_mailbox_caught("acknowledgement stored relaxed", relaxed(Kind::store, taken));
}
TEST(MutantOfMailbox, TakenLoadedRelaxed) {
  expect_mailbox_caught("acknowledgement loaded relaxed", relaxed(Kind::load, taken));
}
TEST(MutantOfMailbox, CountedBeforeThePayloadIsThere) {
  expect_mailbox_caught("counted before the payload is there", StoredLater(slot, slot + 8, written),
                        {interleaving, 3});
}

// The reader frees the slot as soon as it begins to copy.
class AcknowledgedBeforeCopied final : public Mutant {
 public:
  void begin() override { count_ = 0; }
  std::uint32_t access(Access wanted) override {
    if (is(wanted, Kind::store, taken)) return 0;
    if (is(wanted, Kind::read, slot))
      perform({Kind::store, true, static_cast<std::uint16_t>(taken / 4), count_ & 0xFFFFFFU});
    const std::uint32_t value = perform(wanted);
    if (is(wanted, Kind::load, written)) count_ = value;
    return value;
  }

 private:
  std::uint32_t count_ = 0;
};
TEST(MutantOfMailbox, AcknowledgedBeforeCopied) {
  expect_mailbox_caught("acknowledged before copied", AcknowledgedBeforeCopied(),
                        {interleaving, 3});
}

// The writer takes its own count for the reader's.
Changed slot_always_free() {
  return Changed([](const Access& wanted) {
    if (is(wanted, Kind::load, taken) && thread() == 0) {
      const Access own{Kind::load, true, static_cast<std::uint16_t>(written / 4)};
      return perform(own) & 0xFFFFFFU;
    }
    return perform(wanted);
  });
}

constexpr MailboxSetting in_place{.messages = 3, .in_place = true};
TEST(MutantOfMailbox, PublishedBeforeItIsMade) {
  expect_mailbox_caught("published before it is made", StoredLater(slot, slot + 8, written),
                        in_place);
}
TEST(MutantOfMailbox, GivenBackBeforeItIsRead) {
  expect_mailbox_caught("given back before it is read in place", AcknowledgedBeforeCopied(),
                        in_place);
}
TEST(MutantOfMailbox, LentBeforeItIsFree) {
  expect_mailbox_caught("lent before it is free", slot_always_free(), in_place);
}

// Every incarnation of the writer looks like the first.
Changed without_epoch() {
  return Changed([](Access wanted) {
    if (is(wanted, Kind::store, written)) wanted.value = (wanted.value & 0xFFFFFFU) | 1U << 24U;
    const std::uint32_t value = perform(wanted);
    return is(wanted, Kind::load, writer_epoch) && value != 0 ? 1 : value;
  });
}
TEST(MutantOfMailbox, RestartUnseen) {
  expect_mailbox_caught("no epoch: a restart goes unseen", without_epoch(),
                        {interleaving, 3, 1, 0});
}
TEST(MutantOfMailbox, StaleMessageDelivered) {
  // the message does not tell whose it is: one of the incarnation before is taken as the new one's
  expect_mailbox_caught("message without epoch: a stale one is delivered after the restart",
                        Changed([](const Access& wanted) {
                          const std::uint32_t value = perform(wanted);
                          if (!is(wanted, Kind::load, written) || thread() != 1) return value;
                          const Access now{Kind::load, true, writer_epoch / 4};
                          return (value & 0xFFFFFFU) | perform(now) << 24U;
                        }),
                        {interleaving, 3, 1, 0});
}
TEST(MutantOfMailbox, RestartedWriterCountsFromZero) {
  expect_mailbox_caught("restarted writer counts from zero",
                        loads(written, 0, [](std::uint32_t) { return 0U; }),
                        {interleaving, 3, 1, 0});
}
TEST(MutantOfMailbox, SlotUsedAgainBeforeItIsFree) {
  expect_mailbox_caught("slot used again before it is free", slot_always_free(), {interleaving, 3});
}

}  // namespace
}  // namespace latenz::explorer
