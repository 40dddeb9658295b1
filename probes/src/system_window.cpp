// SPDX-License-Identifier: Apache-2.0
#include "system_window.hpp"
#include "text.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <charconv>

namespace latenz::probe {
namespace {

constexpr off_t smi_count_register = 0x34;  // MSR_SMI_COUNT, Intel SDM volume 4

bool is_intel() {
  Text file = Text::of_file("/proc/cpuinfo");
  std::string line;
  while (file.line(line)) {
    if (line.starts_with("vendor_id")) {
      return line.ends_with("GenuineIntel");
    }
  }
  return false;
}

std::optional<std::uint64_t> read_smi_count(const File& msr) {
  std::uint64_t count = 0;
  if (pread(msr.descriptor(), &count, sizeof count, smi_count_register) != sizeof count) {
    return std::nullopt;
  }
  return count & 0xFFFFFFFFU;
}

/// Name and counts of one line such as " 24:  1  0  IO-APIC  5-edge  ttyS0".
std::pair<std::string, std::vector<std::uint64_t>> parse_interrupt_line(const std::string& line,
                                                                        std::size_t columns) {
  Text words(line);
  std::string name;
  words >> name;
  if (!name.empty() && name.back() == ':') {
    name.pop_back();
  }
  std::vector<std::uint64_t> counts;
  for (std::uint64_t count = 0; counts.size() < columns && words >> count;) {
    counts.push_back(count);
  }
  words.clear();
  std::string device;
  for (std::string word; words >> word;) {
    device = word;
  }
  const bool numbered = !name.empty() && name.front() >= '0' && name.front() <= '9';
  return {numbered && !device.empty() ? name + ":" + device : name, std::move(counts)};
}

/// CPU numbers of the header line "   CPU0   CPU2".
std::vector<std::size_t> parse_cpu_columns(const std::string& header) {
  Text words(header);
  std::vector<std::size_t> cpus;
  for (std::string word; words >> word && word.starts_with("CPU");) {
    std::size_t cpu = 0;
    const auto read = std::from_chars(word.data() + 3, word.data() + word.size(), cpu);
    if (read.ec != std::errc{} || cpu >= CPU_SETSIZE) {
      break;
    }
    cpus.push_back(cpu);
  }
  return cpus;
}

template <typename Value>
void put(std::vector<Value>& values, std::size_t place, Value value) {
  if (values.size() <= place) {
    values.resize(place + 1);
  }
  values[place] = value;
}

}  // namespace

std::vector<std::int64_t> parse_steal_ns(const std::string& stat, std::int64_t tick_ns) {
  std::vector<std::int64_t> steal_ns;
  Text lines(stat);
  for (std::string line; lines.line(line) && line.starts_with("cpu");) {
    Text words(line.substr(3));
    std::size_t cpu = 0;
    std::int64_t ticks = 0;
    if (line[3] == ' ' || !(words >> cpu) || cpu >= CPU_SETSIZE) {
      continue;  // the sum over all CPUs
    }
    constexpr int steal_column = 8;  // user nice system idle iowait irq softirq steal
    for (int column = 0; column < steal_column && words >> ticks; ++column) {
    }
    put(steal_ns, cpu, ticks * tick_ns);
  }
  return steal_ns;
}

std::map<std::string, std::vector<std::uint64_t>> parse_interrupts(const std::string& text) {
  std::map<std::string, std::vector<std::uint64_t>> interrupts;
  Text lines(text);
  std::string line;
  lines.line(line);
  const auto cpus = parse_cpu_columns(line);
  while (!cpus.empty() && lines.line(line)) {
    const auto [name, counts] = parse_interrupt_line(line, cpus.size());
    if (counts.size() != cpus.size()) {
      continue;  // ERR and MIS count for the machine, not for a CPU
    }
    for (std::size_t i = 0; i < cpus.size(); ++i) {
      put(interrupts[name], cpus[i], counts[i]);
    }
  }
  return interrupts;
}

SystemReader::SystemReader(const std::vector<unsigned>& cpus, bool with_interrupts)
    : stat_(File::open("/proc/stat", O_RDONLY)),
      interrupts_(with_interrupts ? File::open("/proc/interrupts", O_RDONLY) : File()),
      tick_ns_(1'000'000'000 / sysconf(_SC_CLK_TCK)) {
  if (!is_intel()) {
    return;
  }
  for (const unsigned cpu : cpus) {
    File msr = File::open("/dev/cpu/" + std::to_string(cpu) + "/msr", O_RDONLY);
    if (msr.is_open()) {
      msrs_[cpu] = std::move(msr);
    }
  }
}

SystemReading SystemReader::read(std::int64_t now_ns) {
  SystemReading reading;
  reading.taken_ns = now_ns;
  if (stat_.is_open() && read_again(stat_, text_)) {
    reading.steal_ns = parse_steal_ns(text_, tick_ns_);
  }
  if (interrupts_.is_open() && read_again(interrupts_, text_)) {
    reading.interrupts = parse_interrupts(text_);
  }
  for (const auto& [cpu, msr] : msrs_) {
    put(reading.smis, cpu, read_smi_count(msr));
  }
  return reading;
}

std::optional<std::int64_t> SystemReader::frequency_khz(unsigned cpu) {
  Text file = Text::of_file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                            "/cpufreq/scaling_cur_freq");
  std::int64_t khz = 0;
  return file >> khz ? std::optional(khz) : std::nullopt;
}

std::string SystemReader::interrupt_name(std::uint64_t number) {
  const std::string name = std::to_string(number);
  Text file = Text::of_file("/sys/kernel/irq/" + name + "/actions");
  std::string actions;
  return file >> actions ? name + ":" + actions : name;
}

}  // namespace latenz::probe
