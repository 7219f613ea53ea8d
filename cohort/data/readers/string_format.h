// StringFormat: a format of files whose elements are strings, one after another.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cohort/data/description.h"
#include "cohort/data/readers/compression.h"
#include "cohort/data/readers/file_format.h"

namespace cohort::data {

// The FileFormat that opens a file as Reader(path, compression). `Reader` is a FileReader.
template <typename Reader>
class StringFormat : public FileFormat {
 public:
  StringFormat(std::string kind, Compression compression) : kind_(std::move(kind)), compression_(compression) {}
  std::string kind() const override { return kind_; }
  std::string Parameters() const override { return std::string(CompressionName(compression_)); }
  const ElementSpec& spec() const override { return spec_; }
  std::unique_ptr<FileReader> Open(const std::string& path) const override {
    return std::make_unique<Reader>(path, compression_);
  }
  void Write(DescriptionWriter* out) const override { out->Int(static_cast<int64_t>(compression_)); }

 private:
  const std::string kind_;
  const Compression compression_;
  const ElementSpec spec_{{DType::kString, Shape()}};
};

}  // namespace cohort::data
