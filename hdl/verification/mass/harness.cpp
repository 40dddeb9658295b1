// SPDX-License-Identifier: Apache-2.0
// Drives the C++ model that yosys makes of the Latencies IP, as a board would: edges on irq and
// ack, software on the two AXI4-Lite ports. It knows nothing about latencies: it writes down what
// it reads, and the behavioural model judges. About registers it knows what a table tells it.
//
//   harness edges INPUT OUTPUT [ADDRESS ...]   the addresses: registers to read after each series
//   harness axi TABLE COUNT SEED               random transactions, every channel paused 60 %
//
// INPUT is 32-bit words: cycles << 3 | action; the action follows these cycles. 0 to 3: set the
// levels, irq is bit 0, ack bit 1; 4: end the series and read everything; 5: begin one, the next
// word is alarm_lat. OUTPUT has for each series: the registers 0x08 to 0x18, the further ones, how
// many samples follow, the samples, how many stream beats follow, each as four words.
// TABLE has lines `register ADDRESS ACCESS MASK RESET|-`, `samples BYTES OF_THEM_USED` and
// `present FIRST_BYTE BYTES`.
//
// Order in a cycle: inputs change while the clock is low and the combinational outputs follow; then
// comes the rising edge. What the signals are just before that edge is what the edge sees.

#include "design.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Words = std::vector<std::uint32_t>;

constexpr std::uint32_t okay = 0;
constexpr std::uint32_t slave_error = 2;
constexpr int settle_cycles = 16;
constexpr int hang_cycles = 5000;
constexpr int paused_percent = 60;

[[noreturn]] void fail(const std::string& what) {
  std::cerr << what << '\n';
  std::exit(1);
}

// Software: one access after the other, as fast as the IP allows.
class Software {
 public:
  Software()
      : irq(pins_.irq_in), ack(pins_.ack_in), samples(pins_.samples), registers(pins_.registers) {
    *pins_.m_axis_tready = 1;
    reset();
  }

  void reset() {
    *pins_.aresetn = 0;
    cycles(4);
    *pins_.aresetn = 1;
    cycles(4);
  }

  void settle() {
    *pins_.aclk = 0;
    design_.step();
  }

  void rise() {
    if (*pins_.m_axis_tvalid != 0) {
      const std::uint32_t* beat = pins_.m_axis_tdata;
      beats.insert(beats.end(), beat, beat + 4);
    }
    *pins_.aclk = 1;
    design_.step();
  }

  void cycle() {
    settle();
    rise();
  }

  void cycles(int count) {
    for (; count > 0; --count) cycle();
  }

  void write(const Port& port, std::uint32_t address, std::uint32_t data) {
    *port.awaddr = address;
    *port.wdata = data;
    *port.wstrb = 15;
    *port.awvalid = *port.wvalid = *port.bready = 1;
    take(port.awready);
    *port.awvalid = *port.wvalid = 0;
    take(port.bvalid);
    *port.bready = 0;
  }

  std::uint32_t read(const Port& port, std::uint32_t address) {
    *port.araddr = address;
    *port.arvalid = *port.rready = 1;
    take(port.arready);
    *port.arvalid = 0;
    settle();
    for (int waited = 0; *port.rvalid == 0; settle()) {
      if (++waited > hang_cycles) fail("no answer to a read");
      rise();
    }
    if (*port.rresp != okay) fail("a read was refused at " + std::to_string(address));
    const std::uint32_t data = *port.rdata;
    rise();
    *port.rready = 0;
    return data;
  }

 private:
  Design design_;
  Pins pins_ = design_.pins();

 public:
  std::uint32_t *irq, *ack;
  Port samples, registers;
  Words beats;

 private:
  // Wait for a handshake signal, up to and with the edge that sees it.
  void take(const std::uint32_t* signal) {
    for (int waited = 0; waited < hang_cycles; ++waited) {
      settle();
      const bool taken = *signal != 0;
      rise();
      if (taken) return;
    }
    fail("no handshake");
  }
};

Words words_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) fail(path + " cannot be read");
  Words words(static_cast<std::size_t>(file.tellg()) / sizeof(std::uint32_t));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(words.data()),
            static_cast<std::streamsize>(words.size() * sizeof(std::uint32_t)));
  return words;
}

