// Sides that sleep, explored over a bell without timeout: whoever sleeps and is not woken sleeps
// for ever, and from such a state no end can be reached.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "explorer.hpp"
#include "latenz/icc.hpp"
#include "latest_scenario.hpp"
#include "mutants.hpp"

namespace latenz::explorer {

// Where the words of side `of` are, for payloads of two fields; the byte table is in
// docs/icc-abi.md.
constexpr std::size_t side_at(std::size_t of) {
  return icc::detail::sides_offset(2) + (of * sizeof(icc::detail::Side));
}
constexpr std::size_t open_at(std::size_t of) { return side_at(of) + 4; }
constexpr std::size_t asleep_at(std::size_t of) { return side_at(of) + 68; }
constexpr std::size_t rings_at(std::size_t of) { return side_at(of) + 72; }

// A futex as its manual page tells: comparing and going to sleep are one step as seen by those who
// wake, and both ends pass the kernel's lock. Thread n is side n. It reads `rings` as its caller
// does, so that a mutant may change what is compared.
class ExploredBell {
 public:
  static void wait(std::uint32_t& word, std::uint32_t value, std::int64_t /*longest_ns*/) {
    const std::uint16_t rings = Arena::number(&word);
    const std::uint16_t bed = bed_of(thread(), side_of(rings));
    access({Kind::choice, false, rings, 1});  // others may do anything between last look and this
    note(bed, 1);
    perform({Kind::full_fence});
    if (access({Kind::load, false, rings}) != value) {
      note(bed, 0);
      return;
    }
    perform({Kind::await, false, bed});
  }

  static void wake(std::uint32_t& word) {
    const std::uint16_t rings = Arena::number(&word);
    if (side_of(rings) != thread()) fail("rings with another side's bell");
    perform({Kind::full_fence});
    if (access({Kind::choice, false, rings, 1}) != 0) return;  // a mutant that does not wake
    for (int sleeper = 0; sleeper < most_sides; ++sleeper)
      if ((sleeper == 0) != (thread() == 0)) note(bed_of(sleeper, thread()), 0);
  }

 private:
  static constexpr int most_sides = 3;

  static int side_of(std::uint16_t rings) {
    const std::size_t at = std::size_t{rings} * 4;
    for (int side = 0; side < most_sides; ++side)
      if (at == rings_at(static_cast<std::size_t>(side))) return side;
    fail("sleeps on a word that is not a bell");
  }

  // The variable that is 1 while side `sleeper` sleeps on the word of side `waker`: one is side 0.
  static std::uint16_t bed_of(int sleeper, int waker) {
    if ((sleeper == 0) == (waker == 0)) fail("waits for a side that does not wake it");
    return static_cast<std::uint16_t>(sleeper == 0 ? waker : most_sides - 1 + sleeper);
  }
};

// Never reached. (`Never` itself would look for signs of life, which makes states and tells
// nothing.)
constexpr icc::Checks no_deadline{1'000'000};

using Sleeping = icc::Platform<PlainPayload, ExploredOrder, icc::Sleep<ExploredBell>>;

struct SleepSetting {
  Model model = Model::interleaving;
  std::uint32_t messages = 1;
  std::uint8_t restarts_of_first = 0, restarts_of_others = 0;
  bool late = false;  // the others attach meanwhile

  [[nodiscard]] bool may_lose() const { return restarts_of_first + restarts_of_others != 0; }
};

// A writer and its readers, of a Mailbox or a Ring. The writer leaves when it has written all; a
// reader reads until then.
template <class Channel, std::uint32_t readers>
struct SleepScenario {
  static_assert(Channel::bytes <= Arena::bytes);

  struct Writer final : Thread {
    explicit Writer(const SleepSetting& with) : setting(with) { open(); }
    void open() {
      endpoint = *Channel::Writer::create(Arena::memory(), Channel::bytes, "explored");
      opened = true;
    }
    void operation() override {
      if (!opened) {
        open();
      } else if (written == setting.messages) {
        endpoint.close();
        left = true;
      } else if (endpoint.write_until({written + 1, written + 1}, no_deadline) == icc::Result::ok) {
        ++written;
      }
    }
    [[nodiscard]] bool ended() const override { return left; }
    void lose_endpoint() override {
      opened = false;
      endpoint = {};
      written = std::min(written + 1, setting.messages);  // the one in hand may be there
    }

    SleepSetting setting;
    typename Channel::Writer endpoint;
    bool opened = false;
    bool left = false;
    std::uint32_t written = 0;
  };

