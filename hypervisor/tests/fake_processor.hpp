// SPDX-License-Identifier: Apache-2.0
// A processor that does what a dispatcher says, as the hypervisor would, and takes the costs of a
// system for it. It keeps the same records as a simulation.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dispatcher.hpp"
#include "latenz/simulator.hpp"
#include "latenz/system.hpp"
#include "planned_system.hpp"
#include "recorder.hpp"
#include "roomy.hpp"

/// How the scheduler and the context switches around a job are carried out.
enum class Sections : std::uint8_t {
  preemptible,  ///< events interrupt them, as the rules have it
  whole,        ///< with interrupts masked: events wait for their end
};

template <typename Dispatcher = latenz::hypervisor::Dispatcher>
class FakeProcessor {
 public:
  using Times = std::vector<std::vector<std::int64_t>>;

  /// @param times arrivals of each source, sorted
  FakeProcessor(const latenz::System& system, const PlannedSystem& planned, const Times& times,
                Sections sections)
      : system_(system),
        times_(times),
        sections_(sections),
        next_(times.size()),
        unmasked_at_(times.size(), Instant::long_ago()) {
    dispatcher().begin(planned.plan());
    find_next_arrival();
  }

  /// Until every IRQ has been handled.
  void run() {
    for (;;) {
      const latenz::Instant event = std::min(dispatcher().slot_end(), next_arrival_);
      if (now_ < event) {
        serve_until(event);
        if (next_arrival_ == latenz::Instant::never() && !any_masked() && idle()) {
          return;
        }
      }
      if (dispatcher().slot_end() <= next_arrival_) {
        switch_slot();
      } else {
        top_handler();
      }
    }
  }

  [[nodiscard]] const Recorder& recorder() const { return recorder_; }

  /// One for all: it is large, and begin() is to forget everything.
  static Dispatcher& dispatcher() {
    static Roomy<Dispatcher> one;
    return one;
  }

  std::uint64_t overruns = 0;

 private:
  using Activity = latenz::Activity;
  using Duration = latenz::Duration;
  using Instant = latenz::Instant;

  [[nodiscard]] bool any_masked() const {
    for (std::size_t i = 0; i < times_.size(); ++i) {
      if (dispatcher().is_masked(static_cast<std::uint16_t>(i))) {
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] bool idle() const { return section_ <= Duration() && dispatcher().idle(); }

  // --- events ------------------------------------------------------------------------------------

  void switch_slot() {
    const Instant start = std::max(now_, dispatcher().slot_end());
    dispatcher().start_slot();
    for (std::uint32_t rest = dispatcher().unmask(); rest != 0; rest &= rest - 1) {
      unmasked_at_[static_cast<std::size_t>(std::countr_zero(rest))] = dispatcher().slot_start();
    }
    find_next_arrival();
    now_ = start + system_.table().slot_switch();
    report(Activity::slot_switch, dispatcher().owner(), 0, start);
  }

  void top_handler() {
    const auto index = static_cast<std::uint16_t>(next_source_);
    const latenz::Source& source = system_.sources()[index];
    const Instant start = std::max(now_, next_arrival_);
    if (!dispatcher().permits(index, next_arrival_)) {
      now_ = start + system_.costs().limit;
      report(Activity::top_handler, source.partition, index, start);
      find_next_arrival();
      return;
    }
    const auto top = dispatcher().raise(index, next_arrival_, start);
    now_ = start + source.top + (top.asked ? system_.costs().monitor : Duration());
    report(Activity::top_handler, source.partition, index, start);
    ++next_[index];
    find_next_arrival();
  }

  void find_next_arrival() {
    next_arrival_ = Instant::never();
    for (std::size_t i = 0; i < times_.size(); ++i) {
      if (next_[i] == times_[i].size() || dispatcher().is_masked(static_cast<std::uint16_t>(i))) {
        continue;  // a masked one waits at the interrupt controller
      }
      const Instant arrival = std::max(Instant(times_[i][next_[i]]), unmasked_at_[i]);
      if (arrival < next_arrival_) {
        next_arrival_ = arrival;
        next_source_ = i;
      }
    }
  }

  // --- what runs in between ----------------------------------------------------------------------

  void serve_until(Instant until) {
    while (now_ < until) {
      if (section_ > Duration()) {
        continue_section(until);
        continue;
      }
      look();
      if (current_.settled()) {
        if (current_.partition == latenz::hypervisor::nobody || queue().empty()) {
          return;
        }
        execute(until);
      }
    }
  }

  void look() {
    current_ = dispatcher().next();
    overruns += current_.overrun ? 1 : 0;
    if (current_.job_started) {
      job_source_ = current_.job_source;
      section_ = system_.costs().schedule + system_.costs().context_switch;
    }
    if (current_.job_ended) {
      section_ = system_.costs().context_switch;
    }
  }

  void continue_section(Instant until) {
    const Instant start = now_;
    const Duration step =
        sections_ == Sections::whole ? section_ : std::min(section_, until - now_);
    now_ += step;
    section_ -= step;
    report(Activity::interposing, system_.sources()[job_source_].partition, job_source_, start);
    if (section_ == Duration() && current_.job_started) {
      look();  // R6: a job that has nothing to do ends before events of this instant
    }
  }

  void execute(Instant until) {
    const Instant start = now_;
    const std::uint16_t source = queue().head().source;
    if (left_[current_.partition] == Duration()) {
      left_[current_.partition] = system_.sources()[source].bottom;
    }
    Duration& left = left_[current_.partition];
    const Duration step = std::min({left, current_.budget, until - now_});
    now_ += step;
    left -= step;
    report(current_.interposed ? Activity::interposed_handler : Activity::bottom_handler,
           current_.partition, source, start);
    dispatcher().charge(step);
    if (left == Duration()) {
      finish();
    }
    if (current_.interposed) {
      look();  // R6: its end comes before events of this instant
    }
  }

  void finish() {
    const auto finished = dispatcher().finish_bottom(now_);
    recorder_.irq({finished.source, finished.handling, finished.arrival, finished.top_start, now_});
  }

  const auto& queue() { return dispatcher().queue(current_.partition); }

  void report(Activity activity, std::uint32_t partition, std::uint32_t source, Instant start) {
    if (now_ > start) {
      recorder_.segment(activity, partition, source, start, now_);
    }
  }

  const latenz::System& system_;
  const Times& times_;
  Sections sections_;
  Recorder recorder_;

  Instant now_;
  std::vector<std::size_t> next_;     ///< by source
  std::vector<Instant> unmasked_at_;  ///< by source
  Instant next_arrival_;
  std::size_t next_source_ = 0;

  latenz::hypervisor::Next current_;
  Duration section_;  ///< left of a section around a job
  std::uint16_t job_source_ = 0;
  Duration left_[latenz::hypervisor::Configuration::most_partitions] = {};  ///< of queues' heads
};
