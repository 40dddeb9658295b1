// SPDX-License-Identifier: Apache-2.0
// The result protocol: characters of a console, and frames whose checksum is right whatever is in
// them.
#include "latenz/frame.hpp"

#include <algorithm>

#include "latenz/frame_decoder.hpp"
#include "target.hpp"

namespace latenz::fuzz {
namespace {

void read_payload(std::span<const std::uint8_t> payload) {
  PayloadReader reader(payload);
  while (reader.varint()) static_cast<void>(reader.word());
}

void read_console(Input input) {
  FrameDecoder decoder;
  FrameSequence sequence;
  for (const std::uint8_t character : input) {
    const auto step = decoder.feed(static_cast<char>(character));
    require(decoder.held().size() <= FrameLimits::line, "no more is held than a line");
    if (step != FrameDecoder::Step::frame) continue;
    static_cast<void>(sequence.take(decoder.header()));
    read_payload(decoder.payload());
  }
}

/// Sends part of the input as the payload of a frame, which must arrive as it was.
void read_frame(Input input) {
  constexpr std::size_t described = 6;
  if (input.size() < described) return;
  PayloadReader numbers(input.subspan(2));
  const FrameHeader sent{.kind = static_cast<FrameKind>(1 + (input[0] & 7U) % 6),
                         .continued = (input[0] & 8U) != 0,
                         .sender = input[1],
                         .sequence = numbers.word().value_or(0)};
  FrameBuilder builder(sent);
  const Input payload =
      input.subspan(described, std::min(builder.room(), input.size() - described));
  require(builder.put(payload), "what there is room for can be put");
  FrameDecoder decoder;
  auto step = FrameDecoder::Step::held;
  for (const char character : builder.finish((input[0] & 16U) != 0)) step = decoder.feed(character);
  require(step == FrameDecoder::Step::frame, "a frame is found");
  const FrameHeader& got = decoder.header();
  require(got.kind == sent.kind && got.continued == sent.continued && got.sender == sent.sender &&
              got.sequence == sent.sequence && got.more == ((input[0] & 16U) != 0),
          "its header is what was sent");
  require(std::ranges::equal(decoder.payload(), payload), "its payload is what was sent");
  read_payload(payload);
}

}  // namespace

void read_input(Input input) {
  read_console(input);
  read_frame(input);
}

}  // namespace latenz::fuzz
