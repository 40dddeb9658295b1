// SPDX-License-Identifier: Apache-2.0
#include "trace_source.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "failure.hpp"

namespace latenz::trace {

FileSource::FileSource(const std::string& path) : file_(probe::File::open_input(path)) {
  struct stat status{};
  if (fstat(file_.descriptor(), &status) != 0) {
    throw probe::Failure(path + ": cannot be read: " + std::strerror(errno));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

std::size_t FileSource::read_some(std::uint64_t offset, std::span<std::uint8_t> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = pread(file_.descriptor(), into.data() + done, into.size() - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw Damage(offset + done, std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void FileSource::read(std::uint64_t offset, std::span<std::uint8_t> into) const {
  if (offset > size_ || into.size() > size_ - offset || read_some(offset, into) < into.size()) {
    throw Damage(std::min(offset, size_), "the file ends at byte " + std::to_string(size_));
  }
}

void MemorySource::read(std::uint64_t offset, std::span<std::uint8_t> into) const {
  if (offset > bytes_.size() || into.size() > bytes_.size() - offset) {
    throw Damage(place_, "a part is shorter than what it should hold");
  }
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
}

void Cursor::need(std::uint64_t size) const {
  if (size > left()) throw Damage(place(), "a part ends too early");
}

std::uint64_t Cursor::number(std::size_t size) {
  std::array<std::uint8_t, 8> bytes{};
  need(size);
  const auto into = std::span(bytes).first(size);
  source_->read(position_, into);
  position_ += size;
  return number_of(into, big_endian_);
}

std::string Cursor::string(std::size_t longest) {
  std::string text;
  while (text.size() <= longest) {
    const std::uint8_t byte = u8();
    if (byte == 0) return text;
    text += static_cast<char>(byte);
  }
  throw Damage(place(), "a name has no end");
}

std::string Cursor::take(std::uint64_t size) {
  need(size);
  if (size > source_->size()) throw Damage(place(), "a part ends too early");
  std::string text(size, '\0');
  source_->read(position_, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  position_ += size;
  return text;
}

void Cursor::skip(std::uint64_t size) {
  need(size);
  position_ += size;
}

}  // namespace latenz::trace
