// SPDX-License-Identifier: Apache-2.0
// What compilers and standard headers expect to find everywhere. Compiled without turning their
// loops into calls of themselves.
#include <cstddef>

extern "C" {

void* memcpy(void* to, const void* from, std::size_t size) {
  auto* target = static_cast<unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  for (std::size_t i = 0; i < size; ++i) target[i] = source[i];
  return to;
}

void* memmove(void* to, const void* from, std::size_t size) {
  auto* target = static_cast<unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  if (target <= source) return memcpy(to, from, size);
  for (std::size_t i = size; i > 0; --i) target[i - 1] = source[i - 1];
  return to;
}

void* memset(void* to, int value, std::size_t size) {
  auto* target = static_cast<unsigned char*>(to);
  for (std::size_t i = 0; i < size; ++i) target[i] = static_cast<unsigned char>(value);
  return to;
}

int memcmp(const void* left, const void* right, std::size_t size) {
  const auto* a = static_cast<const unsigned char*>(left);
  const auto* b = static_cast<const unsigned char*>(right);
  for (std::size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

std::size_t strlen(const char* text) {
  std::size_t length = 0;
  while (text[length] != '\0') ++length;
  return length;
}
}
