#include "machine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace latenz::explorer {

namespace {

constexpr std::array<std::uint64_t, 2> primes = {0x9e3779b97f4a7c15, 0xff51afd7ed558ccd};

std::uint64_t mixed(std::uint64_t hash, const void* data, std::size_t n) {
  static_assert(sizeof(Message) % 8 == 0 && sizeof(ThreadViews) % 8 == 0);
  const auto* bytes = static_cast<const std::byte*>(data);
  for (std::size_t at = 0; at < n; at += 8) {
    std::uint64_t piece = 0;
    std::memcpy(&piece, bytes + at, std::min<std::size_t>(8, n - at));
    hash = (hash ^ piece) * primes[0];
    hash ^= hash >> 29;
  }
  return (hash + n) * primes[1];
}

bool has(const View& view, int bit) { return ((view.knows[bit / 64] >> (bit % 64)) & 1) != 0; }
void set(View& view, int bit, bool value) {
  const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
  view.knows[bit / 64] = value ? view.knows[bit / 64] | mask : view.knows[bit / 64] & ~mask;
}

// Every view there is: of threads and of messages.
template <class Change>
void for_each_view(State& state, Change change) {
  for (ThreadViews& views : state.views) {
    change(views.current);
    change(views.acquirable);
    change(views.released);
  }
  for (Message& message : state.messages) change(message.view);
}

[[noreturn]] void too_large(const char* what) {
  (void)std::fprintf(stderr, "explorer: this scenario has too many %s\n", what);
  std::abort();
}

std::uint8_t less(std::uint8_t value, std::uint8_t by) {
  return static_cast<std::uint8_t>(value > by ? value - by : 0);
}

}  // namespace

void View::join(const View& other) {
  for (int i = 0; i < most_locations; ++i) at[i] = std::max(at[i], other.at[i]);
  for (int i = 0; i < knowledge_words; ++i) knows[i] |= other.knows[i];
}

std::uint64_t State::hash() const {
  std::uint64_t hash = mixed(1, &local, offsetof(State, messages));
  hash = mixed(hash, messages.data(), messages.size() * sizeof(Message));
  return mixed(hash, words.data(), words.size() * sizeof(std::uint32_t));
}

Machine::Role Machine::role_of(const Word& word) {
  if (word.stored_by == 0) return Role::constant;
  const unsigned users = word.loaded_by | word.stored_by;
  if ((users & (users - 1)) == 0) return Role::own;
  if (word.as_atomic && word.as_payload) {
    (void)std::fprintf(stderr,
                       "explorer: a shared word is used both as payload and as an atomic word\n");
    std::abort();
  }
  return word.as_atomic ? Role::atomic : Role::payload;
}

State Machine::initial() {
  State state;
  int locations = 0;
  int payload = 0;
  const auto other = [&](Word& word) {
    word.index = static_cast<std::uint8_t>(state.words.size());
    state.words.push_back(word.first_value);
    if (state.words.size() > 250) too_large("words");
  };
  for (std::size_t i = 0; i < Arena::words;
       ++i) {  // payload first: the index is that of its knowledge
    if (role_of(learned_[i]) == Role::payload) {
      other(learned_[i]);
      ++payload;
    }
  }
  if (knowledge(payload, 0) > 64 * knowledge_words) too_large("payload words");
  View fresh;
  for (int bit = 0; bit < knowledge(payload, 0); ++bit) set(fresh, bit, true);
  for (std::size_t i = 0; i < Arena::words; ++i) {
    Word& word = learned_[i];
    word.role = role_of(word);
    std::memcpy(&word.first_value, Arena::memory() + (i * 4), 4);
    if (word.role == Role::payload) {
      state.words[word.index] = word.first_value;
    } else if (word.role == Role::own ||
               (word.role == Role::atomic && model_ == Model::interleaving)) {
      other(word);
    } else if (word.role == Role::atomic) {
      if (locations == most_locations) too_large("atomic words");
      word.index = static_cast<std::uint8_t>(locations);
      users_[locations] = word.loaded_by | word.stored_by;
      state.stores[locations++] = 1;
      state.messages.push_back({word.first_value, fresh});
    }
  }
  if (model_ == Model::weak)
    for (int thread = 0; thread < threads_; ++thread) state.views[thread] = {fresh, fresh, fresh};
  return state;
}

