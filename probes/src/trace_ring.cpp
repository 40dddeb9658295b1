// SPDX-License-Identifier: Apache-2.0
#include "trace_ring.hpp"

#include <algorithm>
#include <charconv>

#ifdef LATENZ_HAS_ZSTD
#include <zstd.h>
#endif
#ifdef LATENZ_HAS_ZLIB
#include <zlib.h>
#endif

#include "failure.hpp"

namespace latenz::trace {
namespace {

// Of the kernel's ring buffer (kernel/trace/ring_buffer.c, include/linux/ring_buffer.h).
constexpr std::uint64_t commit_length = (1U << 27U) - 1;
constexpr std::uint64_t commit_missed = 1U << 31U;
constexpr std::uint64_t commit_missed_counted = 1U << 30U;
constexpr std::uint32_t type_time_extend = 30;
constexpr std::uint32_t type_time_stamp = 31;
constexpr unsigned delta_bits = 27;
constexpr std::uint64_t stamp_top_bits = 0xf8ULL << 56U;

constexpr std::uint32_t largest_chunk = 1U << 26U;

class PlainPages final : public Pages {
 public:
  PlainPages(const Source& source, const PagesPlace& place)
      : source_(&source), next_(place.offset), end_(place.end), page_size_(place.page_size) {}

  std::optional<std::span<const std::uint8_t>> next() override {
    if (next_ >= end_) {
      page_ = {};
      return {};
    }
    const std::uint64_t size = std::min<std::uint64_t>(page_size_, end_ - next_);
    if (next_ > source_->size() || size > source_->size() - next_) {
      end_ = next_;
      throw Damage(source_->size(), "the file ends at byte " + std::to_string(source_->size()));
    }
    page_.resize(size);
    place_ = next_;
    next_ += size;
    source_->read(place_, page_);
    return page_;
  }
  [[nodiscard]] std::uint64_t place() const override { return place_; }

 private:
  const Source* source_;
  std::uint64_t next_;
  std::uint64_t end_;
  std::uint32_t page_size_;
  std::uint64_t place_ = 0;
  std::vector<std::uint8_t> page_;
};

class CompressedPages final : public Pages {
 public:
  CompressedPages(const Source& source, const PagesPlace& place, std::string compression,
                  bool big_endian, Budget& budget)
      : cursor_(source, place.offset, cursor_end(source, place), big_endian),
        source_(&source),
        page_size_(place.page_size),
        compression_(std::move(compression)),
        budget_(&budget) {}

  std::optional<std::span<const std::uint8_t>> next() override {
    if (position_ >= chunk_.size() && !open_chunk()) return {};
    const auto size = std::min<std::size_t>(page_size_, chunk_.size() - position_);
    const auto page = std::span(chunk_).subspan(position_, size);
    position_ += size;
    return page;
  }
  [[nodiscard]] std::uint64_t place() const override { return place_; }

 private:
  /// trace-cmd's size of a CPU's data does not include the number of chunks that they start with.
  static std::uint64_t cursor_end(const Source& source, const PagesPlace& place) {
    constexpr std::uint64_t uncounted = 4;
    const std::uint64_t size = source.size();
    return std::max(place.offset, place.end < size ? std::min(place.end + uncounted, size) : size);
  }

  bool open_chunk() {
    if (!started_) {
      started_ = true;
      chunks_left_ = cursor_.u32();
    }
    while (chunks_left_ > 0 && position_ >= chunk_.size()) read_chunk();
    if (position_ < chunk_.size()) return true;
    drop_chunk();
    return false;
  }

  void drop_chunk() {
    budget_->release(std::exchange(held_, 0));
    chunk_ = {};
    position_ = 0;
  }

