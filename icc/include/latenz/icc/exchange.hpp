// SPDX-License-Identifier: Apache-2.0
// Exchange: a request and its reply in one slot, for the periodic call across processors.
//
// One word tells whose turn it is: even, the client's; odd, the server's. So a call moves the slot
// there and back and nothing else: the least that two processors can do.
//
// The word is the last of the slot: a side that waits polls the last line alone, and the lines
// before it are filled undisturbed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "latenz/icc/endpoint.hpp"
#include "latenz/icc/lines.hpp"

namespace latenz::icc {

template <class Request, class Reply, class P = Platform<>>
class Exchange {
  using A = detail::Access<P>;

  static constexpr std::size_t request_fields = detail::fields_of<Request>.size();
  static constexpr std::size_t reply_fields = detail::fields_of<Reply>.size();
  static constexpr std::size_t fields = request_fields + reply_fields;
  static constexpr std::size_t slot_offset = detail::data_offset(fields, 2);
  static constexpr std::size_t slot_bytes =
      detail::whole_lines(std::max(sizeof(Request), sizeof(Reply)) + sizeof(std::uint32_t));
  static constexpr std::uint32_t count_mask = 0x00FF'FFFF;

 public:
  /// Bytes of shared memory that the channel takes; they begin at a line.
  static constexpr std::size_t bytes = slot_offset + slot_bytes;

  static constexpr detail::Shape shape{
      .kind = ChannelKind::exchange,
      .channel_bytes = bytes,
      .readers = 1,
      .slots = 1,
      .payload_bytes = {sizeof(Request), sizeof(Reply)},
      .fingerprint = {fingerprint<Request>(), fingerprint<Reply>()},
      .fields = {detail::fields_of<Request>.data(), detail::fields_of<Reply>.data()},
      .field_count = {request_fields, reply_fields},
  };

  /// Who writes which lines.
  static constexpr auto lines() noexcept {
    return detail::lines_of<2>(shape,
                               LineRun{slot_offset, slot_bytes, LineOwner::in_turn, 0, "slot"});
  }

 private:
  static constexpr bool is_servers(std::uint32_t word) noexcept { return (word & 1U) != 0; }

  /// What both sides do with the slot.
  template <class Self>
  class Half : public detail::Openable<Self, Exchange, P> {
   protected:
    Half() = default;
    Half(void* memory, std::size_t own) noexcept
        : detail::Openable<Self, Exchange, P>{memory, own},
          payload_{static_cast<std::byte*>(memory) + slot_offset},
          shared_word_{reinterpret_cast<std::uint32_t*>(payload_ + slot_bytes) - 1},
          peer_{detail::Header<P>{memory}.side(fields, 1 - own)},
          word_{A::load_acquire(*shared_word_)} {}

    /// Reads the word; whether the turn is the server's.
    bool turn_is_servers() noexcept {
      word_ = A::load_acquire(*shared_word_);
      return is_servers(word_);
    }

    /// Gives the turn to the other side: with a payload by 1, without one by 3.
    void pass(std::uint32_t steps) noexcept {
      word_ = this->epoch() << 24U | ((word_ + steps) & count_mask);
      A::store_release(*shared_word_, word_);
      this->notify();
    }

    [[nodiscard]] bool word_is_of(std::uint32_t epoch) const noexcept {
      return word_ >> 24U == (epoch & 0xFFU);
    }

    [[nodiscard]] const detail::Peer<P>& peer() const noexcept { return peer_; }

    std::byte* payload_ = nullptr;
    std::uint32_t* shared_word_ = nullptr;
    detail::Peer<P> peer_;
    std::uint32_t word_ = 0;
  };

 public:
  /// The side that asks. For one thread.
  class Client : public Half<Client> {
    using Base = Half<Client>;
    friend detail::Openable<Client, Exchange, P>;

   public:
    Client() = default;

    /// Sends a request and waits for its reply. Blocking. After any other answer than `ok` `reply`
    /// is untouched, and whether the server has acted on the request is not known; a late reply is
    /// thrown away by the next call.
    Result call_until(const Request& request, Reply& reply, Deadline auto deadline) noexcept {
      Result result = await_turn(deadline);
      if (result != Result::ok) {
        return result;
      }
      post(request);
      result = await_reply(deadline);
      return result == Result::ok ? copy(reply) : result;
    }

    /// The same without deadline: ends when the server replies, restarted or is gone.
    Result call(const Request& request, Reply& reply) noexcept {
      return call_until(request, reply, Never{});
    }

    /// Sends a request without waiting for the reply: `ok`, `peer_restarted`, or `full` while an
    /// earlier request is with the server. Wait-free.
    Result try_post(const Request& request) noexcept {
      const Result result = look();
      if (result == Result::ok) {
        post(request);
      }
      return result;
    }

