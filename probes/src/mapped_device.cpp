// SPDX-License-Identifier: Apache-2.0
#include "mapped_device.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <utility>

#include "failure.hpp"
#include "file.hpp"
#include "wording.hpp"

namespace latenz::probe {
namespace {

// Only a jump leaves an access that never completes.
sigjmp_buf before_access;
volatile std::sig_atomic_t accessing = 0;

extern "C" void leave_access(int number) {
  if (accessing == 0) {  // not ours: as without this handler
    static_cast<void>(std::signal(number, SIG_DFL));
    static_cast<void>(std::raise(number));
    return;
  }
  siglongjmp(before_access, 1);  // NOLINT(cert-err52-cpp): there is no other way out
}

void catch_bus_errors() {
  struct sigaction action{};
  action.sa_handler = leave_access;
  action.sa_flags =
      SA_NODEFER;  // the jump does not restore the mask: that would be a call an access
  if (sigaction(SIGBUS, &action, nullptr) != 0) {
    throw Failure(worded("SIGBUS cannot be caught: ", std::strerror(errno)));
  }
}

/// Makes one access; false if the bus answered it with an error.
template <typename Access>
bool succeeds(Access access) {
  if (sigsetjmp(before_access, 0) != 0) {  // NOLINT(cert-err52-cpp): see leave_access
    accessing = 0;
    return false;
  }
  accessing = 1;
  access();
  accessing = 0;
  return true;
}

}  // namespace

MappedDevice::MappedDevice(const std::filesystem::path& device, const Map& map) : map_(map) {
  const File file = File::open(device, O_RDWR | O_SYNC);
  if (file.is_open()) {
    pages_ = mmap(nullptr, map.size + map.offset, PROT_READ | PROT_WRITE, MAP_SHARED,
                  file.descriptor(), static_cast<off_t>(map.number) * sysconf(_SC_PAGESIZE));
  }
  if (pages_ == MAP_FAILED) {
    throw Failure(worded(device.string(), ": its registers cannot be had: ", std::strerror(errno),
                         "; this needs root, or the right to open the device"));
  }
  catch_bus_errors();
}

MappedDevice::MappedDevice(MappedDevice&& other) noexcept
    : pages_(std::exchange(other.pages_, MAP_FAILED)), map_(other.map_) {}

MappedDevice::~MappedDevice() {
  if (pages_ != MAP_FAILED) munmap(pages_, map_.size + map_.offset);
}

volatile std::uint32_t* MappedDevice::word(std::size_t offset) const {
  return reinterpret_cast<volatile std::uint32_t*>(static_cast<std::byte*>(pages_) + map_.offset +
                                                   offset);
}

std::optional<std::uint32_t> MappedDevice::read(std::size_t offset) const {
  volatile std::uint32_t value = 0;
  if (!succeeds([&] { value = *word(offset); })) return std::nullopt;
  return value;
}

bool MappedDevice::write(std::size_t offset, std::uint32_t value) const {
  return succeeds([&] { *word(offset) = value; });
}

}  // namespace latenz::probe