  void read_chunk() {
    const std::uint32_t chunks = chunks_left_;
    chunks_left_ = 0;  // nothing can be found behind a chunk whose size is wrong
    const std::uint32_t compressed = cursor_.u32();
    const std::uint32_t size = cursor_.u32();
    place_ = cursor_.position();
    if (size > largest_chunk) throw Damage(place_, "a compressed chunk has an impossible size");
    cursor_.need(compressed);
    drop_chunk();
    budget_->unpack(size, place_);
    budget_->hold(size, place_);
    held_ = size;
    std::vector<std::uint8_t> bytes(compressed);
    source_->read(place_, bytes);
    cursor_.skip(compressed);
    chunks_left_ = chunks - 1;
    chunk_ = decompress(compression_, bytes, size, place_);
  }

  Cursor cursor_;
  const Source* source_;
  std::uint32_t page_size_;
  std::string compression_;
  Budget* budget_;
  bool started_ = false;
  std::uint32_t chunks_left_ = 0;
  std::uint64_t place_ = 0;
  std::vector<std::uint8_t> chunk_;
  std::uint64_t held_ = 0;  ///< of the budget, for the chunk
  std::size_t position_ = 0;
};

std::uint32_t number_after(std::string_view line, std::string_view key, std::uint64_t place) {
  const auto start = line.find(key);
  std::uint32_t value = 0;
  if (start != std::string_view::npos) {
    line.remove_prefix(start + key.size());
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error == std::errc()) return value;
  }
  throw Damage(place, "the description of the ring buffer's pages cannot be read");
}

/// The line of header_page that describes a field.
std::string_view line_of(std::string_view text, std::string_view field, std::uint64_t place) {
  const auto start = text.find(field);
  if (start == std::string_view::npos) {
    throw Damage(place, "the description of the ring buffer's pages is not complete");
  }
  const std::string_view line = text.substr(start);
  return line.substr(0, line.find('\n'));
}

#ifdef LATENZ_HAS_ZSTD
bool decompress_zstd(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> into) {
  return ZSTD_decompress(into.data(), into.size(), bytes.data(), bytes.size()) == into.size();
}
#endif

#ifdef LATENZ_HAS_ZLIB
bool decompress_zlib(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> into) {
  uLongf size = into.size();
  return uncompress(into.data(), &size, bytes.data(), bytes.size()) == Z_OK && size == into.size();
}
#endif

}  // namespace

PageLayout parse_page_layout(std::string_view text, bool big_endian, std::uint64_t place) {
  const std::string_view commit = line_of(text, " commit;", place);
  PageLayout layout;
  layout.commit_offset = number_after(commit, "offset:", place);
  layout.commit_size = number_after(commit, "size:", place);
  layout.data_offset = number_after(line_of(text, " data;", place), "offset:", place);
  layout.big_endian = big_endian;
  constexpr std::uint32_t largest = 64;
  if ((layout.commit_size != 4 && layout.commit_size != 8) || layout.data_offset > largest ||
      layout.commit_offset + layout.commit_size > layout.data_offset) {
    throw Damage(place, "the description of the ring buffer's pages is impossible");
  }
  return layout;
}

std::unique_ptr<Pages> plain_pages(const Source& source, const PagesPlace& place) {
  return std::make_unique<PlainPages>(source, place);
}

std::unique_ptr<Pages> compressed_pages(const Source& source, const PagesPlace& place,
                                        const std::string& compression, bool big_endian,
                                        Budget& budget) {
  return std::make_unique<CompressedPages>(source, place, compression, big_endian, budget);
}

void RingReader::damaged(const std::string& reason) {
  const std::uint64_t place = pages_->place() + position_;
  position_ = end_;
  lost_ = lost_.value_or(0);
  throw Damage(place, reason);
}

std::uint32_t RingReader::word(std::size_t position) const {
  return static_cast<std::uint32_t>(number_of(page_.subspan(position, 4), layout_.big_endian));
}

