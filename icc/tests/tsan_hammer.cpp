// SPDX-License-Identifier: Apache-2.0
// All channels hammered by threads, for a build with ThreadSanitizer.
//
//   latenz-icc-tsan mailbox|exchange|latest|ring|lossless_ring|pool|asleep|planted
//
// ThreadSanitizer does not understand fences, hence SanitizerOrder. `planted` is a mailbox without
// any order, which must be reported. Exit code 1 if a value is wrong.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "latenz/icc.hpp"
#include "latenz/icc/linux_wait.hpp"
#include "patient.hpp"

namespace latenz::icc {
namespace {

using tests::Patient;

constexpr std::uint32_t messages = 5'000;

struct Numbers {
  std::array<std::uint32_t, 16> all;

  static Numbers of(std::uint32_t number) {
    Numbers numbers{};
    numbers.all.fill(number);
    return numbers;
  }
};

// Word by word: the compiler expands memcpy into moves that ThreadSanitizer does not see.
struct SeenMemory : Coherent {
  static void write(void* shared, const void* own, std::size_t bytes) noexcept {
    copy(static_cast<std::uint32_t*>(shared), static_cast<const std::uint32_t*>(own), bytes / 4);
  }
  static void read(void* own, const void* shared, std::size_t bytes) noexcept {
    copy(static_cast<std::uint32_t*>(own), static_cast<const std::uint32_t*>(shared), bytes / 4);
  }

 private:
  static void copy(std::uint32_t* to, const std::uint32_t* from, std::size_t words) {
    for (std::size_t i = 0; i < words; ++i) to[i] = from[i];
  }
};

using Sanitized = Platform<SeenMemory, SanitizerOrder, Patient>;
/// Never takes a silent peer for gone.
struct PatientSleep : Sleep<Futex> {
  static constexpr std::uint32_t silent_beats = Patient::silent_beats;
};
using Asleep = Platform<SeenMemory, SanitizerOrder, PatientSleep>;

/// Of a ring with onlookers, which may meet the writer, and throw away what they got.
struct RelaxedMemory : Coherent {
  static void write(void* shared, const void* own, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint32_t)) {
      std::uint32_t word = 0;
      std::memcpy(&word, static_cast<const std::byte*>(own) + at, sizeof word);
      SanitizerOrder::store_relaxed(word_at(shared, at), word);
    }
  }
  static void read(void* own, const void* shared, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint32_t)) {
      const std::uint32_t word = SanitizerOrder::load_relaxed(word_at(shared, at));
      std::memcpy(static_cast<std::byte*>(own) + at, &word, sizeof word);
    }
  }

 private:
  static std::uint32_t& word_at(const void* shared, std::size_t at) noexcept {
    return *reinterpret_cast<std::uint32_t*>(
        const_cast<std::byte*>(static_cast<const std::byte*>(shared) + at));
  }
};
using Observed = Platform<RelaxedMemory, SanitizerOrder, Patient>;

struct NoOrder : SanitizerOrder {
  static std::uint32_t load_acquire(std::uint32_t& word) noexcept {
    return std::atomic_ref(word).load(std::memory_order_relaxed);
  }
  static void store_release(std::uint32_t& word, std::uint32_t value) noexcept {
    std::atomic_ref(word).store(value, std::memory_order_relaxed);
  }
};
using Unordered = Platform<SeenMemory, NoOrder, Patient>;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "latenz-icc-tsan: %s\n", what);
  std::exit(1);
}

std::uint32_t whole(const Numbers& numbers) {
  for (const std::uint32_t each : numbers.all) require(each == numbers.all[0], "torn");
  return numbers.all[0];
}

template <std::size_t bytes>
struct Memory {
  alignas(line_bytes) std::array<std::byte, bytes> all{};
};

