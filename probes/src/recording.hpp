// SPDX-License-Identifier: Apache-2.0
// The side that is not real-time: empties the rings into files and keeps the account of the run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clock_watch.hpp"
#include "histogram_recorder.hpp"
#include "journal_writer.hpp"
#include "json.hpp"
#include "measuring_thread.hpp"
#include "system_window.hpp"

namespace latenz::probe {

/// A late wake-up with what /proc told about the time around it.
struct WorstSample {
  LateWakeup late;
  std::int64_t window_ns = 0;
  std::optional<std::int64_t> steal_ns;
  std::optional<std::uint64_t> smis;
  std::optional<std::int64_t> frequency_khz;
  std::string busiest_interrupts;
  std::string last_interrupt;
};

/// What is known of the whole process when the run starts.
struct Circumstances {
  std::string_view dma_latency;  ///< held, denied, absent or off
  bool memory_locked = false;
  std::int64_t started_realtime_ns = 0;
};

class Recording {
 public:
  /// Creates the folders and files of all threads. Throws `Failure`.
  Recording(const Shared& shared, std::vector<std::unique_ptr<MeasuringThread>>& threads);

  void set_circumstances(const Circumstances& circumstances) { circumstances_ = circumstances; }

  /// Takes over what the threads left since the last time. Returns 0, or the errno value of what
  /// prevents further writing.
  [[nodiscard]] int drain();

  /// Everything that came in is written, histograms included. Returns 0 or errno.
  [[nodiscard]] int finish();

  /// Replaces probe.json if anything changed. Returns 0 or errno.
  [[nodiscard]] int save_account(std::string_view status);

  /// Gives back disk space that was set aside for the last account, after the disk is full.
  void free_reserve() { reserve_.close(); }

  /// Looks whether the clocks of the machine were disturbed meanwhile.
  void watch_clocks() { clocks_.look(read_clock_offsets()); }

  [[nodiscard]] std::int64_t n() const;
  [[nodiscard]] std::optional<std::int64_t> max_ns() const;

 private:
  struct Track {
    [[nodiscard]] int append(std::span<const Sample> samples);

    MeasuringThread* thread = nullptr;
    std::string folder;
    std::optional<JournalWriter> journal;
    std::optional<HistogramRecorder> histogram;
    std::vector<WorstSample> worst;  ///< latest first
    std::int64_t kept = 0;           ///< samples handed to the files
    int error = 0;  ///< errno that ended the files: a later sample would hide the gap before it
  };

  [[nodiscard]] int drain_samples(Track& track);
  void drain_late();
  void keep_worst(Track& track, const LateWakeup& late, const SystemReading& now);
  [[nodiscard]] WorstSample explain(const LateWakeup& late, const SystemReading& now) const;
  void add_track(Json& json, const Track& track) const;
  void add_places(Json& json, const MeasuringThread& thread) const;
  void add_worst(Json& json, const WorstSample& worst) const;
  [[nodiscard]] std::string account(std::string_view status) const;
  void reserve_space();

  const Shared& shared_;
  const Plan& plan_;
  std::vector<Track> tracks_;
  std::vector<Sample> buffer_;
  std::vector<LateWakeup> late_buffer_;
  SystemReader reader_;
  ClockWatch clocks_;
  std::vector<std::optional<std::uint64_t>> first_smis_;
  SystemReading before_;
  SystemReading latest_;
  Circumstances circumstances_;
  File reserve_;
  std::int64_t saved_n_ = -1;
  std::string saved_status_;
  int drains_ = 0;
};

}  // namespace latenz::probe
