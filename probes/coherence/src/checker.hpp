// SPDX-License-Identifier: Apache-2.0
// Follows every access, walk, fetch and maintenance of all cores, and tells what may read old data.
//
// The cores' caches are one: they are coherent with each other wherever both sides go through them.
// What is not modelled is in docs/coherence.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "core.hpp"
#include "findings.hpp"

namespace latenz::coherence {

/// What the checker asks of whoever runs the cores.
struct Emulator {
  ReadMemory read_memory;
  std::int64_t (*time_ns)();
  /// Reads the registers that decide about a core's translations; the core is the running one.
  void (*read_controls)(Core& core);
};

/// Where QEMU says that an access went.
struct Reached {
  bool known = false;  ///< false: nobody was asked
  bool device = false;
  std::uint64_t physical = 0;
};

class Checker {
 public:
  explicit Checker(const Emulator& emulator) : emulator_(emulator) {}

  /// Caches are empty at the beginning, as after power-on; otherwise they may hold old copies.
  void begin_empty() { inherited_ = false; }

  Findings& findings() { return findings_; }
  Core& core(unsigned number) { return cores_.at(number); }
  void end() { findings_.end(accesses_, maintenance_); }

  /// An instruction reads or writes; `reached` is called if the page was not known.
  template <typename Ask>
  void access(Core& core, const Site& site, std::uint64_t address, std::uint64_t size, bool store,
              Ask reached) {
    ++accesses_;
    const std::uint64_t within = line_size - (address % line_size);
    if (size > within) [[unlikely]] {
      // The emulator told of the first page only; a core without translation has none of two.
      const bool same_page = (address + within) % page_size != 0;
      const auto ask = [&] { return same_page || !core.is_a64 ? reached() : Reached{}; };
      access_line(core, site, address + within, size - within, store, ask);
      size = within;
    }
    access_line(core, site, address, size, store, reached);
  }

  /// An instruction maintains caches or translations; `argument` is its register's value.
  void maintain(Core& core, const Site& site, const Instruction& instruction,
                std::uint64_t argument);

  /// A core fetches instructions. Returns whether any were written by somebody that we saw, so that
  /// each core's own instruction cache matters.
  bool fetch(Core& core, const Site& site, std::uint64_t size);

 private:
  template <typename Ask>
  void access_line(Core& core, const Site& site, std::uint64_t address, std::uint64_t size,
                   bool store, Ask reached) {
    const TlbEntry& entry =
        core.is_a64 ? translated(core, site, address, reached) : untranslated(reached());
    if (entry.page == nullptr) return;
    touch(core, site, entry, address, size, store);
  }

  template <typename Ask>
  const TlbEntry& translated(Core& core, const Site& site, std::uint64_t address, Ask reached) {
    if (!core.controls_known) [[unlikely]]
      renew(core);
    const Regime regime = regime_at(site.level);
    TlbEntry& entry = entry_for(core, regime, address);
    if (entry.number != address >> page_bits ||
        entry.generation != core.generation[static_cast<std::size_t>(regime)]) [[unlikely]] {
      fill(core, site, address, reached(), entry);
    }
    return entry;
  }

  static Regime regime_at(unsigned level) {
    if (level == 3) return Regime::el3;
    return level == 2 ? Regime::el2 : Regime::el10;
  }
  static TlbEntry& entry_for(Core& core, Regime regime, std::uint64_t address) {
    return (*core.tlb[static_cast<std::size_t>(regime)])[(address >> page_bits) % Core::tlb_size];
  }

  const TlbEntry& untranslated(const Reached& reached);
  void fill(Core& core, const Site& site, std::uint64_t address, const Reached& reached,
            TlbEntry& entry);
  void renew(Core& core) const;
  void touch(Core& core, const Site& site, const TlbEntry& entry, std::uint64_t address,
             std::uint64_t size, bool store);
  void check_walk(Core& core, const Site& site, std::uint64_t address,
                  const Translation& translation);
  [[nodiscard]] Hazard read(Core& core, Line& line, Bytes bytes, bool cached);
  [[nodiscard]] Hazard unfinished_hazard(const Core& core, Line& line, Bytes bytes,
                                         bool cached) const;
  [[nodiscard]] bool is_mapped(const Page& page) const;
  bool fetch_line(Core& core, const Site& site, std::uint64_t address, Bytes bytes);
  void maintain_line(Core& core, const Site& site, Operation operation, std::uint64_t address);
  void maintain_sets(Core& core, const Site& site, Operation operation, std::uint64_t argument);
  void drop_translations(Core& core, const Instruction& instruction);
  static void remember(Core& core, Line& line);
  void complete(Core& core, bool everything);
  void complete_instructions(Core& core);
  Page& page_at(std::uint64_t address);
  void report(const Finding& finding);

  Emulator emulator_;
  Findings findings_;
  std::array<Core, most_cores> cores_{};
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  TlbEntry device_side_;   ///< of a core without translation
  std::uint32_t now_ = 1;  ///< counts maintenance
  std::uint32_t dropped_everywhere_ = 0;
  std::uint64_t accesses_ = 0;
  std::uint64_t maintenance_ = 0;
  bool inherited_ = true;
  bool disagreed_ = false;
};

}  // namespace latenz::coherence
