// SPDX-License-Identifier: Apache-2.0
// latenz-xen-control: lists, pins, holds and releases Xen's domains, from inside Dom0.
//
// A few hypercalls instead of Xen's tool stack: a measurement needs no xenstore, no Python and no
// other libraries in Dom0, so that Dom0 starts soon and does nothing by itself.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "failure.hpp"
#include "file.hpp"
#include "options.hpp"
#include "program.hpp"
#include "system_counter.hpp"
#include "xen_domctl.hpp"

namespace latenz::xen {
namespace {

using probe::Failure;
using probe::File;

constexpr unsigned long ioctl_hypercall = _IOC(_IOC_NONE, 'P', 0, sizeof(PrivcmdHypercall));
constexpr std::size_t page_bytes = 4096;
constexpr std::int64_t most_cpus = 64;
constexpr long poll_interval_ns = 10'000'000;

/// A page that stays where it is while Xen reads and writes it.
class HypercallPage {
 public:
  HypercallPage() : device_(File::open("/dev/xen/hypercall", O_RDWR)) {
    if (!device_.is_open()) {
      throw Failure("/dev/xen/hypercall: " + std::string(std::strerror(errno)) +
                    "; run this as root in Xen's Dom0 with the module xen-privcmd loaded");
    }
    void* const start =
        mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, device_.descriptor(), 0);
    if (start == MAP_FAILED) {
      throw Failure("/dev/xen/hypercall: " + std::string(std::strerror(errno)));
    }
    start_ = start;
  }
  HypercallPage(const HypercallPage&) = delete;
  HypercallPage& operator=(const HypercallPage&) = delete;
  ~HypercallPage() { munmap(start_, page_bytes); }

  struct Content {
    Request request;
    std::uint64_t cpus = 0;
  };

  [[nodiscard]] Content& content() { return *static_cast<Content*>(start_); }

 private:
  File device_;
  void* start_ = nullptr;
};

/// Requests to Xen through the kernel's privcmd device.
class Xen {
 public:
  Xen() : privcmd_(File::open("/dev/xen/privcmd", O_RDWR)) {
    if (!privcmd_.is_open()) {
      throw Failure("/dev/xen/privcmd: " + std::string(std::strerror(errno)) +
                    "; run this as root in Xen's Dom0 with the module xen-privcmd loaded");
    }
  }

  /// What Xen knows of the first domain at or after `domain`; absent: there is none.
  [[nodiscard]] std::optional<DomainInfo> next_domain(std::uint16_t domain) {
    HypercallPage::Content& content = prepare(Command::get_domain_info, domain);
    const int error = send(content);
    if (error == ESRCH) {
      return std::nullopt;
    }
    check(error, "getdomaininfo");
    return content.request.info;
  }

  [[nodiscard]] DomainInfo info(std::uint16_t domain) {
    const std::optional<DomainInfo> found = next_domain(domain);
    if (!found || found->domain != domain) {
      throw Failure("domain " + std::to_string(domain) + ": there is none; ask for `list`");
    }
    return *found;
  }

  void pause(std::uint16_t domain) { act(Command::pause_domain, domain, "pausedomain"); }
  void unpause(std::uint16_t domain) { act(Command::unpause_domain, domain, "unpausedomain"); }

  void pin(std::uint16_t domain, std::uint32_t vcpu, unsigned cpu) {
    HypercallPage::Content& content = prepare(Command::set_vcpu_affinity, domain);
    content.cpus = std::uint64_t{1} << cpu;
    VcpuAffinity& affinity = content.request.affinity;
    affinity.vcpu = vcpu;
    affinity.flags = affinity_hard;
    affinity.hard.address = reinterpret_cast<std::uint64_t>(&content.cpus);
    affinity.hard.bits = static_cast<std::uint32_t>(most_cpus);
    check(send(content), "setvcpuaffinity");
  }

 private:
  HypercallPage::Content& prepare(Command command, std::uint16_t domain) {
    HypercallPage::Content& content = page_.content();
    content = {};
    content.request.command = command;
    content.request.domain = domain;
    return content;
  }

  void act(Command command, std::uint16_t domain, std::string_view name) {
    check(send(prepare(command, domain)), name);
  }

  /// Returns 0 or the errno value; Linux' and Xen's numbers are the same.
  int send(HypercallPage::Content& content) {
    const PrivcmdHypercall call{hypercall_domctl,
                                {reinterpret_cast<std::uint64_t>(&content.request)}};
    return ioctl(privcmd_.descriptor(), ioctl_hypercall, &call) < 0 ? errno : 0;
  }

  void check(int error, std::string_view name) {
    if (error == 0) {
      return;
    }
    const std::string reason = std::strerror(error);
    if (error == EACCES) {
      throw Failure(std::string(name) + ": " + version() +
                    " refuses control interface 0x15; it wants Xen 4.17");
    }
    throw Failure(std::string(name) + ": Xen answers: " + reason);
  }

