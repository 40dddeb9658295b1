// The endpoints of latenz/icc.h as classes with the names of those for C++, for tests that are made
// for both. Whoever includes it has defined how latenz/icc.h accesses memory.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "latenz/icc.h"
#include "latenz/icc.hpp"

namespace latenz::icc::c {

namespace detail {

/// Called before each call: what platform the channel has.
template <class P>
void choose_payload();

template <class T>
const latenz_icc_type& type_of() {
  static const auto fields = [] {
    constexpr auto own = icc::fields<T>();
    std::array<latenz_icc_field, own.size()> made{};
    static_assert(sizeof made == sizeof own);
    std::memcpy(made.data(), own.data(), sizeof made);
    return made;
  }();
  static const latenz_icc_type type{.bytes = sizeof(T),
                                    .field_count = fields.size(),
                                    .fingerprint = icc::fingerprint<T>(),
                                    .fields = fields.data()};
  return type;
}

inline Result result_of(latenz_icc_result result) { return static_cast<Result>(result); }

/// A call of C that tells a place, for one of C++.
template <class State, class T>
Result lent(latenz_icc_result (*call)(State*, void**), State& state, T*& message) {
  void* place = nullptr;
  const latenz_icc_result result = call(&state, &place);
  message = static_cast<T*>(place);
  return result_of(result);
}
template <class State, class T>
Result taken(latenz_icc_result (*call)(State*, const void**), State& state, const T*& message) {
  const void* place = nullptr;
  const latenz_icc_result result = call(&state, &place);
  message = static_cast<const T*>(place);
  return result_of(result);
}

inline Problem problem_of(const latenz_icc_problem& problem) {
  Problem made{.flaw = static_cast<Flaw>(problem.flaw),
               .payload = static_cast<std::uint8_t>(problem.payload),
               .here = problem.here,
               .there = problem.there};
  made.field = std::bit_cast<Field>(problem.field);
  made.peer_field = std::bit_cast<Field>(problem.peer_field);
  return made;
}

/// A deadline of C++ for calls of C.
template <class D>
class DeadlineOf {
 public:
  explicit DeadlineOf(D& deadline) : made_{expired, &deadline, told_left()} {}
  operator const latenz_icc_deadline*() const {  // NOLINT: an argument
    return std::is_same_v<D, Never> ? nullptr : &made_;
  }

 private:
  static bool expired(void* deadline) { return static_cast<D*>(deadline)->expired(); }
  static std::int64_t left_ns(void* deadline) {
    if constexpr (requires(D& has) { has.left_ns(); }) {
      return static_cast<D*>(deadline)->left_ns();
    } else {
      return 0;
    }
  }
  static constexpr auto told_left() {
    return requires(D& has) { has.left_ns(); } ? left_ns : nullptr;
  }
  latenz_icc_deadline made_;
};

#ifdef LATENZ_ICC_BELLS
inline latenz_icc_result arm_c(latenz_icc_mailbox& self) { return latenz_icc_mailbox_arm(&self); }
inline latenz_icc_result arm_c(latenz_icc_exchange& self) { return latenz_icc_exchange_arm(&self); }
inline latenz_icc_result arm_c(latenz_icc_latest& self) { return latenz_icc_latest_arm(&self); }
inline latenz_icc_result arm_c(latenz_icc_ring& self) { return latenz_icc_ring_arm(&self); }
inline latenz_icc_result arm_c(latenz_icc_pool& self) { return latenz_icc_pool_arm(&self); }
#endif

/// What all endpoints have in common; `State` is the struct of C.
template <class Self, class Channel, class P, class State, class... Index>
class Side {
 public:
  static Opened<Self> create(void* memory, std::size_t size, const char* name, Index... index) {
    return open(memory, size, name, index...);
  }
  static Opened<Self> attach(void* memory, std::size_t size, Index... index) {
    return open(memory, size, nullptr, index...);
  }
  [[nodiscard]] std::uint32_t epoch() const { return state.endpoint.epoch; }
  [[nodiscard]] std::uint32_t dropped() const { return state.endpoint.dropped; }
  void beat() { latenz_icc_beat(&state.endpoint); }
  void close() { latenz_icc_close(&state.endpoint); }

#ifdef LATENZ_ICC_BELLS
  template <class Bells>
  void use_bells(const Bells& all) {
    (void)latenz_icc_use_bells(&state.endpoint, &all);
  }
  [[nodiscard]] int fd() const { return latenz_icc_fd(&state.endpoint); }
  Result arm() { return result_of(arm_c(state)); }
  void disarm() { latenz_icc_disarm(&state.endpoint); }
#endif

