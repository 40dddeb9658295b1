SUMMARY = "Measures this machine's latencies for Latenz on another one"
DESCRIPTION = "One program with the wake-up probe, loads, trace recording, \
               snapshots and settings of Latenz. Latenz pushes its own one to a \
               machine that has none; an image that has it needs no writable and \
               executable folder for that."
SECTION = "devel"
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSE;md5=3b83ef96387f14655fc854ddc3c6bd57"

CVE_PRODUCT = "latenz"

# The source archive of the release, as setup/release has made it, or a mirror of it.
LATENZ_SOURCES ?= "file://${TOPDIR}/../downloads"
SRC_URI = "${LATENZ_SOURCES}/latenz-${PV}.tar.gz"
SRC_URI[sha256sum] = "${LATENZ_SHA256}"
# From the release's SHA256SUMS; without it the build stops and says what the sum is.
LATENZ_SHA256 ?= ""

# releases of Yocto before styhead unpack into WORKDIR
UNPACKDIR ??= "${WORKDIR}"
S = "${UNPACKDIR}/latenz-${PV}"

inherit cmake

EXTRA_OECMAKE = "-DCMAKE_BUILD_TYPE=MinSizeRel"
OECMAKE_TARGET_COMPILE = "latenz-agent"

do_install() {
    install -D -m 0755 ${B}/agent/latenz-agent ${D}${bindir}/latenz-agent
}