bool RingReader::open_page() {
  position_ = end_ = 0;
  const auto page = pages_->next();
  if (!page) return false;
  page_ = *page;
  if (page_.size() < layout_.data_offset) damaged("a page of the ring buffer has no header");
  t_ns_ = number_of(page_.first(8), layout_.big_endian);
  const std::uint64_t commit =
      number_of(page_.subspan(layout_.commit_offset, layout_.commit_size), layout_.big_endian);
  const std::uint64_t length = commit & commit_length;
  if (length > page_.size() - layout_.data_offset) {
    damaged("a page of the ring buffer claims " + std::to_string(length) + " bytes of events");
  }
  position_ = layout_.data_offset;
  end_ = position_ + length;
  if ((commit & commit_missed) != 0) {
    lost_ = lost_.value_or(0);
    if ((commit & commit_missed_counted) != 0 && end_ + layout_.commit_size <= page_.size()) {
      *lost_ += number_of(page_.subspan(end_, layout_.commit_size), layout_.big_endian);
    }
  }
  return true;
}

std::optional<Record> RingReader::next() {
  while (true) {
    if (position_ >= end_ && !open_page()) return {};
    if (auto record = next_in_page()) return record;
  }
}

RingReader::Header RingReader::header() {
  if (end_ - position_ < 4) damaged("an event in the ring buffer is cut");
  const std::uint32_t bits = word(position_);
  constexpr std::uint32_t deltas = (1U << delta_bits) - 1;
  Header header;
  header.type = layout_.big_endian ? bits >> delta_bits : bits & 31U;
  header.delta_ns = layout_.big_endian ? bits & deltas : bits >> 5U;
  if (header.ends_page()) return header;
  if (header.type == 0 || header.type >= type_padding) {
    if (end_ - position_ < 8) damaged("an event in the ring buffer is cut");
    header.array = word(position_ + 4);
  }
  return header;
}

/// Goes over what is not an event; nothing at the end of the page.
std::optional<Record> RingReader::next_in_page() {
  while (position_ < end_) {
    const Header header = this->header();
    if (header.ends_page()) {
      position_ = end_;
    } else if (header.type == type_time_extend || header.type == type_time_stamp) {
      const std::uint64_t time_ns = (header.array << delta_bits) + header.delta_ns;
      const bool is_relative = header.type == type_time_extend;
      t_ns_ = is_relative ? t_ns_ + time_ns : time_ns | (t_ns_ & stamp_top_bits);
      position_ += 8;
    } else {
      t_ns_ += header.delta_ns;
      const auto bytes = payload(header);
      if (header.type != type_padding) return Record{t_ns_, bytes};
    }
  }
  return {};
}

/// What the event at the position holds; moves on behind it.
std::span<const std::uint8_t> RingReader::payload(const Header& header) {
  std::size_t start = position_ + 4;
  std::uint64_t size = header.type == type_padding ? header.array : 4ULL * header.type;
  if (header.type == 0) {
    if (header.array < 4) damaged("an event in the ring buffer has an impossible length");
    start += 4;
    size = (header.array - 4 + 3) & ~3ULL;
  }
  if (size > end_ - start) damaged("an event in the ring buffer reaches past its page");
  position_ = start + size;
  return page_.subspan(start, size);
}

std::optional<std::uint64_t> RingReader::take_lost() { return std::exchange(lost_, std::nullopt); }

std::vector<std::uint8_t> decompress(const std::string& compression,
                                     std::span<const std::uint8_t> bytes, std::size_t size,
                                     std::uint64_t place) {
  std::vector<std::uint8_t> restored(size);
#ifdef LATENZ_HAS_ZSTD
  if (compression == "zstd") {
    if (decompress_zstd(bytes, restored)) return restored;
    throw Damage(place, "a part compressed by zstd cannot be restored");
  }
#endif
#ifdef LATENZ_HAS_ZLIB
  if (compression == "zlib") {
    if (decompress_zlib(bytes, restored)) return restored;
    throw Damage(place, "a part compressed by zlib cannot be restored");
  }
#endif
  if (compression != "zstd" && compression != "zlib") {
    throw Damage(place, "a part is compressed in a way that is not known");
  }
  throw probe::Failure("it is compressed by " + compression + ", which this build cannot read; " +
                       "install " + (compression == "zstd" ? "libzstd-dev" : "zlib1g-dev") +
                       " and set Latenz up again, or: trace-cmd convert --compression none");
}

}  // namespace latenz::trace
