// SPDX-License-Identifier: Apache-2.0
// Writes the memory of channels of each kind into files, after a few messages.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

#include "latenz/icc.hpp"

using namespace latenz::icc;

struct Sample {
  std::uint32_t number;
  struct {
    float angle;
    float torque;
  } joints[6];
  std::uint16_t mode;
};

struct Small {
  std::uint16_t number;
};

struct Wide {
  std::uint32_t number;
  std::uint8_t bytes[97];
};

template <class Payload>
Payload payload(std::uint32_t number) {
  Payload made{};
  made.number = static_cast<decltype(made.number)>(number);
  return made;
}

template <class Channel>
struct Memory {
  alignas(line_bytes) std::byte bytes[Channel::bytes]{};

  /// The channel with its layout as the headers tell it.
  bool save(const char* file) const {
    std::FILE* out = std::fopen(file, "wb");
    if (out == nullptr) return false;
    const bool saved = std::fwrite(bytes, sizeof bytes, 1, out) == 1;
    for (const LineRun& run : Channel::lines()) {
      std::printf("%s %u %u %s\n", file, run.offset, run.bytes, run.part);
    }
    return std::fclose(out) == 0 && saved;
  }
};

template <class Payload>
bool dump_mailbox(const char* file) {
  using Channel = Mailbox<Payload>;
  Memory<Channel> memory;
  auto writer = Channel::Writer::create(memory.bytes, sizeof memory.bytes, "mailbox");
  auto reader = Channel::Reader::attach(memory.bytes, sizeof memory.bytes);
  Payload got{};
  writer->try_write(payload<Payload>(10));
  reader->try_read(got);
  writer->try_write(payload<Payload>(11));
  reader->try_read(got);
  writer->try_write(payload<Payload>(12));
  return memory.save(file);
}

template <class Request, class Reply>
bool dump_exchange(const char* file) {
  using Channel = Exchange<Request, Reply>;
  Memory<Channel> memory;
  auto client = Channel::Client::create(memory.bytes, sizeof memory.bytes, "exchange");
  auto server = Channel::Server::attach(memory.bytes, sizeof memory.bytes);
  Request request{};
  Reply reply{};
  client->try_post(payload<Request>(20));
  server->try_take(request);
  server->answer(payload<Reply>(21));
  client->try_collect(reply);
  Request last = payload<Request>(22);
  reinterpret_cast<unsigned char*>(&last)[sizeof last - 1] = 0;
  if constexpr (requires { last.bytes; }) last.bytes[96] = 77;
  client->try_post(last);
  return memory.save(file);
}

bool dump_latest() {
  using Channel = Latest<Sample, 2>;
  Memory<Channel> memory;
  auto writer = Channel::Writer::create(memory.bytes, sizeof memory.bytes, "latest");
  auto reader = Channel::Reader::attach(memory.bytes, sizeof memory.bytes, 1);
  Sample got{};
  writer->update(payload<Sample>(30));
  reader->poll(got);
  writer->update(payload<Sample>(31));
  return memory.save("latest");
}

bool dump_ring() {
  using Channel = Ring<Sample, 4, 2>;
  Memory<Channel> memory;
  auto writer = Channel::Writer::create(memory.bytes, sizeof memory.bytes, "ring");
  auto reader = Channel::Reader::attach(memory.bytes, sizeof memory.bytes, 1);
  Sample got{};
  for (std::uint32_t i = 1; i <= 5; ++i) {
    writer->try_write(payload<Sample>(40 + i));
    if (i <= 3) reader->try_read(got);
  }
  reader->beat();
  reader->close();
  return memory.save("ring");
}

bool dump_pool() {
  using Channel = Pool<10, 4, Sample>;
  Memory<Channel> memory;
  auto writer = Channel::Writer::create(memory.bytes, sizeof memory.bytes, "pool");
  auto reader = Channel::Reader::attach(memory.bytes, sizeof memory.bytes);
  const Sample samples[10]{payload<Sample>(51), payload<Sample>(52)};
  std::span<const Sample> message;
  writer->try_write({samples, 1});
  writer->try_write({samples + 1, 9});
  writer->try_write({samples, 2});
  reader->try_take(message);
  reader->release(message);
  reader->try_take(message);
  return memory.save("pool");
}

int main() {
  const bool saved = dump_mailbox<Sample>("mailbox") && dump_mailbox<Small>("mailbox_small") &&
                     dump_exchange<Sample, Small>("exchange") &&
                     dump_exchange<Wide, Sample>("exchange_two_lines") && dump_latest() &&
                     dump_ring() && dump_pool();
  return saved ? 0 : 1;
}