template <class P>
void mailbox() {
  using Channel = Mailbox<Numbers, P>;
  Memory<Channel::bytes> memory;
  auto writer = *Channel::Writer::create(memory.all.data(), Channel::bytes, "hammered");
  auto reader = *Channel::Reader::attach(memory.all.data(), Channel::bytes);
  std::thread writing([&] {
    for (std::uint32_t n = 1; n <= messages; ++n) {
      while (writer.write(Numbers::of(n)) != Result::ok) {
      }
    }
  });
  for (std::uint32_t n = 1; n <= messages; ++n) {
    Numbers got{};
    while (reader.read(got) != Result::ok) {
    }
    if constexpr (!std::is_same_v<P, Unordered>) require(whole(got) == n, "out of order");
  }
  writing.join();
}

void exchange() {
  using Channel = Exchange<Numbers, Numbers, Sanitized>;
  Memory<Channel::bytes> memory;
  auto client = *Channel::Client::create(memory.all.data(), Channel::bytes, "hammered");
  auto server = *Channel::Server::attach(memory.all.data(), Channel::bytes);
  std::thread serving([&] {
    for (std::uint32_t n = 1; n <= messages;) {
      const Result result =
          server.serve([](const Numbers& request) { return Numbers::of(whole(request) + 1); });
      if (result == Result::ok) ++n;
    }
  });
  for (std::uint32_t n = 1; n <= messages;) {
    Numbers reply{};
    if (client.call(Numbers::of(n), reply) != Result::ok) continue;
    require(whole(reply) == n + 1, "another call's reply");
    ++n;
  }
  serving.join();
}

void latest() {
  constexpr std::size_t readers = 3;
  using Channel = Latest<Numbers, readers, Sanitized>;
  Memory<Channel::bytes> memory;
  auto writer = *Channel::Writer::create(memory.all.data(), Channel::bytes, "hammered");
  std::vector<std::thread> reading;
  for (std::uint32_t i = 0; i < readers; ++i) {
    reading.emplace_back([&memory, i] {
      auto reader = *Channel::Reader::attach(memory.all.data(), Channel::bytes, i);
      Numbers got = Numbers::of(0);
      for (std::uint32_t last = 0; last < messages; last = whole(got)) {
        if (i == 0) {
          reader.poll(got);
        } else if (const Numbers* const seen = reader.view()) {
          SeenMemory::read(&got, seen, sizeof got);
        }
        require(whole(got) >= last, "backward");
      }
    });
  }
  for (std::uint32_t n = 1; n <= messages; ++n) writer.update(Numbers::of(n));
  for (std::thread& each : reading) each.join();
}

void ring() {
  using Channel = Ring<Numbers, 4, 1, Observed>;
  Memory<Channel::bytes> memory;
  auto writer = *Channel::Writer::create(memory.all.data(), Channel::bytes, "hammered");
  auto reader = *Channel::Reader::attach(memory.all.data(), Channel::bytes, 0);
  std::thread observing([&memory] {
    auto observer = *Channel::Observer::attach(memory.all.data(), Channel::bytes);
    Numbers got{};
    for (std::uint32_t last = 0; last < messages;) {
      if (observer.read_latest(got) != Result::ok) continue;
      require(whole(got) >= last, "backward");
      last = whole(got);
    }
  });
  std::thread writing([&] {
    for (std::uint32_t n = 1; n <= messages; ++n) {
      while (writer.write(Numbers::of(n)) != Result::ok) {
      }
    }
  });
  for (std::uint32_t n = 1; n <= messages; ++n) {
    Numbers got{};
    while (reader.read(got) != Result::ok) {
    }
    require(whole(got) == n, "out of order");
  }
  writing.join();
  observing.join();
}

