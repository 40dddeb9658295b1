// SPDX-License-Identifier: Apache-2.0
// The bridge's frames, whole, cut and random, and its board: a planted tree of UIO devices whose
// registers are files. hdl/tests/test_hdl_driver.py runs the program itself.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "ip_bridge_board.hpp"
#include "ip_bridge_protocol.hpp"
#include "ip_bridge_secret.hpp"
#include "ip_bridge_session.hpp"

namespace latenz::probe {
namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<std::byte>;

constexpr std::size_t page = 4096;
constexpr std::size_t page_words = page / 4;
constexpr std::uint32_t identification = 0x4C5A'0100;

Bytes frame(std::uint8_t operation, std::uint8_t window, std::uint16_t count,
            std::uint32_t argument, const std::vector<std::uint32_t>& words = {}) {
  Bytes bytes{std::byte{operation}, std::byte{window}, static_cast<std::byte>(count),
              static_cast<std::byte>(count >> 8U)};
  const auto append = [&](std::uint32_t word) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::byte>(word >> shift));
    }
  };
  append(argument);
  for (const std::uint32_t word : words) append(word);
  return bytes;
}

std::vector<BridgeRequest> all_of(const Bytes& stream, std::mt19937& random) {
  std::vector<BridgeRequest> found;
  BridgeRequests requests;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t part = std::min(stream.size() - at, std::size_t{random() % 20});
    requests.add(std::span(stream).subspan(at, part));
    at += part;
    while (auto request = requests.next()) found.push_back(std::move(*request));
  }
  return found;
}

TEST(BridgeRequests, AreTheSameHoweverTheStreamIsCut) {
  std::mt19937 random(1);
  for (unsigned run = 0; run < 300; ++run) {
    Bytes stream;
    std::vector<BridgeRequest> sent;
    for (unsigned i = 0; i < 20; ++i) {
      BridgeRequest request{.operation = static_cast<std::uint8_t>(1 + random() % 4),
                            .window = static_cast<std::uint8_t>(random()),
                            .count = static_cast<std::uint16_t>(random() % 12),
                            .argument = static_cast<std::uint32_t>(random()),
                            .words = {}};
      if (request.operation == 2) {
        for (unsigned word = 0; word < request.count; ++word) {
          request.words.push_back(static_cast<std::uint32_t>(random()));
        }
      }
      const Bytes bytes =
          frame(request.operation, request.window, request.count, request.argument, request.words);
      stream.insert(stream.end(), bytes.begin(), bytes.end());
      sent.push_back(request);
    }
    const auto got = all_of(stream, random);
    ASSERT_EQ(got.size(), sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      ASSERT_EQ(got[i].operation, sent[i].operation);
      ASSERT_EQ(got[i].window, sent[i].window);
      ASSERT_EQ(got[i].count, sent[i].count);
      ASSERT_EQ(got[i].argument, sent[i].argument);
      ASSERT_EQ(got[i].words, sent[i].words);
    }
  }
}

