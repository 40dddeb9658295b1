// SPDX-License-Identifier: Apache-2.0
// Starts both sides of a channel, kills one of them again and again, and counts what comes of it.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <type_traits>

#include "pairs.hpp"

namespace latenz::icc::kill {

constexpr std::int64_t watchdog_ns = 30'000'000'000;

/// What came of one scenario.
struct Outcome {
  const char* channel;
  const char* victim;
  std::uint64_t kills = 0;
  std::uint64_t kills_at_an_access = 0;
  std::uint64_t killed_asleep = 0;
  std::uint64_t recoveries = 0;  ///< deaths after which messages were awaited to pass again
  std::uint64_t untold = 0;      ///< of these, without `peer_restarted` before
};

template <class Pair>
class Scenario {
 public:
  Scenario(bool victim_sends, std::uint64_t seed)
      : victim_sends_{victim_sends}, random_{seed}, ledger_{make_ledger()} {
    if (!memory_) give_up(memory_.problem());
    opened_or_give_up(Pair::Sender::create(memory_.data(), Pair::Channel::bytes, Pair::name));
  }
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;
  ~Scenario() {
    LinuxMemory::remove_shared(name_.c_str());
    munmap(&ledger_, sizeof(Ledger));
  }

  Outcome run(std::uint64_t kills) {
    Outcome outcome{.channel = Pair::name, .victim = role(victim_sends_)};
    survivor_ = start(true, 0);
    for (; outcome.kills < kills; ++outcome.kills) {
      const bool recovers = outcome.kills % 2 == 0;
      const bool at_an_access = !recovers && outcome.kills % 4 == 1;
      const bool asleep = sleeps && outcome.kills % 4 != 1 && outcome.kills % 8 != 7;
      victim_ = start(false, at_an_access ? below(400) + 1 : 0);
      if (recovers) await_recovery(outcome);
      if (asleep) await_sleep();
      at_an_access ? await_suicide() : kill_within(asleep ? 1 : below(16) == 0 ? 5000 : 500);
      outcome.killed_asleep += side_of_victim().pulse.asleep;
      outcome.kills_at_an_access += at_an_access ? 1U : 0U;
      ledger_.death = outcome.kills + 1;
      await("the survivor does not report the death",
            [&] { return ledger_.reported == outcome.kills + 1; });
      ledger_.death = 0;
    }
    victim_ = start(false, 0);
    await_recovery(outcome);
    ledger_.stop = 1;
    expect_exit(victim_);
    expect_exit(survivor_);
    return outcome;
  }

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }

  /// Messages that one side threw away because an incarnation had ended; told by the channel.
  [[nodiscard]] std::uint64_t dropped() const { return side(receiver).presence.dropped; }

  /// Blocks of a pool that nobody can use any more.
  [[nodiscard]] std::uint64_t leaked() const {
    if constexpr (requires { Pair::leaked(memory_.data()); }) {
      return Pair::leaked(memory_.data());
    } else {
      return 0;
    }
  }

 private:
  static constexpr std::size_t receiver = std::is_same_v<Pair, LatestPair> ? 2 : 1;

  static Ledger& make_ledger() {
    void* memory =
        mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) give_up("no memory");
    return *static_cast<Ledger*>(memory);
  }
  static const char* role(bool sends) {
    if (std::is_same_v<Pair, ExchangePair>) return sends ? "client" : "server";
    return sends ? "writer" : "reader";
  }
  [[nodiscard]] detail::Side& side(std::size_t number) const {
    const auto& counts = Pair::Channel::shape.field_count;
    return detail::Header<P>{memory_.data()}.side(counts[0] + counts[1], number);
  }
  [[nodiscard]] detail::Side& side_of_victim() const { return side(victim_sends_ ? 0 : receiver); }

  std::uint32_t below(std::uint32_t end) {
    return std::uniform_int_distribution<std::uint32_t>{0, end - 1}(random_);
  }

  pid_t start(bool survives, std::uint32_t last_access) {
    const pid_t process = fork();
    if (process < 0) give_up("no more processes");
    if (process == 0) {
      const Party party{
          .ledger = &ledger_, .name = name_.c_str(), .survives = survives, .bells = &bells_};
      live<Pair>(party, survives != victim_sends_, last_access);
    }
    return process;
  }

  void await(const char* otherwise, const std::function<bool()>& condition) {
    const std::int64_t limit_ns = Clock::now_ns() + watchdog_ns;
    while (!condition()) {
      if (Clock::now_ns() > limit_ns) {
        ::kill(victim_, SIGKILL);
        ::kill(survivor_, SIGKILL);
        give_up(otherwise);
      }
      usleep(20);
    }
  }

  /// Messages pass in both senses of the word: delivered, and answered to the survivor.
  void await_recovery(Outcome& outcome) {
    const std::uint64_t delivered = ledger_.deliveries;
    const std::uint64_t succeeded = ledger_.survivors_successes;
    await("messages do not pass again", [&] {
      return ledger_.deliveries > delivered + 8 && ledger_.survivors_successes > succeeded + 8;
    });
    const bool is_told = victim_sends_ || sender_is_told<Pair>;
    if (is_told && outcome.kills != 0 && ledger_.restarts_told == told_) ++outcome.untold;
    told_ = ledger_.restarts_told;
    ++outcome.recoveries;
  }

  /// Until the victim is seen asleep, or seems not to fall asleep.
  void await_sleep() const {
    const auto in_20_ms = Deadline::after(20'000'000);
    while (MortalOrder::load_relaxed(side_of_victim().pulse.asleep) == 0 && !in_20_ms.expired()) {
      sched_yield();
    }
  }

  void kill_within(std::uint32_t most_us) {
    if (most_us > 1) usleep(below(most_us));
    ::kill(victim_, SIGKILL);
    expect_killed();
  }

  /// A victim that makes few accesses, since its peer is idle, is killed after a while.
  void await_suicide() {
    for (int i = 0; i < 2000; ++i) {
      int status = 0;
      if (waitpid(victim_, &status, WNOHANG) == victim_) return;
      usleep(50);
    }
    ::kill(victim_, SIGKILL);
    expect_killed();
  }

  void expect_killed() const {
    int status = 0;
    if (waitpid(victim_, &status, 0) != victim_ || !WIFSIGNALED(status)) {
      give_up("the victim ended by itself");
    }
  }
  static void expect_exit(pid_t process) {
    int status = 0;
    if (waitpid(process, &status, 0) != process || status != 0) give_up("a process failed");
  }

  static LinuxMemory created(const std::string& name) {
    LinuxMemory::remove_shared(name.c_str());
    return LinuxMemory::create_shared(name.c_str(), Pair::Channel::bytes);
  }

  const std::string name_ = "/latenz-kill-" + std::to_string(getpid());
  const LinuxMemory memory_ = created(name_);
  const Bells<typename Pair::Channel> bells_;
  const bool victim_sends_;
  std::mt19937_64 random_;
  Ledger& ledger_;
  pid_t survivor_ = 0;
  pid_t victim_ = 0;
  std::uint64_t told_ = 0;
};

}  // namespace latenz::icc::kill
