// SPDX-License-Identifier: Apache-2.0
// Endpoints of latenz/icc.h for Python: described at run time, over shared memory of Linux. The
// protocol is the header's; here is what Python adds: signals end a wait, other threads run
// meanwhile, and memory stays mapped as long as anything looks at it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core.hpp"
// first: sides in Python sleep, and wake who sleeps
#include "latenz/icc_linux_wait.h"
// then what it changes
#include "latenz/icc.h"
#include "latenz/icc/linux_memory.hpp"
#include "latenz/icc/wire_type.hpp"

namespace nb = nanobind;

namespace latenz::python {
namespace {

using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;
using Messages = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstMessages = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Why an endpoint could not be opened.
struct Problem : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// No channel is there (yet).
struct NotReady : Problem {
  using Problem::Problem;
};

/// Shared memory of Linux.
class Memory {
 public:
  explicit Memory(icc::LinuxMemory&& mapped) : mapped_(std::move(mapped)) {
    if (!mapped_) throw Problem(mapped_.problem());
  }
  static Memory* of_name(const std::string& name, std::size_t bytes) {
    return new Memory(icc::LinuxMemory::create_shared(name.c_str(), bytes));
  }
  static Memory* of_file(const std::string& path) {
    return new Memory(icc::LinuxMemory::file(path.c_str()));
  }
  [[nodiscard]] unsigned char* data() const { return static_cast<unsigned char*>(mapped_.data()); }
  [[nodiscard]] std::size_t size() const { return mapped_.size(); }
  Bytes bytes() { return {data(), {size()}, nb::find(this)}; }

 private:
  icc::LinuxMemory mapped_;
};

/// A payload's table, in memory of its own.
class Type {
 public:
  Type(std::uint32_t bytes, std::uint64_t fingerprint, const nb::bytes& fields)
      : fields_(fields.size() / sizeof(latenz_icc_field)) {
    if (bytes == 0 || bytes > icc::max_wire_bytes || fields_.empty() ||
        fields_.size() > icc::max_fields || fields.size() % sizeof(latenz_icc_field) != 0) {
      throw nb::value_error("no such payload");
    }
    std::memcpy(fields_.data(), fields.c_str(), fields.size());
    type_ = {bytes, static_cast<std::uint32_t>(fields_.size()), fingerprint, fields_.data()};
  }
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
  [[nodiscard]] const latenz_icc_type& get() const { return type_; }

 private:
  std::vector<latenz_icc_field> fields_;
  latenz_icc_type type_{};
};

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// A deadline that looks after signals, too; and without end, whether the other side lives.
class Patience {
 public:
  /// `timeout_ns` below 0: without end. `beats`: sign of life of the other side.
  template <class BeatsOf>
  Patience(std::int64_t timeout_ns, BeatsOf& beats_of)
      : end_ns_(timeout_ns < 0 ? -1 : now_ns() + timeout_ns),
        next_ns_(now_ns() + look_ns),
        beats_of_(&beats_of),
        ask_([](void* object) { return (*static_cast<BeatsOf*>(object))(); }) {}

  latenz_icc_deadline deadline() { return {&Patience::expired, this, &Patience::left_ns}; }
  [[nodiscard]] bool interrupted() const { return interrupted_; }
  [[nodiscard]] bool silent() const { return silent_looks_ >= most_silent_looks; }

 private:
  static constexpr std::int64_t look_ns = 50'000'000;
  static constexpr int most_silent_looks = 100;  // 5 s, as those who sleep

  static std::int64_t left_ns(void* context) {
    const Patience& patience = *static_cast<Patience*>(context);
    return patience.end_ns_ < 0 ? INT64_MAX : patience.end_ns_ - now_ns();
  }
  static bool expired(void* context) { return static_cast<Patience*>(context)->is_over(); }

  bool is_over() {
    const std::int64_t now = now_ns();
    if (end_ns_ >= 0 && now >= end_ns_) return true;
    if (now < next_ns_) return false;
    next_ns_ = now + look_ns;
    const std::uint32_t beats = ask_(beats_of_);
    silent_looks_ = beats == heard_ ? silent_looks_ + 1 : 0;
    heard_ = beats;
    if (end_ns_ < 0 && silent()) return true;
    const nb::gil_scoped_acquire python;
    interrupted_ = PyErr_CheckSignals() != 0;
    return interrupted_;
  }

