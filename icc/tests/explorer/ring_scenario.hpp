// A writer, lossless readers and observers of a Ring, explored.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "explorer.hpp"
#include "latest_scenario.hpp"
#include "under_test.hpp"

namespace latenz::explorer {

// How messages go in and out.
enum class Way : std::uint8_t { one, some, in_place };

struct RingSetting {
  Model model = Model::interleaving;
  std::uint32_t messages = 1;
  std::uint32_t observers = 0, looks = 0;  // and how often each looks
  bool observe_newest = false;             // read_latest instead of try_read
  bool impatient = false;                  // a writer that leaves late readers behind
  std::uint8_t writer_restarts = 0, reader_restarts = 0;
  bool late = false;  // lossless readers attach while the writer runs
  Way way = Way::one;
};

// Payloads that only lossless readers read are plain: what races is an error. Where an observer or
// a reader left behind may meet the writer, they are relaxed words, and what is torn is thrown
// away.
template <std::size_t N, std::size_t L, class Payload>
struct RingScenarioOf {
  using Channel = under_test::Ring<Pair, N, L, icc::Platform<Payload, ExploredOrder>>;
  static constexpr std::uint16_t finished = 0;  // variable: the writer has written all
  static_assert(Channel::bytes <= Arena::bytes);

  struct Writer final : Thread {
    explicit Writer(const RingSetting& with) : setting(with) { open(); }
    void open() {
      endpoint = *Channel::Writer::create(Arena::memory(), Channel::bytes, "explored");
      forget_padding(endpoint);
      opened = true;
    }
    void operation() override {
      if (!opened) {
        open();
      } else if (const std::size_t count = write(); count != 0) {
        written += static_cast<std::uint32_t>(count);
      } else if (setting.impatient) {
        endpoint.leave_behind(endpoint.late_reader());
      }
      done = written >= setting.messages;
      if (done) note(finished, 1);
    }
    std::size_t write() {
      const Pair next{written + 1, written + 1};
      if (setting.way == Way::in_place) {
        Pair* place = nullptr;
        if (endpoint.try_loan(place) != icc::Result::ok) return 0;
        Payload::write(place, &next, sizeof next);
        endpoint.publish();
        return 1;
      }
      if (setting.way == Way::some) {
        const std::array<Pair, 2> both{next, {written + 2, written + 2}};
        const std::size_t wanted = std::min<std::size_t>(2, setting.messages - written);
        std::size_t count = 0;
        endpoint.try_write_some(std::span(both).first(wanted), count);
        return count;
      }
      return endpoint.try_write(next) == icc::Result::ok ? 1 : 0;
    }
    [[nodiscard]] bool ended() const override { return done; }
    void lose_endpoint() override {
      opened = false;
      endpoint = {};
      forget_padding(endpoint);
      written += setting.way == Way::some ? 2 : 1;  // those it was writing may be there
    }

    RingSetting setting;
    typename Channel::Writer endpoint;
    bool opened = false;
    bool done = false;
    std::uint32_t written = 0;
  };

  struct Reader final : Thread {
    Reader(const RingSetting& with, std::uint32_t of) : setting(with), index(of) {
      if (!setting.late) open();
    }
    void open() {
      endpoint = *Channel::Reader::attach(Arena::memory(), Channel::bytes, index);
      forget_padding(endpoint);
      opened = true;
    }
    void operation() override {
      if (!opened) {
        open();
        return;
      }
      const bool no_more = recall(finished) != 0;
      std::array<Pair, 2> messages{};
      std::size_t count = 1;
      const icc::Result result = read(messages, count);
      if (result == icc::Result::ok) {
        for (std::size_t i = 0; i < count; ++i) check(messages[i]);
      } else if (result == icc::Result::busy) {
        if (!setting.impatient) fail("a lossless reader was overtaken");
        given_up = true;
      } else if (result == icc::Result::peer_restarted) {
        if (setting.writer_restarts == 0) fail("a restart was told that did not happen");
      } else if (no_more && (may_lose() || setting.late)) {
        given_up = true;
      }
    }
    icc::Result read(std::array<Pair, 2>& messages, std::size_t& count) {
      if (setting.way == Way::some) return endpoint.try_read_some(messages, count);
      if (setting.way == Way::one) return endpoint.try_read(messages[0]);
      const Pair* place = nullptr;
      const icc::Result taken = endpoint.try_take(place);
      if (taken != icc::Result::ok) return taken;
      Payload::read(messages.data(), place, sizeof *place);
      return endpoint.release();
    }
    void check(const Pair& message) {
      if (message.a != message.b) fail("torn");
      if (message.a <= last) fail("delivered twice, or out of order");
      if (!may_lose() && message.a != last + 1 && (last != 0 || !setting.late))
        fail("a message was lost");
      last = message.a;
    }
    [[nodiscard]] bool may_lose() const {
      return setting.writer_restarts + setting.reader_restarts != 0;
    }
    [[nodiscard]] bool ended() const override { return given_up || last >= setting.messages; }
    void lose_endpoint() override {
      opened = false;
      endpoint = {};
      forget_padding(endpoint);
    }

    RingSetting setting;
    std::uint32_t index;
    typename Channel::Reader endpoint;
    bool opened = false;
    bool given_up = false;
    std::uint32_t last = 0;
  };

  struct Observer final : Thread {
    explicit Observer(const RingSetting& with)
        : setting(with), endpoint(*Channel::Observer::attach(Arena::memory(), Channel::bytes)) {}
    void operation() override {
      ++looked;
      Pair message{};
      const std::uint64_t lost_before = endpoint.lost();
      const icc::Result result =
          setting.observe_newest ? endpoint.read_latest(message) : endpoint.try_read(message);
      if (result != icc::Result::ok) return;
      if (message.a != message.b) fail("torn");
      if (message.a < last || (message.a == last && !setting.observe_newest))
        fail("delivered twice, or out of order");
      if (setting.writer_restarts == 0 && endpoint.number() != message.a) fail("another number");
      if (!setting.observe_newest && setting.writer_restarts == 0 &&
          message.a != last + 1 + (endpoint.lost() - lost_before))
        fail("what was lost is not what was counted");
      last = message.a;
    }
    [[nodiscard]] bool ended() const override { return looked == setting.looks; }

    RingSetting setting;
    typename Channel::Observer endpoint;
    std::uint32_t looked = 0;
    std::uint32_t last = 0;
  };

  static Report run(const RingSetting& setting, Mutant* mutant = nullptr) {
    std::memset(Arena::memory(), 0, Arena::bytes);
    Explorer explorer(setting.model);
    explorer.add<Writer>("writer", setting);
    explorer.may_restart(setting.writer_restarts);
    for (std::uint32_t i = 0; i < L; ++i) {
      explorer.add<Reader>("reader " + std::to_string(i), setting, i);
      explorer.may_restart(setting.reader_restarts);
    }
    for (std::uint32_t i = 0; i < setting.observers; ++i)
      explorer.add<Observer>("observer " + std::to_string(i), setting);
    if (mutant != nullptr) explorer.seed_defect(*mutant);
    return explorer.run();
  }
};

template <std::size_t N, std::size_t L>
using RingScenario = RingScenarioOf<N, L, RelaxedPayload>;

}  // namespace latenz::explorer
