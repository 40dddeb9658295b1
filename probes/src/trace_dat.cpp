// SPDX-License-Identifier: Apache-2.0
#include "trace_dat.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <queue>
#include <set>

#include "failure.hpp"

namespace latenz::trace {
namespace {

constexpr std::uint16_t section_options = 0;
constexpr std::uint16_t section_buffer = 3;
constexpr std::uint16_t section_headers = 16;
constexpr std::uint16_t section_ftrace_formats = 17;
constexpr std::uint16_t section_event_formats = 18;
constexpr std::uint16_t section_functions = 19;
constexpr std::uint16_t section_command_lines = 21;
constexpr std::uint64_t section_header_size = 16;

constexpr std::uint16_t option_done = 0;
constexpr std::uint16_t option_buffer = 3;
constexpr std::uint16_t option_clock = 4;
constexpr std::uint16_t option_offset = 7;
constexpr std::uint16_t option_trace_id = 11;
constexpr std::uint16_t option_time_shift = 12;
constexpr std::uint16_t option_guest = 13;
constexpr std::uint16_t option_tsc = 14;
constexpr std::uint16_t option_text_buffer = 22;

constexpr std::uint64_t largest_section = 1U << 26U;
constexpr std::uint32_t most_cpus = 65536;
constexpr std::uint32_t most_listed_cpus = 1U << 18U;
constexpr std::size_t most_buffers = 4096;
constexpr std::uint32_t most_guests = 256;
constexpr std::uint32_t most_guest_cpus = 4096;   // of all guests
constexpr std::uint32_t most_shifts = 1U << 20U;  // of all CPUs
constexpr std::size_t most_owners = 1U << 20U;

std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
  return a > largest - b ? largest : a + b;
}

std::uint32_t checked_page_size(std::uint32_t size, std::uint64_t place) {
  constexpr std::uint32_t smallest = 4096;
  constexpr std::uint32_t largest = 1U << 24U;
  if (size < smallest || size > largest) throw Damage(place, "its page size is impossible");
  return size;
}

std::string until_zero(std::string text) {
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

}  // namespace

/// The records of one CPU in one buffer, of which the next one is known.
struct TraceDat::Stream {
  Stream(std::unique_ptr<Pages> pages, const PageLayout& layout, const Data& its_data)
      : ring(std::move(pages), layout), data(its_data) {}
  RingReader ring;
  Data data;
  Record record;
  std::uint64_t t_ns = 0;
};

std::uint64_t TraceDat::Section::end() const { return saturating_sum(start, size); }

TraceDat::TraceDat(const FileSource& file) : file_(file), budget_(file.size()) {
  description_.format = "trace.dat";
  try {
    Cursor cursor(file, dat_magic.size(), file.size(), false);
    description_.version = cursor.string(16);
    big_endian_ = cursor.u8() != 0;
    cursor.skip(1);  // size of long in user space
    cursor = Cursor(file, cursor.position(), file.size(), big_endian_);
    events_ = KernelEvents(big_endian_);
    page_size_ = checked_page_size(cursor.u32(), cursor.position());
    if (description_.version == "6") {
      read_version_6(cursor);
    } else if (description_.version == "7") {
      description_.compression = cursor.string(64);
      cursor.string(64);
      const std::uint64_t options = cursor.u64();
      const std::uint64_t first = cursor.position();
      read_version_7(options);
      const bool is_complete = !data_.empty() && has_layout_ && events_.has_formats();
      if (description_.damages > 0 && !is_complete) {
        recover_7(first);
      } else {
        walk_7(first, [](const Section&) {});
      }
    } else {
      throw Damage(dat_magic.size(), "its version is none of 6 and 7, which can be read");
    }
  } catch (const Damage& damage) {
    tell(damage, "header");
  }
}

void TraceDat::tell(const Damage& damage, const std::string& what) {
  description_.damaged("byte " + std::to_string(damage.offset()) + " (" + what +
                       "): " + damage.what());
}

void TraceDat::read_version_6(Cursor cursor) {
  read_header_pages(cursor);
  events_.read_formats(cursor);
  events_.read_systems(cursor);
  const std::uint32_t functions = cursor.u32();
  functions_section_ = Section{section_functions, false, cursor.position(), functions};
  cursor.skip(functions);
  cursor.skip(cursor.u32());  // formats of trace_printk
  events_.read_command_lines(cursor);
  const std::uint32_t cpus = cursor.u32();
  if (cpus > most_cpus) throw Damage(cursor.place(), "its number of CPUs is impossible");
  read_options_6(cursor, cpus);
}

void TraceDat::read_options_6(Cursor& cursor, std::uint32_t cpus) {
  std::vector<std::pair<std::uint64_t, std::string>> instances;
  std::string kind = until_zero(cursor.take(10));
  if (kind == "options  ") {
    while (const std::uint16_t id = cursor.u16()) {
      const std::uint32_t size = cursor.u32();
      cursor.need(size);
      Cursor option(file_, cursor.position(), cursor.position() + size, big_endian_);
      cursor.skip(size);
      if (id == option_buffer) {
        const std::uint64_t offset = option.u64();
        instances.emplace_back(offset, option.string());
      } else {
        read_option_7(id, option);
      }
    }
    kind = until_zero(cursor.take(10));
  }
  if (kind == "latency  ") {
    throw probe::Failure("it holds the text of a latency tracer, not events; print it by " +
                         std::string("trace-cmd report and give the text"));
  }
  if (kind != "flyrecord") throw Damage(cursor.place(), "no list of the CPUs' data follows");
  read_buffer_6(cursor, cpus, "");
  for (const auto& [offset, name] : instances) {
    if (offset > file_.size()) throw Damage(file_.size(), "buffer '" + name + "' is missing");
    Cursor buffer(file_, offset, file_.size(), big_endian_);
    if (until_zero(buffer.take(10)) != "flyrecord") {
      throw Damage(offset, "buffer '" + name + "' is missing");
    }
    read_buffer_6(buffer, cpus, name);
  }
}

void TraceDat::add_buffer(const std::string& name) {
  if (description_.buffers.size() == most_buffers) {
    throw Damage(file_.size(), "it has impossibly many buffers");
  }
  description_.buffers.push_back(name);
}

/// `data.place.end` is set here.
void TraceDat::add_data(Data data, std::uint64_t size) {
  if (++listed_cpus_ > most_listed_cpus) {
    throw Damage(data.place.offset, "its buffers have impossibly many CPUs");
  }
  data.place.end = saturating_sum(data.place.offset, size);
  if (size > 0) data_.push_back(data);
}

/// No two CPUs share bytes of a file, unless it was made so that they are read again and again.
void TraceDat::refuse_overlaps() {
  std::vector<std::size_t> order(data_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [this](std::size_t i) { return data_[i].place.offset; });
  std::vector<bool> is_refused(data_.size());
  std::uint64_t end = 0;
  for (const std::size_t i : order) {
    const PagesPlace& place = data_[i].place;
    is_refused[i] = place.offset < end;
    if (is_refused[i]) {
      tell(Damage(place.offset, "its data are also another CPU's"),
           "CPU " + std::to_string(data_[i].cpu));
    }
    end = std::max(end, place.end);
  }
  std::size_t i = 0;
  std::erase_if(data_, [&](const Data&) { return is_refused[i++]; });
}

void TraceDat::read_buffer_6(Cursor& cursor, std::uint32_t cpus, const std::string& name) {
  add_buffer(name);
  for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) {
    const std::uint64_t offset = cursor.u64();
    const std::uint64_t size = cursor.u64();
    add_data({.cpu = static_cast<int>(cpu),
              .buffer = description_.buffers.size() - 1,
              .place = {.offset = offset, .page_size = page_size_}},
             size);
  }
}

