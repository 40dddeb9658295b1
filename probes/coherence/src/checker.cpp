// SPDX-License-Identifier: Apache-2.0
#include "checker.hpp"

#include <algorithm>
#include <string>

namespace latenz::coherence {
namespace {

constexpr std::uint64_t real_time_private = 0x10'0000;  // below: tightly coupled memory of the R5

std::size_t index(Regime regime) { return static_cast<std::size_t>(regime); }

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 20> text{};
  (void)std::snprintf(text.data(), text.size(), "%#llx", static_cast<unsigned long long>(value));
  return text.data();
}

/// Whether a change of controls ends what the old mappings could bring into caches; another TTBR0
/// alone is another process, and the rest stays mapped.
bool ends_mappings(const Controls& old, const Controls& now) {
  Controls same = old;
  same.ttbr0 = now.ttbr0;
  return same != now;
}

bool by_address(Operation operation) {
  return operation == Operation::clean || operation == Operation::clean_to_instructions ||
         operation == Operation::invalidate || operation == Operation::clean_and_invalidate ||
         operation == Operation::invalidate_instruction;
}

bool by_set(Operation operation) {
  return operation == Operation::invalidate_set || operation == Operation::clean_set ||
         operation == Operation::clean_invalidate_set;
}

}  // namespace

Page& Checker::page_at(std::uint64_t address) {
  std::unique_ptr<Page>& page = pages_[address >> page_bits];
  if (page == nullptr) {
    page = std::make_unique<Page>();
    if (inherited_) std::ranges::for_each(page->lines, &Line::inherit);
  }
  return *page;
}

void Checker::report(const Finding& finding) { findings_.add(finding, emulator_.time_ns()); }

const TlbEntry& Checker::untranslated(const Reached& reached) {
  const bool memory = !reached.device && reached.physical >= real_time_private;
  device_side_.page = memory ? &page_at(reached.physical) : nullptr;
  device_side_.address = reached.physical & ~(page_size - 1);
  device_side_.cached = false;
  return device_side_;
}

void Checker::renew(Core& core) const {
  const std::array<Controls, regimes> old = core.controls;
  emulator_.read_controls(core);
  core.controls_known = true;
  for (std::size_t i = 0; i < regimes; ++i) {
    if (core.tlb.at(i) == nullptr) core.tlb.at(i) = std::make_unique<Core::Tlb>();
    if (old.at(i) == core.controls.at(i)) continue;
    core.forget(static_cast<Regime>(i), ends_mappings(old.at(i), core.controls.at(i)));
  }
}

void Checker::fill(Core& core, const Site& site, std::uint64_t address, const Reached& reached,
                   TlbEntry& entry) {
  const Regime regime = regime_at(site.level);
  Translation found =
      translate(regime, core.controls.at(index(regime)), address, false, emulator_.read_memory);
  check_walk(core, site, address, found);
  if (reached.known &&
      (!found.valid || found.address >> page_bits != reached.physical >> page_bits)) {
    if (!reached.device && !disagreed_) {
      findings_.note("an address was translated otherwise than by the emulator: " +
                     hexadecimal(address) + " to " + hexadecimal(found.address) + ", not " +
                     hexadecimal(reached.physical) + ", level " + std::to_string(site.level));
      disagreed_ = true;
    }
    found = {.valid = true, .address = reached.physical, .memory = found.memory};
  }
  const bool memory = found.valid && !reached.device;
  entry = {.number = address >> page_bits,
           .address = found.address & ~(page_size - 1),
           .page = memory ? &page_at(found.address) : nullptr,
           .generation = core.generation.at(index(regime)),
           .cached = found.memory == Memory::cached};
  if (memory && entry.cached) {
    entry.page->mapped_in.at(core.number).at(index(regime)) = core.life.at(index(regime));
  }
}

void Checker::check_walk(Core& core, const Site& site, std::uint64_t address,
                         const Translation& translation) {
  for (const WalkRead& each : translation.walk()) {
    Line& line = page_at(each.address).at(each.address);
    const Hazard hazard = read(core, line, bytes_at(each.address, 8), each.cached);
    if (hazard.cause == Cause::none) continue;
    report({.reading = Reading::walk,
            .hazard = hazard,
            .physical = each.address,
            .address = address,
            .by = Findings::place(site, core.number)});
  }
}

