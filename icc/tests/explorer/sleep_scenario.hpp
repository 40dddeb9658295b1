// Sides that sleep, explored over a bell without timeout: whoever sleeps and is not woken sleeps
// for ever, and from such a state no end can be reached.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "explorer.hpp"
#include "latest_scenario.hpp"
#include "mutants.hpp"
#include "sleep_bells.hpp"
#include "under_test.hpp"

namespace latenz::explorer {

// Never reached. (`Never` itself would look for signs of life, which makes states and tells
// nothing.)
constexpr icc::Checks no_deadline{1'000'000};

template <class Bell>
using Sleeping = icc::Platform<PlainPayload, ExploredOrder, icc::Sleep<Bell>>;

struct SleepSetting {
  Model model = Model::interleaving;
  std::uint32_t messages = 1;
  std::uint8_t restarts_of_first = 0, restarts_of_others = 0;
  bool late = false;  // the others attach meanwhile
  bool loop = false;  // each side waits by itself, in place of calls that wait

  [[nodiscard]] bool may_lose() const { return restarts_of_first + restarts_of_others != 0; }
};

// A side that acts until it has left, or is left alone, and may die and come back meanwhile.
template <class Channel, class Endpoint>
struct SleepingSide : Thread {
  explicit SleepingSide(const SleepSetting& with) : setting(with) {}

  virtual void open() = 0;
  virtual void act() = 0;
  void operation() final { opened ? act() : open(); }
  [[nodiscard]] bool ended() const final { return over; }
  void lose_endpoint() override {
    opened = false;
    endpoint = {};
    forget_padding(endpoint);
  }

  void open_as(const icc::Opened<Endpoint>& made) {
    endpoint = *made;
    forget_padding(endpoint);
#ifdef LATENZ_EXPLORE_OWN_BELLS
    endpoint.use_bells(bells_of<Channel>);
#else
    if constexpr (own_bells) endpoint.use_bells(ExploredBells<Channel>{});
#endif
    opened = true;
  }

  // A call that waits; or what a loop of poll(2) does in its place: arm, check, wait.
  template <class Attempt, class Call>
  icc::Result await(Attempt attempt, Call call) {
    if constexpr (own_bells) {
      if (setting.loop) return go_round(attempt);
    }
    return call();
  }

  // Whether an answer tells of nothing: of a loop it may, of a call without deadline it may not.
  [[nodiscard]] bool may_answer(icc::Result result, bool peer_may_restart) const {
    if (result == icc::Result::peer_restarted) return peer_may_restart;
    return setting.loop && is_nothing(result);
  }

  SleepSetting setting;
  Endpoint endpoint;
  bool opened = false;
  bool over = false;

 private:
  static constexpr bool own_bells = requires(Endpoint& side) { side.arm(); };

  static bool is_nothing(icc::Result result) {
    return result == icc::Result::empty || result == icc::Result::full;
  }

  template <class Attempt>
  icc::Result go_round(Attempt attempt) {
    icc::Result result = attempt();
    if (!is_nothing(result)) return result;
    const icc::Result armed = endpoint.arm();
    result = attempt();
    if (is_nothing(result)) {
      if (armed == icc::Result::ok) {
        ExploredOwnBell::poll(endpoint.fd());
      } else {
        result = armed;
      }
    }
    endpoint.disarm();
    return result;
  }
};

template <class First, class Other>
Report run_sleep(const SleepSetting& setting, std::uint32_t others, Mutant* mutant) {
  std::memset(Arena::memory(), 0, Arena::bytes);
  Explorer explorer(setting.model);
  explorer.add<First>("first", setting);
  explorer.may_restart(setting.restarts_of_first);
  for (std::uint32_t i = 0; i < others; ++i) {
    explorer.add<Other>("other " + std::to_string(i), setting, i);
    explorer.may_restart(setting.restarts_of_others);
  }
  if (mutant != nullptr) explorer.seed_defect(*mutant);
  return explorer.run();
}

// A writer and its readers, of a Mailbox or a Ring. The writer leaves when it has written all; a
// reader reads until then.
template <class Channel, std::uint32_t readers>
struct SleepScenario {
  static_assert(Channel::bytes <= Arena::bytes);
  static constexpr const char* unit = "messages";

  struct Writer final : SleepingSide<Channel, typename Channel::Writer> {
    explicit Writer(const SleepSetting& with)
        : SleepingSide<Channel, typename Channel::Writer>(with) {
      open();
    }
    void open() override {
      this->open_as(Channel::Writer::create(Arena::memory(), Channel::bytes, "explored"));
    }
    void act() override {
      if (written == this->setting.messages) {
        this->endpoint.close();
        this->over = true;
        return;
      }
      const Pair next{written + 1, written + 1};
      const icc::Result result =
          this->await([&] { return this->endpoint.try_write(next); },
                      [&] { return this->endpoint.write_until(next, no_deadline); });
      if (result == icc::Result::ok) ++written;
    }
    void lose_endpoint() override {
      SleepingSide<Channel, typename Channel::Writer>::lose_endpoint();
      // the one in hand may be there
      written = std::min(written + 1, this->setting.messages);
    }

