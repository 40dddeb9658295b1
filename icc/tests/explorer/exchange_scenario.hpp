// A client and a server of an Exchange, explored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "explorer.hpp"
#include "mailbox_scenario.hpp"
#include "under_test.hpp"

namespace latenz::explorer {

struct ExchangeSetting {
  Model model = Model::interleaving;
  std::uint32_t calls = 1;
  std::uint8_t client_restarts = 0, server_restarts = 0;
  bool waiting = false;        // call_until and serve_until instead of the try_ calls
  std::uint32_t attempts = 0;  // of each side; 0: until it is done
  Late late = Late::nobody;
  bool in_place = false;  // loans in place of copies
};

// `words` of payload each way, all of them alike: the sender's incarnation << 16, and the number
// of the call.
template <std::size_t words>
struct ExchangeScenario {
  struct Payload {
    std::array<std::uint32_t, words> word;

    static Payload of(std::uint32_t value) {
      Payload all{};
      all.word.fill(value);
      return all;
    }
    [[nodiscard]] std::uint32_t value() const {
      for (const std::uint32_t each : word)
        if (each != word[0]) fail("torn");
      return word[0];
    }
  };
  using Channel =
      under_test::Exchange<Payload, Payload, icc::Platform<PlainPayload, ExploredOrder, LookOnce>>;
  static constexpr std::uint16_t finished = 0;  // variable: the client makes no more calls
  static_assert(Channel::bytes <= Arena::bytes);

  struct Client final : Thread {
    explicit Client(const ExchangeSetting& with) : setting(with) {
      if (setting.late != Late::first) open();
    }
    void open() {
      endpoint = setting.late == Late::first
                     ? *Channel::Client::attach(Arena::memory(), Channel::bytes)
                     : *Channel::Client::create(Arena::memory(), Channel::bytes, "explored");
      forget_padding(endpoint);
      ++incarnation;
      opened = true;
    }
    void operation() override {
      if (setting.attempts != 0) ++tried;
      const Payload request = Payload::of((incarnation << 16U) | call);
      if (!opened) {
        open();
      } else if (setting.waiting) {
        Payload reply{};
        end_call(endpoint.call_until(request, reply, icc::Checks{1}), reply);
      } else if (!posted) {
        const icc::Result result = post(request);
        posted = result == icc::Result::ok;
        check_restart(result);
      } else {
        Payload reply{};
        const icc::Result result = collect(reply);
        if (result != icc::Result::empty) end_call(result, reply);
      }
      done = call > setting.calls || (setting.attempts != 0 && tried == setting.attempts);
      if (done) note(finished, 1);
    }
    icc::Result post(const Payload& request) {
      if (!setting.in_place) return endpoint.try_post(request);
      Payload* place = nullptr;
      const icc::Result lent = endpoint.try_loan(place);
      return make_in_place(endpoint, lent, place, request);
    }
    icc::Result collect(Payload& reply) {
      if (!setting.in_place) return endpoint.try_collect(reply);
      const Payload* place = nullptr;
      const icc::Result taken = endpoint.try_take(place);
      return read_in_place(endpoint, taken, place, reply);
    }
    void end_call(icc::Result result, const Payload& reply) {
      if (result == icc::Result::ok) {
        const std::uint32_t value = reply.value();
        if ((value & 0xFFFFU) != call) fail("another call's reply");
        server.heard(value >> 16U);
      }
      check_restart(result);
      ++call;
      posted = false;
    }
    void check_restart(icc::Result result) {
      if (result != icc::Result::peer_restarted) return;
      server.told_of_restart();
      if (setting.server_restarts == 0) fail("a restart was told that did not happen");
    }
    [[nodiscard]] bool ended() const override { return done; }
    void lose_endpoint() override {
      opened = false;
      posted = false;
      endpoint = {};
      forget_padding(endpoint);
      server = {};
      ++call;  // the server may have acted on this one
    }

    ExchangeSetting setting;
    typename Channel::Client endpoint;
    bool opened = false;
    bool posted = false;
    bool done = false;
    std::uint32_t incarnation = 0;
    KnownPeer server;
    std::uint32_t call = 1;
    std::uint32_t tried = 0;
  };

  struct Server final : Thread {
    explicit Server(const ExchangeSetting& with) : setting(with) {
      if (setting.late != Late::second) open();
    }
    void open() {
      endpoint = setting.late == Late::first
                     ? *Channel::Server::create(Arena::memory(), Channel::bytes, "explored")
                     : *Channel::Server::attach(Arena::memory(), Channel::bytes);
      forget_padding(endpoint);
      ++incarnation;
      opened = true;
    }
    void operation() override {
      if (!opened) {
        open();
        return;
      }
      if (setting.attempts != 0) ++tried;
      const bool no_more = recall(finished) != 0;
      icc::Result result = icc::Result::ok;
      if (setting.waiting) {
        result = endpoint.serve_until(
            [this](const Payload& request) {
              act_on(request);
              return reply();
            },
            icc::Checks{0});
      } else if (taken) {
        answer(reply());
        taken = false;
      } else {
        Payload request{};
        result = take(request);
        taken = result == icc::Result::ok;
        if (taken) act_on(request);
      }
      if (result == icc::Result::peer_restarted) {
        client.told_of_restart();
        if (setting.client_restarts == 0) fail("a restart was told that did not happen");
      }
      if (no_more) given_up = true;
    }
    void answer(const Payload& with) {
      if (!setting.in_place) {
        endpoint.answer(with);
        return;
      }
      Payload* place = nullptr;
      const icc::Result lent = endpoint.try_loan(place);
      if (make_in_place(endpoint, lent, place, with) != icc::Result::ok)
        fail("no loan for a reply");
    }
    icc::Result take(Payload& request) {
      if (!setting.in_place) return endpoint.try_take(request);
      const Payload* place = nullptr;
      const icc::Result result = endpoint.try_take(place);
      if (result == icc::Result::ok) PlainPayload::read(&request, place, sizeof request);
      return result;
    }
    void act_on(const Payload& request) {
      const std::uint32_t value = request.value(), call = value & 0xFFFFU;
      client.heard(value >> 16U);
      if (call <= last) fail("acted twice on a request");
      if (call != last + 1 && setting.client_restarts + setting.server_restarts == 0 &&
          setting.attempts == 0)
        fail("a request was lost");
      last = call;
    }
    [[nodiscard]] Payload reply() const { return Payload::of((incarnation << 16U) | last); }
    [[nodiscard]] bool ended() const override {
      return given_up || (setting.attempts != 0 && tried == setting.attempts);
    }
    void lose_endpoint() override {
      opened = taken = false;
      endpoint = {};
      forget_padding(endpoint);
      client = {};
    }

    ExchangeSetting setting;
    typename Channel::Server endpoint;
    bool opened = false;
    bool taken = false;
    bool given_up = false;
    std::uint32_t incarnation = 0;
    KnownPeer client;
    std::uint32_t last = 0;  // request; what an earlier incarnation answered counts
    std::uint32_t tried = 0;
  };

  static Report run(const ExchangeSetting& setting, Mutant* mutant = nullptr) {
    std::memset(Arena::memory(), 0, Arena::bytes);
    Explorer explorer(setting.model);
    explorer.add<Client>("client", setting);
    explorer.may_restart(setting.client_restarts);
    explorer.add<Server>("server", setting);
    explorer.may_restart(setting.server_restarts);
    if (mutant != nullptr) explorer.seed_defect(*mutant);
    return explorer.run();
  }
};

}  // namespace latenz::explorer
