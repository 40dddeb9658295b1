// SPDX-License-Identifier: Apache-2.0
#include "trace_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "failure.hpp"
#include "trace_format.hpp"
#include "trace_reasons.hpp"
#include "trace_words.hpp"

namespace latenz::trace {
namespace {

constexpr std::size_t block_size = 1U << 20U;
constexpr std::size_t longest_line = 1U << 16U;
constexpr std::size_t most_flags = 8;
constexpr std::size_t longest_stack = 1024;  // characters

bool is_digit(char character) { return character >= '0' && character <= '9'; }
bool is_space(char character) { return character == ' ' || character == '\t'; }
bool is_name(char character) {
  return is_digit(character) || (character >= 'a' && character <= 'z') ||
         (character >= 'A' && character <= 'Z') || character == '_';
}

/// Takes the first word off `text`.
std::string_view take_word(std::string_view& text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  std::size_t size = 0;
  while (size < text.size() && !is_space(text[size])) ++size;
  const std::string_view word = text.substr(0, size);
  text.remove_prefix(size);
  return word;
}

/// Addresses as older kernels print them: 16 hexadecimal digits without 0x.
bool is_address(std::string_view text) {
  std::uint64_t value = 0;
  return text.size() == 16 && parse_all(text, value, 16);
}

/// The number that `text` starts with, if one is there: decimal, or hexadecimal after 0x.
std::optional<std::int64_t> leading_number(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  const bool has_prefix = text.starts_with("0x");
  const bool is_hex = has_prefix || is_address(text.substr(0, text.find(' ')));
  if (has_prefix) text.remove_prefix(2);
  if (is_negative) text.remove_prefix(1);
  std::uint64_t value = 0;
  const char* const first = text.data();
  const char* const last = first + text.size();
  const auto [end, error] = std::from_chars(first, last, value, is_hex ? 16 : 10);
  if (error != std::errc() || (end != last && is_name(*end))) return {};
  return static_cast<std::int64_t>(is_negative ? 0 - value : value);
}

/// prev_state as letters; trace-cmd report -R prints it as a number.
std::string letter(std::string_view state) {
  std::uint64_t number = 0;
  return parse_all(state, number) ? state_letter(number) : std::string(state);
}

enum class Stamp : std::uint8_t { seconds, without_unit, none };

/// `s.fraction:` to nanoseconds, exactly.
Stamp parse_stamp(std::string_view word, std::int64_t& t_ns) {
  if (!word.ends_with(':')) return Stamp::none;
  word.remove_suffix(1);
  const auto point = word.find('.');
  std::int64_t seconds = 0;
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  constexpr std::int64_t most_seconds = 9'000'000'000;
  if (!parse_all(word.substr(0, point), seconds) || seconds < 0) return Stamp::none;
  if (point == std::string_view::npos) return Stamp::without_unit;
  if (seconds > most_seconds) return Stamp::none;
  const std::string_view digits = word.substr(point + 1);
  std::int64_t fraction = 0;
  if (digits.size() > 9 || !parse_all(digits, fraction) || fraction < 0) return Stamp::none;
  for (std::size_t i = digits.size(); i < 9; ++i) fraction *= 10;
  t_ns = seconds * ns_per_s + fraction;
  return Stamp::seconds;
}

/// `:-1 -1` or `:-1 -1/-1`: perf is not told the number of a thread that is about to end.
bool is_ending_thread(std::string_view text) {
  if (text.ends_with("/-1")) text.remove_suffix(3);
  return text.ends_with(" -1") && trimmed(text.substr(0, text.size() - 3)) == ":-1";
}

/// Who ran: `comm-pid`, `comm-pid (tgid)`, `comm pid` or `comm pid/tid`.
bool parse_thread(std::string_view text, Line& line) {
  text = trimmed(text);
  if (is_ending_thread(text)) {
    line.pid = unknown_pid;
    line.comm = {};
    return true;
  }
  if (text.ends_with(')')) {  // the thread group of ftrace's option record-tgid
    const auto open = text.rfind('(');
    if (open == std::string_view::npos) return false;
    text = trimmed(text.substr(0, open));
  }
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[text.size() - 1 - digits])) ++digits;
  if (digits == 0 || !parse_all(text.substr(text.size() - digits), line.pid)) return false;
  text.remove_suffix(digits);
  if (text.ends_with('/')) {
    text.remove_suffix(1);
    while (!text.empty() && is_digit(text.back())) text.remove_suffix(1);
  }
  if (text.empty() || (text.back() != '-' && !is_space(text.back()))) return false;
  text.remove_suffix(1);
  const auto buffer = text.find(":  ");  // trace-cmd report starts with the buffer's name
  if (buffer != std::string_view::npos) text.remove_prefix(buffer + 3);
  line.comm = trimmed(text);
  return true;
}

