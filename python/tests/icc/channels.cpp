// SPDX-License-Identifier: Apache-2.0
// Channels as the headers make them, in a file, for the tests of what looks at them.
//
//   channels fill FILE      one channel of each kind and more, with known content
//   channels sizes          prints the sizes of many channels, as JSON
//   channels talk FILE      a ring whose writer never stops, and a mailbox whose reader has left
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "latenz/icc.hpp"
#include "latenz/icc/linux_memory.hpp"

namespace {

using namespace latenz::icc;

enum class Mode : std::uint8_t { idle, moving };
struct Joint {
  float angle;
  std::int16_t ticks;
};
struct State {
  std::uint64_t time_ns;
  double gain;
  Joint joints[3];
  std::int8_t error;
  Mode mode;
  char label[6];
};
struct Word {
  std::uint32_t value;
};
/// More than a line.
struct Wide {
  std::uint16_t numbers[50];
  std::int64_t last;
};

constexpr State state{.time_ns = 1'700'000'000'000'000'001,
                      .gain = -0.5,
                      .joints = {{1.5F, -3}, {2.5F, 4}, {-3.5F, 32767}},
                      .error = -7,
                      .mode = Mode::moving,
                      .label = "servo"};

template <class Opened>
auto open(Opened opened) {
  if (!opened) std::exit(3);
  return *opened;
}

/// Puts channels one after the other.
class Places {
 public:
  explicit Places(const LinuxMemory& memory) : at_{static_cast<std::byte*>(memory.data())} {}
  template <class Channel>
  std::byte* next() {
    std::byte* here = at_;
    at_ += Channel::bytes + line_bytes;  // with a gap
    return here;
  }

 private:
  std::byte* at_;
};

void fill(const LinuxMemory& memory) {
  Places places{memory};
  {
    using Channel = Mailbox<State>;
    std::byte* here = places.next<Channel>();
    auto writer = open(Channel::Writer::create(here, Channel::bytes, "mailbox"));
    auto reader = open(Channel::Reader::attach(here, Channel::bytes));
    State read{};
    writer.try_write({});
    reader.try_read(read);
    reader = open(Channel::Reader::attach(here, Channel::bytes));
    writer.try_write(state);
    writer.try_write(state);  // tells that the reader has restarted
    writer.try_write(state);
    reader.beat();
    writer.close();
  }
  {
    using Channel = Exchange<Word, Wide>;
    std::byte* here = places.next<Channel>();
    auto client = open(Channel::Client::create(here, Channel::bytes, "exchange, answered"));
    auto server = open(Channel::Server::attach(here, Channel::bytes));
    Word request{};
    Wide reply{.numbers = {}, .last = -9};
    for (std::uint16_t i = 0; i < 50; ++i) reply.numbers[i] = static_cast<std::uint16_t>(1000 + i);
    client.try_post({.value = 1});
    server.try_take(request);
    server.answer(reply);
  }
  {
    using Channel = Exchange<Word, Word>;
    std::byte* here = places.next<Channel>();
    auto client = open(Channel::Client::create(here, Channel::bytes, "exchange, asked"));
    client.try_post({.value = 77});
  }
  {
    using Channel = Latest<State, 3>;
    std::byte* here = places.next<Channel>();
    auto writer = open(Channel::Writer::create(here, Channel::bytes, "latest"));
    auto reader = open(Channel::Reader::attach(here, Channel::bytes, 1));
    State read{};
    writer.update({});
    reader.poll(read);
    writer.update({});
    writer.update(state);
  }
  {
    using Channel = Ring<State, 4, 2>;
    std::byte* here = places.next<Channel>();
    auto writer = open(Channel::Writer::create(here, Channel::bytes, "ring"));
    for (int i = 0; i < 5; ++i) writer.try_write({});
    writer.try_write(state);
  }
  {
    using Channel = Latest<Word>;
    open(Channel::Writer::create(places.next<Channel>(), Channel::bytes, "nothing yet"));
  }
}

template <std::size_t bytes>
struct Payload {
  std::uint8_t content[bytes];
};

template <class Channel>
void print_size(const char* kind, std::size_t payload, std::size_t first, std::size_t second) {
  std::printf(R"({"kind": "%s", "payload": %zu, "readers": %zu, "slots": %zu, "bytes": %zu},)",
              kind, payload, first, second, Channel::bytes);
}

template <std::size_t... payload>
void print_sizes(std::index_sequence<payload...> /*payloads*/) {
  (print_size<Mailbox<Payload<payload + 1>>>("mailbox", payload + 1, 1, 1), ...);
  (print_size<Exchange<Word, Payload<payload + 1>>>("exchange", payload + 1, 1, 1), ...);
  (print_size<Latest<Payload<payload + 1>, 1>>("latest", payload + 1, 1, 4), ...);
  (print_size<Latest<Payload<payload + 1>, 15>>("latest", payload + 1, 15, 32), ...);
  (print_size<Ring<Payload<payload + 1>, 2>>("ring", payload + 1, 0, 2), ...);
  (print_size<Ring<Payload<payload + 1>, 8, 3>>("ring", payload + 1, 3, 8), ...);
}

void talk(const LinuxMemory& memory) {
  Places places{memory};
  using Stream = Ring<Wide, 4>;
  using Letters = Mailbox<Word>;
  std::byte* here = places.next<Stream>();
  auto writer = open(Stream::Writer::create(here, Stream::bytes, "stream"));
  std::byte* there = places.next<Letters>();
  open(Letters::Writer::create(there, Letters::bytes, "letters"));
  open(Letters::Reader::attach(there, Letters::bytes)).close();
  for (std::uint16_t i = 0;; ++i) {
    Wide message{.numbers = {}, .last = i};
    for (std::uint16_t& number : message.numbers) number = i;
    writer.try_write(message);
    if (i % 64 == 0) usleep(50);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view what = count > 1 ? arguments[1] : "";
  if (what == "sizes") {
    std::printf("[");
    print_sizes(std::make_index_sequence<130>{});
    std::printf("null]\n");
    return 0;
  }
  const LinuxMemory memory = LinuxMemory::file(arguments[2]);
  if (!memory) {
    std::fprintf(stderr, "%s\n", memory.problem());
    return 2;
  }
  what == "fill" ? fill(memory) : talk(memory);
  return 0;
}
