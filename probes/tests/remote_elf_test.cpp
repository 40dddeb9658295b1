// SPDX-License-Identifier: Apache-2.0
// Programs for a real-time core, whole and damaged in every place. The real ones, built by GCC, are
// loaded by python/tests/amp.
#include "remote_elf.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "failure.hpp"

namespace latenz::probe {
namespace {

constexpr std::uint64_t begin = 0x7000'0000;
constexpr std::uint64_t end = 0x7100'0000;

/// One executable segment of eight bytes with zeros behind them, and a resource table.
struct Image {
  Elf32_Ehdr header{};
  Elf32_Phdr segment{};
  Elf32_Phdr second{};  ///< not loaded unless a test wants it
  Elf32_Shdr sections[3]{};
  char names[32] = "\0.resource_table\0.shstrtab";
  std::uint32_t resources[7] = {1, 1, 0, 0, 20, 0xFFFF'FFFF, 0};
  std::uint32_t code[2] = {0xE320'F003, 0xEAFF'FFFD};

  Image() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS32;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_EXEC;
    header.e_machine = EM_ARM;
    header.e_entry = begin;
    header.e_phoff = offsetof(Image, segment);
    header.e_phentsize = sizeof(Elf32_Phdr);
    header.e_phnum = 2;
    header.e_shoff = offsetof(Image, sections);
    header.e_shentsize = sizeof(Elf32_Shdr);
    header.e_shnum = 3;
    header.e_shstrndx = 2;
    segment = {.p_type = PT_LOAD,
               .p_offset = offsetof(Image, code),
               .p_vaddr = begin,
               .p_paddr = begin,
               .p_filesz = sizeof code,
               .p_memsz = 4096,
               .p_flags = PF_R | PF_X,
               .p_align = 4};
    second = segment;
    second.p_type = PT_NULL;
    sections[1].sh_name = 1;
    sections[1].sh_offset = offsetof(Image, resources);
    sections[1].sh_size = sizeof resources;
    sections[2].sh_name = 17;
    sections[2].sh_offset = offsetof(Image, names);
    sections[2].sh_size = sizeof names;
  }

  [[nodiscard]] std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(this, 1));
  }
};

std::string refusal(std::span<const std::byte> file) {
  try {
    static_cast<void>(read_remote_program("app.elf", file, begin, end));
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

template <typename Change>
std::string refusal_after(Change change) {
  Image image;
  change(image);
  return refusal(image.bytes());
}

TEST(RemoteElf, ReadsSegmentsEntryAndResources) {
  const Image image;
  const RemoteProgram program = read_remote_program("app.elf", image.bytes(), begin, end);
  EXPECT_EQ(program.entry, begin);
  ASSERT_EQ(program.segments.size(), 1U);
  EXPECT_EQ(program.segments[0].address, begin);
  EXPECT_EQ(program.segments[0].size, 4096U);
  EXPECT_EQ(program.segments[0].data.size(), sizeof image.code);
  EXPECT_EQ(program.resources, 1U);
}

TEST(RemoteElf, RefusesWithOneLineThatSaysWhat) {
  const auto expect = [](const std::string& said, const std::string& wanted) {
    EXPECT_NE(said.find(wanted), std::string::npos) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos);
    EXPECT_TRUE(said.starts_with("app.elf: ")) << said;
  };
  expect(refusal({}), "the ELF header lies beyond the end");
  expect(refusal_after([](Image& i) { i.header.e_ident[0] = 0; }), "is not an ELF file");
  expect(refusal_after([](Image& i) { i.header.e_machine = EM_AARCH64; }), "another processor");
  expect(refusal_after([](Image& i) { i.header.e_type = ET_DYN; }), "fixed addresses");
  expect(refusal_after([](Image& i) { i.header.e_phoff = 0xFFFF'FFF0; }), "program header lies");
  expect(refusal_after([](Image& i) { i.segment.p_offset = 0xFFFF'FFF0; }), "beyond the end");
  expect(refusal_after([](Image& i) { i.segment.p_paddr = 0x1000; }), "outside the core's memory");
  expect(refusal_after([](Image& i) { i.segment.p_memsz = 0xFFFF'FFFF; }), "outside the core's");
  expect(refusal_after([](Image& i) { i.segment.p_memsz = 4; }), "larger in the file");
  expect(refusal_after([](Image& i) { i.segment.p_paddr = begin + 2; }), "within a word");
  expect(refusal_after([](Image& i) { i.header.e_entry = begin + 64; }), "no executable segment");
  expect(refusal_after([](Image& i) { i.segment.p_flags = PF_R; }), "no executable segment");
  expect(refusal_after([](Image& i) { i.segment.p_type = PT_NULL; }), "nothing to load");
  expect(refusal_after([](Image& i) { i.second.p_type = PT_LOAD; }), "segments overlap");
  expect(refusal_after([](Image& i) { i.header.e_shstrndx = 9; }), "section headers are damaged");
  expect(refusal_after([](Image& i) { i.sections[1].sh_name = 900; }),
         "outside the table of names");
  expect(refusal_after([](Image& i) { i.resources[0] = 7; }), "version 7");
  expect(refusal_after([](Image& i) { i.resources[1] = 0xFFFF'FFFF; }), "no room for its");
  expect(refusal_after([](Image& i) { i.resources[2] = 1; }), "reserved words");
  expect(refusal_after([](Image& i) { i.resources[4] = 4096; }), "entry 0 of the resource table");
}

/// No cut of the file and no changed byte may do more than be refused.
TEST(RemoteElf, SurvivesEveryCutAndEveryChangedByte) {
  const Image image;
  const auto whole = image.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal(whole.first(size)), "") << size;
  }
  std::vector<std::byte> changed(whole.begin(), whole.end());
  for (std::byte& byte : changed) {
    const std::byte before = byte;
    for (unsigned value = 0; value < 256; ++value) {
      byte = static_cast<std::byte>(value);
      static_cast<void>(refusal(changed));
    }
    byte = before;
  }
}

}  // namespace
}  // namespace latenz::probe
