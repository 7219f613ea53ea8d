// FNV-1a, 64 bits (G. Fowler, L. C. Noll, K.-P. Vo): the same number for the same bytes in every process.
#pragma once

#include <cstdint>
#include <string_view>

namespace cohort {

inline constexpr uint64_t kFnvBasis = 0xcbf29ce484222325u;

// `hash`: of the bytes before these.
inline uint64_t Fnv1a(std::string_view bytes, uint64_t hash = kFnvBasis) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace cohort