void Machine::learn(int thread, const Access& wanted) {
  const bool loads = wanted.kind == Kind::load || wanted.kind == Kind::read;
  if (!loads && wanted.kind != Kind::store && wanted.kind != Kind::write) return;
  Word& word = learned_[wanted.word];
  // What is in memory already needs no store: a restarted side formats what is formatted.
  if (!loads && word.stored_by == 0 && wanted.value == word.first_value) return;
  const Word before = word;
  (loads ? word.loaded_by : word.stored_by) |= static_cast<std::uint8_t>(1 << thread);
  const bool payload = wanted.kind == Kind::read || wanted.kind == Kind::write;
  (payload ? word.as_payload : word.as_atomic) = true;
  if (role_of(word) == Role::constant) return;
  if (role_of(word) != word.role || before.loaded_by != word.loaded_by ||
      before.stored_by != word.stored_by)
    throw Relearn{};
}

bool Machine::is_local(const Access& wanted) const {
  switch (wanted.kind) {
    case Kind::load:
    case Kind::store:
    case Kind::read:
    case Kind::write:
      return word(wanted).role == Role::constant || word(wanted).role == Role::own ||
             (word(wanted).role == Role::payload && model_ == Model::weak);
    case Kind::full_fence:
      return model_ == Model::interleaving;
    case Kind::acquire_fence:
    case Kind::release_fence:
    case Kind::note:
      return true;
    default:
      return false;
  }
}

std::uint32_t Machine::outcomes(const State& state, int thread, const Access& wanted) const {
  if (wanted.kind == Kind::choice) return wanted.value;
  if (wanted.kind == Kind::await) return state.variables[wanted.word] == 0 ? 1 : 0;
  const bool atomic = wanted.kind == Kind::load || wanted.kind == Kind::store;
  if (!atomic || model_ == Model::interleaving || word(wanted).role != Role::atomic) return 1;
  const int location = word(wanted).index;
  return state.stores[location] - state.views[thread].current.at[location];
}

std::optional<std::uint32_t> Machine::happen(State& state, int thread, const Access& wanted,
                                             std::uint32_t outcome) {
  const bool weak = model_ == Model::weak;
  ThreadViews& views = state.views[thread];
  switch (wanted.kind) {
    case Kind::load:
    case Kind::read:
      if (word(wanted).role == Role::constant) return word(wanted).first_value;
      if (weak && word(wanted).role == Role::atomic) return load(state, thread, wanted, outcome);
      if (weak && word(wanted).role == Role::payload &&
          !read_payload(state, thread, word(wanted).index))
        return std::nullopt;
      return state.words[word(wanted).index];
    case Kind::store:
    case Kind::write:
      if (word(wanted).role == Role::constant) return 0;
      if (weak && word(wanted).role == Role::atomic) {
        store(state, thread, wanted, outcome);
        return 0;
      }
      if (weak && word(wanted).role == Role::payload &&
          !write_payload(state, thread, word(wanted).index))
        return std::nullopt;
      state.words[word(wanted).index] = wanted.value;
      return 0;
    case Kind::full_fence:
      if (weak) full_fence(state, thread);
      return 0;
    case Kind::acquire_fence:
      if (weak) views.current = views.acquirable;
      return 0;
    case Kind::release_fence:
      if (weak) views.released = views.current;
      return 0;
    case Kind::choice:
      return outcome;
    case Kind::note:
      state.variables[wanted.word] = wanted.value;
      return 0;
    case Kind::recall:
    case Kind::await:
      return state.variables[wanted.word];
  }
  return std::nullopt;
}

std::size_t Machine::begin_of(const State& state, int location) {
  std::size_t begin = 0;
  for (int i = 0; i < location; ++i) begin += state.stores[i];
  return begin;
}