TraceDat::Section TraceDat::section_at(std::uint64_t offset) const {
  if (offset > file_.size() || section_header_size > file_.size() - offset) {
    throw Damage(file_.size(), "the file ends at byte " + std::to_string(file_.size()));
  }
  Cursor cursor(file_, offset, file_.size(), big_endian_);
  Section section;
  section.id = cursor.u16();
  section.compressed = (cursor.u16() & 1U) != 0;
  cursor.skip(4);  // its description
  section.size = cursor.u64();
  section.start = cursor.position();
  return section;
}

void TraceDat::read_version_7(std::uint64_t options) {
  std::set<std::uint64_t> seen;
  while (options != 0 && seen.insert(options).second) {
    try {
      const Section section = section_at(options);
      if (section.id != section_options) throw Damage(options, "no options are there");
      const auto source = restored(section);
      Cursor cursor(*source, 0, source->size(), big_endian_);
      options = 0;
      while (cursor.left() > 0) {
        const std::uint16_t id = cursor.u16();
        const std::uint32_t size = cursor.u32();
        cursor.need(size);
        Cursor option(*source, cursor.position(), cursor.position() + size, big_endian_);
        cursor.skip(size);
        if (id == option_done) {
          options = option.u64();
          break;
        }
        read_option_7(id, option);
      }
    } catch (const Damage& damage) {
      tell(damage, "options");
      return;
    }
  }
}

