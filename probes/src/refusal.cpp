// SPDX-License-Identifier: Apache-2.0
#include "refusal.hpp"
#include "text.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace latenz::probe {
namespace {

constexpr unsigned cap_sys_nice = 23;
constexpr std::int64_t all_users = 0xFFFFFFFF;

std::string field_of_status(std::string_view name) {
  Text file = Text::of_file("/proc/self/status");
  std::string line;
  while (file.line(line)) {
    if (line.starts_with(name)) {
      return line.substr(line.find_first_not_of(" \t", name.size()));
    }
  }
  return {};
}

/// Whether the initial user namespace is not ours: only that one's root is root to the scheduler.
bool in_user_namespace() {
  Text file = Text::of_file("/proc/self/uid_map");
  std::int64_t inside = 0;
  std::int64_t outside = 0;
  std::int64_t length = 0;
  file >> inside >> outside >> length;
  return static_cast<bool>(file) && (inside != 0 || outside != 0 || length != all_users);
}

bool has_word(const std::string& list, std::string_view wanted) {
  Text words(list);
  for (std::string word; words.line(word, ',');) {
    if (word == wanted) {
      return true;
    }
  }
  return false;
}

/// Our control group of the controller `cpu`, as version 1 has it; else that of version 2.
struct Group {
  std::string path;
  bool unified = false;
};

std::optional<Group> group_of_cpu() {
  Text file = Text::of_file("/proc/self/cgroup");
  std::optional<Group> unified;
  for (std::string line; file.line(line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (has_word(controllers, "cpu")) {
      return Group{.path = line.substr(second + 1), .unified = false};
    }
    if (controllers.empty()) {
      unified = Group{.path = line.substr(second + 1), .unified = true};
    }
  }
  return unified;
}

/// Where the groups are mounted, and which of them is the root of the mount.
struct Mount {
  std::string root;
  std::string folder;
};

std::optional<Mount> mount_of(bool unified) {
  Text file = Text::of_file("/proc/self/mountinfo");
  for (std::string line; file.line(line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) {
      continue;
    }
    Text before(line.substr(0, dash));
    Text after(line.substr(dash + 3));
    std::string number;
    std::string parent;
    std::string device;
    Mount mount;
    std::string type;
    std::string source;
    std::string options;
    before >> number >> parent >> device >> mount.root >> mount.folder;
    after >> type >> source >> options;
    if (unified ? type == "cgroup2" : type == "cgroup" && has_word(options, "cpu")) {
      return mount;
    }
  }
  return std::nullopt;
}

/// Finds the group that has no real-time time (RT_GROUP_SCHED), if that is what ours is.
void find_empty_group(Rights& rights) {
  const auto group = group_of_cpu();
  const auto mount = group ? mount_of(group->unified) : std::nullopt;
  if (!mount) {
    return;
  }
  std::string below = group->path;
  if (mount->root != "/" && below.starts_with(mount->root)) {
    below.erase(0, mount->root.size());
  }
  if (below.empty() || below == "/") {
    return;
  }
  const std::string folder = mount->folder + below;
  std::int64_t runtime_us = -1;
  if (group->unified) {
    // Version 2 has no file for it: a group that has the controller has none of that time.
    runtime_us = Text::of_file(folder + "/cpu.max") ? 0 : -1;
  } else {
    if (!(Text::of_file(folder + "/cpu.rt_runtime_us") >> runtime_us)) runtime_us = -1;
  }
  if (runtime_us == 0) {
    rights.empty_group = below;
    rights.groups = mount->folder;
  }
}

}  // namespace

Rights read_rights() {
  Rights rights;
  const std::string effective = field_of_status("CapEff:");
  const auto capabilities = std::strtoull(effective.c_str(), nullptr, 16);
  rights.capable = (capabilities >> cap_sys_nice & 1U) != 0;
  rights.in_user_namespace = in_user_namespace();
  rights.is_root = geteuid() == 0;
  rights.filtered = field_of_status("Seccomp:") == "2";
  rlimit limit{};
  getrlimit(RLIMIT_RTPRIO, &limit);
  constexpr rlim_t highest = 99;
  rights.priority_limit = static_cast<std::int64_t>(std::min(limit.rlim_cur, highest));
  find_empty_group(rights);
  return rights;
}

std::string why_refused(const Rights& rights, int priority) {
  const std::string wanted = std::to_string(priority);
  const bool allowed = priority > 0 && rights.priority_limit >= priority;
  if (!allowed && rights.in_user_namespace) {
    return "root of a user namespace (a rootless container) is not root to the scheduler; start it "
           "outside, or by a user with 'rtprio " +
           wanted + "' in /etc/security/limits.conf";
  }
  if (!allowed && !rights.capable && rights.is_root) {
    return "this container or service has no CAP_SYS_NICE; start it with --cap-add=SYS_NICE "
           "(systemd: AmbientCapabilities=CAP_SYS_NICE)";
  }
  if (!allowed && !rights.capable && priority == 0) {
    return "not permitted; run as root";
  }
  if (!allowed && !rights.capable && rights.priority_limit > 0) {
    return "the limit rtprio is " + std::to_string(rights.priority_limit) +
           "; take that priority, run as root, or allow it with 'USER - rtprio " + wanted +
           "' in /etc/security/limits.conf";
  }
  if (!allowed && !rights.capable) {
    return "not permitted; run as root, or allow it with 'USER - rtprio " + wanted +
           "' in /etc/security/limits.conf";
  }
  if (priority > 0 && !rights.empty_group.empty()) {
    return "the control group " + rights.empty_group +
           " has no real-time time (RT_GROUP_SCHED); leave it: echo $$ > " + rights.groups +
           "/cgroup.procs";
  }
  if (rights.filtered) {
    return "a filter of system calls forbids it; start the container with --security-opt "
           "seccomp=unconfined";
  }
  if (priority == 0) {
    return "a cpuset leaves only a part of the CPUs that are scheduled together, and "
           "SCHED_DEADLINE "
           "needs all of them; leave it, or use --policy fifo";
  }
  return "not permitted by a security module; look for what was denied in the kernel's log";
}

}  // namespace latenz::probe
