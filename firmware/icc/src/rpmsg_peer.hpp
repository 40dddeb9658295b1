// SPDX-License-Identifier: Apache-2.0
// A peer to measure the channels beside: rpmsg over virtio, as OpenAMP and rpmsg-lite have it in
// memory between two processors. An implementation of our own, and the least one, of published
// layouts: split virtqueues (VIRTIO 1.2, section 2.7, without event indices; the two parts of a
// queue are one piece of memory, as section 2.7.2 tells for legacy devices) and the rpmsg header
// (Linux' `struct rpmsg_hdr`). Two endpoints with fixed addresses; no name service, no chains.
//
//   Driver  one processor (Linux' or rpmsg-lite's master): owns both queues' buffers
//   Device  the other one (the remote)
//
// Queue 0 carries messages to the driver, in buffers that it has made available; queue 1 carries
// messages to the device, which gives their buffers back as used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace latenz::peer {

struct Descriptor {
  std::uint64_t address;
  std::uint32_t length;
  std::uint16_t flags;
  std::uint16_t next;
};

struct UsedElement {
  std::uint32_t id;
  std::uint32_t length;
};

/// A split virtqueue of so many buffers, a power of two; its second part begins at a multiple of
/// `alignment`.
template <std::uint16_t count, std::size_t alignment>
struct Virtqueue {
  struct Available {
    std::uint16_t flags;
    std::uint16_t index;
    std::uint16_t ring[count];
    std::uint16_t used_event;
  };
  struct alignas(alignment) Used {
    std::uint16_t flags;
    std::uint16_t index;
    UsedElement ring[count];
    std::uint16_t available_event;
  };

  Descriptor descriptors[count];
  Available available;
  Used used;
};

struct RpmsgHeader {
  std::uint32_t source;
  std::uint32_t destination;
  std::uint32_t reserved;
  std::uint16_t length;  ///< of what follows
  std::uint16_t flags;
};

inline constexpr std::size_t rpmsg_buffer_bytes = 512;
inline constexpr std::size_t rpmsg_payload_bytes = rpmsg_buffer_bytes - sizeof(RpmsgHeader);
inline constexpr std::uint16_t device_writes = 2;  ///< flag of descriptors
/// Flag of either ring: who writes it does not want to be told by an interrupt.
inline constexpr std::uint16_t no_interrupt = 1;

inline constexpr std::uint16_t rpmsg_buffers = 2;  ///< of each queue
inline constexpr std::size_t rpmsg_alignment = 16;

/// Both queues and their buffers.
struct RpmsgMemory {
  using Queue = Virtqueue<rpmsg_buffers, rpmsg_alignment>;
  struct Buffer {
    RpmsgHeader header;
    std::uint8_t payload[rpmsg_payload_bytes];
  };

  Queue queues[2];
  Buffer buffers[2][rpmsg_buffers];
};

/// What both sides have in common. `Platform` is one of latenz::icc: its memory's copies, its
/// fences and its pause. `Kick` is how the other side is told, with
///   hears()   whether this side can be told by an interrupt, and wants to be
///   ring()    tells the other side
///   wait()    until this side has been told, if it hears; otherwise a pause
/// A message has at most `rpmsg_payload_bytes` bytes.
template <class Platform, class Kick>
class RpmsgSide {
 protected:
  using Queue = RpmsgMemory::Queue;
  using Buffer = RpmsgMemory::Buffer;
  using Order = Platform::Order;

  static constexpr std::uint32_t driver_address = 0x400;
  static constexpr std::uint32_t device_address = 0x1E;

  [[nodiscard]] static std::uint16_t load(const std::uint16_t& shared) {
    return __atomic_load_n(&shared, __ATOMIC_RELAXED);
  }
  static void store(std::uint16_t& shared, std::uint16_t value) {
    __atomic_store_n(&shared, value, __ATOMIC_RELAXED);
  }

  /// Waits until the other side has moved its index beyond what this one has seen.
  static void await_message(const std::uint16_t& index, std::uint16_t seen) {
    while (load(index) == seen) Kick::wait();
    Order::acquire_fence();
  }
  /// The same for a buffer, of which nobody tells.
  static void await_buffer(const std::uint16_t& index, std::uint16_t seen) {
    while (load(index) == seen) Platform::Wait::pause();
    Order::acquire_fence();
  }

  /// Shows entries before this index to the other side, and tells it unless it wants not to be.
  static void show(std::uint16_t& index, std::uint16_t value, const std::uint16_t& others_flags) {
    Order::release_fence();
    store(index, value);
    Order::full_fence();
    if ((load(others_flags) & no_interrupt) == 0) Kick::ring();
  }

  static void fill(Buffer& buffer, std::uint32_t from, std::uint32_t to, const void* message,
                   std::uint16_t bytes) {
    buffer.header = {.source = from, .destination = to, .reserved = 0, .length = bytes, .flags = 0};
    Platform::Memory::write(buffer.payload, message, bytes);
  }

  /// False: it is for nobody here.
  static bool take_out(const Buffer& buffer, std::uint32_t own, void* message,
                       std::uint16_t bytes) {
    if (buffer.header.destination != own || buffer.header.length != bytes) return false;
    Platform::Memory::read(message, buffer.payload, bytes);
    return true;
  }

