// SPDX-License-Identifier: Apache-2.0
// Hands the files of some folders to a target, so that seeds and findings are tests everywhere.
//
//   replay-TARGET FOLDER...
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <vector>

#include "target.hpp"

int main(int count, char** arguments) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  for (const char* const folder :
       std::span(arguments, static_cast<std::size_t>(count)).subspan(1)) {
    if (fs::is_directory(folder)) {
      std::ranges::copy(fs::directory_iterator(folder), std::back_inserter(paths));
    }
  }
  std::ranges::sort(paths);
  for (const fs::path& path : paths) {
    static_cast<void>(std::fprintf(stderr, "%s\n", path.c_str()));
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> content(std::istreambuf_iterator<char>(file), {});
    latenz::fuzz::read_input(
        {reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
  }
  return paths.empty() ? 1 : 0;
}