void end_series(Software& software, const Words& further, std::uint32_t depth, Words& result) {
  software.cycles(settle_cycles);
  software.write(software.registers, 0x00, 0);
  for (std::uint32_t address = 0x08; address <= 0x18; address += 4)
    result.push_back(software.read(software.registers, address));
  for (const std::uint32_t address : further)
    result.push_back(software.read(software.registers, address));
  const std::uint32_t num = software.read(software.registers, 0x14);
  const std::uint32_t stored = num < depth ? num : depth;
  result.push_back(stored);
  for (std::uint32_t index = 0; index < stored; ++index)
    result.push_back(software.read(software.samples, 4 * index));
  result.push_back(static_cast<std::uint32_t>(software.beats.size() / 4));
  result.insert(result.end(), software.beats.begin(), software.beats.end());
  software.beats.clear();
}

void begin_series(Software& software, std::uint32_t alarm_limit, int until_ready) {
  software.write(software.registers, 0x18, 1);
  software.write(software.registers, 0x04, alarm_limit);
  software.write(software.registers, 0x00, 1);
  software.cycles(until_ready);
}

void edges(const std::string& input, const std::string& output, const Words& further) {
  Software software;
  const Words actions = words_of(input);
  Words result;
  for (std::size_t at = 0; at < actions.size(); ++at) {
    software.cycles(static_cast<int>(actions[at] >> 3));
    const std::uint32_t action = actions[at] & 7;
    if (action == 4) {
      end_series(software, further, depth_of_memory, result);
    } else if (action == 5) {
      begin_series(software, actions.at(++at), cycles_until_ready);
    } else {
      *software.irq = action & 1;
      *software.ack = action >> 1;
    }
  }
  std::ofstream(output, std::ios::binary)
      .write(reinterpret_cast<const char*>(result.data()),
             static_cast<std::streamsize>(result.size() * sizeof(std::uint32_t)));
}

// What the table tells about registers and memory.
struct Register {
  std::string access;
  std::uint32_t mask = 0;
  std::optional<std::uint32_t> reset;
};

struct Table {
  explicit Table(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string kind, reset;
      std::uint32_t first = 0;
      words >> kind >> first;
      if (kind == "register") {
        Register here;
        words >> here.access >> here.mask >> reset;
        if (reset != "-") here.reset = static_cast<std::uint32_t>(std::stoul(reset));
        registers[first] = here;
      } else if (kind == "present") {
        words >> present[first];
      } else {
        window = first;
      }
    }
    if (registers.empty() || window == 0) fail(path + " is not a table");
  }

  // Whether there is memory at a byte address.
  [[nodiscard]] bool memory(std::uint32_t address) const {
    const auto after = present.upper_bound(address);
    if (after == present.begin()) return false;
    const auto& [first, bytes] = *std::prev(after);
    return address - first < bytes;
  }

  std::map<std::uint32_t, Register> registers;
  std::map<std::uint32_t, std::uint32_t> present;
  std::uint32_t window = 0;
};

using Random = std::mt19937;

std::uint32_t below(Random& random, std::uint32_t end) { return random() % end; }

bool paused(Random& random) { return below(random, 100) < paused_percent; }

std::uint32_t written(std::uint32_t old, std::uint32_t data, std::uint32_t strobes) {
  std::uint32_t mask = 0;
  for (unsigned byte = 0; byte < 4; ++byte)
    if ((strobes >> byte & 1) != 0) mask |= 0xFFU << 8 * byte;
  return (old & ~mask) | (data & mask);
}

// What a slave must answer; the masters below ask it at the cycle of each handshake.
class Expected {
 public:
  struct Answer {
    std::uint32_t response = slave_error;
    std::optional<std::uint32_t> data = 0;
  };

  virtual ~Expected() = default;
  virtual std::uint32_t place(Random& random) const = 0;
  virtual std::uint32_t harmless(std::uint32_t address, std::uint32_t data) const = 0;
  virtual std::uint32_t write(std::uint32_t address, std::uint32_t data, std::uint32_t strobes) = 0;
  virtual Answer read(std::uint32_t address) const = 0;
};

class Registers : public Expected {
 public:
  explicit Registers(const Table& table) : table_(table) {
    for (const auto& [address, here] : table.registers) values_[address] = here.reset;
  }

  std::uint32_t place(Random& random) const override {
    if (below(random, 4) == 0) return below(random, 0x400) * 4;
    auto here = table_.registers.begin();
    std::advance(here, below(random, static_cast<std::uint32_t>(table_.registers.size())));
    return here->first;
  }

