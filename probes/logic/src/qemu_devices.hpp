// SPDX-License-Identifier: Apache-2.0
// What QEMU offers its own devices, as far as ours uses it: memory regions, interrupt lines,
// timers, and devices by name. The declarations are ours; names, layouts and numbers are those of
// QEMU 9.2 and 10.0. They are no stable interface: see docs/emulated-logic.md.
#pragma once

#include <cstddef>
#include <cstdint>

// NOLINTBEGIN(readability-identifier-naming) the names are QEMU's
extern "C" {

struct Object;        ///< of QEMU's object tree; a device is one
struct MemoryRegion;  ///< whose size we do not know: see Storage
struct QEMUTimer;
struct IRQState;
using qemu_irq = IRQState*;
using MemTxResult = std::uint32_t;
using MemTxAttrs = std::uint64_t;  ///< a structure that is passed as one register

struct MemoryRegionOps {
  std::uint64_t (*read)(void* opaque, std::uint64_t address, unsigned size);
  void (*write)(void* opaque, std::uint64_t address, std::uint64_t data, unsigned size);
  MemTxResult (*read_with_attrs)(void* opaque, std::uint64_t address, std::uint64_t* data,
                                 unsigned size, MemTxAttrs attributes);
  MemTxResult (*write_with_attrs)(void* opaque, std::uint64_t address, std::uint64_t data,
                                  unsigned size, MemTxAttrs attributes);
  int endianness;
  struct {
    unsigned min_access_size, max_access_size;
    bool unaligned;
    bool (*accepts)(void* opaque, std::uint64_t address, unsigned size, bool is_write,
                    MemTxAttrs attributes);
  } valid;
  struct {
    unsigned min_access_size, max_access_size;
    bool unaligned;
  } impl;
};

struct Notifier {
  void (*notify)(Notifier* notifier, void* data);
  struct {
    Notifier* next;
    Notifier** previous;
  } node;
};

inline constexpr int DEVICE_LITTLE_ENDIAN = 2;
inline constexpr MemTxResult MEMTX_OK = 0;
inline constexpr MemTxResult MEMTX_ERROR = 1;
inline constexpr MemTxResult MEMTX_DECODE_ERROR = 2;
inline constexpr int QEMU_CLOCK_VIRTUAL = 1;

void qemu_add_machine_init_done_notifier(Notifier* notifier);
Object* object_resolve_path(const char* path, bool* ambiguous);
MemoryRegion* get_system_memory();
void memory_region_init_io(MemoryRegion* region, Object* owner, const MemoryRegionOps* operations,
                           void* opaque, const char* name, std::uint64_t size);
void memory_region_add_subregion(MemoryRegion* region, std::uint64_t offset,
                                 MemoryRegion* subregion);
qemu_irq qdev_get_gpio_in(Object* device, int number);
qemu_irq qemu_allocate_irq(void (*handler)(void* opaque, int number, int level), void* opaque,
                           int number);
void qemu_set_irq(qemu_irq line, int level);
qemu_irq sysbus_get_connected_irq(Object* device, int number);
void sysbus_connect_irq(Object* device, int number, qemu_irq line);
void timer_init_full(QEMUTimer* timer, void* group, int clock, int scale, int attributes,
                     void (*called)(void* opaque), void* opaque);
void timer_mod_ns(QEMUTimer* timer, std::int64_t expires_ns);
void timer_del(QEMUTimer* timer);
std::int64_t qemu_clock_get_ns(int clock);

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

namespace latenz::logic {

/// Room for one of QEMU's structures, with much to spare: it is zeroed and filled in by QEMU.
template <typename Structure>
class Storage {
 public:
  [[nodiscard]] Structure* get() { return reinterpret_cast<Structure*>(bytes_); }

 private:
  static constexpr std::size_t size = 4096;
  alignas(16) std::byte bytes_[size]{};
};

}  // namespace latenz::logic
