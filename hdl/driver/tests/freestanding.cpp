// SPDX-License-Identifier: Apache-2.0
// Compiled for every target with -ffreestanding, no exceptions, no RTTI: all of the drivers.
#include "latenz/ip/bench.hpp"
#include "latenz/ip/latencies.hpp"
#include "latenz/ip/random_data_generator.hpp"
#include "latenz/ip/stream_ring.hpp"

template class latenz::ip::Latencies<latenz::ip::MemoryMapped>;
template class latenz::ip::RandomDataGenerator<latenz::ip::MemoryMapped>;
template class latenz::ip::StreamRing<latenz::ip::MemoryMapped, latenz::ip::MemoryMapped>;
template class latenz::ip::Bench<latenz::ip::MemoryMapped>;
