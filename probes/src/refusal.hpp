// SPDX-License-Identifier: Apache-2.0
// Why the kernel refuses a scheduling policy with EPERM, which many things can cause.
#pragma once

#include <cstdint>
#include <string>

namespace latenz::probe {

/// What the kernel goes by.
struct Rights {
  bool capable = false;  ///< has CAP_SYS_NICE, if only within its user namespace
  bool in_user_namespace = false;
  bool is_root = false;
  std::int64_t priority_limit = 0;  ///< RLIMIT_RTPRIO
  std::string empty_group;          ///< control group without real-time time, mounted at ...
  std::string groups;               ///< ... this folder
  bool filtered = false;            ///< a seccomp filter is in place
};

[[nodiscard]] Rights read_rights();

/// The cause and the remedy, as a clause.
/// `priority`: of fifo or rr; 0 for SCHED_DEADLINE, which no limit allows.
[[nodiscard]] std::string why_refused(const Rights& rights, int priority);

}  // namespace latenz::probe
