// SPDX-License-Identifier: Apache-2.0
#include "ip_bridge_board.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "failure.hpp"
#include "file.hpp"
#include "json.hpp"
#include "latenz/ip/registers/random_data_generator.hpp"
#include "latenz/ip/registers/stream_ring_writer.hpp"
#include "wording.hpp"

namespace latenz::probe {
namespace {

namespace fs = std::filesystem;
namespace generator_registers = ip::registers::random_data_generator;
namespace writer_registers = ip::registers::stream_ring_writer;

constexpr std::string_view prefix = "latencies-ip-";
constexpr std::string_view generator_name = "latenz-random-data-generator";
constexpr std::size_t word_bytes = 4;
constexpr std::size_t largest_map = std::size_t{16} << 20U;
constexpr std::size_t most_windows = 255;
constexpr std::size_t record_bytes = 16;
constexpr std::string_view ring_map = "ring";
constexpr std::string_view writer_map = "ring-writer";

std::optional<std::string> text_of(const fs::path& path) {
  const File file = File::open(path, O_RDONLY);
  std::string text;
  if (!file.is_open() || !read_again(file, text)) return std::nullopt;
  return text;
}

/// Without the line end of sysfs and the zero of a device tree's strings.
std::string stripped(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

std::string map_folder(unsigned number) { return worded("map", number); }

/// A number that sysfs tells as 0x and hexadecimal digits.
std::size_t hex_of(const fs::path& path) {
  const std::string text = stripped(text_of(path).value_or(""));
  std::size_t number = 0;
  const char* const digits = text.data() + (text.starts_with("0x") ? 2 : 0);
  const auto [end, error] = std::from_chars(digits, text.data() + text.size(), number, 16);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Failure(worded(path.string(), ": holds no hexadecimal number; is this a UIO device?"));
  }
  return number;
}

using Devices = std::map<std::string, UioDevice, std::less<>>;

/// Our UIO devices by their name.
Devices uio_devices(const fs::path& root) {
  Devices devices;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "sys/class/uio", none)) {
    const std::string name = stripped(text_of(entry.path() / "name").value_or(""));
    const UioDevice device{.device = root / "dev" / entry.path().filename(),
                           .folder = entry.path()};
    const bool ours = name.starts_with(prefix) || name == generator_name;
    if (ours && !devices.emplace(name, device).second) {
      throw Failure(worded(entry.path().string(), ": a second device named ", name,
                           "; give each its own name in the device tree"));
    }
  }
  return devices;
}

/// What is found at an IP's registers. The device tree says whether it has additions: asking an IP
/// that has none is a bus error.
ip::Configuration configuration_of(const UioDevice& uio, const MappedDevice& device) {
  if (!uio.property("latenz,extended")) return ip::Configuration::published();
  struct Reads {
    const MappedDevice& device;
    [[nodiscard]] std::uint32_t read(std::uint32_t offset) const {
      return device.read(offset).value_or(0);
    }
  } reads{device};
  const auto found = device.size() < 0x100 ? std::nullopt : ip::Configuration::read(reads);
  if (!found) {
    throw Failure(worded(uio.folder.string(),
                         ": no Latencies IP with additions answers; is the logic loaded, and the "
                         "device tree's latenz,extended right?"));
  }
  return *found;
}

/// A 32-bit number of a device tree: big endian.
std::optional<std::uint32_t> cell(const std::optional<std::string>& property) {
  if (!property || property->size() != word_bytes) return std::nullopt;
  std::uint32_t number = 0;
  for (const char byte : *property) number = number << 8U | static_cast<unsigned char>(byte);
  return number;
}

std::uint32_t clock_of(const UioDevice& registers, const ip::Configuration& configuration) {
  const std::uint32_t clock_hz =
      configuration.extended ? configuration.clock_frequency_hz
                             : cell(registers.property("latenz,clock-frequency-hz")).value_or(0);
  if (clock_hz == 0) {
    throw Failure(worded(registers.folder.string(),
                         ": no clock frequency; the device tree's node needs "
                         "latenz,clock-frequency-hz = <hertz>"));
  }
  return clock_hz;
}

/// What people call it: the device tree's label, else what its name ends with, in capitals.
std::string shown_name(const std::string& name, const UioDevice& uio) {
  if (const auto label = uio.property("label")) return stripped(*label);
  std::string shown = name.substr(prefix.size());
  std::ranges::transform(shown, shown.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  return shown;
}

/// The ring behind an IP, whose device then has a map of the memory, and one of its writer.
std::optional<RingPlace> ring_of(const UioDevice& uio) {
  const auto number = uio.map_named(ring_map);
  if (!number) return std::nullopt;
  const fs::path path = uio.folder / "maps" / map_folder(*number);
  const std::size_t size = hex_of(path / "size");
  if (!std::has_single_bit(size) || size < record_bytes || hex_of(path / "offset") != 0 ||
      !uio.map_named(writer_map)) {
    throw Failure(worded(path.string(), ": ", size, " bytes are no ring; wanted: a power of two, ",
                         "from the beginning of a page on, and a map named ", writer_map));
  }
  return RingPlace{.base = hex_of(path / "addr"),
                   .size_log2 = static_cast<std::uint32_t>(std::countr_zero(size / record_bytes))};
}

}  // namespace

