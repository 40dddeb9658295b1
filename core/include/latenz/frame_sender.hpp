// SPDX-License-Identifier: Apache-2.0
// Says messages as frames (frame.hpp), numbering them. Freestanding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "latenz/frame.hpp"

namespace latenz {

/// What was sent of one stream of samples; ends up in the end frame.
struct FrameStream {
  std::uint8_t stream = 0;
  std::uint32_t samples = 0;
  Crc32 crc{};  ///< of all pairs as sent
};

/// @tparam Sink called with each line, without its end; it adds the end
template <typename Sink>
class FrameSender {
 public:
  FrameSender(Sink sink, std::uint8_t sender, std::uint32_t sequence = 0)
      : sink_(sink), sender_(sender), sequence_(sequence) {}

  /// Number of the next frame.
  [[nodiscard]] std::uint32_t sequence() const { return sequence_; }

  /// A message of any length: hello, note or fault, or a piece of a file.
  ///
  /// `more`: the message goes on in the next call, which must be of the same kind.
  void bytes(FrameKind kind, std::span<const std::uint8_t> message, bool more = false) {
    do {
      FrameBuilder frame = start(kind);
      const std::size_t part = std::min(frame.room(), message.size());
      frame.put(message.first(part));
      message = message.subspan(part);
      send(frame, more || !message.empty());
    } while (!message.empty());
  }

  void text(FrameKind kind, std::string_view message) {
    bytes(kind, {reinterpret_cast<const std::uint8_t*>(message.data()), message.size()});
  }

  /// Samples that follow those sent of the stream before.
  ///
  /// @tparam Samples a range whose elements have `latency` and `interarrival`, in ticks
  template <typename Samples>
  void samples(FrameStream& stream, const Samples& samples) {
    auto next = samples.begin();
    while (next != samples.end()) {
      FrameBuilder frame = start(FrameKind::samples);
      frame.put(Varint(stream.stream).span());
      frame.put(Varint(stream.samples).span());
      while (next != samples.end() && put(frame, stream, next->latency, next->interarrival)) ++next;
      send(frame, false);
    }
  }

  /// The last frame: nothing follows it.
  void end(std::span<const FrameStream> streams) {
    FrameBuilder frame = start(FrameKind::end);
    for (const FrameStream& stream : streams) {
      frame.put(Varint(stream.stream).span());
      frame.put(Varint(stream.samples).span());
      const std::uint32_t crc = stream.crc.value();
      for (unsigned shift = 0; shift < 32; shift += 8) {
        const auto byte = static_cast<std::uint8_t>(crc >> shift);
        frame.put({&byte, 1});
      }
    }
    send(frame, false);
  }

 private:
  FrameBuilder start(FrameKind kind) {
    return FrameBuilder(
        {.kind = kind, .continued = continued_, .sender = sender_, .sequence = sequence_++});
  }

  static bool put(FrameBuilder& frame, FrameStream& stream, std::uint64_t latency,
                  std::uint64_t interarrival) {
    const Varint pair[] = {Varint(latency), Varint(interarrival)};
    if (pair[0].size + pair[1].size > frame.room()) return false;
    for (const Varint& ticks : pair) {
      frame.put(ticks.span());
      for (const std::uint8_t byte : ticks.span()) stream.crc.add(byte);
    }
    ++stream.samples;
    return true;
  }

  void send(FrameBuilder& frame, bool more) {
    sink_(frame.finish(more));
    continued_ = more;
  }

  Sink sink_;
  std::uint8_t sender_;
  std::uint32_t sequence_;
  bool continued_ = false;
};

}  // namespace latenz
