// Two memories that explored threads share.
//
// interleaving: sequentially consistent. Every access of a shared word, payload too, is a step.
//
// weak: the C++ memory model (RC11) as a machine. An atomic word is the list of its stores in
// modification order; a thread's view tells the oldest store of each word that it may still read.
// A load picks any store from there on. A release store carries its thread's view, a relaxed one
// the view of the thread's last release fence; an acquire load takes the carried view over, a
// relaxed one keeps it for the next acquire fence. Full fences also exchange views through one
// that they share. A store may slip in before newer ones that its thread has not seen. Loads do
// not see stores that are not made yet: load buffering is not in this model, nor in RC11.
// Payload words are not atomic. Views carry, too, whether the newest write and each thread's
// newest read of such a word happened before: an access that lacks one is a data race.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "access.hpp"

namespace latenz::explorer {

enum class Model : std::uint8_t { interleaving, weak };

inline constexpr int most_threads = 5;
inline constexpr int most_locations = 24;
inline constexpr int most_variables = 8;
inline constexpr int knowledge_words = 4;

struct View {
  std::array<std::uint8_t, most_locations> at{};
  std::array<std::uint64_t, knowledge_words> knows{};

  void join(const View& other);
};

struct Message {  // one store of an atomic word
  std::uint64_t value = 0;
  View view;
};

struct ThreadViews {
  View current, acquirable, released;
};

struct State {
  std::array<std::uint32_t, 8> local{};    // what each thread will do next
  std::array<std::uint8_t, 8> restarts{};  // that each thread may still make
  std::array<std::uint32_t, most_variables> variables{};
  std::array<std::uint8_t, most_locations> stores{};  // how many of each atomic word are listed
  std::array<std::uint8_t, most_locations> fenced{};  // the view that full fences share
  std::array<ThreadViews, most_threads> views{};
  std::vector<Message> messages;     // by atomic word, then in modification order
  std::vector<std::uint32_t> words;  // every other word that is ever stored

  [[nodiscard]] std::uint64_t hash() const;
};

// Thrown when an access shows that a word is shared, which was thought private or constant.
struct Relearn : std::exception {};

class Machine {
 public:
  Machine(Model model, int threads) : model_(model), threads_(threads) {}

  // What is in the arena now is what every thread sees first.
  [[nodiscard]] State initial();

  // Which word is stored and by whom is learned on the way; true if that was new.
  void learn(int thread, const Access& wanted);

  // Touches nothing that another thread can see or change: needs no step of its own.
  [[nodiscard]] bool is_local(const Access& wanted) const;

  // Changes what nobody but this thread reads.
  [[nodiscard]] bool is_own_store(const Access& wanted) const {
    return (wanted.kind == Kind::store || wanted.kind == Kind::write) &&
           word(wanted).role == Role::own;
  }

  // Not so: what cannot come out otherwise.
  [[nodiscard]] bool is_worth_telling(const Access& wanted) const {
    const bool of_word = wanted.kind == Kind::load || wanted.kind == Kind::read ||
                         wanted.kind == Kind::store || wanted.kind == Kind::write;
    return !of_word || word(wanted).role > Role::own;
  }

  // In how many ways can this access come out? 0: not yet.
  [[nodiscard]] std::uint32_t outcomes(const State& state, int thread, const Access& wanted) const;

  // One of them happens. The value read; nothing if it is a data race.
  std::optional<std::uint32_t> happen(State& state, int thread, const Access& wanted,
                                      std::uint32_t outcome);

  // Forgets stores that nobody can read any more, and what threads knew that have ended.
  void tidy(State& state, const std::array<bool, most_threads>& ended) const;

 private:
  enum class Role : std::uint8_t { constant, own, atomic, payload };
  struct Word {
    std::uint8_t loaded_by = 0, stored_by = 0;
    bool as_atomic = false, as_payload = false;
    Role role = Role::constant;
    std::uint8_t index = 0;
    std::uint32_t first_value = 0;
  };

  [[nodiscard]] static Role role_of(const Word& word);
  [[nodiscard]] const Word& word(const Access& wanted) const { return learned_[wanted.word]; }
  [[nodiscard]] static std::size_t begin_of(const State& state, int location);
  std::uint32_t load(State& state, int thread, const Access& wanted, std::uint32_t outcome) const;
  void store(State& state, int thread, const Access& wanted, std::uint32_t outcome) const;
  static void full_fence(State& state, int thread);
  bool read_payload(State& state, int thread, int index) const;
  bool write_payload(State& state, int thread, int index) const;
  [[nodiscard]] int knowledge(int index, int of) const { return (index * (threads_ + 1)) + of; }

  Model model_;
  int threads_;
  std::array<Word, Arena::words> learned_{};
  std::array<std::uint8_t, most_locations> users_{};
};

}  // namespace latenz::explorer