  State state{};

 private:
  static Opened<Self> open(void* memory, std::size_t size, const char* name, Index... index) {
    choose_payload<P>();
    Self self;
    const latenz_icc_shape shape = Channel::c_shape();
    latenz_icc_problem problem{};
    return Self::open_c(self.state, memory, size, shape, name, index..., problem)
               ? Opened<Self>{self}
               : Opened<Self>{problem_of(problem)};
  }
};

}  // namespace detail

template <class T, class P>
class Mailbox {
 public:
  static constexpr std::size_t bytes = icc::Mailbox<T, P>::bytes;
  static constexpr icc::detail::Shape shape = icc::Mailbox<T, P>::shape;
  static latenz_icc_shape c_shape() { return latenz_icc_mailbox_shape(&detail::type_of<T>()); }

  class Writer : public detail::Side<Writer, Mailbox, P, latenz_icc_mailbox> {
   public:
    static bool open_c(latenz_icc_mailbox& state, void* memory, std::size_t size,
                       const latenz_icc_shape& agreed, const char* name,
                       latenz_icc_problem& problem) {
      return latenz_icc_mailbox_writer(&state, memory, size, &agreed, name, &problem);
    }
    Result try_write(const T& message) {
      detail::choose_payload<P>();
      return detail::result_of(latenz_icc_mailbox_try_write(&this->state, &message));
    }
    Result write_until(const T& message, Deadline auto deadline) {
      detail::choose_payload<P>();
      return detail::result_of(
          latenz_icc_mailbox_write(&this->state, &message, detail::DeadlineOf(deadline)));
    }
    Result write(const T& message) { return write_until(message, Never{}); }
    Result try_loan(T*& message) {
      return detail::lent(latenz_icc_mailbox_try_loan, this->state, message);
    }
    void publish() { latenz_icc_mailbox_publish(&this->state); }
  };
  class Reader : public detail::Side<Reader, Mailbox, P, latenz_icc_mailbox> {
   public:
    static bool open_c(latenz_icc_mailbox& state, void* memory, std::size_t size,
                       const latenz_icc_shape& agreed, const char* name,
                       latenz_icc_problem& problem) {
      return latenz_icc_mailbox_reader(&state, memory, size, &agreed, name, &problem);
    }
    Result try_read(T& message) {
      detail::choose_payload<P>();
      return detail::result_of(latenz_icc_mailbox_try_read(&this->state, &message));
    }
    Result read_until(T& message, Deadline auto deadline) {
      detail::choose_payload<P>();
      return detail::result_of(
          latenz_icc_mailbox_read(&this->state, &message, detail::DeadlineOf(deadline)));
    }
    Result read(T& message) { return read_until(message, Never{}); }
    Result try_take(const T*& message) {
      return detail::taken(latenz_icc_mailbox_try_take, this->state, message);
    }
    Result release() { return detail::result_of(latenz_icc_mailbox_release(&this->state)); }
  };
};

template <class Request, class Reply, class P>
class Exchange {
 public:
  static constexpr std::size_t bytes = icc::Exchange<Request, Reply, P>::bytes;
  static constexpr icc::detail::Shape shape = icc::Exchange<Request, Reply, P>::shape;
  static latenz_icc_shape c_shape() {
    return latenz_icc_exchange_shape(&detail::type_of<Request>(), &detail::type_of<Reply>());
  }

