// SPDX-License-Identifier: Apache-2.0
#include "text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace latenz::probe {
namespace {

constexpr std::size_t part_bytes = 16384;

bool is_space(char letter) {
  return letter == ' ' || (letter >= '\t' && letter <= '\r');  // those of the language C
}

}  // namespace

Text Text::of_file(const std::filesystem::path& path) {
  Text text{std::string()};
  text.file_ = File::open(path, O_RDONLY);
  text.failed_ = !text.file_.is_open();
  return text;
}

bool Text::has_more() {
  if (at_ < held_.size()) return true;
  if (!file_.is_open()) return false;
  held_.resize(part_bytes);
  ssize_t got = -1;
  do {
    got = read(file_.descriptor(), held_.data(), held_.size());
  } while (got < 0 && errno == EINTR);
  held_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  at_ = 0;
  return !held_.empty();
}

void Text::skip_space() {
  while (has_more() && is_space(held_[at_])) ++at_;
}

bool Text::line(std::string& line, char end) {
  line.clear();
  failed_ = failed_ || !has_more();
  while (!failed_ && has_more()) {
    const auto stop = held_.find(end, at_);
    line.append(held_, at_, stop == std::string::npos ? stop : stop - at_);
    at_ = stop == std::string::npos ? held_.size() : stop + 1;
    if (stop != std::string::npos) break;
  }
  return !failed_;
}

Text& Text::operator>>(std::string& word) {
  if (failed_) return *this;
  word.clear();
  skip_space();
  while (has_more() && !is_space(held_[at_])) word += held_[at_++];
  failed_ = word.empty();
  return *this;
}

std::string Text::take_digits() {
  skip_space();
  std::string digits;
  if (has_more() && held_[at_] == '-') digits += held_[at_++];
  while (has_more() && held_[at_] >= '0' && held_[at_] <= '9') digits += held_[at_++];
  return digits;
}

std::string first_line(const std::filesystem::path& path) {
  std::string line;
  Text::of_file(path).line(line);
  return line;
}

}  // namespace latenz::probe
