// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <ranges>

#include "failure.hpp"
#include "file.hpp"

namespace latenz::agent {
namespace {

namespace fs = std::filesystem;
using probe::Failure;
using probe::File;

constexpr std::int64_t largest_file = 8LL << 20;
constexpr std::size_t most_matches = 4096;
constexpr std::int64_t page_bytes = 4096;
constexpr int deepest_folder = 4;

void require_path(const std::string& path) {
  if (!path.starts_with('/') || path.find('\0') != std::string::npos) {
    throw Failure("'" + path.substr(0, 80) + "' is not an absolute path");
  }
}

/// Reads a regular file, whatever its size says: files of /proc say 0. Returns 0 or errno.
int read_file(const std::string& path, std::size_t limit, std::string& content) {
  const File file = File::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat status{};
  if (!file.is_open() || fstat(file.descriptor(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (!S_ISREG(status.st_mode)) return EINVAL;
  std::array<char, 16384> part{};
  for (;;) {
    const ssize_t got = read(file.descriptor(), part.data(), part.size());
    if (got < 0) return errno;
    if (got == 0) return 0;
    content.append(part.data(), static_cast<std::size_t>(got));
    if (content.size() > limit) return EFBIG;
  }
}

void add_content(const std::string& path, std::size_t limit, Fields& reply) {
  std::string content;
  const int error = read_file(path, limit, content);
  reply.push_back(std::to_string(error));
  reply.push_back(error == 0 ? std::move(content) : std::string());
}

std::size_t limit_of(const Fields& fields) {
  require(fields, 1);
  return static_cast<std::size_t>(number("limit", fields[0], 1, largest_file));
}

/// Files that are replaced as a whole are told apart by their time, too: a number may come again.
bool is_replaced(const std::string& name) {
  return name.ends_with(".json") || name.ends_with(".yaml");
}

std::string version_of(const std::string& name, const struct stat& status) {
  std::string version = std::to_string(status.st_ino);
  if (is_replaced(name)) {
    version +=
        '-' + std::to_string(status.st_mtim.tv_sec) + '-' + std::to_string(status.st_mtim.tv_nsec);
  }
  return version;
}

void collect_names(const fs::path& folder, const std::string& prefix, int depth,
                   std::vector<std::string>& found) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = prefix + entry.path().filename().string();
    const auto type = entry.symlink_status(error).type();
    if (type == fs::file_type::directory && depth > 0) {
      collect_names(entry.path(), name + "/", depth - 1, found);
    } else if (type == fs::file_type::regular && !name.ends_with(".new")) {
      found.push_back(name);
    }
  }
}

}  // namespace

std::string below(const std::string& home, const std::string& name) {
  const fs::path path(name);
  const bool leads_out = std::ranges::any_of(
      path, [](const fs::path& part) { return part == ".." || part == "." || part.empty(); });
  if (name.empty() || path.is_absolute() || leads_out || name.find('\0') != std::string::npos) {
    throw Failure("'" + name.substr(0, 80) + "' is not a name below the agent's folder");
  }
  return home + "/" + name;
}

Fields read_files(const Fields& fields) {
  const std::size_t limit = limit_of(fields);
  Fields reply;
  for (const std::string& path : fields | std::views::drop(1)) {
    require_path(path);
    add_content(path, limit, reply);
  }
  return reply;
}

Fields read_matching(const Fields& fields) {
  const std::size_t limit = limit_of(fields);
  Fields reply;
  for (const std::string& pattern : fields | std::views::drop(1)) {
    require_path(pattern);
    glob_t found{};
    if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
      for (std::size_t i = 0; i < std::min(found.gl_pathc, most_matches); ++i) {
        struct stat status{};
        const std::string path = found.gl_pathv[i];
        if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
        reply.push_back(path);
        add_content(path, limit, reply);
      }
    }
    globfree(&found);
  }
  return reply;
}

Fields modes(const Fields& fields) {
  Fields reply;
  for (const std::string& path : fields) {
    require_path(path);
    struct stat status{};
    const int error = lstat(path.c_str(), &status) == 0 ? 0 : errno;
    reply.push_back(std::to_string(error));
    reply.push_back(std::to_string(error == 0 ? status.st_mode : 0));
  }
  return reply;
}

Fields link_target(const Fields& fields) {
  require(fields, 1);
  require_path(fields[0]);
  std::array<char, page_bytes> target{};
  const ssize_t length = readlink(fields[0].c_str(), target.data(), target.size());
  if (length < 0) return {std::to_string(errno), ""};
  return {"0", std::string(target.data(), static_cast<std::size_t>(length))};
}

Fields names(const Fields& fields) {
  require(fields, 1);
  require_path(fields[0]);
  std::error_code error;
  Fields reply{"0"};
  for (const auto& entry : fs::directory_iterator(fields[0], error)) {
    struct stat status{};
    if (lstat(entry.path().c_str(), &status) != 0) continue;
    const bool is_link = S_ISLNK(status.st_mode);
    reply.push_back(entry.path().filename());
    reply.push_back(std::to_string(status.st_mode));
    reply.push_back(is_link ? link_target({entry.path()})[1] : std::string());
  }
  if (error) return {std::to_string(error.value())};
  return reply;
}

Fields access_of(const Fields& fields) {
  require(fields, 2);
  require_path(fields[0]);
  const auto mode = static_cast<int>(number("mode", fields[1], 0, R_OK | W_OK | X_OK));
  return {std::to_string(access(fields[0].c_str(), mode) == 0 ? 0 : errno)};
}

Fields find_program(const Fields& fields) {
  require(fields, 1);
  const std::string& name = fields[0];
  if (name.empty() || name.find('/') != std::string::npos) return {};
  const char* const places = std::getenv("PATH");
  const std::string path = places == nullptr ? "" : places;
  for (const auto part : path | std::views::split(':')) {
    std::string program(part.begin(), part.end());
    const bool is_absolute = program.starts_with('/');
    program.append("/").append(name);
    struct stat status{};
    if (is_absolute && stat(program.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        access(program.c_str(), X_OK) == 0) {
      return {program};
    }
  }
  return {};
}

Fields Mirror::news(const Fields& fields) {
  require(fields, 2);
  const std::string folder = below(home_, fields[0]);
  auto budget = static_cast<std::size_t>(number("budget", fields[1], 1, largest_file));
  std::map<std::string, Known> known;
  for (std::size_t i = 2; i + 2 < fields.size(); i += 3) {
    known[fields[i]] = {fields[i + 1], number("offset", fields[i + 2], 0, INT64_MAX)};
  }
  std::vector<std::string> present;
  collect_names(folder, "", deepest_folder, present);
  std::ranges::sort(present);
  Fields reply{"0"};
  for (const std::string& name : present) {
    if (budget == 0) break;
    add_news(folder, name, known[name], budget, reply);
  }
  if (budget == 0) reply[0] = "1";
  return reply;
}

void Mirror::add_news(const std::string& folder, const std::string& name, const Known& known,
                      std::size_t& budget, Fields& reply) {
  const std::string path = folder + "/" + name;
  const File file = File::open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  struct stat status{};
  if (!file.is_open() || fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const std::string version = version_of(name, status);
  const std::int64_t size = status.st_size;
  const bool continues = known.version == version && known.offset <= size;
  const std::int64_t offset = continues ? known.offset : 0;
  if (continues) give_back(file.descriptor(), path, offset);
  if (continues && offset == size) return;
  std::string data(std::min(budget, static_cast<std::size_t>(size - offset)), '\0');
  const ssize_t got = pread(file.descriptor(), data.data(), data.size(), offset);
  if (got < 0) return;
  data.resize(static_cast<std::size_t>(got));
  budget -= data.size();
  reply.insert(reply.end(), {name, version, std::to_string(offset), std::to_string(size), data});
}

/// Only whole pages are given back, and only of what grows.
void Mirror::give_back(int descriptor, const std::string& name, std::int64_t offset) {
  const std::int64_t whole = offset / page_bytes * page_bytes;
  if (is_replaced(name) || given_back_[name] >= whole) return;
  given_back_[name] = whole;
  // Where the file system cannot do that, the file is longer than it need be.
  static_cast<void>(fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, whole));
}

}  // namespace latenz::agent
