// SPDX-License-Identifier: Apache-2.0
// The part that all channels have in common: the header in shared memory by which two sides that
// were compiled apart make sure that they mean the same, and see each other come, go and begin
// anew. docs/icc-abi.md has it as a byte table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "latenz/icc/deadline.hpp"
#include "latenz/icc/platform.hpp"
#include "latenz/icc/problem.hpp"
#include "latenz/icc/result.hpp"
#include "latenz/icc/wire_type.hpp"

namespace latenz::icc {

/// Bytes of a line in shared memory, the same for all processors: at least the cache line of each
/// (Cortex-A53 and x86-64: 64, Cortex-R5: 32). Each line has one writing side at a time.
inline constexpr std::size_t line_bytes = 64;

enum class ChannelKind : std::uint32_t {
  mailbox = 1,
  exchange = 2,
  latest = 3,
  ring = 4,
  pool = 5
};

namespace detail {

constexpr std::size_t whole_lines(std::size_t bytes) noexcept {
  return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

/// Processors that fetch lines fetch their neighbour in an aligned pair as well: what moves
/// together stands in one.
constexpr std::size_t whole_pairs(std::size_t bytes) noexcept {
  return (bytes + 2 * line_bytes - 1) / (2 * line_bytes) * (2 * line_bytes);
}

/// Two lines at the start of a channel, written by the side that creates it.
struct alignas(line_bytes) Identity {
  static constexpr std::uint32_t expected_magic = 0x4343'494C;  ///< "LICC", little endian
  static constexpr std::uint32_t current_abi_version = 3;

  std::uint32_t magic;  ///< written last, when all else is valid
  std::uint32_t abi_version;
  std::uint32_t kind;        ///< ChannelKind
  std::uint32_t generation;  ///< differs after each formatting
  std::uint32_t channel_bytes;
  std::uint32_t line;     ///< line_bytes of the creator
  std::uint32_t readers;  ///< attaching sides besides the writing one
  std::uint32_t slots;
  std::uint32_t payload_bytes[2];  ///< request and reply; one payload: the second is 0
  std::uint32_t field_count[2];
  std::uint32_t fingerprint[4];  ///< low and high word of each payload's
  char name[32];                 ///< ended by 0
  std::uint32_t reserved[8];
};
static_assert(sizeof(Identity) == 2 * line_bytes);

/// Who a side is; written by that side when it comes and goes, so that looking at it is cheap.
struct alignas(line_bytes) Presence {
  std::uint32_t epoch;    ///< incarnations of this side so far; 0: never there; low byte never 0
  std::uint32_t open;     ///< 1 from attach to close
  std::uint32_t dropped;  ///< stale messages this side has thrown away
  std::uint32_t reserved[13];
};

/// Signs of life, and the bell; written by that side while it waits, when its user calls `beat`,
/// and when it wakes another side.
struct alignas(line_bytes) Pulse {
  std::uint32_t beats;
  std::uint32_t asleep;  ///< 1 while this side sleeps, or is about to: it wants to be woken
  std::uint32_t rings;   ///< times that this side has woken others: who sleeps, sleeps on this word
  std::uint32_t reserved[13];
};

struct Side {
  Presence presence;
  Pulse pulse;
};
static_assert(sizeof(Side) == 2 * line_bytes);

/// What both sides must agree on, known when a program is compiled.
struct Shape {
  ChannelKind kind;
  std::uint32_t channel_bytes;
  std::uint32_t readers;
  std::uint32_t slots;
  std::array<std::uint32_t, 2> payload_bytes;
  std::array<std::uint64_t, 2> fingerprint;
  std::array<const Field*, 2> fields;
  std::array<std::uint32_t, 2> field_count;
};

template <class T>
inline constexpr auto fields_of = fields<T>();

constexpr std::size_t sides_offset(std::size_t field_count) noexcept {
  return whole_pairs(sizeof(Identity) + field_count * sizeof(Field));
}

constexpr std::size_t data_offset(std::size_t field_count, std::size_t sides) noexcept {
  return sides_offset(field_count) + sides * sizeof(Side);
}

/// Where things are in a channel of which only the header is known.
template <class P>
class Header {
 public:
  explicit Header(void* memory) noexcept : base_{static_cast<std::byte*>(memory)} {}

  [[nodiscard]] Identity& identity() const noexcept { return *at<Identity>(0); }
  [[nodiscard]] std::uint32_t& field_word(std::size_t field, std::size_t word) const noexcept {
    return *at<std::uint32_t>(sizeof(Identity) + field * sizeof(Field) +
                              word * sizeof(std::uint32_t));
  }
  [[nodiscard]] Side& side(std::size_t fields, std::size_t index) const noexcept {
    return *at<Side>(sides_offset(fields) + index * sizeof(Side));
  }
  template <class T>
  [[nodiscard]] T* at(std::size_t offset) const noexcept {
    return reinterpret_cast<T*>(base_ + offset);
  }

 private:
  std::byte* base_;
};

/// Writes the header of a channel; the caller is its only user meanwhile.
template <class P>
void format(void* memory, const Shape& shape, const char* name) noexcept {
  using A = Access<P>;
  const Header<P> header{memory};
  Identity& identity = header.identity();
  const std::uint32_t generation = A::load_relaxed(identity.generation) + 1;
  A::store_relaxed(identity.magic, 0);
  P::Order::full_fence();
  for (std::uint32_t offset = sizeof(std::uint32_t); offset < shape.channel_bytes;
       offset += sizeof(std::uint32_t)) {
    A::store_relaxed(*header.template at<std::uint32_t>(offset), 0);
  }
  A::store_relaxed(identity.abi_version, Identity::current_abi_version);
  A::store_relaxed(identity.kind, static_cast<std::uint32_t>(shape.kind));
  A::store_relaxed(identity.generation, generation);
  A::store_relaxed(identity.channel_bytes, shape.channel_bytes);
  A::store_relaxed(identity.line, line_bytes);
  A::store_relaxed(identity.readers, shape.readers);
  A::store_relaxed(identity.slots, shape.slots);
  std::uint32_t field = 0;
  for (std::size_t payload = 0; payload < 2; ++payload) {
    A::store_relaxed(identity.payload_bytes[payload], shape.payload_bytes[payload]);
    A::store_relaxed(identity.field_count[payload], shape.field_count[payload]);
    A::store_relaxed(identity.fingerprint[2 * payload],
                     static_cast<std::uint32_t>(shape.fingerprint[payload]));
    A::store_relaxed(identity.fingerprint[2 * payload + 1],
                     static_cast<std::uint32_t>(shape.fingerprint[payload] >> 32U));
    for (std::uint32_t i = 0; i < shape.field_count[payload]; ++i) {
      A::write(&header.field_word(field, 0), &shape.fields[payload][i], sizeof(Field));
      ++field;
    }
  }
  std::array<char, sizeof identity.name> padded{};
  for (std::size_t i = 0; i + 1 < padded.size() && name[i] != '\0'; ++i) {
    padded[i] = name[i];
  }
  A::write(identity.name, padded.data(), padded.size());
  A::store_release(identity.magic, Identity::expected_magic);
}

constexpr Problem difference(Flaw flaw, std::uint32_t here, std::uint32_t there) noexcept {
  return here == there ? Problem{} : Problem{.flaw = flaw, .here = here, .there = there};
}

/// Compares the fields of one payload with those in memory, `first` being the first of them there.
template <class P>
Problem compare_fields(void* memory, std::size_t bytes, const Shape& shape, std::uint8_t payload,
                       std::size_t first) noexcept {
  const Header<P> header{memory};
  const std::uint32_t here = shape.field_count[payload];
  const std::uint32_t there = Access<P>::load_relaxed(header.identity().field_count[payload]);
  for (std::uint32_t i = 0; i < here || i < there; ++i) {
    if (i >= max_fields || sizeof(Identity) + (first + i + 1) * sizeof(Field) > bytes) {
      return {.flaw = Flaw::field_count, .payload = payload, .here = here, .there = there};
    }
    const Field own = i < here ? shape.fields[payload][i] : Field{};
    Field found{};
    if (i < there) {
      Access<P>::read(&found, &header.field_word(first + i, 0), sizeof found);
    }
    if (own != found) {
      return {.flaw = Flaw::field, .payload = payload, .field = own, .peer_field = found};
    }
  }
  return {};
}

/// Compares what is told of one payload as a whole.
template <class P>
Problem compare_payload(Identity& there, const Shape& shape, std::uint8_t payload) noexcept {
  using A = Access<P>;
  Problem problem = difference(Flaw::payload_bytes, shape.payload_bytes[payload],
                               A::load_relaxed(there.payload_bytes[payload]));
  const std::size_t low = std::size_t{2} * payload;
  const std::uint64_t fingerprint = std::uint64_t{A::load_relaxed(there.fingerprint[low + 1])}
                                        << 32U |
                                    A::load_relaxed(there.fingerprint[low]);
  if (!problem && fingerprint != shape.fingerprint[payload]) {
    problem.flaw = Flaw::fingerprint;
  }
  problem.payload = payload;
  return problem;
}

/// Compares a channel in memory with what this side was compiled for; trusts nothing there.
template <class P>
Problem compare(void* memory, std::size_t bytes, const Shape& shape) noexcept {
  using A = Access<P>;
  Identity& there = Header<P>{memory}.identity();
  if (A::load_acquire(there.magic) != Identity::expected_magic) {
    return {.flaw = Flaw::not_ready};
  }
  Problem problem = difference(Flaw::abi_version, Identity::current_abi_version,
                               A::load_relaxed(there.abi_version));
  const auto next = [&problem](Flaw flaw, std::uint32_t here, std::uint32_t& in_memory) {
    if (!problem) {
      problem = difference(flaw, here, A::load_relaxed(in_memory));
    }
  };
  next(Flaw::line, line_bytes, there.line);
  next(Flaw::kind, static_cast<std::uint32_t>(shape.kind), there.kind);
  std::size_t first = 0;
  for (std::uint8_t payload = 0; payload < 2 && !problem; ++payload) {
    problem = compare_fields<P>(memory, bytes, shape, payload, first);
    if (!problem) {
      problem = compare_payload<P>(there, shape, payload);
    }
    first += A::load_relaxed(there.field_count[payload]);
  }
  next(Flaw::readers, shape.readers, there.readers);
  next(Flaw::slots, shape.slots, there.slots);
  next(Flaw::channel_bytes, shape.channel_bytes, there.channel_bytes);
  return problem;
}

}  // namespace detail
}  // namespace latenz::icc
