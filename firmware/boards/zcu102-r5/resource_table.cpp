// SPDX-License-Identifier: Apache-2.0
// What Linux's remoteproc reads in the image: the memory that the firmware needs, at its address.
#include <cstdint>

namespace {

/// Layout: Linux, include/linux/remoteproc.h (resource_table, fw_rsc_hdr, fw_rsc_carveout).
struct ResourceTable {
  std::uint32_t version;
  std::uint32_t entries;
  std::uint32_t reserved[2];
  std::uint32_t offset;
  std::uint32_t type;
  std::uint32_t device_address;
  std::uint32_t physical_address;
  std::uint32_t length;
  std::uint32_t flags;
  std::uint32_t carveout_reserved;
  char name[32];
};

static_assert(sizeof(ResourceTable) == 76, "remoteproc knows no padding");

}  // namespace

extern "C" {
[[gnu::section(".resource_table"), gnu::used]] constinit const ResourceTable resource_table = {
    .version = 1,
    .entries = 1,
    .reserved = {},
    .offset = 20,
    .type = 0,
    .device_address = 0x7000'0000,
    .physical_address = 0x7000'0000,
    .length = 0x40'0000,
    .flags = 0,
    .carveout_reserved = 0,
    .name = "latenz",
};
}
