// SPDX-License-Identifier: Apache-2.0
#include "remote_elf.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "failure.hpp"
#include "wording.hpp"

namespace latenz::probe {
namespace {

/// The file, read with every place checked.
class Reader {
 public:
  Reader(const std::string& name, std::span<const std::byte> file) : name_(name), file_(file) {}

  [[noreturn]] void refuse(std::string_view what) const {
    throw Failure(name_ + ": " + std::string(what));
  }

  [[nodiscard]] std::span<const std::byte> bytes(std::uint64_t offset, std::uint64_t size,
                                                 std::string_view what) const {
    if (offset > file_.size() || size > file_.size() - offset) {
      refuse(worded(what, " lies beyond the end of the file (", file_.size(), " bytes)"));
    }
    return file_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  }

  template <typename Record>
  [[nodiscard]] Record record(std::uint64_t offset, std::string_view what) const {
    Record found;
    std::memcpy(&found, bytes(offset, sizeof found, what).data(), sizeof found);
    return found;
  }

 private:
  const std::string& name_;
  std::span<const std::byte> file_;
};

Elf32_Ehdr read_header(const Reader& file) {
  const auto header = file.record<Elf32_Ehdr>(0, "the ELF header");
  if (!std::equal(header.e_ident, header.e_ident + SELFMAG, ELFMAG)) {
    file.refuse("is not an ELF file; give an executable for the real-time core");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS32 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != EM_ARM) {
    file.refuse("is for another processor; build it for 32-bit Arm, little endian");
  }
  if (header.e_type != ET_EXEC) file.refuse("is not an executable with fixed addresses");
  if (header.e_phentsize != sizeof(Elf32_Phdr)) file.refuse("has program headers of another size");
  return header;
}

RemoteSegment read_segment(const Reader& file, const Elf32_Phdr& header, std::uint64_t begin,
                           std::uint64_t end) {
  const std::string what = "segment at " + hex(header.p_paddr);
  if (header.p_memsz < header.p_filesz) file.refuse(what + " is larger in the file than in memory");
  const std::uint64_t last = std::uint64_t{header.p_paddr} + header.p_memsz;
  if (header.p_paddr < begin || last > end) {
    file.refuse(worded(what, " to ", hex(last), " lies outside the core's memory, ", hex(begin),
                       " to ", hex(end)));
  }
  if (header.p_paddr % sizeof(std::uint32_t) != 0) file.refuse(what + " begins within a word");
  return {.address = header.p_paddr,
          .size = header.p_memsz,
          .data = file.bytes(header.p_offset, header.p_filesz, what)};
}

void check_overlaps(const Reader& file, std::vector<RemoteSegment> segments) {
  std::ranges::sort(segments, {}, &RemoteSegment::address);
  const auto overlapping = std::ranges::adjacent_find(
      segments, [](const auto& a, const auto& b) { return a.address + a.size > b.address; });
  if (overlapping != segments.end()) {
    file.refuse("segments overlap after " + hex(overlapping->address));
  }
}

/// Is a section's name in the table the wanted one? No more of the table is looked at.
bool is_named(const Reader& file, const Elf32_Shdr& names, std::uint32_t at,
              std::string_view wanted) {
  const auto table = file.bytes(names.sh_offset, names.sh_size, "the table of section names");
  if (at >= table.size()) file.refuse("a section's name lies outside the table of names");
  const auto rest = table.subspan(at);
  const std::size_t looked_at = std::min(rest.size(), wanted.size() + 1);
  const auto* const text = reinterpret_cast<const char*>(rest.data());
  return std::string_view(text, strnlen(text, looked_at)) == wanted;
}

/// Layout: Linux, include/linux/remoteproc.h. Entries are checked to lie inside; what they ask for
/// (vrings, carve-outs) is the messaging layer's to give.
std::size_t read_resources(const Reader& file, const Elf32_Shdr& section) {
  constexpr std::string_view what = "the resource table";
  constexpr std::uint32_t head_words = 4;
  constexpr std::uint32_t word = sizeof(std::uint32_t);
  if (section.sh_size == 0) return 0;
  static_cast<void>(file.bytes(section.sh_offset, section.sh_size, what));
  const auto head = file.record<std::array<std::uint32_t, head_words>>(section.sh_offset, what);
  const auto [version, count, reserved0, reserved1] = head;
  if (version != 1) file.refuse(worded("the resource table has version ", version, ", not 1"));
  if (reserved0 != 0 || reserved1 != 0) {
    file.refuse("the resource table's reserved words are not 0");
  }
  const std::uint64_t entries = (head_words + std::uint64_t{count}) * word;
  if (entries > section.sh_size) {
    file.refuse(worded("the resource table has no room for its ", count, " entries"));
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto offset =
        file.record<std::uint32_t>(section.sh_offset + ((head_words + i) * word), what);
    if (offset < entries || offset > section.sh_size - word) {
      file.refuse(worded("entry ", i, " of the resource table lies outside it"));
    }
  }
  return count;
}

std::size_t find_resources(const Reader& file, const Elf32_Ehdr& header) {
  if (header.e_shnum == 0) return 0;
  if (header.e_shentsize != sizeof(Elf32_Shdr) || header.e_shstrndx >= header.e_shnum) {
    file.refuse("its section headers are damaged");
  }
  const auto section = [&](std::uint32_t index) {
    return file.record<Elf32_Shdr>(header.e_shoff + (std::uint64_t{index} * sizeof(Elf32_Shdr)),
                                   "a section header");
  };
  const Elf32_Shdr names = section(header.e_shstrndx);
  for (std::uint32_t i = 0; i < header.e_shnum; ++i) {
    const Elf32_Shdr candidate = section(i);
    if (is_named(file, names, candidate.sh_name, ".resource_table")) {
      return read_resources(file, candidate);
    }
  }
  return 0;
}

}  // namespace

RemoteProgram read_remote_program(const std::string& name, std::span<const std::byte> file,
                                  std::uint64_t begin, std::uint64_t end) {
  const Reader reader(name, file);
  const Elf32_Ehdr header = read_header(reader);
  RemoteProgram program{.entry = header.e_entry, .segments = {}, .resources = 0};
  bool entry_is_code = false;
  for (std::uint32_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = reader.record<Elf32_Phdr>(
        header.e_phoff + (std::uint64_t{i} * sizeof(Elf32_Phdr)), "a program header");
    if (segment.p_type != PT_LOAD || segment.p_memsz == 0) continue;
    program.segments.push_back(read_segment(reader, segment, begin, end));
    const std::uint32_t entry = header.e_entry & ~1U;  // bit 0: Thumb
    entry_is_code |= (segment.p_flags & PF_X) != 0 && entry >= segment.p_paddr &&
                     entry - segment.p_paddr < segment.p_filesz;
  }
  if (program.segments.empty()) reader.refuse("has nothing to load");
  check_overlaps(reader, program.segments);
  if (!entry_is_code) {
    reader.refuse("its entry " + hex(header.e_entry) + " lies in no executable segment");
  }
  program.resources = find_resources(reader, header);
  return program;
}

}  // namespace latenz::probe
