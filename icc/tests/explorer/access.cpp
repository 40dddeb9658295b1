#include "access.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace latenz::explorer {

namespace {

[[noreturn]] void stop(const char* why) {
  (void)std::fprintf(stderr, "explorer: %s\n", why);
  std::abort();
}

std::uint32_t perform_at_once(const Access& wanted) {
  std::byte* const word = Arena::memory() + (std::size_t{wanted.word} * 4);
  std::uint32_t value = wanted.value;
  switch (wanted.kind) {
    case Kind::load:
    case Kind::read:
      std::memcpy(&value, word, 4);
      break;
    case Kind::store:
    case Kind::write:
      std::memcpy(word, &value, 4);
      break;
    default:
      break;
  }
  return value;
}

}  // namespace

std::byte* Arena::memory() {
  static std::byte* const mapped = [] {
    void* const got =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) stop("no memory for the arena");
    return static_cast<std::byte*>(got);
  }();
  return mapped;
}

std::uint16_t Arena::number(const void* address) {
  const std::ptrdiff_t at = static_cast<const std::byte*>(address) - memory();
  if (std::cmp_less(at, 0) || std::cmp_greater_equal(at, bytes) || at % 4 != 0)
    stop("an access outside the arena, or not to a whole word");
  return static_cast<std::uint16_t>(at / 4);
}

void Arena::close() { mprotect(memory(), bytes, PROT_NONE); }
void Arena::open() { mprotect(memory(), bytes, PROT_READ | PROT_WRITE); }

std::uint32_t perform(const Access& wanted) {
  if (current_run == nullptr) return perform_at_once(wanted);
  if (current_run->answered < current_run->log->size())
    return (*current_run->log)[current_run->answered++];
  current_run->pending = wanted;
  // Nothing that is skipped here owns anything: the code under test is freestanding.
  std::longjmp(current_run->escape, 1);  // NOLINT: leaves noexcept functions, as no exception can
}

std::uint32_t access(const Access& wanted) {
  if (current_run != nullptr) ++current_run->accesses;
  if (current_run != nullptr && current_run->mutant != nullptr)
    return current_run->mutant->access(wanted);
  return perform(wanted);
}

void fail(const char* what) {
  if (current_run == nullptr) stop(what);
  current_run->failure = what;
  std::longjmp(current_run->escape, 1);  // NOLINT: as above
}

}  // namespace latenz::explorer
