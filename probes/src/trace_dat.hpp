// SPDX-License-Identifier: Apache-2.0
// Files of trace-cmd (trace.dat, versions 6 and 7: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5)).
//
// Not by libtracecmd: that refuses a whole file of which the end is missing. Everything is checked
// before it is used; what cannot be read is left out and told.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace_budget.hpp"
#include "trace_event.hpp"
#include "trace_kernel.hpp"
#include "trace_ring.hpp"
#include "trace_source.hpp"

namespace latenz::trace {

inline constexpr std::array<std::uint8_t, 10> dat_magic = {0x17, 0x08, 0x44, 't', 'r',
                                                           'a',  'c',  'i',  'n', 'g'};

class TraceDat {
 public:
  /// Reads all but the events. Throws `probe::Failure` if nothing of the file can be used.
  explicit TraceDat(const FileSource& file);

  /// Hands all events of all CPUs and buffers over in the order of their times.
  /// `wants_functions`: addresses of functions are told by name.
  /// `on_host`: of a guest's file, times are those of the host's clock, as the file tells it.
  void read(Consumer& consumer, bool wants_functions, bool on_host = false);

  /// Complete after `read`.
  [[nodiscard]] const Description& description() const { return description_; }

 private:
  struct Data {  ///< of one CPU in one buffer
    int cpu = 0;
    std::size_t buffer = 0;
    PagesPlace place;
    bool compressed = false;
  };
  struct Section {
    std::uint16_t id = 0;
    bool compressed = false;
    std::uint64_t start = 0;  ///< of what follows the section's header
    std::uint64_t size = 0;
    /// Where the next one starts; behind the file's end if that is cut.
    [[nodiscard]] std::uint64_t end() const;
  };
  struct Stream;

  void read_version_6(Cursor cursor);
  void read_options_6(Cursor& cursor, std::uint32_t cpus);
  void add_buffer(const std::string& name);
  void add_data(Data data, std::uint64_t size);
  void refuse_overlaps();
  void read_buffer_6(Cursor& cursor, std::uint32_t cpus, const std::string& name);
  void read_version_7(std::uint64_t options);
  void read_options_7(std::uint64_t offset);
  void read_option_7(std::uint16_t id, Cursor option);
  void read_buffer_7(Cursor option);
  void read_session(std::uint16_t id, Cursor option);
  void read_shifts(Cursor option);
  void read_guest(Cursor option);
  void walk_7(std::uint64_t first, const std::function<void(const Section&)>& visit) const;
  void recover_7(std::uint64_t first);
  void recover_buffer_7(const Section& section);
  [[nodiscard]] Section section_at(std::uint64_t offset) const;
  void read_metadata(const Section& section);
  [[nodiscard]] std::unique_ptr<Source> restored(const Section& section);

  void read_header_pages(Cursor& cursor);
  void read_functions();
  void set_clock(std::string_view text);
  void check_clock() const;

  void deliver(Stream& stream, Consumer& consumer);
  bool advance(Stream& stream, Consumer& consumer);
  [[nodiscard]] bool is_owner(const Stream& stream, int format);
  [[nodiscard]] std::int64_t nanoseconds(std::uint64_t stamp, int cpu) const;
  void tell(const Damage& damage, const std::string& what);

  const FileSource& file_;
  Budget budget_;
  Description description_;
  bool big_endian_ = false;
  std::uint32_t page_size_ = 4096;
  bool has_layout_ = false;
  PageLayout layout_;
  KernelEvents events_;
  std::uint32_t listed_cpus_ = 0;  ///< of all buffers
  std::vector<Data> data_;
  std::optional<Section> functions_section_;  ///< kallsyms, read only if asked for
  std::unordered_map<std::uint64_t, std::size_t> owners_;
  bool told_owners_ = false;
  bool told_text_buffer_ = false;
  struct {
    std::uint32_t multiplier = 0;
    std::uint32_t shift = 0;
    std::uint64_t offset = 0;
  } tsc_;
  std::int64_t offset_ns_ = 0;
  bool on_host_ = false;
};

}  // namespace latenz::trace