/// Names what the tracers timerlat, hwlat, osnoise and function print without a name.
bool parse_tracer_line(std::string_view text, Line& line) {
  line.details = text;
  if (text.starts_with('#')) {
    line.name = text.find("timer_latency") != std::string_view::npos ? "timerlat" : "hwlat";
    return text.find("latency") != std::string_view::npos ||
           text.find("inner/outer") != std::string_view::npos;
  }
  if (text.find(" <-") != std::string_view::npos) {
    line.name = "function";
    return true;
  }
  line.name = "osnoise";  // a row of the tracer's table
  return !text.empty() && is_digit(text.front()) && text.find('.') != std::string_view::npos;
}

/// `event: details` or `system:event: details`.
bool parse_event(std::string_view text, Line& line) {
  text = trimmed(text);
  if (!text.empty() && is_digit(text.front())) {  // a sample period of perf script
    std::string_view rest = text;
    const std::string_view period = take_word(rest);
    if (std::ranges::all_of(period, is_digit) && rest.find(':') != std::string_view::npos) {
      text = trimmed(rest);
    }
  }
  std::size_t end = 0;
  while (end < text.size() && is_name(text[end])) ++end;
  if (end == 0 || end == text.size() || text[end] != ':') {
    if (text == "<stack trace>" || text == "<user stack trace>") {
      line.name = text == "<stack trace>" ? "kernel_stack" : "user_stack";
      line.details = {};
      return true;
    }
    return parse_tracer_line(text, line);
  }
  std::string_view name = text.substr(0, end);
  text.remove_prefix(end + 1);
  std::size_t second = 0;
  while (second < text.size() && (is_name(text[second]) || text[second] == '-')) ++second;
  if (second > 0 && second < text.size() && text[second] == ':') {
    line.has_system = true;
    name = text.substr(0, second);
    text.remove_prefix(second + 1);
  }
  line.name = name;
  line.details = trimmed(text);
  if (line.details.starts_with("<stack trace") || line.details.starts_with("<user stack trace")) {
    line.details = {};  // of trace-cmd report
  }
  return true;
}

/// What follows `comm-pid [cpu]`.
LineKind parse_rest(std::string_view text, Line& line) {
  const std::string_view first = take_word(text);
  Stamp stamp = parse_stamp(first, line.t_ns);
  if (stamp == Stamp::none && first.size() <= most_flags) {
    line.has_flags = true;
    line.flags = first;
    stamp = parse_stamp(take_word(text), line.t_ns);
  }
  if (stamp == Stamp::none || !parse_event(text, line)) return LineKind::unreadable;
  return stamp == Stamp::seconds ? LineKind::event : LineKind::without_unit;
}

/// Rows of stacks under an event.
bool is_continuation(std::string_view text) {
  if (text.starts_with(" => ") || text.starts_with("=> ")) return true;
  if (text.empty() || !is_space(text.front())) return false;
  const std::string_view word = take_word(text);
  std::uint64_t address = 0;
  return word.size() >= 6 && parse_all(word, address, 16);
}

LineKind other_line(std::string_view text) {
  const std::string_view content = trimmed(text);
  if (content.empty() || content.starts_with('#') || content.starts_with("cpus=") ||
      content.starts_with("version =") || content.ends_with(" is empty") ||
      content.starts_with("trace-cmd: ")) {
    return LineKind::comment;
  }
  if (content.starts_with("CPU:") && content.find("EVENTS") != std::string_view::npos) {
    return LineKind::lost;
  }
  if (content.find("PERF_RECORD_LOST") != std::string_view::npos) return LineKind::lost;
  return is_continuation(text) ? LineKind::continuation : LineKind::unreadable;
}

}  // namespace

