// SPDX-License-Identifier: Apache-2.0
// Memory for channels as Linux gives it: shared by processes, or with a processor that runs no
// Linux. For programs under Linux only; `latenz/icc.hpp` does not include it.
//
// Which policies fit what is mapped (docs/icc-linux.md has the reasons):
//   create_shared, shared, file   Platform<>: coherent memory, the language's fences
//   uio, physical, reserved       on Arm ZynqMpDevice: the kernel maps memory that is not its own
//   as
//                                 Device memory, which takes aligned words only
// Nothing here throws or allocates; all of it may block, so none of it belongs in a control loop.
#pragma once

#ifndef __linux__
#error "latenz/icc/linux_memory.hpp is for programs under Linux"
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace latenz::icc {

/// Where Linux shows devices and what it knows of them.
struct LinuxPaths {
  const char* dev = "/dev";
  const char* sys = "/sys";
  const char* device_tree = "/proc/device-tree";
};

namespace detail {

/// A file that is closed at the end.
class LinuxFile {
 public:
  explicit LinuxFile(int descriptor) noexcept : descriptor_{descriptor} {}
  LinuxFile(const LinuxFile&) = delete;
  LinuxFile& operator=(const LinuxFile&) = delete;
  ~LinuxFile() {
    if (is_open()) {
      close(descriptor_);
    }
  }

  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

/// An address, shown as such.
struct Hexadecimal {
  std::uint64_t number;
};

/// Text put together from texts and numbers, cut off where there is no more room.
template <std::size_t room>
class LinuxText {
 public:
  LinuxText() = default;
  template <class... Parts>
  explicit LinuxText(const Parts&... parts) noexcept {
    (add(parts), ...);
  }
  [[nodiscard]] const char* text() const noexcept { return text_; }

 private:
  void add(const char* part) noexcept {
    for (; *part != '\0' && length_ + 1 < room; ++part) {
      text_[length_++] = *part;
    }
  }
  void add(std::uint64_t number) noexcept { add_digits(number, 10); }
  void add(Hexadecimal address) noexcept {
    add("0x");
    add_digits(address.number, 16);
  }
  void add_digits(std::uint64_t number, unsigned base) noexcept {
    if (number >= base) {
      add_digits(number / base, base);
    }
    const char digit[2] = {"0123456789abcdef"[number % base], '\0'};
    add(digit);
  }

  char text_[room]{};
  std::size_t length_ = 0;
};
using LinuxPath = LinuxText<PATH_MAX>;

/// Reads the start of a small file; the bytes read, or -1.
inline ssize_t read_small_file(const char* path, void* bytes, std::size_t size) noexcept {
  const LinuxFile file{open(path, O_RDONLY | O_CLOEXEC)};
  return file.is_open() ? read(file.descriptor(), bytes, size) : -1;
}

/// A number as sysfs writes it: "0x1000" and the end of the line.
inline bool read_hexadecimal(const char* path, std::uint64_t& number) noexcept {
  char text[32]{};
  const ssize_t length = read_small_file(path, text, sizeof text - 1);
  if (length < 3 || length > 19 || text[0] != '0' || text[1] != 'x') {
    return false;
  }
  number = 0;
  const std::size_t end = static_cast<std::size_t>(length) - (text[length - 1] == '\n' ? 1U : 0U);
  for (std::size_t i = 2; i < end; ++i) {
    const char* digits = "0123456789abcdef";
    const char* digit = strchr(digits, text[i]);
    if (text[i] == '\0' || digit == nullptr || number >> 60U != 0) {
      return false;
    }
    number = number << 4U | static_cast<std::uint64_t>(digit - digits);
  }
  return end > 2;
}

/// A number of `cells` big-endian words, as in a device tree.
inline std::uint64_t cells_number(const unsigned char* bytes, std::size_t cells) noexcept {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < cells * 4; ++i) {
    number = number << 8U | bytes[i];
  }
  return number;
}

}  // namespace detail

/// Memory that channels can be created in and attached to, unmapped at the end; or one line that
/// says why there is none: `if (auto memory = LinuxMemory::shared("/x", n)) use(memory.data());`
/// For one thread at a time; what is mapped is shared by whoever likes.
class [[nodiscard]] LinuxMemory {
 public:
  LinuxMemory(const LinuxMemory&) = delete;
  LinuxMemory& operator=(const LinuxMemory&) = delete;
  LinuxMemory(LinuxMemory&& other) noexcept { swap(other); }
  LinuxMemory& operator=(LinuxMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~LinuxMemory() {
    if (mapped_ != nullptr) {
      munmap(mapped_, mapped_bytes_);
    }
  }

  /// POSIX shared memory that other processes of this user may open (mode 0600). What is there
  /// already stays as it is, so that a restarted creator finds its channels.
  /// `name`: "/" and a name without another "/".
  static LinuxMemory create_shared(const char* name, std::size_t bytes) noexcept {
    if (!is_shared_name(name)) {
      return bad_shared_name(name);
    }
    if (bytes == 0 || bytes > PTRDIFF_MAX) {
      return failed(name, ": ", bytes, " bytes cannot be shared");
    }
    const detail::LinuxFile file{shm_open(name, O_RDWR | O_CREAT, S_IRUSR | S_IWUSR)};
    struct stat found{};
    if (!file.is_open() || fstat(file.descriptor(), &found) != 0) {
      return failed(name, ": cannot be created: ", strerror(errno));
    }
    if (found.st_uid != geteuid()) {
      return failed(name, ": belongs to user ", found.st_uid,
                    "; remove it, or choose another name");
    }
    if (found.st_size == 0 && ftruncate(file.descriptor(), static_cast<off_t>(bytes)) != 0) {
      return failed(name, ": no room for ", bytes, " bytes: ", strerror(errno));
    }
    return map(file, name, {.bytes = bytes});
  }

  /// POSIX shared memory that is there already. `bytes`: how much of it is needed; 0: all of it.
  static LinuxMemory shared(const char* name, std::size_t bytes = 0) noexcept {
    if (!is_shared_name(name)) {
      return bad_shared_name(name);
    }
    const detail::LinuxFile file{shm_open(name, O_RDWR, 0)};
    if (!file.is_open()) {
      return failed(name, ": no shared memory of this name can be opened: ", strerror(errno));
    }
    return map(file, name, {.bytes = bytes});
  }

  /// Forgets the name; the memory goes when the last process unmaps it.
  static void remove_shared(const char* name) noexcept { shm_unlink(name); }

  /// A file that is there already: memory of a virtual machine, huge pages.
  static LinuxMemory file(const char* path, std::size_t bytes = 0) noexcept {
    const detail::LinuxFile file{open(path, O_RDWR | O_CLOEXEC)};
    if (!file.is_open()) {
      return failed(path, ": cannot be opened: ", strerror(errno));
    }
    return map(file, path, {.bytes = bytes});
  }

  /// Map `map_number` of /dev/uio`device` (kernel: Documentation/driver-api/uio-howto.rst).
  static LinuxMemory uio(unsigned device, unsigned map_number = 0, std::size_t bytes = 0,
                         const LinuxPaths& paths = {}) noexcept {
    const detail::LinuxPath map_folder{paths.sys, "/class/uio/uio", device, "/maps/map",
                                       map_number};
    const detail::LinuxPath size_path{map_folder.text(), "/size"};
    const detail::LinuxPath offset_path{map_folder.text(), "/offset"};
    std::uint64_t size = 0;
    std::uint64_t offset = 0;
    if (!detail::read_hexadecimal(size_path.text(), size) ||
        !detail::read_hexadecimal(offset_path.text(), offset)) {
      return failed(map_folder.text(),
                    ": tells no size and offset: is there such a device and map?");
    }
    if (offset >= page_bytes() || size == 0 || size > PTRDIFF_MAX || bytes > size) {
      return failed(map_folder.text(), ": has ", size, " bytes at offset ", offset, ", not ",
                    bytes);
    }
    const detail::LinuxPath path{paths.dev, "/uio", device};
    const detail::LinuxFile file{open(path.text(), O_RDWR | O_CLOEXEC)};
    if (!file.is_open()) {
      return failed(path.text(), ": cannot be opened: ", strerror(errno));
    }
    return map(file, path.text(),
               {.begin = map_number * page_bytes(),
                .skip = static_cast<std::size_t>(offset),
                .bytes = bytes == 0 ? static_cast<std::size_t>(size) : bytes});
  }

  /// Memory at a physical address, by /dev/mem; uncached. Needs root, and a kernel that does not
  /// use this memory itself: `CONFIG_STRICT_DEVMEM` refuses what it does use.
  static LinuxMemory physical(std::uint64_t address, std::size_t bytes,
                              const LinuxPaths& paths = {}) noexcept {
    const detail::LinuxPath path{paths.dev, "/mem"};
    if (bytes == 0 || bytes > PTRDIFF_MAX || address > INT64_MAX - bytes) {
      return failed(path.text(), ": there are no ", bytes, " bytes at ",
                    detail::Hexadecimal{address});
    }
    const detail::LinuxFile file{open(path.text(), O_RDWR | O_SYNC | O_CLOEXEC)};
    if (!file.is_open()) {
      return failed(path.text(), ": cannot be opened: ", strerror(errno), "; this needs root");
    }
    const std::size_t skip = address % page_bytes();
    return map(file, path.text(), {.begin = address - skip, .skip = skip, .bytes = bytes});
  }

  /// Memory that the device tree keeps from Linux, such as remoteproc's carve-outs: the first range
  /// of reserved-memory/`name`, whose unit address ("@3ed00000") may be left out.
  static LinuxMemory reserved(const char* name, std::size_t bytes = 0,
                              const LinuxPaths& paths = {}) noexcept {
    const detail::LinuxPath folder{paths.device_tree, "/reserved-memory"};
    char node[NAME_MAX + 1]{};
    if (!find_node(folder.text(), name, node)) {
      return failed(folder.text(), ": no node '", name, "' is there, or more than one");
    }
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    if (!read_range(folder.text(), node, address, size)) {
      return failed(folder.text(), "/", node, ": has no fixed address (property 'reg')");
    }
    if (size == 0 || size > PTRDIFF_MAX || bytes > size) {
      return failed(folder.text(), "/", node, ": has ", size, " bytes, not ", bytes);
    }
    return physical(address, bytes == 0 ? static_cast<std::size_t>(size) : bytes, paths);
  }

  /// Whether there is memory.
  explicit operator bool() const noexcept { return mapped_ != nullptr; }
  [[nodiscard]] void* data() const noexcept { return static_cast<std::byte*>(mapped_) + skip_; }
  [[nodiscard]] std::size_t size() const noexcept { return mapped_bytes_ - skip_; }

  /// One line: what is wrong, where, and what would be right; empty if nothing is.
  [[nodiscard]] const char* problem() const noexcept { return problem_.text(); }

 private:
  /// A part of a file. `bytes` 0: all that a file of known size has.
  struct Part {
    std::uint64_t begin = 0;  ///< a multiple of the page size
    std::size_t skip = 0;     ///< from there to the first byte wanted
    std::size_t bytes = 0;
  };

  using Line = detail::LinuxText<256>;

  LinuxMemory() = default;

  template <class... Parts>
  static LinuxMemory failed(const Parts&... parts) noexcept {
    LinuxMemory none;
    none.problem_ = Line{parts...};
    return none;
  }

  static LinuxMemory bad_shared_name(const char* name) noexcept {
    return failed("'", name, "': shared memory has a name such as /control: one /, in front");
  }

  static bool is_shared_name(const char* name) noexcept {
    const std::size_t length = strnlen(name, NAME_MAX + 1);
    return length >= 2 && length <= NAME_MAX && name[0] == '/' && strchr(name + 1, '/') == nullptr;
  }

  static std::size_t page_bytes() noexcept {
    return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }

  /// Touching memory behind a file's end ends a program (SIGBUS): so its size is looked at first.
  static LinuxMemory map(const detail::LinuxFile& file, const char* name, Part part) noexcept {
    struct stat found{};
    if (fstat(file.descriptor(), &found) != 0) {
      return failed(name, ": cannot be examined: ", strerror(errno));
    }
    if (S_ISREG(found.st_mode)) {
      const auto size = static_cast<std::uint64_t>(found.st_size);
      const std::uint64_t first = part.begin + part.skip;
      if (size <= first || part.bytes > size - first) {
        return failed(name, ": has ", size, " bytes, not the ", part.bytes, " from ", first, " on");
      }
      if (part.bytes == 0) {
        part.bytes = static_cast<std::size_t>(size - first);
      }
    } else if (!S_ISCHR(found.st_mode)) {
      return failed(name, ": is neither a file nor a device");
    }
    if (part.bytes == 0) {
      return failed(name, ": a device has no size; say how many bytes are needed");
    }
    void* mapped = mmap(nullptr, part.skip + part.bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                        file.descriptor(), static_cast<off_t>(part.begin));
    if (mapped == MAP_FAILED) {
      return failed(name, ": ", part.bytes, " bytes at ",
                    detail::Hexadecimal{part.begin + part.skip},
                    " cannot be mapped: ", strerror(errno));
    }
    LinuxMemory memory;
    memory.mapped_ = mapped;
    memory.mapped_bytes_ = part.skip + part.bytes;
    memory.skip_ = part.skip;
    return memory;
  }

  /// The one node of this name, with or without unit address.
  static bool find_node(const char* folder, const char* name, char* node) noexcept {
    const std::size_t length = strnlen(name, NAME_MAX + 1);
    if (length == 0 || length > NAME_MAX || name[0] == '.' || strchr(name, '/') != nullptr) {
      return false;
    }
    DIR* entries = opendir(folder);
    if (entries == nullptr) {
      return false;
    }
    int found = 0;
    while (const dirent* entry = readdir(entries)) {
      const char* rest = entry->d_name + length;
      if (strncmp(entry->d_name, name, length) == 0 && (*rest == '\0' || *rest == '@')) {
        ++found;
        memcpy(node, entry->d_name, strnlen(entry->d_name, NAME_MAX) + 1);
      }
    }
    closedir(entries);
    return found == 1;
  }

  /// Cells of a number in the node's `reg`: 1 or 2; what the specification says if nothing is told.
  static std::size_t cells(const char* folder, const char* property,
                           std::size_t otherwise) noexcept {
    const detail::LinuxPath path{folder, "/", property};
    unsigned char bytes[4]{};
    if (detail::read_small_file(path.text(), bytes, sizeof bytes) != sizeof bytes) {
      return otherwise;
    }
    return static_cast<std::size_t>(detail::cells_number(bytes, 1));
  }

  static bool read_range(const char* folder, const char* node, std::uint64_t& address,
                         std::uint64_t& size) noexcept {
    const std::size_t address_cells = cells(folder, "#address-cells", 2);
    const std::size_t size_cells = cells(folder, "#size-cells", 1);
    if (address_cells - 1 > 1 || size_cells - 1 > 1) {
      return false;
    }
    const detail::LinuxPath path{folder, "/", node, "/reg"};
    unsigned char bytes[16]{};
    const std::size_t needed = 4 * (address_cells + size_cells);
    const ssize_t length = detail::read_small_file(path.text(), bytes, sizeof bytes);
    if (std::cmp_less(length, needed)) {
      return false;
    }
    address = detail::cells_number(bytes, address_cells);
    size = detail::cells_number(bytes + 4 * address_cells, size_cells);
    return true;
  }

  void swap(LinuxMemory& other) noexcept {
    const auto exchange = [](auto& one, auto& two) {
      const auto kept = one;
      one = two;
      two = kept;
    };
    exchange(mapped_, other.mapped_);
    exchange(mapped_bytes_, other.mapped_bytes_);
    exchange(skip_, other.skip_);
    exchange(problem_, other.problem_);
  }

  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::size_t skip_ = 0;
  Line problem_;
};

}  // namespace latenz::icc
