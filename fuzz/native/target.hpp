// SPDX-License-Identifier: Apache-2.0
// What every target has: the function that libFuzzer and the replay call with one input.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

namespace latenz::fuzz {

/// One input, read only.
using Input = std::span<const std::uint8_t>;

/// Ends the program, so that the input is kept as a finding, unless something holds.
inline void require(bool holds, const char* what) {
  if (holds) return;
  static_cast<void>(std::fprintf(stderr, "does not hold: %s\n", what));
  std::abort();
}

/// A regular file in memory with the bytes of the input, for readers that take a path.
class InputFile {
 public:
  InputFile() : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    require(descriptor_ >= 0, "a file in memory can be made");
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() { close(descriptor_); }

  void put(Input input) const {
    const bool emptied = ftruncate(descriptor_, 0) == 0;
    const auto written = pwrite(descriptor_, input.data(), input.size(), 0);
    require(emptied && written == static_cast<ssize_t>(input.size()), "it can be written");
  }

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

/// Reads one input; returns to tell that it was read or refused as it should be.
void read_input(Input input);

}  // namespace latenz::fuzz
