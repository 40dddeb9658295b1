// SPDX-License-Identifier: Apache-2.0
// latenz-remote: loads, starts, stops and supervises the program on a real-time core, as OpenAMP's
// life cycle does: by Linux' remoteproc where it has the core, else by the resident loader
// (latenz/resident_loader.hpp). docs/amp.md.
//
//   latenz-remote load FILE | start | stop | restart | status
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "failure.hpp"
#include "file.hpp"
#include "latenz/control_block.hpp"
#include "latenz/resident_loader.hpp"
#include "program.hpp"
#include "remote_elf.hpp"
#include "wording.hpp"

namespace latenz::probe {
namespace {

namespace fs = std::filesystem;

constexpr const char* usage = "usage: latenz-remote load FILE | start | stop | restart | status";
constexpr std::int64_t answer_within_ns = 500'000'000;
constexpr std::int64_t heartbeat_within_ns = 500'000'000;
constexpr std::int64_t look_every_ns = 1'000'000;

std::string error_text() { return std::strerror(errno); }

void pause() {
  const timespec time{.tv_sec = 0, .tv_nsec = look_every_ns};
  nanosleep(&time, nullptr);
}

/// Looks again and again until something is true; false if that took too long.
bool comes_true(const std::function<bool()>& condition, std::int64_t within_ns) {
  for (std::int64_t waited = 0; waited < within_ns; waited += look_every_ns) {
    if (condition()) return true;
    pause();
  }
  return condition();
}

std::string read_whole(const fs::path& path) {
  const File file = File::open_input(path);
  std::string text;
  if (!read_again(file, text)) {
    throw Failure(path.string() + ": cannot be read: " + error_text());
  }
  return text;
}

RemoteProgram checked(const fs::path& path, const std::string& content) {
  return read_remote_program(path.string(), std::as_bytes(std::span(content)), RemoteMemory::begin,
                             RemoteMemory::end);
}

/// What can be done with a core.
class Core {
 public:
  Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  virtual ~Core() = default;
  virtual void load(const fs::path& path) = 0;
  virtual void start() = 0;
  virtual void stop() = 0;
  [[nodiscard]] virtual bool is_running() const = 0;
  [[nodiscard]] virtual std::string status() const = 0;
};

/// Linux' own remoteproc (Documentation/ABI/testing/sysfs-class-remoteproc).
class KernelCore final : public Core {
 public:
  static constexpr const char* folder = "/sys/class/remoteproc/remoteproc0";

  void load(const fs::path& path) override {
    static_cast<void>(checked(path, read_whole(path)));
    std::error_code error;
    fs::create_directories("/lib/firmware", error);
    fs::copy_file(path, fs::path("/lib/firmware") / firmware, fs::copy_options::overwrite_existing,
                  error);
    if (error) throw Failure("/lib/firmware: cannot be written: " + error.message());
    tell("firmware", firmware);
  }

  void start() override { tell("state", "start"); }
  void stop() override { tell("state", "stop"); }
  [[nodiscard]] bool is_running() const override { return status() == "running"; }

  [[nodiscard]] std::string status() const override {
    std::string text = read_whole(fs::path(folder) / "state");
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

 private:
  static constexpr const char* firmware = "latenz-remote.elf";

  static void tell(const char* attribute, std::string_view value) {
    const fs::path path = fs::path(folder) / attribute;
    const File file = File::open(path, O_WRONLY);
    if (!file.is_open() || write(file.descriptor(), value.data(), value.size()) < 0) {
      throw Failure(worded(path.string(), ": does not take '", value, "': ", error_text()));
    }
  }
};

/// Memory that does not belong to Linux, uncached.
class Memory {
 public:
  Memory(std::uint64_t address, std::uint64_t size) {
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    const std::uint64_t begin = address / page * page;
    size_ = address + size - begin;
    const File file = File::open("/dev/mem", O_RDWR | O_SYNC);
    base_ = file.is_open() ? mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED,
                                  file.descriptor(), static_cast<off_t>(begin))
                           : MAP_FAILED;
    if (base_ == MAP_FAILED) {
      throw Failure(worded("/dev/mem: memory at ", hex(address), " cannot be had: ", error_text(),
                           "; it must lie outside Linux' memory, and this needs root"));
    }
    words_ =
        reinterpret_cast<volatile std::uint32_t*>(static_cast<char*>(base_) + (address - begin));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { munmap(base_, size_); }

  [[nodiscard]] volatile std::uint32_t* words() const { return words_; }

