// SPDX-License-Identifier: Apache-2.0
#include "ip_bridge_secret.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "failure.hpp"
#include "file.hpp"
#include "wording.hpp"

namespace latenz::probe {
namespace {

constexpr std::size_t shortest = 32;
constexpr std::size_t longest = 4096;

void append(std::vector<std::byte>& bytes, std::span<const std::byte> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

}  // namespace

std::vector<std::byte> read_bridge_secret(const std::filesystem::path& path) {
  const auto refuse = [&path](std::string_view what) {
    throw Failure(worded("--secret ", path.string(), ": ", what));
  };
  const File file = File::open_input(path);
  struct stat status{};
  if (fstat(file.descriptor(), &status) != 0 || status.st_uid != geteuid() ||
      (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    refuse("others may read it, or own it; make it yours alone, by chown and chmod 600");
  }
  std::string text;
  if (std::cmp_greater(status.st_size, longest) || !read_again(file, text)) {
    refuse(worded("cannot be read, or has more than ", longest, " bytes"));
  }
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (text.size() < shortest) {
    refuse(worded("has fewer than ", shortest,
                  " characters; write random ones, such as those of: ", "openssl rand -hex 32"));
  }
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::optional<BridgeNonce> BridgeHandshake::challenge() {
  if (nonce_) return std::nullopt;
  BridgeNonce nonce{};
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    throw Failure(worded("no random number can be had: ", std::strerror(errno)));
  }
  nonce_ = nonce;
  return nonce_;
}

std::optional<Digest> BridgeHandshake::answer(std::span<const std::byte> numbers) {
  constexpr std::size_t half = sizeof(BridgeNonce);
  if (!nonce_ || is_done_ || numbers.size() != 2 * half) return std::nullopt;
  const auto client = numbers.first(half);
  if (!same_digest(numbers.last(half), proof("client", client))) return std::nullopt;
  is_done_ = true;
  return proof("board", client);
}

/// Who proves is part of it: neither side can send the other's proof back.
Digest BridgeHandshake::proof(std::string_view who, std::span<const std::byte> client) const {
  constexpr std::string_view name = "latenz-ip-bridge 1 ";
  std::vector<std::byte> message;
  append(message, std::as_bytes(std::span(name)));
  append(message, std::as_bytes(std::span(who)));
  append(message, nonce_.value_or(BridgeNonce{}));
  append(message, client);
  return hmac_sha256(secret_, message);
}

}  // namespace latenz::probe
