// Algorithm: one of the ways in which a library of the vendor computes a product or a convolution.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace cohort::cuda {

// The words mean something to the library that has made them, in the version that has made them.
struct Algorithm {
  std::array<uint64_t, 8> words{};
  size_t workspace = 0;  // how many bytes of scratch memory it needs for the call for which it was made
};

// A library, for tables of algorithms. Neither text has spaces.
struct LibraryName {
  std::string name;     // "cuDNN"
  std::string version;  // "9.2.0"
};

}  // namespace cohort::cuda