  [[nodiscard]] std::string version() const {
    const PrivcmdHypercall call{hypercall_xen_version, {xen_version_number}};
    const int number = ioctl(privcmd_.descriptor(), ioctl_hypercall, &call);
    return number < 0
               ? "Xen"
               : "Xen " + std::to_string(number >> 16) + "." + std::to_string(number & 0xffff);
  }

  File privcmd_;
  HypercallPage page_;
};

std::string described(const DomainInfo& info) {
  const bool shutdown = (info.flags & info_shutdown) != 0;
  const std::uint32_t reason =
      (info.flags >> info_shutdown_reason_shift) & info_shutdown_reason_mask;
  return "domain=" + std::to_string(info.domain) + " vcpus=" + std::to_string(info.online_vcpus) +
         " paused=" + std::to_string(static_cast<int>((info.flags & info_paused) != 0)) +
         " shutdown=" + (shutdown ? std::to_string(reason) : "no") +
         " cpu_time_ns=" + std::to_string(info.cpu_time_ns) + "\n";
}

void list(Xen& xen) {
  unsigned domain = 0;
  while (domain < first_reserved_domain) {
    const std::optional<DomainInfo> info = xen.next_domain(static_cast<std::uint16_t>(domain));
    if (!info) {
      return;
    }
    probe::print(stdout, described(*info));
    domain = info->domain + 1U;
  }
}

void pin_all(Xen& xen, std::uint16_t domain, unsigned cpu) {
  const std::uint32_t vcpus = xen.info(domain).highest_vcpu + 1;  // 0 where there is none
  for (std::uint32_t vcpu = 0; vcpu < vcpus; ++vcpu) {
    xen.pin(domain, vcpu, cpu);
  }
}

/// Returns when the domain has shut down, so that a script need not poll.
void wait_for_shutdown(Xen& xen, std::uint16_t domain) {
  const timespec interval{0, poll_interval_ns};
  while ((xen.info(domain).flags & (info_shutdown | info_dying)) == 0) {
    nanosleep(&interval, nullptr);
  }
  probe::print(stdout, described(xen.info(domain)));
}

/// This domain's virtual counter, in nanoseconds since Xen created the domain.
std::string counter_now() { return std::to_string(probe::system_counter_ns()) + "\n"; }

constexpr std::string_view help = R"(Usage: latenz-xen-control VERB [DOMAIN] [CPU]

Controls the domains of Xen 4.17 from inside its Dom0, through the kernel's privcmd device.

  list             what Xen knows of each domain, one a line
  pin DOMAIN CPU   let all virtual CPUs of the domain run on this physical CPU only
  pause DOMAIN     stop the domain, which keeps its state; print when that was done
  unpause DOMAIN   let it go on; print when that was done
  wait DOMAIN      return when the domain has shut down

Times are those of the virtual counter of the domain this runs in, in nanoseconds since Xen created
the domain.

  --help           print this text
  --version        print the version

Exit code: 0 done; 2 wrong usage, not in Dom0, or Xen refuses.
)";

std::uint16_t parse_domain(std::string_view text) {
  return static_cast<std::uint16_t>(
      probe::parse_integer("DOMAIN", text, 0, first_reserved_domain - 1));
}

int control(std::span<const char* const> arguments) {
  const std::string_view verb = arguments.empty() ? "" : arguments[0];
  const std::size_t given = arguments.size();
  if (verb == "--help") {
    probe::print(stdout, std::string(help));
  } else if (verb == "--version") {
    probe::print(stdout, "latenz-xen-control " LATENZ_VERSION "\n");
  } else if (verb == "list" && given == 1) {
    Xen xen;
    list(xen);
  } else if (verb == "pin" && given == 3) {
    const std::uint16_t domain = parse_domain(arguments[1]);
    const std::int64_t cpu = probe::parse_integer("CPU", arguments[2], 0, most_cpus - 1);
    Xen xen;
    pin_all(xen, domain, static_cast<unsigned>(cpu));
  } else if ((verb == "pause" || verb == "unpause" || verb == "wait") && given == 2) {
    const std::uint16_t domain = parse_domain(arguments[1]);
    Xen xen;
    if (verb == "pause") {
      xen.pause(domain);
      probe::print(stdout, counter_now());
    } else if (verb == "unpause") {
      xen.unpause(domain);
      probe::print(stdout, counter_now());
    } else {
      wait_for_shutdown(xen, domain);
    }
  } else {
    throw Failure("no such usage; see --help");
  }
  return 0;
}

}  // namespace
}  // namespace latenz::xen

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-xen-control", count, arguments, latenz::xen::control);
}
