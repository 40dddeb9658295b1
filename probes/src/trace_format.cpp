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

constexpr std::size_t most_fields = 256;

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
  field.is_relative = type.starts_with("__rel_loc");
  field.is_dynamic = field.is_relative || type.starts_with("__data_loc");
  field.is_text = type.find("char") != std::string_view::npos && (is_array || field.is_dynamic);
  field.is_pointer = type.find('*') != std::string_view::npos;
  field.name = common_name(kind, name);
  return field;
}

Symbols parse_symbols(std::string_view text) {
  Symbols symbols;
  while (true) {
    const auto open = text.find_first_of("{)");
    if (open == std::string_view::npos || text[open] == ')') return symbols;
    const auto comma = text.find(',', open);
    const auto quote = comma == std::string_view::npos ? comma : text.find('"', comma);
    const auto end = quote == std::string_view::npos ? quote : text.find('"', quote + 1);
    if (end == std::string_view::npos) return symbols;
    if (const auto value = sum(text.substr(open + 1, comma - open - 1))) {
      symbols.emplace(static_cast<std::uint32_t>(*value), text.substr(quote + 1, end - quote - 1));
    }
    text.remove_prefix(std::min(text.find('}', end), text.size() - 1) + 1);
  }
}

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
    tables.push_back(parse_symbols(print));
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
    } else if (line.starts_with("print fmt:")) {
      format.symbols = parse_tables(line);
    }
  }
  if (format.id < 0 || format.name.empty()) return {};
  return format;
}

Functions::Functions(std::string kallsyms) : text_(std::move(kallsyms)) {
  const std::string_view text = text_;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::uint64_t address = 0;
    const auto [stop, error] = std::from_chars(text.data() + start, text.data() + end, address, 16);
    const std::size_t name = static_cast<std::size_t>(stop - text.data()) + 3;  // ADDRESS T NAME
    if (error == std::errc() && name < end) {
      starts_.emplace_back(address, static_cast<std::uint32_t>(name));
    }
    start = end + 1;
  }
  std::ranges::stable_sort(starts_, {}, &std::pair<std::uint64_t, std::uint32_t>::first);
}

std::string Functions::name(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(starts_, address, {},
                                              &std::pair<std::uint64_t, std::uint32_t>::first);
  constexpr std::uint64_t longest_function = 1U << 20U;
  if (after == starts_.begin() || address - std::prev(after)->first > longest_function) {
    return hex(address);
  }
  const std::string_view rest = std::string_view(text_).substr(std::prev(after)->second);
  return std::string(rest.substr(0, rest.find_first_of("\t\n")));
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
  return field == nullptr ? std::nullopt : text(*field);
}

std::optional<std::string> BinaryFields::text(const Field& field) const {
  if (field.is_text) return characters(field);
  const auto value = number(field);
  if (!value) return {};
  const auto bits = static_cast<std::uint64_t>(*value);
  if (field.name == "prev_state") return state_letter(bits);
  if (format_->kind == Kind::timerlat && field.name == "context") return context_name(bits);
  if (format_->kind == Kind::kvm_userspace_exit && field.name == "reason") return symbol(0, bits);
  if (field.name == "function" && functions_ != nullptr) return functions_->name(bits);
  if (field.is_pointer) return hex(bits);
  return field.is_signed ? std::to_string(*value) : std::to_string(bits);
}

std::optional<std::string> BinaryFields::characters(const Field& field) const {
  std::uint64_t offset = field.offset;
  std::uint64_t size = field.size;
  if (field.is_dynamic) {
    if (offset > record_.size() || 4 > record_.size() - offset) return {};
    const std::uint64_t place = number_of(record_.subspan(field.offset, 4), big_endian_);
    offset = (place & 0xffff) + (field.is_relative ? field.offset + 4U : 0U);
    size = place >> 16U;
  }
  if (offset > record_.size()) return {};
  size = std::min<std::uint64_t>(size, record_.size() - offset);
  const auto bytes = record_.subspan(offset, size);
  return std::string(bytes.begin(), std::ranges::find(bytes, 0));
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
  return field.is_text || field.is_pointer || field.name == "prev_state" ||
         field.name == "function" ||
         (format_->kind == Kind::kvm_userspace_exit && field.name == "reason") ||
         (format_->kind == Kind::timerlat && field.name == "context");
}

void BinaryFields::write(probe::Json& json) const {
  if (format_->kind == Kind::kvm_exit) json.member("reason", reason());
  for (const Field& field : format_->fields) {
    if (field.name.starts_with("common_")) continue;
    if (is_told_by_name(field)) {
      if (const auto value = text(field)) json.member(field.name, *value);
    } else if (const auto value = number(field)) {
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
