// SPDX-License-Identifier: Apache-2.0
#include "system_calls.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include "affinity.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "options.hpp"

namespace latenz::agent {
namespace {

namespace fs = std::filesystem;
using probe::Failure;
using probe::File;

constexpr std::int64_t most_room = 1LL << 30;
constexpr std::int64_t most_user = UINT32_MAX - 1LL;
constexpr int most_links = 40;  // as the kernel follows, path_resolution(7)
constexpr std::size_t link_room_bytes = 4096;

int result(bool made) { return made ? 0 : errno; }

const std::string& path_of(const Fields& fields, std::size_t at) {
  const std::string& path = fields.at(at);
  if (!path.starts_with('/') || path.find('\0') != std::string::npos) {
    throw Failure("'" + path.substr(0, 80) + "' is not an absolute path");
  }
  return path;
}

mode_t mode_of(const Fields& fields, std::size_t at) {
  return static_cast<mode_t>(number("mode", fields.at(at), 0, 07777));
}

/// A time since 1970 in ns, which may be below 0 and has up to 19 digits.
std::int64_t time_of(const std::string& text) {
  std::int64_t time_ns = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, time_ns);
  if (error != std::errc() || stopped != end) throw Failure("'" + text + "' is not a time");
  return time_ns;
}

int sync_file(const std::string& path, int flags) {
  const File file = File::open(path, flags);
  return result(file.is_open() && fsync(file.descriptor()) == 0);
}

int sync_folder(const std::string& path) { return sync_file(path, O_RDONLY | O_DIRECTORY); }

std::string parent_of(const std::string& path) { return fs::path(path).parent_path(); }

/// Writes all of it: write(2) may take less than it was given.
int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(descriptor, content.data(), content.size());
    if (written < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

int remove_file(const std::string& path) {
  return unlink(path.c_str()) == 0 || errno == ENOENT ? 0 : errno;
}

int write_new(const std::string& path, std::string_view content, std::int64_t room) {
  if (const int error = remove_file(path); error != 0) return error;
  const File file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file.is_open()) return errno;
  const auto size = static_cast<off_t>(content.size() + static_cast<std::size_t>(room));
  if (room > 0) {
    if (const int error = posix_fallocate(file.descriptor(), 0, size); error != 0) return error;
  }
  if (const int error = write_all(file.descriptor(), content); error != 0) return error;
  return result(fsync(file.descriptor()) == 0);
}

using Attributes = std::map<std::string, std::string>;

/// The extended attributes of a file that is not a link; errno or 0.
int read_attributes(const std::string& path, Attributes& found) {
  const ssize_t room = llistxattr(path.c_str(), nullptr, 0);
  if (room < 0) return errno == ENOTSUP ? 0 : errno;
  std::string names(static_cast<std::size_t>(room), '\0');
  const ssize_t length = llistxattr(path.c_str(), names.data(), names.size());
  if (length < 0) return errno;
  names.resize(static_cast<std::size_t>(length));
  for (const auto part : names | std::views::split('\0')) {
    const std::string name(part.begin(), part.end());
    if (name.empty()) continue;
    const ssize_t size = lgetxattr(path.c_str(), name.c_str(), nullptr, 0);
    if (size < 0) return errno;
    std::string value(static_cast<std::size_t>(size), '\0');
    const ssize_t got = lgetxattr(path.c_str(), name.c_str(), value.data(), value.size());
    if (got < 0) return errno;
    value.resize(static_cast<std::size_t>(got));
    found.emplace(name, std::move(value));
  }
  return 0;
}

/// Gives a file these attributes and no others; changes only what differs.
int set_attributes(const std::string& path, const Attributes& wanted) {
  Attributes found;
  if (const int error = read_attributes(path, found); error != 0) return error;
  for (const auto& [name, value] : found) {
    if (!wanted.contains(name) && lremovexattr(path.c_str(), name.c_str()) != 0) return errno;
  }
  for (const auto& [name, value] : wanted) {
    const auto there = found.find(name);
    if (there != found.end() && there->second == value) continue;
    if (lsetxattr(path.c_str(), name.c_str(), value.data(), value.size(), 0) != 0) return errno;
  }
  return 0;
}

struct Looks {
  mode_t mode = 0;
  std::string uid, gid, modified_ns;  ///< empty: as the kernel has it
  bool exactly = false;
  Attributes attributes;
};

/// Changes only what differs: VFAT has no owners.
int dress(const std::string& path, const Looks& looks) {
  struct stat found{};
  if (lstat(path.c_str(), &found) != 0) return errno;
  const auto wanted = [](const std::string& text, unsigned otherwise) {
    return text.empty() ? otherwise : static_cast<unsigned>(number("owner", text, 0, most_user));
  };
  const unsigned uid = wanted(looks.uid, found.st_uid);
  const unsigned gid = wanted(looks.gid, found.st_gid);
  const bool differs = uid != found.st_uid || gid != found.st_gid;
  if (differs && lchown(path.c_str(), uid, gid) != 0) return errno;
  if (looks.exactly) {
    if (const int error = set_attributes(path, looks.attributes); error != 0) return error;
  }
  if (lstat(path.c_str(), &found) != 0) return errno;
  const bool other_mode = (found.st_mode & 07777U) != looks.mode;
  if (other_mode && chmod(path.c_str(), looks.mode) != 0) return errno;
  if (!looks.modified_ns.empty()) {
    const std::int64_t time_ns = time_of(looks.modified_ns);
    const std::int64_t rest_ns =
        (time_ns % probe::nanoseconds_a_second + probe::nanoseconds_a_second) %
        probe::nanoseconds_a_second;
    timespec modified{};
    modified.tv_sec = static_cast<time_t>((time_ns - rest_ns) / probe::nanoseconds_a_second);
    modified.tv_nsec = static_cast<decltype(modified.tv_nsec)>(rest_ns);
    const std::array<timespec, 2> times{modified, modified};
    if (utimensat(AT_FDCWD, path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0) return errno;
  }
  return sync_file(path, O_RDONLY);
}

int put(const std::string& path, const std::string& partial, const std::string& content,
        const Looks& looks) {
  if (const int error = write_new(partial, content, 0); error != 0) return error;
  if (const int error = dress(partial, looks); error != 0) return error;
  if (rename(partial.c_str(), path.c_str()) != 0) return errno;
  return sync_folder(parent_of(path));
}

int point(const std::string& path, const std::string& partial, const std::string& target) {
  if (const int error = remove_file(partial); error != 0) return error;
  if (symlink(target.c_str(), partial.c_str()) != 0) return errno;
  if (rename(partial.c_str(), path.c_str()) != 0) return errno;
  return sync_folder(parent_of(path));
}

int make_folder(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0) return result(chmod(path.c_str(), mode) == 0);
  struct stat found{};
  if (errno != EEXIST || lstat(path.c_str(), &found) != 0) return errno;
  return S_ISDIR(found.st_mode) ? 0 : EEXIST;
}

int write_at(const std::string& path, std::int64_t offset, const std::string& content) {
  const File file = File::open(path, O_RDWR | O_NOFOLLOW);
  if (!file.is_open()) return errno;
  const ssize_t written = pwrite(file.descriptor(), content.data(), content.size(), offset);
  if (written < 0) return errno;
  if (static_cast<std::size_t>(written) != content.size()) return ENOSPC;
  return result(fdatasync(file.descriptor()) == 0);
}

int write_value(const std::string& path, const std::string& value) {
  const File file = File::open(path, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY);
  if (!file.is_open()) return errno;
  return result(write(file.descriptor(), value.data(), value.size()) >= 0);
}

Fields told(int error) { return {std::to_string(error)}; }

Fields status_of(const Fields& fields) {
  struct stat found{};
  if (lstat(path_of(fields, 0).c_str(), &found) != 0) return told(errno);
  const std::int64_t modified_ns =
      static_cast<std::int64_t>(found.st_mtim.tv_sec) * probe::nanoseconds_a_second +
      found.st_mtim.tv_nsec;
  return {"0",
          std::to_string(found.st_mode),
          std::to_string(found.st_nlink),
          std::to_string(found.st_uid),
          std::to_string(found.st_gid),
          std::to_string(modified_ns)};
}

/// What a symbolic link says; errno or 0.
int read_link(const std::string& path, std::string& said) {
  std::array<char, link_room_bytes> room{};
  const ssize_t length = readlink(path.c_str(), room.data(), room.size());
  if (length < 0) return errno;
  said.assign(room.data(), static_cast<std::size_t>(length));
  return 0;
}

Fields link_of(const Fields& fields) {
  std::string said;
  const int error = read_link(path_of(fields, 0), said);
  return error != 0 ? told(error) : Fields{"0", said};
}

/// Puts the parts of a path before what is still to be walked, the next one last.
void add_parts(const std::string& path, std::vector<std::string>& left) {
  const std::size_t before = left.size();
  for (const auto part : path | std::views::split('/')) {
    std::string name(part.begin(), part.end());
    if (!name.empty() && name != ".") left.push_back(std::move(name));
  }
  std::ranges::reverse(left.begin() + static_cast<std::ptrdiff_t>(before), left.end());
}

Fields real_path(const Fields& fields) {
  const bool follows = number("follow", fields.at(1), 0, 1) == 1;
  std::vector<std::string> left;
  add_parts(path_of(fields, 0), left);
  fs::path here = "/";
  int links = 0;
  while (!left.empty()) {
    const std::string part = std::move(left.back());
    left.pop_back();
    if (part == "..") {
      here = here.parent_path();
      continue;
    }
    const fs::path folder = here;
    here /= part;
    std::string said;
    if ((left.empty() && !follows) || read_link(here, said) != 0) continue;
    if (++links > most_links) return told(ELOOP);
    here = said.starts_with('/') ? fs::path("/") : folder;
    add_parts(said, left);
  }
  return {"0", here};
}

Fields names_in(const Fields& fields) {
  std::error_code error;
  Fields found{"0"};
  for (const auto& entry : fs::directory_iterator(path_of(fields, 0), error)) {
    found.push_back(entry.path().filename());
  }
  return error ? told(error.value()) : found;
}

Fields attributes_of(const Fields& fields) {
  Attributes attributes;
  if (const int error = read_attributes(path_of(fields, 0), attributes); error != 0) {
    return told(error);
  }
  Fields found{"0"};
  for (const auto& [name, value] : attributes) {
    found.push_back(name);
    found.push_back(value);
  }
  return found;
}

Fields put_file(const Fields& fields) {
  Looks looks{.mode = mode_of(fields, 3),
              .uid = fields.at(4),
              .gid = fields.at(5),
              .modified_ns = fields.at(6),
              .exactly = number("exactly", fields.at(7), 0, 1) == 1,
              .attributes = {}};
  for (std::size_t i = 8; i + 1 < fields.size(); i += 2) {
    looks.attributes.emplace(fields[i], fields[i + 1]);
  }
  return told(put(path_of(fields, 0), path_of(fields, 1), fields[2], looks));
}

pid_t thread_of(const Fields& fields) {
  return static_cast<pid_t>(number("thread", fields.at(0), 1, INT32_MAX));
}

Fields scheduling_of(const Fields& fields) {
  const pid_t thread = thread_of(fields);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_param parameter{};
  const int policy = sched_getscheduler(thread);
  if (policy < 0 || sched_getparam(thread, &parameter) != 0 ||
      sched_getaffinity(thread, sizeof cpus, &cpus) != 0) {
    return told(errno);
  }
  std::string listed;
  for (const unsigned cpu : probe::cpus_of(cpus)) {
    listed += (listed.empty() ? "" : ",") + std::to_string(cpu);
  }
  return {"0", listed, std::to_string(policy), std::to_string(parameter.sched_priority)};
}

Fields schedule(const Fields& fields) {
  constexpr std::int64_t most_policy = SCHED_RESET_ON_FORK | 7;
  const auto policy = static_cast<int>(number("policy", fields.at(1), 0, most_policy));
  sched_param parameter{};
  parameter.sched_priority = static_cast<int>(number("priority", fields.at(2), 0, 99));
  return told(result(sched_setscheduler(thread_of(fields), policy, &parameter) == 0));
}

Fields allow(const Fields& fields) {
  cpu_set_t every;
  CPU_ZERO(&every);
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &every);
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const unsigned cpu : probe::parse_cpus("cpus", fields.at(1), every)) CPU_SET(cpu, &wanted);
  return told(result(sched_setaffinity(thread_of(fields), sizeof wanted, &wanted) == 0));
}

