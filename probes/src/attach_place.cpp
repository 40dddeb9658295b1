// SPDX-License-Identifier: Apache-2.0
#include "attach_place.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "failure.hpp"
#include "file.hpp"
#include "text.hpp"

namespace latenz::attach {
namespace {

using probe::Failure;
using Bytes = std::span<const std::byte>;

constexpr std::string_view return_suffix = "%return";
constexpr std::uint32_t static_probe_note = 3;  // NT_STAPSDT

struct Elf32 {
  using Header = Elf32_Ehdr;
  using Section = Elf32_Shdr;
  using Segment = Elf32_Phdr;
  using Symbol = Elf32_Sym;
  using Address = std::uint32_t;
};
struct Elf64 {
  using Header = Elf64_Ehdr;
  using Section = Elf64_Shdr;
  using Segment = Elf64_Phdr;
  using Symbol = Elf64_Sym;
  using Address = std::uint64_t;
};

/// The part of a file, empty if it is not all there.
Bytes part_of(Bytes file, std::uint64_t offset, std::uint64_t size) {
  if (offset > file.size() || size > file.size() - offset) return {};
  return file.subspan(offset, size);
}

template <typename Each>
std::optional<Each> read_at(Bytes file, std::uint64_t offset) {
  const Bytes bytes = part_of(file, offset, sizeof(Each));
  if (bytes.empty()) return std::nullopt;
  Each found;
  std::memcpy(&found, bytes.data(), sizeof found);
  return found;
}

std::string_view text_at(Bytes bytes, std::uint64_t offset) {
  if (offset >= bytes.size()) return {};
  const auto* const begin = reinterpret_cast<const char*>(bytes.data()) + offset;
  return {begin, strnlen(begin, bytes.size() - offset)};
}

/// Takes a text with its end away from the front.
std::string_view take_text(Bytes& bytes) {
  const std::string_view text = text_at(bytes, 0);
  bytes = bytes.subspan(std::min(text.size() + 1, bytes.size()));
  return text;
}

/// Whether a symbol is the function that is meant: as it stands, or as people write it in C++.
bool is_named(std::string_view symbol, const std::string& wanted) {
  if (symbol == wanted) return true;
  if (!symbol.starts_with("_Z")) return false;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(std::string(symbol).c_str(), nullptr, nullptr, nullptr), std::free);
  if (!readable) return false;
  const std::string_view whole = readable.get();
  return whole == wanted || (whole.starts_with(wanted) && whole.substr(wanted.size(), 1) == "(");
}

template <typename Elf>
class Program {
 public:
  Program(Bytes file, const PlaceName& name) : file_(file), name_(name) {
    const auto header = read_at<typename Elf::Header>(file, 0);
    if (!header) return;
    for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
      const std::uint64_t at = header->e_phoff + i * sizeof(typename Elf::Segment);
      if (const auto each = read_at<typename Elf::Segment>(file, at)) segments_.push_back(*each);
    }
    for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
      const std::uint64_t at = header->e_shoff + i * sizeof(typename Elf::Section);
      if (const auto each = read_at<typename Elf::Section>(file, at)) sections_.push_back(*each);
    }
    if (header->e_shstrndx < sections_.size()) names_ = content_of(sections_[header->e_shstrndx]);
  }

  [[nodiscard]] std::vector<Place> functions() const {
    std::map<std::uint64_t, std::string> found;
    for (const auto& section : sections_) {
      const bool has_symbols = section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM;
      if (!has_symbols || section.sh_link >= sections_.size()) continue;
      const Bytes symbols = content_of(section);
      const Bytes names = content_of(sections_[section.sh_link]);
      for (std::uint64_t at = 0; at < symbols.size(); at += sizeof(typename Elf::Symbol)) {
        const auto symbol = read_at<typename Elf::Symbol>(symbols, at);
        constexpr unsigned type_bits = 0xF;
        if (!symbol || (symbol->st_info & type_bits) != STT_FUNC || symbol->st_value == 0) continue;
        const std::string_view text = text_at(names, symbol->st_name);
        if (!is_named(text, name_.function)) continue;
        if (const auto offset = offset_of(symbol->st_value)) found.emplace(*offset, text);
      }
    }
    if (found.size() > 1) {
      std::string told;
      for (const auto& [offset, symbol] : found) told += (told.empty() ? "" : ", ") + symbol;
      throw Failure(name_.text + ": several functions are called so; write one of " + told);
    }
    std::vector<Place> places;
    places.reserve(found.size());
    for (const auto& [offset, symbol] : found) places.push_back({.file = {}, .offset = offset});
    return places;
  }

  [[nodiscard]] std::vector<Place> probes() const {
    std::vector<Place> found;
    for (const auto& section : sections_) {
      if (section.sh_type != SHT_NOTE) continue;
      Bytes rest = content_of(section);
      while (rest.size() > sizeof(Elf32_Nhdr)) {
        const auto head = read_at<Elf32_Nhdr>(rest, 0);
        if (!head) break;
        const auto rounded = [](std::uint64_t size) { return (size + 3) & ~std::uint64_t{3}; };
        const std::uint64_t begin = sizeof(Elf32_Nhdr) + rounded(head->n_namesz);
        const Bytes content = part_of(rest, begin, head->n_descsz);
        const bool is_ours = head->n_type == static_probe_note &&
                             text_at(rest, sizeof(Elf32_Nhdr)).starts_with("stapsdt");
        if (is_ours) take_probe(content, found);
        rest = rest.subspan(std::min<std::uint64_t>(begin + rounded(head->n_descsz), rest.size()));
      }
    }
    return found;
  }

 private:
  /// A note has three addresses (of the probe, of a section that prelinking would move as well, of
  /// its semaphore), and then texts.
  void take_probe(Bytes content, std::vector<Place>& found) const {
    using Address = typename Elf::Address;
    const auto place = read_at<Address>(content, 0);
    const auto base = read_at<Address>(content, sizeof(Address));
    const auto semaphore = read_at<Address>(content, 2 * sizeof(Address));
    if (!place || !base || !semaphore) return;
    Bytes texts = content.subspan(3 * sizeof(Address));
    if (take_text(texts) != name_.provider || take_text(texts) != name_.probe) return;
    std::uint64_t moved = 0;
    for (const auto& section : sections_) {
      if (text_at(names_, section.sh_name) == ".stapsdt.base") moved = section.sh_addr - *base;
    }
    const auto offset = offset_of(*place + moved);
    if (!offset) return;
    found.push_back({.file = {}, .offset = *offset});
    if (*semaphore != 0) found.back().semaphore = offset_of(*semaphore + moved).value_or(0);
  }

  [[nodiscard]] Bytes content_of(const typename Elf::Section& section) const {
    if (section.sh_type == SHT_NOBITS) return {};
    return part_of(file_, section.sh_offset, section.sh_size);
  }

  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t address) const {
    for (const auto& segment : segments_) {
      if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
      if (address - segment.p_vaddr < segment.p_filesz) {
        return address - segment.p_vaddr + segment.p_offset;
      }
    }
    return std::nullopt;
  }

  Bytes file_;
  const PlaceName& name_;
  Bytes names_;
  std::vector<typename Elf::Segment> segments_;
  std::vector<typename Elf::Section> sections_;
};

