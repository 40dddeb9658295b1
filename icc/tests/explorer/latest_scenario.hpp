// A writer and R readers of a Latest, explored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "explorer.hpp"
#include "under_test.hpp"

namespace latenz::explorer {

struct Pair {  // torn as soon as its halves differ
  std::uint32_t a, b;
};

enum class Look : std::uint8_t { poll, read_latest, view };

// How it is known which value a reader must not fall behind.
enum class Floor : std::uint8_t {
  none,
  noted,     // the writer notes a finished update in the same instant: any later read sees it
  signalled  // the writer tells the reader by a release store, which the reader acquires
};

struct LatestSetting {
  Model model = Model::interleaving;
  std::uint32_t updates = 1, reads = 1;
  Look look = Look::poll;
  Floor floor = Floor::none;
  std::uint8_t writer_restarts = 0, reader_restarts = 0;
  bool late = false;  // readers attach while the writer runs
};

template <std::size_t R>
struct LatestScenario {
  using Channel = under_test::Latest<Pair, R, icc::Platform<PlainPayload, ExploredOrder>>;
  static constexpr std::uint16_t finished = 0;  // variable: number of the last finished update

  static std::uint32_t& signal() {
    return *reinterpret_cast<std::uint32_t*>(Arena::memory() + Arena::bytes - icc::line_bytes);
  }
  static_assert(Channel::bytes <= Arena::bytes - icc::line_bytes);

  struct Writer final : Thread {
    explicit Writer(const LatestSetting& with) : setting(with) { open(); }
    void open() {
      endpoint = *Channel::Writer::create(Arena::memory(), Channel::bytes, "explored");
      forget_padding(endpoint);
      opened = true;
    }
    void operation() override {
      if (!opened) {
        open();
        return;
      }
      ++value;
      endpoint.update({value, value});
      if (setting.floor == Floor::noted) note(finished, value);
      if (setting.floor == Floor::signalled) ExploredOrder::store_release(signal(), value);
    }
    [[nodiscard]] bool ended() const override { return value == setting.updates; }
    void lose_endpoint() override {
      opened = false;
      endpoint = {};
      forget_padding(endpoint);
      ++value;  // the update it was in may have been seen: the next has another value
    }

    LatestSetting setting;
    typename Channel::Writer endpoint;
    bool opened = false;
    std::uint32_t value = 0;
  };

  struct Reader final : Thread {
    Reader(const LatestSetting& with, std::uint32_t of) : setting(with), index(of) {
      if (!setting.late) open();
    }
    void open() {
      endpoint = *Channel::Reader::attach(Arena::memory(), Channel::bytes, index);
      forget_padding(endpoint);
      opened = true;
      last = 0;
    }
    void operation() override {
      if (!opened) {
        open();
        return;
      }
      std::uint32_t floor = last;
      if (setting.floor == Floor::noted) floor = std::max(floor, recall(finished));
      if (setting.floor == Floor::signalled)
        floor = std::max(floor, ExploredOrder::load_acquire(signal()));
      Pair value{last, last};
      look(value);
      if (value.a != value.b) fail("torn");
      if (value.a < last) fail("a value came after a newer one");
      if (value.a < floor) fail("a value older than the last finished update");
      last = value.a;
      ++reads;
    }
    void look(Pair& value) {
      switch (setting.look) {
        case Look::poll:
          if (endpoint.poll(value) == icc::Freshness::updated && value.a == last)
            fail("told as updated though it is not");
          break;
        case Look::read_latest:
          if (!endpoint.read_latest(value) && last != 0) fail("no value any more");
          break;
        case Look::view:
          if (const Pair* const seen = endpoint.view()) {
            PlainPayload::read(&value, seen, sizeof value);
            Pair again{};
            PlainPayload::read(&again, seen, sizeof again);
            if (again.a != value.a || again.b != value.b) fail("a view changed while held");
          }
          break;
      }
    }
    [[nodiscard]] bool ended() const override { return reads == setting.reads; }
    void lose_endpoint() override {
      opened = false;
      endpoint = {};
      forget_padding(endpoint);
      last = 0;
    }

    LatestSetting setting;
    std::uint32_t index;
    typename Channel::Reader endpoint;
    bool opened = false;
    std::uint32_t last = 0;  // value seen
    std::uint32_t reads = 0;
  };

  static Report run(const LatestSetting& setting, Mutant* mutant = nullptr) {
    std::memset(Arena::memory(), 0, Arena::bytes);
    Explorer explorer(setting.model);
    explorer.add<Writer>("writer", setting);
    explorer.may_restart(setting.writer_restarts);
    for (std::uint32_t i = 0; i < R; ++i) {
      explorer.add<Reader>("reader " + std::to_string(i), setting, i);
      explorer.may_restart(setting.reader_restarts);
    }
    if (mutant != nullptr) explorer.seed_defect(*mutant);
    return explorer.run();
  }
};

}  // namespace latenz::explorer
