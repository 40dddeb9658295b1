// SPDX-License-Identifier: Apache-2.0
#include "trace_kernel.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace latenz::trace {
namespace {

constexpr std::uint64_t most_format_bytes = 1U << 24U;
constexpr std::uint64_t largest_list = 1U << 24U;
constexpr std::size_t most_names = 200000;

}  // namespace

void KernelEvents::add_format(const std::string& text) {
  auto format = parse_format(text);
  if (!format) return;  // its events are counted as such
  const auto id = static_cast<std::size_t>(format->id);
  if (formats_.size() <= id) formats_.resize(id + 1);
  formats_[id] = std::make_unique<Format>(std::move(*format));
}

void KernelEvents::read_formats(Cursor& cursor) {
  for (std::uint32_t count = cursor.u32(); count > 0; --count) {
    const std::uint64_t size = cursor.u64();
    if (size > largest_format) throw Damage(cursor.place(), "a format has an impossible size");
    format_bytes_ += size;
    if (format_bytes_ > most_format_bytes) {
      throw Damage(cursor.place(), "its formats are impossibly long");
    }
    add_format(cursor.take(size));
  }
}

void KernelEvents::read_systems(Cursor& cursor) {
  for (std::uint32_t systems = cursor.u32(); systems > 0; --systems) {
    cursor.string();
    read_formats(cursor);
  }
}

void KernelEvents::read_command_lines(Cursor& cursor) {
  const std::uint64_t size = cursor.u64();
  if (size > largest_list) throw Damage(cursor.place(), "the list of threads is impossibly long");
  const std::string text = cursor.take(size);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = std::string_view(text).substr(start, end - start);
    int pid = 0;
    const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), pid);
    const auto length = static_cast<std::size_t>(stop - line.data());
    if (error == std::errc() && length + 1 < line.size()) {
      name_thread(pid, line.substr(length + 1));
    }
    start = end + 1;
  }
}

void KernelEvents::name_thread(int pid, std::string_view comm) {
  if (names_.size() < most_names || names_.contains(pid)) {
    names_[pid] = comm.substr(0, longest_name);
  }
}

const Format& KernelEvents::format_of(std::span<const std::uint8_t> record) const {
  static const Format unknown{};
  if (record.size() < 8) return unknown;
  const std::uint64_t id = number_of(record.first(2), big_endian_);
  return id < formats_.size() && formats_[id] ? *formats_[id] : unknown;
}

Event KernelEvents::decode(std::span<const std::uint8_t> record, BinaryFields& fields) {
  const Format& format = format_of(record);
  fields.set(format, record);
  fields.set_functions(&functions_);
  Event event;
  event.fields = &fields;
  event.name = format.name.empty() ? "unknown" : std::string_view(format.name);
  event.kind = format.kind;
  const auto common = [&fields](const std::optional<Field>& field, std::int64_t otherwise) {
    return field ? fields.number(*field).value_or(otherwise) : otherwise;
  };
  event.pid = static_cast<int>(common(format.pid, -1));
  flags_ = flag_letters(static_cast<std::uint64_t>(common(format.flags, 0)),
                        static_cast<std::uint64_t>(common(format.preempt_count, 0)));
  event.flags = std::string_view(flags_.data(), flags_.size());
  const auto name = names_.find(event.pid);
  if (name != names_.end()) event.comm = name->second;
  if (event.pid == 0) event.comm = "<idle>";
  if (format.kind == Kind::sched_switch) learn_names(event);
  return event;
}

/// saved_cmdlines forgets; the scheduler's own events tell who a thread is.
void KernelEvents::learn_names(const Event& event) {
  for (const auto& [pid_name, comm_name] :
       {std::pair("prev_pid", "prev_comm"), std::pair("next_pid", "next_comm")}) {
    const auto pid = event.fields->number(pid_name);
    if (!pid || names_.size() >= most_names) continue;
    auto& known = names_[static_cast<int>(*pid)];
    if (known.empty()) known = event.fields->text(comm_name).value_or("").substr(0, longest_name);
  }
}

}  // namespace latenz::trace
