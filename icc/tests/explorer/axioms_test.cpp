// The weak machine against the axioms of RC11 (Lahav, Vafeiadis, Kang, Hur, Dreyer: Repairing
// Sequential Consistency in C/C++11, PLDI 2017; release sequences as in C++20: the store alone).
// For random small programs, every choice of what each load reads and of each word's modification
// order is tried, and those that satisfy the axioms are what the machine has to produce: no more,
// no less.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "straight_programs.hpp"

namespace latenz::explorer {
namespace {

constexpr std::size_t most_events = 16;

// A relation between events: for each, the set of those it is related to.
struct Relation {
  std::array<std::uint16_t, most_events> to{};

  void add(std::size_t from, std::size_t into) {
    to[from] |= static_cast<std::uint16_t>(1U << into);
  }
  [[nodiscard]] bool has(std::size_t from, std::size_t into) const {
    return ((to[from] >> into) & 1U) != 0;
  }
  [[nodiscard]] Relation then(const Relation& next) const {
    Relation joined;
    for (std::size_t from = 0; from < most_events; ++from) {
      for (std::uint32_t rest = to[from]; rest != 0; rest &= rest - 1)
        joined.to[from] |= next.to[static_cast<std::size_t>(std::countr_zero(rest))];
    }
    return joined;
  }
  [[nodiscard]] Relation with(const Relation& other) const {
    Relation both = *this;
    for (std::size_t i = 0; i < most_events; ++i) both.to[i] |= other.to[i];
    return both;
  }
  [[nodiscard]] Relation closed() const {
    Relation all = *this;
    for (std::size_t over = 0; over < most_events; ++over) {
      for (std::size_t from = 0; from < most_events; ++from)
        if (all.has(from, over)) all.to[from] |= all.to[over];
    }
    return all;
  }
  [[nodiscard]] bool is_irreflexive() const {
    for (std::size_t i = 0; i < most_events; ++i)
      if (has(i, i)) return false;
    return true;
  }
};

class Axioms {
 public:
  explicit Axioms(const Program& program) : threads_(program.size()) {
    for (std::uint32_t at = 0; at < words; ++at) {  // the first values, before everything
      stores_[at].push_back(events_.size());
      events_.push_back({{Do::relaxed_store, at, 0}, threads_});
    }
    for (std::size_t thread = 0; thread < program.size(); ++thread) {
      for (const Instruction& each : program[thread]) {
        if (is_load(each)) loads_.push_back(events_.size());
        if (is_store(each)) stores_[each.word].push_back(events_.size());
        events_.push_back({each, thread});
      }
    }
    for (std::size_t a = 0; a < events_.size(); ++a) {
      for (std::size_t b = a + 1; b < events_.size(); ++b) {
        if (events_[a].thread == events_[b].thread ? events_[a].thread != threads_
                                                   : events_[a].thread == threads_)
          before_.add(a, b);
      }
    }
  }

  Outcomes outcomes() {
    choose_sources(0);
    return seen_;
  }

 private:
  static constexpr std::uint32_t words = 2;
  struct Event {
    Instruction instruction;
    std::size_t thread;
  };

  static bool is_load(const Instruction& each) {
    return each.what == Do::relaxed_load || each.what == Do::acquire_load;
  }
  static bool is_store(const Instruction& each) {
    return each.what == Do::relaxed_store || each.what == Do::release_store;
  }

  void choose_sources(std::size_t load) {
    if (load == loads_.size()) {
      choose_order(0);
      return;
    }
    for (const std::size_t source : stores_[events_[loads_[load]].instruction.word]) {
      source_.push_back(source);
      choose_sources(load + 1);
      source_.pop_back();
    }
  }

  void choose_order(std::uint32_t at) {
    if (at == words) {
      if (satisfied()) note_outcome();
      return;
    }
    std::vector<std::size_t>& order = stores_[at];  // the first value stays first
    std::sort(order.begin() + 1, order.end());
    do {
      choose_order(at + 1);
    } while (std::next_permutation(order.begin() + 1, order.end()));
  }

