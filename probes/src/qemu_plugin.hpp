// SPDX-License-Identifier: Apache-2.0
// What our plugins use of QEMU's plugin interface, and what they share.
//
// Declared here because distributions ship QEMU without its header. QEMU compares
// `qemu_plugin_version`, which every plugin defines, with the versions it supports, and refuses to
// load the plugin if they do not fit. Names and types are those of interface version 4 (QEMU 9.2
// and 10.0); they are QEMU's, hence the C style.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace latenz::probe {

inline constexpr int qemu_plugin_interface = 4;

}  // namespace latenz::probe

// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

struct qemu_info_t {
  const char* target_name;
  struct {
    int min;
    int cur;
  } version;
  bool system_emulation;
  struct {
    int smp_vcpus;
    int max_vcpus;
  } system;
};

struct qemu_plugin_tb;          ///< a translation block, valid while it is translated
struct qemu_plugin_insn;        ///< an instruction of it
struct qemu_plugin_hwaddr;      ///< where a memory access went, valid in its callback
struct qemu_plugin_scoreboard;  ///< an element of memory for each vCPU

/// A 64-bit variable in each element of a scoreboard.
struct qemu_plugin_u64 {
  qemu_plugin_scoreboard* score;
  std::size_t offset;
};

using qemu_plugin_id_t = std::uint64_t;
using qemu_plugin_meminfo_t = std::uint32_t;

enum qemu_plugin_cb_flags : unsigned { QEMU_PLUGIN_CB_NO_REGS = 0 };
enum qemu_plugin_mem_rw : unsigned { QEMU_PLUGIN_MEM_RW = 3 };
enum qemu_plugin_op : unsigned { QEMU_PLUGIN_INLINE_ADD_U64 = 0, QEMU_PLUGIN_INLINE_STORE_U64 = 1 };

using qemu_plugin_vcpu_simple_cb_t = void (*)(qemu_plugin_id_t id, unsigned vcpu);
using qemu_plugin_vcpu_udata_cb_t = void (*)(unsigned vcpu, void* data);
using qemu_plugin_vcpu_tb_trans_cb_t = void (*)(qemu_plugin_id_t id, qemu_plugin_tb* block);
using qemu_plugin_vcpu_mem_cb_t = void (*)(unsigned vcpu, qemu_plugin_meminfo_t info,
                                           std::uint64_t address, void* data);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_simple_cb_t called);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           qemu_plugin_vcpu_tb_trans_cb_t called);
void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb* block, qemu_plugin_vcpu_udata_cb_t called,
                                          qemu_plugin_cb_flags flags, void* data);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn* instruction,
                                            qemu_plugin_vcpu_udata_cb_t called,
                                            qemu_plugin_cb_flags flags, void* data);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(qemu_plugin_insn* instruction,
                                                         qemu_plugin_op operation,
                                                         qemu_plugin_u64 variable,
                                                         std::uint64_t value);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn* instruction,
                                      qemu_plugin_vcpu_mem_cb_t called, qemu_plugin_cb_flags flags,
                                      qemu_plugin_mem_rw accesses, void* data);

std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb* block);
std::uint64_t qemu_plugin_tb_vaddr(const qemu_plugin_tb* block);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb* block, std::size_t index);
std::size_t qemu_plugin_insn_data(const qemu_plugin_insn* instruction, void* bytes,
                                  std::size_t size);
std::uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn* instruction);

qemu_plugin_hwaddr* qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, std::uint64_t address);
bool qemu_plugin_hwaddr_is_io(const qemu_plugin_hwaddr* place);
const char* qemu_plugin_hwaddr_device_name(const qemu_plugin_hwaddr* place);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);

qemu_plugin_scoreboard* qemu_plugin_scoreboard_new(std::size_t element_size);
void* qemu_plugin_scoreboard_find(qemu_plugin_scoreboard* scores, unsigned vcpu);

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

namespace latenz::probe {

/// Defined by each plugin: registers what it wants to be told; returns 0, or what ends QEMU.
int install(qemu_plugin_id_t id, const qemu_info_t& info, std::span<char*> arguments);

/// Returns why a plugin of ours cannot serve this QEMU, null if it can.
inline const char* misfit(const qemu_info_t& info) {
  if (info.version.min > qemu_plugin_interface || info.version.cur < qemu_plugin_interface) {
    return "this QEMU has another plugin interface; take QEMU 9.2 or newer";
  }
  return info.system_emulation ? nullptr : "only for whole systems; take qemu-system-*";
}

/// The bytes of an instruction as they are in memory.
inline std::span<const std::uint8_t> code_of(const qemu_plugin_insn* instruction,
                                             std::span<std::uint8_t> bytes) {
  return bytes.first(qemu_plugin_insn_data(instruction, bytes.data(), bytes.size()));
}

/// Up to four bytes of an instruction as a number.
inline std::uint32_t word_of(std::span<const std::uint8_t> code) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < code.size() && i < sizeof word; ++i) {
    word |= std::uint32_t{code[i]} << (8 * i);
  }
  return word;
}

}  // namespace latenz::probe
