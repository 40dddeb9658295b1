// SPDX-License-Identifier: Apache-2.0
#include "memory_load.hpp"

#include <algorithm>

namespace latenz::probe {

StreamArrays::StreamArrays(std::span<double> memory)
    : a_(memory.first(memory.size() / 3)),
      b_(memory.subspan(a_.size(), a_.size())),
      c_(memory.subspan(2 * a_.size(), a_.size())) {
  std::ranges::fill(a_, 1.0);
  std::ranges::fill(b_, 2.0);
  std::ranges::fill(c_, 0.0);
}

std::size_t StreamArrays::run(std::size_t kernel, const std::atomic<bool>& stop) {
  constexpr std::size_t part = 65536;  // elements between two looks at the stop flag
  std::size_t done = 0;
  while (done < a_.size() && !stop.load(std::memory_order_relaxed)) {
    const std::size_t end = std::min(done + part, a_.size());
    run_part(kernel, done, end);
    done = end;
  }
  return done;
}

void StreamArrays::run_part(std::size_t kernel, std::size_t begin, std::size_t end) {
  double* const a = a_.data();
  double* const b = b_.data();
  double* const c = c_.data();
  switch (kernel) {
    case 0:
      for (std::size_t i = begin; i < end; ++i) {
        c[i] = a[i];
      }
      break;
    case 1:
      for (std::size_t i = begin; i < end; ++i) {
        b[i] = scalar * c[i];
      }
      break;
    case 2:
      for (std::size_t i = begin; i < end; ++i) {
        c[i] = a[i] + b[i];
      }
      break;
    default:
      for (std::size_t i = begin; i < end; ++i) {
        a[i] = b[i] + scalar * c[i];
      }
      break;
  }
}

}  // namespace latenz::probe