 private:
  void* base_ = MAP_FAILED;
  std::uint64_t size_ = 0;
  volatile std::uint32_t* words_ = nullptr;
};

/// Writes word by word: memory of devices takes no other accesses.
void copy_segment(const RemoteSegment& segment) {
  constexpr std::size_t word = sizeof(std::uint32_t);
  const Memory memory(segment.address, segment.size + word);
  for (std::size_t at = 0; at < segment.size; at += word) {
    std::uint32_t value = 0;
    if (at < segment.data.size()) {
      std::memcpy(&value, segment.data.data() + at, std::min(word, segment.data.size() - at));
    }
    memory.words()[at / word] = value;
  }
}

/// The resident loader, and the control block of the program it has started.
class LoaderCore final : public Core {
 public:
  LoaderCore() : memory_(ControlBlock::zynqmp_address, span) {
    if (loader().magic != LoaderBlock::expected_magic ||
        loader().version != LoaderBlock::current_version) {
      throw Failure(worded("no loader answers at ", hex(LoaderBlock::zynqmp_address),
                           ", and Linux has no ", KernelCore::folder,
                           "; switch the real-time core on"));
    }
  }

  void load(const fs::path& path) override {
    const fs::path whole = fs::absolute(path);
    static_cast<void>(checked(whole, read_whole(whole)));
    if (const int error = replace_file(remembered, whole.string()); error != 0) {
      throw Failure(worded(remembered, ": cannot be written: ", std::strerror(error)));
    }
  }

  /// The file is read anew: a program that has run has changed its data.
  void start() override {
    if (is_running()) throw Failure("the core runs; stop it first");
    if (access(remembered, R_OK) != 0) throw Failure("nothing is loaded; load a file first");
    const fs::path path = read_whole(remembered);
    const std::string content = read_whole(path);
    const RemoteProgram program = checked(path, content);
    for (const RemoteSegment& segment : program.segments) copy_segment(segment);
    program_block().command = static_cast<std::uint32_t>(ControlCommand::none);
    program_block().state = static_cast<std::uint32_t>(ControlState::off);
    loader().entry = program.entry;
    const std::uint32_t request = loader().answered + 1;
    loader().request = request;
    if (!comes_true([&] { return loader().answered == request; }, answer_within_ns)) {
      throw Failure("the loader does not answer");
    }
  }

  /// The program ends itself when it sees the wish.
  void stop() override {
    if (!is_running()) throw Failure("the core does not run");
    program_block().command = static_cast<std::uint32_t>(ControlCommand::stop);
    if (!comes_true([this] { return !is_running(); }, answer_within_ns)) {
      throw Failure("the program does not stop; only a reset of the core can end it");
    }
  }

  [[nodiscard]] bool is_running() const override { return loader().state == LoaderState::started; }

  [[nodiscard]] std::string status() const override {
    if (loader().state == LoaderState::crashed) {
      return worded("crashed: ", exception(), " at ", hex(loader().exception_address));
    }
    if (is_running()) {
      const std::uint32_t before = program_block().heartbeat;
      const auto beats = [&] { return program_block().heartbeat != before || !is_running(); };
      if (comes_true(beats, heartbeat_within_ns)) return is_running() ? "running" : status();
      return worded("crashed: no heartbeat for ", heartbeat_within_ns / 1'000'000, " ms");
    }
    const bool failed = program_block().state == static_cast<std::uint32_t>(ControlState::fault);
    return failed ? "crashed: the program reported a fault" : "offline";
  }

 private:
  static constexpr const char* remembered = "/run/latenz-remote.firmware";
  static constexpr std::uint64_t loader_offset =
      LoaderBlock::zynqmp_address - ControlBlock::zynqmp_address;
  static constexpr std::uint64_t span = loader_offset + sizeof(LoaderBlock);

  [[nodiscard]] volatile ControlBlock& program_block() const {
    return *reinterpret_cast<volatile ControlBlock*>(memory_.words());
  }

  [[nodiscard]] volatile LoaderBlock& loader() const {
    return *reinterpret_cast<volatile LoaderBlock*>(memory_.words() +
                                                    (loader_offset / sizeof(std::uint32_t)));
  }

  [[nodiscard]] std::string_view exception() const {
    switch (loader().exception) {
      case 1:
        return "undefined instruction";
      case 3:
        return "instruction abort";
      case 4:
        return "data abort";
      default:
        return "unexpected exception";
    }
  }

  Memory memory_;
};

std::unique_ptr<Core> find_core() {
  if (fs::exists(KernelCore::folder)) return std::make_unique<KernelCore>();
  return std::make_unique<LoaderCore>();
}

int manage(std::span<const char* const> arguments) {
  const std::string_view verb = arguments.empty() ? "" : arguments[0];
  if (arguments.size() != (verb == "load" ? 2 : 1)) throw Failure(usage);
  if (verb != "load" && verb != "start" && verb != "stop" && verb != "restart" &&
      verb != "status") {
    throw Failure(usage);
  }
  const std::unique_ptr<Core> core = find_core();
  if (verb == "load") core->load(arguments[1]);
  if (verb == "stop" || (verb == "restart" && core->is_running())) core->stop();
  if (verb == "start" || verb == "restart") core->start();
  if (verb == "status") print(stdout, core->status() + "\n");
  return 0;
}

}  // namespace
}  // namespace latenz::probe

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-remote", count, arguments, latenz::probe::manage);
}
