// SPDX-License-Identifier: Apache-2.0
#include "trace_event.hpp"

#include <unordered_map>

namespace latenz::trace {

Kind kind_of(std::string_view name) {
  static const std::unordered_map<std::string_view, Kind> kinds = {
      {"contention_begin", Kind::contention_begin},
      {"function", Kind::function},
      {"hrtimer_cancel", Kind::hrtimer_cancel},
      {"hrtimer_expire_entry", Kind::hrtimer_expire_entry},
      {"hrtimer_expire_exit", Kind::hrtimer_expire_exit},
      {"hrtimer_start", Kind::hrtimer_start},
      {"hwlat", Kind::hwlat},
      {"kernel_stack", Kind::stack},
      {"kvm_entry", Kind::kvm_entry},
      {"kvm_exit", Kind::kvm_exit},
      {"irq_noise", Kind::noise},
      {"kvm_userspace_exit", Kind::kvm_userspace_exit},
      {"nmi_noise", Kind::noise},
      {"sched_switch", Kind::sched_switch},
      {"sched_wakeup", Kind::sched_wakeup},
      {"sched_waking", Kind::sched_waking},
      {"softirq_noise", Kind::noise},
      {"thread_noise", Kind::noise},
      {"timerlat", Kind::timerlat},
      {"user_stack", Kind::stack},
  };
  const auto found = kinds.find(name);
  return found == kinds.end() ? Kind::other : found->second;
}

}  // namespace latenz::trace
