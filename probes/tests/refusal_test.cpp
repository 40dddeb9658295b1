// SPDX-License-Identifier: Apache-2.0
#include "refusal.hpp"

#include <gtest/gtest.h>

namespace latenz::probe {
namespace {

Rights of_root() {
  Rights rights;
  rights.capable = true;
  rights.is_root = true;
  return rights;
}

TEST(WhyRefused, TellsAUserWhatALimitWouldAllow) {
  Rights rights;
  EXPECT_NE(why_refused(rights, 80).find("'USER - rtprio 80'"), std::string::npos);
  rights.priority_limit = 50;
  EXPECT_NE(why_refused(rights, 80).find("the limit rtprio is 50"), std::string::npos);
}

TEST(WhyRefused, DoesNotSendRootToRoot) {
  Rights rights = of_root();
  rights.capable = false;
  EXPECT_NE(why_refused(rights, 80).find("CAP_SYS_NICE"), std::string::npos);
  EXPECT_EQ(why_refused(rights, 80).find("run as root"), std::string::npos);
  rights = of_root();
  rights.in_user_namespace = true;
  EXPECT_NE(why_refused(rights, 80).find("user namespace"), std::string::npos);
}

TEST(WhyRefused, LooksForFurtherCausesWhereTheRightIsThere) {
  Rights rights = of_root();
  rights.filtered = true;
  EXPECT_NE(why_refused(rights, 80).find("seccomp"), std::string::npos);
  rights.empty_group = "/x";
  rights.groups = "/sys/fs/cgroup/cpu";
  EXPECT_NE(why_refused(rights, 80).find("echo $$ > /sys/fs/cgroup/cpu/cgroup.procs"),
            std::string::npos);
  EXPECT_EQ(why_refused(rights, 0).find("RT_GROUP_SCHED"), std::string::npos);
}

TEST(WhyRefused, TakesALimitForARightToo) {
  Rights rights;
  rights.priority_limit = 80;
  rights.empty_group = "/x";
  EXPECT_NE(why_refused(rights, 80).find("/x has no real-time time"), std::string::npos);
}

}  // namespace
}  // namespace latenz::probe