std::optional<unsigned> UioDevice::map_named(std::string_view name) const {
  std::optional<unsigned> found;
  for (unsigned any = 0; fs::exists(folder / "maps" / map_folder(any)); ++any) {
    const auto named = text_of(folder / "maps" / map_folder(any) / "name");
    if (named && stripped(*named) == name) found = any;
  }
  return found;
}

MappedDevice UioDevice::map(std::string_view name, unsigned number) const {
  number = map_named(name).value_or(number);
  const fs::path path = folder / "maps" / map_folder(number);
  const std::size_t size = hex_of(path / "size");
  const std::size_t offset = hex_of(path / "offset");
  if (size == 0 || size > largest_map || size % word_bytes != 0 || offset % word_bytes != 0 ||
      offset >= largest_map) {
    throw Failure(worded(path.string(), ": ", size, " bytes from ", offset,
                         "; wanted: whole words, at most ", largest_map, " bytes"));
  }
  return {device, {.number = number, .size = size, .offset = offset}};
}

std::optional<std::string> UioDevice::property(std::string_view name) const {
  return text_of(folder / "device/of_node" / name);
}

BridgeResponse BridgeWindow::answer(const BridgeRequest& request) const {
  const std::uint64_t end =
      std::uint64_t{request.argument} + std::uint64_t{request.count} * word_bytes;
  if (request.count == 0 || request.argument % word_bytes != 0 || end > device_.size()) {
    return {.status = BridgeStatus::refused, .words = {}};
  }
  const bool writes = request.operation == static_cast<std::uint8_t>(BridgeOperation::write);
  return writes ? write(request) : read(request);
}

BridgeResponse BridgeWindow::read(const BridgeRequest& request) const {
  BridgeResponse response;
  response.words.reserve(request.count);
  for (std::uint32_t i = 0; i < request.count; ++i) {
    const auto offset = static_cast<std::uint32_t>(request.argument + i * word_bytes);
    const auto word = may_read(offset) ? device_.read(offset) : std::nullopt;
    if (!word) {
      response.status = BridgeStatus::slave_error;
      response.failed_at = i;
      break;
    }
    response.words.push_back(*word);
  }
  return response;
}

BridgeResponse BridgeWindow::write(const BridgeRequest& request) const {
  for (std::uint32_t i = 0; i < request.count; ++i) {
    const auto offset = static_cast<std::uint32_t>(request.argument + i * word_bytes);
    if (!may_write(offset, request.words[i]) || !device_.write(offset, request.words[i])) {
      return {.status = BridgeStatus::slave_error, .failed_at = i, .words = {}};
    }
  }
  return {};
}

bool BridgeWindow::may_read(std::uint32_t offset) const {
  switch (kind_) {
    case Kind::registers:
      return configuration_.has_register(offset);
    case Kind::samples:  // how deep an IP without additions is, only the bus knows
      return !configuration_.extended || configuration_.has_sample_word(offset);
    case Kind::generator:
      return offset <= generator_registers::requests_offset;
    case Kind::ring_writer:
      return offset <= writer_registers::threshold_offset;
    case Kind::ring:
      return true;
  }
  return false;
}

bool BridgeWindow::may_write(std::uint32_t offset, std::uint32_t word) const {
  switch (kind_) {
    case Kind::registers:
      return configuration_.is_writable(offset);
    case Kind::samples:
    case Kind::ring:
      return false;
    case Kind::ring_writer:
      return may_write_ring_writer(offset, word);
    case Kind::generator:
      return offset == generator_registers::seed_offset ||
             offset == generator_registers::words_offset;
  }
  return false;
}

/// Whoever is connected cannot let the logic write elsewhere than into its ring: the place is
/// written only as it is, while nothing is taken, and nothing is taken before it is right.
bool BridgeWindow::may_write_ring_writer(std::uint32_t offset, std::uint32_t word) const {
  const std::array<std::pair<std::uint32_t, std::uint32_t>, 3> place{{
      {writer_registers::base_low_offset, static_cast<std::uint32_t>(ring_.base)},
      {writer_registers::base_high_offset, static_cast<std::uint32_t>(ring_.base >> 32U)},
      {writer_registers::size_log2_offset, ring_.size_log2},
  }};
  if (offset == writer_registers::consumed_offset || offset == writer_registers::status_offset) {
    return true;
  }
  if (offset == writer_registers::enable_offset) {
    return word == 0 || std::ranges::all_of(place, [this](const auto& each) {
             return device_.read(each.first) == each.second;
           });
  }
  return std::ranges::any_of(place,
                             [&](const auto& each) { return each == std::pair(offset, word); }) &&
         device_.read(writer_registers::enable_offset) == 0U;
}