using Call = std::function<Fields(const Fields&)>;

const std::map<std::string, Call, std::less<>>& calls() {
  static const std::map<std::string, Call, std::less<>> known{
      {"real", real_path},
      {"status", status_of},
      {"link", link_of},
      {"names", names_in},
      {"attributes", attributes_of},
      {"put", put_file},
      {"scheduling", scheduling_of},
      {"schedule", schedule},
      {"allow", allow},
      {"new",
       [](const Fields& fields) {
         const std::int64_t room = number("room", fields.at(2), 0, most_room);
         return told(write_new(path_of(fields, 0), fields[1], room));
       }},
      {"at",
       [](const Fields& fields) {
         const std::int64_t offset = number("offset", fields.at(1), 0, most_room);
         return told(write_at(path_of(fields, 0), offset, fields.at(2)));
       }},
      {"value",
       [](const Fields& fields) { return told(write_value(path_of(fields, 0), fields.at(1))); }},
      {"folder",
       [](const Fields& fields) {
         return told(make_folder(path_of(fields, 0), mode_of(fields, 1)));
       }},
      {"mode",
       [](const Fields& fields) {
         return told(result(chmod(path_of(fields, 0).c_str(), mode_of(fields, 1)) == 0));
       }},
      {"remove", [](const Fields& fields) { return told(remove_file(path_of(fields, 0))); }},
      {"remove_folder",
       [](const Fields& fields) { return told(result(rmdir(path_of(fields, 0).c_str()) == 0)); }},
      {"rename",
       [](const Fields& fields) {
         const int made = rename(path_of(fields, 0).c_str(), path_of(fields, 1).c_str());
         return told(result(made == 0));
       }},
      {"point",
       [](const Fields& fields) {
         return told(point(path_of(fields, 0), path_of(fields, 1), fields.at(2)));
       }},
      {"sync", [](const Fields& fields) { return told(sync_folder(path_of(fields, 0))); }},
  };
  return known;
}

}  // namespace

