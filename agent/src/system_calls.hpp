// SPDX-License-Identifier: Apache-2.0
// The system calls that the other side changes this machine with.
#pragma once

#include <cstdint>

#include "file.hpp"
#include "message.hpp"

namespace latenz::agent {

/// Makes each call once, however often it is asked for it: the other side asks again if the link
/// was cut before the answer came.
class SystemCalls {
 public:
  /// NUMBER NAME ARGUMENT...: errno, then what the call gives. Throws `probe::Failure` if there is
  /// no such call, or its arguments are none.
  ///
  ///     real PATH FOLLOW                 where its links lead; the last one on demand (0, 1)
  ///     status PATH                      mode, links, uid, gid, time of its content in ns
  ///     link PATH                        what a symbolic link says
  ///     names PATH                       the names in a folder
  ///     attributes PATH                  name and value of each extended attribute
  ///     put PATH PARTIAL CONTENT MODE UID GID TIME EXACT [NAME VALUE]...
  ///                                      makes it by way of PARTIAL; empty: as the kernel has it;
  ///                                      EXACT 1: these attributes and no others
  ///     new PATH CONTENT ROOM            a file for root alone, with room for more
  ///     at PATH OFFSET CONTENT           writes into a file
  ///     value PATH VALUE                 writes a value of the kernel
  ///     folder PATH MODE                 makes one, if there is none
  ///     mode PATH MODE, remove PATH, remove_folder PATH, rename PATH TO, sync FOLDER
  ///     point PATH PARTIAL TARGET        makes a symbolic link by way of PARTIAL
  ///     lock FOLDER, unlock              keeps others from locking it
  ///     scheduling TID                   CPUs, policy, priority
  ///     schedule TID POLICY PRIORITY, allow TID CPUS
  [[nodiscard]] Fields call(const Fields& fields);

 private:
  [[nodiscard]] Fields make(const Fields& fields);
  [[nodiscard]] int lock(const std::string& folder);

  std::int64_t made_ = 0;
  Fields answer_;
  probe::File lock_;
};

}  // namespace latenz::agent
