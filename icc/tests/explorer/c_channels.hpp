// The channels of latenz/icc.h behind the names of those for C++, so that the same scenarios and
// mutants run over them: what is explored is the header for C as it is shipped, its accesses made
// by the explorer.
#pragma once

#include "access.hpp"
#if defined(LATENZ_EXPLORE_SLEEP) || defined(LATENZ_EXPLORE_OWN_BELLS)
#include "sleep_bells.hpp"
#endif

namespace latenz::explorer {

// How payloads are accessed, as the scenario's policy says.
inline bool c_payload_is_relaxed = false;

inline void c_write(void* shared, const void* own, std::size_t bytes) {
  c_payload_is_relaxed ? RelaxedPayload::write(shared, own, bytes)
                       : PlainPayload::write(shared, own, bytes);
}
inline void c_read(void* own, const void* shared, std::size_t bytes) {
  c_payload_is_relaxed ? RelaxedPayload::read(own, shared, bytes)
                       : PlainPayload::read(own, shared, bytes);
}

#ifdef LATENZ_EXPLORE_OWN_BELLS
// That of the side that runs; of none while the test sets up.
inline ExploredOwnBell own_bell() { return {OwnBells{}, static_cast<std::uint32_t>(thread())}; }
#endif

}  // namespace latenz::explorer

#define LATENZ_ICC_LOAD_RELAXED(word) latenz::explorer::ExploredOrder::load_relaxed(*(word))
#define LATENZ_ICC_LOAD_ACQUIRE(word) latenz::explorer::ExploredOrder::load_acquire(*(word))
#define LATENZ_ICC_STORE_RELAXED(word, value) \
  latenz::explorer::ExploredOrder::store_relaxed(*(word), (value))
#define LATENZ_ICC_STORE_RELEASE(word, value) \
  latenz::explorer::ExploredOrder::store_release(*(word), (value))
#define LATENZ_ICC_ACQUIRE_FENCE() latenz::explorer::ExploredOrder::acquire_fence()
#define LATENZ_ICC_RELEASE_FENCE() latenz::explorer::ExploredOrder::release_fence()
#define LATENZ_ICC_FULL_FENCE() latenz::explorer::ExploredOrder::full_fence()
#define LATENZ_ICC_WRITE(shared, own, bytes) latenz::explorer::c_write((shared), (own), (bytes))
#define LATENZ_ICC_READ(own, shared, bytes) latenz::explorer::c_read((own), (shared), (bytes))
#ifdef LATENZ_EXPLORE_SLEEP
#define LATENZ_ICC_SLEEP(word, value, longest_ns) \
  latenz::explorer::ExploredBell::wait(*(word), (value), (longest_ns))
#define LATENZ_ICC_WAKE(word) latenz::explorer::ExploredBell::wake(*(word))
#endif
#ifdef LATENZ_EXPLORE_OWN_BELLS
#define LATENZ_ICC_BELLS const latenz::explorer::OwnBells*
#define LATENZ_ICC_BELL_COUNT(bells) ((bells)->sides)
#define LATENZ_ICC_BELL_FD(bells, side) static_cast<int>(side)
#define LATENZ_ICC_SILENCE_BELL(bells, side) latenz::explorer::own_bell().silence()
#define LATENZ_ICC_RING_BELL(bells, side) latenz::explorer::own_bell().ring(side)
#define LATENZ_ICC_AWAIT_BELL(bells, side, longest_ns) \
  ((void)(longest_ns), latenz::explorer::ExploredOwnBell::poll(static_cast<int>(side)))
#endif
#define LATENZ_ICC_PAUSE() ((void)0)
#define LATENZ_ICC_LOOKS_PER_CHECK 1u
#define LATENZ_ICC_CHECKS_PER_BEAT 1u

#include "../c_endpoints.hpp"

namespace latenz::icc::c::detail {

template <class P>
void choose_payload() {
  latenz::explorer::c_payload_is_relaxed =
      std::is_same_v<typename P::Memory, latenz::explorer::RelaxedPayload>;
}

}  // namespace latenz::icc::c::detail
