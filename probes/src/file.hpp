// SPDX-License-Identifier: Apache-2.0
// An owned file descriptor, and whole-file reads and replacements.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace latenz::probe {

class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(); }

  /// As open(2) with O_CLOEXEC; `is_open` tells whether it worked, errno why not.
  static File open(const std::filesystem::path& path, int flags);

  /// Opens a regular file to read it; never waits, as opening a pipe does. Throws `Failure` if it
  /// cannot be opened, or is a pipe, device or folder.
  static File open_input(const std::filesystem::path& path);

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const { return descriptor_; }
  void close();

 private:
  int descriptor_ = -1;
};

/// Reads a whole file from its start into `text`, reusing its memory; false if it cannot be read.
bool read_again(const File& file, std::string& text);

/// Replaces `path` by `text` in one step (a temporary file beside it, renamed); readers see the old
/// or the new whole. Returns 0 or the errno value; after an error the old file is still there.
int replace_file(const std::filesystem::path& path, std::string_view text);

}  // namespace latenz::probe
