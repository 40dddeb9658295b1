// SPDX-License-Identifier: Apache-2.0
// Memory for channels under Linux: real shared memory and files, and trees as the kernel makes them
// in /sys and /proc/device-tree, with a file in place of the device.
#include "latenz/icc/linux_memory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "latenz/icc.hpp"

namespace {

namespace fs = std::filesystem;
using latenz::icc::LinuxMemory;
using latenz::icc::LinuxPaths;
using latenz::icc::Result;

struct Sample {
  std::uint64_t number;
  double position;
};
using Channel = latenz::icc::Mailbox<Sample>;

class Linux : public testing::Test {
 public:
  Linux(const Linux&) = delete;
  Linux& operator=(const Linux&) = delete;

 protected:
  Linux() {
    fs::create_directories(folder_ / "dev");
    fs::create_directories(folder_ / "tree/reserved-memory");
  }
  ~Linux() override {
    fs::remove_all(folder_);
    LinuxMemory::remove_shared(name_.c_str());
  }

  void plant(const std::string& path, std::string_view content) const {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path, std::ios::binary) << content;
  }
  /// A device of this many pages whose every 64-bit word is its own address.
  void plant_device(const std::string& path, std::uint64_t pages) const {
    std::ofstream file(folder_ / path, std::ios::binary);
    for (std::uint64_t address = 0; address < pages * page_; address += sizeof address) {
      file.write(reinterpret_cast<const char*>(&address), sizeof address);
    }
  }
  void plant_map(unsigned map, std::string_view size, std::string_view offset) const {
    const std::string map_folder = "sys/class/uio/uio3/maps/map" + std::to_string(map);
    plant(map_folder + "/size", size);
    plant(map_folder + "/offset", offset);
  }
  [[nodiscard]] static std::uint64_t first_word(const LinuxMemory& memory) {
    return *static_cast<const std::uint64_t*>(memory.data());
  }
  [[nodiscard]] std::string path(const char* below) const { return (folder_ / below).string(); }

  const std::uint64_t page_ = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::string name_ = "/latenz-test-" + std::to_string(getpid());
  const fs::path folder_ = fs::temp_directory_path() / name_.substr(1);
  const std::string dev_ = path("dev");
  const std::string sys_ = path("sys");
  const std::string tree_ = path("tree");
  const LinuxPaths paths_{.dev = dev_.c_str(), .sys = sys_.c_str(), .device_tree = tree_.c_str()};
};

/// As `reg` and `#address-cells` hold it.
std::string big_endian(std::initializer_list<std::uint32_t> words) {
  std::string bytes;
  for (const std::uint32_t word : words) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes += static_cast<char>(word >> shift);
  }
  return bytes;
}