Fields SystemCalls::call(const Fields& fields) {
  if (fields.size() < 2) throw Failure("the request has too few fields");
  const std::int64_t asked = number("call", fields[0], 1, INT64_MAX);
  if (asked == made_) return answer_;
  if (asked < made_) throw Failure("call " + fields[0] + " was made before");
  answer_ = make(fields);
  made_ = asked;
  return answer_;
}

Fields SystemCalls::make(const Fields& fields) {
  const std::string& name = fields[1];
  const Fields arguments(fields.begin() + 2, fields.end());
  if (name == "unlock") {
    lock_.close();
    return told(0);
  }
  if (name == "lock") return told(arguments.empty() ? EINVAL : lock(path_of(arguments, 0)));
  const auto found = calls().find(name);
  if (found == calls().end()) throw Failure("there is no call '" + name + "'");
  try {
    return found->second(arguments);
  } catch (const std::out_of_range&) {
    throw Failure("'" + name + "' has too few fields");
  }
}

/// Held until `unlock`, or the agent's end.
int SystemCalls::lock(const std::string& folder) {
  File opened = File::open(folder, O_RDONLY | O_DIRECTORY);
  if (!opened.is_open()) return errno;
  if (flock(opened.descriptor(), LOCK_EX | LOCK_NB) != 0) return errno;
  lock_ = std::move(opened);
  return 0;
}

}  // namespace latenz::agent