  class Client : public detail::Side<Client, Exchange, P, latenz_icc_exchange> {
   public:
    static bool open_c(latenz_icc_exchange& state, void* memory, std::size_t size,
                       const latenz_icc_shape& agreed, const char* name,
                       latenz_icc_problem& problem) {
      return latenz_icc_exchange_client(&state, memory, size, &agreed, name, &problem);
    }
    Result call_until(const Request& request, Reply& reply, Deadline auto deadline) {
      detail::choose_payload<P>();
      return detail::result_of(
          latenz_icc_exchange_call(&this->state, &request, &reply, detail::DeadlineOf(deadline)));
    }
    Result call(const Request& request, Reply& reply) {
      return call_until(request, reply, Never{});
    }
    Result try_post(const Request& request) {
      detail::choose_payload<P>();
      return detail::result_of(latenz_icc_exchange_try_post(&this->state, &request));
    }
    Result try_collect(Reply& reply) {
      detail::choose_payload<P>();
      return detail::result_of(latenz_icc_exchange_try_collect(&this->state, &reply));
    }
    Result try_loan(Request*& request) {
      return detail::lent(latenz_icc_exchange_try_loan, this->state, request);
    }
    void publish() { latenz_icc_exchange_publish(&this->state); }
    Result try_take(const Reply*& reply) {
      return detail::taken(latenz_icc_exchange_try_take_reply, this->state, reply);
    }
    Result release() { return detail::result_of(latenz_icc_exchange_release(&this->state)); }
  };
  class Server : public detail::Side<Server, Exchange, P, latenz_icc_exchange> {
   public:
    static bool open_c(latenz_icc_exchange& state, void* memory, std::size_t size,
                       const latenz_icc_shape& agreed, const char* name,
                       latenz_icc_problem& problem) {
      return latenz_icc_exchange_server(&state, memory, size, &agreed, name, &problem);
    }
    Result try_take(Request& request) {
      detail::choose_payload<P>();
      return detail::result_of(latenz_icc_exchange_try_take(&this->state, &request));
    }
    Result take_until(Request& request, Deadline auto deadline) {
      detail::choose_payload<P>();
      return detail::result_of(
          latenz_icc_exchange_take(&this->state, &request, detail::DeadlineOf(deadline)));
    }
    Result try_take(const Request*& request) {
      return detail::taken(latenz_icc_exchange_try_take_request, this->state, request);
    }
    Result try_loan(Reply*& reply) {
      reply = static_cast<Reply*>(latenz_icc_exchange_loan_reply(&this->state));
      return reply == nullptr ? Result::empty : Result::ok;
    }
    void publish() { latenz_icc_exchange_publish_reply(&this->state); }
    Result answer(const Reply& reply) {
      detail::choose_payload<P>();
      return detail::result_of(latenz_icc_exchange_answer(&this->state, &reply));
    }
    template <class Handler>
    Result serve_until(Handler&& handler, Deadline auto deadline) {
      Request request{};
      const Result result = take_until(request, deadline);
      return result == Result::ok ? answer(handler(request)) : result;
    }
  };
};

template <class T, std::size_t R, class P>
class Latest {
 public:
  static constexpr std::size_t bytes = icc::Latest<T, R, P>::bytes;
  static constexpr icc::detail::Shape shape = icc::Latest<T, R, P>::shape;
  static latenz_icc_shape c_shape() { return latenz_icc_latest_shape(&detail::type_of<T>(), R); }

  class Writer : public detail::Side<Writer, Latest, P, latenz_icc_latest> {
   public:
    static bool open_c(latenz_icc_latest& state, void* memory, std::size_t size,
                       const latenz_icc_shape& agreed, const char* name,
                       latenz_icc_problem& problem) {
      return latenz_icc_latest_writer(&state, memory, size, &agreed, name, &problem);
    }
    void update(const T& value) {
      detail::choose_payload<P>();
      latenz_icc_latest_update(&this->state, &value);
    }
    T& begin_update() {
      detail::choose_payload<P>();
      return *static_cast<T*>(latenz_icc_latest_loan(&this->state));
    }
    void publish() { latenz_icc_latest_publish(&this->state); }
    [[nodiscard]] std::uint32_t number() const { return this->state.number; }
  };
  class Reader : public detail::Side<Reader, Latest, P, latenz_icc_latest, std::uint32_t> {
   public:
    static bool open_c(latenz_icc_latest& state, void* memory, std::size_t size,
                       const latenz_icc_shape& agreed, const char* name, std::uint32_t index,
                       latenz_icc_problem& problem) {
      return latenz_icc_latest_reader(&state, memory, size, &agreed, name, index, &problem);
    }
    Freshness poll(T& value) {
      detail::choose_payload<P>();
      return static_cast<Freshness>(latenz_icc_latest_poll(&this->state, &value));
    }
    bool read_latest(T& value) {
      detail::choose_payload<P>();
      return latenz_icc_latest_read(&this->state, &value);
    }
    const T* view() { return static_cast<const T*>(latenz_icc_latest_view(&this->state)); }
    Result check_writer() {
      return detail::result_of(latenz_icc_latest_check_writer(&this->state));
    }
    [[nodiscard]] std::uint32_t number() const { return this->state.number; }
  };
};

template <class T, std::size_t N, std::size_t L, class P>
class Ring {
 public:
  static constexpr std::size_t bytes = icc::Ring<T, N, L, P>::bytes;
  static constexpr icc::detail::Shape shape = icc::Ring<T, N, L, P>::shape;
  static latenz_icc_shape c_shape() { return latenz_icc_ring_shape(&detail::type_of<T>(), N, L); }

