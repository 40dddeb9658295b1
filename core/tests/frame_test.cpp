// SPDX-License-Identifier: Apache-2.0
#include "latenz/frame.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "latenz/frame_decoder.hpp"
#include "latenz/frame_sender.hpp"

using latenz::FrameDecoder;
using latenz::FrameHeader;
using latenz::FrameKind;
using latenz::FrameSender;
using latenz::FrameSequence;
using latenz::FrameStream;

namespace {

struct Sample {
  std::uint64_t latency;
  std::uint64_t interarrival;
  bool operator==(const Sample&) const = default;
};

/// What a decoder made of a text.
struct Heard {
  std::vector<std::string> frames;  ///< header and payload in one
  std::string text;
  int damaged = 0;
  bool operator==(const Heard&) const = default;
};

std::string described(const FrameDecoder& decoder) {
  const FrameHeader& header = decoder.header();
  std::string all = std::to_string(static_cast<int>(header.kind)) + (header.more ? "+" : "") +
                    (header.continued ? "-" : "") + " " + std::to_string(header.sender) + " " +
                    std::to_string(header.sequence) + " ";
  return all.append(decoder.payload().begin(), decoder.payload().end());
}

Heard hear(std::string_view characters) {
  Heard heard;
  FrameDecoder decoder;
  const std::string ended = std::string(characters) + '\n';
  for (const char character : ended) {
    switch (decoder.feed(character)) {
      case FrameDecoder::Step::held:
        continue;
      case FrameDecoder::Step::frame:
        heard.frames.push_back(described(decoder));
        continue;
      case FrameDecoder::Step::damaged:
        ++heard.damaged;
        [[fallthrough]];
      case FrameDecoder::Step::text:
        heard.text += decoder.held();
    }
  }
  heard.text.pop_back();
  return heard;
}

/// Everything a sender can say, a line each.
std::vector<std::string> conversation() {
  std::vector<std::string> lines;
  const auto print = [&lines](std::string_view line) { lines.emplace_back(line); };
  FrameSender sender(print, 7);
  sender.text(FrameKind::hello, R"({"program": "latency", "board": "virt", "timer_hz": 62500000, )"
                                R"("parameters": {"samples": 400, "period_ticks": 15625}})");
  FrameStream stream{.stream = 3};
  std::mt19937_64 random(20260101);
  std::vector<Sample> samples;
  samples.reserve(200);
  for (int i = 0; i < 200; ++i) samples.push_back({random() >> (random() % 64), random()});
  sender.samples(stream, samples);
  sender.text(FrameKind::note, "");
  sender.end({&stream, 1});
  return lines;
}

TEST(Frame, LinesArePrintableAndFitXensBuffer) {
  const auto lines = conversation();
  ASSERT_GT(lines.size(), 40U);
  for (const auto& line : lines) {
    EXPECT_LE(line.size(), 120U);
    for (const char c : line) EXPECT_TRUE(c > ' ' && c <= '~') << line;
  }
}

// Written out by hand from the byte table, checksum by zlib: kind 4, sender 0, sequence 5, "hi".
TEST(Frame, FollowsTheByteTable) {
  latenz::FrameBuilder frame({.kind = FrameKind::note, .sender = 0, .sequence = 5});
  const std::uint8_t hi[] = {'h', 'i'};
  ASSERT_TRUE(frame.put(hi));
  EXPECT_EQ(frame.finish(false), "<~BAAFaGllqyOs>");
}

TEST(Frame, WhatIsSentIsHeard) {
  std::string all;
  for (const auto& line : conversation()) all += line + '\n';
  const Heard heard = hear(all);
  EXPECT_EQ(heard.damaged, 0);
  EXPECT_EQ(heard.frames.size(), conversation().size());
  EXPECT_EQ(heard.frames.front().substr(0, 6), "1+ 7 0");
  EXPECT_EQ(heard.text, std::string(conversation().size(), '\n'));
}

TEST(Frame, SamplesComeBack) {
  const std::vector<Sample> samples = {{0, 0}, {1, 15625}, {~std::uint64_t{0}, 1}, {127, 128}};
  std::string line;
  FrameSender sender([&line](std::string_view sent) { line = sent; }, 0);
  FrameStream stream;
  sender.samples(stream, samples);
  FrameDecoder decoder;
  FrameDecoder::Step last{};
  for (const char character : line) last = decoder.feed(character);
  ASSERT_EQ(last, FrameDecoder::Step::frame);
  latenz::PayloadReader payload(decoder.payload());
  EXPECT_EQ(payload.varint(), 0U);
  EXPECT_EQ(payload.varint(), 0U);
  std::vector<Sample> back;
  while (!payload.empty()) {
    back.push_back({payload.varint().value_or(0), payload.varint().value_or(0)});
  }
  EXPECT_EQ(back, samples);
}

/// A frame between two others, damaged: it is lost and known to be, or whole; the others are heard
/// unless the damage joined them.
void expect_detected_or_harmless(const std::string& line, const std::string& damaged) {
  static const std::string before = conversation().front();
  static const std::string after = conversation().back();
  const Heard heard = hear(before + "\n" + damaged + "\n" + after);
  const std::string original = hear(line).frames.front();
  ASSERT_GE(heard.frames.size(), 2U) << damaged;
  EXPECT_EQ(heard.frames.front(), hear(before).frames.front());
  EXPECT_EQ(heard.frames.back(), hear(after).frames.front());
  if (heard.frames.size() == 3) {
    EXPECT_EQ(heard.frames[1], original) << "wrong content taken for right: " << damaged;
  } else {
    ASSERT_EQ(heard.frames.size(), 2U) << damaged;
  }
}

TEST(Frame, EveryFlippedBitIsDetectedOrHarmless) {
  for (const auto& line : conversation()) {
    for (std::size_t bit = 0; bit < 8 * line.size(); ++bit) {
      std::string damaged = line;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      expect_detected_or_harmless(line, damaged);
    }
  }
}

TEST(Frame, EveryLostOrDoubledCharacterIsDetectedOrHarmless) {
  for (const auto& line : conversation()) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      expect_detected_or_harmless(line, line.substr(0, i) + line.substr(i + 1));
      expect_detected_or_harmless(line, line.substr(0, i) + line[i] + line.substr(i));
    }
  }
}

