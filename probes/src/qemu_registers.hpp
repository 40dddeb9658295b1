// SPDX-License-Identifier: Apache-2.0
// What some of our plugins use of QEMU's interface besides what all of them use: registers by name,
// memory and the values of accesses, and of GLib the arrays in which QEMU hands them out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "qemu_plugin.hpp"

// NOLINTBEGIN(readability-identifier-naming) the names are QEMU's and GLib's
extern "C" {

struct GByteArray {
  std::uint8_t* data;
  unsigned len;
};
struct GArray {
  char* data;
  unsigned len;
};
GByteArray* g_byte_array_new();
GByteArray* g_byte_array_set_size(GByteArray* array, unsigned length);
char* g_array_free(GArray* array, int free_segment);

struct qemu_plugin_register;  ///< a register of the vCPU that was asked for its registers

struct qemu_plugin_reg_descriptor {
  qemu_plugin_register* handle;
  const char* name;
  const char* feature;
};

inline constexpr auto QEMU_PLUGIN_CB_R_REGS = static_cast<qemu_plugin_cb_flags>(1);

/// What an access read or wrote: of its size, in the bytes that come first.
struct qemu_plugin_mem_value {
  int type;
  union {
    std::uint8_t u8;
    std::uint16_t u16;
    std::uint32_t u32;
    std::uint64_t u64;
    struct {
      std::uint64_t low;
      std::uint64_t high;
    } u128;
  } data;
};

GArray* qemu_plugin_get_registers();
bool qemu_plugin_read_memory_vaddr(std::uint64_t address, GByteArray* buffer, std::size_t size);
qemu_plugin_mem_value qemu_plugin_mem_get_value(qemu_plugin_meminfo_t info);
int qemu_plugin_read_register(qemu_plugin_register* handle, GByteArray* buffer);
void qemu_plugin_register_vcpu_resume_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_simple_cb_t called);
using qemu_plugin_udata_cb_t = void (*)(qemu_plugin_id_t id, void* data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_plugin_udata_cb_t called, void* data);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
std::uint64_t qemu_plugin_hwaddr_phys_addr(const qemu_plugin_hwaddr* place);

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

namespace latenz::coherence {

using latenz::probe::misfit;
using latenz::probe::word_of;

}  // namespace latenz::coherence
