// SPDX-License-Identifier: Apache-2.0
// Registers of a device that Linux maps into this program; a bus error is an answer, not the end.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace latenz::probe {

class MappedDevice {
 public:
  /// Which part of a device, as /sys/class/uio/uioN/maps tells it.
  struct Map {
    unsigned number;     ///< UIO: the device is mapped from this page on
    std::size_t size;    ///< bytes
    std::size_t offset;  ///< where the registers begin in the first page
  };

  /// Throws `Failure` if that is not to be had.
  MappedDevice(const std::filesystem::path& device, const Map& map);
  MappedDevice(MappedDevice&& other) noexcept;
  MappedDevice& operator=(MappedDevice&&) = delete;
  MappedDevice(const MappedDevice&) = delete;
  MappedDevice& operator=(const MappedDevice&) = delete;
  ~MappedDevice();

  [[nodiscard]] std::size_t size() const { return map_.size; }

  /// One access; nothing, or false, if the bus answers with an error. One thread at a time.
  /// `offset`: below `size`, a multiple of 4.
  [[nodiscard]] std::optional<std::uint32_t> read(std::size_t offset) const;
  [[nodiscard]] bool write(std::size_t offset, std::uint32_t value) const;

 private:
  [[nodiscard]] volatile std::uint32_t* word(std::size_t offset) const;

  void* pages_ = MAP_FAILED;
  Map map_;
};

}  // namespace latenz::probe
