#include "cohort/data/example.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include "cohort/proto/example.pb.h"

namespace cohort::train {
namespace {

void Fill(const std::vector<int64_t>& values, proto::Feature& to) {
  to.mutable_int64_list()->mutable_value()->Add(values.begin(), values.end());
}
void Fill(const std::vector<float>& values, proto::Feature& to) {
  to.mutable_float_list()->mutable_value()->Add(values.begin(), values.end());
}
void Fill(const std::vector<std::string>& values, proto::Feature& to) {
  proto::BytesList& list = *to.mutable_bytes_list();
  for (const std::string& value : values) list.add_value(value);
}

}  // namespace

Example& Example::Int64List(const std::string& name, std::vector<int64_t> values) {
  features_.insert_or_assign(name, std::move(values));
  return *this;
}
Example& Example::FloatList(const std::string& name, std::vector<float> values) {
  features_.insert_or_assign(name, std::move(values));
  return *this;
}
Example& Example::BytesList(const std::string& name, std::vector<std::string> values) {
  features_.insert_or_assign(name, std::move(values));
  return *this;
}

std::string Example::SerializeToString() const {
  proto::Example message;
  auto& features = *message.mutable_features()->mutable_feature();
  for (const auto& [name, values] : features_) {
    proto::Feature& feature = features[name];
    std::visit([&feature](const auto& list) { Fill(list, feature); }, values);
  }
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    if (!message.SerializeToCodedStream(&coded)) {
      throw InvalidArgumentError("[example] expected a tf.train.Example of less than 2 GiB; got a larger one");
    }
  }
  return bytes;
}

}  // namespace cohort::train
