// SPDX-License-Identifier: Apache-2.0
#include "tracing.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>

#include "failure.hpp"
#include "text.hpp"

namespace latenz::probe {
namespace {

File open_to_write(const std::filesystem::path& path) {
  File file = File::open(path, O_WRONLY);
  if (!file.is_open()) {
    const std::string reason = std::strerror(errno);
    throw Failure(errno == EACCES || errno == EPERM
                      ? path.string() + ": " + reason + "; run as root"
                      : path.string() + ": " + reason + "; this kernel or instance lacks it");
  }
  return file;
}

void append(std::span<char> text, std::size_t& length, std::string_view words) {
  std::ranges::copy(words.substr(0, text.size() - length),
                    text.begin() + static_cast<long>(length));
  length += std::min(words.size(), text.size() - length);
}

void append(std::span<char> text, std::size_t& length, std::int64_t number) {
  const char* const end =
      std::to_chars(text.data() + length, text.data() + text.size(), number).ptr;
  length = static_cast<std::size_t>(end - text.data());
}

void write_all(const File& file, std::string_view text) {
  // Nothing better can be done in a real-time thread if the trace refuses.
  [[maybe_unused]] const ssize_t ignored = write(file.descriptor(), text.data(), text.size());
}

}  // namespace

std::filesystem::path find_tracefs(const std::string& option) {
  Text mounts = Text::of_file("/proc/self/mounts");
  for (std::string line; mounts.line(line);) {
    Text words(line);
    std::string device;
    std::string place;
    std::string type;
    if (words >> device >> place >> type && type == "tracefs") {
      return place;
    }
  }
  throw Failure(option +
                ": tracefs is not mounted; run: mount -t tracefs tracefs /sys/kernel/tracing");
}

TraceStopper::TraceStopper(const std::string& instance, bool with_snapshot) {
  std::filesystem::path folder = find_tracefs("--break-above");
  if (!instance.empty()) {
    folder /= std::filesystem::path("instances") / instance;
    if (!std::filesystem::is_directory(folder)) {
      throw Failure("--trace-instance: " + folder.string() +
                    " does not exist; create it with mkdir");
    }
  }
  marker_ = open_to_write(folder / "trace_marker");
  tracing_on_ = open_to_write(folder / "tracing_on");
  if (with_snapshot) {
    snapshot_ = open_to_write(folder / "snapshot");
  }
}

void TraceStopper::stop(unsigned cpu, std::int64_t latency_ns) const {
  if (!marker_.is_open()) {
    return;
  }
  std::array<char, 128> text{};
  std::size_t length = 0;
  append(text, length, "latenz-wakeup: CPU ");
  append(text, length, static_cast<std::int64_t>(cpu));
  append(text, length, " woke ");
  append(text, length, latency_ns);
  append(text, length, " ns late\n");
  write_all(marker_, {text.data(), length});
  write_all(tracing_on_, "0");
  if (snapshot_.is_open()) {
    write_all(snapshot_, "1");
  }
}

}  // namespace latenz::probe
