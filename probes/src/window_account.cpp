// SPDX-License-Identifier: Apache-2.0
#include "window_account.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace latenz::trace {
namespace {

constexpr std::size_t most_found = 1U << 16U;  // windows kept until a wake-up
constexpr std::size_t most_sites = 20'000;     // of each kind
constexpr std::size_t most_rivals = 64;
constexpr std::size_t most_sources = 1024;
constexpr std::size_t sites_told = 50;  // of each kind
constexpr std::size_t latest_told = 10;
constexpr std::size_t longest_name = 120;

std::uint64_t positive(std::int64_t ns) { return ns > 0 ? static_cast<std::uint64_t>(ns) : 0; }

void write_steps(probe::Json& json, const std::vector<probe::CurveStep>& steps) {
  json.open_array();
  for (const probe::CurveStep& step : steps) {
    json.open_array().value(step.span).value(step.sum).close_array();
  }
  json.close_array();
}

void write_horizon(probe::Json& json, const probe::ExecutionWindow& window) {
  json.key("horizon_ns");
  if (window.horizon() == std::numeric_limits<std::uint64_t>::max()) {
    json.null();
  } else {
    json.value(window.horizon());
  }
}

}  // namespace

std::uint64_t Names::number(std::string_view name) {
  name = name.substr(0, longest_name);
  const auto known = numbers_.find(name);
  if (known != numbers_.end()) return known->second;
  if (names_.size() >= most) return number("(others)");
  names_.emplace_back(name);
  return numbers_[names_.back()] = names_.size() - 1;
}

void WindowAccount::window(Term term, std::int64_t ns, std::int64_t inner, Site site) {
  if (!is_observing_) return;
  found_.push_back({term, ns, inner, site});
  if (found_.size() >= most_found) commit();
}

void WindowAccount::execution(std::int64_t begin_ns, std::int64_t own, std::uint64_t source) {
  if (!is_observing_) return;
  // With brackets an execution may begin before the last one has: it is put behind it.
  last_begin_ = std::max(begin_ns, last_begin_);
  recent_.push_back({last_begin_, own, source});
  if (recent_.size() >= most_found) commit_executions();
}

void WindowAccount::rival(std::int32_t pid, std::int32_t priority, std::string_view name) {
  const auto known = found_rivals_.find(pid);
  if (known != found_rivals_.end()) {
    ++known->second.times;
  } else if (found_rivals_.size() < most_rivals) {
    found_rivals_.emplace(pid, probe::Rival{std::string(name), priority, 1});
  }
}

void WindowAccount::woken(std::int64_t now, std::int64_t due_ns, std::int64_t latency_ns) {
  ++wake_ups_;
  if (!std::exchange(is_observing_, true)) {  // everything before the first one does not count
    began_ns_ = now;
    found_rivals_.clear();
    found_passed_over_ = 0;
    return;
  }
  ended_ns_ = now;
  commit();
  const probe::WakeUp done{positive(due_ns), positive(latency_ns)};
  ++open_.wake_ups;
  open_.longest_latency = std::max(open_.longest_latency, done.latency_ns);
  if (latest_.size() < latest_told || latest_.back().latency_ns < done.latency_ns) {
    const auto place = std::ranges::find_if(
        latest_, [&](const auto& each) { return each.latency_ns < done.latency_ns; });
    latest_.insert(place, done);
    latest_.resize(std::min(latest_.size(), latest_told));
  }
  if (open_.wake_ups < segment_length_) return;
  segments_.push_back(std::exchange(open_, probe::Segment{}));
  if (segments_.size() < most_segments) return;
  for (std::size_t i = 0; i < most_segments / 2; ++i) {
    probe::Segment both = std::move(segments_[2 * i]);
    both.take(segments_[2 * i + 1]);
    segments_[i] = std::move(both);
  }
  segments_.resize(most_segments / 2);
  segment_length_ *= 2;
}

void WindowAccount::finish(std::int64_t now) {
  if (wake_ups_ > 0) return;
  commit();
  ended_ns_ = now;
}

void WindowAccount::commit() {
  for (const Found& each : found_) {
    const auto number = static_cast<std::size_t>(each.term);
    const std::uint64_t ns = positive(each.ns);
    Longest& longest = longest_.at(number);
    ++longest.n;
    longest.ns = std::max(longest.ns, ns);
    longest.inner = std::max(longest.inner, positive(each.inner));
    open_.longest.at(number) = std::max(open_.longest.at(number), ns);
    auto& sites = sites_.at(number);
    const auto known = sites.find(each.site);
    if (known != sites.end()) {
      ++known->second.n;
      known->second.longest = std::max(known->second.longest, ns);
    } else if (sites.size() < most_sites) {
      sites.emplace(each.site, Count{1, ns, wake_ups_});
    }
  }
  found_.clear();
  commit_executions();
  for (const auto& [pid, rival] : found_rivals_) {
    const auto known = rivals_.find(pid);
    if (known != rivals_.end()) {
      known->second.times += rival.times;
    } else if (rivals_.size() < most_rivals) {
      rivals_.emplace(pid, rival);
    }
  }
  found_rivals_.clear();
  passed_over_ += std::exchange(found_passed_over_, 0);
}