TEST_F(Linux, ProcessesShareAChannel) {
  const LinuxMemory memory = LinuxMemory::create_shared(name_.c_str(), Channel::bytes);
  ASSERT_TRUE(memory) << memory.problem();
  auto reader = Channel::Reader::create(memory.data(), memory.size(), "samples");
  ASSERT_TRUE(reader);
  const pid_t child = fork();
  if (child == 0) {
    const LinuxMemory mine = LinuxMemory::shared(name_.c_str(), Channel::bytes);
    if (!mine) _exit(1);
    auto writer = Channel::Writer::attach(mine.data(), mine.size());
    _exit(writer && writer->write({.number = 7, .position = 0.5}) == Result::ok ? 0 : 2);
  }
  Sample sample{};
  EXPECT_EQ(reader->read(sample), Result::ok);
  EXPECT_EQ(sample.number, 7);
  EXPECT_EQ(sample.position, 0.5);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Linux, SharedMemoryIsItsUsersAlone) {
  const LinuxMemory memory = LinuxMemory::create_shared(name_.c_str(), 4096);
  struct stat found{};
  ASSERT_EQ(stat(("/dev/shm" + name_).c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
}

TEST_F(Linux, ARestartedCreatorFindsWhatIsThere) {
  {
    const LinuxMemory memory = LinuxMemory::create_shared(name_.c_str(), 4096);
    *static_cast<std::uint64_t*>(memory.data()) = 42;
  }
  const LinuxMemory again = LinuxMemory::create_shared(name_.c_str(), 4096);
  ASSERT_TRUE(again) << again.problem();
  EXPECT_EQ(first_word(again), 42);
}

TEST_F(Linux, SharedMemoryThatIsTooSmallIsRefused) {
  const LinuxMemory small = LinuxMemory::create_shared(name_.c_str(), 100);
  ASSERT_TRUE(small);
  EXPECT_EQ(small.size(), 100);
  const std::string problem = name_ + ": has 100 bytes, not the 101 from 0 on";
  EXPECT_EQ(LinuxMemory::create_shared(name_.c_str(), 101).problem(), problem);
  EXPECT_EQ(LinuxMemory::shared(name_.c_str(), 101).problem(), problem);
  EXPECT_EQ(LinuxMemory::shared(name_.c_str()).size(), 100);
}

TEST_F(Linux, NamesAndSizesThatCannotBeAreRefused) {
  for (const char* name : {"", "/", "x", "/x/y", "//x"}) {
    EXPECT_STREQ(
        LinuxMemory::shared(name).problem(),
        (std::string("'") + name + "': shared memory has a name such as /control: one /, in front")
            .c_str());
  }
  EXPECT_FALSE(LinuxMemory::shared(("/" + std::string(300, 'x')).c_str()));
  EXPECT_FALSE(LinuxMemory::create_shared(name_.c_str(), 0));
  EXPECT_FALSE(LinuxMemory::create_shared(name_.c_str(), SIZE_MAX));
  EXPECT_EQ(LinuxMemory::shared(name_.c_str()).problem(),
            name_ + ": no shared memory of this name can be opened: No such file or directory");
}

TEST_F(Linux, FilesAreMappedAsFarAsTheyGo) {
  plant_device("dev/file", 2);
  const LinuxMemory memory = LinuxMemory::file(path("dev/file").c_str());
  ASSERT_TRUE(memory) << memory.problem();
  EXPECT_EQ(memory.size(), 2 * page_);
  EXPECT_FALSE(LinuxMemory::file(path("dev/file").c_str(), (2 * page_) + 1));
  plant("dev/empty", "");
  EXPECT_EQ(LinuxMemory::file(path("dev/empty").c_str()).problem(),
            path("dev/empty") + ": has 0 bytes, not the 0 from 0 on");
  EXPECT_FALSE(LinuxMemory::file(path("dev").c_str()));
  EXPECT_FALSE(LinuxMemory::file("/dev/zero"));
}

TEST_F(Linux, MovedMemoryStaysMapped) {
  plant_device("dev/file", 1);
  LinuxMemory first = LinuxMemory::file(path("dev/file").c_str());
  const void* where = first.data();
  LinuxMemory second = std::move(first);
  EXPECT_EQ(second.data(), where);
  EXPECT_EQ(first_word(second), 0);
}

TEST_F(Linux, AMapOfAUioDeviceBeginsAtItsPageAndOffset) {
  plant_device("dev/uio3", 4);
  plant_map(0, "0x1000\n", "0x0\n");
  plant_map(2, "0x0000000000000140\n", "0x80\n");
  const LinuxMemory whole = LinuxMemory::uio(3, 0, 0, paths_);
  ASSERT_TRUE(whole) << whole.problem();
  EXPECT_EQ(whole.size(), 0x1000);
  EXPECT_EQ(first_word(whole), 0);
  const LinuxMemory part = LinuxMemory::uio(3, 2, 0, paths_);
  ASSERT_TRUE(part) << part.problem();
  EXPECT_EQ(part.size(), 0x140);
  EXPECT_EQ(first_word(part), (2 * page_) + 0x80);
  EXPECT_EQ(LinuxMemory::uio(3, 2, 0x40, paths_).size(), 0x40);
  EXPECT_EQ(LinuxMemory::uio(3, 2, 0x141, paths_).problem(),
            path("sys/class/uio/uio3/maps/map2") + ": has 320 bytes at offset 128, not 321");
}

TEST_F(Linux, UioDevicesThatTellNonsenseAreRefused) {
  plant_device("dev/uio3", 1);
  EXPECT_FALSE(LinuxMemory::uio(3, 0, 0, paths_)) << "no such map";
  for (const char* number : {"", "0x", "4096", "0x1g", "0x11112222333344445", "0x ", "-0x1"}) {
    plant_map(0, number, "0x0\n");
    EXPECT_FALSE(LinuxMemory::uio(3, 0, 0, paths_)) << number;
  }
  plant_map(0, "0x0\n", "0x0\n");
  EXPECT_FALSE(LinuxMemory::uio(3, 0, 0, paths_)) << "no bytes";
  plant_map(0, "0x100\n", "0x100000\n");
  EXPECT_FALSE(LinuxMemory::uio(3, 0, 0, paths_)) << "offset beyond a page";
  plant_map(0, "0xffffffffffffffff\n", "0x8\n");
  EXPECT_FALSE(LinuxMemory::uio(3, 0, 0, paths_)) << "wraps";
  plant_map(1, "0x1000\n", "0x0\n");
  EXPECT_EQ(LinuxMemory::uio(3, 1, 0, paths_).problem(),
            path("dev/uio3") + ": has " + std::to_string(page_) + " bytes, not the 4096 from " +
                std::to_string(page_) + " on");
}

TEST_F(Linux, PhysicalMemoryNeedsNoPageToBeginAt) {
  plant_device("dev/mem", 4);
  const LinuxMemory memory = LinuxMemory::physical(page_ + 0x240, 2 * page_, paths_);
  ASSERT_TRUE(memory) << memory.problem();
  EXPECT_EQ(first_word(memory), page_ + 0x240);
  EXPECT_EQ(memory.size(), 2 * page_);
}

TEST_F(Linux, PhysicalMemoryThatCannotBeIsRefused) {
  plant_device("dev/mem", 4);
  EXPECT_FALSE(LinuxMemory::physical(0, 0, paths_));
  EXPECT_FALSE(LinuxMemory::physical(page_, 4 * page_, paths_)) << "beyond the end";
  EXPECT_EQ(LinuxMemory::physical(UINT64_MAX - 64, 128, paths_).problem(),
            path("dev/mem") + ": there are no 128 bytes at 0xffffffffffffffbf");
  fs::remove(folder_ / "dev/mem");
  EXPECT_EQ(LinuxMemory::physical(page_, 64, paths_).problem(),
            path("dev/mem") + ": cannot be opened: No such file or directory; this needs root");
}

TEST_F(Linux, ReservedMemoryIsFoundByName) {
  plant_device("dev/mem", 8);
  plant("tree/reserved-memory/#address-cells", big_endian({2}));
  plant("tree/reserved-memory/#size-cells", big_endian({2}));
  const auto page = static_cast<std::uint32_t>(page_);
  plant("tree/reserved-memory/rproc@1000/reg", big_endian({0, page, 0, 3 * page}));
  plant("tree/reserved-memory/rproc-other@0/reg", big_endian({0, 0, 0, page}));
  for (const char* name : {"rproc", "rproc@1000"}) {
    const LinuxMemory memory = LinuxMemory::reserved(name, 0, paths_);
    ASSERT_TRUE(memory) << memory.problem();
    EXPECT_EQ(first_word(memory), page_);
    EXPECT_EQ(memory.size(), 3 * page_);
  }
  EXPECT_FALSE(LinuxMemory::reserved("rproc", (3 * page_) + 1, paths_));
  for (const char* name : {"", "..", "rpro", "rproc@1000/../rproc-other@0", "/"}) {
    EXPECT_FALSE(LinuxMemory::reserved(name, 0, paths_)) << name;
  }
}

TEST_F(Linux, ReservedMemoryIsReadByItsCells) {
  plant_device("dev/mem", 8);
  const auto page = static_cast<std::uint32_t>(page_);
  plant("tree/reserved-memory/default/reg", big_endian({0, 2 * page, page}));  // 2 and 1
  EXPECT_EQ(first_word(LinuxMemory::reserved("default", 0, paths_)), 2 * page_);
  plant("tree/reserved-memory/#address-cells", big_endian({1}));
  plant("tree/reserved-memory/small/reg", big_endian({3 * page, 64, 9, 9}));
  const LinuxMemory small = LinuxMemory::reserved("small", 0, paths_);
  EXPECT_EQ(first_word(small), 3 * page_);
  EXPECT_EQ(small.size(), 64);
  plant("tree/reserved-memory/short/reg", big_endian({page}));
  EXPECT_FALSE(LinuxMemory::reserved("short", 0, paths_));
  plant("tree/reserved-memory/pool/size", big_endian({page}));
  EXPECT_EQ(LinuxMemory::reserved("pool", 0, paths_).problem(),
            path("tree/reserved-memory/pool") + ": has no fixed address (property 'reg')");
  for (const std::uint32_t cells : {0U, 3U, 0xFFFFFFFFU}) {
    plant("tree/reserved-memory/#address-cells", big_endian({cells}));
    EXPECT_FALSE(LinuxMemory::reserved("small", 0, paths_)) << cells;
  }
}

}  // namespace