  std::int64_t end_ns_;
  std::int64_t next_ns_;
  void* beats_of_;
  std::uint32_t (*ask_)(void*);
  std::uint32_t heard_ = 0;
  int silent_looks_ = 0;
  bool interrupted_ = false;
};

/// The side that a state waits for.
template <class State>
unsigned char* peer_of(const State& state) {
  return state.peer.side;
}
template <>
unsigned char* peer_of(const latenz_icc_ring& state) {
  return state.peer.side != nullptr ? state.peer.side
                                    : state.endpoint.sides + ((1U + state.index) * LICC_SIDE);
}

template <>
unsigned char* peer_of(const latenz_icc_pool& state) {
  return state.peer.side != nullptr ? state.peer.side : state.endpoint.sides + LICC_SIDE;
}

/// What the endpoints of all kinds do; both sides of a kind in one class, each with its own calls.
template <class State>
class Endpoint {
 public:
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  void close() { latenz_icc_close(&state_.endpoint); }
  void beat() { latenz_icc_beat(&state_.endpoint); }
  [[nodiscard]] std::uint32_t epoch() const { return state_.endpoint.epoch; }
  [[nodiscard]] std::uint32_t dropped() const { return state_.endpoint.dropped; }
  /// This side's own memory for a message (an exchange's request) and a reply.
  Bytes message() { return {message_.data(), {message_.size()}, nb::find(this)}; }
  Bytes reply() { return {reply_.data(), {reply_.size()}, nb::find(this)}; }

 protected:
  Endpoint(const Type& payload, const Type* reply)
      : message_(payload.get().bytes), reply_(reply == nullptr ? 0 : reply->get().bytes) {}

  /// `open(memory, size, name, problem)`; a null name attaches.
  template <class Open>
  void open(Memory& memory, std::size_t offset, const std::optional<std::string>& name, Open open) {
    latenz_icc_problem problem{};
    const bool beyond = offset > memory.size();
    unsigned char* const begin = beyond ? nullptr : memory.data() + offset;
    const std::size_t size = beyond ? 0 : memory.size() - offset;
    if (open(begin, size, name ? name->c_str() : nullptr, &problem)) return;
    char text[256];
    latenz_icc_describe(&problem, text, sizeof text);
    if (problem.flaw == LATENZ_ICC_NOT_READY) throw NotReady(text);
    throw Problem(text);
  }

  /// A call that returns at once, of one thread at a time.
  template <class Call>
  auto at_once(Call call) {
    if (busy_.test_and_set()) throw std::runtime_error("an endpoint is for one thread at a time");
    const auto result = call();
    busy_.clear();
    return result;
  }

  /// A call that may wait: other threads run, and signals end it.
  template <class Call>
  int wait(std::int64_t timeout_ns, Call call) {
    auto beats = [this] { return LATENZ_ICC_LOAD_RELAXED(licc_at(peer_of(state_), LICC_BEATS)); };
    Patience patience(timeout_ns, beats);
    const latenz_icc_result result = at_once([&] {
      const nb::gil_scoped_release others_run;
      const latenz_icc_deadline deadline = patience.deadline();
      return call(&deadline);
    });
    if (patience.interrupted()) throw nb::python_error();
    return timeout_ns < 0 && result == LATENZ_ICC_TIMEOUT && patience.silent()
               ? LATENZ_ICC_PEER_GONE
               : result;
  }

  /// Number of the slot that begins here.
  [[nodiscard]] std::int64_t slot_at(const void* place, const unsigned char* first,
                                     std::uint32_t slot_bytes) const {
    if (place == nullptr) return -1;
    return (static_cast<const unsigned char*>(place) - first) / std::int64_t{slot_bytes};
  }