void TraceDat::read_option_7(std::uint16_t id, Cursor option) {
  if (id == option_buffer) {
    read_buffer_7(option);
  } else if (id == option_clock) {
    set_clock(option.take(option.left()));
  } else if (id == option_offset) {
    const std::string text = until_zero(option.take(option.left()));
    std::from_chars(text.data(), text.data() + text.size(), offset_ns_);
  } else if (id == option_tsc) {
    tsc_ = {option.u32(), option.u32(), option.u64()};
    description_.session.tsc_multiplier = tsc_.multiplier;
    description_.session.tsc_shift = tsc_.shift & 31U;
  } else if (id >= option_trace_id && id <= option_guest) {
    read_session(id, option);
  } else if (id == option_text_buffer && !std::exchange(told_text_buffer_, true)) {
    description_.notes.emplace_back(
        "the text of a latency tracer in the file is not read; trace-cmd report prints it");
  } else if (id >= section_headers && id <= section_command_lines) {
    const std::uint64_t offset = option.u64();
    try {
      const Section section = section_at(offset);
      if (section.id != id) throw Damage(offset, "section " + std::to_string(id) + " is missing");
      read_metadata(section);
    } catch (const Damage& damage) {
      tell(damage, "section " + std::to_string(id));
    }
  }
}

/// What trace-cmd tells of files that were recorded together. Damage there costs no event.
void TraceDat::read_session(std::uint16_t id, Cursor option) {
  Session& session = description_.session;
  try {
    if (id == option_trace_id) session.id = option.u64();
    if (id == option_time_shift) read_shifts(option);
    if (id == option_guest) read_guest(option);
  } catch (const Damage& damage) {
    if (id == option_time_shift) session.shifts.clear();
    tell(damage, "option " + std::to_string(id));
  }
}

void TraceDat::read_shifts(Cursor option) {
  constexpr std::uint32_t interpolate = 1;  // TRACECMD_TSYNC_FLAG_INTERPOLATE
  constexpr std::uint64_t bytes_a_sample = 24;
  constexpr std::uint64_t most_fraction = 63;
  Session& session = description_.session;
  session.peer = option.u64();
  session.interpolates = (option.u32() & interpolate) != 0;
  const std::uint32_t cpus = option.u32();
  if (cpus > most_guest_cpus) throw Damage(option.place(), "its number of CPUs is impossible");
  session.shifts.assign(cpus, {});
  std::uint64_t all = 0;
  for (auto& samples : session.shifts) {
    const std::uint32_t count = option.u32();
    all += count;
    if (all > most_shifts) throw Damage(option.place(), "it has impossibly many times");
    option.need(count * bytes_a_sample);
    samples.resize(count);
    for (auto& each : samples) each.time = static_cast<std::int64_t>(option.u64());
    for (auto& each : samples) each.offset = static_cast<std::int64_t>(option.u64());
    for (auto& each : samples) each.scaling = option.u64();
  }
  for (auto& samples : session.shifts) {
    for (auto& each : samples) {
      const std::uint64_t fraction = option.left() > 0 ? option.u64() : 0;  // since trace-cmd 3
      const bool is_possible = fraction <= most_fraction && each.scaling != 0 &&
                               each.scaling <= std::numeric_limits<std::int64_t>::max();
      if (!is_possible) throw Damage(option.place(), "a clock's scale is impossible");
      each.fraction = static_cast<std::uint32_t>(fraction);
    }
    std::ranges::stable_sort(samples, {}, &Session::Sample::time);
  }
}

