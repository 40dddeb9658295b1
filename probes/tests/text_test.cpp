// SPDX-License-Identifier: Apache-2.0
// Held against std::istringstream, which it stands for.
#include "text.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using latenz::probe::Text;

std::string random_text(std::mt19937& random) {
  constexpr std::string_view letters = "ab19-:  \t\n\n";
  std::string text(random() % 60, ' ');
  for (char& letter : text) letter = letters[random() % letters.size()];
  return text;
}

TEST(Text, HasTheLinesOfAStream) {
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    const std::string whole = random_text(random);
    std::istringstream expected(whole);
    Text text(whole);
    for (std::string line, found; std::getline(expected, line);) {
      ASSERT_TRUE(text.line(found));
      ASSERT_EQ(found, line);
    }
    std::string none;
    EXPECT_FALSE(text.line(none));
    EXPECT_FALSE(text);
  }
}

TEST(Text, HasTheWordsAndNumbersOfAStream) {
  std::mt19937 random(2);
  for (int i = 0; i < 3000; ++i) {
    const std::string whole = random_text(random);
    std::istringstream expected(whole);
    Text text(whole);
    while (expected) {
      if (random() % 2 == 0) {
        std::string word;
        std::string found;
        expected >> word;
        text >> found;
        ASSERT_EQ(found, word) << whole;
      } else {
        std::int64_t number = 0;
        std::int64_t found = 0;
        expected >> number;
        text >> found;
        if (expected) {  // one that is too large is 0 here
          ASSERT_EQ(found, number) << whole;
        }
      }
      ASSERT_EQ(static_cast<bool>(text), static_cast<bool>(expected)) << whole;
    }
  }
}

TEST(Text, ReadsAFileThatIsLongerThanItsBuffer) {
  const std::string path = testing::TempDir() + "/text_test";
  std::ofstream file(path);
  std::vector<std::string> lines;
  for (int i = 0; i < 5000; ++i) {
    lines.push_back(std::string(static_cast<std::size_t>(i % 97), 'x') + std::to_string(i));
    file << lines.back() << '\n';
  }
  file.close();
  Text text = Text::of_file(path);
  std::string found;
  for (const std::string& line : lines) {
    ASSERT_TRUE(text.line(found));
    ASSERT_EQ(found, line);
  }
  EXPECT_FALSE(text.line(found));
  EXPECT_EQ(latenz::probe::first_line(path), "0");
}

TEST(Text, OfAFileThatIsNotThereIsFalse) {
  Text text = Text::of_file("/nowhere");
  EXPECT_FALSE(text);
  std::string line;
  EXPECT_FALSE(text.line(line));
  EXPECT_EQ(latenz::probe::first_line("/nowhere"), "");
}

}  // namespace