  struct Reader final : Thread {
    Reader(const SleepSetting& with, std::uint32_t of) : setting(with), index(of) {
      if (!setting.late) open();
    }
    void open() {
      if constexpr (requires { Channel::Reader::attach(Arena::memory(), Channel::bytes); }) {
        endpoint = *Channel::Reader::attach(Arena::memory(), Channel::bytes);
      } else {
        endpoint = *Channel::Reader::attach(Arena::memory(), Channel::bytes, index);
      }
      opened = true;
    }
    void operation() override {
      if (!opened) {
        open();
        return;
      }
      Pair message{};
      icc::Result result = endpoint.read_until(message, no_deadline);
      if (result == icc::Result::peer_gone && endpoint.try_read(message) == icc::Result::ok)
        result = icc::Result::ok;  // it came after the last look, before the writer left
      if (result == icc::Result::ok) {
        if (message.a != message.b) fail("torn");
        if (message.a <= last) fail("delivered twice, or out of order");
        last = message.a;
      } else if (result == icc::Result::peer_gone) {
        if (!setting.may_lose() && !setting.late && last != setting.messages)
          fail("a message was lost");
        alone = true;
      } else if (result != icc::Result::peer_restarted || setting.restarts_of_first == 0) {
        fail("a call without deadline ended without reason");
      }
    }
    [[nodiscard]] bool ended() const override { return alone; }
    void lose_endpoint() override {
      opened = false;
      endpoint = {};
    }

    SleepSetting setting;
    std::uint32_t index;
    typename Channel::Reader endpoint;
    bool opened = false;
    bool alone = false;
    std::uint32_t last = 0;
  };

  static Report run(const SleepSetting& setting, Mutant* mutant = nullptr) {
    std::memset(Arena::memory(), 0, Arena::bytes);
    Explorer explorer(setting.model);
    explorer.add<Writer>("writer", setting);
    explorer.may_restart(setting.restarts_of_first);
    for (std::uint32_t i = 0; i < readers; ++i) {
      explorer.add<Reader>("reader " + std::to_string(i), setting, i);
      explorer.may_restart(setting.restarts_of_others);
    }
    if (mutant != nullptr) explorer.seed_defect(*mutant);
    return explorer.run();
  }
};

using SleepingMailbox = SleepScenario<icc::Mailbox<Pair, Sleeping>, 1>;
template <std::uint32_t readers>
using SleepingRing = SleepScenario<icc::Ring<Pair, 2, readers, Sleeping>, readers>;

// A client and its server: the client leaves after its last call, the server serves until then.
struct SleepingExchange {
  struct Number {
    std::uint32_t value;
  };
  using Channel = icc::Exchange<Number, Number, Sleeping>;
  static_assert(Channel::bytes <= Arena::bytes);

  struct Client final : Thread {
    explicit Client(const SleepSetting& with) : setting(with) { open(); }
    void open() {
      endpoint = *Channel::Client::create(Arena::memory(), Channel::bytes, "explored");
      opened = true;
    }
    void operation() override {
      if (!opened) {
        open();
        return;
      }
      if (calls == setting.messages) {
        endpoint.close();
        left = true;
        return;
      }
      ++calls;
      Number reply{};
      const icc::Result result = endpoint.call_until({calls}, reply, no_deadline);
      if (result == icc::Result::ok) {
        if (reply.value != calls) fail("another call's reply");
      } else if (result != icc::Result::peer_restarted || setting.restarts_of_others == 0) {
        fail("a call without deadline ended without reason");
      }
    }
    [[nodiscard]] bool ended() const override { return left; }
    void lose_endpoint() override {
      opened = false;
      endpoint = {};
    }

    SleepSetting setting;
    Channel::Client endpoint;
    bool opened = false;
    bool left = false;
    std::uint32_t calls = 0;
  };

  struct Server final : Thread {
    explicit Server(const SleepSetting& with) : setting(with) {
      if (!setting.late) open();
    }
    void open() {
      endpoint = *Channel::Server::attach(Arena::memory(), Channel::bytes);
      opened = true;
    }
    void operation() override {
      if (!opened) {
        open();
        return;
      }
      const icc::Result result =
          endpoint.serve_until([](const Number& request) { return request; }, no_deadline);
      if (result == icc::Result::peer_gone) {
        alone = true;
      } else if (result != icc::Result::ok &&
                 (result != icc::Result::peer_restarted || setting.restarts_of_first == 0)) {
        fail("a call without deadline ended without reason");
      }
    }
    [[nodiscard]] bool ended() const override { return alone; }
    void lose_endpoint() override {
      opened = false;
      endpoint = {};
    }

    SleepSetting setting;
    Channel::Server endpoint;
    bool opened = false;
    bool alone = false;
  };

  static Report run(const SleepSetting& setting, Mutant* mutant = nullptr) {
    std::memset(Arena::memory(), 0, Arena::bytes);
    Explorer explorer(setting.model);
    explorer.add<Client>("client", setting);
    explorer.may_restart(setting.restarts_of_first);
    explorer.add<Server>("server", setting);
    explorer.may_restart(setting.restarts_of_others);
    if (mutant != nullptr) explorer.seed_defect(*mutant);
    return explorer.run();
  }
};

}  // namespace latenz::explorer
