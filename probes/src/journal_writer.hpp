// SPDX-License-Identifier: Apache-2.0
// Writes samples.journal: a header, then frames with a checksum, each by one write(2). A reader
// finds every whole frame after any kill; after a full disk the file ends with its last whole
// frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "file.hpp"
#include "measuring_thread.hpp"

namespace latenz::probe {

class JournalWriter {
 public:
  /// What its records are; the number is the version in the file's header.
  enum class Content : std::uint32_t {
    samples = 1,  ///< `Sample`
    cycles = 2,   ///< `attach::CycleRecord`
  };

  /// Creates the file, which must not exist. `cpu`: of the samples; absent: they have none of their
  /// own. `period_ns`: distance of the due times; 0: none. Throws `Failure`.
  JournalWriter(const std::filesystem::path& path, std::optional<unsigned> cpu,
                std::int64_t period_ns, Content content = Content::samples);

  /// Appends samples; returns 0 or the errno value of what prevented it.
  [[nodiscard]] int append(std::span<const Sample> samples) {
    return append_records(std::as_bytes(samples), samples.size());
  }

  /// Appends records of the kind that the file was created for; returns 0 or the errno value.
  [[nodiscard]] int append_records(std::span<const std::byte> records, std::size_t count);

 private:
  [[nodiscard]] int write_whole(std::span<const std::byte> bytes);

  File file_;
  std::int64_t length_ = 0;
  std::vector<std::byte> frame_;
};

}  // namespace latenz::probe
