// SPDX-License-Identifier: Apache-2.0
// A QEMU plugin: programmable logic on an emulated board. A compiled design
// (hdl/simulation/compile) is put behind the board's bus, its interrupt on a line of the board's
// interrupt controller, and an interrupt of a device of the board at its input.
//
//   -plugin file=latenz-logic.so,design=FILE.so,base=0xa0000000,period=1,controller=PATH,
//           interrupt=89,source=PATH,output=FILE
//
// Paths are those of QEMU's object tree. Each slave has 64 KiB, of which the first 4 KiB are it.
// The period is that of the design's clock, in nanoseconds. What is written, one line each, with
// QEMU's virtual time in nanoseconds and the clock edges that have passed:
//
//   latenz-logic 1 PERIOD
//   request TIME EDGES LEVEL           the board's device has set its interrupt
//   interrupt TIME EDGES LEVEL         the design's interrupt has reached the controller
//   read TIME EDGES BUS ADDRESS DATA RESPONSE     edges: before the access
//   write TIME EDGES BUS ADDRESS DATA RESPONSE
//   fault TEXT
//
// QEMU calls all of this from one thread at a time, under its own lock.
#include <dlfcn.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "fabric.hpp"
#include "qemu_devices.hpp"
#include "qemu_plugin.hpp"

namespace latenz::logic {
namespace {

constexpr unsigned slot_bits = 16;
constexpr std::uint64_t slave_size = 4096;
constexpr std::uint64_t region_size = std::uint64_t{compiled::bus_count} << slot_bits;

struct Wanted {
  std::string design, controller, source, output;
  std::uint64_t base = 0;
  std::uint64_t period = 1;
  std::uint64_t interrupt = 0;
};

/// The logic on its board; QEMU keeps pointers to it until its end.
class Board {
 public:
  Board(Wanted wanted, std::unique_ptr<Fabric> fabric, std::FILE* output)
      : wanted_(std::move(wanted)), fabric_(std::move(fabric)), output_(output) {
    (void)std::fprintf(output_, "latenz-logic 1 %llu\n",
                       static_cast<unsigned long long>(wanted_.period));
    operations_.read_with_attrs = read;
    operations_.write_with_attrs = write;
    operations_.endianness = DEVICE_LITTLE_ENDIAN;
    operations_.valid.min_access_size = operations_.valid.max_access_size = sizeof(std::uint32_t);
    operations_.impl.min_access_size = operations_.impl.max_access_size = sizeof(std::uint32_t);
    made_.board = this;
    made_.notifier.notify = machine_made;
    qemu_add_machine_init_done_notifier(&made_.notifier);
  }

 private:
  /// What QEMU calls when there is a machine; the first member is what it knows.
  struct Made {
    Notifier notifier;
    Board* board;
  };

  static Board& of(void* opaque) { return *static_cast<Board*>(opaque); }
  static std::int64_t now() { return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL); }

  static void machine_made(Notifier* notifier, void* /*data*/) {
    reinterpret_cast<Made*>(notifier)->board->connect();
  }

  void connect() {
    Object* controller = object("controller", wanted_.controller);
    Object* source = object("source", wanted_.source);
    interrupt_ = qdev_get_gpio_in(controller, static_cast<int>(wanted_.interrupt));
    passed_on_ = sysbus_get_connected_irq(source, 0);
    sysbus_connect_irq(source, 0, qemu_allocate_irq(requested, this, 0));
    timer_init_full(timer_.get(), nullptr, QEMU_CLOCK_VIRTUAL, 1, 0, due, this);
    memory_region_init_io(region_.get(), nullptr, &operations_, this, "latenz-logic", region_size);
    memory_region_add_subregion(get_system_memory(), wanted_.base, region_.get());
  }

  [[nodiscard]] static Object* object(const char* what, const std::string& path) {
    Object* found = object_resolve_path(path.c_str(), nullptr);
    if (found != nullptr) return found;
    (void)std::fprintf(stderr, "latenz-logic: this board has no %s %s\n", what, path.c_str());
    std::exit(1);
  }

  static void requested(void* opaque, int /*number*/, int level) {
    Board& board = of(opaque);
    const std::int64_t time = now();
    board.fabric_->request(time, level != 0);
    if (level != board.requested_level_) board.tell("request", time, level);
    board.requested_level_ = level;
    if (board.passed_on_ != nullptr) qemu_set_irq(board.passed_on_, level);
    board.follow(time);
  }

  static void due(void* opaque) {
    const std::int64_t time = now();
    of(opaque).fabric_->advance(time);
    of(opaque).follow(time);
  }

  /// Passes the design's interrupt on, and looks when it will change next.
  void follow(std::int64_t time) {
    if (const bool level = fabric_->interrupt(); level != level_) {
      level_ = level;
      tell("interrupt", time, level ? 1 : 0);
      qemu_set_irq(interrupt_, level ? 1 : 0);
    }
    if (const auto next = fabric_->next_change_ns(); next) {
      timer_mod_ns(timer_.get(), *next);
    } else {
      timer_del(timer_.get());
    }
  }

