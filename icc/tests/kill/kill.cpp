// SPDX-License-Identifier: Apache-2.0
// Kills one of two processes that talk by a channel in POSIX shared memory, again and again, by
// SIGKILL at a random time, asleep, or before a random access to the memory, and looks at what the
// other one and the next incarnation make of it. Prints JSON; exit code 1 if a rule was broken.
//
//   latenz-icc-kill --kills N [--seed N] [--channel NAME]     N in all, shared out among the
//                                                             scenarios
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "pool_pair.hpp"
#include "scenario.hpp"

namespace latenz::icc::kill {
namespace {

/// The excess that this share of calls does not go beyond: an upper edge of a bucket.
std::uint64_t excess_at(const Ledger& ledger, double share) {
  std::uint64_t calls = 0;
  for (const Counter& bucket : ledger.excess_ns) calls += bucket;
  std::uint64_t so_far = 0;
  for (std::size_t digits = 0; digits < Ledger::excess_buckets; ++digits) {
    so_far += ledger.excess_ns[digits];
    if (static_cast<double>(so_far) >= share * static_cast<double>(calls)) {
      return (std::uint64_t{1} << digits) - 1;
    }
  }
  return 0;
}

/// Runs one scenario and prints it; whether every rule was kept.
template <class Pair>
bool examined(bool victim_sends, std::uint64_t kills, std::uint64_t seed, bool is_first) {
  Scenario<Pair> scenario{victim_sends, seed};
  const Outcome outcome = scenario.run(kills);
  const Ledger& ledger = scenario.ledger();
  constexpr bool may_skip = std::is_same_v<Pair, LatestPair>;
  constexpr bool may_drop = !std::is_same_v<Pair, RingPair>;  // what a sender left behind
  const std::uint64_t dropped = scenario.dropped();
  const std::uint64_t may_be_dropped = may_drop ? dropped : 0;
  const std::uint64_t allowed = may_skip ? ledger.skipped.load() : may_be_dropped;
  const std::uint64_t lost = ledger.skipped - std::min(ledger.skipped.load(), allowed);
  const std::array<std::pair<const char*, std::uint64_t>, 19> figures{{
      {"kills", outcome.kills},
      {"kills_at_an_access", outcome.kills_at_an_access},
      {"killed_asleep", outcome.killed_asleep},
      {"deaths_reported", ledger.reported},
      {"recoveries", outcome.recoveries},
      {"restarts_told", ledger.restarts_told},
      {"messages_delivered", ledger.deliveries},
      {"messages_dropped", dropped},
      {"waited_in_vain", ledger.waited_in_vain},
      {"deadline_ns", deadline_ns},
      {"excess_p99_ns", excess_at(ledger, 0.99)},
      {"excess_max_ns", ledger.most_excess_ns},
      {"torn", ledger.torn},
      {"twice", ledger.twice},
      {"stale", ledger.stale},
      {"lost", lost},
      {"leaked", scenario.leaked()},
      {"untold", outcome.untold + ledger.unannounced},
      {"unexpected", ledger.unexpected},
  }};
  std::string line = is_first ? "[\n" : ",\n";
  line += std::string(R"( {"channel": ")") + outcome.channel + R"(", "victim": ")" +
          outcome.victim + '"';
  for (const auto& [key, value] : figures) {
    line += std::string(R"(, ")") + key + R"(": )" + std::to_string(value);
  }
  print(stdout, line + "}");
  return ledger.torn + ledger.twice + ledger.stale + lost + scenario.leaked() + outcome.untold +
             ledger.unannounced + ledger.unexpected ==
         0;
}

constexpr const char* usage = "usage: latenz-icc-kill --kills N [--seed N] [--channel NAME]";

std::uint64_t number(const char* text) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0') give_up(usage);
  return value;
}

/// What the command line asks for.
struct Order {
  std::uint64_t kills = 0;  ///< in all
  std::uint64_t seed = 1;
  const char* channel = nullptr;  ///< the only one to kill; null: each kind
};

Order order_of(int count, const char* const* arguments) {
  Order order;
  for (int i = 1; i < count; i += 2) {
    const std::string name = arguments[i];
    if (i + 1 == count) give_up(usage);
    if (name == "--kills") {
      order.kills = number(arguments[i + 1]);
    } else if (name == "--seed") {
      order.seed = number(arguments[i + 1]);
    } else if (name == "--channel") {
      order.channel = arguments[i + 1];
    } else {
      give_up(usage);
    }
  }
  return order;
}

struct Kind {
  const char* name;
  bool (*run)(bool victim_sends, std::uint64_t kills, std::uint64_t seed, bool is_first);
};
template <class... Pair>
constexpr std::array<Kind, sizeof...(Pair)> kinds_of{Kind{Pair::name, examined<Pair>}...};
#ifdef KILL_FUTEX  // a Latest has no call that waits, so it sleeps by its descriptor only
constexpr auto kinds = kinds_of<MailboxPair, ExchangePair, RingPair, PoolPair>;
#else
constexpr auto kinds = kinds_of<MailboxPair, ExchangePair, LatestPair, RingPair, PoolPair>;
#endif

int examine(int count, const char* const* arguments) {
  const Order order = order_of(count, arguments);
  const auto is_wanted = [&order](const Kind& kind) {
    return order.channel == nullptr || std::strcmp(order.channel, kind.name) == 0;
  };
  const auto wanted = 2 * static_cast<std::uint64_t>(std::ranges::count_if(kinds, is_wanted));
  if (wanted == 0) give_up("this channel is not among those that this program kills");
  const std::uint64_t share = (order.kills + wanted - 1) / wanted;
  bool kept = true;
  std::uint64_t scenario = 0;
  for (const Kind& kind : kinds) {
    if (!is_wanted(kind)) continue;
    for (const bool victim_sends : {true, false}) {
      kept = kind.run(victim_sends, share, order.seed + scenario, scenario == 0) && kept;
      ++scenario;
    }
  }
  print(stdout, "\n]\n");
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace latenz::icc::kill

int main(int count, char* const* arguments) { return latenz::icc::kill::examine(count, arguments); }