TEST(Frame, EveryInsertedCharacterIsDetectedOrHarmless) {
  const auto line = conversation()[4];
  for (std::size_t i = 0; i <= line.size(); ++i) {
    for (int character = 0; character < 256; ++character) {
      expect_detected_or_harmless(
          line, line.substr(0, i) + static_cast<char>(character) + line.substr(i));
    }
  }
}

// Random characters, many of which matter to the decoder, never become a frame.
TEST(Frame, NoiseIsText) {
  std::mt19937_64 random(4);
  constexpr std::string_view characters = "<~>~<<A0+/ \n";
  for (int round = 0; round < 2000; ++round) {
    std::string noise;
    for (int i = 0; i < 200; ++i) noise += characters[random() % characters.size()];
    const Heard heard = hear(noise);
    EXPECT_TRUE(heard.frames.empty()) << noise;
    EXPECT_EQ(heard.text, noise);
  }
}

TEST(Frame, FramesAreFoundAmongNoise) {
  std::mt19937_64 random(5);
  constexpr std::string_view characters = "<~>(d1) kernel: <~ABC> \n";
  std::string all;
  std::string noise;
  const auto add_noise = [&] {
    for (auto n = random() % 60; n > 0; --n) noise += characters[random() % characters.size()];
  };
  std::vector<std::string> frames;
  for (const auto& line : conversation()) {
    std::string before;
    before.swap(noise);
    add_noise();
    all += noise + line;
    noise.insert(0, before);
    frames.push_back(hear(line).frames.front());
  }
  const Heard heard = hear(all);
  EXPECT_EQ(heard.frames, frames);
  EXPECT_EQ(heard.text, noise);
}

TEST(FrameSequence, TellsGapsRepetitionsAndRestarts) {
  using Place = FrameSequence::Place;
  FrameSequence sequence;
  const auto take = [&sequence](FrameKind kind, std::uint32_t number) {
    return sequence.take({.kind = kind, .sequence = number});
  };
  EXPECT_EQ(take(FrameKind::hello, 0), Place::next);
  EXPECT_EQ(take(FrameKind::hello, 0), Place::repeated);
  EXPECT_EQ(take(FrameKind::note, 1), Place::next);
  EXPECT_EQ(take(FrameKind::note, 4), Place::after_gap);
  EXPECT_EQ(sequence.gap(), 2U);
  EXPECT_EQ(take(FrameKind::note, 4), Place::repeated);
  EXPECT_EQ(take(FrameKind::note, 5), Place::next);
  EXPECT_EQ(take(FrameKind::hello, 0), Place::restarted);
  EXPECT_EQ(take(FrameKind::note, 1), Place::next);
}

TEST(PayloadReader, RefusesNumbersCutOffOrTooLarge) {
  const std::vector<std::uint8_t> cut(3, 0x80);
  EXPECT_EQ(latenz::PayloadReader(cut).varint(), std::nullopt);
  EXPECT_EQ(latenz::PayloadReader(cut).word(), std::nullopt);
  std::vector<std::uint8_t> large(10, 0xFF);
  EXPECT_EQ(latenz::PayloadReader(large).varint(), std::nullopt);
  large.back() = 1;
  EXPECT_EQ(latenz::PayloadReader(large).varint(), ~std::uint64_t{0});
}

}  // namespace
