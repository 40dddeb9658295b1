// What explored code does to shared memory, one access at a time, and how it is run so that the
// explorer decides what each access sees.
//
// The code under test is the shipped one: it reaches memory through the Order and Memory policies
// alone, and the policies below end in access(). An operation (say, Writer::update) is run again
// from its start for each further access: accesses already decided are answered from a log, the
// first undecided one ends the run. So no state of the C++ machine has to be saved in mid-function,
// and an operation may be any code that depends on nothing but its object and what it reads.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace latenz::explorer {

enum class Kind : std::uint8_t {
  load,           // of an atomic word; `ordered`: acquire
  store,          // of an atomic word; `ordered`: release
  full_fence,     // sequentially consistent
  acquire_fence,  //
  release_fence,  //
  read,           // of a payload word: not atomic, so that a race is an error
  write,          // of a payload word
  choice,         // any number below `value`: a free choice of the test
  note,           // a test's own variable `word` takes `value`, together with the access before it
  recall,         // reads such a variable, together with the access after it
  await,          // goes on as soon as such a variable is 0
};

struct Access {
  Kind kind;
  bool ordered = false;
  std::uint16_t word = 0;  // number of the 32-bit word in the arena; of the test's variable
  std::uint32_t value = 0;
};

// The shared memory of all explored code. While an operation runs, its pages cannot be touched, so
// an access that goes round the policies ends the test instead of staying unseen.
class Arena {
 public:
  static constexpr std::size_t words = 1024;
  static constexpr std::size_t bytes = words * 4;
  static std::byte* memory();
  static std::uint16_t number(const void* address);
  static void close();
  static void open();
};

// A seeded defect: sees each access before the machine does and may drop, change or reorder it.
class Mutant {
 public:
  Mutant() = default;
  Mutant(const Mutant&) = delete;
  Mutant& operator=(const Mutant&) = delete;
  virtual ~Mutant() = default;
  virtual void begin() {}  // an operation starts (again): forget what was seen
  virtual std::uint32_t access(Access wanted) = 0;
};

// One run of one operation.
struct Run {
  const std::vector<std::uint32_t>* log = nullptr;  // answers so far
  std::size_t answered = 0;
  Mutant* mutant = nullptr;
  int thread = 0;
  std::uint32_t accesses = 0;  // of shared memory
  Access pending{Kind::choice};
  std::string failure;
  std::jmp_buf escape{};
};
inline Run* current_run = nullptr;  // none: accesses go straight to the arena (set-up)

// To the machine, past any mutant.
std::uint32_t perform(const Access& wanted);
std::uint32_t access(const Access& wanted);

// Ends the exploration with a counterexample.
[[noreturn]] void fail(const char* what);

inline std::uint32_t choose(std::uint32_t below) {
  return perform({Kind::choice, false, 0, below});
}
inline void note(std::uint16_t variable, std::uint32_t value) {
  perform({Kind::note, false, variable, value});
}
inline std::uint32_t recall(std::uint16_t variable) {
  return perform({Kind::recall, false, variable});
}

struct ExploredOrder {
  static std::uint32_t load_acquire(std::uint32_t& word) {
    return access({Kind::load, true, Arena::number(&word)});
  }
  static std::uint32_t load_relaxed(std::uint32_t& word) {
    return access({Kind::load, false, Arena::number(&word)});
  }
  static void store_release(std::uint32_t& word, std::uint32_t value) {
    access({Kind::store, true, Arena::number(&word), value});
  }
  static void store_relaxed(std::uint32_t& word, std::uint32_t value) {
    access({Kind::store, false, Arena::number(&word), value});
  }
  static void full_fence() { access({Kind::full_fence}); }
  static void acquire_fence() { access({Kind::acquire_fence}); }
  static void release_fence() { access({Kind::release_fence}); }
};

// Payload word by word, as accesses of `Read` and `Write`: plain ones, whose races are errors, or
// relaxed ones for a channel whose readers may meet the writer and notice it afterwards.
template <Kind Read, Kind Write>
struct ExploredMemory {
  static constexpr bool in_place = true;

  static void write(void* shared, const void* own, std::size_t n) {
    for (std::size_t at = 0; at < n; at += 4) {
      std::uint32_t value = 0;
      std::memcpy(&value, static_cast<const std::byte*>(own) + at, n - at < 4 ? n - at : 4);
      access({Write, false, Arena::number(static_cast<std::byte*>(shared) + at), value});
    }
  }
  static void read(void* own, const void* shared, std::size_t n) {
    for (std::size_t at = 0; at < n; at += 4) {
      const std::uint32_t value =
          access({Read, false, Arena::number(static_cast<const std::byte*>(shared) + at)});
      std::memcpy(static_cast<std::byte*>(own) + at, &value, n - at < 4 ? n - at : 4);
    }
  }
  static void clean(const void* /*address*/, std::size_t /*bytes*/) {}
  static void invalidate(const void* /*address*/, std::size_t /*bytes*/) {}
};
using PlainPayload = ExploredMemory<Kind::read, Kind::write>;
using RelaxedPayload = ExploredMemory<Kind::load, Kind::store>;

}  // namespace latenz::explorer