template <typename Elf>
std::vector<Place> find_in(const PlaceName& name, Bytes file) {
  const Program<Elf> program(file, name);
  return name.function.empty() ? program.probes() : program.functions();
}

/// Files that a process has mapped, as it names them.
std::set<std::string> mapped_files(std::int32_t pid) {
  std::set<std::string> found;
  probe::Text maps = probe::Text::of_file("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; maps.line(line);) {
    const auto path = line.find('/');
    if (path != std::string::npos) found.insert(line.substr(path));
  }
  return found;
}

bool is_called(std::string_view path, std::string_view name) {
  return path == name || path.substr(path.rfind('/') + 1) == name;
}

/// What to say of a place that a program does not have.
std::string not_found(const PlaceName& name, const std::string& path) {
  std::string told = name.text + ": " + path;
  if (name.function.empty()) {
    told += " has no static probe ";
    told += name.provider;
    told += ':';
    told += name.probe;
    told += "; see readelf --notes ";
  } else {
    told += " has no symbol ";
    told += name.function;
    told += " of a function (is it stripped, or inlined?); see nm -D ";
  }
  return told += path;
}

}  // namespace

PlaceName parse_place(std::string_view option, std::string_view text) {
  PlaceName name;
  name.text = text;
  const auto colon = text.find(':');
  const auto refuse = [&]() -> PlaceName {
    throw Failure(std::string(option) + ": " + std::string(text) +
                  " is not a place in a program; write PROGRAM:FUNCTION, PROGRAM:FUNCTION%return or"
                  " PROGRAM:PROVIDER:PROBE");
  };
  if (colon == 0 || colon == std::string_view::npos) return refuse();
  name.program = text.substr(0, colon);
  std::string_view rest = text.substr(colon + 1);
  const auto second = rest.find(':');
  const bool is_probe = second != std::string_view::npos && rest.substr(second, 2) != "::";
  if (is_probe) {
    name.provider = rest.substr(0, second);
    name.probe = rest.substr(second + 1);
    return name.provider.empty() || name.probe.empty() ? refuse() : name;
  }
  name.at_return = rest.ends_with(return_suffix);
  if (name.at_return) rest.remove_suffix(return_suffix.size());
  name.function = rest;
  return rest.empty() ? refuse() : name;
}

std::vector<Place> find_in_elf(const PlaceName& name, std::span<const std::byte> file) {
  const std::string_view magic = text_at(file, 0).substr(0, SELFMAG);
  if (magic != ELFMAG || file.size() <= EI_CLASS) return {};
  const bool is_64 = std::to_integer<int>(file[EI_CLASS]) == ELFCLASS64;
  std::vector<Place> found = is_64 ? find_in<Elf64>(name, file) : find_in<Elf32>(name, file);
  for (Place& each : found) each.at_return = name.at_return;
  return found;
}

std::vector<Place> find_place(const PlaceName& name, std::int32_t pid) {
  for (const std::string& path : mapped_files(pid)) {
    if (!is_called(path, name.program)) continue;
    // As the process sees it, which may be in a container.
    const std::string file = "/proc/" + std::to_string(pid) + "/root" + path;
    const probe::File opened = probe::File::open(file, O_RDONLY);
    struct stat facts{};
    if (!opened.is_open() || fstat(opened.descriptor(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
      throw Failure(name.text + ": " + path + " cannot be read; it may have been replaced since");
    }
    const auto size = static_cast<std::size_t>(facts.st_size);
    void* const memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened.descriptor(), 0);
    if (memory == MAP_FAILED) throw Failure(name.text + ": " + path + " cannot be read");
    const std::unique_ptr<void, std::function<void(void*)>> held(
        memory, [size](void* each) { munmap(each, size); });
    std::vector<Place> found = find_in_elf(name, {static_cast<const std::byte*>(memory), size});
    for (Place& each : found) each.file = file;
    if (!found.empty()) return found;
    throw Failure(not_found(name, path));
  }
  return {};
}

}  // namespace latenz::attach
