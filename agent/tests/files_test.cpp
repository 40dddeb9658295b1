// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "failure.hpp"

namespace latenz::agent {
namespace {

namespace fs = std::filesystem;
using probe::Failure;

class Files : public testing::Test {
 protected:
  Files() {
    std::string pattern = fs::temp_directory_path() / "agent-test.XXXXXX";
    folder_ = mkdtemp(pattern.data());
    fs::create_directories(folder_ / "run/cpu0");
  }
  ~Files() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text, bool append = false) const {
    std::ofstream(folder_ / name, append ? std::ios::app : std::ios::trunc) << text;
  }

  fs::path folder_;
};

TEST_F(Files, NothingLeadsOutOfTheHome) {
  EXPECT_EQ(below("/home", "run/cpu0"), "/home/run/cpu0");
  for (const std::string bad : {"", "/etc", "..", "run/../..", "run/..", "./run", "run/"}) {
    EXPECT_THROW(static_cast<void>(below("/home", bad)), Failure) << bad;
  }
  EXPECT_THROW(static_cast<void>(below("/home", std::string("run\0x", 5))), Failure);
}

TEST_F(Files, TellsWhyAFileCannotBeRead) {
  write("some", "text");
  const auto path = [this](const char* name) { return (folder_ / name).string(); };
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const auto told = read_files({"3", path("some"), path("absent"), path("run"), path("pipe")});
  EXPECT_EQ(told, (Fields{std::to_string(EFBIG), "", std::to_string(ENOENT), "",
                          std::to_string(EISDIR), "", std::to_string(EINVAL), ""}));
  EXPECT_EQ(read_files({"4", path("some")}), (Fields{"0", "text"}));
  EXPECT_FALSE(read_files({"100000", "/proc/self/status"})[1].empty());
}

TEST_F(Files, NewsAreWhatTheOtherSideLacks) {
  Mirror mirror(folder_);
  write("run/cpu0/samples.journal", "0123456789");
  const auto first = mirror.news({"run", "4"});
  ASSERT_EQ(first.size(), 6U);
  EXPECT_EQ(first[0], "1");  // there is more
  EXPECT_EQ(first[1], "cpu0/samples.journal");
  EXPECT_EQ((Fields{first[3], first[4], first[5]}), (Fields{"0", "10", "0123"}));
  const auto second = mirror.news({"run", "100", first[1], first[2], "4"});
  EXPECT_EQ((Fields{second[0], second[3], second[5]}), (Fields{"0", "4", "456789"}));
  EXPECT_EQ(mirror.news({"run", "100", first[1], first[2], "10"}), Fields{"0"});
}

TEST_F(Files, AReplacedFileComesAnewWhateverItsSize) {
  Mirror mirror(folder_);
  write("run/probe.json", "{1}");
  const auto first = mirror.news({"run", "100"});
  write("run/probe.json.new", "{2}");
  EXPECT_EQ(mirror.news({"run", "100", first[1], first[2], "3"}), Fields{"0"});
  fs::rename(folder_ / "run/probe.json.new", folder_ / "run/probe.json");
  const auto second = mirror.news({"run", "100", first[1], first[2], "3"});
  ASSERT_EQ(second.size(), 6U);
  EXPECT_EQ((Fields{second[3], second[5]}), (Fields{"0", "{2}"}));
}

TEST_F(Files, MemoryOfWhatHasArrivedIsGivenBack) {
  Mirror mirror(folder_);
  write("run/samples.journal", std::string(1U << 20U, 'x'));
  const auto path = folder_ / "run/samples.journal";
  struct stat before{};
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  const auto first = mirror.news({"run", "1"});
  const std::string arrived = std::to_string(1U << 20U);
  EXPECT_EQ(mirror.news({"run", "1", first[1], first[2], arrived}), Fields{"0"});
  struct stat after{};
  ASSERT_EQ(stat(path.c_str(), &after), 0);
  EXPECT_EQ(after.st_size, before.st_size);
  EXPECT_LT(after.st_blocks, before.st_blocks / 100 + 1);
  write("run/samples.journal", "more", true);
  const auto second = mirror.news({"run", "100", first[1], first[2], arrived});
  EXPECT_EQ((Fields{second[3], second[5]}), (Fields{arrived, "more"}));
}

TEST_F(Files, LinksAreNotFollowedOutOfARun) {
  write("secret", "text");
  fs::create_symlink(folder_ / "secret", folder_ / "run/link.journal");
  fs::create_directory_symlink(folder_, folder_ / "run/cpu0/all");
  EXPECT_EQ(Mirror(folder_).news({"run", "100"}), Fields{"0"});
}

}  // namespace
}  // namespace latenz::agent