BridgeBoard::BridgeBoard(const fs::path& root) {
  const auto devices = uio_devices(root);
  Json json;
  json.open_object();
  json.member("board",
              stripped(text_of(root / "proc/device-tree/model").value_or("unknown board")));
  json.member("time_base", "silicon");
  json.key("instances").open_array();
  for (const auto& [name, uio] : devices) {
    if (!name.starts_with(prefix)) continue;
    MappedDevice registers = uio.map("s01", 1);
    const ip::Configuration configuration = configuration_of(uio, registers);
    const std::uint32_t clock_hz = clock_of(uio, configuration);
    if (clock_hz_ != 0 && clock_hz_ != clock_hz) {
      throw Failure(worded(uio.folder.string(), ": a clock of ", clock_hz, " Hz, and another of ",
                           clock_hz_, " Hz; the IPs of one bridge share one clock"));
    }
    clock_hz_ = clock_hz;
    const auto event = [&](std::string_view property, std::string_view usual) {
      return stripped(uio.property(property).value_or(std::string(usual)));
    };
    json.open_object();
    json.member("name", shown_name(name, uio));
    json.member("s00", add(uio.map("s00", 0), BridgeWindow::Kind::samples, configuration));
    json.member("s01", add(std::move(registers), BridgeWindow::Kind::registers, configuration));
    json.member("published", !configuration.extended);
    json.member("from_event", event("latenz,from-event", "irq_in"));
    json.member("to_event", event("latenz,to-event", "ack_in"));
    if (const auto ring = ring_of(uio)) {
      using Kind = BridgeWindow::Kind;
      json.key("ring").open_object();
      json.member("registers", add(uio.map(writer_map, 0), Kind::ring_writer, {}, *ring));
      json.member("memory", add(uio.map(ring_map, 0), Kind::ring, {}, *ring));
      json.member("base", ring->base);
      json.member("size_log2", ring->size_log2);
      json.close_object();
    }
    json.close_object();
  }
  json.close_array();
  if (windows_.empty()) {
    throw Failure(
        worded((root / "sys/class/uio").string(),
               ": no device named latencies-ip-NAME; load the device-tree overlay, and the "
               "module uio_pdrv_genirq with of_id=generic-uio"));
  }
  json.member("clock_hz", clock_hz_);
  const auto generator = devices.find(generator_name);
  json.key("generator");
  if (generator == devices.end()) {
    json.null();
  } else {
    json.value(add(generator->second.map("registers", 0), BridgeWindow::Kind::generator, {}));
  }
  json.close_object();
  description_ = json.text();
}

std::size_t BridgeBoard::add(MappedDevice device, BridgeWindow::Kind kind,
                             const ip::Configuration& configuration, const RingPlace& ring) {
  if (windows_.size() == most_windows) {
    throw Failure(worded("/sys/class/uio: more devices of ours than ", most_windows));
  }
  windows_.emplace_back(std::move(device), kind, configuration, ring);
  return windows_.size() - 1;
}

bool BridgeBoard::is_change(const BridgeRequest& request) const {
  const auto operation = static_cast<BridgeOperation>(request.operation);
  return operation == BridgeOperation::write ||
         (operation == BridgeOperation::read && request.window < windows_.size() &&
          windows_[request.window].loses_data_when_read());
}

std::int64_t BridgeBoard::wait_ns(const BridgeRequest& request) const {
  if (static_cast<BridgeOperation>(request.operation) != BridgeOperation::wait) return 0;
  return static_cast<std::int64_t>(std::uint64_t{request.argument} * 1'000'000'000U / clock_hz_);
}

std::vector<std::byte> BridgeBoard::answer(const BridgeRequest& request) const {
  switch (static_cast<BridgeOperation>(request.operation)) {
    case BridgeOperation::read:
    case BridgeOperation::write:
      if (request.window < windows_.size()) return windows_[request.window].answer(request).bytes();
      break;
    case BridgeOperation::wait:
      return BridgeResponse().bytes();
    case BridgeOperation::describe:
      return describe_response(description_);
    case BridgeOperation::challenge:
    case BridgeOperation::prove:
      break;
  }
  return BridgeResponse{.status = BridgeStatus::refused, .words = {}}.bytes();
}

}  // namespace latenz::probe
