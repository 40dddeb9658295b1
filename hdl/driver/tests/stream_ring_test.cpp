// SPDX-License-Identifier: Apache-2.0
// The reader of a stream's ring against a writer that goes on at any moment between two accesses.
#include "latenz/ip/stream_ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace latenz::ip {
namespace {

constexpr std::uint64_t base = 0x1'2345'6780;

/// What stream_ring_writer does by its documentation: never overwrites what is not consumed, counts
/// modulo 2^32.
struct Writer {
  std::map<std::uint32_t, std::uint32_t> registers;
  std::vector<std::array<std::uint32_t, 4>> memory;
  std::uint32_t written = 0;
  std::uint64_t made = 0;
  std::mt19937 random{3};

  [[nodiscard]] bool full() { return written - registers[ring::consumed_offset] == memory.size(); }

  void go_on() {
    while (registers[ring::enable_offset] == 1 && random() % 2 == 0 && !full()) {
      const std::uint64_t start = made * 1'000;
      memory[written % memory.size()] = {
          static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(start >> 32U),
          static_cast<std::uint32_t>(made), static_cast<std::uint32_t>(made % 128) << 25U};
      ++written;
      ++made;
    }
  }
};

class WriterRegisters {
 public:
  explicit WriterRegisters(Writer& writer) : writer_(&writer) {}

  std::uint32_t read(std::uint32_t offset) {
    writer_->go_on();
    if (offset == ring::written_offset) return writer_->written;
    if (offset == ring::status_offset) return ring::status_idle_mask;
    return writer_->registers[offset];
  }

  void write(std::uint32_t offset, std::uint32_t value) {
    writer_->registers[offset] = value;
    writer_->go_on();
  }

 private:
  Writer* writer_;
};

class RingMemory {
 public:
  explicit RingMemory(Writer& writer) : writer_(&writer) {}

  std::uint32_t read(std::uint32_t offset) {
    writer_->go_on();
    return writer_->memory.at(offset / 16)[offset / 4 % 4];
  }

 private:
  Writer* writer_;
};

TEST(StreamRing, EveryRecordOnceAndInOrderWhileTheWriterGoesOn) {
  for (const std::uint32_t log2_records : {0U, 1U, 3U, 6U}) {
    Writer writer;
    writer.memory.resize(std::size_t{1} << log2_records);
    writer.written = 0xFFFF'FFF0;  // counters wrap soon
    StreamRing ring_reader{WriterRegisters(writer), RingMemory(writer)};
    ASSERT_TRUE(ring_reader.start(base, log2_records));
    std::uint64_t next = 0;
    while (next < 5'000) {
      ring_reader.read(
          [&](const StreamSample& sample) {
            ASSERT_EQ(sample.latency, next);
            ASSERT_EQ(sample.start, next * 1'000);
            ASSERT_EQ(sample.sequence, next % 128);
            ++next;
          },
          static_cast<std::uint32_t>(1 + next % 7));
    }
    EXPECT_LE(writer.made - next, writer.memory.size());
  }
}

TEST(StreamRing, TellsTheWriterWhereTheRingIs) {
  Writer writer;
  writer.memory.resize(8);
  StreamRing ring_reader{WriterRegisters(writer), RingMemory(writer)};
  ASSERT_TRUE(ring_reader.start(base, 3));
  EXPECT_EQ(writer.registers[ring::base_low_offset], 0x2345'6780U);
  EXPECT_EQ(writer.registers[ring::base_high_offset], 1U);
  EXPECT_EQ(writer.registers[ring::size_log2_offset], 3U);
  EXPECT_EQ(writer.registers[ring::enable_offset], 1U);
  ring_reader.stop();
  EXPECT_EQ(writer.registers[ring::enable_offset], 0U);
  EXPECT_FALSE(ring_reader.start(base + 8, 3));
  EXPECT_FALSE(ring_reader.start(base, 28));
  EXPECT_EQ(writer.registers[ring::enable_offset], 0U);
}

TEST(StreamRing, ReadsNothingFromAWriterThatWasReset) {
  Writer writer;
  writer.memory.resize(8);
  writer.written = 5;
  StreamRing ring_reader{WriterRegisters(writer), RingMemory(writer)};
  ASSERT_TRUE(ring_reader.start(base, 3));
  writer.registers[ring::enable_offset] = 0;
  writer.written = 0;  // and nothing written since
  writer.registers[ring::consumed_offset] = 0;
  EXPECT_TRUE(ring_reader.was_reset());
  EXPECT_EQ(ring_reader.available(), 0U);
  unsigned used = 0;
  EXPECT_EQ(ring_reader.read([&](const StreamSample&) { ++used; }, 8), 0U);
  EXPECT_EQ(used, 0U);
  EXPECT_EQ(writer.registers[ring::consumed_offset], 0U);
  ASSERT_TRUE(ring_reader.start(base, 3));
  EXPECT_FALSE(ring_reader.was_reset());
}

TEST(StreamRing, AStartClearsABusErrorBeforeTheWriterIsOn) {
  struct Failed {
    Failed(Writer& writer, std::vector<std::uint32_t>& order)
        : registers_(writer), order_(&order) {}
    std::uint32_t read(std::uint32_t offset) { return registers_.read(offset); }
    void write(std::uint32_t offset, std::uint32_t value) {
      if (offset == ring::status_offset) order_->push_back(offset);
      if (offset == ring::enable_offset && value != 0) order_->push_back(offset);
      registers_.write(offset, value);
    }
    WriterRegisters registers_;
    std::vector<std::uint32_t>* order_;
  };
  Writer writer;
  writer.memory.resize(8);
  std::vector<std::uint32_t> order;
  StreamRing ring_reader{Failed(writer, order), RingMemory(writer)};
  ASSERT_TRUE(ring_reader.start(base, 3));
  EXPECT_EQ(order, (std::vector<std::uint32_t>{ring::status_offset, ring::enable_offset}));
}

TEST(StreamRing, DecodesARecordAsTheStreamIsDefined) {
  const StreamSample sample = StreamSample::decode(0x2222'1111, 0x4444'3333, 0x6666'5555,
                                                   0xAB << 24U | 0xCDU << 16U | 0x8877U);
  EXPECT_EQ(sample.start, 0x4444'3333'2222'1111U);
  EXPECT_EQ(sample.latency, 0x8877'6666'5555U);
  EXPECT_EQ(sample.channel, 0xCDU);
  EXPECT_TRUE(sample.saturated);
  EXPECT_EQ(sample.sequence, 0xAB >> 1);
}

TEST(StreamRing, CountsWhatIsLostBetweenTwoRecords) {
  for (unsigned before = 0; before < 128; ++before) {
    for (unsigned lost = 0; lost < 127; ++lost) {
      const StreamSample first{.sequence = static_cast<std::uint8_t>(before)};
      const StreamSample second{.sequence = static_cast<std::uint8_t>((before + 1 + lost) % 128)};
      ASSERT_EQ(second.lost_since(first), lost);
    }
  }
}

}  // namespace
}  // namespace latenz::ip