void TraceDat::read_guest(Cursor option) {
  Session::Guest guest;
  guest.name = option.string().substr(0, longest_name);
  guest.id = option.u64();
  const std::uint32_t cpus = option.u32();
  std::size_t all = cpus;
  for (const auto& each : description_.session.guests) all += each.vcpus.size();
  const bool is_possible =
      all <= most_guest_cpus && description_.session.guests.size() < most_guests;
  if (!is_possible) throw Damage(option.place(), "its guests are impossibly many");
  for (std::uint32_t i = 0; i < cpus; ++i) guest.vcpus.push_back({option.u32(), option.u32()});
  description_.session.guests.push_back(std::move(guest));
}

void TraceDat::read_buffer_7(Cursor option) {
  const std::uint64_t offset = option.u64();
  add_buffer(option.string());
  set_clock(option.string());
  const std::uint32_t page_size = checked_page_size(option.u32(), option.place());
  const std::uint32_t cpus = option.u32();
  if (cpus > most_cpus) throw Damage(option.place(), "its number of CPUs is impossible");
  const Section section = section_at(offset);
  for (std::uint32_t i = 0; i < cpus; ++i) {
    const std::uint32_t cpu = option.u32();
    const std::uint64_t start = option.u64();
    const std::uint64_t size = option.u64();
    if (cpu > most_cpus) throw Damage(option.place(), "the number of a CPU is impossible");
    add_data({.cpu = static_cast<int>(cpu),
              .buffer = description_.buffers.size() - 1,
              .place = {.offset = start, .page_size = page_size},
              .compressed = section.compressed},
             size);
  }
}

/// Sections stand one behind the other; throws `Damage` if the last one is cut.
void TraceDat::walk_7(std::uint64_t first, const std::function<void(const Section&)>& visit) const {
  constexpr int most_sections = 100000;
  std::uint64_t offset = first;
  for (int i = 0; i < most_sections && offset < file_.size(); ++i) {
    const Section section = section_at(offset);
    visit(section);
    offset = section.end();
    if (offset > file_.size()) {
      throw Damage(file_.size(), "the file ends at byte " + std::to_string(file_.size()));
    }
  }
}

/// A file whose end is missing has lost the options that tell where everything is.
void TraceDat::recover_7(std::uint64_t first) {
  const bool has_data = !data_.empty();
  walk_7(first, [this, has_data](const Section& section) {
    try {
      if (section.id == section_buffer && !has_data) {
        recover_buffer_7(section);
      } else if (section.id >= section_headers && section.id <= section_command_lines) {
        read_metadata(section);
      }
    } catch (const Damage& damage) {
      tell(damage, "section " + std::to_string(section.id));
    }
  });
}

/// The first page or chunk that a buffer starts with is aligned to a page; CPUs follow each other.
void TraceDat::recover_buffer_7(const Section& section) {
  const std::uint64_t end = std::min(section.end(), file_.size());
  const auto aligned = [this](std::uint64_t offset) {
    return (offset + page_size_ - 1) / page_size_ * page_size_;
  };
  add_buffer("");
  int cpu = 0;
  const auto add = [&](std::uint64_t start, std::uint64_t next) {
    add_data({.cpu = cpu++,
              .buffer = description_.buffers.size() - 1,
              .place = {.offset = start, .page_size = page_size_},
              .compressed = section.compressed},
             next - start);
  };
  if (!section.compressed) {
    // Where a page is older than the one before it, the next CPU starts.
    std::uint64_t start = aligned(section.start);
    std::uint64_t before = 0;
    for (std::uint64_t page = start; page + 8 <= end; page += page_size_) {
      const std::uint64_t t_ns = Cursor(file_, page, end, big_endian_).u64();
      if (t_ns < before) {
        add(start, page);
        start = page;
      }
      before = t_ns;
    }
    if (start < end) add(start, end);
    return;
  }
  for (std::uint64_t start = aligned(section.start); start < end;) {
    Cursor cursor(file_, start, end, big_endian_);
    std::uint64_t next = end;
    try {
      for (std::uint32_t chunks = cursor.u32(); chunks > 0; --chunks) {
        const std::uint32_t size = cursor.u32();
        cursor.skip(4);
        cursor.skip(size);
      }
      next = aligned(cursor.position());
    } catch (const Damage&) {
      next = end;  // the last that is there; it is told when its events are read
    }
    add(start, next);
    start = next;
  }
}