  [[nodiscard]] bool satisfied() const {
    Relation reads_from;
    Relation modification;
    Relation from_read;
    for (std::size_t i = 0; i < loads_.size(); ++i) reads_from.add(source_[i], loads_[i]);
    for (const auto& order : stores_) {
      for (std::size_t a = 0; a < order.size(); ++a)
        for (std::size_t b = a + 1; b < order.size(); ++b) modification.add(order[a], order[b]);
    }
    for (std::size_t i = 0; i < loads_.size(); ++i)
      from_read.to[loads_[i]] = modification.to[source_[i]];
    if (!before_.with(reads_from).closed().is_irreflexive()) return false;

    const Relation happens_before = before_.with(synchronizes()).closed();
    const Relation communication = reads_from.with(modification).with(from_read).closed();
    if (!happens_before.is_irreflexive()) return false;
    if (!happens_before.then(communication).is_irreflexive()) return false;

    const Relation around = happens_before.then(communication).then(happens_before);
    Relation between_fences;
    for (std::size_t a = 0; a < events_.size(); ++a) {
      for (std::size_t b = 0; b < events_.size(); ++b) {
        if (events_[a].instruction.what == Do::full_fence &&
            events_[b].instruction.what == Do::full_fence && happens_before.with(around).has(a, b))
          between_fences.add(a, b);
      }
    }
    return between_fences.closed().is_irreflexive();
  }

  [[nodiscard]] Relation synchronizes() const {
    Relation relation;
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      const std::size_t source = source_[i];
      const std::size_t load = loads_[i];
      std::vector<std::size_t> releases;
      std::vector<std::size_t> acquires;
      if (events_[source].instruction.what == Do::release_store) releases.push_back(source);
      if (events_[load].instruction.what == Do::acquire_load) acquires.push_back(load);
      for (std::size_t fence = 0; fence < events_.size(); ++fence) {
        const Do what = events_[fence].instruction.what;
        if ((what == Do::full_fence || what == Do::release_fence) && before_.has(fence, source))
          releases.push_back(fence);
        if ((what == Do::full_fence || what == Do::acquire_fence) && before_.has(load, fence))
          acquires.push_back(fence);
      }
      for (const std::size_t release : releases)
        for (const std::size_t acquire : acquires) relation.add(release, acquire);
    }
    return relation;
  }

  void note_outcome() {
    std::string outcome;
    for (std::size_t thread = 0; thread < threads_; ++thread) {
      for (std::size_t i = 0; i < loads_.size(); ++i) {
        if (events_[loads_[i]].thread == thread)
          outcome += static_cast<char>('0' + events_[source_[i]].instruction.value);
      }
      outcome += ' ';
    }
    outcome.pop_back();
    seen_.insert(outcome);
  }

  std::size_t threads_;
  std::vector<Event> events_;
  std::vector<std::size_t> loads_;
  std::array<std::vector<std::size_t>, words> stores_;
  Relation before_;
  std::vector<std::size_t> source_;  // of each load
  Outcomes seen_;
};

Program random_program(std::mt19937& random) {
  const auto below = [&random](std::uint32_t n) {
    return static_cast<std::uint32_t>(random() % n);
  };
  Program program(2 + below(3));
  std::uint32_t stored = 0;
  for (auto& code : program) {
    const std::size_t length =
        program.size() == 4 ? 1 + below(3) : 2 + below(program.size() == 2 ? 4 : 2);
    for (std::size_t i = 0; i < length; ++i) {
      constexpr std::array kinds = {Do::relaxed_load,  Do::relaxed_load,  Do::acquire_load,
                                    Do::relaxed_store, Do::relaxed_store, Do::release_store,
                                    Do::full_fence,    Do::full_fence,    Do::acquire_fence,
                                    Do::release_fence};
      Instruction each{kinds[below(kinds.size())], below(2), 0};
      if (each.what == Do::relaxed_store || each.what == Do::release_store) each.value = ++stored;
      code.push_back(each);
    }
  }
  return program;
}

std::string text(const Program& program) {
  constexpr std::array names = {"r", "a", "W", "R", "F", "Fa", "Fr"};
  std::string told;
  for (const auto& code : program) {
    for (const Instruction& each : code) {
      told += std::string(names[static_cast<std::size_t>(each.what)]) + std::to_string(each.word) +
              "=" + std::to_string(each.value) + " ";
    }
    told += "| ";
  }
  return told;
}

TEST(Axioms, RandomProgramsHaveTheOutcomesThatTheAxiomsAllow) {
  std::mt19937 random(2025);
  for (int n = 0; n < 2000; ++n) {
    const Program program = random_program(random);
    ASSERT_EQ(outcomes(Model::weak, program), Axioms(program).outcomes()) << text(program);
  }
}

}  // namespace
}  // namespace latenz::explorer