  /// Where a place is in the channel; below 0: nowhere.
  [[nodiscard]] std::int64_t offset_of(const void* place) const {
    if (place == nullptr) return -1;
    return static_cast<const unsigned char*>(place) - state_.endpoint.memory;
  }

  State state_{};
  std::vector<std::uint8_t> message_;
  std::vector<std::uint8_t> reply_;

 private:
  std::atomic_flag busy_;
};

class Mailbox : public Endpoint<latenz_icc_mailbox> {
 public:
  Mailbox(Memory& memory, std::size_t offset, const std::optional<std::string>& name,
          const Type& payload, bool writes)
      : Endpoint(payload, nullptr) {
    const latenz_icc_shape shape = latenz_icc_mailbox_shape(&payload.get());
    open(memory, offset, name,
         [&](void* begin, std::size_t size, const char* called, latenz_icc_problem* problem) {
           return writes ? latenz_icc_mailbox_writer(&state_, begin, size, &shape, called, problem)
                         : latenz_icc_mailbox_reader(&state_, begin, size, &shape, called, problem);
         });
  }
  int write(std::int64_t timeout_ns) {
    return wait(timeout_ns, [this](const latenz_icc_deadline* deadline) {
      return latenz_icc_mailbox_write(&state_, message_.data(), deadline);
    });
  }
  int try_write() {
    return at_once([this] { return latenz_icc_mailbox_try_write(&state_, message_.data()); });
  }
  int read(std::int64_t timeout_ns) {
    return wait(timeout_ns, [this](const latenz_icc_deadline* deadline) {
      return latenz_icc_mailbox_read(&state_, message_.data(), deadline);
    });
  }
  int try_read() {
    return at_once([this] { return latenz_icc_mailbox_try_read(&state_, message_.data()); });
  }
  int try_loan() {
    return at_once([this] {
      void* place = nullptr;
      return latenz_icc_mailbox_try_loan(&state_, &place);
    });
  }
  void publish() {
    at_once([this] {
      latenz_icc_mailbox_publish(&state_);
      return 0;
    });
  }
  int try_take() {
    return at_once([this] {
      const void* place = nullptr;
      return latenz_icc_mailbox_try_take(&state_, &place);
    });
  }
  int release() {
    return at_once([this] { return latenz_icc_mailbox_release(&state_); });
  }
  [[nodiscard]] std::int64_t payload_offset() const { return offset_of(state_.payload); }
};

class Exchange : public Endpoint<latenz_icc_exchange> {
 public:
  Exchange(Memory& memory, std::size_t offset, const std::optional<std::string>& name,
           const Type& request, const Type& reply, bool calls)
      : Endpoint(request, &reply) {
    const latenz_icc_shape shape = latenz_icc_exchange_shape(&request.get(), &reply.get());
    open(memory, offset, name,
         [&](void* begin, std::size_t size, const char* called, latenz_icc_problem* problem) {
           return calls ? latenz_icc_exchange_client(&state_, begin, size, &shape, called, problem)
                        : latenz_icc_exchange_server(&state_, begin, size, &shape, called, problem);
         });
  }
  int call(std::int64_t timeout_ns) {
    return wait(timeout_ns, [this](const latenz_icc_deadline* deadline) {
      return latenz_icc_exchange_call(&state_, message_.data(), reply_.data(), deadline);
    });
  }
  int try_post() {
    return at_once([this] { return latenz_icc_exchange_try_post(&state_, message_.data()); });
  }
  int try_collect() {
    return at_once([this] { return latenz_icc_exchange_try_collect(&state_, reply_.data()); });
  }
  int take(std::int64_t timeout_ns) {
    return wait(timeout_ns, [this](const latenz_icc_deadline* deadline) {
      return latenz_icc_exchange_take(&state_, message_.data(), deadline);
    });
  }
  int try_take() {
    return at_once([this] { return latenz_icc_exchange_try_take(&state_, message_.data()); });
  }
  int answer() {
    return at_once([this] { return latenz_icc_exchange_answer(&state_, reply_.data()); });
  }
  int try_loan() {
    return at_once([this] {
      void* place = nullptr;
      return latenz_icc_exchange_try_loan(&state_, &place);
    });
  }
  void publish() {
    at_once([this] {
      latenz_icc_exchange_publish(&state_);
      return 0;
    });
  }
  int try_take_reply() {
    return at_once([this] {
      const void* place = nullptr;
      return latenz_icc_exchange_try_take_reply(&state_, &place);
    });
  }
  int release() {
    return at_once([this] { return latenz_icc_exchange_release(&state_); });
  }
  int try_take_request() {
    return at_once([this] {
      const void* place = nullptr;
      return latenz_icc_exchange_try_take_request(&state_, &place);
    });
  }
  bool loan_reply() {
    return at_once([this] { return latenz_icc_exchange_loan_reply(&state_) != nullptr; });
  }
  void publish_reply() {
    at_once([this] {
      latenz_icc_exchange_publish_reply(&state_);
      return 0;
    });
  }
  [[nodiscard]] std::int64_t payload_offset() const { return offset_of(state_.payload); }
};

class Latest : public Endpoint<latenz_icc_latest> {
 public:
  Latest(Memory& memory, std::size_t offset, const std::optional<std::string>& name,
         const Type& payload, std::uint32_t readers, bool writes, std::uint32_t reader)
      : Endpoint(payload, nullptr) {
    const latenz_icc_shape shape = latenz_icc_latest_shape(&payload.get(), readers);
    open(memory, offset, name,
         [&](void* begin, std::size_t size, const char* called, latenz_icc_problem* problem) {
           return writes ? latenz_icc_latest_writer(&state_, begin, size, &shape, called, problem)
                         : latenz_icc_latest_reader(&state_, begin, size, &shape, called, reader,
                                                    problem);
         });
  }
  void update() {
    at_once([this] {
      latenz_icc_latest_update(&state_, message_.data());
      return 0;
    });
  }
  std::int64_t loan() {
    return at_once([this] { return slot(latenz_icc_latest_loan(&state_)); });
  }
  void publish() {
    at_once([this] {
      latenz_icc_latest_publish(&state_);
      return 0;
    });
  }
  int poll() {
    return at_once([this] { return latenz_icc_latest_poll(&state_, message_.data()); });
  }
  std::int64_t view() {
    return at_once([this] { return slot(latenz_icc_latest_view(&state_)); });
  }
  int check_writer() {
    return at_once([this] { return latenz_icc_latest_check_writer(&state_); });
  }
  [[nodiscard]] std::uint32_t number() const { return state_.number; }
  [[nodiscard]] std::size_t slots_offset() const {
    return static_cast<std::size_t>(state_.slots - state_.endpoint.memory);
  }
  [[nodiscard]] std::uint32_t slot_bytes() const { return state_.slot_bytes; }
  [[nodiscard]] std::uint32_t slots() const { return 2U * (state_.readers + 1U); }

