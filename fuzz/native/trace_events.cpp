// SPDX-License-Identifier: Apache-2.0
// The ring buffer's pages and the events in them, behind all that a trace.dat puts around them.
//
// An input is the text of an event's format, a zero, and pages of 256 bytes of which the records
// are all taken for that event.
#include <algorithm>
#include <string_view>
#include <vector>

#include "json.hpp"
#include "target.hpp"
#include "trace_format.hpp"
#include "trace_ring.hpp"
#include "trace_source.hpp"

namespace latenz::fuzz {
namespace {

constexpr std::uint32_t page_bytes = 256;

void require_reason(const trace::Damage& damage) {
  require(!std::string_view(damage.what()).empty(), "damage tells its reason");
}

void read_records(trace::RingReader& ring, const trace::Format& format, bool big_endian) {
  trace::BinaryFields fields(big_endian);
  while (const auto record = ring.next()) {
    static_cast<void>(ring.take_lost());
    fields.set(format, record->bytes);
    probe::Json json;
    json.open_object();
    fields.write(json);
    json.close_object();
    for (const trace::Field& field : format.fields) {
      static_cast<void>(fields.number(field.name));
      static_cast<void>(fields.text(field.name));
    }
  }
}

/// Damage ends a page, not the trace, as in `TraceDat`.
void read_pages(const trace::Source& pages, const trace::Format& format, bool big_endian) {
  trace::RingReader ring(trace::plain_pages(pages, {.end = pages.size(), .page_size = page_bytes}),
                         {.big_endian = big_endian});
  for (;;) {
    try {
      read_records(ring, format, big_endian);
      return;
    } catch (const trace::Damage& damage) {
      require_reason(damage);
    }
  }
}

}  // namespace

void read_input(Input input) {
  const auto zero = std::ranges::find(input, 0);
  const std::string_view text(reinterpret_cast<const char*>(input.data()),
                              static_cast<std::size_t>(zero - input.begin()));
  try {
    static_cast<void>(trace::parse_page_layout(text, false, 0));
  } catch (const trace::Damage& damage) {
    require_reason(damage);
  }
  const auto format = trace::parse_format(text);
  if (!format || zero == input.end()) return;
  const trace::MemorySource pages({zero + 1, input.end()}, 0);
  read_pages(pages, *format, false);
  read_pages(pages, *format, true);
}

}  // namespace latenz::fuzz