/// Folders as the kernel shows UIO devices, with files for their registers.
class PlantedBoard : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("latenz-bridge-" + std::to_string(getpid()));
    fs::remove_all(root_);
    plant_text("proc/device-tree/model", std::string("Planted \"board\"\0", 16));
  }

  void TearDown() override { fs::remove_all(root_); }

  void plant_text(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text;
  }

  struct Map {
    std::size_t bytes;  ///< by sysfs; the file has one page for each map
    std::vector<std::uint32_t> words;
  };

  void plant(unsigned number, const std::string& name, const std::vector<Map>& maps) {
    const std::string uio = "uio" + std::to_string(number);
    const fs::path folder = fs::path("sys/class/uio") / uio;
    plant_text(folder / "name", name + "\n");
    std::string content(maps.size() * page, '\0');
    for (std::size_t i = 0; i < maps.size(); ++i) {
      std::array<char, 20> size{};
      static_cast<void>(std::snprintf(size.data(), size.size(), "0x%zx\n", maps[i].bytes));
      const fs::path map = folder / "maps" / ("map" + std::to_string(i));
      plant_text(map / "size", size.data());
      plant_text(map / "offset", "0x0\n");
      std::memcpy(content.data() + (i * page), maps[i].words.data(), maps[i].words.size() * 4);
    }
    plant_text(fs::path("dev") / uio, content);
  }

  void plant_property(unsigned number, const std::string& name, const std::string& value) {
    plant_text(
        fs::path("sys/class/uio") / ("uio" + std::to_string(number)) / "device/of_node" / name,
        value);
  }

  /// T1 as published, T2 with counters only, and the generator.
  void plant_bench() {
    plant(3, "latencies-ip-t1",
          {{page, {11, 12, 13}}, {page, {1, 0xFFFF, 9, 20, 5, 3, 1, 0xDEAD}}});
    plant_property(3, "latenz,clock-frequency-hz", std::string("\x05\xF5\xB9\xF5", 4));
    plant_property(3, "latenz,from-event", std::string("ps_pl_irq\0", 10));
    std::vector<std::uint32_t> registers(0x100 / 4, 0xDEAD);
    registers[0x20 / 4] = identification;
    registers[0x24 / 4] = 16 | 9U << 8U;
    registers[0x28 / 4] = 1;  // counters
    registers[0x2C / 4] = 99'990'005;
    registers[0x4C / 4] = 77;
    // The maps the other way round: it is their names that count.
    plant(1, "latencies-ip-t2", {{page, registers}, {4 * page, {21, 22}}});
    plant_text("sys/class/uio/uio1/maps/map0/name", "s01\n");
    plant_text("sys/class/uio/uio1/maps/map1/name", "s00\n");
    plant_property(1, "latenz,extended", "");
    plant(0, "latenz-random-data-generator", {{page, {5, 6, 16, 0, 1, 0, 0, 0xDEAD}}});
    plant(7, "somebody-elses", {{page, {1}}});
  }

  /// T1 with counters, and behind it a ring of 256 records whose writer is off.
  void plant_stream() {
    std::vector<std::uint32_t> registers(0x100 / 4, 0);
    registers[0x20 / 4] = identification;
    registers[0x24 / 4] = 16 | 9U << 8U;
    registers[0x28 / 4] = 1;
    registers[0x2C / 4] = 99'990'005;
    const std::vector<std::uint32_t> writer{0, 0, 0, 0, 5, 4, 0, 2, 0};
    plant(1, "latencies-ip-t1",
          {{page, {11, 12}}, {page, registers}, {page, writer}, {page, {31, 32, 33}}});
    plant_property(1, "latenz,extended", "");
    plant_text("sys/class/uio/uio1/maps/map2/name", "ring-writer\n");
    plant_text("sys/class/uio/uio1/maps/map3/name", "ring\n");
    plant_text("sys/class/uio/uio1/maps/map3/addr", "0x0000000870000000\n");
  }

  [[nodiscard]] std::uint32_t planted_word(unsigned number, std::size_t index) const {
    std::ifstream file(root_ / "dev" / ("uio" + std::to_string(number)), std::ios::binary);
    file.seekg(static_cast<std::streamoff>(index * 4));
    std::uint32_t word = 0;
    file.read(reinterpret_cast<char*>(&word), 4);
    return word;
  }

  [[nodiscard]] BridgeBoard board() const { return BridgeBoard(root_); }

  [[nodiscard]] std::string failure() const {
    try {
      static_cast<void>(board());
    } catch (const Failure& failed) {
      return failed.what();
    }
    return "";
  }

  fs::path root_;
};

struct Answer {
  unsigned status;
  std::uint32_t index;
  std::vector<std::uint32_t> words;
  bool operator==(const Answer&) const = default;
};

Answer ask(const BridgeBoard& board, const Bytes& request) {
  BridgeRequests requests;
  requests.add(request);
  const Bytes bytes = board.answer(requests.next().value_or(BridgeRequest{}));
  const auto word = [&](std::size_t at) {
    std::uint32_t number = 0;
    std::memcpy(&number, bytes.data() + at, 4);
    return number;
  };
  Answer answer{.status = std::to_integer<unsigned>(bytes[0]), .index = word(4), .words = {}};
  for (std::size_t at = 8; at < bytes.size(); at += 4) answer.words.push_back(word(at));
  EXPECT_EQ(std::to_integer<unsigned>(bytes[2]) + 256 * std::to_integer<unsigned>(bytes[3]),
            answer.words.size());
  return answer;
}

