// SPDX-License-Identifier: Apache-2.0
#include "system_calls.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "failure.hpp"

namespace latenz::agent {
namespace {

namespace fs = std::filesystem;
using probe::Failure;

class SystemCallsTest : public testing::Test {
 protected:
  SystemCallsTest() {
    std::string pattern = fs::temp_directory_path() / "agent-test.XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~SystemCallsTest() override { fs::remove_all(folder_); }

  Fields call(const std::string& name, const Fields& arguments) {
    Fields fields{std::to_string(++number_), name};
    fields.insert(fields.end(), arguments.begin(), arguments.end());
    return calls_.call(fields);
  }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
  SystemCalls calls_;
  int number_ = 0;
};

const Fields done{"0"};

TEST_F(SystemCallsTest, ACallIsMadeOnceHoweverOftenItIsAskedFor) {
  std::ofstream(at("file")) << "text";
  EXPECT_EQ(calls_.call({"1", "rename", at("file"), at("other")}), done);
  EXPECT_EQ(calls_.call({"1", "rename", at("file"), at("other")}), done);
  EXPECT_EQ(calls_.call({"2", "rename", at("file"), at("other")}), Fields{std::to_string(ENOENT)});
  EXPECT_THROW(static_cast<void>(calls_.call({"1", "remove", at("other")})), Failure);
  EXPECT_EQ(read("other"), "text");
}

TEST_F(SystemCallsTest, AFileIsPutWholeWithItsLooks) {
  std::ofstream(at("file")) << "before";
  const std::string content("one\0two\n", 8);
  EXPECT_EQ(call("put", {at("file"), at(".partial"), content, "416", "", "", "-1500000000", "0"}),
            done);
  EXPECT_EQ(read("file"), content);
  EXPECT_FALSE(fs::exists(at(".partial")));
  const Fields status = call("status", {at("file")});
  struct stat found{};
  ASSERT_EQ(stat(at("file").c_str(), &found), 0);
  EXPECT_EQ(status, (Fields{"0", std::to_string(S_IFREG | 0640U), "1", std::to_string(geteuid()),
                            std::to_string(found.st_gid), "-1500000000"}));
  EXPECT_EQ(found.st_mtim.tv_sec, -2);
  EXPECT_EQ(found.st_mtim.tv_nsec, 500'000'000);
  const std::string late = "1795796852543089304";
  EXPECT_EQ(call("put", {at("file"), at(".partial"), content, "416", "", "", late, "0"}), done);
  EXPECT_EQ(call("status", {at("file")}).back(), late);
  EXPECT_THROW(static_cast<void>(call("put", {at("file"), at("p"), "", "416", "", "", "1 s", "0"})),
               Failure);
}

TEST_F(SystemCallsTest, AttributesAreThoseGivenAndNoOthers) {
  std::ofstream(at("file")) << "before";
  const Fields both{at("file"), at(".partial"), "new", "420",    "", "", "",
                    "1",        "user.a",       "1",   "user.b", "2"};
  if (call("put", both) == Fields{std::to_string(ENOTSUP)}) GTEST_SKIP() << "no user attributes";
  EXPECT_EQ(call("attributes", {at("file")}), (Fields{"0", "user.a", "1", "user.b", "2"}));
  EXPECT_EQ(call("put", {at("file"), at(".partial"), "x", "420", "", "", "", "1", "user.b", "3"}),
            done);
  EXPECT_EQ(call("attributes", {at("file")}), (Fields{"0", "user.b", "3"}));
}

TEST_F(SystemCallsTest, AJournalHasRoomAndIsWrittenInPlace) {
  EXPECT_EQ(call("new", {at("journal"), "head\n", "100"}), done);
  EXPECT_EQ(call("at", {at("journal"), "5", "next\n"}), done);
  EXPECT_EQ(read("journal"), "head\nnext\n" + std::string(95, '\0'));
  EXPECT_EQ(call("new", {at("journal"), "other", "0"}), done);
  EXPECT_EQ(read("journal"), "other");
}

TEST_F(SystemCallsTest, FoldersLinksAndNames) {
  EXPECT_EQ(call("folder", {at("made"), "493"}), done);
  EXPECT_EQ(call("folder", {at("made"), "448"}), done);  // what is there stays as it is
  EXPECT_EQ(fs::status(at("made")).permissions(), fs::perms(0755));
  std::ofstream(at("file")) << "text";
  EXPECT_EQ(call("folder", {at("file"), "493"}), Fields{std::to_string(EEXIST)});
  EXPECT_EQ(call("point", {at("made/link"), at("made/.partial"), "../file"}), done);
  EXPECT_EQ(call("point", {at("made/link"), at("made/.partial"), "../other"}), done);
  EXPECT_EQ(call("link", {at("made/link")}), (Fields{"0", "../other"}));
  EXPECT_EQ(call("names", {at("made")}), (Fields{"0", "link"}));
  EXPECT_EQ(call("remove_folder", {at("made")}), Fields{std::to_string(ENOTEMPTY)});
  EXPECT_EQ(call("remove", {at("made/link")}), done);
  EXPECT_EQ(call("remove", {at("made/link")}), done);  // nothing is left to remove
  EXPECT_EQ(call("remove_folder", {at("made")}), done);
  EXPECT_EQ(call("names", {at("made")}), Fields{std::to_string(ENOENT)});
}

TEST_F(SystemCallsTest, LinksAreFollowedAsTheKernelDoes) {
  fs::create_directories(at("a/b"));
  fs::create_symlink("a/b", at("to-b"));
  fs::create_symlink(at("a"), at("to-a"));
  fs::create_symlink("nowhere", at("dangling"));
  fs::create_symlink("circle", at("circle"));
  const std::string real = fs::canonical(folder_);
  EXPECT_EQ(call("real", {at("to-b/../new"), "1"}), (Fields{"0", real + "/a/new"}));
  EXPECT_EQ(call("real", {at("to-a/b"), "1"}), (Fields{"0", real + "/a/b"}));
  EXPECT_EQ(call("real", {at("to-a"), "0"}), (Fields{"0", real + "/to-a"}));
  EXPECT_EQ(call("real", {at("dangling"), "1"}), (Fields{"0", real + "/nowhere"}));
  EXPECT_EQ(call("real", {at("circle"), "1"}), Fields{std::to_string(ELOOP)});
  EXPECT_EQ(call("real", {"/", "1"}), (Fields{"0", "/"}));
}

TEST_F(SystemCallsTest, ALockIsHeldUntilItIsGivenBack) {
  SystemCalls other;
  EXPECT_EQ(call("lock", {folder_}), done);
  EXPECT_EQ(other.call({"1", "lock", folder_}), Fields{std::to_string(EWOULDBLOCK)});
  EXPECT_EQ(call("unlock", {}), done);
  EXPECT_EQ(other.call({"2", "lock", folder_}), done);
}

TEST_F(SystemCallsTest, AThreadIsScheduledAndPlaced) {
  const std::string self = std::to_string(gettid());
  const Fields before = call("scheduling", {self});
  ASSERT_EQ(before.size(), 4U);
  EXPECT_EQ(before[2], "0");
  const std::string first = before[1].substr(0, before[1].find(','));
  EXPECT_EQ(call("allow", {self, first}), done);
  EXPECT_EQ(call("schedule", {self, std::to_string(SCHED_BATCH), "0"}), done);
  EXPECT_EQ(call("scheduling", {self}), (Fields{"0", first, std::to_string(SCHED_BATCH), "0"}));
  EXPECT_EQ(call("allow", {self, before[1]}), done);
  EXPECT_EQ(call("schedule", {self, "0", "0"}), done);
  EXPECT_EQ(call("scheduling", {self}), before);
}

TEST_F(SystemCallsTest, WhatIsNoCallIsRefusedAndChangesNothing) {
  std::ofstream(at("file")) << "text";
  for (const Fields& bad :
       {Fields{"1", "erase", at("file")}, Fields{"1", "remove"}, Fields{"1", "remove", "file"},
        Fields{"1", "mode", at("file"), "4096"}, Fields{"1", "put", at("file"), at("p"), "new"},
        Fields{"1", "at", at("file"), "-1", "x"}, Fields{"x", "remove", at("file")}, Fields{"1"},
        Fields{"1", "remove", at("file") + std::string("\0x", 2)}}) {
    EXPECT_THROW(static_cast<void>(calls_.call(bad)), Failure) << bad.back();
  }
  EXPECT_EQ(read("file"), "text");
}

}  // namespace
}  // namespace latenz::agent
