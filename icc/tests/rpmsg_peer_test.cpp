// SPDX-License-Identifier: Apache-2.0
// The peer of the bench is what it says: its layout is that of Linux' own header for virtqueues,
// which reads what it writes, and messages pass whole and in order.
#include <gtest/gtest.h>

#define VIRTIO_RING_NO_LEGACY  // functions that only C compiles
#include <linux/virtio_ring.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>

#include "../../firmware/icc/src/rpmsg_peer.hpp"
#include "latenz/icc.hpp"

namespace latenz::peer {
namespace {

struct Polls {
  static bool hears() { return false; }
  static void ring() { ADD_FAILURE() << "nobody wants to be told"; }
  static void wait() { icc::Yield::pause(); }
};
using P = icc::Platform<icc::Coherent, icc::StandardOrder, icc::Yield>;
using Driver = RpmsgDriver<P, Polls>;
using Device = RpmsgDevice<P, Polls>;
using Queue = RpmsgMemory::Queue;

/// A queue as it is read by Linux' header, and by VIRTIO 1.2, section 2.7.2: its parts follow each
/// other, the last one at a multiple of the alignment behind the event index of the one before.
vring as_linux(Queue& queue) {
  auto* const begin = reinterpret_cast<std::byte*>(&queue);
  constexpr std::size_t available = sizeof(vring_desc) * rpmsg_buffers;
  constexpr std::size_t end = available + (sizeof(std::uint16_t) * (3 + rpmsg_buffers));
  constexpr std::size_t used = (end + rpmsg_alignment - 1) / rpmsg_alignment * rpmsg_alignment;
  return {.num = rpmsg_buffers,
          .desc = reinterpret_cast<vring_desc_t*>(begin),
          .avail = reinterpret_cast<vring_avail_t*>(begin + available),
          .used = reinterpret_cast<vring_used_t*>(begin + used)};
}

TEST(RpmsgPeer, HasTheLayoutOfLinuxHeader) {
  static_assert(sizeof(Descriptor) == sizeof(vring_desc));
  static_assert(offsetof(Descriptor, address) == offsetof(vring_desc, addr));
  static_assert(offsetof(Descriptor, length) == offsetof(vring_desc, len));
  static_assert(offsetof(Descriptor, flags) == offsetof(vring_desc, flags));
  static_assert(offsetof(Descriptor, next) == offsetof(vring_desc, next));
  static_assert(sizeof(UsedElement) == sizeof(vring_used_elem));
  static_assert(offsetof(UsedElement, id) == offsetof(vring_used_elem, id));
  static_assert(offsetof(UsedElement, length) == offsetof(vring_used_elem, len));
  static_assert(offsetof(Queue::Available, index) == offsetof(vring_avail, idx));
  static_assert(offsetof(Queue::Available, ring) == offsetof(vring_avail, ring));
  static_assert(offsetof(Queue::Used, index) == offsetof(vring_used, idx));
  static_assert(offsetof(Queue::Used, ring) == offsetof(vring_used, ring));
  static_assert(device_writes == VRING_DESC_F_WRITE);
  static_assert(no_interrupt == VRING_AVAIL_F_NO_INTERRUPT);
  static_assert(no_interrupt == VRING_USED_F_NO_NOTIFY);
  const auto memory = std::make_unique<RpmsgMemory>();
  Queue& queue = memory->queues[1];
  const vring seen = as_linux(queue);
  EXPECT_EQ(static_cast<void*>(seen.desc), &queue.descriptors);
  EXPECT_EQ(static_cast<void*>(seen.avail), &queue.available);
  EXPECT_EQ(static_cast<void*>(seen.used), &queue.used);
  EXPECT_EQ(&seen.avail->ring[rpmsg_buffers], &queue.available.used_event);
  EXPECT_EQ(static_cast<void*>(&seen.used->ring[rpmsg_buffers]), &queue.used.available_event);
}

TEST(RpmsgPeer, HeaderIsThatOfRpmsg) {  // src, dst, reserved, len, flags; then the message
  static_assert(sizeof(RpmsgHeader) == 16);
  static_assert(offsetof(RpmsgHeader, source) == 0 && offsetof(RpmsgHeader, destination) == 4);
  static_assert(offsetof(RpmsgHeader, reserved) == 8 && offsetof(RpmsgHeader, length) == 12);
  static_assert(offsetof(RpmsgHeader, flags) == 14);
  static_assert(offsetof(RpmsgMemory::Buffer, payload) == 16);
  static_assert(sizeof(RpmsgMemory::Buffer) == 512 && rpmsg_payload_bytes == 496);
}

TEST(RpmsgPeer, WhatItSendsIsFoundByLinuxHeader) {
  const auto memory = std::make_unique<RpmsgMemory>();
  Driver driver;
  Device device;
  driver.open(memory.get());
  device.open(memory.get());
  const vring to_driver = as_linux(memory->queues[0]);
  const vring to_device = as_linux(memory->queues[1]);
  EXPECT_EQ(to_driver.avail->idx, rpmsg_buffers);  // all of them wait for the device
  EXPECT_EQ(to_driver.desc[0].flags, VRING_DESC_F_WRITE);
  EXPECT_EQ(to_driver.desc[0].len, 512U);
  const std::uint64_t word = 0x0123'4567'89AB'CDEF;
  driver.send(&word, sizeof word);
  ASSERT_EQ(to_device.avail->idx, 1);
  const vring_desc& sent = to_device.desc[to_device.avail->ring[0]];
  EXPECT_EQ(sent.len, 16U + sizeof word);
  EXPECT_EQ(sent.flags, 0);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(static_cast<std::uintptr_t>(sent.addr));
  std::uint64_t found = 0;
  std::memcpy(&found, bytes + 16, sizeof found);
  EXPECT_EQ(found, word);
  std::uint64_t received = 0;
  EXPECT_TRUE(device.receive(&received, sizeof received));
  EXPECT_EQ(received, word);
  EXPECT_EQ(to_device.used->idx, 1);
  device.send(&word, sizeof word);
  ASSERT_EQ(to_driver.used->idx, 1);
  EXPECT_EQ(to_driver.used->ring[0].len, 16U + sizeof word);
  EXPECT_TRUE(driver.receive(&received, sizeof received));
  EXPECT_EQ(to_driver.avail->idx, rpmsg_buffers + 1);  // it may be used again
}

TEST(RpmsgPeer, AMessageOfAnotherLengthIsTold) {
  const auto memory = std::make_unique<RpmsgMemory>();
  Driver driver;
  Device device;
  driver.open(memory.get());
  device.open(memory.get());
  std::uint64_t word = 1;
  driver.send(&word, 4);
  EXPECT_FALSE(device.receive(&word, 8));
}

TEST(RpmsgPeer, MessagesPassBothWaysWholeAndInOrder) {
  constexpr std::uint32_t messages = 70'000;  // beyond where the indices begin anew
  using Message = std::array<std::uint32_t, 16>;
  const auto memory = std::make_unique<RpmsgMemory>();
  Driver driver;
  Device device;
  driver.open(memory.get());
  device.open(memory.get());
  const auto filled = [](std::uint32_t number) {
    Message message;
    message.fill(number);
    return message;
  };
  std::thread answers([&] {
    for (std::uint32_t n = 1; n <= messages; ++n) {
      Message got{};
      ASSERT_TRUE(device.receive(&got, sizeof got));
      ASSERT_EQ(got, filled(n));
      const Message reply = filled(~n);
      device.send(&reply, sizeof reply);
    }
  });
  std::uint32_t sent = 0;
  for (std::uint32_t n = 1; n <= messages; ++n) {
    while (sent < messages &&
           sent < n + rpmsg_buffers - 1) {  // as many on their way as there may be
      const Message message = filled(++sent);
      driver.send(&message, sizeof message);
    }
    Message got{};
    ASSERT_TRUE(driver.receive(&got, sizeof got));
    ASSERT_EQ(got, filled(~n));
  }
  answers.join();
}

}  // namespace
}  // namespace latenz::peer
