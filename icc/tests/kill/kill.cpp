// SPDX-License-Identifier: Apache-2.0
// Kills one of two processes that talk by a channel in POSIX shared memory, again and again, by
// SIGKILL at a random time or before a random access to the memory, and looks at what the other one
// and the next incarnation make of it. Prints JSON; exit code 1 if a rule was broken.
//
//   latenz-icc-kill --kills N [--seed N]     N in all, shared out among the scenarios
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "latenz/icc.hpp"
#include "latenz/icc/linux_memory.hpp"
#include "ledger.hpp"
#include "mortal.hpp"

namespace latenz::icc::kill {
namespace {

constexpr std::int64_t deadline_ns = 2'000'000;
constexpr std::int64_t watchdog_ns = 30'000'000'000;
constexpr std::uint32_t patience = 4096;

/// Waits mostly awake, so that both sides are at work at once, and sleeps now and then, so that a
/// machine with fewer processors than processes gets on.
void wait_a_little() {
  static std::uint32_t calls = 0;
  if (++calls % 64 == 0) {
    const timespec time{.tv_sec = 0, .tv_nsec = 10'000};
    nanosleep(&time, nullptr);
  }
}
void nothing() {}

using P =
    Platform<MortalMemory, MortalOrder, Impatient<WaitHook<wait_a_little, nothing>, patience>>;
using Clock = MonotonicClock;
using Deadline = Until<Clock>;

void print(std::FILE* file, const std::string& text) {
  if (std::fputs(text.c_str(), file) == EOF || std::fflush(file) != 0) std::exit(2);
}

[[noreturn]] void give_up(const char* what) {
  print(stderr, std::string("latenz-icc-kill: ") + what + "\n");
  std::exit(2);
}

/// What a process has in hand: the test's memory, the channel's, and whether it is the survivor.
struct Party {
  Ledger* ledger;
  const char* name;
  bool survives;

  [[nodiscard]] bool goes_on() const { return ledger->stop == 0; }

  /// One call, judged by its answer. `call` takes the deadline, and answers a Result; with
  /// `forever` it has none, and only the peer's silence ends it.
  template <class Call>
  [[nodiscard]] Result judged(bool forever, Call call) const {
    const std::uint64_t death = ledger->death;
    const std::int64_t begin_ns = Clock::now_ns();
    const Result result = call(Deadline{begin_ns + deadline_ns});
    const std::int64_t excess_ns = Clock::now_ns() - begin_ns - deadline_ns;
    if (!survives) {
      return result;
    }
    const bool in_vain = result == Result::timeout || result == Result::peer_gone;
    if (result == Result::ok) ++ledger->survivors_successes;
    if (result == Result::peer_restarted) ++ledger->restarts_told;
    if (in_vain && death == 0 && ledger->death == 0) ++ledger->waited_in_vain;
    if (death != 0 && !forever) {
      ledger->note_excess(static_cast<std::uint64_t>(excess_ns > 0 ? excess_ns : 0));
    }
    if (death != 0 && in_vain) ledger->reported = death;
    return result;
  }
};

/// The receiving side's rules, besides those of the ledger.
template <class Channel>
class Inspector {
 public:
  Inspector(const Party& party, void* memory) : ledger_{party.ledger}, memory_{memory} {}

  /// Incarnation of the sender at this moment.
  [[nodiscard]] std::uint32_t senders_epoch() const {
    const auto& counts = Channel::shape.field_count;
    return MortalOrder::load_acquire(
        detail::Header<P>{memory_}.side(counts[0] + counts[1], 0).presence.epoch);
  }
  void restarted() { known_epoch_ = senders_epoch(); }
  void attached_anew() {
    restarted();
    is_first_ = true;
  }

  void receive(const Message& message, std::uint32_t epoch_before_call) {
    if (!message.is_whole()) ++ledger_->torn;
    constexpr bool drops_stale =
        Channel::shape.kind == ChannelKind::mailbox || Channel::shape.kind == ChannelKind::exchange;
    if (drops_stale && message.epoch < epoch_before_call) ++ledger_->stale;
    if (known_epoch_ != 0 && message.epoch > known_epoch_) ++ledger_->unannounced;
    known_epoch_ = std::max(known_epoch_, message.epoch);
    ledger_->deliver(message.number, is_first_);
    is_first_ = false;
  }

 private:
  Ledger* ledger_;
  void* memory_;
  std::uint32_t known_epoch_ = 0;
  bool is_first_ = true;
};

template <class Opened>
auto opened_or_give_up(Opened opened) {
  if (!opened) {
    std::array<char, 200> line{};
    opened.problem().describe(line.data(), line.size());
    give_up(line.data());
  }
  return *opened;
}

constexpr std::uint32_t never = 0xFFFF'FFFF;

/// Makes what was lent; reads what was taken. A process may end at each word of it.
template <class Sender>
Result publish(Sender& sender, Result lent, Message* place, const Message& message) {
  if (lent == Result::ok) {
    MortalMemory::write(place, &message, sizeof message);
    sender.publish();
  }
  return lent;
}

bool is_even(const Message& message) { return message.number % 2 == 0; }

/// Each kind of channel: how its two sides are opened, and one call of each. `forever` waits
/// without deadline, which a dead peer must end as well. Half of the messages with a deadline are
/// made in place.
/// A sender that succeeds more than `unhindered` times beside a dead receiver waits for it no more.
struct MailboxPair {
  static constexpr const char* name = "mailbox";
  static constexpr std::uint32_t unhindered = never;
  using Channel = Mailbox<Message, P>;
  using Sender = Channel::Writer;
  using Receiver = Channel::Reader;

  static auto attach(void* memory) { return Receiver::attach(memory, Channel::bytes); }
  static Result send(Sender& sender, const Message& message, Deadline deadline, bool forever) {
    if (forever || !is_even(message)) {
      return forever ? sender.write(message) : sender.write_until(message, deadline);
    }
    Message* place = nullptr;
    const Result lent = sender.loan_until(place, deadline);
    return publish(sender, lent, place, message);
  }
  static Result receive(Receiver& receiver, Message& message, Deadline deadline, bool forever) {
    if (forever) return receiver.read(message);
    const Message* place = nullptr;
    const Result taken = receiver.take_until(place, deadline);
    if (taken != Result::ok) return taken;
    MortalMemory::read(&message, place, sizeof message);
    return receiver.release();
  }
};

/// The reply repeats the request.
struct ExchangePair {
  static constexpr const char* name = "exchange";
  static constexpr std::uint32_t unhindered = never;
  using Channel = Exchange<Message, Message, P>;
  using Sender = Channel::Client;
  using Receiver = Channel::Server;

  static auto attach(void* memory) { return Receiver::attach(memory, Channel::bytes); }
  static Result send(Sender& sender, const Message& message, Deadline deadline, bool forever) {
    Message reply{};
    const Result result = call(sender, message, reply, deadline, forever);
    const bool right = reply.is_whole() && reply.number == message.number;
    return result == Result::ok && !right ? Result::layout_changed : result;
  }
  static Result receive(Receiver& receiver, Message& message, Deadline deadline, bool forever) {
    const auto answer = [&message](const Message& request) {
      message = request;
      return request;
    };
    if (forever) return receiver.serve(answer);
    const Message* place = nullptr;
    const Result taken = receiver.take_until(place, deadline);
    if (taken != Result::ok) return taken;
    MortalMemory::read(&message, place, sizeof message);
    Message* reply = nullptr;
    const Result lent = receiver.try_loan(reply);
    return publish(receiver, lent, reply, message);
  }

 private:
  static Result call(Sender& sender, const Message& message, Message& reply, Deadline deadline,
                     bool forever) {
    if (forever) return sender.call(message, reply);
    if (!is_even(message)) return sender.call_until(message, reply, deadline);
    Message* place = nullptr;
    const Result lent = sender.loan_until(place, deadline);
    if (publish(sender, lent, place, message) != Result::ok) return lent;
    const Message* came = nullptr;
    const Result taken = sender.take_until(came, deadline);
    if (taken != Result::ok) return taken;
    MortalMemory::read(&reply, came, sizeof reply);
    return sender.release();
  }
};

/// Nobody waits for anybody, so the tester's own deadline ends waiting for a new value.
struct LatestPair {
  static constexpr const char* name = "latest";
  static constexpr std::uint32_t unhindered = 0;
  using Channel = Latest<Message, 2, P>;
  using Sender = Channel::Writer;
  using Receiver = Channel::Reader;

  static auto attach(void* memory) { return Receiver::attach(memory, Channel::bytes, 1); }
  static Result send(Sender& sender, const Message& message, Deadline /*deadline*/, bool in_place) {
    if (in_place) {
      MortalMemory::write(&sender.begin_update(), &message, sizeof message);
      sender.publish();
    } else {
      sender.update(message);
    }
    return Result::ok;
  }
  static Result receive(Receiver& receiver, Message& message, Deadline deadline, bool /*forever*/) {
    while (!deadline.expired()) {
      if (const Result result = receiver.check_writer(); result != Result::ok) return result;
      if (updated(receiver, message)) return Result::ok;
      P::Wait::pause();
    }
    return Result::timeout;
  }

 private:
  /// Copied by the channel, or in turns by the tester from where it stands.
  static bool updated(Receiver& receiver, Message& message) {
    const std::uint32_t seen = receiver.number();
    if (seen % 2 == 0) return receiver.poll(message) == Freshness::updated;
    const Message* const newest = receiver.view();
    if (newest == nullptr || receiver.number() == seen) return false;
    MortalMemory::read(&message, newest, sizeof message);
    return true;
  }
};

struct RingPair {
  static constexpr const char* name = "ring";
  static constexpr std::uint32_t unhindered = 4;
  using Channel = Ring<Message, 4, 1, P>;
  using Sender = Channel::Writer;
  using Receiver = Channel::Reader;

  static auto attach(void* memory) { return Receiver::attach(memory, Channel::bytes, 0); }
  static Result send(Sender& sender, const Message& message, Deadline deadline, bool forever) {
    const Result result = is_even(message) && !forever
                              ? send_in_place(sender, message, deadline)
                              : send_copy(sender, message, deadline, forever);
    if (result == Result::peer_gone) sender.leave_behind(0);
    return result;
  }
  static Result receive(Receiver& receiver, Message& message, Deadline deadline, bool forever) {
    if (forever) return receiver.read(message);
    const Message* place = nullptr;
    const Result taken = receiver.take_until(place, deadline);
    if (taken != Result::ok) return taken;
    MortalMemory::read(&message, place, sizeof message);
    return receiver.release();  // `busy`: left behind meanwhile, and what was read may be torn
  }

 private:
  static Result send_copy(Sender& sender, const Message& message, Deadline deadline, bool forever) {
    return forever ? sender.write(message) : sender.write_until(message, deadline);
  }
  static Result send_in_place(Sender& sender, const Message& message, Deadline deadline) {
    Message* place = nullptr;
    const Result lent = sender.loan_until(place, deadline);
    return publish(sender, lent, place, message);
  }
};

/// Whether a dead receiver is noticed by the sender at all: a Latest has no use for that.
template <class Pair>
constexpr bool sender_waits = !std::is_same_v<Pair, LatestPair>;
/// Whether the sender is told that a receiver has begun anew: readers of a Ring come and go.
template <class Pair>
constexpr bool sender_is_told = sender_waits<Pair> && !std::is_same_v<Pair, RingPair>;

template <class Pair>
void send_all(const Party& party, void* memory) {
  auto sender = opened_or_give_up(Pair::Sender::create(memory, Pair::Channel::bytes, Pair::name));
  std::uint64_t seen = 0;  // death
  std::uint32_t unhindered = 0;
  while (party.goes_on()) {
    const std::uint64_t number = ++party.ledger->sent;
    const Message message = Message::make(number, sender.epoch());
    const bool forever = number % 4 == 0;
    const Result result = party.judged(
        forever, [&](Deadline deadline) { return Pair::send(sender, message, deadline, forever); });
    if (result == Result::ok) party.ledger->confirm(number);
    if (result == Result::layout_changed) ++party.ledger->unexpected;
    const std::uint64_t death = party.ledger->death;
    unhindered = death != 0 && death == seen && result == Result::ok ? unhindered + 1 : 0;
    seen = death;
    if (party.survives && unhindered > Pair::unhindered) party.ledger->reported = death;
    if (!sender_waits<Pair>) {
      P::Wait::pause();
    }
  }
}

/// Looks at a ring from outside as well; nothing may be torn there either.
template <class Pair>
void receive_all(const Party& party, void* memory) {
  Inspector<typename Pair::Channel> inspector{party, memory};
  auto receiver = opened_or_give_up(Pair::attach(memory));
  for (std::uint32_t calls = 0; party.goes_on(); ++calls) {
    Message message{};
    const bool forever = calls % 4 == 0;
    const std::uint32_t epoch = inspector.senders_epoch();
    const Result result = party.judged(forever, [&](Deadline deadline) {
      return Pair::receive(receiver, message, deadline, forever);
    });
    if (result == Result::peer_restarted) inspector.restarted();
    if (result == Result::ok) inspector.receive(message, epoch);
    if (result == Result::busy) {  // left behind by a sender that found this side silent
      receiver = opened_or_give_up(Pair::attach(memory));
      inspector.attached_anew();
    }
    if (result == Result::layout_changed) ++party.ledger->unexpected;
    if constexpr (std::is_same_v<Pair, RingPair>) {
      auto observer =
          opened_or_give_up(Pair::Channel::Observer::attach(memory, Pair::Channel::bytes));
      if (observer.read_latest(message) == Result::ok && !message.is_whole()) {
        ++party.ledger->torn;
      }
    }
  }
}

template <class Pair>
[[noreturn]] void live(const Party& party, bool sends, std::uint32_t last_access) {
  const LinuxMemory memory = LinuxMemory::shared(party.name, Pair::Channel::bytes);
  if (!memory) give_up(memory.problem());
  Mortality::ends_before(last_access);
  sends ? send_all<Pair>(party, memory.data()) : receive_all<Pair>(party, memory.data());
  Mortality::ends_before(0);
  _exit(0);
}

/// What came of one scenario.
struct Outcome {
  const char* channel;
  const char* victim;
  std::uint64_t kills = 0;
  std::uint64_t kills_at_an_access = 0;
  std::uint64_t recoveries = 0;  ///< deaths after which messages were awaited to pass again
  std::uint64_t untold = 0;      ///< of these, without `peer_restarted` before
};

template <class Pair>
class Scenario {
 public:
  Scenario(bool victim_sends, std::uint64_t seed)
      : victim_sends_{victim_sends}, random_{seed}, ledger_{make_ledger()} {
    LinuxMemory::remove_shared(name_.c_str());
    const LinuxMemory memory = LinuxMemory::create_shared(name_.c_str(), Pair::Channel::bytes);
    if (!memory) give_up(memory.problem());
    opened_or_give_up(Pair::Sender::create(memory.data(), Pair::Channel::bytes, Pair::name));
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
      victim_ = start(false, at_an_access ? below(400) + 1 : 0);
      if (recovers) await_recovery(outcome);
      at_an_access ? await_suicide() : kill_within(below(16) == 0 ? 5000 : 500);
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
  [[nodiscard]] std::uint64_t dropped() const {
    const LinuxMemory memory = LinuxMemory::shared(name_.c_str(), Pair::Channel::bytes);
    const auto& counts = Pair::Channel::shape.field_count;
    const std::size_t receiver = std::is_same_v<Pair, LatestPair> ? 2 : 1;
    return detail::Header<P>{memory.data()}.side(counts[0] + counts[1], receiver).presence.dropped;
  }

 private:
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
  std::uint32_t below(std::uint32_t end) {
    return std::uniform_int_distribution<std::uint32_t>{0, end - 1}(random_);
  }

  pid_t start(bool survives, std::uint32_t last_access) {
    const pid_t process = fork();
    if (process < 0) give_up("no more processes");
    if (process == 0) {
      const Party party{.ledger = &ledger_, .name = name_.c_str(), .survives = survives};
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

  void kill_within(std::uint32_t most_us) {
    usleep(below(most_us));
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

  const std::string name_ = "/latenz-kill-" + std::to_string(getpid());
  const bool victim_sends_;
  std::mt19937_64 random_;
  Ledger& ledger_;
  pid_t survivor_ = 0;
  pid_t victim_ = 0;
  std::uint64_t told_ = 0;
};

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
  const std::array<std::pair<const char*, std::uint64_t>, 17> figures{{
      {"kills", outcome.kills},
      {"kills_at_an_access", outcome.kills_at_an_access},
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
  return ledger.torn + ledger.twice + ledger.stale + lost + outcome.untold + ledger.unannounced +
             ledger.unexpected ==
         0;
}

std::uint64_t number(const char* text) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0') give_up("usage: latenz-icc-kill --kills N [--seed N]");
  return value;
}

int examine(int count, const char* const* arguments) {
  std::uint64_t kills = 0;
  std::uint64_t seed = 1;
  for (int i = 1; i < count; i += 2) {
    const bool is_kills = std::strcmp(arguments[i], "--kills") == 0;
    if (i + 1 == count || (!is_kills && std::strcmp(arguments[i], "--seed") != 0)) {
      give_up("usage: latenz-icc-kill --kills N [--seed N]");
    }
    (is_kills ? kills : seed) = number(arguments[i + 1]);
  }
  using Run = bool (*)(bool, std::uint64_t, std::uint64_t, bool);
  constexpr std::array<Run, 4> runs{examined<MailboxPair>, examined<ExchangePair>,
                                    examined<LatestPair>, examined<RingPair>};
  bool kept = true;
  std::uint64_t scenario = 0;
  for (const Run run : runs) {
    for (const bool victim_sends : {true, false}) {
      const std::uint64_t share = (kills + 2 * runs.size() - 1) / (2 * runs.size());
      kept = run(victim_sends, share, seed + scenario, scenario == 0) && kept;
      ++scenario;
    }
  }
  print(stdout, "\n]\n");
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace latenz::icc::kill

int main(int count, char* const* arguments) { return latenz::icc::kill::examine(count, arguments); }
