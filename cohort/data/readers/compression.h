#pragma once

#include <string_view>

namespace cohort::data {

// How a whole file is compressed. TensorFlow's names of these types are "", "GZIP" and "ZLIB".
enum class Compression { kNone, kGzip, kZlib };

inline std::string_view CompressionName(Compression compression) {
  return compression == Compression::kGzip ? "GZIP" : compression == Compression::kZlib ? "ZLIB" : "";
}

}  // namespace cohort::data
