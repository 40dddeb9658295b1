// SPDX-License-Identifier: Apache-2.0
// What a dispatcher has to do, written the slow and plain way: lists that are searched, times that
// are gone through one by one. Two partitions, slots of 3 (partition 0), 3 and 2 (partition 1).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dispatcher.hpp"

class Model {
 public:
  using Mode = latenz::hypervisor::Mode;
  using Handling = latenz::Handling;

  static constexpr std::size_t room = 2;  ///< in a queue
  static constexpr std::size_t sources = 3;
  static constexpr int nobody = -1;

  struct Source {
    int partition;
    std::int64_t budget;
    std::vector<std::int64_t> distances;  ///< none: not monitored
  };

  struct Irq {
    std::int64_t id = 0;
    std::size_t source = 0;
    std::int64_t arrival = 0;
    Handling handling = Handling::direct;
    bool timed = false;
    bool budget_left = false;
  };

  struct Decision {
    Handling handling = Handling::delayed;
    bool asked = false;
    bool accepted = false;
  };

  /// What next() has to say.
  struct Step {
    int partition = nobody;
    bool started = false;
    bool ended = false;
    bool overrun = false;
    std::optional<std::int64_t> budget = std::nullopt;
  };

  struct Counts {
    std::uint64_t raised = 0;
    std::uint64_t completed = 0;
    std::uint64_t dropped = 0;
    std::uint64_t outside = 0;
    std::uint64_t jobs = 0;
    std::uint64_t overruns = 0;
    std::uint64_t denied = 0;
  };

  static const std::vector<Source>& plan() {
    static const std::vector<Source> plan = {{0, 2, {2}}, {1, 3, {1, 4}}, {1, 1, {}}};
    return plan;
  }

  explicit Model(Mode mode) : mode_(mode) {}

  // --- slots -------------------------------------------------------------------------------------

  /// Whoever owns the slots at a time, whether it has begun or not.
  static int owner_at(std::int64_t at) {
    if (at < 0) return nobody;
    return at % 8 < 3 ? 0 : 1;
  }

  [[nodiscard]] std::int64_t next_edge() const {
    std::int64_t at = slot_start_ + 1;
    while (!is_edge(at)) {
      ++at;
    }
    return at;
  }

  [[nodiscard]] std::int64_t slot_start() const { return slot_start_; }

  void start_slot() {
    const int before = owner();
    slot_start_ = next_edge();
    if (owner() == before) return;
    if (mode_ == Mode::carry && before != nobody) {
      for (const Irq& irq : queue(before)) {
        if (irq.budget_left) jobs_.push_back({before, irq.source, irq.id});
      }
    }
    drop_jobs(owner());
  }

  // --- interrupts --------------------------------------------------------------------------------

  Decision raise(std::size_t index, std::int64_t arrival) {
    const Source& source = plan()[index];
    ++counts[index].raised;
    if (stopped_[source.partition]) {
      ++counts[index].dropped;
      return {};
    }
    if (queue(source.partition).size() == room) {
      ++counts[index].outside;
      return {};
    }
    const bool foreign = owner_at(arrival) != source.partition;
    Decision decision = {.handling = foreign ? Handling::delayed : Handling::direct};
    decision.asked = !source.distances.empty() && mode_ != Mode::plain &&
                     (foreign || mode_ == Mode::carry) && budgets(source.partition) < room;
    decision.accepted = decision.asked && keeps_distances(index, arrival);
    counts[index].denied += decision.asked && !decision.accepted ? 1 : 0;
    if (foreign && decision.accepted) decision.handling = Handling::interposed;
    queue(source.partition)
        .push_back({++ids_, index, arrival, decision.handling, true, decision.accepted});
    if (decision.accepted) {
      accepted_[index].push_back(arrival);
      if (gets_job(source.partition, arrival)) jobs_.push_back({source.partition, index, ids_});
    }
    return decision;
  }

  // --- guests ------------------------------------------------------------------------------------

  void charge(std::int64_t executed) {
    if (!job_runs_) return;
    budget_ = std::max<std::int64_t>(0, budget_ - executed);
    in_handler_ = true;
  }

  std::optional<Irq> finish() {
    if (running_ == nobody || queue(running_).empty()) return std::nullopt;
    const Irq irq = queue(running_).front();
    queue(running_).erase(queue(running_).begin());
    ++counts[irq.source].completed;
    in_handler_ = false;
    take_in(running_);
    return irq;
  }