std::unique_ptr<Source> TraceDat::restored(const Section& section) {
  Cursor cursor(file_, section.start, file_.size(), big_endian_);
  cursor.need(section.size);
  std::uint64_t size = section.size;
  std::uint64_t full_size = size;
  if (section.compressed) {
    size = cursor.u32();
    full_size = cursor.u32();
  }
  if (std::max(size, full_size) > largest_section) {
    throw Damage(section.start, "a part has an impossible size");
  }
  cursor.need(size);
  budget_.unpack(size + full_size, section.start);  // twice if it is named twice
  std::vector<std::uint8_t> bytes(size);
  file_.read(cursor.position(), bytes);
  if (section.compressed) {
    bytes = decompress(description_.compression, bytes, full_size, section.start);
  }
  return std::make_unique<MemorySource>(std::move(bytes), section.start);
}

void TraceDat::read_metadata(const Section& section) {
  if (section.id == section_functions) {
    functions_section_ = section;
    return;
  }
  const auto source = restored(section);
  Cursor cursor(*source, 0, source->size(), big_endian_);
  if (section.id == section_headers) read_header_pages(cursor);
  if (section.id == section_ftrace_formats) events_.read_formats(cursor);
  if (section.id == section_event_formats) events_.read_systems(cursor);
  if (section.id == section_command_lines) events_.read_command_lines(cursor);
}

void TraceDat::read_header_pages(Cursor& cursor) {
  const auto part = [&cursor](const std::string& name) {
    if (cursor.string(32) != name) throw Damage(cursor.place(), name + " is missing");
    const std::uint64_t size = cursor.u64();
    if (size > largest_format) throw Damage(cursor.place(), name + " has an impossible size");
    return cursor.take(size);
  };
  const std::uint64_t place = cursor.place();
  layout_ = parse_page_layout(part("header_page"), big_endian_, place);
  part("header_event");
  has_layout_ = true;
}

void TraceDat::read_functions() {
  if (!functions_section_) return;
  try {
    const auto source = restored(*functions_section_);
    Cursor cursor(*source, 0, source->size(), big_endian_);
    if (description_.version == "7") cursor.skip(4);
    events_.set_functions(Functions(cursor.take(cursor.left())));
  } catch (const Damage& damage) {
    tell(damage, "names of functions");
  }
}

/// Of the file trace_clock, in which the clock that was taken stands in brackets.
void TraceDat::set_clock(std::string_view text) {
  const auto open = text.find('[');
  if (open != std::string_view::npos) text = text.substr(open + 1);
  text = text.substr(0, text.find_first_of(std::string_view("]\0\n ", 4)));
  if (!text.empty() && text.size() <= longest_name) description_.clock = text;
}

void TraceDat::check_clock() const {
  const std::string& clock = description_.clock;
  const bool has_no_unit = clock == "counter" || (clock == "x86-tsc" && tsc_.multiplier == 0);
  if (has_no_unit) {
    throw probe::Failure("its clock '" + clock + "' counts no nanoseconds; record with -C mono");
  }
}

