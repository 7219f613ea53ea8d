#pragma once

#include <string_view>

namespace cohort::data {

// Of a whole file: TensorFlow's compression types "", "GZIP" and "ZLIB".
enum class Compression { kNone, kGzip, kZlib };

inline std::string_view CompressionName(Compression compression) {
  return compression == Compression::kGzip ? "GZIP" : compression == Compression::kZlib ? "ZLIB" : "";
}

}  // namespace cohort::data
