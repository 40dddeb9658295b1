// SPDX-License-Identifier: Apache-2.0
// Reads the console of a board: what its programs say in frames, and the text around them.
#include "latenz/frame.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "core.hpp"
#include "latenz/frame_decoder.hpp"

namespace nb = nanobind;

namespace latenz::python {
namespace {

struct TextFrame {
  std::string kind;
  unsigned sender;
  std::string text;
};

struct SamplesFrame {
  unsigned sender;
  std::uint64_t stream;
  std::uint64_t first;
  nb::object latency_ticks;
  nb::object interarrival_ticks;
};

struct FileFrame {
  unsigned sender;
  std::string name;
  std::uint64_t offset;
  nb::bytes data;
  bool last;
};

struct EndFrame {
  unsigned sender;
  std::map<std::uint64_t, std::uint64_t> samples;
  bool complete;
};

/// What came of one stream, to be compared with the end frame.
struct StreamSoFar {
  std::uint64_t samples = 0;
  Crc32 crc;
};

/// What is known of one sender.
struct Sender {
  FrameSequence sequence;
  bool gaps = false;
  bool open = false;         // a message has begun and not ended
  std::string collected;     // of the message, or the name of the file
  std::uint64_t offset = 0;  // of the file's next piece
  std::map<std::uint64_t, StreamSoFar> streams;
};

std::string bytes_of(std::span<const std::uint8_t> payload) {
  return {payload.begin(), payload.end()};
}

nb::str decoded(const std::string& text) {
  PyObject* object =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (object == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(object);
}

nb::object array_of(const std::vector<std::int64_t>& values) {
  auto* copy = new std::vector<std::int64_t>(values);
  const nb::capsule owner(
      copy, [](void* memory) noexcept { delete static_cast<std::vector<std::int64_t>*>(memory); });
  return nb::cast(
      nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>(copy->data(), {copy->size()}, owner));
}

/// Whether a text is what a console puts before the lines of a guest: "(XEN) DOM1: ", "(d1) ".
bool is_console_prefix(std::string_view text) {
  const auto skip = [&text](std::string_view start, std::string_view end) {
    if (!text.starts_with(start)) return;
    auto at = start.size();
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    if (text.substr(at).starts_with(end)) text.remove_prefix(at + end.size());
  };
  skip("(XEN", ") ");
  skip("DOM", ": ");
  skip("(d", ") ");
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

const char* name_of(FrameKind kind) {
  if (kind == FrameKind::hello) return "hello";
  return kind == FrameKind::note ? "note" : "fault";
}

class FrameReader {
 public:
  nb::list feed(const nb::bytes& data) {
    nb::list found;
    const std::string_view characters(static_cast<const char*>(data.data()), data.size());
    for (const char character : characters) step(character, found);
    return found;
  }

  /// The text since the last line end; what was open is lost.
  nb::list finish() {
    nb::list found;
    step('\n', found);
    const std::size_t size = nb::len(found);
    if (size > 0 && found[size - 1].equal(nb::str(""))) found.attr("pop")();
    for (auto& [number, sender] : senders_) {
      if (std::exchange(sender.open, false)) ++missing_;
    }
    return found;
  }

  [[nodiscard]] std::uint64_t damaged() const { return damaged_; }
  [[nodiscard]] std::uint64_t missing() const { return missing_; }
  [[nodiscard]] std::uint64_t duplicates() const { return duplicates_; }

 private:
  static constexpr std::size_t longest_line = 4096;

  void step(char character, nb::list& found) {
    switch (decoder_.feed(character)) {
      case FrameDecoder::Step::held:
        return;
      case FrameDecoder::Step::frame:
        framed_ = true;
        take_frame(found);
        return;
      case FrameDecoder::Step::damaged:
        ++damaged_;
        [[fallthrough]];
      case FrameDecoder::Step::text:
        for (const char text : decoder_.held()) take_text(text, found);
    }
  }

  void take_text(char character, nb::list& found) {
    if (character != '\n') line_ += character;
    if (character != '\n' && line_.size() < longest_line) return;
    const bool only_a_frame = framed_ && is_console_prefix(line_);
    if (line_.ends_with('\r')) line_.pop_back();
    const bool nothing_at_end = line_.empty() && framed_;
    if (!only_a_frame && !nothing_at_end) found.append(decoded(line_));
    line_.clear();
    framed_ = false;
  }

  void take_frame(nb::list& found) {
    const FrameHeader& header = decoder_.header();
    Sender& sender = senders_[header.sender];
    switch (sender.sequence.take(header)) {
      case FrameSequence::Place::repeated:
        ++duplicates_;
        return;
      case FrameSequence::Place::after_gap:
        missing_ += sender.sequence.gap();
        sender.gaps = true;
        sender.open = false;
        break;
      case FrameSequence::Place::restarted:
        sender = {.sequence = sender.sequence};
        break;
      case FrameSequence::Place::next:
        break;
    }
    if (header.continued && !sender.open) return;  // its beginning is missing, and counted
    take_payload(sender, found);
  }

  void take_payload(Sender& sender, nb::list& found) {
    PayloadReader payload(decoder_.payload());
    switch (decoder_.header().kind) {
      case FrameKind::samples:
        return take_samples(sender, payload, found);
      case FrameKind::file:
        return take_file(sender, payload, found);
      case FrameKind::end:
        return take_end(sender, payload, found);
      default:
        return take_message(sender, payload, found);
    }
  }

  void take_message(Sender& sender, const PayloadReader& payload, nb::list& found) {
    const FrameHeader& header = decoder_.header();
    if (!header.continued) sender.collected.clear();
    sender.collected += bytes_of(payload.rest());
    sender.open = header.more;
    if (sender.open) return;
    found.append(nb::cast(TextFrame{.kind = name_of(header.kind),
                                    .sender = header.sender,
                                    .text = nb::cast<std::string>(decoded(sender.collected))}));
  }

  void take_file(Sender& sender, PayloadReader payload, nb::list& found) {
    const FrameHeader& header = decoder_.header();
    if (!header.continued) {
      const auto length = payload.varint();
      if (!length || *length > payload.rest().size()) {
        ++damaged_;
        return;
      }
      sender.collected = bytes_of(payload.rest().first(*length));
      sender.offset = 0;
      payload = PayloadReader(payload.rest().subspan(*length));
    }
    sender.open = header.more;
    const std::string data = bytes_of(payload.rest());
    found.append(nb::cast(FileFrame{.sender = header.sender,
                                    .name = nb::cast<std::string>(decoded(sender.collected)),
                                    .offset = sender.offset,
                                    .data = nb::bytes(data.data(), data.size()),
                                    .last = !header.more}));
    sender.offset += data.size();
  }

  void take_samples(Sender& sender, PayloadReader payload, nb::list& found) {
    const auto stream = payload.varint();
    const auto first = payload.varint();
    const PayloadReader pairs = payload;
    std::vector<std::int64_t> ticks[2];
    bool whole = stream && first;
    for (unsigned i = 0; whole && !payload.empty(); i ^= 1U) {
      const auto value = payload.varint();
      whole = value && *value <= INT64_MAX;
      ticks[i].push_back(static_cast<std::int64_t>(value.value_or(0)));
    }
    if (!whole || ticks[0].size() != ticks[1].size()) {
      ++damaged_;
      return;
    }
    StreamSoFar& so_far = sender.streams[*stream];
    so_far.samples += ticks[0].size();
    for (const std::uint8_t byte : pairs.rest()) so_far.crc.add(byte);
    found.append(nb::cast(SamplesFrame{.sender = decoder_.header().sender,
                                       .stream = *stream,
                                       .first = *first,
                                       .latency_ticks = array_of(ticks[0]),
                                       .interarrival_ticks = array_of(ticks[1])}));
  }

  void take_end(const Sender& sender, PayloadReader payload, nb::list& found) {
    EndFrame end{.sender = decoder_.header().sender, .samples = {}, .complete = !sender.gaps};
    while (!payload.empty()) {
      const auto stream = payload.varint();
      const auto samples = payload.varint();
      const auto crc = payload.word();
      if (!stream || !samples || !crc) {
        ++damaged_;
        return;
      }
      end.samples[*stream] = *samples;
      const auto so_far = sender.streams.find(*stream);
      const StreamSoFar came = so_far == sender.streams.end() ? StreamSoFar() : so_far->second;
      end.complete = end.complete && came.samples == *samples && came.crc.value() == *crc;
    }
    found.append(nb::cast(std::move(end)));
  }

  FrameDecoder decoder_;
  std::map<unsigned, Sender> senders_;
  std::string line_;
  bool framed_ = false;  // the line holds a frame
  std::uint64_t damaged_ = 0;
  std::uint64_t missing_ = 0;
  std::uint64_t duplicates_ = 0;
};

void bind_frames(nb::module_& module) {
  nb::class_<TextFrame>(module, "TextFrame")
      .def_ro("kind", &TextFrame::kind)
      .def_ro("sender", &TextFrame::sender)
      .def_ro("text", &TextFrame::text);
  nb::class_<SamplesFrame>(module, "SamplesFrame")
      .def_ro("sender", &SamplesFrame::sender)
      .def_ro("stream", &SamplesFrame::stream)
      .def_ro("first", &SamplesFrame::first)
      .def_ro("latency_ticks", &SamplesFrame::latency_ticks)
      .def_ro("interarrival_ticks", &SamplesFrame::interarrival_ticks);
  nb::class_<FileFrame>(module, "FileFrame")
      .def_ro("sender", &FileFrame::sender)
      .def_ro("name", &FileFrame::name)
      .def_ro("offset", &FileFrame::offset)
      .def_ro("data", &FileFrame::data)
      .def_ro("last", &FileFrame::last);
  nb::class_<EndFrame>(module, "EndFrame")
      .def_ro("sender", &EndFrame::sender)
      .def_ro("samples", &EndFrame::samples)
      .def_ro("complete", &EndFrame::complete);
}

}  // namespace

void bind_frame(nb::module_& module) {
  bind_frames(module);
  nb::class_<FrameReader>(module, "FrameReader")
      .def(nb::init<>())
      .def("feed", &FrameReader::feed, nb::arg("data"))
      .def("finish", &FrameReader::finish)
      .def_prop_ro("damaged", &FrameReader::damaged)
      .def_prop_ro("missing", &FrameReader::missing)
      .def_prop_ro("duplicates", &FrameReader::duplicates);
}

}  // namespace latenz::python
