// train::Example: builds a tf.train.Example, the record that TensorFlow's programs keep in TFRecord files.
//
//   data::TFRecordWriter writer("train.tfrecord", {.compression = data::Compression::kGzip});
//   train::Example example;
//   example.BytesList("image_raw", {pixels}).Int64List("label", {3});
//   writer.Write(example.SerializeToString());
//   writer.Close();
//
// data::ParseExampleDataset reads such records.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "cohort/core/export.h"

namespace cohort::train {

// Features by name; a feature is a list of one type. A value: cheap to move. Not thread-safe.
class COHORT_EXPORT Example {
 public:
  // Set a feature, and replace one of this name.
  Example& Int64List(const std::string& name, std::vector<int64_t> values);
  Example& FloatList(const std::string& name, std::vector<float> values);
  Example& BytesList(const std::string& name, std::vector<std::string> values);
  // Returns the message as bytes. Equal examples give equal bytes: the features are in the order of their names.
  std::string SerializeToString() const;

 private:
  using Values = std::variant<std::vector<int64_t>, std::vector<float>, std::vector<std::string>>;
  std::map<std::string, Values> features_;
};

}  // namespace cohort::train