  [[nodiscard]] Buffer& buffer_of(Queue& queue, std::uint32_t id) const {
    return *reinterpret_cast<Buffer*>(static_cast<std::uintptr_t>(queue.descriptors[id].address));
  }

  RpmsgMemory* memory_ = nullptr;
  std::uint16_t received_ = 0;  ///< in the queue to this side
  std::uint16_t sent_ = 0;      ///< in the queue from this side
};

template <class Platform, class Kick>
class RpmsgDriver : RpmsgSide<Platform, Kick> {
  using Side = RpmsgSide<Platform, Kick>;

 public:
  /// Makes both queues, all buffers for the device's messages available, before it looks.
  void open(void* memory) {
    this->memory_ = static_cast<RpmsgMemory*>(memory);
    __builtin_memset(memory, 0, sizeof(RpmsgMemory));
    for (std::uint16_t i = 0; i < rpmsg_buffers; ++i) {
      describe(to_here(), i, this->memory_->buffers[0][i], device_writes);
      describe(from_here(), i, this->memory_->buffers[1][i], 0);
      to_here().available.ring[i] = i;
    }
    Side::store(to_here().available.flags, Kick::hears() ? 0 : no_interrupt);
    Side::store(from_here().available.flags, no_interrupt);  // used buffers can wait
    Side::Order::release_fence();
    Side::store(to_here().available.index, rpmsg_buffers);
  }

  /// Waits for a buffer that the device has used, after the first ones.
  void send(const void* message, std::uint16_t bytes) {
    auto& queue = from_here();
    std::uint32_t id = this->sent_;
    if (this->sent_ >= rpmsg_buffers || given_back_ != 0) {
      Side::await_buffer(queue.used.index, given_back_);
      id = queue.used.ring[given_back_++ % rpmsg_buffers].id;
    }
    Side::fill(this->buffer_of(queue, id), Side::driver_address, Side::device_address, message,
               bytes);
    queue.descriptors[id].length = static_cast<std::uint32_t>(sizeof(RpmsgHeader) + bytes);
    queue.available.ring[this->sent_ % rpmsg_buffers] = static_cast<std::uint16_t>(id);
    Side::show(queue.available.index, ++this->sent_, queue.used.flags);
  }

  /// Waits for a message of so many bytes; false: another one came, which is thrown away.
  bool receive(void* message, std::uint16_t bytes) {
    auto& queue = to_here();
    Side::await_message(queue.used.index, this->received_);
    const auto id = static_cast<std::uint16_t>(queue.used.ring[this->received_ % rpmsg_buffers].id);
    const bool came =
        Side::take_out(this->buffer_of(queue, id), Side::driver_address, message, bytes);
    const std::uint16_t returned = this->received_++ + rpmsg_buffers;
    queue.available.ring[returned % rpmsg_buffers] = id;
    Side::show(queue.available.index, static_cast<std::uint16_t>(returned + 1), queue.used.flags);
    return came;
  }

 private:
  static void describe(Side::Queue& queue, std::uint16_t id, Side::Buffer& buffer,
                       std::uint16_t flags) {
    queue.descriptors[id] = {.address = reinterpret_cast<std::uintptr_t>(&buffer),
                             .length = rpmsg_buffer_bytes,
                             .flags = flags,
                             .next = 0};
  }
  [[nodiscard]] Side::Queue& to_here() const { return this->memory_->queues[0]; }
  [[nodiscard]] Side::Queue& from_here() const { return this->memory_->queues[1]; }

  std::uint16_t given_back_ = 0;
};

template <class Platform, class Kick>
class RpmsgDevice : RpmsgSide<Platform, Kick> {
  using Side = RpmsgSide<Platform, Kick>;

 public:
  /// Of what the driver has made before.
  void open(void* memory) {
    this->memory_ = static_cast<RpmsgMemory*>(memory);
    Side::store(to_here().used.flags, Kick::hears() ? 0 : no_interrupt);
    Side::store(from_here().used.flags, no_interrupt);  // buffers can wait
  }

  /// Waits for a buffer that the driver has made available.
  void send(const void* message, std::uint16_t bytes) {
    auto& queue = from_here();
    Side::await_buffer(queue.available.index, this->sent_);
    const std::uint16_t id = queue.available.ring[this->sent_ % rpmsg_buffers];
    Side::fill(this->buffer_of(queue, id), Side::device_address, Side::driver_address, message,
               bytes);
    queue.used.ring[this->sent_ % rpmsg_buffers] = {
        .id = id, .length = static_cast<std::uint32_t>(sizeof(RpmsgHeader) + bytes)};
    Side::show(queue.used.index, ++this->sent_, queue.available.flags);
  }

  /// As the driver's.
  bool receive(void* message, std::uint16_t bytes) {
    auto& queue = to_here();
    Side::await_message(queue.available.index, this->received_);
    const std::uint16_t id = queue.available.ring[this->received_ % rpmsg_buffers];
    const bool came =
        Side::take_out(this->buffer_of(queue, id), Side::device_address, message, bytes);
    queue.used.ring[this->received_ % rpmsg_buffers] = {.id = id, .length = 0};
    Side::show(queue.used.index, ++this->received_, queue.available.flags);
    return came;
  }

 private:
  [[nodiscard]] Side::Queue& to_here() const { return this->memory_->queues[1]; }
  [[nodiscard]] Side::Queue& from_here() const { return this->memory_->queues[0]; }
};

}  // namespace latenz::peer
