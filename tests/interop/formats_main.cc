// Writes files for the Python tests, which read them with TensorFlow. Reads TensorFlow's files, and prints their
// contents as JSON. Each command is one function below; main() finds it by name.
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/images/image_file.h"
#include "cohort/core/record_io.h"
#include "cohort/proto/graph.pb.h"
#include "cohort/summary/event_reader.h"
#include "cohort/summary/event_writer.h"
#include "cohort/summary/summary.h"

namespace cohort {
namespace {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

template <typename T>
Tensor Counting(const Shape& shape) {
  Tensor tensor(kDTypeOf<T>, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.data<T>()[i] = T(static_cast<float>(i));
  return tensor;
}

// Writes the tensors that test_checkpoint.py expects.
void WriteTensors(BundleWriter* writer) {
  writer->Add("bfloat16", Counting<bfloat16>(Shape{2, 3}));
  writer->Add("bool", Tensor::FromValues<bool>({true, false, true}, Shape{3}));
  writer->Add("dense/bias", Counting<float>(Shape{4}));
  writer->Add("dense/kernel", Counting<float>(Shape{3, 4}));
  writer->Add("empty", Tensor(DType::kFloat32, Shape{0, 3}));
  writer->Add("float64", Counting<double>(Shape{2, 2}));
  writer->Add("global_step", Tensor::Scalar(int64_t{1234567890123}));
  writer->Add("int32", Counting<int32_t>(Shape{5}));
  const Shape large{700, 1000};  // 2.8 MB, so several chunks
  const Tensor values = Counting<float>(large);
  size_t at = 0;
  writer->Append("large", DType::kFloat32, large, [&](std::span<char> out) {
    std::memcpy(out.data(), static_cast<const char*>(values.raw_data()) + at, out.size());
    at += out.size();
  });
  writer->Add("strings",
              Tensor::FromValues<std::string>({"a", "", std::string(300, 'x'), std::string("\0\xff", 2)}, Shape{2, 2}));
  writer->Add("strings/none", Tensor(DType::kString, Shape{0}));
  writer->Add("strings/one", Tensor::Scalar("hi"));
  writer->Add("uint8", Counting<uint8_t>(Shape{256}));
}

void WritePartitioned(BundleWriter* writer) {
  const Shape full{10, 3};
  const Tensor all = Counting<float>(full);
  writer->AddSlice("partitioned", full, TensorSlice::Rows(full, 0, 4), all.Slice(0, 4));
  writer->AddSlice("partitioned", full, TensorSlice::Rows(full, 4, 3), all.Slice(4, 7));
  writer->AddSlice("partitioned", full, TensorSlice::Rows(full, 7, 3), all.Slice(7, 10));
}

// write-checkpoint PREFIX: writes one shard and the state file.
void WriteCheckpoint(const Arguments& arguments) {
  BundleWriter writer(arguments.at(0));
  WriteTensors(&writer);
  WritePartitioned(&writer);
  writer.Finish();
  CheckpointState state;
  state.model_checkpoint_path = arguments.at(0);
  WriteCheckpointState(DirectoryOf(arguments.at(0)), state, /*relative_paths=*/true);
}

// write-plain PREFIX: writes a checkpoint without partitioned tensors.
void WritePlain(const Arguments& arguments) {
  BundleWriter writer(arguments.at(0));
  WriteTensors(&writer);
  writer.Finish();
}

// write-sharded PREFIX: writes three parts and merges them.
void WriteSharded(const Arguments& arguments) {
  const std::string& prefix = arguments.at(0);
  const Shape full{10, 3};
  const Tensor all = Counting<float>(full);
  std::vector<std::string> parts;
  for (int i = 0; i < 2; ++i) {
    parts.push_back(prefix + "_temp/part-" + std::to_string(i));
    BundleWriter writer(parts.back());
    writer.AddSlice("partitioned", full, TensorSlice::Rows(full, 5 * i, 5), all.Slice(5 * i, 5 * i + 5));
    writer.Finish();
  }
  parts.push_back(prefix + "_temp/part-2");
  BundleWriter writer(parts.back());
  WriteTensors(&writer);
  writer.Finish();
  MergeBundles(parts, prefix);
}

// dump-checkpoint PREFIX: prints {name: {dtype, shape, data: hex or [hex], parts, shard}}.
void DumpCheckpoint(const Arguments& arguments) {
  const BundleReader reader(arguments.at(0));
  reader.CheckFiles();
  Json all = Json::object();
  for (const auto& [name, entry] : reader.tensors()) {
    reader.Verify(name);
    Json& one = all[name];
    one["dtype"] = entry.dtype_name();
    one["shape"] = std::vector<int64_t>(entry.shape.dims().begin(), entry.shape.dims().end());
    one["parts"] = entry.slices.size();
    one["shards"] = reader.num_shards();
    if (entry.dtype() == DType::kInvalid) continue;
    const Tensor tensor = reader.Read(name);
    if (tensor.dtype() == DType::kString) {
      one["data"] = Json::array();
      for (const std::string& text : tensor.values<std::string>()) one["data"].push_back(Hex(text));
    } else {
      one["data"] = Hex({static_cast<const char*>(tensor.raw_data()), tensor.bytes()});
    }
  }
  std::cout << all.dump() << "\n";
}

// latest DIR: prints the prefix of the newest checkpoint.
void Latest(const Arguments& arguments) { std::cout << Json(LatestCheckpoint(arguments.at(0))).dump() << "\n"; }

// write-events DIR: writes an event file and prints its path.
void WriteEvents(const Arguments& arguments) {
  proto::GraphDef graph;
  proto::NodeDef* node = graph.add_node();
  node->set_name("weights");
  node->set_op("VariableV2");
  node->set_device("/job:ps/task:0");
  (*node->mutable_attr())["dtype"].set_type(proto::DT_FLOAT);
  EventWriter writer(arguments.at(0));
  writer.SessionLog(SessionStatus::kStart, 1);
  writer.Graph(graph.SerializeAsString());
  for (int step = 1; step <= 3; ++step) {
    writer.Scalar("loss", 1.0f / static_cast<float>(step), step);
    writer.Histogram("weights", Tensor::Vector<float>({-1, 0, 0.5f, static_cast<float>(step)}), step);
  }
  writer.Close();
  std::cout << Json(writer.path()).dump() << "\n";
}

// histogram VALUE...: prints the hex of a serialized Summary with tag "h".
void HistogramBytes(const Arguments& arguments) {
  std::vector<double> values;
  for (const std::string& text : arguments) values.push_back(std::stod(text));
  std::cout << Json(Hex(HistogramSummary("h", Tensor::Vector<double>(values)))).dump() << "\n";
}

// dump-events FILE: prints [{step, kind, values: [{tag, kind, scalar, num, text}]}].
void DumpEvents(const Arguments& arguments) {
  EventReader reader(arguments.at(0));
  Json all = Json::array();
  Event event;
  while (reader.Read(&event) == RecordReader::Outcome::kRecord) {
    Json one = {{"step", event.step}, {"kind", static_cast<int>(event.kind)}, {"values", Json::array()}};
    if (event.kind == Event::Kind::kGraph) {
      proto::GraphDef graph;
      one["nodes"] = graph.ParseFromString(event.bytes) ? graph.node_size() : -1;
    }
    for (const SummaryValue& value : event.values) {
      Json item = {{"tag", value.tag}, {"kind", static_cast<int>(value.kind)}};
      if (value.kind == SummaryValue::Kind::kScalar) item["scalar"] = value.scalar;
      if (value.kind == SummaryValue::Kind::kHistogram) item["num"] = value.histogram.num;
      if (value.kind == SummaryValue::Kind::kTensor) item["tensor"] = value.tensor.ToString();
      one["values"].push_back(item);
    }
    all.push_back(one);
  }
  std::cout << all.dump() << "\n";
}

// write-records FILE RECORD...: writes the records.
void WriteRecords(const Arguments& arguments) {
  RecordWriter writer(arguments.at(0));
  for (size_t i = 1; i < arguments.size(); ++i) writer.Write(arguments[i]);
  writer.Close();
}

// dump-records FILE: prints [hex].
void DumpRecords(const Arguments& arguments) {
  RecordReader reader(arguments.at(0));
  Json all = Json::array();
  std::string record;
  while (reader.Read(&record) == RecordReader::Outcome::kRecord) all.push_back(Hex(record));
  std::cout << all.dump() << "\n";
}

// images DIR VALUE...: writes an event file with images of 3 x 4 pixels of three colours.
void WriteImages(const Arguments& arguments) {
  std::vector<float> values;
  for (size_t i = 1; i < arguments.size(); ++i) values.push_back(std::stof(arguments[i]));
  const auto images = static_cast<int64_t>(values.size()) / 36;
  EventWriter writer(arguments.at(0));
  writer.Images("pictures", Tensor::FromValues(values, Shape{images, 3, 4, 3}), 1);
  writer.Close();
  std::cout << Json(writer.path()).dump() << "\n";
}

// decode-image FILE: prints shape and pixels.
void DecodeImageFile(const Arguments& arguments) {
  const Tensor image = images::DecodeImage(ReadFile(arguments.at(0)));
  std::cout
      << Json({{image.shape().dim(0), image.shape().dim(1), image.shape().dim(2)}, image.ToVector<uint8_t>()}).dump()
      << "\n";
}

int Main(const Arguments& arguments) {
  const std::map<std::string, std::function<void(const Arguments&)>> commands = {
      {"write-checkpoint", WriteCheckpoint},
      {"write-plain", WritePlain},
      {"write-sharded", WriteSharded},
      {"dump-checkpoint", DumpCheckpoint},
      {"latest", Latest},
      {"write-events", WriteEvents},
      {"dump-events", DumpEvents},
      {"histogram", HistogramBytes},
      {"images", WriteImages},
      {"decode-image", DecodeImageFile},
      {"write-records", WriteRecords},
      {"dump-records", DumpRecords},
  };
  if (arguments.empty() || !commands.contains(arguments[0])) {
    std::cerr << "usage: interop_formats COMMAND ARGUMENT...\ncommands:";
    for (const auto& [name, command] : commands) std::cerr << " " << name;
    std::cerr << "\n";
    return 2;
  }
  commands.at(arguments[0])(Arguments(arguments.begin() + 1, arguments.end()));
  return 0;
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  try {
    return cohort::Main(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "interop_formats: %s\n", error.what());
    return 1;
  }
}