constexpr std::uint8_t t1_s00 = 0;
constexpr std::uint8_t t1_s01 = 1;
constexpr std::uint8_t t2_s01 = 3;
constexpr std::uint8_t generator = 4;

TEST_F(PlantedBoard, DescribesWhatItFinds) {
  plant_bench();
  EXPECT_EQ(board().description(),
            R"({"board": "Planted \"board\"", "time_base": "silicon", "instances": [)"
            R"({"name": "T1", "s00": 0, "s01": 1, "published": true, "from_event": "ps_pl_irq", )"
            R"("to_event": "ack_in"}, {"name": "T2", "s00": 2, "s01": 3, "published": false, )"
            R"("from_event": "irq_in", "to_event": "ack_in"}], "clock_hz": 99990005, )"
            R"("generator": 4})");
}

TEST_F(PlantedBoard, ReadsAndWritesWords) {
  plant_bench();
  const BridgeBoard bench = board();
  EXPECT_EQ(ask(bench, frame(1, t1_s00, 3, 0)), (Answer{0, 0, {11, 12, 13}}));
  EXPECT_EQ(ask(bench, frame(1, t1_s01, 2, 8)), (Answer{0, 0, {9, 20}}));
  EXPECT_EQ(ask(bench, frame(2, t1_s01, 2, 0, {0, 500})), (Answer{0, 0, {}}));
  EXPECT_EQ(planted_word(3, page_words + 0), 0U);
  EXPECT_EQ(planted_word(3, page_words + 1), 500U);
  EXPECT_EQ(ask(bench, frame(1, t2_s01, 1, 0x4C)), (Answer{0, 0, {77}}));
  EXPECT_EQ(ask(bench, frame(1, generator, 2, 0)), (Answer{0, 0, {5, 6}}));
}

TEST_F(PlantedBoard, TouchesNoRegisterThatIsNotThere) {
  plant_bench();
  const BridgeBoard bench = board();
  EXPECT_EQ(ask(bench, frame(1, t1_s01, 3, 0x14)), (Answer{2, 2, {3, 1}}));  // 0x1C
  EXPECT_EQ(ask(bench, frame(1, t1_s01, 1, 0x20)), (Answer{2, 0, {}}));      // as published
  EXPECT_EQ(ask(bench, frame(1, t2_s01, 1, 0x5C)), (Answer{2, 0, {}}));      // no watchdog
  EXPECT_EQ(ask(bench, frame(1, generator, 1, 0x1C)), (Answer{2, 0, {}}));
  // Writes: to what is read only, in part, and to samples.
  EXPECT_EQ(ask(bench, frame(2, t1_s01, 3, 0, {1, 600, 7})), (Answer{2, 2, {}}));
  EXPECT_EQ(planted_word(3, page_words + 1), 600U);
  EXPECT_EQ(planted_word(3, page_words + 2), 9U);
  EXPECT_EQ(ask(bench, frame(2, t1_s00, 1, 0, {7})), (Answer{2, 0, {}}));
  EXPECT_EQ(planted_word(3, 0), 11U);
  EXPECT_EQ(ask(bench, frame(2, t2_s01, 1, 0x4C, {7})), (Answer{2, 0, {}}));
  EXPECT_EQ(planted_word(1, 0x4C / 4), 77U);
  EXPECT_EQ(ask(bench, frame(2, generator, 1, 0, {7})), (Answer{2, 0, {}}));
  EXPECT_EQ(planted_word(0, 0), 5U);
}

