// SPDX-License-Identifier: Apache-2.0
// Formats of binary events, as the kernel describes them in events/SYSTEM/EVENT/format.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace_event.hpp"

namespace latenz::trace {

struct Field {
  std::string name;  ///< by the names of `Fields`
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  bool is_signed = false;
  bool is_text = false;      ///< an array of char
  bool is_pointer = false;   ///< told in hex
  bool is_dynamic = false;   ///< offset and size of it are in the field (__data_loc, __rel_loc)
  bool is_mask = false;      ///< a set of CPUs
  bool is_relative = false;  ///< __rel_loc: counted from the end of the field
};

using Symbols = std::map<std::uint32_t, std::string>;

struct Format {
  int id = -1;
  std::string name;
  Kind kind = Kind::other;
  std::vector<Field> fields;
  std::vector<Symbols> symbols;  ///< the tables of __print_symbolic in the print format, in order
  /// Of what every event has, so that nobody looks for it by name; nothing if it has none.
  std::optional<Field> pid;
  std::optional<Field> flags;
  std::optional<Field> preempt_count;

  [[nodiscard]] const Field* find(std::string_view field) const;
};

/// Nothing if the text is not a format of an event.
[[nodiscard]] std::optional<Format> parse_format(std::string_view text);

/// Names of functions by their addresses, from /proc/kallsyms.
class Functions {
 public:
  explicit Functions(std::string kallsyms = {});
  /// In hex if it lies in no known function.
  [[nodiscard]] std::string name(std::uint64_t address) const;
  /// Where the kernel's text begins, from which preemptirq events count; 0: not known.
  [[nodiscard]] std::uint64_t text_start() const { return text_start_; }

 private:
  std::string text_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> starts_;  ///< address, its name's in text_
  std::uint64_t text_start_ = 0;
};

/// Fields of one record of the ring buffer. Reads nothing outside of it.
class BinaryFields final : public Fields {
 public:
  explicit BinaryFields(bool big_endian) : big_endian_(big_endian) {}

  /// Both stay valid as long as the fields are used.
  void set(const Format& format, std::span<const std::uint8_t> record) {
    format_ = &format;
    record_ = record;
  }
  void set_functions(const Functions* functions) { functions_ = functions; }

  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const override;
  [[nodiscard]] std::optional<std::int64_t> number(const Field& field) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const override;
  void write(probe::Json& json) const override;

 private:
  [[nodiscard]] std::optional<std::string> text(const Field& field) const;
  [[nodiscard]] std::optional<std::string> characters(const Field& field) const;
  [[nodiscard]] bool is_told_by_name(const Field& field) const;
  [[nodiscard]] std::string stack() const;
  [[nodiscard]] std::optional<std::string> mask(const Field& field) const;
  [[nodiscard]] std::optional<std::span<const std::uint8_t>> dynamic(const Field& field) const;
  [[nodiscard]] std::optional<std::string> caller(std::string_view field) const;
  void write_callers(probe::Json& json) const;
  [[nodiscard]] std::string reason() const;
  [[nodiscard]] std::string symbol(std::size_t table, std::uint64_t value) const;

  const Format* format_ = nullptr;
  std::span<const std::uint8_t> record_;
  const Functions* functions_ = nullptr;
  bool big_endian_;
};

/// The flags of an event as ftrace prints them (kernel/trace/trace_output.c), a character each:
/// interrupts off, need-resched, context, depth of disabled preemption, and of migration.
[[nodiscard]] std::array<char, 5> flag_letters(std::uint64_t flags, std::uint64_t preempt_count);

/// The letter that ps(1) and ftrace show for prev_state of sched_switch; R+ for preempted.
[[nodiscard]] std::string state_letter(std::uint64_t state);

}  // namespace latenz::trace
