// SPDX-License-Identifier: Apache-2.0
#include "home.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "failure.hpp"
#include "text.hpp"

namespace latenz::agent {
namespace {

namespace fs = std::filesystem;
using probe::Failure;
using probe::File;

constexpr std::int64_t least_kib = 16LL * 1024;
constexpr std::int64_t most_kib = 1024LL * 1024;
constexpr std::int64_t abandoned_after_s = 600;
constexpr std::string_view folder_prefix = "latenz-agent.";

/// A quarter of what the machine could give, in KiB: the measured machine must not run short.
std::int64_t memory_kib() {
  probe::Text file = probe::Text::of_file("/proc/meminfo");
  std::string key;
  std::string unit;
  for (std::int64_t kib = 0; file >> key >> kib; file.line(unit)) {
    if (key == "MemAvailable:") return std::clamp(kib / 4, least_kib, most_kib);
  }
  return least_kib;
}

/// What an agent left that was killed together with its janitor: nobody holds the folder's lock.
void sweep(const fs::path& parent) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename();
    struct stat status{};
    if (!name.starts_with(folder_prefix) || lstat(entry.path().c_str(), &status) != 0 ||
        !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
        status.st_mtime > time(nullptr) - abandoned_after_s) {
      continue;
    }
    const File folder = File::open(entry.path(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (folder.is_open() && flock(folder.descriptor(), LOCK_EX | LOCK_NB) == 0) {
      remove_folder(entry.path());
    }
  }
}

}  // namespace

void remove_folder(const std::string& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

Home::Home(const std::string& begun) {
  sweep(fs::path(begun).parent_path());
  if (mount_memory(begun)) {
    remove_folder(begun);
    path_ = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(root_.descriptor());
    return;
  }
  root_ = File::open(begun, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!root_.is_open() || flock(root_.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    throw Failure(begun + ": " + std::strerror(errno));
  }
  for (const auto& entry : fs::directory_iterator(begun)) remove_folder(entry.path());
  path_ = folder_ = begun;
}

/// Mounts memory, opens it, and takes the mount away again: it lives as long as it is open.
bool Home::mount_memory(const std::string& begun) {
  const std::string options = "mode=700,size=" + std::to_string(memory_kib()) + "k";
  if (mount("latenz", begun.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return false;
  }
  root_ = File::open(begun, O_RDONLY | O_DIRECTORY);
  const bool taken_away = umount2(begun.c_str(), MNT_DETACH) == 0;
  return taken_away && root_.is_open();
}

}  // namespace latenz::agent
