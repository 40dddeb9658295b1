// SPDX-License-Identifier: Apache-2.0
// Where the agent's programs write: in memory, and nothing of it outlives the agent.
#pragma once

#include <string>

#include "file.hpp"

namespace latenz::agent {

/// Gone with the last process that has it open, if the kernel lets us mount; else a folder that
/// `remove` and the agent's janitor remove.
class Home {
 public:
  /// `begun`: the folder that was made for the agent's program. Throws `probe::Failure` if nothing
  /// can be written there.
  explicit Home(const std::string& begun);

  /// How this process and its children get there, while this process lives.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Whether it needs to be removed by name.
  [[nodiscard]] bool is_folder() const { return !folder_.empty(); }
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  bool mount_memory(const std::string& begun);

  probe::File root_;
  std::string path_;
  std::string folder_;
};

/// Removes a folder with everything in it; follows no links.
void remove_folder(const std::string& folder);

}  // namespace latenz::agent
