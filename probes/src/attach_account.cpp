// SPDX-License-Identifier: Apache-2.0
#include "attach_account.hpp"

namespace latenz::attach {
namespace {

using probe::Json;

std::string_view name_of(WakeKind::By by) {
  switch (by) {
    case WakeKind::By::timer:
      return "timer";
    case WakeKind::By::deadline:
      return "deadline";
    case WakeKind::By::mark:
      return "mark";
    case WakeKind::By::event:
      break;
  }
  return "event";
}

std::string_view name_of(ClockBase clock) {
  switch (clock) {
    case ClockBase::realtime:
      return "realtime";
    case ClockBase::boottime:
      return "boottime";
    case ClockBase::tai:
      return "tai";
    case ClockBase::monotonic:
      break;
  }
  return "monotonic";
}

std::string_view name_of(Segment::What what) {
  switch (what) {
    case Segment::What::late:
      return "late";
    case Segment::What::ready:
      return "ready";
    case Segment::What::blocked:
      return "blocked";
    case Segment::What::run:
      break;
  }
  return "run";
}

std::string_view name_of_source(std::uint8_t flags) {
  if ((flags & by_timer) != 0) return "timer";
  if ((flags & by_interrupt) != 0) return "interrupt";
  return (flags & by_softirq) != 0 ? "softirq" : "thread";
}

void write(Json& json, const Segment& segment) {
  json.open_object().member("what", name_of(segment.what));
  json.member("t_ns", segment.t_ns).member("length_ns", segment.length_ns);
  json.member("cpu", segment.cpu);
  if (segment.what == Segment::What::run || segment.what == Segment::What::ready) {
    json.member("stolen_ns", segment.stolen_ns);
  }
  if (segment.what != Segment::What::run) {
    json.member("tid", segment.tid).member("comm", segment.comm);
  }
  if (segment.what == Segment::What::ready) json.member("priority", segment.priority);
  if (segment.what == Segment::What::blocked || segment.what == Segment::What::late) {
    json.member("by", name_of_source(segment.flags)).member("number", segment.source);
  }
  if (segment.what == Segment::What::blocked) {
    json.member("call", segment.call).member("argument_0", segment.argument_0);
    json.member("argument_1", segment.argument_1);
  }
  json.close_object();
}

void write(Json& json, const Story& story) {
  const CycleRecord& record = story.record;
  json.open_object().member("number", story.number).member("due_ns", record.due_ns);
  json.member("latency_ns", record.latency_ns).member("response_ns", record.response_ns);
  json.member("run_ns", record.run_ns).member("blocked_ns", record.blocked_ns);
  json.member("timer_late_ns", record.timer_late_ns).member("stolen_ns", record.stolen_ns);
  json.member("preemptions", record.preemptions).member("blocks", record.blocks);
  json.member("faults", record.faults).member("migrations", record.migrations);
  json.member("flags", record.flags).member("own_priority", story.own_priority);
  json.member("reclaim_ns", story.reclaim_ns).member("forks", story.forks);
  json.member("copies", story.copies).member("forker", story.forker);
  json.member("forker_name", story.forker_name).member("clock_step_ns", story.clock_step_ns);
  json.member("lowest_khz", story.lowest_khz).member("highest_khz", story.highest_khz);
  json.member("is_cut", story.is_cut);
  json.key("fault_addresses").open_array();
  for (const std::int64_t address : story.fault_addresses) json.value(address);
  json.close_array().key("segments").open_array();
  for (const Segment& segment : story.segments) write(json, segment);
  json.close_array().close_object();
}

void write(Json& json, const Grid& grid, const std::map<std::int64_t, std::string>& functions) {
  json.member("period_ns", grid.period_ns);
  json.member("phase_ns", grid.anchor_ns % grid.period_ns);
  json.member("is_exact", grid.is_exact);
  json.member("wakes_a_cycle", grid.wakes_a_cycle);
  json.member("by", name_of(grid.kind.by)).member("call", grid.kind.call);
  const auto function = functions.find(grid.kind.function);
  json.member("function", function == functions.end() ? "" : function->second);
}

void write_totals(Json& json, const ThreadCycles& thread) {
  const auto& totals = thread.totals();
  json.member("n", totals.n).member("partial", totals.partial).member("missed", totals.missed);
  json.member("unended", totals.unended)
      .member("inferred", totals.inferred)
      .member("preemptions", totals.preemptions);
  json.member("blocks", totals.blocks).member("faults", totals.faults);
  json.member("migrations", totals.migrations);
  const auto known = [](std::int64_t value) {
    return value < 0 ? std::nullopt : std::optional(value);
  };
  json.key("largest_ns").value(known(totals.largest_ns));
  json.key("largest_response_ns").value(known(totals.largest_response_ns));
  json.key("recent_ns").value(known(totals.recent_ns));
  json.member("first_due_ns", totals.first_due_ns).member("last_due_ns", totals.last_due_ns);
  json.member("usual_run_ns", thread.usual_run_ns());
  json.member("usual_response_ns", thread.usual_response_ns());
  json.key("ran_on").open_object();
  for (const auto& [cpu, n] : thread.ran_on()) json.member(std::to_string(cpu), n);
  json.close_object();
}

void write_sleeps(Json& json, const ThreadCycles& thread) {
  json.key("sleeps").open_array();
  for (const auto& [call, told] : thread.sleeps()) {
    json.open_object().member("call", call).member("n", told.n);
    json.member("within_cycles", told.within_cycles);
    json.member("argument_0", told.argument_0).member("argument_1", told.argument_1);
    json.close_object();
  }
  json.close_array();
}

}  // namespace

std::string told(const Account& account, const CycleBuilder& builder,
                 const std::map<std::int32_t, Identity>& identities,
                 const std::map<std::int64_t, std::string>& functions) {
  Json json;
  json.open_object().member("program_version", LATENZ_VERSION).member("status", account.status);
  json.member("source", account.source).member("clock", account.clock);
  json.member("started_ns", account.started_ns).member("lost", account.lost);
  for (const auto& [name, list] :
       {std::pair{"absent", &account.absent}, std::pair{"notes", &account.notes}}) {
    json.key(name).open_array();
    for (const std::string& each : *list) json.value(each);
    json.close_array();
  }
  json.key("costs").open_array();
  for (const ProgramCost& cost : account.costs) {
    json.open_object().member("tracepoint", cost.tracepoint).member("runs", cost.runs);
    json.member("total_ns", cost.total_ns).close_object();
  }
  json.close_array().key("threads").open_array();
  for (const auto& [tid, thread] : builder.threads()) {
    const auto identity = identities.find(tid);
    if (identity == identities.end()) continue;
    json.open_object().member("tid", tid).member("pid", identity->second.pid);
    json.member("comm", identity->second.comm).member("folder", identity->second.folder);
    json.member("gone", thread->is_gone()).member("wakes", thread->wakes());
    if (const auto& grid = thread->grid(); grid != nullptr) {
      write(json.key("grid").open_object(), *grid, functions);
      json.member("clock", name_of(thread->clock()));
      json.member("waker", thread->waker()).member("waker_name", thread->waker_name());
      json.close_object();
    } else {
      json.key("grid").null();
    }
    write_totals(json, *thread);
    write_sleeps(json, *thread);
    json.key("calls").open_object();
    for (const auto& [call, n] : identity->second.calls) json.member(std::to_string(call), n);
    json.close_object();
    json.key("worst").open_array();
    for (const Story* story : thread->worst()) write(json, *story);
    json.close_array().close_object();
  }
  json.close_array().close_object();
  return json.text();
}

}  // namespace latenz::attach