  class Writer : public detail::Side<Writer, Ring, P, latenz_icc_ring> {
   public:
    static bool open_c(latenz_icc_ring& state, void* memory, std::size_t size,
                       const latenz_icc_shape& agreed, const char* name,
                       latenz_icc_problem& problem) {
      return latenz_icc_ring_writer(&state, memory, size, &agreed, name, &problem);
    }
    Result try_write(const T& message) {
      detail::choose_payload<P>();
      return detail::result_of(latenz_icc_ring_try_write(&this->state, &message));
    }
    Result write_until(const T& message, Deadline auto deadline) {
      detail::choose_payload<P>();
      return detail::result_of(
          latenz_icc_ring_write(&this->state, &message, detail::DeadlineOf(deadline)));
    }
    Result write(const T& message) { return write_until(message, Never{}); }
    Result try_write_some(std::span<const T> messages, std::size_t& count) {
      detail::choose_payload<P>();
      auto wanted = static_cast<std::uint32_t>(messages.size());
      const latenz_icc_result result =
          latenz_icc_ring_try_write_some(&this->state, messages.data(), &wanted);
      count = wanted;
      return detail::result_of(result);
    }
    Result try_loan(T*& message) {
      message = static_cast<T*>(latenz_icc_ring_try_loan(&this->state));
      return message == nullptr ? Result::full : Result::ok;
    }
    Result loan_until(T*& message, Deadline auto deadline) {
      void* place = nullptr;
      const latenz_icc_result result =
          latenz_icc_ring_loan(&this->state, &place, detail::DeadlineOf(deadline));
      message = static_cast<T*>(place);
      return detail::result_of(result);
    }
    void publish() { latenz_icc_ring_publish(&this->state); }
    [[nodiscard]] std::size_t late_reader() const {
      return latenz_icc_ring_late_reader(&this->state);
    }
    void leave_behind(std::size_t reader) {
      latenz_icc_ring_leave_behind(&this->state, static_cast<std::uint32_t>(reader));
    }
    [[nodiscard]] std::uint32_t number() const { return this->state.number; }
  };
  class Reader : public detail::Side<Reader, Ring, P, latenz_icc_ring, std::uint32_t> {
   public:
    static bool open_c(latenz_icc_ring& state, void* memory, std::size_t size,
                       const latenz_icc_shape& agreed, const char* name, std::uint32_t index,
                       latenz_icc_problem& problem) {
      return latenz_icc_ring_reader(&state, memory, size, &agreed, name, index, &problem);
    }
    Result try_read(T& message) {
      detail::choose_payload<P>();
      return detail::result_of(latenz_icc_ring_try_read(&this->state, &message));
    }
    Result read_until(T& message, Deadline auto deadline) {
      detail::choose_payload<P>();
      return detail::result_of(
          latenz_icc_ring_read(&this->state, &message, detail::DeadlineOf(deadline)));
    }
    Result read(T& message) { return read_until(message, Never{}); }
    Result try_read_some(std::span<T> messages, std::size_t& count) {
      detail::choose_payload<P>();
      auto wanted = static_cast<std::uint32_t>(messages.size());
      const latenz_icc_result result =
          latenz_icc_ring_try_read_some(&this->state, messages.data(), &wanted);
      count = wanted;
      return detail::result_of(result);
    }
    Result try_take(const T*& message) {
      return detail::taken(latenz_icc_ring_try_take, this->state, message);
    }
    Result take_until(const T*& message, Deadline auto deadline) {
      const void* place = nullptr;
      const latenz_icc_result result =
          latenz_icc_ring_take(&this->state, &place, detail::DeadlineOf(deadline));
      message = static_cast<const T*>(place);
      return detail::result_of(result);
    }
    Result release() { return detail::result_of(latenz_icc_ring_release(&this->state)); }
  };
  /// C has none: the one of C++ looks at what C writes.
  using Observer = typename icc::Ring<T, N, L, P>::Observer;
};

template <std::size_t Max, std::size_t N, class Item, class P>
class Pool {
 public:
  static constexpr std::size_t bytes = icc::Pool<Max, N, Item, P>::bytes;
  static constexpr icc::detail::Shape shape = icc::Pool<Max, N, Item, P>::shape;
  static latenz_icc_shape c_shape() {
    return latenz_icc_pool_shape(&detail::type_of<Item>(), Max, N);
  }

