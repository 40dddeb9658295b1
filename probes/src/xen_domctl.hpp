// SPDX-License-Identifier: Apache-2.0
// The part of Xen's control interface that Latenz uses: layouts and numbers of Xen 4.17.
//
// Source: the public headers of Xen 4.17, xen/include/public/{xen,domctl}.h and
// arch-arm.h (Debian package libxen-dev), and include/xen/privcmd.h of Linux. The interface has a
// version of its own and promises nothing across versions; Xen refuses a request of another one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace latenz::xen {

inline constexpr std::uint32_t domctl_interface_version = 0x15;  ///< of Xen 4.17

inline constexpr std::uint64_t hypercall_xen_version = 17;
inline constexpr std::uint64_t hypercall_domctl = 36;
inline constexpr std::uint64_t xen_version_number = 0;  ///< answers major << 16 | minor

enum class Command : std::uint32_t {
  pause_domain = 3,
  unpause_domain = 4,
  get_domain_info = 5,
  set_vcpu_affinity = 9,
};

inline constexpr std::uint16_t first_reserved_domain = 0x7ff0;

/// A set of CPUs; one word is enough for any board of Latenz.
struct Bitmap {
  std::uint64_t address = 0;  ///< of the bits, in this process
  std::uint32_t bits = 0;
  std::uint32_t padding = 0;
};

inline constexpr std::uint32_t affinity_hard = 1;

struct VcpuAffinity {
  std::uint32_t vcpu = 0;
  std::uint32_t flags = 0;
  Bitmap hard;
  Bitmap soft;
};

inline constexpr std::uint32_t info_dying = 1U << 0;
inline constexpr std::uint32_t info_shutdown = 1U << 2;
inline constexpr std::uint32_t info_paused = 1U << 3;
inline constexpr unsigned info_shutdown_reason_shift = 16;
inline constexpr std::uint32_t info_shutdown_reason_mask = 255;

struct DomainInfo {
  std::uint16_t domain = 0;
  std::uint16_t padding = 0;
  std::uint32_t flags = 0;
  std::uint64_t pages = 0;
  std::array<std::uint64_t, 5> other_pages{};
  std::uint64_t cpu_time_ns = 0;
  std::uint32_t online_vcpus = 0;
  std::uint32_t highest_vcpu = 0;  ///< all ones: the domain has none
};

/// One request to Xen, and its answer in the same place.
struct Request {
  Command command = Command::get_domain_info;
  std::uint32_t interface_version = domctl_interface_version;
  std::uint16_t domain = 0;
  std::array<std::uint16_t, 3> padding{};
  union {
    std::array<std::uint64_t, 16> room{};  ///< 128 bytes, whatever the command
    VcpuAffinity affinity;
    DomainInfo info;
  };
};

static_assert(sizeof(Bitmap) == 16);
static_assert(offsetof(VcpuAffinity, soft) == 24);
static_assert(offsetof(DomainInfo, cpu_time_ns) == 56);
static_assert(offsetof(DomainInfo, highest_vcpu) == 68);
static_assert(offsetof(Request, room) == 16);
static_assert(sizeof(Request) == 144);

/// What the kernel's /dev/xen/privcmd passes on to Xen.
struct PrivcmdHypercall {
  std::uint64_t number = 0;
  std::array<std::uint64_t, 5> arguments{};
};

static_assert(sizeof(PrivcmdHypercall) == 48);

}  // namespace latenz::xen
