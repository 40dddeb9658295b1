// SPDX-License-Identifier: Apache-2.0
#include "trace_format.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "trace_reasons.hpp"
#include "trace_source.hpp"
#include "trace_words.hpp"

namespace latenz::trace {
namespace {

// Far above the kernel's, so that a made-up format costs neither memory nor time.
constexpr std::size_t most_fields = 256;
constexpr std::size_t most_known_fields = 64;  // where some are looked up for each event
constexpr std::size_t longest_field_name = 64;
constexpr std::size_t longest_symbol = 64;
constexpr std::size_t longest_function = 512;
constexpr std::size_t most_functions = 1U << 20U;
constexpr std::size_t most_frames = 32;
constexpr std::size_t longest_stack = 1024;  // characters

/// Decimal or, after 0x, hexadecimal; nothing if `text` is not only that.
std::optional<std::int64_t> integer(std::string_view text) {
  text = trimmed(text);
  std::int64_t value = 0;
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  return parse_all(text, value, is_hex ? 16 : 10) ? std::optional(value) : std::nullopt;
}

/// Sums such as `0x040 + 1`, as print formats hold them.
std::optional<std::int64_t> sum(std::string_view text) {
  std::uint64_t total = 0;
  while (true) {
    const auto plus = text.find('+');
    const auto value = integer(text.substr(0, plus));
    if (!value) return {};
    total += static_cast<std::uint64_t>(*value);
    if (plus == std::string_view::npos) return static_cast<std::int64_t>(total);
    text.remove_prefix(plus + 1);
  }
}

/// The text between `key` and the next `;`; nothing if it is not there.
std::optional<std::string_view> between(std::string_view line, std::string_view key) {
  const auto start = line.find(key);
  if (start == std::string_view::npos) return {};
  line.remove_prefix(start + key.size());
  const auto end = line.find(';');
  if (end == std::string_view::npos) return {};
  return line.substr(0, end);
}

/// The kernel's names of what differs between versions and architectures.
std::string common_name(Kind kind, std::string_view name) {
  if (kind == Kind::kvm_exit || kind == Kind::kvm_entry) {
    if (name == "vcpu_id") return "vcpu";
    if (name == "guest_rip" || name == "vcpu_pc") return "rip";
  }
  return std::string(name);
}

/// Of the timerlat tracer's samples.
std::string context_name(std::uint64_t context) {
  constexpr std::array<std::string_view, 3> names = {"irq", "thread", "user ret"};
  return std::string(names[std::min<std::uint64_t>(context, names.size() - 1)]);
}

std::optional<Field> parse_field(Kind kind, std::string_view line) {
  const auto declaration = between(line, "field:");
  const auto offset = between(line, "offset:");
  const auto size = between(line, "size:");
  if (!declaration || !offset || !size) return {};
  const auto offset_number = integer(*offset);
  const auto size_number = integer(*size);
  constexpr std::int64_t largest = 1 << 16;
  if (!offset_number || !size_number || *offset_number < 0 || *size_number < 0 ||
      *offset_number > largest || *size_number > largest) {
    return {};
  }
  Field field;
  field.offset = static_cast<std::uint32_t>(*offset_number);
  field.size = static_cast<std::uint32_t>(*size_number);
  field.is_signed = between(line, "signed:") == "1";
  const auto type_end = declaration->find_last_of(" *");
  if (type_end == std::string_view::npos) return {};
  const std::string_view type = declaration->substr(0, type_end + 1);
  std::string_view name = declaration->substr(type_end + 1);
  const bool is_array = name.ends_with(']');
  name = name.substr(0, name.find('['));
  if (name.size() > longest_field_name) return {};
  field.is_relative = type.starts_with("__rel_loc");
  field.is_dynamic = field.is_relative || type.starts_with("__data_loc");
  field.is_text = type.find("char") != std::string_view::npos && (is_array || field.is_dynamic);
  field.is_mask = field.is_dynamic && !field.is_text && name.find("cpu") != std::string_view::npos;
  field.is_pointer = type.find('*') != std::string_view::npos;
  field.name = common_name(kind, name);
  return field;
}

/// Takes a table off `text`; all of it if the table has no end, so that nothing is read twice.
Symbols take_symbols(std::string_view& text) {
  Symbols symbols;
  while (true) {
    const auto open = text.find_first_of("{)");
    if (open != std::string_view::npos && text[open] == ')') {
      text.remove_prefix(open);
      return symbols;
    }
    const auto comma = open == std::string_view::npos ? open : text.find(',', open);
    const auto quote = comma == std::string_view::npos ? comma : text.find('"', comma);
    const auto end = quote == std::string_view::npos ? quote : text.find('"', quote + 1);
    if (end == std::string_view::npos) {
      text = {};
      return symbols;
    }
    if (const auto value = sum(text.substr(open + 1, comma - open - 1))) {
      symbols.emplace(static_cast<std::uint32_t>(*value),
                      text.substr(quote + 1, std::min(end - quote - 1, longest_symbol)));
    }
    text.remove_prefix(std::min(text.find('}', end), text.size() - 1) + 1);
  }
}

/// Does it hold the address of a function?
bool is_function(const Format& format, const Field& field) {
  if (format.kind == Kind::function) return field.name == "ip" || field.name == "parent_ip";
  return field.name == "function" || field.name == "callback" || field.name == "callsite" ||
         field.name == "func";
}

/// Are its numbers told by the tables of its print format?
bool has_reasons(Kind kind) { return kind == Kind::kvm_exit || kind == Kind::kvm_userspace_exit; }

std::vector<Symbols> parse_tables(std::string_view print) {
  constexpr std::string_view call = "__print_symbolic(";
  std::vector<Symbols> tables;
  while (true) {
    const auto start = print.find(call);
    if (start == std::string_view::npos) return tables;
    print.remove_prefix(start + call.size());
    const auto comma = print.find(',');  // ends the value that is looked up
    if (comma == std::string_view::npos) return tables;
    print.remove_prefix(comma);
    tables.push_back(take_symbols(print));
  }
}

}  // namespace

const Field* Format::find(std::string_view field) const {
  const auto found = std::ranges::find(fields, field, &Field::name);
  return found == fields.end() ? nullptr : &*found;
}

std::optional<Format> parse_format(std::string_view text) {
  Format format;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size() - 1);
    const std::string_view line = trimmed(text.substr(0, text[end] == '\n' ? end : end + 1));
    text.remove_prefix(end + 1);
    if (line.starts_with("name:")) {
      format.name = trimmed(line.substr(5));
      format.kind = kind_of(format.name);
    } else if (line.starts_with("ID:")) {
      const auto id = integer(line.substr(3));
      if (!id || *id < 0 || *id > 0xffff) return {};
      format.id = static_cast<int>(*id);
    } else if (line.starts_with("field:")) {
      const auto field = parse_field(format.kind, line);
      if (!field || format.fields.size() == most_fields) return {};
      format.fields.push_back(*field);
    } else if (line.starts_with("print fmt:") && has_reasons(format.kind)) {
      format.symbols = parse_tables(line);
    }
  }
  const bool is_odd = format.kind != Kind::other && format.fields.size() > most_known_fields;
  if (format.id < 0 || format.name.empty() || is_odd) return {};
  const auto common = [&format](std::string_view name) -> std::optional<Field> {
    const Field* const field = format.find(name);
    return field == nullptr ? std::nullopt : std::optional(*field);
  };
  format.pid = common("common_pid");
  format.flags = common("common_flags");
  format.preempt_count = common("common_preempt_count");
  return format;
}