/// One at a time, several, and in place, by turns; payloads are plain.
void lossless_ring() {
  using Channel = Ring<Numbers, 4, 1, Sanitized>;
  Memory<Channel::bytes> memory;
  auto writer = *Channel::Writer::create(memory.all.data(), Channel::bytes, "hammered");
  auto reader = *Channel::Reader::attach(memory.all.data(), Channel::bytes, 0);
  std::thread writing([&] {
    for (std::uint32_t n = 1; n <= messages;) {
      if (n % 3 == 0) {
        Numbers* place = nullptr;
        if (writer.loan_until(place, Never{}) != Result::ok) continue;
        const Numbers next = Numbers::of(n);
        SeenMemory::write(place, &next, sizeof next);
        writer.publish();
        ++n;
      } else if (n % 3 == 1 && n < messages) {
        const std::array<Numbers, 2> both{Numbers::of(n), Numbers::of(n + 1)};
        std::size_t count = 0;
        writer.try_write_some(both, count);
        n += static_cast<std::uint32_t>(count);
        if (count == 0) Patient::pause();
      } else if (writer.write(Numbers::of(n)) == Result::ok) {
        ++n;
      }
    }
  });
  for (std::uint32_t n = 1; n <= messages;) {
    std::array<Numbers, 3> got{};
    std::size_t count = 0;
    if (n % 3 == 0) {
      const Numbers* place = nullptr;
      if (reader.take_until(place, Never{}) != Result::ok) continue;
      SeenMemory::read(got.data(), place, sizeof *place);
      require(reader.release() == Result::ok, "left behind");
      count = 1;
    } else if (reader.try_read_some(got, count) != Result::ok) {
      Patient::pause();
    }
    for (std::size_t i = 0; i < count; ++i) require(whole(got[i]) == n++, "out of order");
  }
  writing.join();
}

/// Of one item and of several, copied and in place; the reader holds a message while it takes the
/// next ones. Payloads and entries are plain.
void pool() {
  using Channel = Pool<5, 4, Numbers, Sanitized>;
  Memory<Channel::bytes> memory;
  auto writer = *Channel::Writer::create(memory.all.data(), Channel::bytes, "hammered");
  auto reader = *Channel::Reader::attach(memory.all.data(), Channel::bytes);
  std::thread writing([&] {
    for (std::uint32_t n = 1; n <= messages;) {
      const Numbers next = Numbers::of(n);
      std::span<Numbers> place;
      if (n % 5 == 1) {
        if (writer.write({&next, 1}) == Result::ok) ++n;
      } else if (writer.loan_until(n % 5 + 1, place, Never{}) == Result::ok) {
        for (Numbers& each : place) SeenMemory::write(&each, &next, sizeof next);
        writer.publish();
        ++n;
      }
    }
  });
  std::span<const Numbers> held;
  for (std::uint32_t n = 1; n <= messages;) {
    std::span<const Numbers> message;
    if (reader.take_until(message, Never{}) != Result::ok) continue;
    require(message.size() == (n % 5 == 1 ? 1 : n % 5 + 1), "another length");
    for (const Numbers& each : message) {
      Numbers got{};
      SeenMemory::read(&got, &each, sizeof got);
      require(whole(got) == n, "out of order");
    }
    ++n;
    if (held.empty()) {
      held = message;
      continue;
    }
    require(reader.release(message) == Result::ok && reader.release(held) == Result::ok,
            "not held");
    held = {};
  }
  writing.join();
}

int run(std::string_view what) {
  if (what == "mailbox") {
    mailbox<Sanitized>();
  } else if (what == "exchange") {
    exchange();
  } else if (what == "latest") {
    latest();
  } else if (what == "ring") {
    ring();
  } else if (what == "lossless_ring") {
    lossless_ring();
  } else if (what == "pool") {
    pool();
  } else if (what == "asleep") {
    mailbox<Asleep>();
  } else if (what == "planted") {
    mailbox<Unordered>();
  } else {
    std::fputs(
        "latenz-icc-tsan: one of mailbox, exchange, latest, ring, lossless_ring, pool, asleep, "
        "planted is needed\n",
        stderr);
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace latenz::icc

int main(int argc, char* const* argv) { return latenz::icc::run(argc == 2 ? argv[1] : ""); }
