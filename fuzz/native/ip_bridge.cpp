// SPDX-License-Identifier: Apache-2.0
// Requests to the bridge of a board with one IP and a ring, whose registers are files: of a client
// that is let in, and of one that should not be.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "ip_bridge_board.hpp"
#include "ip_bridge_session.hpp"
#include "target.hpp"

namespace latenz::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t page = 4096;
constexpr std::size_t maps = 4;
constexpr const char* uio = "sys/class/uio/uio1";

using Registers = std::array<std::uint32_t, maps * page / 4>;

/// A folder as the kernel shows an UIO device; gone when the program ends.
class PlantedBoard {
 public:
  PlantedBoard() {
    std::string name = (fs::temp_directory_path() / "latenz-fuzz-XXXXXX").string();
    require(mkdtemp(name.data()) != nullptr, "a folder can be made");
    root_ = name;
    put("proc/device-tree/model", "Planted board");
    put(fs::path(uio) / "name", "latencies-ip-t1\n");
    put(fs::path(uio) / "device/of_node/latenz,extended", "");
    const std::array<const char*, maps> names = {"s00", "s01", "ring-writer", "ring"};
    for (std::size_t i = 0; i < maps; ++i) {
      const fs::path map = fs::path(uio) / "maps" / ("map" + std::to_string(i));
      put(map / "name", std::string(names[i]) + "\n");
      put(map / "size", "0x1000\n");
      put(map / "offset", "0x0\n");
    }
    put(fs::path(uio) / "maps/map3/addr", "0x0000000870000000\n");
    put("dev/uio1", std::string(maps * page, '\0'));
    registers_ = open((root_ / "dev/uio1").c_str(), O_RDWR | O_CLOEXEC);
    reset();
  }
  PlantedBoard(const PlantedBoard&) = delete;
  PlantedBoard& operator=(const PlantedBoard&) = delete;
  ~PlantedBoard() {
    close(registers_);
    fs::remove_all(root_);
  }

  [[nodiscard]] const fs::path& root() const { return root_; }

  /// Puts the registers back, so that inputs do not depend on each other.
  void reset() const {
    require(pwrite(registers_, fresh().data(), sizeof(Registers), 0) == sizeof(Registers),
            "registers can be written");
  }

  void require_fresh() const {
    Registers now{};
    require(pread(registers_, now.data(), sizeof now, 0) == sizeof now, "they can be read");
    require(now == fresh(), "and nobody has written them");
  }

 private:
  static const Registers& fresh() {
    static const Registers made = fresh_registers();
    return made;
  }
  static Registers fresh_registers() {
    Registers all{};
    constexpr std::size_t s01 = page / 4;
    constexpr std::size_t writer = 2 * page / 4;
    all[s01 + (0x20 / 4)] = 0x4C5A'0100;
    all[s01 + (0x24 / 4)] = 16 | 9U << 8U;
    all[s01 + (0x28 / 4)] = 1;
    all[s01 + (0x2C / 4)] = 99'990'005;
    all[writer + 7] = 2;
    return all;
  }

  void put(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text;
  }

  fs::path root_;
  int registers_ = -1;
};

/// Answers all of the input; tells whether the client was let in.
bool serve(const probe::BridgeBoard& board, std::span<const std::byte> secret, Input input) {
  probe::BridgeTurn turn;
  probe::BridgeSession session(board, turn, secret, 1);
  std::int64_t now_ns = 0;
  constexpr std::size_t part = 4096;
  for (; !input.empty(); input = input.subspan(std::min(part, input.size()))) {
    session.add(std::as_bytes(input.first(std::min(part, input.size()))));
    while (const auto answer = session.next(now_ns += 1000)) {
      require(answer->bytes.size() % 4 == 0 && answer->bytes.size() >= 8, "words are answered");
      require(answer->wait_ns >= 0, "no time goes back");
      if (answer->is_last) return session.is_admitted();
    }
  }
  session.leave();
  return session.is_admitted();
}

}  // namespace

void read_input(Input input) {
  static const PlantedBoard planted;
  static const probe::BridgeBoard board(planted.root());
  planted.reset();
  static_cast<void>(serve(board, {}, input));
  planted.reset();
  static const std::vector<std::byte> secret(32, std::byte{'s'});
  require(!serve(board, secret, input), "nobody is let in who does not know the secret");
  planted.require_fresh();
}

}  // namespace latenz::fuzz
