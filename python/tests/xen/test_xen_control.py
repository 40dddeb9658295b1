"""Our declarations of Xen's control interface are those of Xen's own headers; usage is checked."""

import subprocess
from pathlib import Path

import pytest

from latenz.boards import archive
from latenz.boards.packages import fetch

ROOT = Path(__file__).parents[3]
COMPARED = """
#include <cstddef>
#include <cstdint>
extern "C" {
#define __XEN_TOOLS__ 1
#include <xen/xen.h>
#include <xen/domctl.h>
#include <xen/version.h>
#include <xen/sys/privcmd.h>
}
#include "xen_domctl.hpp"
namespace ours = latenz::xen;
#define SAME(a, b) static_assert(static_cast<std::uint64_t>(a) == static_cast<std::uint64_t>(b))
#define AT(mine, m, theirs, t) SAME(offsetof(ours::mine, m), offsetof(struct theirs, t))
SAME(ours::domctl_interface_version, XEN_DOMCTL_INTERFACE_VERSION);
SAME(ours::hypercall_xen_version, __HYPERVISOR_xen_version);
SAME(ours::hypercall_domctl, __HYPERVISOR_domctl);
SAME(ours::xen_version_number, XENVER_version);
SAME(ours::Command::pause_domain, XEN_DOMCTL_pausedomain);
SAME(ours::Command::unpause_domain, XEN_DOMCTL_unpausedomain);
SAME(ours::Command::get_domain_info, XEN_DOMCTL_getdomaininfo);
SAME(ours::Command::set_vcpu_affinity, XEN_DOMCTL_setvcpuaffinity);
SAME(ours::first_reserved_domain, DOMID_FIRST_RESERVED);
SAME(ours::affinity_hard, XEN_VCPUAFFINITY_HARD);
SAME(ours::info_dying, XEN_DOMINF_dying);
SAME(ours::info_shutdown, XEN_DOMINF_shutdown);
SAME(ours::info_paused, XEN_DOMINF_paused);
SAME(ours::info_shutdown_reason_shift, XEN_DOMINF_shutdownshift);
SAME(ours::info_shutdown_reason_mask, XEN_DOMINF_shutdownmask);
AT(Bitmap, address, xenctl_bitmap, bitmap);
AT(Bitmap, bits, xenctl_bitmap, nr_bits);
SAME(sizeof(ours::Bitmap), sizeof(struct xenctl_bitmap));
AT(VcpuAffinity, flags, xen_domctl_vcpuaffinity, flags);
AT(VcpuAffinity, hard, xen_domctl_vcpuaffinity, cpumap_hard);
AT(VcpuAffinity, soft, xen_domctl_vcpuaffinity, cpumap_soft);
AT(DomainInfo, flags, xen_domctl_getdomaininfo, flags);
AT(DomainInfo, pages, xen_domctl_getdomaininfo, tot_pages);
AT(DomainInfo, cpu_time_ns, xen_domctl_getdomaininfo, cpu_time);
AT(DomainInfo, online_vcpus, xen_domctl_getdomaininfo, nr_online_vcpus);
AT(DomainInfo, highest_vcpu, xen_domctl_getdomaininfo, max_vcpu_id);
AT(Request, interface_version, xen_domctl, interface_version);
AT(Request, domain, xen_domctl, domain);
AT(Request, room, xen_domctl, u);
SAME(sizeof(ours::Request), sizeof(struct xen_domctl));
AT(PrivcmdHypercall, number, privcmd_hypercall, op);
AT(PrivcmdHypercall, arguments, privcmd_hypercall, arg);
SAME(sizeof(ours::PrivcmdHypercall), sizeof(privcmd_hypercall));
"""


@pytest.fixture(scope="module")
def headers(tmp_path_factory) -> Path:
    """Xen's public headers, of Debian's package."""
    folder = tmp_path_factory.mktemp("headers")
    (package,) = (each for each in fetch(["libxen-dev"]) if each.name == "libxen-dev")
    for path, content in archive.members(package.path, lambda p: p.startswith("/usr/include/xen/")):
        if isinstance(content, bytes):
            target = folder / path.removeprefix("/usr/include/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    return folder


def compiled(source: str, headers: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "compared.cpp"
    file.write_text(source)
    command = ["aarch64-linux-gnu-g++", "-std=gnu++20", "-fsyntax-only", "-Wno-invalid-offsetof"]
    command += [f"-I{headers}", f"-I{ROOT / 'probes/src'}", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_layouts_and_numbers_are_xens_own(headers, tmp_path):
    done = compiled(COMPARED, headers, tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_comparison_can_fail(headers, tmp_path):
    wrong = COMPARED.replace("XEN_DOMCTL_pausedomain", "XEN_DOMCTL_destroydomain")
    assert "static assertion failed" in compiled(wrong, headers, tmp_path).stderr