    /// Takes the reply to the request of `try_post` or `publish`: `ok`, `empty`, `peer_restarted`.
    /// Wait-free.
    Result try_collect(Reply& reply) noexcept {
      const Result result = find();
      return result == Result::ok ? copy(reply) : result;
    }

    /// Where the next request may be made in place: otherwise as `try_post`. Nobody sees it before
    /// `publish`; a loan that is not published is the next one's. Wait-free.
    Result try_loan(Request*& request) noexcept
      requires(P::Memory::in_place)
    {
      const Result result = look();
      return result == Result::ok ? lend(request) : result;
    }

    /// The same as soon as no earlier request is with the server. Blocking.
    Result loan_until(Request*& request, Deadline auto deadline) noexcept
      requires(P::Memory::in_place)
    {
      const Result result = await_turn(deadline);
      return result == Result::ok ? lend(request) : result;
    }

    /// Sends the request that was lent last; once for each loan. Wait-free.
    void publish() noexcept {
      if (lent_) {
        P::Memory::clean(this->payload_, sizeof(Request));
        send();
      }
    }

    /// The reply where it stands, without a copy: otherwise as `try_collect`. It stays until
    /// `release`, or until the next request is begun. Wait-free.
    Result try_take(const Reply*& reply) noexcept
      requires(P::Memory::in_place)
    {
      const Result result = find();
      return result == Result::ok ? hold(reply) : result;
    }

    /// The same as soon as it is there; `empty` if nothing was asked. Blocking.
    Result take_until(const Reply*& reply, Deadline auto deadline) noexcept
      requires(P::Memory::in_place)
    {
      if (!posted_) {
        return Result::empty;
      }
      const Result result = await_reply(deadline);
      return result == Result::ok ? hold(reply) : result;
    }

    /// Ends the use of the reply taken last: `ok`, `empty` if none was taken. Wait-free.
    Result release() noexcept {
      const bool held = holds_;
      holds_ = false;
      return held ? Result::ok : Result::empty;
    }

   private:
    explicit Client(void* memory) noexcept : Base{memory, 0} { this->enter(); }

    /// Whether the turn is this side's, or what is in the way.
    Result look() noexcept {
      if (this->peer_.restarted()) {
        return Result::peer_restarted;
      }
      return is_mine() ? Result::ok : this->not_yet(Result::full);
    }

    /// Whether this side may write. While it has a loan it does not look: where memory is not
    /// coherent that could discard what is made in the same line.
    bool is_mine() noexcept { return lent_ || !this->turn_is_servers(); }

    Result wait_for_turn(Deadline auto& deadline) noexcept {
      return this->wait_until(this->peer_, [this] { return is_mine(); }, deadline);
    }
    Result await_turn(Deadline auto& deadline) noexcept {
      const Result result = wait_for_turn(deadline);
      return this->peer_.restarted() ? Result::peer_restarted : result;
    }
    Result await_reply(Deadline auto& deadline) noexcept {
      const Result result = wait_for_turn(deadline);
      if (result != Result::ok) {
        return this->peer_.restarted() ? Result::peer_restarted : result;
      }
      return check();
    }

    /// Whether the reply is there, or what is in its place.
    Result find() noexcept {
      if (posted_ && !this->turn_is_servers()) {
        return check();
      }
      if (this->peer_.restarted()) {
        posted_ = false;
        return Result::peer_restarted;
      }
      return this->not_yet(Result::empty);
    }

    void post(const Request& request) noexcept {
      A::write(this->payload_, &request, sizeof request);
      send();
    }

    Result lend(Request*& request) noexcept {
      lent_ = true;
      holds_ = posted_ = false;  // a reply that is there is written over
      request = reinterpret_cast<Request*>(this->payload_);
      return Result::ok;
    }

    void send() noexcept {
      lent_ = holds_ = false;
      this->pass(1);
      expected_ = (this->word_ + 1) & count_mask;
      posted_ = true;
    }

    /// Whether what is there is the reply to this side's request.
    Result check() noexcept {
      posted_ = false;
      const bool answered = (this->word_ & count_mask) == expected_;
      if (!answered || !this->word_is_of(this->peer_.known_epoch())) {
        const bool restarted = this->peer_.restarted();  // not so: the server's first coming
        if (!answered || restarted || !this->word_is_of(this->peer_.known_epoch())) {
          return Result::peer_restarted;
        }
      }
      return Result::ok;
    }

    Result copy(Reply& reply) noexcept {
      A::read(&reply, this->payload_, sizeof reply);
      return Result::ok;
    }

    Result hold(const Reply*& reply) noexcept {
      P::Memory::invalidate(this->payload_, sizeof(Reply));
      reply = reinterpret_cast<const Reply*>(this->payload_);
      holds_ = true;
      return Result::ok;
    }

    std::uint32_t expected_ = 0;
    bool posted_ = false;
    bool lent_ = false;
    bool holds_ = false;
  };

