// SPDX-License-Identifier: Apache-2.0
#include "file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "failure.hpp"

namespace latenz::probe {

File File::open(const std::filesystem::path& path, int flags) {
  return File(::open(path.c_str(), flags | O_CLOEXEC, 0644));
}

File File::open_input(const std::filesystem::path& path) {
  File file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file.is_open()) {
    throw Failure(path.string() + ": cannot be opened: " + std::strerror(errno));
  }
  struct stat status{};
  if (fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Failure(path.string() + ": is not a regular file");
  }
  return file;
}

void File::close() {
  if (descriptor_ >= 0) {
    ::close(std::exchange(descriptor_, -1));
  }
}

bool read_again(const File& file, std::string& text) {
  constexpr std::size_t step = 16384;
  std::size_t length = 0;
  for (;;) {
    if (text.size() < length + step) {
      text.resize(length + step);
    }
    const ssize_t got = pread(file.descriptor(), text.data() + length, text.size() - length,
                              static_cast<off_t>(length));
    if (got < 0) {
      return false;
    }
    length += static_cast<std::size_t>(got);
    if (got == 0) {
      text.resize(length);
      return true;
    }
  }
}

int replace_file(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path temporary = path.native() + ".new";
  const File file = File::open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (!file.is_open()) {
    return errno;
  }
  int error = 0;
  const ssize_t written = write(file.descriptor(), text.data(), text.size());
  if (written < 0 || static_cast<std::size_t>(written) != text.size()) {
    error = written < 0 ? errno : ENOSPC;  // a short write to a file means that it is full
  } else if (rename(temporary.c_str(), path.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) {
    unlink(temporary.c_str());
  }
  return error;
}

}  // namespace latenz::probe
