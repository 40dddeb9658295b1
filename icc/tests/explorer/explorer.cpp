#include "explorer.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <ranges>
#include <utility>

namespace latenz::explorer {

namespace {

// A thread that waits for what nobody changes takes no more of them at once.
constexpr std::uint32_t most_unseen_steps = 1000;

// Hashes of the states seen and their numbers, by open addressing.
class Seen {
 public:
  // The number of this state, and whether it is new.
  std::pair<std::uint32_t, bool> add(std::uint64_t hash) {
    if (2 * (std::size_t{count_} + 1) > slots_.size()) grow();
    Slot& slot = find(hash);
    const bool is_new = slot.number == 0;
    if (is_new) slot = {hash, ++count_};
    return {slot.number - 1, is_new};
  }
  [[nodiscard]] std::uint32_t count() const { return count_; }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t number = 0;  // from 1; 0: free
  };

  Slot& find(std::uint64_t hash) {
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].number != 0 && slots_[at].hash != hash) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }
  void grow() {
    std::vector<Slot> before(std::max<std::size_t>(1024, slots_.size() * 2));
    before.swap(slots_);
    for (const Slot& slot : before)
      if (slot.number != 0) find(slot.hash) = slot;
  }

  std::vector<Slot> slots_;
  std::uint32_t count_ = 0;
};

}  // namespace

struct Explorer::Search {
  Seen seen;
  std::vector<Step> steps;  // how each state was first reached
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<bool> is_end;
  std::vector<std::pair<std::uint32_t, State>> open;  // states whose successors are not known yet
};

Report Explorer::run() {
  Machine machine(model_, static_cast<int>(threads_.size()));
  for (;;) {
    report_ = {};
    failure_.clear();
    Search search;
    Arena::open();
    try {
      explore(machine, search);
    } catch (const Relearn&) {
      continue;
    }
    Arena::open();
    for (const Participant& each : threads_) report_.most_accesses.push_back(each.most_accesses);
    report_.states = search.seen.count();
    if (report_.failure.empty()) count_stuck(machine, search);
    return report_;
  }
}

// The threads' own part: what each does next.

std::uint32_t Explorer::saved_object(const Participant& of) {
  std::string bytes(reinterpret_cast<const char*>(of.memory.get()), of.size);
  const auto [entry, is_new] =
      object_ids_.try_emplace(std::move(bytes), static_cast<std::uint32_t>(objects_.size()));
  if (is_new) objects_.push_back(entry->first);
  return entry->second;
}

void Explorer::restore(const Local& local) {
  const Participant& of = threads_[static_cast<std::size_t>(local.thread)];
  std::memcpy(of.memory.get(), objects_[local.object].data(), of.size);
}

std::uint32_t Explorer::local_at(int thread, std::uint32_t object, std::vector<std::uint32_t> log) {
  std::string key(reinterpret_cast<const char*>(log.data()), log.size() * sizeof(std::uint32_t));
  key.append(reinterpret_cast<const char*>(&object), sizeof object);
  key.push_back(static_cast<char>(thread));
  const auto found = local_ids_.find(key);
  if (found != local_ids_.end()) return found->second;

  auto local = std::make_unique<Local>();
  local->thread = thread;
  local->object = object;
  local->log = std::move(log);
  restore(*local);
  const Participant& of = threads_[static_cast<std::size_t>(thread)];
  std::uint32_t id = 0;
  if (local->log.empty() && of.thread->ended()) {
    local->ended = true;
  } else if (run_operation(*local)) {  // to its end: the next one begins
    id = local_at(thread, saved_object(of), {});
    local_ids_.emplace(std::move(key), id);
    return id;
  }
  id = static_cast<std::uint32_t>(locals_.size());
  locals_.push_back(std::move(local));
  local_ids_.emplace(std::move(key), id);
  return id;
}

// Whether the operation came to its end; otherwise `pending` or `failure` tells why not.
bool Explorer::run_operation(Local& local) {
  Participant& of = threads_[static_cast<std::size_t>(local.thread)];
  Run run;
  run.log = &local.log;
  run.mutant = mutant_;
  run.thread = local.thread;
  current_run = &run;
  volatile bool to_its_end = false;  // outlives the jump
  Arena::close();
  if (setjmp(run.escape) == 0) {  // NOLINT: see perform()
    if (mutant_ != nullptr) mutant_->begin();
    of.thread->operation();
    of.most_accesses = std::max(of.most_accesses, run.accesses);
    to_its_end = true;
  }
  Arena::open();
  current_run = nullptr;
  local.pending = run.pending;
  local.failure = run.failure;
  return to_its_end;
}

std::uint32_t Explorer::local_after(std::uint32_t local, std::uint32_t value) {
  Local const& from = *locals_[local];
  for (const auto& [read, next] : from.next)
    if (read == value) return next;
  std::vector<std::uint32_t> log = from.log;
  log.push_back(value);
  const std::uint32_t next = local_at(from.thread, from.object, std::move(log));
  locals_[local]->next.emplace_back(value, next);
  return next;
}

