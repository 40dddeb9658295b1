// A writer and a reader of a Pool, explored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "explorer.hpp"
#include "latest_scenario.hpp"
#include "under_test.hpp"

namespace latenz::explorer {

struct PoolSetting {
  Model model = Model::interleaving;
  std::uint32_t messages = 1;
  bool holding = false;  // the reader holds a message while it takes the next, and gives that back
                         // first; otherwise messages are copied in and out
  bool long_ones = false;  // every second message is as long as can be
  std::uint8_t writer_restarts = 0, reader_restarts = 0;
};

// Payloads and entries are plain: what races is an error. At its end the writer waits until all
// blocks are free: what leaks, by whatever death, leaves it stuck.
template <std::size_t Max>
struct PoolScenario {
  using Channel = under_test::Pool<Max, 2, Pair, icc::Platform<PlainPayload, ExploredOrder>>;
  static constexpr std::uint16_t finished =
      0;  // variable: the writer has written all, and has all blocks back
  static_assert(Channel::bytes <= Arena::bytes);

  static std::size_t items_of(const PoolSetting& setting, std::uint32_t message) {
    return setting.long_ones && message % 2 == 0 ? Max : 1;
  }
  // First and last item, so that both ends of a block are seen.
  static void make(std::span<Pair> place, std::uint32_t message) {
    const Pair pair{message, message};
    PlainPayload::write(place.data(), &pair, sizeof pair);
    if (place.size() > 1) PlainPayload::write(&place.back(), &pair, sizeof pair);
  }
  static std::uint32_t seen(std::span<const Pair> place, const PoolSetting& setting) {
    Pair first{};
    Pair last{};
    PlainPayload::read(&first, place.data(), sizeof first);
    PlainPayload::read(&last, &place.back(), sizeof last);
    return checked(first, last, place.size(), setting);
  }
  static std::uint32_t checked(const Pair& first, const Pair& last, std::size_t items,
                               const PoolSetting& setting) {
    if (first.a != first.b || last.a != last.b || first.a != last.a) fail("torn");
    if (items != items_of(setting, first.a)) fail("another length");
    return first.a;
  }

  struct Writer final : Thread {
    explicit Writer(const PoolSetting& with) : setting(with) { open(); }
    void open() {
      endpoint = *Channel::Writer::create(Arena::memory(), Channel::bytes, "explored");
      forget_padding(endpoint);
      opened = true;
    }
    void operation() override {
      if (!opened) {
        open();
      } else if (written >= setting.messages) {
        free_again = all_free(1) && (!setting.long_ones || all_free(Max));
      } else if (write() == icc::Result::ok) {
        ++written;
      }
      if (free_again) note(finished, 1);
    }
    icc::Result write() {
      const std::uint32_t message = written + 1;
      if (!setting.holding) {
        const Pair pair{message, message};
        return endpoint.try_write(std::span(&pair, 1));
      }
      std::span<Pair> place;
      const icc::Result lent = endpoint.try_loan(items_of(setting, message), place);
      if (lent == icc::Result::ok) {
        make(place, message);
        endpoint.publish();
      }
      return lent;
    }
    // Whether both blocks for so many items are free.
    bool all_free(std::size_t items) {
      std::span<Pair> one;
      std::span<Pair> other;
      return endpoint.try_loan(items, one) == icc::Result::ok &&
             endpoint.try_loan(items, other) == icc::Result::ok && one.data() != other.data();
    }
    [[nodiscard]] bool ended() const override { return free_again; }
    void lose_endpoint() override {
      opened = false;
      endpoint = {};
      forget_padding(endpoint);
      ++written;  // the one it was writing may be there
    }

    PoolSetting setting;
    typename Channel::Writer endpoint;
    bool opened = false;
    bool free_again = false;
    std::uint32_t written = 0;
  };

  struct Reader final : Thread {
    explicit Reader(const PoolSetting& with) : setting(with) { open(); }
    void open() {
      endpoint = *Channel::Reader::attach(Arena::memory(), Channel::bytes);
      forget_padding(endpoint);
      opened = true;
    }
    void operation() override {
      if (!opened) {
        open();
        return;
      }
      const bool no_more = recall(finished) != 0;
      const icc::Result result = setting.holding ? take() : copy();
      if (result == icc::Result::busy) {
        fail("a message that is none");
      } else if (result == icc::Result::peer_restarted) {
        if (setting.writer_restarts == 0) fail("a restart was told that did not happen");
      } else if (result == icc::Result::empty && no_more) {
        given_up = true;
      }
    }
    icc::Result copy() {
      std::array<Pair, Max> messages{};
      std::size_t count = 0;
      const icc::Result result = endpoint.try_read(messages, count);
      if (result == icc::Result::ok)
        check(checked(messages[0], messages[count - 1], count, setting));
      return result;
    }
    icc::Result take() {
      std::span<const Pair> message;
      const icc::Result result = endpoint.try_take(message);
      if (result == icc::Result::ok) check(seen(message, setting));
      if (result == icc::Result::ok && held == nullptr) {
        held = message.data();
        held_items = message.size();
        held_message = last;
        return result;
      }
      if (result == icc::Result::ok) give_back(message);
      if (held != nullptr) {
        const std::span first{held, held_items};
        if (seen(first, setting) != held_message) fail("what was held has changed");
        give_back(first);
        held = nullptr;
      }
      return result;
    }
    void give_back(std::span<const Pair> message) {
      if (endpoint.release(message) != icc::Result::ok) fail("what was taken is not held");
    }
    void check(std::uint32_t message) {
      if (message <= last) fail("delivered twice, or out of order");
      lost += message - last - 1;
      if (lost > setting.writer_restarts + 2U * setting.reader_restarts) fail("a message was lost");
      last = message;
    }
    [[nodiscard]] bool ended() const override { return given_up && held == nullptr; }
    void lose_endpoint() override {
      opened = false;
      endpoint = {};
      forget_padding(endpoint);
      held = nullptr;
    }

    PoolSetting setting;
    typename Channel::Reader endpoint;
    const Pair* held = nullptr;
    std::size_t held_items = 0;
    std::uint32_t held_message = 0;
    std::uint32_t last = 0;
    std::uint32_t lost = 0;
    bool opened = false;
    bool given_up = false;
  };

  static Report run(const PoolSetting& setting, Mutant* mutant = nullptr) {
    std::memset(Arena::memory(), 0, Arena::bytes);
    Explorer explorer(setting.model);
    explorer.add<Writer>("writer", setting);
    explorer.may_restart(setting.writer_restarts);
    explorer.add<Reader>("reader", setting);
    explorer.may_restart(setting.reader_restarts);
    if (mutant != nullptr) explorer.seed_defect(*mutant);
    return explorer.run();
  }
};

}  // namespace latenz::explorer