  Step next() {
    if (job_runs_) {
      const bool empty = queue(job_.partition).empty();
      if (budget_ > 0 && !empty) return {.partition = job_.partition, .budget = budget_};
      const Step end = {.ended = true, .overrun = in_handler_ && !empty};
      counts[job_.source].overruns += end.overrun ? 1 : 0;
      job_runs_ = false;
      running_ = nobody;
      return end;
    }
    if (!jobs_.empty()) {
      start_job();
      return {.partition = running_, .started = true, .budget = budget_};
    }
    running_ = owner() != nobody && stopped_[owner()] ? nobody : owner();
    return {.partition = running_};
  }

  void restart(int partition) {
    stopped_[partition] = false;
    if (job_runs_ && job_.partition == partition) {
      budget_ = 0;
      in_handler_ = false;
    }
  }

  void stop(int partition) {
    for (const Irq& irq : queue(partition)) {
      ++counts[irq.source].dropped;
    }
    queue(partition).clear();
    for (std::size_t i = 0; i < sources; ++i) {
      if (plan()[i].partition == partition) {
        counts[i].dropped += counts[i].outside;
        counts[i].outside = 0;
      }
    }
    drop_jobs(partition);
    stopped_[partition] = true;
  }

  [[nodiscard]] bool idle() const {
    const bool none_outside =
        std::ranges::all_of(counts, [](const Counts& each) { return each.outside == 0; });
    return queues_[0].empty() && queues_[1].empty() && none_outside && jobs_.empty() && !job_runs_;
  }

  [[nodiscard]] const std::vector<Irq>& pending(int partition) const { return queues_[partition]; }

  Counts counts[sources];

 private:
  struct Job {
    int partition;
    std::size_t source;
    std::int64_t irq;
  };

  static bool is_edge(std::int64_t at) {
    return at >= 0 && (at % 8 == 0 || at % 8 == 3 || at % 8 == 6);
  }

  [[nodiscard]] int owner() const { return owner_at(slot_start_); }
  std::vector<Irq>& queue(int partition) { return queues_[partition]; }

  void drop_jobs(int partition) {
    std::erase_if(jobs_, [partition](const Job& job) { return job.partition == partition; });
  }

  /// Budgets that a partition still has: of jobs, and of pending IRQs that have none.
  [[nodiscard]] std::size_t budgets(int partition) const {
    std::size_t number = 0;
    for (const Job& job : jobs_) {
      number += job.partition == partition ? 1 : 0;
    }
    for (const Irq& irq : queues_[partition]) {
      const bool has_job =
          std::ranges::any_of(jobs_, [&](const Job& job) { return job.irq == irq.id; });
      number += irq.budget_left && !has_job ? 1 : 0;
    }
    return number;
  }

  [[nodiscard]] bool keeps_distances(std::size_t index, std::int64_t arrival) const {
    const auto& distances = plan()[index].distances;
    const auto& accepted = accepted_[index];
    for (std::size_t i = 0; i < distances.size() && i < accepted.size(); ++i) {
      if (arrival - accepted[accepted.size() - 1 - i] < distances[i]) return false;
    }
    return true;
  }

  /// R5: unless its own slot has begun since; mode carry gives it one at that slot's end again.
  [[nodiscard]] bool gets_job(int partition, std::int64_t arrival) const {
    if (owner() == partition) return false;
    for (std::int64_t at = arrival + 1; at <= slot_start_ && mode_ == Mode::paper; ++at) {
      if (owner_at(at) == partition) return false;
    }
    return true;
  }

  /// One of those that found no room, from one source after the other.
  void take_in(int partition) {
    for (std::size_t i = 1; i <= sources; ++i) {
      const std::size_t source = (last_taken_in_[partition] + i) % sources;
      if (plan()[source].partition == partition && counts[source].outside > 0) {
        --counts[source].outside;
        last_taken_in_[partition] = source;
        queue(partition).push_back({++ids_, source, 0, Handling::delayed, false, false});
        return;
      }
    }
  }

  void start_job() {
    job_ = jobs_.front();
    job_runs_ = true;
    jobs_.erase(jobs_.begin());
    for (Irq& irq : queue(job_.partition)) {
      if (irq.id == job_.irq) irq.budget_left = false;
    }
    budget_ = plan()[job_.source].budget;
    in_handler_ = false;
    running_ = job_.partition;
    ++counts[job_.source].jobs;
  }

  Mode mode_;
  std::int64_t slot_start_ = -1;
  std::int64_t ids_ = 0;
  std::vector<Irq> queues_[2];
  std::vector<std::int64_t> accepted_[sources];
  std::vector<Job> jobs_;
  bool job_runs_ = false;
  Job job_{};  ///< the one that runs
  std::int64_t budget_ = 0;
  bool in_handler_ = false;
  int running_ = nobody;
  bool stopped_[2] = {};
  std::size_t last_taken_in_[2] = {};
};
