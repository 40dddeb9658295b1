// SPDX-License-Identifier: Apache-2.0
#include "aarch64/translation_table.hpp"

#include <cstddef>

namespace latenz::hypervisor {
namespace {

constexpr std::size_t entries = 512;
constexpr std::size_t pool_tables = 96;
constexpr std::uint64_t is_table = 3;
constexpr std::uint64_t is_page = 3;
constexpr std::uint64_t is_block = 1;
constexpr std::uint64_t address_bits = 0xF'FFFF'F000;

alignas(TranslationTable::page) std::uint64_t pool[pool_tables][entries];
std::size_t used = 0;

std::uint64_t* fresh_table() { return used < pool_tables ? pool[used++] : nullptr; }

/// The table that an entry leads to, made if there is none; nullptr if that cannot be.
std::uint64_t* follow(std::uint64_t& entry) {
  if (entry == 0) {
    std::uint64_t* made = fresh_table();
    if (made != nullptr) entry = reinterpret_cast<std::uint64_t>(made) | is_table;
    return made;
  }
  if ((entry & is_table) != is_table) return nullptr;  // a block
  return reinterpret_cast<std::uint64_t*>(entry & address_bits);
}

constexpr std::size_t index(std::uint64_t address, unsigned shift) {
  return (address >> shift) % entries;
}

}  // namespace

bool TranslationTable::map_one(std::uint64_t from, std::uint64_t to, bool whole_block,
                               std::uint64_t attributes) {
  if (root_ == nullptr) root_ = fresh_table();
  if (root_ == nullptr) return false;
  std::uint64_t* level2 = follow(root_[index(from, 30)]);
  if (level2 == nullptr) return false;
  std::uint64_t* entry = &level2[index(from, 21)];
  if (!whole_block) {
    std::uint64_t* level3 = follow(*entry);
    if (level3 == nullptr) return false;
    entry = &level3[index(from, 12)];
  }
  if (*entry != 0) return false;
  *entry = to | attributes | (whole_block ? is_block : is_page);
  return true;
}

bool TranslationTable::map(std::uint64_t from, std::uint64_t to, std::uint64_t size,
                           std::uint64_t attributes) {
  if ((from | to | size) % page != 0) return false;
  if (size > address_end || from > address_end - size || to > address_end - size) return false;
  while (size > 0) {
    const bool whole_block = size >= block && (from | to) % block == 0;
    if (!map_one(from, to, whole_block, attributes)) return false;
    const std::uint64_t step = whole_block ? block : page;
    from += step;
    to += step;
    size -= step;
  }
  return true;
}

}  // namespace latenz::hypervisor
