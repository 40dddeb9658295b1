// SPDX-License-Identifier: Apache-2.0
#include "translation.hpp"

#include <algorithm>

namespace latenz::coherence {
namespace {

constexpr std::uint64_t bits(std::uint64_t value, unsigned low, unsigned count) {
  return (value >> low) & ((std::uint64_t{1} << count) - 1);
}

constexpr std::uint64_t hcr_vm = 1;
constexpr std::uint64_t hcr_dc = std::uint64_t{1} << 12U;
constexpr std::uint64_t hcr_cd = std::uint64_t{1} << 32U;
constexpr std::uint64_t hcr_id = std::uint64_t{1} << 33U;
constexpr std::uint64_t sctlr_m = 1;
constexpr std::uint64_t sctlr_c = std::uint64_t{1} << 2U;
constexpr std::uint64_t sctlr_i = std::uint64_t{1} << 12U;

/// Cortex-A53 caches what is write-back both inside and outside, and nothing else (TRM DDI 0500).
Memory memory_of_mair(std::uint64_t attribute) {
  if ((attribute & 0xF0U) == 0) return Memory::device;
  const auto write_back = [](std::uint64_t half) { return (half & 4U) != 0 && half != 4; };
  const bool both = write_back(bits(attribute, 4, 4)) && write_back(bits(attribute, 0, 4));
  return both ? Memory::cached : Memory::uncached;
}

Memory memory_of_stage2(std::uint64_t attribute) {
  if (bits(attribute, 2, 2) == 0) return Memory::device;
  return attribute == 0xF ? Memory::cached : Memory::uncached;
}

/// Returns whether walks are cached, by the two fields of a TCR; 1 and 3 are write-back.
bool walks_cached(std::uint64_t tcr, unsigned inner_at) {
  return (bits(tcr, inner_at, 1) & bits(tcr, inner_at + 2, 1)) != 0;
}

/// One stage of tables.
struct Tables {
  std::uint64_t base = 0;
  unsigned granule_bits = 12;
  unsigned address_bits = 48;  ///< of what is translated
  int level = 0;
  bool cached = false;
};

unsigned granule_of_tg0(std::uint64_t field) {
  constexpr std::array<unsigned, 4> granules{12, 16, 14, 12};
  return granules.at(field);
}
unsigned granule_of_tg1(std::uint64_t field) {
  constexpr std::array<unsigned, 4> granules{12, 14, 12, 16};
  return granules.at(field);
}

/// The level at which a walk of so many bits begins.
int first_level(unsigned address_bits, unsigned granule_bits) {
  const unsigned stride = granule_bits - 3;
  return 4 - static_cast<int>((address_bits - granule_bits + stride - 1) / stride);
}

class Walk {
 public:
  Walk(Regime regime, const Controls& controls, bool instruction, ReadMemory memory)
      : regime_(regime), controls_(controls), instruction_(instruction), memory_(memory) {}

  Translation translate(std::uint64_t address) {
    result_.valid = stage1(address) && stage2(result_.address, result_.memory, instruction_);
    return result_;
  }

 private:
  [[nodiscard]] bool has_stage2() const {
    return regime_ == Regime::el10 && (controls_.hcr & (hcr_vm | hcr_dc)) != 0;
  }

  bool stage1(std::uint64_t address) {
    const bool by_default = regime_ == Regime::el10 && (controls_.hcr & hcr_dc) != 0;
    if ((controls_.sctlr & sctlr_m) == 0 || by_default) {
      result_.address = address;
      result_.memory = by_default ? Memory::cached : flat();
      return true;
    }
    Tables tables;
    if (!tables_for(address, tables)) return false;
    std::uint64_t descriptor = 0;
    if (!walk(tables, bits(address, 0, tables.address_bits), true, result_.address, descriptor)) {
      return false;
    }
    result_.memory =
        memory_of_mair(bits(controls_.mair, 8 * static_cast<unsigned>(bits(descriptor, 2, 3)), 8));
    const std::uint64_t enabled = instruction_ ? sctlr_i : sctlr_c;
    if (result_.memory == Memory::cached && (controls_.sctlr & enabled) == 0) {
      result_.memory = Memory::uncached;
    }
    return true;
  }

  [[nodiscard]] Memory flat() const {
    if (!instruction_) return Memory::device;
    return (controls_.sctlr & sctlr_i) != 0 ? Memory::cached : Memory::uncached;
  }