std::uint32_t Explorer::local_after_crash(std::uint32_t local) {
  Local& from = *locals_[local];
  if (from.after_crash == 0) {
    restore(from);
    const Participant& of = threads_[static_cast<std::size_t>(from.thread)];
    of.thread->lose_endpoint();
    from.after_crash = 1 + local_at(from.thread, saved_object(of), {});
  }
  return from.after_crash - 1;
}

// States and the steps between them.

bool Explorer::advance(Machine& machine, State& state, int thread, std::uint32_t outcome) {
  const auto index = static_cast<std::size_t>(thread);
  const std::uint32_t from = state.local[index];
  const Access wanted = locals_[from]->pending;
  const auto value = machine.happen(state, thread, wanted, outcome);
  if (telling_ != nullptr && machine.is_worth_telling(wanted))
    telling_->push_back(described(threads_[index], wanted, value.value_or(0)));
  if (!value) {
    failure_ = "data race";
    return false;
  }
  state.local[index] = local_after(from, *value);
  const Local& now = *locals_[state.local[index]];
  if (!now.failure.empty()) {
    failure_ = now.failure;
    return false;
  }
  if (!now.ended) machine.learn(thread, now.pending);
  return true;
}

// Whether nobody can tell when the thread's next access happens. One who may still crash can
// itself: what it has stored for its next incarnation alone is there then, or not.
bool Explorer::is_unseen(const Machine& machine, const State& state, int thread) const {
  const auto index = static_cast<std::size_t>(thread);
  const Access& next = locals_[state.local[index]]->pending;
  return machine.is_local(next) && (state.restarts[index] == 0 || !machine.is_own_store(next));
}

// What a step takes with it at its beginning, so that it is as late as can be.
bool Explorer::before_step(Machine& machine, State& state, int thread) {
  for (std::uint32_t n = 0; n < most_unseen_steps; ++n) {
    const Local& local = *locals_[state.local[static_cast<std::size_t>(thread)]];
    if (local.ended || (local.pending.kind != Kind::recall && !is_unseen(machine, state, thread)))
      return true;
    if (!advance(machine, state, thread, 0)) return false;
  }
  return true;
}

bool Explorer::advance_unseen(Machine& machine, State& state, int thread) {
  for (std::uint32_t n = 0; n < most_unseen_steps; ++n) {
    const Local& local = *locals_[state.local[static_cast<std::size_t>(thread)]];
    if (local.ended || !is_unseen(machine, state, thread)) return true;
    if (!advance(machine, state, thread, 0)) return false;
  }
  return true;
}

bool Explorer::step(Machine& machine, State& state, int thread, std::uint32_t outcome) {
  if (locals_[state.local[static_cast<std::size_t>(thread)]]->ended) return true;
  return advance(machine, state, thread, outcome) && advance_unseen(machine, state, thread);
}

bool Explorer::crash(Machine& machine, State& state, int thread) {
  const auto index = static_cast<std::size_t>(thread);
  if (telling_ != nullptr) telling_->push_back(threads_[index].name + ": crashes");
  --state.restarts[index];
  state.local[index] = local_after_crash(state.local[index]);
  const Local& now = *locals_[state.local[index]];
  if (!now.failure.empty()) {
    failure_ = now.failure;
    return false;
  }
  if (!now.ended) machine.learn(thread, now.pending);
  return advance_unseen(machine, state, thread);
}

void Explorer::tidy(const Machine& machine, State& state) const {
  std::array<bool, most_threads> ended{};
  for (std::size_t i = 0; i < threads_.size(); ++i) ended[i] = locals_[state.local[i]]->ended;
  machine.tidy(state, ended);
}

bool Explorer::all_ended(const State& state) const {
  for (std::size_t i = 0; i < threads_.size(); ++i)
    if (!locals_[state.local[i]]->ended) return false;
  return true;
}

bool Explorer::start(Machine& machine, State& state) {
  state = machine.initial();
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const auto thread = static_cast<int>(i);
    if (i >= first_objects_.size()) first_objects_.push_back(saved_object(threads_[i]));
    state.local[i] = local_at(thread, first_objects_[i], {});
    state.restarts[i] = threads_[i].restarts;
    const Local& local = *locals_[state.local[i]];
    if (!local.failure.empty()) {
      failure_ = local.failure;
      return false;
    }
    if (!local.ended) machine.learn(thread, local.pending);
    if (!advance_unseen(machine, state, thread)) return false;
  }
  tidy(machine, state);
  return true;
}

void Explorer::arrive(Search& search, State state, Step step) {
  const auto [id, is_new] = search.seen.add(state.hash());
  ++report_.transitions;
  search.edges.emplace_back(step.parent, id);
  if (!is_new) return;
  search.steps.push_back(step);
  const bool end = all_ended(state);
  search.is_end.push_back(end);
  if (!end) {
    search.open.emplace_back(id, std::move(state));
    return;
  }
  ++report_.ends;
  if (!at_end_) return;
  for (std::size_t i = 0; i < threads_.size(); ++i) restore(*locals_[state.local[i]]);
  at_end_();
}