void WindowAccount::commit_executions() {
  for (const Execution& each : recent_) {
    const std::uint64_t begin = positive(each.begin_ns);
    const std::uint64_t own = positive(each.own);
    const auto windows = executions_.windows_of(begin, own);
    open_.interference.add(windows);
    interference_.add(windows);
    longest_execution_ = std::max(longest_execution_, own);
    const bool is_known = sources_.contains(each.source) || sources_.size() < most_sources;
    probe::InterruptSource& source = sources_[is_known ? each.source : 0];
    source.window.add(begin, own, source.interference);
    source.longest = std::max(source.longest, own);
  }
  recent_.clear();
}

void WindowAccount::write(probe::Json& json, const Names& names) const {
  json.member("wake_ups", wake_ups_).member("missed", missed_);
  json.member("observed_ns", positive(ended_ns_ - began_ns_));
  json.key("checks").open_object();
  json.member("schedules", schedules_).member("passed_over", passed_over_);
  json.key("lost").open_object();
  for (const auto& [what, times] : lost_) json.member(what, times);
  json.close_object().key("rivals").open_array();
  for (const auto& [pid, rival] : rivals_) {
    json.open_object().member("pid", pid).member("name", rival.name);
    json.member("priority", rival.priority).member("times", rival.times).close_object();
  }
  json.close_array().close_object();
  write_terms(json, names);
  write_interrupts(json, names);
  json.key("latency").open_object().key("longest").open_array();
  for (const probe::WakeUp& each : latest_) {
    json.open_object().member("due_ns", each.due_ns);
    json.member("latency_ns", each.latency_ns).close_object();
  }
  json.close_array().close_object();
  write_segments(json);
}

void WindowAccount::write_terms(probe::Json& json, const Names& names) const {
  const auto place = [&](const char* key, const Place& at) {
    json.key(key).open_array().value(names.name(at.address)).value(names.name(at.caller));
    json.close_array();
  };
  json.key("terms").open_object();
  for (std::size_t i = 0; i < probe::terms; ++i) {
    const auto& sites = sites_.at(i);
    json.key(probe::term_names.at(i)).open_object();
    json.member("n", longest_.at(i).n).member("longest_ns", longest_.at(i).ns);
    json.member("inner_ns", longest_.at(i).inner).member("sites", sites.size());
    json.member("seen_once",
                std::ranges::count_if(sites, [](const auto& each) { return each.second.n == 1; }));
    std::vector<std::pair<Site, Count>> told(sites.begin(), sites.end());
    std::ranges::sort(told, [&](const auto& a, const auto& b) {
      return std::tie(a.second.longest, names.name(a.first.begin.address),
                      names.name(a.first.end.address), names.name(a.first.begin.caller),
                      names.name(a.first.end.caller)) >
             std::tie(b.second.longest, names.name(b.first.begin.address),
                      names.name(b.first.end.address), names.name(b.first.begin.caller),
                      names.name(b.first.end.caller));
    });
    told.resize(std::min(told.size(), sites_told));
    json.key("longest_sites").open_array();
    for (const auto& [site, count] : told) {
      json.open_object().member("n", count.n).member("longest_ns", count.longest);
      json.member("first_wake_up", count.first_wake_up);
      place("begin", site.begin);
      place("end", site.end);
      json.close_object();
    }
    json.close_array().close_object();
  }
  json.close_object();
}

void WindowAccount::write_interrupts(probe::Json& json, const Names& names) const {
  json.key("interrupts").open_object();
  json.member("n", executions_.count()).member("longest_ns", longest_execution_);
  write_horizon(json, executions_);
  json.key("steps");
  write_steps(json, interference_.steps());
  json.key("sources").open_array();
  for (const auto& [name, source] : sources_) {
    json.open_object().key("hwirq").null();
    json.member("name", name == 0 ? "other" : names.name(name));
    json.member("n", source.window.count()).member("longest_ns", source.longest);
    write_horizon(json, source.window);
    json.key("distances_ns").open_array();
    for (std::size_t q = 1; q < source.window.known(); ++q) json.value(source.window.shortest(q));
    json.close_array().key("sums_ns").open_array();
    for (std::size_t q = 0; q < source.window.known(); ++q) json.value(source.window.largest(q));
    json.close_array().key("steps");
    write_steps(json, source.interference.steps());
    json.close_object();
  }
  json.close_array().close_object();
}

void WindowAccount::write_segments(probe::Json& json) const {
  json.key("segments").open_array();
  const auto write = [&](const probe::Segment& segment) {
    if (segment.wake_ups == 0) return;
    json.open_object().member("wake_ups", segment.wake_ups);
    json.member("longest_latency_ns", segment.longest_latency);
    json.key("longest_ns").open_array();
    for (const std::uint64_t longest : segment.longest) json.value(longest);
    json.close_array().key("steps");
    probe::Staircase told = segment.interference;
    told.reduce(probe::Segment::steps);
    write_steps(json, told.steps());
    json.close_object();
  };
  std::ranges::for_each(segments_, write);
  write(open_);
  json.close_array();
}

}  // namespace latenz::trace