void Checker::touch(Core& core, const Site& site, const TlbEntry& entry, std::uint64_t address,
                    std::uint64_t size, bool store) {
  Line& line = entry.page->at(address);
  const Bytes bytes = bytes_at(address, size);
  const Place place = Findings::place(site, core.number);
  if (!store) {
    const Hazard hazard = read(core, line, bytes, entry.cached);
    if (hazard.cause == Cause::none) [[likely]]
      return;
    report({.reading = Reading::load,
            .hazard = hazard,
            .physical = entry.address + (address % page_size),
            .address = address,
            .by = place});
  } else if (entry.cached) {
    line.write_cached(bytes, core.number, place, {now_, dropped_everywhere_});
  } else {
    line.write_uncached(bytes, is_mapped(*entry.page), place, {now_, dropped_everywhere_});
  }
}

Hazard Checker::read(Core& core, Line& line, Bytes bytes, bool cached) {
  if (line.unfinished != 0) [[unlikely]] {
    const Hazard hazard = unfinished_hazard(core, line, bytes, cached);
    if (hazard.cause != Cause::none) return hazard;
  }
  return cached ? line.read_cached(bytes, core.number) : line.read_uncached(bytes);
}

Hazard Checker::unfinished_hazard(const Core& core, Line& line, Bytes bytes, bool cached) const {
  for (const Core& each : cores_) {
    // A core's own cached accesses and maintenance of one line are in the order of the program.
    if (each.number == core.number && cached) continue;
    const auto found = each.unfinished.find(&line);
    if (found == each.unfinished.end()) continue;
    const Hazard hazard = line.hazard_of(found->second.before, bytes, cached);
    if (hazard.cause != Cause::none) return {Cause::incomplete, hazard.by};
  }
  return {};
}

bool Checker::is_mapped(const Page& page) const {
  for (const Core& core : cores_) {
    if (!core.is_a64) continue;
    for (std::size_t i = 0; i < regimes; ++i) {
      const bool same_life = page.mapped_in.at(core.number).at(i) == core.life.at(i);
      if (same_life && core.controls.at(i).caches_data()) return true;
    }
  }
  return false;
}

bool Checker::fetch(Core& core, const Site& site, std::uint64_t size) {
  if (!core.is_a64) return false;
  if (!core.controls_known) renew(core);
  bool written = false;
  const std::uint64_t end = site.address + size;
  for (std::uint64_t at = site.address; at < end;) {
    const std::uint64_t next = std::min(end, (at | (line_size - 1)) + 1);
    written = fetch_line(core, site, at, bytes_at(at, next - at)) || written;
    at = next;
  }
  return written;
}

bool Checker::fetch_line(Core& core, const Site& site, std::uint64_t address, Bytes bytes) {
  const Regime regime = regime_at(site.level);
  const Translation found =
      translate(regime, core.controls.at(index(regime)), address, true, emulator_.read_memory);
  check_walk(core, site, address, found);
  if (!found.valid) return false;
  Line& line = page_at(found.address).at(found.address);
  const bool cached = found.memory == Memory::cached;
  Hazard hazard = read(core, line, bytes, cached);
  if (hazard.cause == Cause::none && cached) hazard = line.fetch_cached(bytes, core.all_dropped);
  if (hazard.cause != Cause::none) {
    report({.reading = Reading::fetch,
            .hazard = hazard,
            .physical = found.address,
            .address = address,
            .by = Findings::place(site, core.number)});
  }
  return line.was_written();
}

