// SPDX-License-Identifier: Apache-2.0
// What QEMU looks for in each of our plugins.
#include "qemu_plugin.hpp"

#define LATENZ_EXPORT extern "C" __attribute__((visibility("default")))

// NOLINTBEGIN(readability-identifier-naming) the names are QEMU's
LATENZ_EXPORT const int qemu_plugin_version = latenz::probe::qemu_plugin_interface;

LATENZ_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc,
                                      char** argv) {
  return latenz::probe::install(id, *info, {argv, static_cast<std::size_t>(argc)});
}
// NOLINTEND(readability-identifier-naming)