std::int64_t TraceDat::nanoseconds(std::uint64_t stamp, int cpu) const {
  if (on_host_) stamp = description_.session.on_host(stamp, cpu);
  if (tsc_.multiplier != 0 &&
      (description_.clock == "x86-tsc" || description_.clock == "tsc2nsec")) {
    const std::uint64_t high = (stamp >> 32U) * tsc_.multiplier;
    const std::uint64_t low = (stamp & 0xffffffffU) * tsc_.multiplier;
    const unsigned shift = tsc_.shift & 31U;
    stamp = (high << (32U - shift)) + (low >> shift) + tsc_.offset;
  }
  return static_cast<std::int64_t>(stamp + static_cast<std::uint64_t>(offset_ns_));
}

void TraceDat::read(Consumer& consumer, bool wants_functions, bool on_host) {
  on_host_ = on_host;
  if (!has_layout_ && description_.truncated_at.empty()) {
    tell(Damage(file_.size(), "the description of the ring buffer's pages is missing"), "header");
  }
  if (!has_layout_) return;
  check_clock();
  if (wants_functions) read_functions();
  refuse_overlaps();
  std::vector<std::unique_ptr<Stream>> streams;
  // By the times that are told: CPUs of a guest may each have their own way to the host's clock.
  const auto is_later = [](const Stream* a, const Stream* b) { return a->t_ns > b->t_ns; };
  std::priority_queue<Stream*, std::vector<Stream*>, decltype(is_later)> queue(is_later);
  for (const Data& data : data_) {
    auto pages = data.compressed ? compressed_pages(file_, data.place, description_.compression,
                                                    big_endian_, budget_)
                                 : plain_pages(file_, data.place);
    streams.push_back(std::make_unique<Stream>(std::move(pages), layout_, data));
    if (advance(*streams.back(), consumer)) queue.push(streams.back().get());
  }
  while (!queue.empty()) {
    Stream* const first = queue.top();
    queue.pop();
    if (!budget_.take_event()) {
      tell(Damage(first->ring.place(), "it has far more events than fit into its size"),
           "CPU " + std::to_string(first->data.cpu));
      break;
    }
    deliver(*first, consumer);
    if (advance(*first, consumer)) queue.push(first);
  }
  // By trace-cmd record --ts-offset: no longer the time of that clock.
  if (offset_ns_ != 0) description_.clock += ", moved by " + std::to_string(offset_ns_) + " ns";
}

bool TraceDat::advance(Stream& stream, Consumer& consumer) {
  while (true) {
    try {
      const auto record = stream.ring.next();
      if (const auto lost = stream.ring.take_lost()) consumer.lost(stream.data.cpu, *lost);
      if (!record) return false;
      stream.record = *record;
      stream.t_ns = static_cast<std::uint64_t>(nanoseconds(record->t_ns, stream.data.cpu));
      return true;
    } catch (const Damage& damage) {
      tell(damage, "CPU " + std::to_string(stream.data.cpu));
    }
  }
}

void TraceDat::deliver(Stream& stream, Consumer& consumer) {
  const Record& record = stream.record;
  BinaryFields fields(big_endian_);
  Event event = events_.decode(record.bytes, fields);
  event.t_ns = static_cast<std::int64_t>(stream.t_ns);
  event.cpu = stream.data.cpu;
  const int id = events_.format_of(record.bytes).id;
  if (id >= 0 && !is_owner(stream, id)) event.kind = Kind::other;
  consumer.event(event);
}

/// The same event of a CPU may be recorded in several buffers: it happened only once.
bool TraceDat::is_owner(const Stream& stream, int format) {
  if (description_.buffers.size() < 2) return true;
  const std::uint64_t key =
      static_cast<std::uint64_t>(stream.data.cpu) << 32U | static_cast<std::uint32_t>(format);
  if (owners_.size() == most_owners && !owners_.contains(key)) return false;
  const std::size_t owner = owners_.try_emplace(key, stream.data.buffer).first->second;
  if (owner == stream.data.buffer) return true;
  if (!std::exchange(told_owners_, true)) {
    description_.notes.push_back(
        "some events are recorded in several buffers; of each, the one in '" +
        description_.buffers[owner] + "' or the first is taken");
  }
  return false;
}

}  // namespace latenz::trace
