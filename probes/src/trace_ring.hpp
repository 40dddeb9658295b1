// SPDX-License-Identifier: Apache-2.0
// Pages of the kernel's ring buffer, as trace.dat holds them for each CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace_budget.hpp"
#include "trace_source.hpp"

namespace latenz::trace {

/// Where things are in a page, from events/header_page of the traced kernel.
struct PageLayout {
  std::uint32_t commit_offset = 8;
  std::uint32_t commit_size = 8;
  std::uint32_t data_offset = 16;
  bool big_endian = false;
};

/// Throws `Damage` at `place` if `text` is not a header_page.
[[nodiscard]] PageLayout parse_page_layout(std::string_view text, bool big_endian,
                                           std::uint64_t place);

/// The pages of one CPU, one after the other.
class Pages {
 public:
  Pages() = default;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  virtual ~Pages() = default;
  /// The next page, or nothing at the end. Throws `Damage`; may be called again after that.
  virtual std::optional<std::span<const std::uint8_t>> next() = 0;
  /// Where in the file the page is that `next` gave.
  [[nodiscard]] virtual std::uint64_t place() const = 0;
};

/// Where in the file the pages of one CPU are: [offset, end), which may lie behind the file's end.
struct PagesPlace {
  std::uint64_t offset = 0;
  std::uint64_t end = 0;
  std::uint32_t page_size = 0;
};

/// Pages as they lie in the file.
[[nodiscard]] std::unique_ptr<Pages> plain_pages(const Source& source, const PagesPlace& place);

/// Pages in compressed chunks. The budget must outlive them.
[[nodiscard]] std::unique_ptr<Pages> compressed_pages(const Source& source, const PagesPlace& place,
                                                      const std::string& compression,
                                                      bool big_endian, Budget& budget);

struct Record {
  std::uint64_t t_ns = 0;
  std::span<const std::uint8_t> bytes;  ///< valid until the next call
};

/// Walks through the records of one CPU's pages.
class RingReader {
 public:
  RingReader(std::unique_ptr<Pages> pages, const PageLayout& layout)
      : pages_(std::move(pages)), layout_(layout) {}

  /// The next record, or nothing at the end. Throws `Damage` for what cannot be read; the next
  /// call goes on with the page behind it.
  std::optional<Record> next();

  /// Events that are missing since this was last asked; 0 with `any_lost`: nobody counted.
  [[nodiscard]] std::optional<std::uint64_t> take_lost();

  /// Where in the file the page is that it reads.
  [[nodiscard]] std::uint64_t place() const { return pages_->place(); }

 private:
  static constexpr std::uint32_t type_padding = 29;
  struct Header {  ///< of an event
    std::uint32_t type = 0;
    std::uint64_t delta_ns = 0;
    std::uint64_t array = 0;  ///< the word behind it, if it has one
    [[nodiscard]] bool ends_page() const { return type == type_padding && delta_ns == 0; }
  };

  bool open_page();
  Header header();
  std::span<const std::uint8_t> payload(const Header& header);
  std::optional<Record> next_in_page();
  [[nodiscard]] std::uint32_t word(std::size_t position) const;
  [[noreturn]] void damaged(const std::string& reason);

  std::unique_ptr<Pages> pages_;
  PageLayout layout_;
  std::span<const std::uint8_t> page_;
  std::size_t position_ = 0;
  std::size_t end_ = 0;
  std::uint64_t t_ns_ = 0;
  std::optional<std::uint64_t> lost_;
};

/// Restores a compressed part; throws `Damage` at `place` if that fails, `probe::Failure` if this
/// program was built without what the compression needs.
[[nodiscard]] std::vector<std::uint8_t> decompress(const std::string& compression,
                                                   std::span<const std::uint8_t> bytes,
                                                   std::size_t size, std::uint64_t place);

}  // namespace latenz::trace