Functions::Functions(std::string kallsyms) : text_(std::move(kallsyms)) {
  const std::string_view text = text_;
  for (std::size_t start = 0; start < text.size() && starts_.size() < most_functions;) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::uint64_t address = 0;
    const auto [stop, error] = std::from_chars(text.data() + start, text.data() + end, address, 16);
    const std::size_t name = static_cast<std::size_t>(stop - text.data()) + 3;  // ADDRESS T NAME
    if (error == std::errc() && name < end) {
      starts_.emplace_back(address, static_cast<std::uint32_t>(name));
      if (text.substr(name, end - name) == "_stext") text_start_ = address;
    }
    start = end + 1;
  }
  std::ranges::stable_sort(starts_, {}, &std::pair<std::uint64_t, std::uint32_t>::first);
}

std::string Functions::name(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(starts_, address, {},
                                              &std::pair<std::uint64_t, std::uint32_t>::first);
  constexpr std::uint64_t largest_function = 1U << 20U;
  if (after == starts_.begin() || address - std::prev(after)->first > largest_function) {
    return hex(address);
  }
  const std::string_view rest =
      std::string_view(text_).substr(std::prev(after)->second, longest_function);
  return std::string(rest.substr(0, rest.find_first_of("\t\n")));
}

std::array<char, 5> flag_letters(std::uint64_t flags, std::uint64_t preempt_count) {
  constexpr std::uint64_t irqs_off = 0x01;
  constexpr std::uint64_t hardirq = 0x08;
  constexpr std::uint64_t softirq = 0x10;
  constexpr std::uint64_t nmi = 0x40;
  constexpr std::uint64_t softirqs_off = 0x80;
  // lazy (0x02, since Linux 6.13), need-resched (0x04) and folded into the count (0x20)
  constexpr std::string_view need_resched = ".lnbpLNB";
  constexpr std::string_view digits = "0123456789abcdef";
  const auto is = [flags](std::uint64_t bit) { return (flags & bit) != 0; };
  char interrupts = is(irqs_off) ? 'd' : '.';
  if (is(softirqs_off)) interrupts = is(irqs_off) ? 'D' : 'b';
  char context = is(softirq) ? 's' : '.';
  if (is(hardirq)) context = is(softirq) ? 'H' : 'h';
  if (is(nmi)) context = is(hardirq) ? 'Z' : 'z';
  const auto depth = [&](std::uint64_t value) { return value == 0 ? '.' : digits[value]; };
  return {interrupts, need_resched[(flags >> 1U & 3U) | (flags >> 3U & 4U)], context,
          depth(preempt_count & 15U), depth(preempt_count >> 4U & 15U)};
}

