// FNV-1a: a hash of 64 bits (G. Fowler, L. C. Noll, K.-P. Vo). Equal bytes give equal hashes in every process.
#pragma once

#include <cstdint>
#include <string_view>

namespace cohort {

inline constexpr uint64_t kFnvBasis = 0xcbf29ce484222325u;

// Returns the hash of `bytes`. To hash a text in pieces, pass the hash of the earlier pieces as `hash`.
inline uint64_t Fnv1a(std::string_view bytes, uint64_t hash = kFnvBasis) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace cohort