 private:
  std::int64_t slot(const void* place) const {
    return slot_at(place, state_.slots, state_.slot_bytes);
  }
};

class Ring : public Endpoint<latenz_icc_ring> {
 public:
  Ring(Memory& memory, std::size_t offset, const std::optional<std::string>& name,
       const Type& payload, std::uint32_t slots, std::uint32_t readers, bool writes,
       std::uint32_t reader)
      : Endpoint(payload, nullptr) {
    const latenz_icc_shape shape = latenz_icc_ring_shape(&payload.get(), slots, readers);
    open(memory, offset, name,
         [&](void* begin, std::size_t size, const char* called, latenz_icc_problem* problem) {
           return writes ? latenz_icc_ring_writer(&state_, begin, size, &shape, called, problem)
                         : latenz_icc_ring_reader(&state_, begin, size, &shape, called, reader,
                                                  problem);
         });
  }
  int write(std::int64_t timeout_ns) {
    return wait(timeout_ns, [this](const latenz_icc_deadline* deadline) {
      return latenz_icc_ring_write(&state_, message_.data(), deadline);
    });
  }
  int try_write() {
    return at_once([this] { return latenz_icc_ring_try_write(&state_, message_.data()); });
  }
  std::pair<int, std::uint32_t> try_write_some(const ConstMessages& messages) {
    return at_once([&] {
      std::uint32_t count = held_by(messages);
      const int result = latenz_icc_ring_try_write_some(&state_, messages.data(), &count);
      return std::pair(result, count);
    });
  }
  std::pair<int, std::int64_t> loan(std::int64_t timeout_ns) {
    void* place = nullptr;
    const int result = wait(timeout_ns, [&](const latenz_icc_deadline* deadline) {
      return latenz_icc_ring_loan(&state_, &place, deadline);
    });
    return {result, slot(place)};
  }
  std::int64_t try_loan() {
    return at_once([this] { return slot(latenz_icc_ring_try_loan(&state_)); });
  }
  void publish() {
    at_once([this] {
      latenz_icc_ring_publish(&state_);
      return 0;
    });
  }
  [[nodiscard]] std::uint32_t late_reader() const { return latenz_icc_ring_late_reader(&state_); }
  void leave_behind(std::uint32_t reader) { latenz_icc_ring_leave_behind(&state_, reader); }
  int read(std::int64_t timeout_ns) {
    return wait(timeout_ns, [this](const latenz_icc_deadline* deadline) {
      return latenz_icc_ring_read(&state_, message_.data(), deadline);
    });
  }
  int try_read() {
    return at_once([this] { return latenz_icc_ring_try_read(&state_, message_.data()); });
  }
  std::pair<int, std::uint32_t> try_read_some(const Messages& messages) {
    return at_once([&] {
      std::uint32_t count = held_by(messages);
      const int result = latenz_icc_ring_try_read_some(&state_, messages.data(), &count);
      return std::pair(result, count);
    });
  }
  std::pair<int, std::int64_t> take(std::int64_t timeout_ns) {
    const void* place = nullptr;
    const int result = wait(timeout_ns, [&](const latenz_icc_deadline* deadline) {
      return latenz_icc_ring_take(&state_, &place, deadline);
    });
    return {result, slot(place)};
  }
  std::pair<int, std::int64_t> try_take() {
    return at_once([this] {
      const void* place = nullptr;
      const int result = latenz_icc_ring_try_take(&state_, &place);
      return std::pair(result, slot(place));
    });
  }
  int release() {
    return at_once([this] { return latenz_icc_ring_release(&state_); });
  }
  [[nodiscard]] std::uint32_t number() const { return state_.number; }
  [[nodiscard]] std::size_t slots_offset() const {
    return static_cast<std::size_t>(first() - state_.endpoint.memory);
  }
  [[nodiscard]] std::uint32_t slot_bytes() const { return state_.slot_bytes; }
  [[nodiscard]] std::uint32_t slots() const { return state_.slots; }

