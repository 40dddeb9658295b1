// SPDX-License-Identifier: Apache-2.0
// Memory-bandwidth load with the four kernels of STREAM (J. D. McCalpin, "Memory Bandwidth and
// Machine Balance in Current High Performance Computers", IEEE TCCA Newsletter, 1995).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace latenz::probe {

inline constexpr std::size_t stream_kernels = 4;
inline constexpr std::array<std::string_view, stream_kernels> stream_kernel_names{"copy", "scale",
                                                                                  "add", "triad"};
/// Bytes that STREAM counts for each element: those the kernel names, without write-allocates.
inline constexpr std::array<std::int64_t, stream_kernels> stream_bytes_per_element{16, 16, 24, 24};

struct StreamWork {
  std::int64_t bytes = 0;    ///< read and written
  std::int64_t busy_ns = 0;  ///< while in this kernel
};

/// Three arrays of one thread and the kernels over them.
class StreamArrays {
 public:
  static constexpr double scalar = 3.0;

  /// Uses memory of three arrays of equal length, given as one; fills it, so that every page lies
  /// near the thread that first calls this.
  explicit StreamArrays(std::span<double> memory);

  /// Runs one kernel over the whole arrays, or until `stop`; returns the elements done.
  std::size_t run(std::size_t kernel, const std::atomic<bool>& stop);

  [[nodiscard]] std::span<const double> a() const { return a_; }
  [[nodiscard]] std::span<const double> b() const { return b_; }
  [[nodiscard]] std::span<const double> c() const { return c_; }

 private:
  void run_part(std::size_t kernel, std::size_t begin, std::size_t end);

  std::span<double> a_;
  std::span<double> b_;
  std::span<double> c_;
};

}  // namespace latenz::probe
