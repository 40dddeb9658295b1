// SPDX-License-Identifier: Apache-2.0
// Looking at the target's files for the other side. Each takes the fields of a request and gives
// those of the reply; what is wrong with a request throws `probe::Failure`.
#pragma once

#include <map>
#include <string>

#include "message.hpp"

namespace latenz::agent {

/// LIMIT PATH...: for each path errno and content; files larger than LIMIT are EFBIG.
[[nodiscard]] Fields read_files(const Fields& fields);

/// LIMIT PATTERN...: for each regular file that matches its path, errno and content.
[[nodiscard]] Fields read_matching(const Fields& fields);

/// PATH...: for each errno and st_mode of what lies there, a link as such.
[[nodiscard]] Fields modes(const Fields& fields);

/// PATH: errno, then each name in the folder, its st_mode's type and what it says if it is a link.
[[nodiscard]] Fields names(const Fields& fields);

/// PATH: errno and what the symbolic link says.
[[nodiscard]] Fields link_target(const Fields& fields);

/// PATH MODE: errno of access(2).
[[nodiscard]] Fields access_of(const Fields& fields);

/// NAME: the program's path, or no field.
[[nodiscard]] Fields find_program(const Fields& fields);

/// Hands over what grows in a folder, and gives back the memory of what has arrived.
class Mirror {
 public:
  explicit Mirror(std::string home) : home_(std::move(home)) {}

  /// FOLDER BUDGET, then NAME VERSION OFFSET for each file that the other side has. Reply: "1" if
  /// BUDGET bytes were not enough, then for each file with news NAME VERSION OFFSET SIZE DATA. The
  /// version changes when a file is replaced by another.
  [[nodiscard]] Fields news(const Fields& fields);

 private:
  struct Known {
    std::string version;
    std::int64_t offset = 0;
  };

  void add_news(const std::string& folder, const std::string& name, const Known& known,
                std::size_t& budget, Fields& reply);
  void give_back(int descriptor, const std::string& name, std::int64_t offset);

  std::string home_;
  std::map<std::string, std::int64_t> given_back_;
};

/// A path below the home; throws `probe::Failure` if it would lead out of it.
[[nodiscard]] std::string below(const std::string& home, const std::string& name);

}  // namespace latenz::agent
