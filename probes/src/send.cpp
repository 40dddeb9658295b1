// SPDX-License-Identifier: Apache-2.0
// latenz-send: says something to whoever reads the console, in frames (latenz/frame.hpp).
//
//   latenz-send file NAME < data      latenz-send note TEXT      latenz-send end
//
// The calls of one system are one sender: they number their frames on in a file that they lock, so
// that the reader sees what is missing, and no two calls mix. LATENZ_SENDER is the sender's number
// (1 if not set; the firmware of a board is 0).
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "failure.hpp"
#include "file.hpp"
#include "latenz/frame_sender.hpp"
#include "program.hpp"

namespace latenz::probe {
namespace {

constexpr const char* usage =
    "usage: latenz-send file NAME < data | latenz-send note TEXT | latenz-send end";
constexpr std::size_t longest_name = 60;

template <typename Number>
Number number_in(std::string_view text, const std::string& where) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Failure(where + " holds '" + std::string(text) + "', which is not a number in its range");
  }
  return number;
}

std::uint8_t sender() {
  const char* const given = std::getenv("LATENZ_SENDER");
  return given == nullptr ? 1 : number_in<std::uint8_t>(given, "LATENZ_SENDER");
}

/// The number of the sender's next frame, kept between calls; locked while this exists.
class Sequence {
 public:
  explicit Sequence(std::uint8_t sender)
      : name_("latenz-send." + std::to_string(sender)), file_(open_in({"/run", "/tmp", ""})) {
    if (flock(file_.descriptor(), LOCK_EX) != 0) throw failure("cannot be locked");
    std::array<char, 16> text{};
    const ssize_t size = pread(file_.descriptor(), text.data(), text.size(), 0);
    if (size < 0) throw failure("cannot be read");
    if (size > 0)
      next_ = number_in<std::uint32_t>({text.data(), static_cast<std::size_t>(size)}, name_);
  }

  [[nodiscard]] std::uint32_t next() const { return next_; }

  void keep(std::uint32_t next) const {
    const std::string text = std::to_string(next);
    const auto size = static_cast<ssize_t>(text.size());
    if (pwrite(file_.descriptor(), text.data(), text.size(), 0) != size) {
      throw failure("cannot be written");
    }
  }

 private:
  [[nodiscard]] Failure failure(const std::string& what) const {
    return Failure(name_ + ": " + what + ": " + std::strerror(errno));
  }

  /// In the first folder that can be written to; a root file system in memory may have few.
  File open_in(std::initializer_list<const char*> folders) {
    const std::string name = "/" + name_;
    for (const char* const folder : folders) {
      name_ = folder + name;
      File file(open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
      if (!file.is_open()) continue;
      check_owner(file);
      return file;
    }
    throw failure("cannot be opened, nor in /run or /tmp");
  }

  /// Everybody can make files in /tmp: what somebody else made is neither trusted nor written to.
  void check_owner(const File& file) const {
    struct stat status{};
    if (fstat(file.descriptor(), &status) != 0) throw failure("cannot be looked at");
    const bool others_write = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_nlink != 1 ||
        others_write) {
      throw Failure(name_ + ": is not a file of this user alone; remove it");
    }
  }

  std::string name_;
  File file_;
  std::uint32_t next_ = 0;
};

/// A line in one piece: the kernel does not mix it with what others write to a terminal.
void print_frame(std::string_view frame) {
  std::string line(frame);
  line += '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = write(STDOUT_FILENO, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) {
      throw Failure(std::string("standard output cannot be written: ") + std::strerror(errno));
    }
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

using Sender = FrameSender<void (*)(std::string_view)>;

std::size_t read_some(std::span<std::uint8_t> place) {
  while (true) {
    const ssize_t size = read(STDIN_FILENO, place.data(), place.size());
    if (size >= 0) return static_cast<std::size_t>(size);
    if (errno != EINTR) {
      throw Failure(std::string("standard input cannot be read: ") + std::strerror(errno));
    }
  }
}

void check_name(std::string_view name) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  };
  if (name.empty() || name.size() > longest_name || name.front() == '.' ||
      !std::ranges::all_of(name, allowed)) {
    throw Failure("file name '" + std::string(name) +
                  "': take 1 to 60 letters, digits, '.', '-' and '_', not starting with '.'");
  }
}

void send_file(Sender& out, std::string_view name) {
  check_name(name);
  std::vector<std::uint8_t> piece = {static_cast<std::uint8_t>(name.size())};
  piece.insert(piece.end(), name.begin(), name.end());
  std::array<std::uint8_t, 4096> data{};
  // One piece is held back: the last one is sent as such.
  for (std::size_t size = read_some(data); size > 0; size = read_some(data)) {
    out.bytes(FrameKind::file, piece, true);
    piece.assign(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size));
  }
  out.bytes(FrameKind::file, piece);
}

int send(std::span<const char* const> arguments) {
  const std::string_view verb = arguments.empty() ? "" : arguments[0];
  const std::size_t wanted = verb == "end" ? 1 : 2;
  if (arguments.size() != wanted || (verb != "file" && verb != "note" && verb != "end")) {
    throw Failure(usage);
  }
  const Sequence sequence(sender());
  Sender out(print_frame, sender(), sequence.next());
  if (verb == "file") send_file(out, arguments[1]);
  if (verb == "note") out.text(FrameKind::note, arguments[1]);
  if (verb == "end") out.end({});
  sequence.keep(out.sequence());
  if (isatty(STDOUT_FILENO) != 0) tcdrain(STDOUT_FILENO);  // all is out before a power-off
  return 0;
}

}  // namespace
}  // namespace latenz::probe

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-send", count, arguments, latenz::probe::send);
}