  void tell(const char* what, std::int64_t time, int level) {
    (void)std::fprintf(output_, "%s %lld %lld %d\n", what, static_cast<long long>(time),
                       static_cast<long long>(fabric_->edges()), level);
  }

  static MemTxResult read(void* opaque, std::uint64_t address, std::uint64_t* data,
                          unsigned /*size*/, MemTxAttrs /*attributes*/) {
    return of(opaque).access("read", address, [&](Fabric& fabric, std::int64_t time, auto... at) {
      const Answer answer = fabric.read(time, at...);
      *data = answer.data;
      return answer;
    });
  }

  static MemTxResult write(void* opaque, std::uint64_t address, std::uint64_t data,
                           unsigned /*size*/, MemTxAttrs /*attributes*/) {
    return of(opaque).access("write", address, [&](Fabric& fabric, std::int64_t time, auto... at) {
      const auto word = static_cast<std::uint32_t>(data);
      return Answer{word, fabric.write(time, at..., word).response};
    });
  }

  template <typename Transfer>
  MemTxResult access(const char* what, std::uint64_t address, Transfer transfer) {
    const std::uint64_t offset = address % (std::uint64_t{1} << slot_bits);
    if (offset >= slave_size) return MEMTX_DECODE_ERROR;
    const std::size_t bus = address >> slot_bits;
    const std::int64_t time = now();
    try {
      fabric_->advance(time);
      const std::int64_t edges = fabric_->edges();
      const Answer answer = transfer(*fabric_, time, bus, static_cast<std::uint32_t>(offset));
      (void)std::fprintf(output_, "%s %lld %lld %zu %llx %x %u\n", what,
                         static_cast<long long>(time), static_cast<long long>(edges), bus,
                         static_cast<unsigned long long>(offset), answer.data, answer.response);
      follow(time);
      return answer.response == 0 ? MEMTX_OK : MEMTX_ERROR;
    } catch (const Mistake& mistake) {
      (void)std::fprintf(output_, "fault %s\n", mistake.what());
      return MEMTX_ERROR;
    }
  }

  Wanted wanted_;
  std::unique_ptr<Fabric> fabric_;
  std::FILE* output_;
  Made made_{};
  MemoryRegionOps operations_{};
  Storage<MemoryRegion> region_;
  Storage<QEMUTimer> timer_;
  qemu_irq interrupt_ = nullptr;
  qemu_irq passed_on_ = nullptr;
  int requested_level_ = 0;
  bool level_ = false;
};

bool number(std::string_view text, std::uint64_t& value) {
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Takes an argument, NAME=VALUE; returns whether it is one.
bool take(std::string_view argument, Wanted& wanted) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = argument.substr(0, equals);
  const std::string_view value = argument.substr(equals + 1);
  if (name == "design") return !(wanted.design = value).empty();
  if (name == "controller") return !(wanted.controller = value).empty();
  if (name == "source") return !(wanted.source = value).empty();
  if (name == "output") return !(wanted.output = value).empty();
  if (name == "base") return number(value, wanted.base);
  if (name == "period") return number(value, wanted.period) && wanted.period > 0;
  if (name == "interrupt") return number(value, wanted.interrupt) && wanted.interrupt < 988;
  return false;
}

int refuse(const char* mistake, const char* which = "") {
  (void)std::fprintf(stderr, "latenz-logic: %s%s\n", mistake, which);
  return 1;
}

/// Returns what makes designs, null if the file is none.
compiled::Create creator(const std::string& design) {
  void* library = dlopen(design.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  return reinterpret_cast<compiled::Create>(dlsym(library, "latenz_logic_create"));
}

}  // namespace
}  // namespace latenz::logic

namespace latenz::probe {

int install(qemu_plugin_id_t /*id*/, const qemu_info_t& info, std::span<char*> arguments) {
  using namespace latenz::logic;  // NOLINT(google-build-using-namespace)
  if (const char* mistake = misfit(info); mistake != nullptr) return refuse(mistake);
  Wanted wanted;
  for (const char* argument : arguments) {
    if (!take(argument, wanted)) return refuse("wrong argument: ", argument);
  }
  if (wanted.controller.empty() || wanted.source.empty()) {
    return refuse("controller=PATH and source=PATH are needed");
  }
  const compiled::Create create = creator(wanted.design);
  if (create == nullptr) return refuse("is not a compiled design: ", wanted.design.c_str());
  std::FILE* output = std::fopen(wanted.output.c_str(), "we");
  if (output == nullptr) return refuse("cannot write ", wanted.output.c_str());
  (void)std::setvbuf(output, nullptr, _IOLBF, BUFSIZ);  // whole lines, also when QEMU is killed
  const auto period = static_cast<std::int64_t>(wanted.period);
  auto fabric = std::make_unique<Fabric>(std::unique_ptr<compiled::Logic>(create()),
                                         std::unique_ptr<compiled::Logic>(create()), period);
  // Never destroyed: vCPUs still run while QEMU's main thread leaves.
  static_cast<void>(new Board(std::move(wanted), std::move(fabric), output));
  return 0;
}

}  // namespace latenz::probe
