// Visits every state that threads can reach together: all interleavings of their accesses and, in
// the weak model, all values that each may read. docs/icc-proof.md tells what was checked with it.
//
// A state is what each thread does next and what is in memory. A thread between two accesses is
// known by its object as it was when its present operation began and by what it has read since.
// States are told apart by 64-bit hashes: among 10^7 states two are confused with a chance of 3e-6.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "access.hpp"
#include "machine.hpp"

namespace latenz::explorer {

// A thread that is explored. Its members are all that it knows between two operations; they are
// saved and restored as bytes, so they own nothing.
class Thread {
 public:
  Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  virtual ~Thread() = default;

  virtual void operation() = 0;                  // the next call on a channel, checks included
  [[nodiscard]] virtual bool ended() const = 0;  // no operation is left
  virtual void lose_endpoint() {}                // crashed: only what the test itself knows is left
};

// After each assignment of an object that is kept: what the compiler left between its members would
// tell states apart that are the same. (Where it cannot, more states are visited than there are.)
template <class T>
void forget_padding([[maybe_unused]] T& object) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&object);
#endif
#endif
}

struct Report {
  std::uint64_t states = 0;
  std::uint64_t transitions = 0;
  std::uint64_t ends = 0;   // states in which all threads have ended
  std::uint64_t stuck = 0;  // states from which no such state can be reached
  std::vector<std::uint32_t>
      most_accesses;               // of shared memory in the longest operation of each thread
  std::string failure;             // empty: none
  std::vector<std::string> trace;  // the way to it, or to the first stuck state

  [[nodiscard]] bool passed() const { return failure.empty() && stuck == 0 && ends > 0; }
};

class Explorer {
 public:
  explicit Explorer(Model model) : model_(model) {}

  template <class T, class... Arguments>
  T& add(std::string name, Arguments&&... arguments) {
    // Padding must compare equal, too, so the object is built on zeros.
    auto memory = std::make_unique<std::byte[]>(sizeof(T));
    std::memset(memory.get(), 0, sizeof(T));
    auto* thread = new (memory.get()) T(std::forward<Arguments>(arguments)...);
    threads_.push_back({std::move(name), std::move(memory), thread, sizeof(T), 0, 0});
    return *thread;
  }

  // The thread added last may crash before any of its accesses, so many times, and begin anew.
  void may_restart(std::uint8_t times) { threads_.back().restarts = times; }

  void seed_defect(Mutant& mutant) { mutant_ = &mutant; }

  // Called in each state in which all threads have ended, with their objects as they are then.
  void at_end(std::function<void()> check) { at_end_ = std::move(check); }

  // Gives up beyond so many states.
  void limit(std::uint64_t states) { limit_ = states; }

  Report run();

 private:
  struct Participant {
    std::string name;
    std::unique_ptr<std::byte[]> memory;
    Thread* thread;
    std::size_t size;
    std::uint8_t restarts;
    std::uint32_t most_accesses = 0;  // of one operation
  };

  // A thread between two accesses.
  struct Local {
    int thread = 0;
    std::uint32_t object = 0;        // as it was when the operation began
    std::vector<std::uint32_t> log;  // what was read since
    bool ended = false;
    std::string failure;
    Access pending{Kind::choice};
    std::vector<std::pair<std::uint32_t, std::uint32_t>> next;  // value read, local
    std::uint32_t after_crash = 0;                              // 0: not known yet
  };

  struct Step {
    std::uint32_t parent = 0;
    std::uint16_t outcome = 0;
    std::uint8_t thread = 0;
    bool crash = false;
  };

  struct Search;

  std::uint32_t saved_object(const Participant& of);
  std::uint32_t local_at(int thread, std::uint32_t object, std::vector<std::uint32_t> log);
  std::uint32_t local_after(std::uint32_t local, std::uint32_t value);
  std::uint32_t local_after_crash(std::uint32_t local);
  bool run_operation(Local& local);
  void restore(const Local& local);

  // Lets one thread take its next step and everything after it that others cannot notice.
  // False: something failed, which failure_ tells.
  bool step(Machine& machine, State& state, int thread, std::uint32_t outcome);
  bool advance(Machine& machine, State& state, int thread, std::uint32_t outcome);
  bool advance_unseen(Machine& machine, State& state, int thread);
  [[nodiscard]] bool is_unseen(const Machine& machine, const State& state, int thread) const;
  bool before_step(Machine& machine, State& state, int thread);
  bool crash(Machine& machine, State& state, int thread);
  void tidy(const Machine& machine, State& state) const;
  bool all_ended(const State& state) const;
  bool start(Machine& machine, State& state);
  void explore(Machine& machine, Search& search);
  void explore_from(Machine& machine, Search& search, std::uint32_t id, const State& from);
  void arrive(Search& search, State state, Step step);
  void count_stuck(Machine& machine, const Search& search);
  void describe(Machine& machine, const Search& search, std::uint32_t last, const Step* final_step);
  [[nodiscard]] static std::string described(const Participant& who, const Access& what,
                                             std::uint32_t value);

  Model model_;
  Mutant* mutant_ = nullptr;
  std::function<void()> at_end_;
  std::uint64_t limit_ = 50'000'000;
  std::vector<Participant> threads_;
  std::vector<std::uint32_t> first_objects_;  // of each thread, as it was added
  std::vector<std::string> objects_;
  std::unordered_map<std::string, std::uint32_t> object_ids_, local_ids_;
  std::vector<std::unique_ptr<Local>> locals_;
  std::vector<std::string>* telling_ = nullptr;
  std::string failure_;
  Report report_;
};

}  // namespace latenz::explorer