LineKind parse_line(std::string_view text, Line& line) {
  for (std::size_t open = text.find('['); open != std::string_view::npos;
       open = text.find('[', open + 1)) {
    std::size_t end = open + 1;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end == open + 1 || end >= text.size() || text[end] != ']') continue;
    line = Line{};
    if (!parse_all(text.substr(open + 1, end - open - 1), line.cpu)) continue;
    if (!parse_thread(text.substr(0, open), line)) continue;
    return parse_rest(text.substr(end + 1), line);
  }
  return other_line(text);
}

std::optional<std::string_view> TextFields::find(std::string_view name) const {
  if (!parsed_) parse();
  const auto found =
      std::ranges::find(fields_, name, &std::pair<std::string_view, std::string_view>::first);
  return found == fields_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::int64_t> TextFields::number(std::string_view name) const {
  const auto value = find(name);
  return value ? leading_number(*value) : std::nullopt;
}

std::optional<std::string> TextFields::text(std::string_view name) const {
  if (kind_ == Kind::kvm_exit && name == "reason") return reason();
  const auto value = find(name);
  if (!value) return {};
  return name == "prev_state" ? letter(*value) : std::string(*value);
}

/// trace-cmd report prints names of its own, and with -R numbers.
std::optional<std::string> TextFields::reason() const {
  if (const auto name = find("reason")) return kernel_reason(*name);
  const auto code = number("exit_reason");
  if (!code) return {};
  const bool is_svm = number("isa") == static_cast<std::int64_t>(Isa::svm);
  return reason_name(is_svm ? Isa::svm : Isa::vmx, static_cast<std::uint32_t>(*code));
}

void TextFields::write(probe::Json& json) const {
  if (!parsed_) parse();
  if (const auto name = kind_ == Kind::kvm_exit ? reason() : std::nullopt) {
    json.member("reason", *name);
  }
  for (const auto& [name, value] : fields_) {
    std::int64_t number = 0;
    if (name == "reason" && kind_ == Kind::kvm_exit) continue;
    json.key(name);
    if (name == "prev_state") {
      json.value(letter(value));
    } else if (!is_address(value) && parse_all(value, number)) {
      json.value(number);
    } else {
      json.value(value);
    }
  }
  json.member("text", details_);
}

void TextFields::parse() const {
  parsed_ = true;
  fields_.clear();
  switch (kind_) {
    case Kind::kvm_exit:
    case Kind::kvm_entry:
    case Kind::kvm_userspace_exit:
      parse_exit();
      break;
    case Kind::sched_switch:
      parse_switch();
      break;
    case Kind::sched_waking:
    case Kind::sched_wakeup:
      parse_wakeup();
      break;
    case Kind::timerlat:
      parse_timerlat();
      break;
    case Kind::noise:
      parse_noise();
      break;
    case Kind::hwlat:
      parse_hwlat();
      break;
    case Kind::function:
      parse_function();
      break;
    case Kind::stack:
      fields_.emplace_back("stack", details_);
      break;
    default:
      parse_transition();
      parse_pairs(details_);
  }
}

/// `42: preempt_irq x sched_need_resched -> preempt_irq`, of a monitor of runtime verification; the
/// number is a thread's, and missing where the monitor is of a CPU.
void TextFields::parse_transition() const {
  const auto arrow = details_.find(" -> ");
  const auto cross = details_.substr(0, arrow).find(" x ");
  if (arrow == std::string_view::npos || cross == std::string_view::npos) return;
  const std::string_view state = details_.substr(0, cross);
  const auto colon = state.find(": ");
  if (colon != std::string_view::npos) fields_.emplace_back("id", state.substr(0, colon));
  fields_.emplace_back("event", details_.substr(cross + 3, arrow - cross - 3));
}

/// `#792 context irq timer_latency 35070 ns`.
void TextFields::parse_timerlat() const {
  std::string_view rest = details_.substr(std::min<std::size_t>(1, details_.size()));
  fields_.emplace_back("seqnum", take_word(rest));
  parse_words(rest);
}

/// `#1 inner/outer(us): 11310/8849 ts:...`; a blank may stand behind the slash.
void TextFields::parse_hwlat() const {
  const auto colon = details_.find("(us):");
  if (colon == std::string_view::npos) return;
  std::string_view rest = details_.substr(colon + 5);
  const std::string_view both = take_word(rest);
  const auto slash = std::min(both.find('/'), both.size());
  const std::string_view outer = both.substr(std::min(slash + 1, both.size()));
  fields_.emplace_back("duration", both.substr(0, slash));
  fields_.emplace_back("outer_duration", outer.empty() ? take_word(rest) : outer);
}

/// `local_timer:236 start 53.123456789 duration 3212 ns`; an NMI's has no name.
void TextFields::parse_noise() const {
  const auto start = details_.find("start ");
  if (start == std::string_view::npos) return;
  if (start > 0) fields_.emplace_back("desc", trimmed(details_.substr(0, start)));
  parse_words(details_.substr(start));
}

/// `schedule <-worker_thread`.
void TextFields::parse_function() const {
  const auto arrow = details_.find(" <-");
  fields_.emplace_back("ip", details_.substr(0, arrow));
  if (arrow != std::string_view::npos)
    fields_.emplace_back("parent_ip", details_.substr(arrow + 3));
}

/// `[vcpu 0[,]] [reason NAME [NAME]] rip 0x.. info1 0x..`; older: `info 0 800000f6`.
/// 64-bit Arm: `TRAP: HSR_EC: 0x0001 (WFx), PC: 0x..`, where another word than TRAP is the reason.
void TextFields::parse_exit() const {
  if (details_.find('=') != std::string_view::npos) {
    parse_pairs(details_);
    return;
  }
  std::string_view rest = details_;
  const auto colon = rest.find(": HSR_EC:");
  if (colon != std::string_view::npos) {
    std::string_view reason = rest.substr(0, colon);
    const auto open = rest.find('(');
    const auto close = rest.find(')');
    if (reason == "TRAP" && open < close && close != std::string_view::npos) {
      reason = rest.substr(open + 1, close - open - 1);
    }
    fields_.emplace_back("reason", reason);
  }
  const auto reason = rest.find("reason ");
  if (reason != std::string_view::npos) {
    const std::string_view name = rest.substr(reason + 7);
    const auto end = kind_ == Kind::kvm_exit ? name.find(" rip ") : name.find(" (");
    fields_.emplace_back("reason", trimmed(name.substr(0, end)));
    parse_words(rest.substr(0, reason));
    if (end == std::string_view::npos) return;
    rest = name.substr(end + 1);
  }
  parse_words(rest);
}

/// Name and value in turn.
void TextFields::parse_words(std::string_view text) const {
  while (true) {
    std::string_view name = take_word(text);
    std::string_view value = take_word(text);
    if (value.empty()) return;
    if (name.ends_with(':')) name.remove_suffix(1);
    if (value.ends_with(',')) value.remove_suffix(1);
    fields_.emplace_back(name == "PC" ? "rip" : name, value);
  }
}

/// Without what separates it from the next name, and the bracket that closes around both.
std::string_view TextFields::value_in(std::string_view text, char before) {
  const auto end = text.find_last_not_of(" \t[(");
  text = text.substr(0, end + 1);
  const bool is_in_brackets = before == '[' || before == '(';
  if (is_in_brackets && (text.ends_with(']') || text.ends_with(')'))) text.remove_suffix(1);
  return text;
}

/// `name=value name=value`; values may hold blanks, as in comm=CPU 0/KVM.
void TextFields::parse_pairs(std::string_view text) const {
  const auto next_name = [text](std::size_t from) {
    for (auto equals = text.find('=', from); equals != std::string_view::npos;
         equals = text.find('=', equals + 1)) {
      std::size_t start = equals;
      while (start > from && is_name(text[start - 1])) --start;
      const bool is_first = start == 0 || is_space(text[start - 1]) || text[start - 1] == '[' ||
                            text[start - 1] == '(';
      if (start < equals && is_first) return std::pair(start, equals);
    }
    return std::pair(text.size(), text.size());
  };
  auto [start, equals] = next_name(0);
  while (equals < text.size()) {
    const auto [next_start, next_equals] = next_name(equals + 1);
    const char before = start > 0 ? text[start - 1] : ' ';
    auto value = value_in(text.substr(equals + 1, next_start - equals - 1), before);
    const std::string_view name = text.substr(start, equals - start);
    if (name == "function") value = value.substr(0, value.find('/'));  // of name/0x0
    fields_.emplace_back(name == "vcpu_id" ? "vcpu" : name, value);
    start = next_start;
    equals = next_equals;
  }
}

namespace {

struct Thread {
  std::string_view comm;
  std::string_view pid;
  std::string_view prio;
  std::string_view rest;
};

/// `comm:pid [prio] rest`, as trace-cmd and perf print threads.
std::optional<Thread> parse_short_thread(std::string_view text) {
  const auto open = text.find(" [");
  if (open == std::string_view::npos) return {};
  const auto close = text.find(']', open);
  const auto colon = text.rfind(':', open);
  if (close == std::string_view::npos || colon == std::string_view::npos) return {};
  return Thread{text.substr(0, colon), text.substr(colon + 1, open - colon - 1),
                text.substr(open + 2, close - open - 2), trimmed(text.substr(close + 1))};
}

}  // namespace

void TextFields::parse_switch() const {
  const auto arrow = details_.find(" ==> ");
  if (arrow == std::string_view::npos) {
    parse_pairs(details_);
    return;
  }
  if (details_.starts_with("prev_comm=")) {
    parse_pairs(details_.substr(0, arrow));
    parse_pairs(details_.substr(arrow + 5));
    return;
  }
  const auto from = parse_short_thread(details_.substr(0, arrow));
  const auto to = parse_short_thread(details_.substr(arrow + 5));
  if (!from || !to) return;
  fields_ = {{"prev_comm", from->comm},  {"prev_pid", from->pid}, {"prev_prio", from->prio},
             {"prev_state", from->rest}, {"next_comm", to->comm}, {"next_pid", to->pid},
             {"next_prio", to->prio}};
}

void TextFields::parse_wakeup() const {
  if (details_.starts_with("comm=")) {
    parse_pairs(details_);
    return;
  }
  const auto thread = parse_short_thread(details_);
  if (!thread) return;
  fields_ = {{"comm", thread->comm}, {"pid", thread->pid}, {"prio", thread->prio}};
  const auto cpu = thread->rest.find("CPU:");
  if (cpu != std::string_view::npos)
    fields_.emplace_back("target_cpu", thread->rest.substr(cpu + 4));
}

std::string TraceText::place() const {
  return "line " + std::to_string(line_number_) + " (byte " + std::to_string(offset_) + ")";
}

void TraceText::read(Consumer& consumer) {
  std::vector<std::uint8_t> block(block_size + longest_line);
  std::size_t held = 0;
  std::uint64_t position = 0;
  bool is_skipping = false;  // the rest of a line that is too long
  while (true) {
    const std::size_t got = file_.read_some(position, std::span(block).subspan(held, block_size));
    position += got;
    const std::string_view text(reinterpret_cast<const char*>(block.data()), held + got);
    std::size_t start = 0;
    for (std::size_t end = text.find('\n'); end != std::string_view::npos;
         end = text.find('\n', start)) {
      std::string_view line = text.substr(start, end - start);
      if (line.ends_with('\r')) line.remove_suffix(1);
      ++line_number_;
      if (!std::exchange(is_skipping, false)) read_line(line, consumer);
      offset_ += end + 1 - start;
      start = end + 1;
    }
    held = text.size() - start;
    if (got < block_size) break;
    if (held > longest_line) {
      if (!is_skipping) {
        description_.damaged("line " + std::to_string(line_number_ + 1) +
                             ": is longer than any event");
      }
      is_skipping = true;
      offset_ += held;
      held = 0;
    }
    std::memmove(block.data(), block.data() + start, held);
  }
  if (held > 0) {
    ++line_number_;
    description_.damaged(place() + ": the last line has no end, so it may be cut; it was left out");
  }
  finish(consumer);
}

void TraceText::read_line(std::string_view text, Consumer& consumer) {
  Line line;
  const LineKind kind = parse_line(text, line);
  if (kind != LineKind::continuation) flush_stack(consumer);
  switch (kind) {
    case LineKind::comment:
      read_comment(text);
      return;
    case LineKind::lost:
      read_lost(text, consumer);
      return;
    case LineKind::continuation:
      add_frame(text);
      return;
    case LineKind::without_unit:
      throw probe::Failure(place() + ": its times are bare counts, not seconds; record with the " +
                           "clock mono");
    case LineKind::unreadable:
      if (!is_free_text_) {
        description_.damaged(place() + ": holds no event that can be read");
      }
      return;
    case LineKind::event:
      break;
  }
  ++events_;
  has_flags_ = has_flags_ || line.has_flags;
  has_system_ = has_system_ || line.has_system;
  is_free_text_ =
      line.name == "print" || line.name == "tracing_mark_write" || line.name == "bprint";
  Event event{line.t_ns, line.cpu,   line.pid,           line.comm,
              line.name, line.flags, kind_of(line.name), &fields_};
  if (event.kind == Kind::stack && line.details.empty()) {
    hold_stack(line);
    return;
  }
  fields_.set(event.kind, line.details);
  if (event.pid == unknown_pid && event.kind == Kind::sched_switch) {
    event.pid = static_cast<int>(fields_.number("prev_pid").value_or(unknown_pid));
  }
  consumer.event(event);
}

void TraceText::hold_stack(const Line& line) {
  stack_ = {.t_ns = line.t_ns,
            .cpu = line.cpu,
            .pid = line.pid,
            .comm = std::string(line.comm),
            .name = std::string(line.name),
            .flags = std::string(line.flags),
            .frames = {}};
}

/// ` => name`, ` => name+0x10/0x20` or, of trace-cmd, `=> name (address)`.
void TraceText::add_frame(std::string_view text) {
  if (!stack_) return;
  take_word(text);
  std::string_view name = take_word(text);
  name = name.substr(0, name.find('+'));
  if (name.empty() || stack_->frames.size() + name.size() > longest_stack) return;
  if (!stack_->frames.empty()) stack_->frames += ';';
  stack_->frames += name;
}

void TraceText::flush_stack(Consumer& consumer) {
  if (!stack_) return;
  const Stack stack = std::move(*stack_);
  stack_.reset();
  const Event event{stack.t_ns, stack.cpu,   stack.pid,   stack.comm,
                    stack.name, stack.flags, Kind::stack, &fields_};
  fields_.set(event.kind, stack.frames);
  consumer.event(event);
}

void TraceText::read_comment(std::string_view text) {
  if (text.starts_with("# tracer:")) is_ftrace_ = true;
  constexpr std::string_view counts = "entries-in-buffer/entries-written:";
  const auto start = text.find(counts);
  if (start == std::string_view::npos) return;
  std::string_view rest = text.substr(start + counts.size());
  const std::string_view both = take_word(rest);
  const auto slash = both.find('/');
  std::uint64_t held = 0;
  std::uint64_t written = 0;
  if (slash == std::string_view::npos || !parse_all(both.substr(0, slash), held) ||
      !parse_all(both.substr(slash + 1), written)) {
    return;
  }
  promised_ = held;
  overwritten_ = written > held ? written - held : 0;
}

void TraceText::read_lost(std::string_view text, Consumer& consumer) {
  int cpu = -1;
  std::uint64_t count = 0;
  const auto colon = text.find("CPU:");
  if (colon != std::string_view::npos) {
    std::string_view rest = text.substr(colon + 4);
    parse_all(take_word(rest), cpu);
  }
  // [LOST n EVENTS], [n EVENTS DROPPED], [EVENTS DROPPED], PERF_RECORD_LOST ... lost n
  const auto end = text.find(" EVENTS");
  const auto lost = text.find("lost ");
  if (end != std::string_view::npos) {
    std::size_t start = end;
    while (start > 0 && is_digit(text[start - 1])) --start;
    parse_all(text.substr(start, end - start), count);
  } else if (lost != std::string_view::npos) {
    std::string_view rest = text.substr(lost + 5);
    parse_all(take_word(rest), count);
  }
  lost_ += count;
  consumer.lost(cpu, count);
}

void TraceText::finish(Consumer& consumer) {
  flush_stack(consumer);
  // Those that are told where they are missing are in the header's count, too.
  if (overwritten_ > lost_) consumer.lost(-1, overwritten_ - lost_);
  description_.format = is_ftrace_ || has_flags_ ? "ftrace" : "trace-cmd report";
  if (has_system_) description_.format = "perf script";
  if (description_.damages > 1) {
    description_.notes.push_back(std::to_string(description_.damages) +
                                 " lines hold no event that can be read");
  }
  if (promised_ > events_) {
    description_.notes.push_back("its header tells of " + std::to_string(promised_) +
                                 " events, of which " + std::to_string(events_) +
                                 " are in the file: it was cut or filtered");
  }
}

}  // namespace latenz::trace