  bool tables_for(std::uint64_t address, Tables& tables) const {
    const bool enabled = (controls_.sctlr & sctlr_c) != 0;
    const bool upper = regime_ == Regime::el10 && bits(address, 55, 1) != 0;
    const unsigned at = upper ? 16 : 0;
    const std::uint64_t size = bits(controls_.tcr, at, 6);
    if (size < 16 || size > 48 || (upper && bits(controls_.tcr, 23, 1) != 0)) return false;
    tables.address_bits = 64 - static_cast<unsigned>(size);
    tables.granule_bits = upper ? granule_of_tg1(bits(controls_.tcr, 30, 2))
                                : granule_of_tg0(bits(controls_.tcr, 14, 2));
    tables.level = first_level(tables.address_bits, tables.granule_bits);
    tables.base = bits(upper ? controls_.ttbr1 : controls_.ttbr0, 1, 47) << 1U;
    tables.cached = enabled && walks_cached(controls_.tcr, upper ? 24 : 8);
    return true;
  }

  bool stage2(std::uint64_t& address, Memory& memory, bool instruction) {
    if (!has_stage2()) return true;
    if ((controls_.hcr & hcr_vm) == 0) return true;
    Tables tables;
    const std::uint64_t size = bits(controls_.vtcr, 0, 6);
    if (size < 16 || size > 48) return false;
    tables.address_bits = 64 - static_cast<unsigned>(size);
    tables.granule_bits = granule_of_tg0(bits(controls_.vtcr, 14, 2));
    const int start = static_cast<int>(bits(controls_.vtcr, 6, 2));
    tables.level = (tables.granule_bits == 12 ? 2 : 3) - start;
    tables.base = bits(controls_.vttbr, 1, 47) << 1U;
    tables.cached = walks_cached(controls_.vtcr, 8) && (controls_.hcr & hcr_cd) == 0;
    if (address >> tables.address_bits != 0) return false;
    std::uint64_t descriptor = 0;
    if (!walk(tables, address, false, address, descriptor)) return false;
    Memory own = memory_of_stage2(bits(descriptor, 2, 4));
    const std::uint64_t disabled = instruction ? hcr_id : hcr_cd;
    if (own == Memory::cached && (controls_.hcr & disabled) != 0) own = Memory::uncached;
    memory = std::min(memory, own);
    return true;
  }

  /// Walks tables; those of stage 1 are themselves translated by stage 2.
  bool walk(const Tables& tables, std::uint64_t address, bool first_stage, std::uint64_t& output,
            std::uint64_t& descriptor) {
    const unsigned stride = tables.granule_bits - 3;
    std::uint64_t table = tables.base;
    unsigned top = tables.address_bits;
    for (int level = tables.level; level <= 3; ++level) {
      const unsigned low = tables.granule_bits + (stride * static_cast<unsigned>(3 - level));
      if (!read(table + (bits(address, low, top - low) << 3U), tables.cached, first_stage,
                descriptor)) {
        return false;
      }
      if ((descriptor & 1U) == 0) return false;
      const bool goes_on = (descriptor & 2U) != 0;
      if (level == 3 || !goes_on) {
        if (goes_on != (level == 3)) return false;
        const std::uint64_t within = (std::uint64_t{1} << low) - 1;
        output = (bits(descriptor, 0, 48) & ~within & ~0xFFFULL) | (address & within);
        return true;
      }
      table = bits(descriptor, tables.granule_bits, 48 - tables.granule_bits)
              << tables.granule_bits;
      top = low;
    }
    return false;
  }

  bool read(std::uint64_t address, bool cached, bool first_stage, std::uint64_t& value) {
    Memory memory = cached ? Memory::cached : Memory::uncached;
    if (first_stage && !stage2(address, memory, false)) return false;
    if (result_.reads == result_.read.size()) return false;
    result_.read.at(result_.reads++) = {.address = address, .cached = memory == Memory::cached};
    return memory_(address, value);
  }

  Regime regime_;
  const Controls& controls_;
  bool instruction_;
  ReadMemory memory_;
  Translation result_;
};

}  // namespace

Translation translate(Regime regime, const Controls& controls, std::uint64_t address,
                      bool instruction, ReadMemory read) {
  return Walk(regime, controls, instruction, read).translate(address);
}

}  // namespace latenz::coherence
