// SPDX-License-Identifier: Apache-2.0
// Channels whose other side has written anything into the shared memory.
//
// An input is what is in the memory. It is attached to as it is, and once more with the header put
// right, so that signs of life, counts and slots are looked at: all calls must return, and touch
// nothing outside.
#include <algorithm>
#include <cstring>

#include "latenz/icc.hpp"
#include "target.hpp"

namespace latenz::fuzz {
namespace {

using namespace icc;

struct Message {
  std::uint32_t number;
  std::uint8_t rest[9];
};

using Foreign = Platform<Coherent, StandardOrder, Yield>;
constexpr int calls = 20;

template <class Channel, class Use>
void with_memory(Input input, Use use) {
  alignas(line_bytes) static std::byte memory[Channel::bytes];
  const std::span shared(memory);
  const auto fill = [&] {
    std::ranges::fill(shared, std::byte{0});
    std::ranges::copy(std::as_bytes(input.first(std::min(input.size(), shared.size()))), memory);
  };
  fill();
  use(shared);
  fill();
  constexpr std::size_t header =
      sizeof(icc::detail::Identity) +
      (Channel::shape.field_count[0] + Channel::shape.field_count[1]) * sizeof(Field);
  alignas(line_bytes) static std::byte right[Channel::bytes];
  icc::detail::format<Foreign>(right, Channel::shape, "fuzzed");
  std::memcpy(memory, right, std::min(header, shared.size()));
  use(shared);
}

template <class Opened, class Call>
void call(Opened opened, Call once) {
  if (!opened) {
    static_cast<void>(opened.problem());
    return;
  }
  auto endpoint = *opened;
  for (int i = 0; i < calls; ++i) once(endpoint);
  endpoint.beat();
  endpoint.close();
}

}  // namespace

void read_input(Input input) {
  [[maybe_unused]] static Message message{};
  using Mail = Mailbox<Message, Foreign>;
  with_memory<Mail>(input, [](auto memory) {
    call(Mail::Reader::attach(memory.data(), memory.size()),
         [](auto& reader) { static_cast<void>(reader.try_read(message)); });
    call(Mail::Writer::attach(memory.data(), memory.size()),
         [](auto& writer) { static_cast<void>(writer.try_write(message)); });
  });
  using Stream = Ring<Message, 8, 2, Foreign>;
  with_memory<Stream>(input, [](auto memory) {
    call(Stream::Reader::attach(memory.data(), memory.size(), 1),
         [](auto& reader) { static_cast<void>(reader.try_read(message)); });
    call(Stream::Writer::attach(memory.data(), memory.size()), [](auto& writer) {
      static_cast<void>(writer.try_write(message));
      static_cast<void>(writer.late_reader());
    });
    if (auto observer = Stream::Observer::attach(memory.data(), memory.size())) {
      for (int i = 0; i < calls; ++i) {
        static_cast<void>((*observer).try_read(message));
        static_cast<void>((*observer).read_latest(message));
      }
    }
  });
  using Newest = Latest<Message, 2, Foreign>;
  with_memory<Newest>(input, [](auto memory) {
    call(Newest::Reader::attach(memory.data(), memory.size(), 0), [](auto& reader) {
      static_cast<void>(reader.poll(message));
      static_cast<void>(reader.read_latest(message));
    });
    call(Newest::Writer::attach(memory.data(), memory.size()),
         [](auto& writer) { writer.update(message); });
  });
  using Call = Exchange<Message, Message, Foreign>;
  with_memory<Call>(input, [](auto memory) {
    call(Call::Client::attach(memory.data(), memory.size()), [](auto& client) {
      static_cast<void>(client.try_post(message));
      static_cast<void>(client.try_collect(message));
    });
    call(Call::Server::attach(memory.data(), memory.size()), [](auto& server) {
      static_cast<void>(server.try_take(message));
      static_cast<void>(server.answer(message));
    });
  });
}

}  // namespace latenz::fuzz
