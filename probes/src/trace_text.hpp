// SPDX-License-Identifier: Apache-2.0
// Traces as text: the files trace of tracefs, `trace-cmd report` and `perf script`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace_event.hpp"
#include "trace_source.hpp"

namespace latenz::trace {

/// One line that holds an event. All parts point into the line.
struct Line {
  std::int64_t t_ns = 0;
  int cpu = 0;
  int pid = 0;
  std::string_view comm;
  std::string_view name;
  std::string_view details;  ///< what follows the name
  std::string_view flags;    ///< irqs-off, need-resched and so on, a character each
  bool has_flags = false;    ///< ftrace's own text
  bool has_system = false;   ///< perf script's `system:event`
};

/// What kind of line it is, and the event if it holds one.
enum class LineKind : std::uint8_t { event, lost, comment, continuation, unreadable, without_unit };
[[nodiscard]] LineKind parse_line(std::string_view text, Line& line);

/// Fields out of the text behind an event's name.
class TextFields final : public Fields {
 public:
  void set(Kind kind, std::string_view details) {
    kind_ = kind;
    details_ = details;
    parsed_ = false;
  }
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const override;
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const override;
  /// Also all of the text, as the member "text".
  void write(probe::Json& json) const override;

 private:
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> reason() const;
  void parse() const;
  void parse_exit() const;
  void parse_switch() const;
  void parse_wakeup() const;
  void parse_timerlat() const;
  void parse_transition() const;
  void parse_hwlat() const;
  void parse_noise() const;
  void parse_function() const;
  void parse_pairs(std::string_view text) const;
  [[nodiscard]] static std::string_view value_in(std::string_view text, char before);
  void parse_words(std::string_view text) const;

  Kind kind_ = Kind::other;
  std::string_view details_;
  mutable bool parsed_ = false;
  mutable std::vector<std::pair<std::string_view, std::string_view>> fields_;
};

class TraceText {
 public:
  explicit TraceText(const FileSource& file) : file_(file) {}

  /// Hands the events over as they stand. Throws `probe::Failure` if times have no unit.
  void read(Consumer& consumer);

  /// Complete after `read`.
  [[nodiscard]] const Description& description() const { return description_; }

 private:
  struct Stack {  ///< that stands over several lines
    std::int64_t t_ns = 0;
    int cpu = 0;
    int pid = 0;
    std::string comm;
    std::string name;
    std::string flags;
    std::string frames;
  };

  void read_line(std::string_view text, Consumer& consumer);
  void read_comment(std::string_view text);
  void read_lost(std::string_view text, Consumer& consumer);
  void hold_stack(const Line& line);
  void add_frame(std::string_view text);
  void flush_stack(Consumer& consumer);
  void finish(Consumer& consumer);
  [[nodiscard]] std::string place() const;

  const FileSource& file_;
  Description description_;
  TextFields fields_;
  std::uint64_t line_number_ = 0;
  std::uint64_t offset_ = 0;  ///< of the line in the file
  std::uint64_t events_ = 0;
  std::uint64_t promised_ = 0;     ///< events by the header, 0: it tells none
  bool is_free_text_ = false;      ///< the last event may go on over several lines
  std::uint64_t overwritten_ = 0;  ///< events by the header
  std::uint64_t lost_ = 0;         ///< events that lines told of
  std::optional<Stack> stack_;     ///< the rows that follow belong to it
  bool is_ftrace_ = false;         ///< it has the header of tracefs' file trace
  bool has_flags_ = false;
  bool has_system_ = false;
};

}  // namespace latenz::trace