std::string state_letter(std::uint64_t state) {
  constexpr std::uint64_t preempted = 0x100;
  constexpr std::array<std::pair<std::uint64_t, char>, 8> letters = {{{0x01, 'S'},
                                                                      {0x02, 'D'},
                                                                      {0x04, 'T'},
                                                                      {0x08, 't'},
                                                                      {0x10, 'X'},
                                                                      {0x20, 'Z'},
                                                                      {0x40, 'P'},
                                                                      {0x80, 'I'}}};
  for (const auto& [bit, letter] : letters) {
    if ((state & bit) != 0) return {letter};
  }
  return (state & preempted) != 0 ? "R+" : "R";
}

std::optional<std::int64_t> BinaryFields::number(std::string_view name) const {
  const Field* const field = format_->find(name);
  return field == nullptr ? std::nullopt : number(*field);
}

std::optional<std::int64_t> BinaryFields::number(const Field& field) const {
  if (field.is_text || field.is_dynamic || field.size == 0 || field.size > 8 ||
      field.offset > record_.size() || field.size > record_.size() - field.offset) {
    return {};
  }
  const std::uint64_t value = number_of(record_.subspan(field.offset, field.size), big_endian_);
  const unsigned unused = 64 - 8 * field.size;
  const auto left = static_cast<std::int64_t>(value << unused);
  return field.is_signed ? left >> unused : static_cast<std::int64_t>(value);
}

std::optional<std::string> BinaryFields::text(std::string_view name) const {
  if (name == "reason" && format_->kind == Kind::kvm_exit) return reason();
  const Field* const field = format_->find(name);
  if (field != nullptr) return text(*field);
  if (name == "caller" || name == "parent") return caller(std::string(name) + "_offs");
  return {};
}

std::optional<std::string> BinaryFields::text(const Field& field) const {
  if (field.is_text) return characters(field);
  if (field.is_mask) return mask(field);
  const auto value = number(field);
  if (!value) return {};
  const auto bits = static_cast<std::uint64_t>(*value);
  if (field.name == "prev_state") return state_letter(bits);
  if (format_->kind == Kind::timerlat && field.name == "context") return context_name(bits);
  if (format_->kind == Kind::kvm_userspace_exit && field.name == "reason") return symbol(0, bits);
  if (is_function(*format_, field) && functions_ != nullptr) return functions_->name(bits);
  if (field.is_pointer) return hex(bits);
  return field.is_signed ? std::to_string(*value) : std::to_string(bits);
}

std::string BinaryFields::stack() const {
  const Field* const first = format_->find("caller");
  if (first == nullptr || first->offset > record_.size() || functions_ == nullptr) return {};
  constexpr std::size_t address_size = 8;
  constexpr std::uint64_t trampoline = 0x7fffffff;
  auto rest = record_.subspan(first->offset);
  std::string names;
  for (std::size_t i = 0; i < most_frames && rest.size() >= address_size; ++i) {
    const std::uint64_t address = number_of(rest.first(address_size), big_endian_);
    rest = rest.subspan(address_size);
    if (address == ~std::uint64_t{0} || address == 0) break;
    if (address == trampoline) continue;
    const std::string name = functions_->name(address);
    if (names.size() + name.size() > longest_stack) break;
    if (!names.empty()) names += ';';
    names += name;
  }
  return names;
}

/// preempt_disable, irq_enable and so on tell who called by the distance from the kernel's start.
std::optional<std::string> BinaryFields::caller(std::string_view field) const {
  const auto distance = number(field);
  if (!distance || functions_ == nullptr || functions_->text_start() == 0) return {};
  return functions_->name(functions_->text_start() + static_cast<std::uint64_t>(*distance));
}

