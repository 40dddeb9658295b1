// SPDX-License-Identifier: Apache-2.0
#include "findings.hpp"

#include <array>

namespace latenz::coherence {
namespace {

constexpr std::array readings{"load", "walk", "fetch"};
constexpr std::array causes{"none",      "dirty",      "stale",     "overwritten",
                            "discarded", "incomplete", "uncleaned", "instructions"};

unsigned long long wide(std::uint64_t value) { return value; }

}  // namespace

bool Findings::open(const char* path) {
  file_ = std::fopen(path, "we");
  return file_ != nullptr;
}

void Findings::begin(const char* target, int cores) {
  (void)std::fprintf(file_, "latenz-coherence 1 %s %d\n", target, cores);
  (void)std::fflush(file_);
}

void Findings::end(std::uint64_t accesses, std::uint64_t maintenance) {
  (void)std::fprintf(file_, "end %llu %llu\n", wide(accesses), wide(maintenance));
  (void)std::fflush(file_);
}

Site* Findings::add(std::uint64_t address, unsigned level) {
  auto* site = new Site{.address = address,
                        .number = static_cast<std::uint32_t>(sites_.size()),
                        .level = static_cast<std::uint8_t>(level)};
  sites_.push_back(site);
  return site;
}

std::string Findings::told(Place place) const {
  const Site* site = sites_.at(place >> 3U);
  if (site == nullptr) return "-";
  std::array<char, 40> text{};
  (void)std::snprintf(text.data(), text.size(), "%u:%u:%llx", place & 7U, unsigned{site->level},
                      wide(site->address));
  return text.data();
}

void Findings::add(const Finding& finding, std::int64_t time_ns) {
  if (known_.size() >= most) return;
  const bool walk = finding.reading == Reading::walk;
  const std::string reader = told(finding.by);
  const std::string writer = told(finding.hazard.by);
  const std::string where = walk ? std::to_string(finding.physical >> 12U) : reader;
  const std::string key = std::to_string(static_cast<int>(finding.reading) * 16 +
                                         static_cast<int>(finding.hazard.cause));
  if (!known_.insert(key + '@' + where + '<' + writer).second) return;
  (void)std::fprintf(file_, "found %s %s %llx %llx %lld %s %s\n",
                     readings.at(static_cast<std::size_t>(finding.reading)),
                     causes.at(static_cast<std::size_t>(finding.hazard.cause)),
                     wide(finding.physical), wide(finding.address), static_cast<long long>(time_ns),
                     reader.c_str(), writer.c_str());
  (void)std::fflush(file_);
  if (known_.size() == most) note("no more is written down: that is more than anybody reads");
}

void Findings::note(const std::string& text) {
  (void)std::fprintf(file_, "note %s\n", text.c_str());
  (void)std::fflush(file_);
}

}  // namespace latenz::coherence