void Explorer::explore(Machine& machine, Search& search) {
  State state;
  if (!start(machine, state)) {
    report_.failure = failure_;
    return;
  }
  arrive(search, std::move(state), {});
  while (!search.open.empty() && report_.failure.empty()) {
    auto [id, from] = std::move(search.open.back());
    search.open.pop_back();
    explore_from(machine, search, id, from);
    if (search.seen.count() > limit_) report_.failure = "more states than the limit";
  }
}

void Explorer::explore_from(Machine& machine, Search& search, std::uint32_t id, const State& from) {
  const auto take = [&](State state, const Step& step, auto move) {
    if (!move(state)) {
      report_.failure = failure_;
      describe(machine, search, id, &step);
      return false;
    }
    tidy(machine, state);
    arrive(search, std::move(state), step);
    return true;
  };
  for (int thread = 0; std::cmp_less(thread, threads_.size()); ++thread) {
    const auto index = static_cast<std::size_t>(thread);
    if (locals_[from.local[index]]->ended) continue;
    if (from.restarts[index] > 0) {
      const Step step{id, 0, static_cast<std::uint8_t>(thread), true};
      if (!take(from, step, [&](State& state) { return crash(machine, state, thread); })) return;
    }
    State prepared = from;
    Step step{id, 0, static_cast<std::uint8_t>(thread), false};
    if (!before_step(machine, prepared, thread)) {
      report_.failure = failure_;
      describe(machine, search, id, &step);
      return;
    }
    const Local& local = *locals_[prepared.local[index]];
    const std::uint32_t outcomes =
        local.ended ? 1 : machine.outcomes(prepared, thread, local.pending);
    for (std::uint32_t outcome = 0; outcome < outcomes; ++outcome) {
      step.outcome = static_cast<std::uint16_t>(outcome);
      const auto move = [&](State& state) { return this->step(machine, state, thread, outcome); };
      if (!take(prepared, step, move)) return;
    }
  }
}

// Backwards from the ends: whatever is not met cannot come to one.
void Explorer::count_stuck(Machine& machine, const Search& search) {
  const std::size_t n = search.steps.size();
  std::vector<std::uint32_t> begin(n + 1);
  std::vector<std::uint32_t> sources(search.edges.size());
  for (const auto& edge : search.edges) ++begin[edge.second];
  for (std::size_t i = 0, sum = 0; i <= n; ++i) {
    sum += begin[i];
    begin[i] = static_cast<std::uint32_t>(sum);
  }
  for (const auto& [from, to] : search.edges) sources[--begin[to]] = from;
  std::vector<bool> reaches_end = search.is_end;
  std::vector<std::uint32_t> open;
  for (std::uint32_t i = 0; i < n; ++i)
    if (search.is_end[i]) open.push_back(i);
  std::uint64_t met = open.size();
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    for (std::uint32_t i = begin[at]; i < begin[at + 1]; ++i) {
      if (reaches_end[sources[i]]) continue;
      reaches_end[sources[i]] = true;
      ++met;
      open.push_back(sources[i]);
    }
  }
  report_.stuck = n - met;
  for (std::uint32_t i = 0; i < n && report_.trace.empty(); ++i)
    if (!reaches_end[i]) describe(machine, search, i, nullptr);
}

// Goes the way to a state once more and writes down what happens.
void Explorer::describe(Machine& machine, const Search& search, std::uint32_t last,
                        const Step* final_step) {
  std::vector<Step> way;
  if (final_step != nullptr) way.push_back(*final_step);
  for (std::uint32_t at = last; at != 0; at = search.steps[at].parent)
    way.push_back(search.steps[at]);
  telling_ = &report_.trace;
  State state;
  start(machine, state);
  for (const auto& step : std::views::reverse(way)) {
    if (step.crash) {
      if (!crash(machine, state, step.thread)) break;
    } else if (!before_step(machine, state, step.thread) ||
               !this->step(machine, state, step.thread, step.outcome)) {
      break;
    }
    tidy(machine, state);
  }
  telling_ = nullptr;
}

std::string Explorer::described(const Participant& who, const Access& what, std::uint32_t value) {
  static constexpr std::array names = {"load",          "store",  "full fence", "acquire fence",
                                       "release fence", "read",   "write",      "choice",
                                       "note",          "recall", "await"};
  char line[120];
  const char* const name = names[static_cast<std::size_t>(what.kind)];
  switch (what.kind) {
    case Kind::load:
    case Kind::read:
      std::snprintf(line, sizeof line, ": %s%s of +%#x gives %#x", what.ordered ? "acquire " : "",
                    name, what.word * 4U, value);
      break;
    case Kind::store:
    case Kind::write:
      std::snprintf(line, sizeof line, ": %s%s of %#x to +%#x", what.ordered ? "release " : "",
                    name, what.value, what.word * 4U);
      break;
    default:
      std::snprintf(line, sizeof line, ": %s %u", name, value);
  }
  return who.name + line;
}

}  // namespace latenz::explorer