void BinaryFields::write_callers(probe::Json& json) const {
  for (const auto& [field, name] :
       {std::pair("caller_offs", "caller"), std::pair("parent_offs", "parent")}) {
    if (const auto told = caller(field)) json.member(name, *told);
  }
}

/// A set of CPUs as a list: "0,2,3".
std::optional<std::string> BinaryFields::mask(const Field& field) const {
  constexpr std::size_t most_bytes = 128;
  const auto bytes = dynamic(field);
  if (!bytes || big_endian_) return {};
  std::string list;
  for (std::size_t i = 0; i < std::min(bytes->size(), most_bytes); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      if (((*bytes)[i] >> bit & 1U) == 0) continue;
      if (!list.empty()) list += ',';
      list += std::to_string(8 * i + bit);
    }
  }
  return list;
}

std::optional<std::span<const std::uint8_t>> BinaryFields::dynamic(const Field& field) const {
  if (field.offset > record_.size() || 4 > record_.size() - field.offset) return {};
  const std::uint64_t place = number_of(record_.subspan(field.offset, 4), big_endian_);
  const std::uint64_t offset = (place & 0xffff) + (field.is_relative ? field.offset + 4U : 0U);
  if (offset > record_.size()) return {};
  return record_.subspan(offset, std::min<std::uint64_t>(place >> 16U, record_.size() - offset));
}

std::optional<std::string> BinaryFields::characters(const Field& field) const {
  std::optional<std::span<const std::uint8_t>> bytes;
  if (field.is_dynamic) {
    bytes = dynamic(field);
  } else if (field.offset <= record_.size()) {
    const std::size_t left = record_.size() - field.offset;
    // of what a program wrote into the trace, the format tells no size: it is the rest
    const std::size_t size = field.size == 0 ? left : field.size;
    bytes = record_.subspan(field.offset, std::min(size, left));
  }
  if (!bytes) return {};
  return std::string(bytes->begin(), std::ranges::find(*bytes, 0));
}

std::string BinaryFields::symbol(std::size_t table, std::uint64_t value) const {
  if (table < format_->symbols.size()) {
    const Symbols& symbols = format_->symbols[table];
    const auto found = symbols.find(static_cast<std::uint32_t>(value));
    if (found != symbols.end()) return found->second;
  }
  return hex(value);
}

/// By the kernel's own table, which the format holds: it knows reasons that are newer than Latenz.
std::string BinaryFields::reason() const {
  if (const auto exit_class = number("esr_ec")) {  // 64-bit Arm
    const std::string kind = symbol(0, static_cast<std::uint64_t>(number("ret").value_or(0)));
    return kind == "TRAP" ? symbol(1, static_cast<std::uint64_t>(*exit_class)) : kind;
  }
  const auto code = static_cast<std::uint32_t>(number("exit_reason").value_or(0));
  const bool is_svm = number("isa") == static_cast<std::int64_t>(Isa::svm);
  if (format_->symbols.size() < 2) return reason_name(is_svm ? Isa::svm : Isa::vmx, code);
  if (is_svm) return symbol(1, code);
  constexpr std::uint32_t basic = 0xffff;
  constexpr std::uint32_t failed_entry = 0x80000000;
  return symbol(0, code & basic) + ((code & failed_entry) != 0 ? " FAILED_VMENTRY" : "");
}

bool BinaryFields::is_told_by_name(const Field& field) const {
  return field.is_text || field.is_mask || field.is_pointer || field.name == "prev_state" ||
         is_function(*format_, field) ||
         (format_->kind == Kind::kvm_userspace_exit && field.name == "reason") ||
         (format_->kind == Kind::timerlat && field.name == "context");
}

void BinaryFields::write(probe::Json& json) const {
  if (format_->kind == Kind::kvm_exit) json.member("reason", reason());
  if (format_->kind == Kind::stack) {
    json.member("stack", stack());
    return;
  }
  write_callers(json);
  // Fields overlap only in a made-up format, which would make much of a short record.
  std::size_t left = 2 * record_.size() + most_known_fields;
  const auto fits = [&left](std::size_t size) {
    const bool does = size <= left;
    left -= does ? size : 0;
    return does;
  };
  for (const Field& field : format_->fields) {
    if (field.name.starts_with("common_")) continue;
    if (is_told_by_name(field)) {
      const auto value = text(field);
      if (value && fits(field.is_text || field.is_mask ? value->size() : field.size)) {
        json.member(field.name, *value);
      }
    } else if (const auto value = number(field); value && fits(field.size)) {
      json.key(field.name);
      if (field.is_signed) {
        json.value(*value);
      } else {
        json.value(static_cast<std::uint64_t>(*value));
      }
    }
  }
}

}  // namespace latenz::trace