  /// The side that answers. For one thread. A restarted server hands the request that waits for it
  /// back unanswered, since an earlier incarnation may have acted on it.
  class Server : public Half<Server> {
    using Base = Half<Server>;
    friend detail::Openable<Server, Exchange, P>;

   public:
    Server() = default;

    /// Waits for a request and answers it with `handler(request)`. Blocking.
    template <class Handler>
    Result serve_until(Handler&& handler, Deadline auto deadline) noexcept {
      Request request;
      const Result result = take_until(request, deadline);
      return result == Result::ok ? answer(handler(request)) : result;
    }

    /// The same without deadline: ends when a request is answered, the client restarted or is gone.
    template <class Handler>
    Result serve(Handler&& handler) noexcept {
      return serve_until(handler, Never{});
    }

    /// Takes a request, which `answer` must follow; `busy` before it has. Blocking.
    Result take_until(Request& request, Deadline auto deadline) noexcept {
      const Result result = await_request(deadline);
      return result == Result::ok ? copy(request) : result;
    }

    /// Takes a request if one is there: `ok`, `empty`, `busy`, `peer_restarted`. Wait-free.
    Result try_take(Request& request) noexcept {
      const Result result = find();
      return result == Result::ok ? copy(request) : result;
    }

    /// The request where it stands, without a copy: otherwise as the others. It stays until it is
    /// answered, or until `try_loan`: the reply is made in its place. Blocking.
    Result take_until(const Request*& request, Deadline auto deadline) noexcept
      requires(P::Memory::in_place)
    {
      const Result result = await_request(deadline);
      return result == Result::ok ? hold(request) : result;
    }

    /// The same without waiting. Wait-free.
    Result try_take(const Request*& request) noexcept
      requires(P::Memory::in_place)
    {
      const Result result = find();
      return result == Result::ok ? hold(request) : result;
    }

    /// Where the reply may be made in place; `empty` if there is none to reply to. Nobody sees it
    /// before `publish`. Wait-free.
    Result try_loan(Reply*& reply) noexcept
      requires(P::Memory::in_place)
    {
      if (!answering_) {
        return Result::empty;
      }
      lent_ = true;
      reply = reinterpret_cast<Reply*>(this->payload_);
      return Result::ok;
    }

    /// Replies with what was lent last; once for each loan. Wait-free.
    void publish() noexcept {
      if (lent_) {
        P::Memory::clean(this->payload_, sizeof(Reply));
        reply();
      }
    }

    /// Replies to the request taken last; `empty` if there is none to reply to. Wait-free.
    Result answer(const Reply& with) noexcept {
      if (!answering_) {
        return Result::empty;
      }
      A::write(this->payload_, &with, sizeof with);
      reply();
      return Result::ok;
    }

   private:
    explicit Server(void* memory) noexcept : Base{memory, 1} {
      if (this->is_restart() && is_servers(this->word_)) {
        hand_back();
      }
      this->enter();
    }

    /// Whether a request is there, or what is in its place.
    Result find() noexcept {
      if (answering_) {
        return Result::busy;
      }
      if (this->turn_is_servers()) {
        return check_waiting();
      }
      return this->peer_.restarted() ? Result::peer_restarted : this->not_yet(Result::empty);
    }

    Result await_request(Deadline auto& deadline) noexcept {
      if (answering_) {
        return Result::busy;
      }
      if (this->turn_is_servers()) {
        return check_waiting();
      }
      const Result result =
          this->wait_until(this->peer_, [this] { return this->turn_is_servers(); }, deadline);
      if (result != Result::ok) {
        return this->peer_.restarted() ? Result::peer_restarted : result;
      }
      return check();
    }

    /// A request that was there before the call may be one of an incarnation that is no more.
    Result check_waiting() noexcept {
      const std::uint32_t now = this->peer_.epoch();
      if (!this->word_is_of(now)) {
        hand_back();
        this->peer_.turned_into(now);
        return Result::peer_restarted;
      }
      return check();
    }

    Result check() noexcept {
      if (!this->word_is_of(this->peer_.known_epoch()) &&
          (this->peer_.restarted() || !this->word_is_of(this->peer_.known_epoch()))) {
        return Result::peer_restarted;
      }
      answering_ = true;
      return Result::ok;
    }

    Result copy(Request& request) noexcept {
      A::read(&request, this->payload_, sizeof request);
      return Result::ok;
    }

    Result hold(const Request*& request) noexcept {
      P::Memory::invalidate(this->payload_, sizeof(Request));
      request = reinterpret_cast<const Request*>(this->payload_);
      return Result::ok;
    }

    void reply() noexcept {
      answering_ = lent_ = false;
      this->pass(1);
    }

    void hand_back() noexcept {
      this->count_dropped();
      this->pass(3);
    }

    bool answering_ = false;
    bool lent_ = false;
  };
};

}  // namespace latenz::icc
