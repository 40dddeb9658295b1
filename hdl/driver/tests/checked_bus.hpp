// SPDX-License-Identifier: Apache-2.0
// A bus that knows which registers an IP has, and counts the accesses that would be bus errors.
#pragma once

#include <cstdint>
#include <map>

#include "latenz/ip/latencies.hpp"

namespace latenz::ip {

struct CheckedBus {
  Configuration configuration;
  std::map<std::uint32_t, std::uint32_t> words;
  unsigned reads = 0;
  unsigned writes = 0;
  unsigned bus_errors = 0;
};

/// S01 of that IP.
class CheckedRegisters {
 public:
  explicit CheckedRegisters(CheckedBus& bus) : bus_(&bus) {}

  std::uint32_t read(std::uint32_t offset) {
    ++bus_->reads;
    if (!bus_->configuration.has_register(offset)) ++bus_->bus_errors;
    return bus_->words[offset];
  }

  void write(std::uint32_t offset, std::uint32_t value) {
    ++bus_->writes;
    if (!bus_->configuration.is_writable(offset)) ++bus_->bus_errors;
    bus_->words[offset] = value;
  }

 private:
  CheckedBus* bus_;
};

/// S00 of that IP: what is read is the offset.
class CheckedMemory {
 public:
  explicit CheckedMemory(CheckedBus& bus) : bus_(&bus) {}

  std::uint32_t read(std::uint32_t offset) {
    ++bus_->reads;
    if (!bus_->configuration.has_sample_word(offset)) ++bus_->bus_errors;
    return offset;
  }

 private:
  CheckedBus* bus_;
};

using CheckedIp = Latencies<CheckedRegisters, CheckedMemory>;

inline CheckedIp checked_ip(CheckedBus& bus, const Configuration& configuration) {
  return {CheckedRegisters(bus), CheckedMemory(bus), configuration};
}

}  // namespace latenz::ip