std::uint32_t Machine::load(State& state, int thread, const Access& wanted,
                            std::uint32_t outcome) const {
  const int location = word(wanted).index;
  ThreadViews& views = state.views[thread];
  const auto read = static_cast<std::uint8_t>(views.current.at[location] + outcome);
  const Message& message = state.messages[begin_of(state, location) + read];
  views.current.at[location] = read;
  if (wanted.ordered) views.current.join(message.view);
  views.acquirable.at[location] = std::max(views.acquirable.at[location], read);
  views.acquirable.join(message.view);
  return static_cast<std::uint32_t>(message.value);
}

void Machine::store(State& state, int thread, const Access& wanted, std::uint32_t outcome) const {
  const int location = word(wanted).index;
  const auto place =
      static_cast<std::uint8_t>(state.views[thread].current.at[location] + outcome + 1);
  for_each_view(state, [&](View& view) {
    if (view.at[location] >= place) ++view.at[location];
  });
  if (state.fenced[location] >= place) ++state.fenced[location];
  ThreadViews& views = state.views[thread];
  views.current.at[location] = place;
  views.acquirable.at[location] = std::max(views.acquirable.at[location], place);
  Message message{wanted.value, wanted.ordered ? views.current : views.released};
  message.view.at[location] = place;
  state.messages.insert(
      state.messages.begin() + static_cast<std::ptrdiff_t>(begin_of(state, location) + place),
      message);
  if (++state.stores[location] == 255) too_large("stores of one word");
}

// Fences are ordered among each other, but that alone makes no payload access happen before
// another: what the shared view carries is places in modification orders, not knowledge.
void Machine::full_fence(State& state, int thread) {
  ThreadViews& views = state.views[thread];
  views.current = views.acquirable;
  for (int i = 0; i < most_locations; ++i) {
    state.fenced[i] = std::max(state.fenced[i], views.current.at[i]);
    views.current.at[i] = state.fenced[i];
  }
  views.acquirable = views.released = views.current;
}

bool Machine::read_payload(State& state, int thread, int index) const {
  ThreadViews& views = state.views[thread];
  if (!has(views.current, knowledge(index, 0))) return false;
  const int mine = knowledge(index, 1 + thread);
  for_each_view(state, [mine](View& view) { set(view, mine, false); });
  set(views.current, mine, true);
  set(views.acquirable, mine, true);
  return true;
}

bool Machine::write_payload(State& state, int thread, int index) const {
  ThreadViews& views = state.views[thread];
  for (int of = 0; of <= threads_; ++of)
    if (!has(views.current, knowledge(index, of))) return false;
  for_each_view(state, [&](View& view) {
    set(view, knowledge(index, 0), false);
    // reads before this write happened before whatever will happen after it
    for (int of = 1; of <= threads_; ++of) set(view, knowledge(index, of), true);
  });
  set(views.current, knowledge(index, 0), true);
  set(views.acquirable, knowledge(index, 0), true);
  return true;
}

void Machine::tidy(State& state, const std::array<bool, most_threads>& ended) const {
  if (model_ == Model::interleaving) return;
  for (int thread = 0; thread < threads_; ++thread)
    if (ended[thread]) state.views[thread] = {};
  std::size_t begin = 0;
  for (int location = 0; location < most_locations && state.stores[location] > 0; ++location) {
    auto oldest = static_cast<std::uint8_t>(state.stores[location] - 1);
    for (int thread = 0; thread < threads_; ++thread) {
      if (!ended[thread] && ((users_[location] >> thread) & 1) != 0)
        oldest = std::min(oldest, state.views[thread].current.at[location]);
    }
    if (oldest > 0) {
      const auto from = state.messages.begin() + static_cast<std::ptrdiff_t>(begin);
      state.messages.erase(from, from + oldest);
      state.stores[location] = static_cast<std::uint8_t>(state.stores[location] - oldest);
      state.fenced[location] = less(state.fenced[location], oldest);
      for_each_view(state,
                    [&](View& view) { view.at[location] = less(view.at[location], oldest); });
    }
    begin += state.stores[location];
  }
}

}  // namespace latenz::explorer