TEST_F(PlantedBoard, RefusesWhatIsOutsideOrNotAligned) {
  plant_bench();
  const BridgeBoard bench = board();
  const Answer refused{255, 0, {}};
  EXPECT_EQ(ask(bench, frame(1, t1_s00, 1, page)), refused);
  EXPECT_EQ(ask(bench, frame(1, t1_s00, 2, page - 4)), refused);
  EXPECT_EQ(ask(bench, frame(1, t1_s00, 1, 0xFFFF'FFFC)), refused);
  EXPECT_EQ(ask(bench, frame(1, t1_s00, 65'535, 4)), refused);
  EXPECT_EQ(ask(bench, frame(1, t1_s00, 1, 2)), refused);
  EXPECT_EQ(ask(bench, frame(1, t1_s00, 0, 0)), refused);
  EXPECT_EQ(ask(bench, frame(2, t1_s01, 1, 1, {0})), refused);
  EXPECT_EQ(ask(bench, frame(1, 5, 1, 0)), refused);
  EXPECT_EQ(ask(bench, frame(9, 0, 1, 0)), refused);
  EXPECT_EQ(planted_word(3, page_words + 0), 1U);
}

/// A file that is shorter than its map: touching what is missing is a real bus error.
TEST_F(PlantedBoard, ABusErrorIsAnAnswerAndNotTheEnd) {
  plant_bench();
  plant_text("sys/class/uio/uio3/maps/map0/size", "0x3000\n");
  const BridgeBoard bench = board();
  for (unsigned again = 0; again < 3; ++again) {
    const Answer answer = ask(bench, frame(1, t1_s00, 3, (2 * page) - 8));
    EXPECT_EQ(answer, (Answer{2, 2, {0, 0}}));
    EXPECT_EQ(ask(bench, frame(1, t1_s00, 1, 4)), (Answer{0, 0, {12}}));
  }
}

TEST_F(PlantedBoard, WaitsInTheClockOfTheIps) {
  plant_bench();
  BridgeRequests requests;
  requests.add(frame(3, 0, 0, 99'990'005));
  EXPECT_EQ(board().wait_ns(requests.next().value_or(BridgeRequest{})), 1'000'000'000);
}

TEST_F(PlantedBoard, RandomRequestsChangeNothingButWhatMayBeWritten) {
  plant_bench();
  const BridgeBoard bench = board();
  std::mt19937 random(5);
  for (unsigned run = 0; run < 20'000; ++run) {
    const auto count = static_cast<std::uint16_t>(random() % 6);
    const bool writes = random() % 2 == 0;
    const auto operation = static_cast<std::uint8_t>(writes ? 2 : random());
    const auto argument = static_cast<std::uint32_t>(
        random() % 3 == 0 ? random() : random() % 80 * (random() % 8 == 0 ? 1 : 4));
    const bool takes_words = operation == 2;
    if (operation == 4) continue;  // describe: not words
    static_cast<void>(
        ask(bench, frame(operation, static_cast<std::uint8_t>(random() % 7), count, argument,
                         std::vector<std::uint32_t>(takes_words ? count : 0, 1))));
  }
  const auto unchanged = [&](unsigned uio, std::size_t index, std::uint32_t word) {
    EXPECT_EQ(planted_word(uio, index), word);
  };
  unchanged(3, 0, 11);                   // samples
  unchanged(3, page_words + 2, 9);       // last
  unchanged(3, page_words + 5, 3);       // num
  unchanged(3, page_words + 7, 0xDEAD);  // absent
  unchanged(1, 0x4C / 4, 77);            // orphans
  unchanged(1, 0x5C / 4, 0xDEAD);        // absent
  unchanged(0, 0, 5);                    // data
  unchanged(0, 7, 0xDEAD);               // absent
}

constexpr std::size_t ring_bytes = page;  // one page of the file
constexpr std::uint32_t ring_log2 = 8;
constexpr std::uint32_t base_low = 0x7000'0000;
constexpr std::uint32_t base_high = 8;
constexpr std::uint8_t ring_writer = 2;
constexpr std::uint8_t ring = 3;

TEST_F(PlantedBoard, HasARingWhereTheDeviceHasMapsOfIt) {
  plant_stream();
  EXPECT_EQ(board().description(),
            R"({"board": "Planted \"board\"", "time_base": "silicon", "instances": [)"
            R"({"name": "T1", "s00": 0, "s01": 1, "published": false, "from_event": "irq_in", )"
            R"("to_event": "ack_in", "ring": {"registers": 2, "memory": 3, "base": 36238786560, )"
            R"("size_log2": 8}}], "clock_hz": 99990005, "generator": null})");
  const BridgeBoard stream = board();
  EXPECT_EQ(ask(stream, frame(1, ring, 2, 4)), (Answer{0, 0, {32, 33}}));
  EXPECT_EQ(ask(stream, frame(1, ring, 1, ring_bytes)), (Answer{255, 0, {}}));
  EXPECT_EQ(ask(stream, frame(2, ring, 1, 0, {7})), (Answer{2, 0, {}}));
  EXPECT_EQ(ask(stream, frame(1, ring_writer, 2, 0x10)), (Answer{0, 0, {5, 4}}));
  EXPECT_EQ(ask(stream, frame(1, ring_writer, 1, 0x24)), (Answer{2, 0, {}}));
}

/// The logic writes where base says: what a client could write there, it could overwrite.
TEST_F(PlantedBoard, LetsNobodyMoveARing) {
  plant_stream();
  const BridgeBoard stream = board();
  const Answer done{0, 0, {}};
  const Answer refused{2, 0, {}};
  const auto write = [&](std::uint32_t offset, std::uint32_t word) {
    return ask(stream, frame(2, ring_writer, 1, offset, {word}));
  };
  EXPECT_EQ(write(0x00, 1), refused);  // base and size are not right yet
  EXPECT_EQ(write(0x04, base_low + 16), refused);
  EXPECT_EQ(write(0x08, 0), refused);
  EXPECT_EQ(write(0x0C, ring_log2 + 1), refused);
  EXPECT_EQ(write(0x04, base_low), done);
  EXPECT_EQ(write(0x08, base_high), done);
  EXPECT_EQ(write(0x00, 1), refused);
  EXPECT_EQ(write(0x0C, ring_log2), done);
  EXPECT_EQ(write(0x00, 1), done);
  EXPECT_EQ(planted_word(1, 2 * page_words), 1U);
  EXPECT_EQ(planted_word(1, (2 * page_words) + 1), base_low);
  EXPECT_EQ(write(0x04, base_low), refused);  // somebody else's may be under way
  EXPECT_EQ(write(0x14, 5), done);
  EXPECT_EQ(write(0x1C, 4), done);
  EXPECT_EQ(write(0x10, 7), refused);  // read only
  EXPECT_EQ(write(0x20, 7), refused);
  EXPECT_EQ(write(0x00, 0), done);
  EXPECT_EQ(write(0x04, base_low), done);
}

TEST_F(PlantedBoard, SaysWhatIsWrongWithARing) {
  const auto says_no_ring = [&] {
    EXPECT_NE(failure().find("are no ring; wanted: a power of two"), std::string::npos)
        << failure();
  };
  plant_stream();
  EXPECT_EQ(failure(), "");
  plant_text("sys/class/uio/uio1/maps/map3/size", "0x3000\n");
  says_no_ring();
  plant_text("sys/class/uio/uio1/maps/map3/size", "0x1000\n");
  plant_text("sys/class/uio/uio1/maps/map3/offset", "0x10\n");
  says_no_ring();
  plant_text("sys/class/uio/uio1/maps/map3/offset", "0x0\n");
  plant_text("sys/class/uio/uio1/maps/map2/name", "other\n");
  says_no_ring();
}

TEST_F(PlantedBoard, SaysWhatIsWrong) {
  const auto says = [&](const std::string& what) {
    EXPECT_NE(failure().find(what), std::string::npos) << failure();
  };
  says("no device named latencies-ip-NAME");
  plant(1, "latencies-ip-t1", {{page, {0}}});
  says("maps/map1/size: holds no hexadecimal number");
  plant(1, "latencies-ip-t1", {{page, {0}}, {page, {0}}});
  says("no clock frequency");
  plant_property(1, "latenz,extended", "");
  says("no Latencies IP with additions answers");
  fs::remove(root_ / "sys/class/uio/uio1/device/of_node/latenz,extended");
  plant_property(1, "latenz,clock-frequency-hz", std::string("\x05\xF5\xB9\xF5", 4));
  EXPECT_EQ(failure(), "");
  plant(3, "latencies-ip-t1", {{page, {0}}, {page, {0}}});
  says("a second device named latencies-ip-t1");
  plant(3, "latencies-ip-t2", {{page, {0}}, {page, {0}}});
  plant_property(3, "latenz,clock-frequency-hz", std::string("\x05\xF5\xB9\xF6", 4));
  says("a clock of 99990006 Hz, and another of 99990005 Hz");
  fs::remove_all(root_ / "sys/class/uio/uio3");
  plant_text("sys/class/uio/uio1/maps/map0/size", "0x1001\n");
  says("wanted: whole words");
  plant_text("sys/class/uio/uio1/maps/map0/size", "large\n");
  says("map0/size: holds no hexadecimal number");
  plant_text("sys/class/uio/uio1/maps/map0/size", "0x1000\n");
  fs::remove(root_ / "dev/uio1");
  says("its registers cannot be had: No such file");
}

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string hex_of(const Digest& digest) {
  std::string text;
  for (const std::byte byte : digest) {
    std::array<char, 3> two{};
    static_cast<void>(
        std::snprintf(two.data(), two.size(), "%02x", std::to_integer<unsigned>(byte)));
    text += two.data();
  }
  return text;
}

/// The examples of NIST for SHA-256: one block, two blocks, and a million letters.
TEST(Sha256, IsThatOfItsStandard) {
  const auto digest = [](std::string_view text) {
    Sha256 sum;
    sum.add(bytes_of(text));
    return hex_of(sum.digest());
  };
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/// Cases 1, 2 and 6 of RFC 4231: short keys, and one that is longer than a block.
TEST(Sha256, MakesTheHmacOfItsStandard) {
  EXPECT_EQ(hex_of(hmac_sha256(Bytes(20, std::byte{0x0b}), bytes_of("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex_of(hmac_sha256(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex_of(hmac_sha256(Bytes(131, std::byte{0xaa}),
                               bytes_of("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Sha256, SameDigestLooksAtEveryByte) {
  const Digest digest = hmac_sha256({}, {});
  EXPECT_TRUE(same_digest(digest, digest));
  EXPECT_FALSE(same_digest(std::span(digest).first(31), digest));
  for (std::size_t i = 0; i < digest.size(); ++i) {
    Digest other = digest;
    other[i] ^= std::byte{1};
    EXPECT_FALSE(same_digest(other, digest));
  }
}

constexpr std::int64_t second_ns = 1'000'000'000;

TEST(BridgeTurn, IsTheFirstOnesUntilItLeavesOrIsSilent) {
  BridgeTurn turn;
  EXPECT_TRUE(turn.take(1, 0));
  EXPECT_FALSE(turn.take(2, 4 * second_ns));
  turn.seen(2, 4 * second_ns);  // not its turn: changes nothing
  turn.seen(1, 4 * second_ns);
  EXPECT_FALSE(turn.take(2, 9 * second_ns));
  EXPECT_TRUE(turn.take(2, 10 * second_ns));
  EXPECT_FALSE(turn.take(1, 10 * second_ns));
  turn.leave(1);
  EXPECT_FALSE(turn.take(1, 10 * second_ns));
  turn.leave(2);
  EXPECT_TRUE(turn.take(1, 10 * second_ns));
}

/// One client of a planted board, its answers one by one.
class Talk {
 public:
  Talk(const BridgeBoard& board, BridgeTurn& turn, const Bytes& secret, std::uint64_t client)
      : session_(board, turn, secret, client) {}

  BridgeAnswer ask(const Bytes& request) {
    session_.add(request);
    return session_.next(0).value_or(BridgeAnswer{});
  }
  unsigned status(const Bytes& request) {
    const BridgeAnswer answer = ask(request);
    return answer.bytes.empty() ? 999 : std::to_integer<unsigned>(answer.bytes[0]);
  }
  [[nodiscard]] BridgeSession& session() { return session_; }

 private:
  BridgeSession session_;
};

TEST_F(PlantedBoard, OneClientChangesAndAllRead) {
  plant_bench();
  const BridgeBoard bench = board();
  BridgeTurn turn;
  Talk first(bench, turn, {}, 1);
  Talk second(bench, turn, {}, 2);
  const Bytes change = frame(2, t1_s01, 1, 4, {7});
  EXPECT_EQ(second.status(frame(1, t1_s01, 1, 4)), 0U);
  EXPECT_EQ(first.status(change), 0U);
  EXPECT_EQ(second.status(change), 252U);
  EXPECT_EQ(second.status(frame(1, generator, 1, 0)), 252U);  // reading takes a word away
  EXPECT_EQ(second.status(frame(1, t1_s01, 1, 4)), 0U);
  EXPECT_EQ(first.status(frame(1, generator, 1, 0)), 0U);
  first.session().leave();
  EXPECT_EQ(second.status(change), 0U);
}

Bytes numbers(const Bytes& secret, const Bytes& challenge, std::string_view who) {
  const Bytes own(32, std::byte{9});
  Bytes message = bytes_of("latenz-ip-bridge 1 ");
  for (const Bytes& part : {bytes_of(who), challenge, own}) {
    message.insert(message.end(), part.begin(), part.end());
  }
  Bytes both = own;
  const Digest proof = hmac_sha256(secret, message);
  both.insert(both.end(), proof.begin(), proof.end());
  return both;
}

TEST_F(PlantedBoard, LetsInOnlyWhoKnowsTheSecret) {
  plant_bench();
  const BridgeBoard bench = board();
  BridgeTurn turn;
  const Bytes secret = bytes_of("0123456789abcdef0123456789abcdef");
  const Bytes look = frame(1, t1_s01, 1, 4);
  const auto prove = [](const Bytes& content) {
    Bytes request = frame(6, 0, static_cast<std::uint16_t>(content.size() / 4), 0);
    request.insert(request.end(), content.begin(), content.end());
    return request;
  };
  const auto challenged = [](Talk& talk) {
    const Bytes answer = talk.ask(frame(5, 0, 0, 0)).bytes;
    EXPECT_EQ(answer.size(), 40U);
    return Bytes(answer.begin() + 8, answer.end());
  };
  Talk right(bench, turn, secret, 1);
  for (const unsigned operation : {1U, 3U, 4U}) {
    EXPECT_EQ(right.status(frame(static_cast<std::uint8_t>(operation), 1, 1, 0)), 253U);
  }
  EXPECT_EQ(right.status(frame(2, t1_s01, 1, 4, {7})), 253U);
  EXPECT_EQ(planted_word(3, page_words + 1), 0xFFFFU);
  EXPECT_FALSE(right.session().is_admitted());
  const Bytes challenge = challenged(right);
  const BridgeAnswer let_in = right.ask(prove(numbers(secret, challenge, "client")));
  EXPECT_EQ(let_in.bytes.size(), 40U);
  EXPECT_TRUE(right.session().is_admitted());
  EXPECT_EQ(right.status(look), 0U);

  const auto refused = [&](const Bytes& key, std::string_view who, bool of_another) {
    Talk wrong(bench, turn, secret, 2);
    const Bytes own = challenged(wrong);
    EXPECT_NE(own, challenge);
    const BridgeAnswer answer = wrong.ask(prove(numbers(key, of_another ? challenge : own, who)));
    EXPECT_EQ(std::to_integer<unsigned>(answer.bytes[0]), 254U);
    EXPECT_TRUE(answer.is_last);
    EXPECT_EQ(wrong.status(look), 253U);
  };
  refused(bytes_of("1123456789abcdef0123456789abcdef"), "client", false);
  refused(secret, "board", false);  // the board's own proof sent back
  refused(secret, "client", true);  // one that was overheard

  Talk hasty(bench, turn, secret, 3);
  EXPECT_EQ(hasty.status(prove(numbers(secret, Bytes(32), "client"))), 254U);  // not asked yet
  Talk again(bench, turn, secret, 4);
  static_cast<void>(challenged(again));
  EXPECT_TRUE(again.ask(frame(5, 0, 0, 0)).is_last);  // one try a connection
  Talk needless(bench, turn, {}, 5);
  EXPECT_EQ(needless.status(frame(5, 0, 0, 0)), 255U);
}

TEST_F(PlantedBoard, TakesASecretThatIsItsOwnersAlone) {
  const std::string text = "0123456789abcdef0123456789abcdef";
  plant_text("secret", text + "\n");
  const fs::path path = root_ / "secret";
  const auto failure = [](const fs::path& of) -> std::string {
    try {
      static_cast<void>(read_bridge_secret(of));
    } catch (const Failure& failed) {
      return failed.what();
    }
    return "";
  };
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_NE(failure(path).find("chmod 600"), std::string::npos);
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(read_bridge_secret(path), bytes_of(text));
  plant_text("secret", text.substr(1) + "\n");
  EXPECT_NE(failure(path).find("fewer than 32"), std::string::npos);
  plant_text("secret", std::string(5000, 'x'));
  EXPECT_NE(failure(path).find("more than 4096"), std::string::npos);
  ASSERT_EQ(mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_NE(failure(root_ / "pipe").find("is not a regular file"), std::string::npos);
  EXPECT_NE(failure(root_ / "none").find("cannot be opened"), std::string::npos);
}

}  // namespace
}  // namespace latenz::probe