  class Writer : public detail::Side<Writer, Pool, P, latenz_icc_pool> {
   public:
    static bool open_c(latenz_icc_pool& state, void* memory, std::size_t size,
                       const latenz_icc_shape& agreed, const char* name,
                       latenz_icc_problem& problem) {
      return latenz_icc_pool_writer(&state, memory, size, &agreed, name, &problem);
    }
    Result try_write(std::span<const Item> message) {
      detail::choose_payload<P>();
      return detail::result_of(
          latenz_icc_pool_try_write(&this->state, message.data(), of(message)));
    }
    Result write_until(std::span<const Item> message, Deadline auto deadline) {
      detail::choose_payload<P>();
      return detail::result_of(latenz_icc_pool_write(&this->state, message.data(), of(message),
                                                     detail::DeadlineOf(deadline)));
    }
    Result write(std::span<const Item> message) { return write_until(message, Never{}); }
    Result try_loan(std::size_t items, std::span<Item>& message) {
      detail::choose_payload<P>();
      void* place = nullptr;
      const latenz_icc_result result =
          latenz_icc_pool_try_loan(&this->state, static_cast<std::uint32_t>(items), &place);
      if (place != nullptr) message = {static_cast<Item*>(place), items};
      return detail::result_of(result);
    }
    Result loan_until(std::size_t items, std::span<Item>& message, Deadline auto deadline) {
      void* place = nullptr;
      const latenz_icc_result result = latenz_icc_pool_loan(
          &this->state, static_cast<std::uint32_t>(items), &place, detail::DeadlineOf(deadline));
      if (place != nullptr) message = {static_cast<Item*>(place), items};
      return detail::result_of(result);
    }
    void publish() { latenz_icc_pool_publish(&this->state, Max); }
    void publish(std::size_t items) {
      latenz_icc_pool_publish(&this->state, static_cast<std::uint32_t>(items));
    }

   private:
    static std::uint32_t of(std::span<const Item> message) {
      return static_cast<std::uint32_t>(message.size());
    }
  };
  class Reader : public detail::Side<Reader, Pool, P, latenz_icc_pool> {
   public:
    static bool open_c(latenz_icc_pool& state, void* memory, std::size_t size,
                       const latenz_icc_shape& agreed, const char* name,
                       latenz_icc_problem& problem) {
      return latenz_icc_pool_reader(&state, memory, size, &agreed, name, &problem);
    }
    Result try_read(std::span<Item, Max> message, std::size_t& count) {
      detail::choose_payload<P>();
      std::uint32_t items = 0;
      const latenz_icc_result result =
          latenz_icc_pool_try_read(&this->state, message.data(), &items);
      count = items;
      return detail::result_of(result);
    }
    Result read_until(std::span<Item, Max> message, std::size_t& count, Deadline auto deadline) {
      detail::choose_payload<P>();
      std::uint32_t items = 0;
      const latenz_icc_result result =
          latenz_icc_pool_read(&this->state, message.data(), &items, detail::DeadlineOf(deadline));
      count = items;
      return detail::result_of(result);
    }
    Result read(std::span<Item, Max> message, std::size_t& count) {
      return read_until(message, count, Never{});
    }
    Result try_take(std::span<const Item>& message) {
      detail::choose_payload<P>();
      const void* place = nullptr;
      std::uint32_t items = 0;
      const latenz_icc_result result = latenz_icc_pool_try_take(&this->state, &place, &items);
      if (place != nullptr) message = {static_cast<const Item*>(place), items};
      return detail::result_of(result);
    }
    Result take_until(std::span<const Item>& message, Deadline auto deadline) {
      const void* place = nullptr;
      std::uint32_t items = 0;
      const latenz_icc_result result =
          latenz_icc_pool_take(&this->state, &place, &items, detail::DeadlineOf(deadline));
      if (place != nullptr) message = {static_cast<const Item*>(place), items};
      return detail::result_of(result);
    }
    Result release(std::span<const Item> message) {
      return detail::result_of(latenz_icc_pool_release(&this->state, message.data()));
    }
  };
};

}  // namespace latenz::icc::c
