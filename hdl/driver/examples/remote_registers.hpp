// SPDX-License-Identifier: Apache-2.0
// Registers of a simulated board, or of a board that runs latenz-ip-bridge, for a program under
// Linux (docs/ip.md has the frames). What goes wrong is a std::runtime_error.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>

#include "latenz/ip/register_access.hpp"

namespace latenz::ip {

/// A connection to a board.
class RemoteBoard {
 public:
  enum class Operation : std::uint8_t { read = 1, write = 2, wait = 3 };

  /// @param place path of a Unix socket, or IPv4 address and port: 127.0.0.1:7421
  explicit RemoteBoard(const std::string& place) {
    const std::size_t colon = place.rfind(':');
    colon == std::string::npos ? connect_unix(place)
                               : connect_tcp(place.substr(0, colon), place.substr(colon + 1));
  }
  RemoteBoard(const RemoteBoard&) = delete;
  RemoteBoard& operator=(const RemoteBoard&) = delete;
  ~RemoteBoard() { close(socket_); }

  /// Lets clock cycles pass.
  void wait(std::uint32_t cycles) { static_cast<void>(ask(Operation::wait, 0, cycles, 0)); }

  /// One access; returns the word that was read.
  std::uint32_t ask(Operation operation, std::uint8_t window, std::uint32_t argument,
                    std::uint32_t value) {
    const bool writes = operation == Operation::write;
    const bool reads = operation == Operation::read;
    const auto kind = static_cast<std::uint32_t>(operation);
    // operation, window, count of words: the first four bytes
    const std::array<std::uint32_t, 3> request{
        kind | std::uint32_t{window} << 8U | (reads || writes ? 1U << 16U : 0U), argument, value};
    exchange(request.data(), writes ? 12 : 8, true);
    std::array<std::uint32_t, 2> response{};
    exchange(response.data(), 8, false);
    const std::uint32_t status = response[0] & 0xFFU;
    if (status != 0) {
      throw std::runtime_error("the board answers access " + std::to_string(kind) + " of window " +
                               std::to_string(window) + " at " + std::to_string(argument) +
                               " with status " + std::to_string(status));
    }
    std::uint32_t word = 0;
    if (reads) exchange(&word, 4, false);
    return word;
  }

 private:
  static_assert(std::endian::native == std::endian::little, "words go out as they are");

  [[noreturn]] static void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
  }

  void connect_unix(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) throw std::runtime_error(path + ": is too long");
    std::memcpy(address.sun_path, path.c_str(), path.size());
    connect_to(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address, path);
  }

  void connect_tcp(const std::string& host, const std::string& port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    std::uint16_t number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc() || end != port.data() + port.size() ||
        inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
      throw std::runtime_error(host + ":" + port + ": is not an IPv4 address and port");
    }
    address.sin_port = htons(number);
    connect_to(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address, host);
  }

  void connect_to(int family, const sockaddr* address, socklen_t size, const std::string& name) {
    socket_ = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || connect(socket_, address, size) != 0) fail(name);
  }

  void exchange(void* words, std::size_t size, bool out) const {
    auto* at = static_cast<char*>(words);
    while (size > 0) {
      const ssize_t done = out ? send(socket_, at, size, MSG_NOSIGNAL) : recv(socket_, at, size, 0);
      if (done < 0) fail("the board");
      if (done == 0) throw std::runtime_error("the board has closed the connection");
      at += done;
      size -= static_cast<std::size_t>(done);
    }
  }

  void exchange(const void* words, std::size_t size, bool out) const {
    exchange(const_cast<void*>(words), size, out);
  }

  int socket_ = -1;
};

/// One window of a board, for the drivers.
class RemoteRegisters {
 public:
  RemoteRegisters(RemoteBoard& board, std::uint8_t window) : board_(&board), window_(window) {}

  [[nodiscard]] std::uint32_t read(std::uint32_t offset) const {
    return board_->ask(RemoteBoard::Operation::read, window_, offset, 0);
  }

  void write(std::uint32_t offset, std::uint32_t value) const {
    static_cast<void>(board_->ask(RemoteBoard::Operation::write, window_, offset, value));
  }

 private:
  RemoteBoard* board_;
  std::uint8_t window_;
};

static_assert(RegisterAccess<RemoteRegisters>);

}  // namespace latenz::ip
