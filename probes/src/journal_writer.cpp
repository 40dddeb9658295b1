// SPDX-License-Identifier: Apache-2.0
#include "journal_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "failure.hpp"
#include "latenz/crc32.hpp"

namespace latenz::probe {
namespace {

static_assert(std::endian::native == std::endian::little, "the journal is little endian");

constexpr std::uint32_t no_cpu = 0xFFFFFFFF;

struct FileHeader {
  std::array<char, 8> magic{'L', 'A', 'T', 'E', 'N', 'Z', 'J', '1'};
  std::uint32_t version = 1;
  std::uint32_t cpu = 0;
  std::int64_t period_ns = 0;
  std::int64_t reserved = 0;
};
static_assert(sizeof(FileHeader) == 32);

struct FrameHeader {
  std::uint32_t magic = 0x4D52464C;  // "LFRM"
  std::uint32_t record_count = 0;
  std::uint32_t checksum = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(FrameHeader) == 16);

}  // namespace

JournalWriter::JournalWriter(const std::filesystem::path& path, std::optional<unsigned> cpu,
                             std::int64_t period_ns, Content content)
    : file_(File::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)) {
  if (!file_.is_open()) {
    throw Failure(path.string() + ": " + std::strerror(errno) +
                  "; name another folder by --output");
  }
  FileHeader header;
  header.version = static_cast<std::uint32_t>(content);
  header.cpu = cpu.value_or(no_cpu);
  header.period_ns = period_ns;
  if (const int error = write_whole(std::as_bytes(std::span(&header, 1))); error != 0) {
    throw Failure(path.string() + ": " + std::strerror(error) +
                  "; make room or name another folder");
  }
}

int JournalWriter::append_records(std::span<const std::byte> records, std::size_t count) {
  if (count == 0) {
    return 0;
  }
  FrameHeader header;
  header.record_count = static_cast<std::uint32_t>(count);
  header.checksum = crc32(records);
  frame_.resize(sizeof header + records.size());
  std::memcpy(frame_.data(), &header, sizeof header);
  std::memcpy(frame_.data() + sizeof header, records.data(), records.size());
  return write_whole(frame_);
}

int JournalWriter::write_whole(std::span<const std::byte> bytes) {
  const ssize_t written = write(file_.descriptor(), bytes.data(), bytes.size());
  if (written >= 0 && static_cast<std::size_t>(written) == bytes.size()) {
    length_ += written;
    return 0;
  }
  const int error = written < 0 ? errno : ENOSPC;  // a short write to a file means that it is full
  if (ftruncate(file_.descriptor(), length_) != 0) {
    return errno;
  }
  return error;
}

}  // namespace latenz::probe