  // Nothing starts the self test, which would measure.
  std::uint32_t harmless(std::uint32_t address, std::uint32_t data) const override {
    return (address & ~3U) == 0x34 ? data & 1 : data;
  }

  std::uint32_t write(std::uint32_t address, std::uint32_t data, std::uint32_t strobes) override {
    const auto here = table_.registers.find(address & ~3U);
    if (here == table_.registers.end() || here->second.access == "ro") return slave_error;
    auto& value = values_[address & ~3U];
    if (here->second.access == "rw") {
      // What a register without a known reset value keeps of it is not known either.
      if (value || strobes == 15)
        value = written(value.value_or(0), data, strobes) & here->second.mask;
    }
    return okay;
  }

  Answer read(std::uint32_t address) const override {
    const auto here = values_.find(address & ~3U);
    if (here == values_.end()) return {};
    return {okay, here->second};
  }

 private:
  const Table& table_;
  std::map<std::uint32_t, std::optional<std::uint32_t>> values_;
};

class Samples : public Expected {
 public:
  Samples(const Table& table, Words samples) : table_(table), samples_(std::move(samples)) {}

  std::uint32_t place(Random& random) const override {
    return below(random, table_.window / 4) * 4;
  }

  std::uint32_t harmless(std::uint32_t, std::uint32_t data) const override { return data; }

  std::uint32_t write(std::uint32_t, std::uint32_t, std::uint32_t) override { return slave_error; }

  Answer read(std::uint32_t address) const override {
    if (address / 4 < samples_.size()) return {okay, samples_[address / 4]};
    if (table_.memory(address)) return {okay, std::nullopt};
    return {};
  }

 private:
  const Table& table_;
  Words samples_;
};

// One AXI master that pauses every channel by chance, and judges the slave's side.
class Master {
 public:
  Master(Port port, Expected& expected, unsigned seed)
      : port_(port), expected_(expected), random_(seed) {}

  // Before the clock's edge: what to offer in this cycle. What is offered stays until taken.
  void offer() {
    if (!awriting_ && !wwriting_) {
      awriting_ = wwriting_ = true;
      address_ = expected_.place(random_) + below(random_, 4);
      data_ = expected_.harmless(address_, random_());
      strobes_ = below(random_, 2) == 0 ? 15 : below(random_, 16);
    }
    if (!areading_) {
      areading_ = true;
      read_address_ = expected_.place(random_) + below(random_, 4);
    }
    if (*port_.awvalid == 0 && awriting_ && !paused(random_)) {
      *port_.awvalid = 1;
      *port_.awaddr = address_;
    }
    if (*port_.wvalid == 0 && wwriting_ && !paused(random_)) {
      *port_.wvalid = 1;
      *port_.wdata = data_;
      *port_.wstrb = strobes_;
    }
    if (*port_.arvalid == 0 && areading_ && !paused(random_)) {
      *port_.arvalid = 1;
      *port_.araddr = read_address_;
    }
    *port_.bready = paused(random_) ? 0 : 1;
    *port_.rready = paused(random_) ? 0 : 1;
  }

  // What the coming edge will see.
  void see() {
    aw_taken_ = *port_.awvalid != 0 && *port_.awready != 0;
    w_taken_ = *port_.wvalid != 0 && *port_.wready != 0;
    see_answers();
    // A read in the cycle of a write may give the old or the new value.
    std::optional<Expected::Answer> before;
    const bool ar_taken = *port_.arvalid != 0 && *port_.arready != 0;
    if (ar_taken) before = expected_.read(read_address_);
    if ((aw_taken_ && wait_b_) || (ar_taken && wait_r_)) fail("a second request before an answer");
    if (aw_taken_ && w_taken_) {
      written_at_ = address_;
      wanted_b_ = expected_.write(address_, data_, strobes_);
      wait_b_ = true;
    } else if (aw_taken_ || w_taken_) {
      fail("an address without its word was taken, or a word without its address");
    }
    if (ar_taken) {
      read_at_ = read_address_;
      wanted_r_ = *before;
      other_r_ = expected_.read(read_address_);
      wait_r_ = true;
      areading_ = false;
    }
    ar_taken_ = ar_taken;
    if (++quiet_ > hang_cycles) fail("hang");
  }

  // After the edge: what was taken is offered no more.
  void withdraw() {
    if (aw_taken_) *port_.awvalid = *port_.wvalid = 0, awriting_ = wwriting_ = false;
    if (ar_taken_) *port_.arvalid = 0;
  }