 private:
  [[nodiscard]] unsigned char* first() const { return licc_ring_slot(&state_, 0); }
  std::int64_t slot(const void* place) const { return slot_at(place, first(), state_.slot_bytes); }
  template <class Array>
  std::uint32_t held_by(const Array& messages) const {
    return static_cast<std::uint32_t>(
        std::min<std::size_t>(messages.size() / state_.bytes, 0xFFFF'FFFF));
  }
};

/// Works in place only: Python copies with numpy.
class Pool : public Endpoint<latenz_icc_pool> {
 public:
  Pool(Memory& memory, std::size_t offset, const std::optional<std::string>& name, const Type& item,
       std::uint32_t longest, std::uint32_t messages, bool writes)
      : Endpoint(item, nullptr) {
    const latenz_icc_shape shape = latenz_icc_pool_shape(&item.get(), longest, messages);
    open(memory, offset, name,
         [&](void* begin, std::size_t size, const char* called, latenz_icc_problem* problem) {
           return writes ? latenz_icc_pool_writer(&state_, begin, size, &shape, called, problem)
                         : latenz_icc_pool_reader(&state_, begin, size, &shape, called, problem);
         });
  }
  std::pair<int, std::int64_t> loan(std::uint32_t items, std::int64_t timeout_ns) {
    void* place = nullptr;
    const int result = wait(timeout_ns, [&](const latenz_icc_deadline* deadline) {
      return latenz_icc_pool_loan(&state_, items, &place, deadline);
    });
    return {result, offset_of(place)};
  }
  std::pair<int, std::int64_t> try_loan(std::uint32_t items) {
    return at_once([&] {
      void* place = nullptr;
      const int result = latenz_icc_pool_try_loan(&state_, items, &place);
      return std::pair(result, offset_of(place));
    });
  }
  void publish(std::uint32_t items) {
    at_once([&] {
      latenz_icc_pool_publish(&state_, items);
      return 0;
    });
  }
  std::tuple<int, std::int64_t, std::uint32_t> take(std::int64_t timeout_ns) {
    const void* place = nullptr;
    std::uint32_t items = 0;
    const int result = wait(timeout_ns, [&](const latenz_icc_deadline* deadline) {
      return latenz_icc_pool_take(&state_, &place, &items, deadline);
    });
    return {result, offset_of(place), items};
  }
  std::tuple<int, std::int64_t, std::uint32_t> try_take() {
    return at_once([this] {
      const void* place = nullptr;
      std::uint32_t items = 0;
      const int result = latenz_icc_pool_try_take(&state_, &place, &items);
      return std::tuple(result, offset_of(place), items);
    });
  }
  int release(std::uint64_t offset) {
    return at_once([&] {
      const bool within = offset < UINT32_MAX;  // no channel is larger
      return within ? latenz_icc_pool_release(&state_, state_.endpoint.memory + offset)
                    : LATENZ_ICC_EMPTY;
    });
  }
};

/// What all endpoints have.
template <class E>
nb::class_<E> endpoint(nb::module_& module, const char* name) {
  return nb::class_<E>(module, name)
      .def("close", &E::close)
      .def("beat", &E::beat)
      .def_prop_ro("epoch", &E::epoch)
      .def_prop_ro("dropped", &E::dropped)
      .def_prop_ro("message", &E::message)
      .def_prop_ro("reply", &E::reply);
}

}  // namespace

void bind_channels(nb::module_& module) {
  static nb::exception<Problem> problem(module, "ChannelProblem");
  static const nb::exception<NotReady> not_ready(module, "ChannelNotReady", problem.ptr());
  module.def("channel_result_name",
             [](int result) { return latenz_icc_name_of(static_cast<latenz_icc_result>(result)); });
  nb::class_<Memory>(module, "ChannelMemory")
      .def_static("of_name", &Memory::of_name, nb::arg("name"), nb::arg("size"),
                  nb::rv_policy::take_ownership)
      .def_static("of_file", &Memory::of_file, nb::arg("path"), nb::rv_policy::take_ownership)
      .def_prop_ro("bytes", &Memory::bytes);
  nb::class_<Type>(module, "ChannelType")
      .def(nb::init<std::uint32_t, std::uint64_t, const nb::bytes&>(), nb::arg("size"),
           nb::arg("fingerprint"), nb::arg("fields"));
  using Name = const std::optional<std::string>&;
  const auto stays = nb::keep_alive<1, 2>();
  endpoint<Mailbox>(module, "MailboxEndpoint")
      .def(nb::init<Memory&, std::size_t, Name, const Type&, bool>(), stays, nb::arg("memory"),
           nb::arg("offset"), nb::arg("name").none(), nb::arg("payload"), nb::arg("writes"))
      .def("write", &Mailbox::write, nb::arg("timeout_ns"))
      .def("try_write", &Mailbox::try_write)
      .def("read", &Mailbox::read, nb::arg("timeout_ns"))
      .def("try_read", &Mailbox::try_read)
      .def("try_loan", &Mailbox::try_loan)
      .def("publish", &Mailbox::publish)
      .def("try_take", &Mailbox::try_take)
      .def("release", &Mailbox::release)
      .def_prop_ro("payload_offset", &Mailbox::payload_offset);
  endpoint<Exchange>(module, "ExchangeEndpoint")
      .def(nb::init<Memory&, std::size_t, Name, const Type&, const Type&, bool>(), stays,
           nb::arg("memory"), nb::arg("offset"), nb::arg("name").none(), nb::arg("request"),
           nb::arg("reply"), nb::arg("calls"))
      .def("call", &Exchange::call, nb::arg("timeout_ns"))
      .def("try_post", &Exchange::try_post)
      .def("try_collect", &Exchange::try_collect)
      .def("take", &Exchange::take, nb::arg("timeout_ns"))
      .def("try_take", &Exchange::try_take)
      .def("answer", &Exchange::answer)
      .def("try_loan", &Exchange::try_loan)
      .def("publish", &Exchange::publish)
      .def("try_take_reply", &Exchange::try_take_reply)
      .def("release", &Exchange::release)
      .def("try_take_request", &Exchange::try_take_request)
      .def("loan_reply", &Exchange::loan_reply)
      .def("publish_reply", &Exchange::publish_reply)
      .def_prop_ro("payload_offset", &Exchange::payload_offset);
  endpoint<Latest>(module, "LatestEndpoint")
      .def(nb::init<Memory&, std::size_t, Name, const Type&, std::uint32_t, bool, std::uint32_t>(),
           stays, nb::arg("memory"), nb::arg("offset"), nb::arg("name").none(), nb::arg("payload"),
           nb::arg("readers"), nb::arg("writes"), nb::arg("reader"))
      .def("update", &Latest::update)
      .def("loan", &Latest::loan)
      .def("publish", &Latest::publish)
      .def("poll", &Latest::poll)
      .def("view", &Latest::view)
      .def("check_writer", &Latest::check_writer)
      .def_prop_ro("number", &Latest::number)
      .def_prop_ro("slots_offset", &Latest::slots_offset)
      .def_prop_ro("slot_bytes", &Latest::slot_bytes)
      .def_prop_ro("slots", &Latest::slots);
  endpoint<Ring>(module, "RingEndpoint")
      .def(nb::init<Memory&, std::size_t, Name, const Type&, std::uint32_t, std::uint32_t, bool,
                    std::uint32_t>(),
           stays, nb::arg("memory"), nb::arg("offset"), nb::arg("name").none(), nb::arg("payload"),
           nb::arg("slots"), nb::arg("readers"), nb::arg("writes"), nb::arg("reader"))
      .def("write", &Ring::write, nb::arg("timeout_ns"))
      .def("try_write", &Ring::try_write)
      .def("try_write_some", &Ring::try_write_some, nb::arg("messages"))
      .def("loan", &Ring::loan, nb::arg("timeout_ns"))
      .def("try_loan", &Ring::try_loan)
      .def("publish", &Ring::publish)
      .def("late_reader", &Ring::late_reader)
      .def("leave_behind", &Ring::leave_behind, nb::arg("reader"))
      .def("read", &Ring::read, nb::arg("timeout_ns"))
      .def("try_read", &Ring::try_read)
      .def("try_read_some", &Ring::try_read_some, nb::arg("messages"))
      .def("take", &Ring::take, nb::arg("timeout_ns"))
      .def("try_take", &Ring::try_take)
      .def("release", &Ring::release)
      .def_prop_ro("number", &Ring::number)
      .def_prop_ro("slots_offset", &Ring::slots_offset)
      .def_prop_ro("slot_bytes", &Ring::slot_bytes)
      .def_prop_ro("slots", &Ring::slots);
  endpoint<Pool>(module, "PoolEndpoint")
      .def(nb::init<Memory&, std::size_t, Name, const Type&, std::uint32_t, std::uint32_t, bool>(),
           stays, nb::arg("memory"), nb::arg("offset"), nb::arg("name").none(), nb::arg("item"),
           nb::arg("longest"), nb::arg("messages"), nb::arg("writes"))
      .def("loan", &Pool::loan, nb::arg("items"), nb::arg("timeout_ns"))
      .def("try_loan", &Pool::try_loan, nb::arg("items"))
      .def("publish", &Pool::publish, nb::arg("items"))
      .def("take", &Pool::take, nb::arg("timeout_ns"))
      .def("try_take", &Pool::try_take)
      .def("release", &Pool::release, nb::arg("offset"));
}

}  // namespace latenz::python
