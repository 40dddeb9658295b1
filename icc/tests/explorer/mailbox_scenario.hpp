// A writer and a reader of a Mailbox, explored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "explorer.hpp"
#include "under_test.hpp"

namespace latenz::explorer {

// Which side attaches while the other runs; the other one creates the channel.
enum class Late : std::uint8_t { nobody, first, second };

struct MailboxSetting {
  Model model = Model::interleaving;
  std::uint32_t messages = 1;
  std::uint8_t writer_restarts = 0, reader_restarts = 0;
  bool waiting = false;        // write_until and read_until instead of try_write and try_read
  std::uint32_t attempts = 0;  // of each side; 0: until it is done
  Late late = Late::nobody;
  bool in_place = false;  // loans in place of copies
};

// Makes what was lent, and gives it away; reads what was taken, and gives it back.
template <class Endpoint, class T>
icc::Result make_in_place(Endpoint& endpoint, icc::Result lent, T* place, const T& message) {
  if (lent != icc::Result::ok) return lent;
  PlainPayload::write(place, &message, sizeof message);
  endpoint.publish();
  return lent;
}
template <class Endpoint, class T>
icc::Result read_in_place(Endpoint& endpoint, icc::Result taken, const T* place, T& message) {
  if (taken != icc::Result::ok) return taken;
  PlainPayload::read(&message, place, sizeof message);
  return endpoint.release();
}

struct Message32 {
  std::uint32_t number;
  std::uint32_t sender;  // incarnation << 16, and the number again: torn as soon as they differ
};

// One look, then the deadline is checked: so that waiting calls end within few steps.
struct LookOnce : icc::Spin {
  static constexpr std::uint32_t looks_per_check = 1;
  static constexpr std::uint32_t checks_per_beat = 1;
};

// Whose messages an endpoint has to expect.
struct KnownPeer {
  std::uint32_t incarnation = 0;  // 0: not known
  std::uint32_t gone = 0;         // this one and those before were told to be no more

  void heard(std::uint32_t from) {
    if (incarnation != 0 && from != incarnation) fail("a restart of the peer was not told");
    if (from <= gone) fail("stale: from a peer that was told to be no more");
    incarnation = from;
  }
  void told_of_restart() {
    if (incarnation != 0) gone = incarnation;
    incarnation = 0;
  }
};

struct MailboxScenario {
  using Channel =
      under_test::Mailbox<Message32, icc::Platform<PlainPayload, ExploredOrder, LookOnce>>;
  static constexpr std::uint16_t finished = 0;  // variable: the writer has written all
  static_assert(Channel::bytes <= Arena::bytes);

  struct Writer final : Thread {
    explicit Writer(const MailboxSetting& with) : setting(with) {
      if (setting.late != Late::first) open();
    }
    void open() {
      endpoint = setting.late == Late::first
                     ? *Channel::Writer::attach(Arena::memory(), Channel::bytes)
                     : *Channel::Writer::create(Arena::memory(), Channel::bytes, "explored");
      forget_padding(endpoint);
      ++incarnation;
      opened = true;
    }
    void operation() override {
      if (!opened) {
        open();
      } else {
        if (setting.attempts != 0) ++tried;
        write();
      }
      done = written >= setting.messages || (setting.attempts != 0 && tried == setting.attempts);
      if (done) note(finished, 1);
    }
    void write() {
      const Message32 message{written + 1, (incarnation << 16U) | (written + 1)};
      const icc::Result result = send(message);
      if (result == icc::Result::ok) ++written;
      if (result == icc::Result::peer_restarted && setting.reader_restarts == 0)
        fail("a restart of the reader was told that did not happen");
    }
    icc::Result send(const Message32& message) {
      if (setting.in_place) {
        Message32* place = nullptr;
        const icc::Result lent = endpoint.try_loan(place);
        return make_in_place(endpoint, lent, place, message);
      }
      return setting.waiting ? endpoint.write_until(message, icc::Checks{0})
                             : endpoint.try_write(message);
    }
    [[nodiscard]] bool ended() const override { return done; }
    void lose_endpoint() override {
      opened = false;
      endpoint = {};
      forget_padding(endpoint);
      ++written;  // the message it was writing may be there: the next has another number
    }

    MailboxSetting setting;
    Channel::Writer endpoint;
    bool opened = false;
    bool done = false;
    std::uint32_t incarnation = 0;
    std::uint32_t written = 0;
    std::uint32_t tried = 0;
  };

  struct Reader final : Thread {
    explicit Reader(const MailboxSetting& with) : setting(with) {
      if (setting.late != Late::second) open();
    }
    void open() {
      endpoint = setting.late == Late::first
                     ? *Channel::Reader::create(Arena::memory(), Channel::bytes, "explored")
                     : *Channel::Reader::attach(Arena::memory(), Channel::bytes);
      forget_padding(endpoint);
      opened = true;
    }
    void operation() override {
      if (!opened) {
        open();
        return;
      }
      if (setting.attempts != 0) ++tried;
      const bool no_more = recall(finished) != 0;
      Message32 message{};
      const icc::Result result = receive(message);
      if (result == icc::Result::ok) {
        check(message);
      } else if (result == icc::Result::peer_restarted) {
        if (setting.writer_restarts == 0) fail("a restart was told that did not happen");
        writer.told_of_restart();
      } else if (no_more && may_lose()) {
        given_up = true;
      }
    }
    icc::Result receive(Message32& message) {
      if (setting.in_place) {
        const Message32* place = nullptr;
        const icc::Result taken = endpoint.try_take(place);
        return read_in_place(endpoint, taken, place, message);
      }
      return setting.waiting ? endpoint.read_until(message, icc::Checks{0})
                             : endpoint.try_read(message);
    }
    // Without crashes each message comes; with them, the one in hand at the crash may be lost.
    [[nodiscard]] bool may_lose() const {
      return setting.writer_restarts + setting.reader_restarts != 0;
    }
    void check(const Message32& message) {
      if ((message.sender & 0xFFFFU) != message.number) fail("torn");
      if (message.number <= last) fail("delivered twice, or a stale message");
      if (!may_lose() && message.number != last + 1) fail("a message was lost");
      writer.heard(message.sender >> 16U);
      last = message.number;
    }
    [[nodiscard]] bool ended() const override {
      return given_up || last >= setting.messages ||
             (setting.attempts != 0 && tried == setting.attempts);
    }
    void lose_endpoint() override {
      opened = false;
      endpoint = {};
      forget_padding(endpoint);
      writer = {};
    }

    MailboxSetting setting;
    Channel::Reader endpoint;
    bool opened = false;
    bool given_up = false;
    std::uint32_t last = 0;  // number; what was delivered to an earlier incarnation counts
    KnownPeer writer;
    std::uint32_t tried = 0;
  };

  static Report run(const MailboxSetting& setting, Mutant* mutant = nullptr) {
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