    std::uint32_t written = 0;
  };

  struct Reader final : SleepingSide<Channel, typename Channel::Reader> {
    Reader(const SleepSetting& with, std::uint32_t of)
        : SleepingSide<Channel, typename Channel::Reader>(with), index(of) {
      if (!with.late) open();
    }
    void open() override {
      if constexpr (requires { Channel::Reader::attach(Arena::memory(), Channel::bytes); }) {
        this->open_as(Channel::Reader::attach(Arena::memory(), Channel::bytes));
      } else {
        this->open_as(Channel::Reader::attach(Arena::memory(), Channel::bytes, index));
      }
    }
    void act() override {
      Pair message{};
      icc::Result result =
          this->await([&] { return this->endpoint.try_read(message); },
                      [&] { return this->endpoint.read_until(message, no_deadline); });
      if (result == icc::Result::peer_gone && this->endpoint.try_read(message) == icc::Result::ok)
        result = icc::Result::ok;  // it came after the last look, before the writer left
      if (result == icc::Result::ok) {
        if (message.a != message.b) fail("torn");
        if (message.a <= last) fail("delivered twice, or out of order");
        last = message.a;
      } else if (result == icc::Result::peer_gone) {
        if (!this->setting.may_lose() && !this->setting.late && last != this->setting.messages)
          fail("a message was lost");
        this->over = true;
      } else if (!this->may_answer(result, this->setting.restarts_of_first != 0)) {
        fail("a call without deadline ended without reason");
      }
    }

    std::uint32_t index;
    std::uint32_t last = 0;
  };

  static Report run(const SleepSetting& setting, Mutant* mutant = nullptr) {
    return run_sleep<Writer, Reader>(setting, readers, mutant);
  }
};

template <class Bell>
using SleepingMailbox = SleepScenario<under_test::Mailbox<Pair, Sleeping<Bell>>, 1>;
template <class Bell, std::uint32_t readers>
using SleepingRing = SleepScenario<under_test::Ring<Pair, 2, readers, Sleeping<Bell>>, readers>;

// A client and its server: the client leaves after its last call, the server serves until then.
template <class Bell>
struct SleepingExchange {
  struct Number {
    std::uint32_t value;
  };
  using Channel = under_test::Exchange<Number, Number, Sleeping<Bell>>;
  static_assert(Channel::bytes <= Arena::bytes);
  static constexpr const char* unit = "calls";

  struct Client final : SleepingSide<Channel, typename Channel::Client> {
    explicit Client(const SleepSetting& with)
        : SleepingSide<Channel, typename Channel::Client>(with) {
      open();
    }
    void open() override {
      this->open_as(Channel::Client::create(Arena::memory(), Channel::bytes, "explored"));
    }
    void act() override {
      if (calls == this->setting.messages && !posted) {
        this->endpoint.close();
        this->over = true;
        return;
      }
      Number reply{};
      const icc::Result result =
          this->await([&] { return attempt(reply); },
                      [&] {
                        const Number request{++calls};
                        return this->endpoint.call_until(request, reply, no_deadline);
                      });
      if (result == icc::Result::ok) {
        if (reply.value != calls) fail("another call's reply");
      } else if (!this->may_answer(result, this->setting.restarts_of_others != 0)) {
        fail("a call without deadline ended without reason");
      }
    }
    void lose_endpoint() override {
      SleepingSide<Channel, typename Channel::Client>::lose_endpoint();
      posted = false;
    }
    // The call in a loop: a request, then a look for its reply.
    icc::Result attempt(Number& reply) {
      if (!posted) {
        const icc::Result result = this->endpoint.try_post({calls + 1});
        if (result != icc::Result::ok) return result;
        ++calls;
        posted = true;
      }
      const icc::Result result = this->endpoint.try_collect(reply);
      if (result != icc::Result::empty) posted = false;
      return result;
    }

    std::uint32_t calls = 0;
    bool posted = false;  // in a loop
  };

  struct Server final : SleepingSide<Channel, typename Channel::Server> {
    Server(const SleepSetting& with, std::uint32_t /*index*/)
        : SleepingSide<Channel, typename Channel::Server>(with) {
      if (!with.late) open();
    }
    void open() override {
      this->open_as(Channel::Server::attach(Arena::memory(), Channel::bytes));
    }
    void act() override {
      const icc::Result result = this->await(
          [&] {
            Number request{};
            const icc::Result taken = this->endpoint.try_take(request);
            return taken == icc::Result::ok ? this->endpoint.answer(request) : taken;
          },
          [&] {
            return this->endpoint.serve_until([](const Number& request) { return request; },
                                              no_deadline);
          });
      if (result == icc::Result::peer_gone) {
        this->over = true;
      } else if (result != icc::Result::ok &&
                 !this->may_answer(result, this->setting.restarts_of_first != 0)) {
        fail("a call without deadline ended without reason");
      }
    }
  };

  static Report run(const SleepSetting& setting, Mutant* mutant = nullptr) {
    return run_sleep<Client, Server>(setting, 1, mutant);
  }
};

}  // namespace latenz::explorer