void Checker::maintain(Core& core, const Site& site, const Instruction& instruction,
                       std::uint64_t argument) {
  if (!core.controls_known) renew(core);
  const Operation operation = instruction.operation;
  if (!is_executed(operation, site.level, core.controls.at(index(Regime::el10)))) return;
  ++now_;
  ++maintenance_;
  if (operation == Operation::controls) {
    core.controls_known = false;
  } else if (operation == Operation::memory_barrier) {
    complete(core, false);
  } else if (operation == Operation::completion_barrier) {
    complete(core, true);
  } else if (operation == Operation::zero) {
    access(core, site, argument & ~(line_size - 1), line_size, true, [] { return Reached{}; });
  } else if (by_address(operation)) {
    maintain_line(core, site, operation, argument);
  } else if (by_set(operation)) {
    maintain_sets(core, site, operation, argument);
  } else if (operation == Operation::drop_instructions ||
             operation == Operation::drop_all_instructions) {
    core.drop_begun = now_;
    core.drop_reaches_all |= operation == Operation::drop_all_instructions;
  } else {
    drop_translations(core, instruction);
  }
}

void Checker::remember(Core& core, Line& line) {
  const Data& data = line.data();
  if (data.dirty == 0 && data.stale == 0) return;
  core.unfinished.try_emplace(&line, Unfinished{data});
  line.unfinished = static_cast<std::uint8_t>(line.unfinished | (1U << core.number));
}

void Checker::maintain_line(Core& core, const Site& site, Operation operation,
                            std::uint64_t address) {
  const Regime regime = regime_at(site.level);
  const Controls& controls = core.controls.at(index(regime));
  const Translation found = translate(regime, controls, address, false, emulator_.read_memory);
  if (!found.valid) return;
  check_walk(core, site, address, found);
  Line& line = page_at(found.address).at(found.address);
  const Place place = Findings::place(site, core.number);
  if (operation == Operation::invalidate_instruction) {
    core.dropped.push_back({&line, now_});
    return;
  }
  // Below a hypervisor with stage 2, to invalidate also cleans.
  const bool guest = regime == Regime::el10 && (controls.hcr & 0x1001U) != 0;
  const bool cleans = operation != Operation::invalidate || guest;
  if (cleans && line.was_written()) core.cleaned.push_back({&line, now_});
  if (operation == Operation::clean_to_instructions) return;
  remember(core, line);
  if (cleans) line.clean(place);
  if (operation != Operation::clean) line.invalidate(place);
}

void Checker::maintain_sets(Core& core, const Site& site, Operation operation,
                            std::uint64_t argument) {
  const bool cleans = operation != Operation::invalidate_set;
  const bool drops = operation != Operation::clean_set;
  if (!(drops ? core.dropping : core.cleaning).add(argument)) return;
  const Place place = Findings::place(site, core.number);
  for (auto& [number, page] : pages_) {
    for (Line& line : page->lines) {
      if (!line.is_private_to(core.number)) continue;
      if (cleans && line.was_written()) core.cleaned.push_back({&line, now_});
      remember(core, line);
      if (cleans) line.clean(place);
      if (drops) line.invalidate(place);
    }
  }
  if (drops) inherited_ = false;
}

void Checker::drop_translations(Core& core, const Instruction& instruction) {
  const Operation operation = instruction.operation;
  const bool everywhere = operation == Operation::drop_all_translations ||
                          operation == Operation::forget_address_anywhere;
  const bool everything =
      operation == Operation::drop_all_translations || operation == Operation::drop_translations;
  for (Core& each : cores_) {
    if (everywhere || &each == &core) each.forget(instruction.regime, everything);
  }
}

void Checker::complete(Core& core, bool everything) {
  const auto others = static_cast<std::uint8_t>(~(1U << core.number));
  for (auto& [line, before] : core.unfinished) line->unfinished &= others;
  core.unfinished.clear();
  if (everything) complete_instructions(core);
}

void Checker::complete_instructions(Core& core) {
  if (!core.cleaned.empty()) ++now_;
  for (const Pending& each : core.cleaned) each.line->unify(each.begun, now_);
  core.cleaned.clear();
  for (const Pending& each : core.dropped) each.line->invalidate_instructions(each.begun);
  core.dropped.clear();
  if (core.drop_begun == 0) return;
  for (Core& each : cores_) {
    if (core.drop_reaches_all || &each == &core) each.all_dropped = core.drop_begun;
  }
  if (core.drop_reaches_all) dropped_everywhere_ = core.drop_begun;
  core.drop_begun = 0;
  core.drop_reaches_all = false;
}

}  // namespace latenz::coherence
