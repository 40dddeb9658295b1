// SPDX-License-Identifier: Apache-2.0
#include "trace_perf.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "failure.hpp"

namespace latenz::trace {
namespace {

constexpr std::array<std::uint8_t, perf_magic_size> magic = {'P', 'E', 'R', 'F',
                                                             'I', 'L', 'E', '2'};

constexpr std::uint32_t record_lost = 2;
constexpr std::uint32_t record_comm = 3;
constexpr std::uint32_t record_sample = 9;
constexpr std::uint32_t record_lost_samples = 13;
constexpr std::uint32_t record_finished_round = 68;
constexpr std::uint32_t record_auxtrace = 71;
constexpr std::uint32_t record_compressed = 81;
constexpr std::uint32_t record_compressed_2 = 83;

constexpr std::uint64_t sample_ip = 1U << 0U;
constexpr std::uint64_t sample_tid = 1U << 1U;
constexpr std::uint64_t sample_time = 1U << 2U;
constexpr std::uint64_t sample_addr = 1U << 3U;
constexpr std::uint64_t sample_read = 1U << 4U;
constexpr std::uint64_t sample_callchain = 1U << 5U;
constexpr std::uint64_t sample_id = 1U << 6U;
constexpr std::uint64_t sample_cpu = 1U << 7U;
constexpr std::uint64_t sample_period = 1U << 8U;
constexpr std::uint64_t sample_stream_id = 1U << 9U;
constexpr std::uint64_t sample_raw = 1U << 10U;
constexpr std::uint64_t sample_identifier = 1U << 16U;

constexpr std::uint32_t type_tracepoint = 2;
constexpr unsigned feature_tracing_data = 1;
constexpr std::uint64_t file_header_size = 104;
constexpr std::uint64_t pipe_header_size = 16;
constexpr std::uint64_t record_header_size = 8;
constexpr std::uint64_t place_size = 16;
constexpr std::uint64_t smallest_attribute = 64;  // PERF_ATTR_SIZE_VER0
constexpr std::uint64_t largest_attribute = 4096;
constexpr std::uint64_t most_attributes = 65536;
constexpr std::uint64_t most_identities = 1U << 20U;
constexpr std::uint64_t window_size = 1U << 20U;
constexpr std::uint64_t size_of_pending = 128;  // beside its bytes
constexpr const char* record_remedy =
    "record with: perf record -k mono -a -e sched:sched_switch -e sched:sched_waking ...";

/// As ftrace calls those that it has, too.
std::string clock_name(std::uint32_t id) {
  constexpr std::array<std::pair<std::uint32_t, const char*>, 5> names = {
      {{0, "realtime"}, {1, "mono"}, {4, "mono_raw"}, {7, "boot"}, {11, "tai"}}};
  const auto* const found =
      std::ranges::find(names, id, [](const auto& each) { return each.first; });
  return found == names.end() ? "clock " + std::to_string(id) : found->second;
}

}  // namespace

/// 64-bit and 32-bit words of a record, one after the other; zero behind its end.
class TracePerf::Words {
 public:
  Words(std::span<const std::uint8_t> body, bool big_endian)
      : body_(body), big_endian_(big_endian) {}
  [[nodiscard]] bool is_cut() const { return is_cut_; }
  std::uint64_t u64() { return number(8); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::span<const std::uint8_t> take(std::uint64_t size) {
    is_cut_ = is_cut_ || size > body_.size();
    if (is_cut_) return {};
    const auto taken = body_.first(size);
    body_ = body_.subspan(size);
    return taken;
  }

 private:
  std::uint64_t number(std::size_t size) { return number_of(take(size), big_endian_); }

  std::span<const std::uint8_t> body_;
  bool big_endian_;
  bool is_cut_ = false;
};

bool is_perf(std::span<const std::uint8_t> start) {
  if (start.size() < perf_magic_size) return false;
  start = start.first(perf_magic_size);
  return std::ranges::equal(start, magic) || std::equal(start.begin(), start.end(), magic.rbegin());
}

TracePerf::TracePerf(const FileSource& file) : file_(file), budget_(file.size()) {
  description_.format = "perf.data";
  try {
    Cursor cursor(file, 0, file.size(), false);
    big_endian_ = cursor.u8() == magic.back();
    events_ = KernelEvents(big_endian_);
    read_header(Cursor(file, perf_magic_size, file.size(), big_endian_));
  } catch (const Damage& damage) {
    description_.damaged("byte " + std::to_string(damage.offset()) + " (header): " + damage.what());
  }
  if (attributes_.empty()) return;  // nothing of it can be read, and damage tells why
  check_attributes();
  if (!events_.has_formats()) {
    throw probe::Failure("has no formats of its events: perf record was killed before it ended");
  }
}

void TracePerf::read_header(Cursor cursor) {
  const std::uint64_t size = cursor.u64();
  if (size == pipe_header_size) {
    throw probe::Failure("was written into a pipe; print it by: perf script --ns -F +flags");
  }
  if (size != file_header_size) throw Damage(perf_magic_size, "its header's size is impossible");
  const std::uint64_t attribute_size = cursor.u64();
  const auto place = [&cursor] { return Place{cursor.u64(), cursor.u64()}; };
  const Place attributes = place();
  data_ = place();
  place();  // names of types of events, not written any more
  std::array<std::uint64_t, 4> features{};
  for (std::uint64_t& each : features) each = cursor.u64();
  read_attributes(attributes, attribute_size);
  read_features(features);
}

void TracePerf::read_attributes(const Place& attributes, std::uint64_t attribute_size) {
  constexpr unsigned flag_sample_id_all = 18;
  constexpr unsigned flag_use_clockid = 25;
  constexpr std::uint64_t clockid_offset = 92;
  const std::uint64_t own_size = attribute_size - place_size;
  if (attribute_size < place_size + smallest_attribute || attribute_size > largest_attribute) {
    throw Damage(attributes.offset, "the size of its events' attributes is impossible");
  }
  const std::uint64_t count = attributes.size / attribute_size;
  if (count == 0 || count > most_attributes || attributes.offset > file_.size()) {
    throw Damage(attributes.offset, "its events' attributes are missing");
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t offset = attributes.offset + i * attribute_size;
    Cursor cursor(file_, offset, file_.size(), big_endian_);
    Attribute attribute;
    attribute.type = cursor.u32();
    cursor.skip(20);  // size, config, period
    attribute.sample_type = cursor.u64();
    attribute.read_format = cursor.u64();
    const std::uint64_t flags = cursor.u64();
    const auto is_set = [&](unsigned flag) {
      return (flags >> (big_endian_ ? 63U - flag : flag) & 1U) != 0;  // a bit field of C
    };
    attribute.has_sample_id = is_set(flag_sample_id_all);
    description_.clock = "perf";
    if (is_set(flag_use_clockid) && own_size >= clockid_offset + 4) {
      Cursor clock(file_, offset + clockid_offset, file_.size(), big_endian_);
      description_.clock = clock_name(clock.u32());
    }
    cursor = Cursor(file_, offset + own_size, file_.size(), big_endian_);
    const Place identities{cursor.u64(), cursor.u64()};
    attributes_.push_back(attribute);
    read_identities(identities, attributes_.size() - 1);
  }
}

void TracePerf::read_identities(const Place& identities, std::size_t attribute) {
  const std::uint64_t count = identities.size / sizeof(std::uint64_t);
  if (count > most_identities - attribute_by_id_.size() || identities.offset > file_.size()) {
    throw Damage(identities.offset, "the list of its events' numbers is impossible");
  }
  Cursor cursor(file_, identities.offset, file_.size(), big_endian_);
  for (std::uint64_t i = 0; i < count; ++i) {
    attribute_by_id_.insert_or_assign(cursor.u64(), attribute);
  }
}

/// Throws `probe::Failure` if samples cannot be told apart, or lack what is needed.
void TracePerf::check_attributes() const {
  const auto is_tracepoint = [](const Attribute& each) { return each.type == type_tracepoint; };
  if (std::ranges::none_of(attributes_, is_tracepoint)) {
    throw probe::Failure(std::string("holds no tracepoints, only counted or timed samples; ") +
                         record_remedy);
  }
  std::uint64_t of_all = std::numeric_limits<std::uint64_t>::max();
  bool is_uniform = true;
  for (const Attribute& each : attributes_) {
    of_all &= each.sample_type;
    is_uniform = is_uniform && each.sample_type == attributes_.front().sample_type &&
                 each.read_format == attributes_.front().read_format;
    const std::uint64_t needed = sample_time | sample_cpu | sample_raw;
    if (is_tracepoint(each) && (each.sample_type & needed) != needed) {
      throw probe::Failure(std::string("has samples without time, CPU or content; ") +
                           record_remedy);
    }
  }
  const bool has_id = is_uniform && (of_all & sample_id) != 0;
  if ((of_all & sample_identifier) == 0 && !has_id && attributes_.size() > 1) {
    throw probe::Failure(std::string("does not tell which event a sample is of; ") + record_remedy);
  }
}

/// Behind the data stands a list of places of further parts, one for each bit that is set.
void TracePerf::read_features(const std::array<std::uint64_t, 4>& features) {
  if (((features[0] >> feature_tracing_data) & 1U) == 0) return;
  if (data_.offset > file_.size() || data_.size > file_.size() - data_.offset) {
    throw Damage(file_.size(), "the file ends at byte " + std::to_string(file_.size()));
  }
  // Bit 0 means nothing, and has no place.
  Cursor cursor(file_, data_.offset + data_.size, file_.size(), big_endian_);
  read_tracing_data({cursor.u64(), cursor.u64()});
}

/// The same as the beginning of a trace.dat of version 6, but for what stands between.
void TracePerf::read_tracing_data(const Place& place) {
  constexpr std::uint64_t magic_size = 10;
  if (place.offset > file_.size() || place.size > file_.size() - place.offset) {
    throw Damage(place.offset, "the formats of its events are missing");
  }
  Cursor cursor(file_, place.offset, place.offset + place.size, big_endian_);
  cursor.skip(magic_size);
  const std::string version = cursor.string(16);
  cursor.skip(2 + 4);  // byte order, size of long, size of pages
  for (int part = 0; part < 2; ++part) {
    cursor.string(32);  // header_page, header_event
    cursor.skip(cursor.u64());
  }
  events_.read_formats(cursor);
  events_.read_systems(cursor);
  cursor.skip(cursor.u32());  // symbols, which perf leaves out
  cursor.skip(cursor.u32());  // formats of trace_printk
  if (version >= "0.6" && cursor.left() > 0) events_.read_command_lines(cursor);
}

std::span<const std::uint8_t> TracePerf::bytes(std::uint64_t offset, std::uint64_t size) {
  const bool is_there = offset >= window_offset_ && offset - window_offset_ <= window_.size() &&
                        size <= window_.size() - (offset - window_offset_);
  if (!is_there) {
    const std::uint64_t left = offset < file_.size() ? file_.size() - offset : 0;
    window_.resize(std::min(left, std::max(size, window_size)));
    window_offset_ = offset;
    if (size > left) throw Damage(offset, "a record ends behind the file's end");
    file_.read(offset, window_);
  }
  return std::span(window_).subspan(offset - window_offset_, size);
}

void TracePerf::read(Consumer& consumer) {
  std::uint64_t offset = data_.offset;
  const std::uint64_t end = data_.offset + data_.size;
  std::uint64_t newest = 0;  // of the records until now
  std::uint64_t of_last_round = 0;
  try {
    while (!attributes_.empty() && offset < end) {
      Words header(bytes(offset, record_header_size), big_endian_);
      const std::uint32_t type = header.u32();
      const std::uint64_t size = header.u32() >> (big_endian_ ? 0U : 16U) & 0xffffU;
      if (size < record_header_size) throw Damage(offset, "a record's size is impossible");
      const auto body = bytes(offset, size).subspan(record_header_size);
      if (type == record_compressed || type == record_compressed_2) {
        throw probe::Failure("is compressed (perf record -z); record without -z");
      }
      if (type == record_finished_round) {
        deliver_until(std::exchange(of_last_round, newest), consumer);
      } else if (type == record_sample || type == record_comm || type == record_lost ||
                 type == record_lost_samples) {
        newest = std::max(newest, keep(type, body, offset));
      }
      const std::uint64_t data_behind =
          type == record_auxtrace ? Words(body, big_endian_).u64() : 0;
      if (data_behind > end - offset) throw Damage(offset, "a record's size is impossible");
      offset += size + data_behind;
    }
  } catch (const Damage& damage) {
    description_.damaged("byte " + std::to_string(damage.offset()) + ": " + damage.what());
  }
  deliver_until(std::numeric_limits<std::uint64_t>::max(), consumer);
}

/// Returns the record's time.
std::uint64_t TracePerf::keep(std::uint32_t type, std::span<const std::uint8_t> body,
                              std::uint64_t place) {
  budget_.hold(body.size() + size_of_pending, place);
  const std::uint64_t t_ns = time_of(type, body);
  pending_.push({t_ns, numbered_++, type, {body.begin(), body.end()}});
  return t_ns;
}

/// perf writes what lies in the CPUs' buffers in rounds. What is older than the newest of the round
/// before the last one cannot come any more.
void TracePerf::deliver_until(std::uint64_t t_ns, Consumer& consumer) {
  while (!pending_.empty() && pending_.top().t_ns <= t_ns) {
    const Pending record = pending_.top();
    pending_.pop();
    budget_.release(record.body.size() + size_of_pending);
    deliver(record, consumer);
  }
}

void TracePerf::deliver(const Pending& record, Consumer& consumer) {
  if (record.type == record_sample) {
    deliver_sample(record.body, consumer);
  } else if (record.type == record_comm) {
    Words words(record.body, big_endian_);
    words.u32();  // of the process
    const auto pid = static_cast<int>(words.u32());
    const auto name = std::span(record.body).subspan(std::min<std::size_t>(8, record.body.size()));
    events_.name_thread(pid, {reinterpret_cast<const char*>(name.data()),
                              static_cast<std::size_t>(std::ranges::find(name, 0) - name.begin())});
  } else {
    deliver_lost(record, consumer);
  }
}

void TracePerf::deliver_lost(const Pending& record, Consumer& consumer) const {
  Words words(record.body, big_endian_);
  if (record.type == record_lost) words.u64();  // of which event
  const std::uint64_t count = words.u64();
  const auto cpu = behind(record.body, sample_cpu);
  consumer.lost(cpu ? static_cast<int>(static_cast<std::uint32_t>(*cpu)) : -1, count);
}

void TracePerf::deliver_sample(std::span<const std::uint8_t> body, Consumer& consumer) {
  const Attribute* const attribute = attribute_of(body);
  if (attribute == nullptr || attribute->type != type_tracepoint) return;
  const auto sample = sample_of(*attribute, body);
  if (!sample) {
    description_.damaged("a sample is shorter than its fields");
    return;
  }
  BinaryFields fields(big_endian_);
  Event event = events_.decode(sample->raw, fields);
  event.t_ns = static_cast<std::int64_t>(sample->t_ns);
  event.cpu = sample->cpu;
  consumer.event(event);
}

const TracePerf::Attribute* TracePerf::attribute_of(std::span<const std::uint8_t> body) const {
  const std::uint64_t type = attributes_.front().sample_type;
  if (attributes_.size() == 1) return &attributes_.front();
  Words words(body, big_endian_);
  if ((type & sample_identifier) == 0) {
    for (const std::uint64_t field : {sample_ip, sample_tid, sample_time, sample_addr}) {
      if ((type & field) != 0) words.u64();
    }
  }
  const auto found = attribute_by_id_.find(words.u64());
  return found == attribute_by_id_.end() ? nullptr : &attributes_[found->second];
}

std::optional<TracePerf::Sample> TracePerf::sample_of(const Attribute& attribute,
                                                      std::span<const std::uint8_t> body) const {
  constexpr std::uint64_t read_group = 8;
  Words words(body, big_endian_);
  Sample sample;
  const auto has = [&](std::uint64_t field) { return (attribute.sample_type & field) != 0; };
  if (has(sample_identifier)) words.u64();
  if (has(sample_ip)) words.u64();
  if (has(sample_tid)) words.u64();
  if (has(sample_time)) sample.t_ns = words.u64();
  for (const std::uint64_t field : {sample_addr, sample_id, sample_stream_id}) {
    if (has(field)) words.u64();
  }
  if (has(sample_cpu)) {
    sample.cpu = static_cast<int>(words.u32() & 0x7fffffffU);
    words.u32();
  }
  if (has(sample_period)) words.u64();
  if (has(sample_read)) {  // a value, times that are asked for, and number and lost ones of each
    const std::uint64_t format = attribute.read_format;
    const std::uint64_t times = (format & 1U) + (format >> 1U & 1U);
    const std::uint64_t each = 1 + (format >> 2U & 1U) + (format >> 4U & 1U);
    const std::uint64_t members = (format & read_group) != 0 ? words.u64() : 1;
    words.take(std::min<std::uint64_t>(times + members * each, body.size()) * 8);
  }
  if (has(sample_callchain)) {
    words.take(std::min<std::uint64_t>(words.u64(), body.size()) * 8);
  }
  sample.raw = words.take(words.u32());
  return words.is_cut() ? std::nullopt : std::optional(sample);
}

/// Behind what is not a sample stand its thread, time, numbers and CPU, as far as samples have
/// them.
std::optional<std::uint64_t> TracePerf::behind(std::span<const std::uint8_t> body,
                                               std::uint64_t field) const {
  const Attribute& attribute = attributes_.front();
  if (!attribute.has_sample_id || (attribute.sample_type & field) == 0) return {};
  std::size_t from_end = 0;
  for (const std::uint64_t each :
       {sample_identifier, sample_cpu, sample_stream_id, sample_id, sample_time}) {
    from_end += (attribute.sample_type & each) != 0 ? 8 : 0;
    if (each == field) break;
  }
  if (from_end > body.size()) return {};
  return number_of(body.subspan(body.size() - from_end, field == sample_cpu ? 4 : 8), big_endian_);
}

std::uint64_t TracePerf::time_of(std::uint32_t type, std::span<const std::uint8_t> body) const {
  if (type != record_sample) return behind(body, sample_time).value_or(0);
  const Attribute* const attribute = attribute_of(body);
  if (attribute == nullptr) return 0;
  const auto sample = sample_of(*attribute, body);
  return sample ? sample->t_ns : 0;
}

}  // namespace latenz::trace