  [[nodiscard]] std::uint64_t done() const { return done_; }

 private:
  void see_answers() {
    if (*port_.bvalid != 0) {
      if (!wait_b_) fail("an answer to no write");
      if (*port_.bresp != wanted_b_)
        fail("write at " + std::to_string(written_at_) + " answered " +
             std::to_string(*port_.bresp));
      if (*port_.bready != 0) wait_b_ = false, ++done_, quiet_ = 0;
    } else if (b_offered_) {
      fail("bvalid fell");
    }
    b_offered_ = *port_.bvalid != 0 && *port_.bready == 0;
    if (*port_.rvalid != 0) {
      if (!wait_r_) fail("an answer to no read");
      judge_read();
      if (*port_.rready != 0) wait_r_ = false, ++done_, quiet_ = 0;
    } else if (r_offered_) {
      fail("rvalid fell");
    }
    r_offered_ = *port_.rvalid != 0 && *port_.rready == 0;
    r_data_ = *port_.rdata;
  }

  void judge_read() {
    const auto fits = [&](const std::optional<std::uint32_t>& wanted) {
      return !wanted || *wanted == *port_.rdata;
    };
    const bool refused = *port_.rresp != okay;
    if (*port_.rresp != wanted_r_.response ||
        (!refused && !fits(wanted_r_.data) && !fits(other_r_.data)))
      fail("read at " + std::to_string(read_at_) + " gave " + std::to_string(*port_.rdata) +
           " response " + std::to_string(*port_.rresp) + ", expected " +
           std::to_string(wanted_r_.data.value_or(0)));
    if (r_offered_ && r_data_ != *port_.rdata) fail("rdata changed before it was taken");
  }

  Port port_;
  Expected& expected_;
  Random random_;
  bool awriting_ = false, wwriting_ = false, areading_ = false;
  bool wait_b_ = false, wait_r_ = false, b_offered_ = false, r_offered_ = false;
  bool aw_taken_ = false, w_taken_ = false, ar_taken_ = false;
  std::uint32_t address_ = 0, data_ = 0, strobes_ = 0, read_address_ = 0;
  std::uint32_t written_at_ = 0, read_at_ = 0, wanted_b_ = 0, r_data_ = 0;
  Expected::Answer wanted_r_, other_r_;
  std::uint64_t done_ = 0;
  int quiet_ = 0;
};

// Some samples, so that a write which must not change them can be seen to change them.
Words some_samples(Software& software) {
  begin_series(software, ~0U, cycles_until_ready);
  for (std::uint32_t index = 0; index < depth_of_memory; ++index) {
    *software.irq = 1;
    software.cycles(static_cast<int>(1 + index * 7 % 23));
    *software.irq = 0;
    *software.ack = 1;
    software.cycle();
    *software.ack = 0;
    software.cycles(3);
  }
  software.cycles(settle_cycles);
  Words samples;
  for (std::uint32_t index = 0; index < depth_of_memory; ++index)
    samples.push_back(software.read(software.samples, 4 * index));
  // With two halves, not every place is used.
  if (std::ranges::count(samples, 0U) > depth_of_memory / 2) fail("no samples to begin with");
  software.reset();
  return samples;
}

void random_transactions(const std::string& path, std::uint64_t count, unsigned seed) {
  const Table table(path);
  Software software;
  Samples samples(table, some_samples(software));
  Registers registers(table);
  std::array masters{Master(software.samples, samples, seed),
                     Master(software.registers, registers, seed + 1)};
  while (masters[0].done() + masters[1].done() < count) {
    for (Master& master : masters) master.offer();
    software.settle();
    for (Master& master : masters) master.see();
    software.rise();
    for (Master& master : masters) master.withdraw();
  }
  std::cout << masters[0].done() << ' ' << masters[1].done() << '\n';
}

}  // namespace

int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  if (arguments.size() >= 3 && arguments[0] == "edges") {
    Words further;
    for (std::size_t at = 3; at < arguments.size(); ++at)
      further.push_back(static_cast<std::uint32_t>(std::stoul(arguments[at])));
    edges(arguments[1], arguments[2], further);
  } else if (arguments.size() == 4 && arguments[0] == "axi") {
    random_transactions(arguments[1], std::stoull(arguments[2]),
                        static_cast<unsigned>(std::stoul(arguments[3])));
  } else {
    fail("harness edges INPUT OUTPUT [ADDRESS ...] | harness axi TABLE COUNT SEED");
  }
}
