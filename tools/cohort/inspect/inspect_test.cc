// Tests `cohort inspect` on checkpoints, event files, TFRecord files and other files, which the tests write. Some are
// damaged. The tests check the output, the problems and the exit code.
#include "tools/cohort/inspect/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/file.h"
#include "cohort/core/record_io.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/proto/checkpoint.pb.h"
#include "cohort/proto/example.pb.h"
#include "cohort/proto/saved_model.pb.h"
#include "cohort/summary/event_writer.h"

namespace cohort::tools {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

void Put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

struct Result {
  int code;
  std::string out;
  std::string err;
};

Result Inspected(const std::string& path, InspectOptions options = {}) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = Inspect(path, options, out, err);
  return {code, out.str(), err.str()};
}

std::string SaveCheckpoint(const std::string& prefix) {
  BundleWriter writer(prefix);
  writer.Add("dense/kernel", Tensor::FromValues<float>({1, 2, 3, 4, 5, 6}, Shape{2, 3}));
  writer.Add("name", Tensor::Scalar("a\nb"));
  const Shape full{4};
  writer.AddSlice("v", full, TensorSlice::Rows(full, 0, 3), Tensor::Vector<int32_t>({1, 2, 3}));
  writer.AddSlice("v", full, TensorSlice::Rows(full, 3, 1), Tensor::Vector<int32_t>({4}));
  writer.Finish();
  return prefix;
}

TEST(InspectTest, CheckpointByAnyOfItsNames) {
  const testing::TempFolder folder;
  const std::string prefix = SaveCheckpoint(folder / "model.ckpt-7");
  for (const std::string& path : {prefix, prefix + ".index", prefix + ".data-00000-of-00001", folder.path()}) {
    const Result result = Inspected(path);
    EXPECT_EQ(result.code, 0) << path << ": " << result.err;
    EXPECT_THAT(result.out, HasSubstr("checkpoint " + prefix + ": 3 tensors, 48 bytes in 1 shard\n"));
    EXPECT_THAT(result.out, ContainsRegex("dense/kernel +float32 +\\[2,3\\] +24 +0 +0 +0x[0-9a-f]+\n"));
    EXPECT_THAT(result.out, ContainsRegex("v +int32 +\\[4\\] +16 +2 parts"));
    EXPECT_THAT(result.out, ContainsRegex("\n  3,1 +\\[1\\] +4 +0 "));
  }
}

// As TensorFlow 2 writes it: the tensors are called by the way to their objects.
void SaveObjects(const std::string& prefix) {
  proto::TrackableObjectGraph objects;
  auto* tensor = objects.add_nodes()->add_attributes();
  tensor->set_full_name("dense/kernel");
  tensor->set_checkpoint_key("variables/0/.ATTRIBUTES/VARIABLE_VALUE");
  BundleWriter writer(prefix);
  writer.Add("_CHECKPOINTABLE_OBJECT_GRAPH", Tensor::Scalar(objects.SerializeAsString()));
  writer.Add("variables/0/.ATTRIBUTES/VARIABLE_VALUE", Tensor::Vector<float>({1, 2}));
  writer.Finish();
}

TEST(InspectTest, CheckpointOfObjectsNamesVariables) {
  const testing::TempFolder folder;
  SaveObjects(folder / "m");
  const Result result = Inspected(folder / "m");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, ContainsRegex("crc32c +variable\n"));
  EXPECT_THAT(result.out, ContainsRegex("variables/0/.ATTRIBUTES/VARIABLE_VALUE +float32 .* +dense/kernel\n"));
}

TEST(InspectTest, SavedModel) {
  const testing::TempFolder folder;
  fs::create_directory(folder / "variables");
  SaveObjects(folder / "variables/variables");
  proto::SavedModel model;
  proto::MetaGraphDef* meta = model.add_meta_graphs();
  meta->mutable_meta_info_def()->add_tags("serve");
  meta->mutable_meta_info_def()->set_tensorflow_version("2.15.1");
  meta->mutable_graph_def()->add_node()->set_op("Placeholder");
  meta->mutable_graph_def()->mutable_library()->add_function()->add_node_def()->set_op("Relu");
  proto::SignatureDef& signature = (*meta->mutable_signature_def())["serving_default"];
  proto::TensorInfo& x = (*signature.mutable_inputs())["x"];
  x.set_name("serving_default_x:0");
  x.set_dtype(proto::DT_FLOAT);
  x.mutable_tensor_shape()->add_dim()->set_size(-1);
  (*signature.mutable_outputs())["y"].mutable_tensor_shape()->set_unknown_rank(true);
  (*meta->mutable_signature_def())["__saved_model_init_op"].set_method_name("");
  Put(folder / "saved_model.pb", model.SerializeAsString());
  const Result result = Inspected(folder.path());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("SavedModel " + folder.path() + ": 1 graph\n"),
                                HasSubstr("graph {serve}, written by TensorFlow 2.15.1: 1 nodes, 1 functions, 2 ops\n"),
                                HasSubstr("variables/variables: 2 tensors"), Not(HasSubstr("init_op"))));
  EXPECT_THAT(result.out, ContainsRegex("serving_default +input +x +float32 +\\[\\?\\] +serving_default_x:0\n"));
  EXPECT_EQ(Inspected(folder / "saved_model.pb").out, result.out);
  fs::remove(folder / "variables/variables.index");
  EXPECT_EQ(Inspected(folder.path()).code, 0);  // it has no variables
  meta->mutable_graph_def()->mutable_library()->mutable_function(0)->add_node_def()->set_op("VarHandleOp");
  Put(folder / "saved_model.pb", model.SerializeAsString());
  const Result without = Inspected(folder.path());
  EXPECT_EQ(without.code, 1);
  EXPECT_THAT(without.err, HasSubstr("variables/variables.index is not there"));
  Put(folder / "saved_model.pb", "\x12\xff");
  EXPECT_THAT(Inspected(folder.path()).err, HasSubstr("is damaged"));
}

TEST(InspectTest, CheckpointValuesAndVerification) {
  const testing::TempFolder folder;
  const std::string prefix = SaveCheckpoint(folder / "m");
  InspectOptions options;
  options.values = true;
  options.verify = true;
  options.max_values = 3;
  const Result good = Inspected(prefix, options);
  EXPECT_EQ(good.code, 0);
  EXPECT_THAT(good.out, HasSubstr("float32[2,3] [1, 2, 3, ...]"));
  EXPECT_THAT(good.out, HasSubstr("int32[4] [1, 2, 3, ...]"));
  EXPECT_THAT(good.out, HasSubstr("\"a\\x0ab\""));
  EXPECT_THAT(good.out, ContainsRegex("dense/kernel .* ok\n"));

  const std::string data = prefix + ".data-00000-of-00001";
  std::string bytes = ReadFile(data);
  bytes[5] ^= 1;
  Put(data, bytes);
  EXPECT_EQ(Inspected(prefix).code, 0) << "nobody asked for a verification";
  options.values = false;
  const Result bad = Inspected(prefix, options);
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.out, ContainsRegex("dense/kernel .* BAD\n"));
  EXPECT_THAT(bad.out, ContainsRegex("\nv .* ok\n"));
  EXPECT_THAT(bad.err,
              AllOf(HasSubstr("\"dense/kernel\""), HasSubstr("at offset 0 of " + data), HasSubstr("1 problem\n")));

  Put(data, bytes.substr(0, 40));
  const Result torn = Inspected(prefix);
  EXPECT_EQ(torn.code, 1);
  EXPECT_THAT(torn.err, HasSubstr("at least 48 bytes; it has 40"));
}

TEST(InspectTest, Events) {
  const testing::TempFolder folder;
  EventWriter::Options clock;
  clock.now = [] { return 1.7e9; };
  EventWriter writer(folder.path(), clock);
  writer.Scalar("loss", 0.5f, 3);
  writer.Histogram("w", Tensor::Vector<float>({1, 3}), 4);
  writer.SessionLog(SessionStatus::kCheckpoint, 5, "/dir/m-5");
  writer.Close();
  for (const std::string& path : {writer.path(), folder.path()}) {
    const Result result = Inspected(path);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(": 4 events\n"));
    EXPECT_THAT(result.out, ContainsRegex("3 +2023-11-14T22:13:20Z +loss +0.5\n"));
    EXPECT_THAT(result.out, ContainsRegex("4 .* w +histogram: 2 values in \\[1, 3\\], sum 4\n"));
    EXPECT_THAT(result.out, HasSubstr("session log: CHECKPOINT /dir/m-5"));
  }
  const std::string other_name = folder / "renamed";
  fs::copy_file(writer.path(), other_name);
  EXPECT_THAT(Inspected(other_name).out, HasSubstr("event file"));

  const std::string bytes = ReadFile(writer.path());
  Put(writer.path(), bytes.substr(0, 50));
  EXPECT_EQ(Inspected(writer.path()).code, 1);
  EXPECT_THAT(Inspected(writer.path()).err, HasSubstr("cut off inside the record at offset 40"));
  std::string bad = bytes;
  bad[60] ^= 1;
  Put(writer.path(), bad);
  const Result corrupt = Inspected(writer.path());
  EXPECT_EQ(corrupt.code, 1);
  EXPECT_THAT(corrupt.out, HasSubstr(": 1 event\n"));
  EXPECT_THAT(corrupt.err, HasSubstr("record at offset 40 of " + writer.path()));
}

TEST(InspectTest, Records) {
  const testing::TempFolder folder;
  const std::string path = folder / "data.tfrecord";
  proto::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["label"].mutable_int64_list()->add_value(7);
  features["image"].mutable_bytes_list()->add_value("\x01pixels");
  {
    RecordWriter writer(path);
    writer.Write(example.SerializeAsString());
    writer.Write(example.SerializeAsString());
    writer.Close();
  }
  InspectOptions options;
  options.values = true;
  options.max_values = 1;
  const Result result = Inspected(path, options);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 records of"));
  EXPECT_THAT(result.out, HasSubstr("every record is a tf.Example with"));
  EXPECT_THAT(result.out, ContainsRegex("image +bytes\\[1\\]\n +label +int64\\[1\\]\n"));
  EXPECT_THAT(result.out, HasSubstr("example 0:\n  image: \"\\x01pixels\"\n  label: 7\n"));
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("example 1:")));
  {
    RecordWriter writer(path);
    writer.Write("text");
    writer.Close();
  }
  EXPECT_THAT(Inspected(path).out,
              AllOf(HasSubstr("1 record of 4 to 4 bytes, 4 in all"), HasSubstr("no record is a tf.Example")));
}

TEST(InspectTest, WhatIsNoneOfThem) {
  const testing::TempFolder folder;
  const Result missing = Inspected(folder / "model");
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("neither " + folder / "model nor " + folder / "model.index exists"));
  EXPECT_THAT(Inspected(folder.path()).err, HasSubstr("no checkpoint (*.index), no event file"));
  Put(folder / "text", "this is a long enough line of text\n");
  const Result text = Inspected(folder / "text");
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.err, HasSubstr("no checkpoint, no event file and no TFRecord file"));
  EXPECT_THAT(text.out, IsEmpty());
  Put(folder / "m.keras", std::string("PK\x03\x04\x14\0\0\0\0\0", 10) + std::string(40, 'x'));
  const Result keras = Inspected(folder / "m.keras");
  EXPECT_EQ(keras.code, 1);
  EXPECT_THAT(keras.err, AllOf(HasSubstr("zip archive"), HasSubstr("`unzip -l " + folder / "m.keras" + "`"),
                               HasSubstr("config.json"), ::testing::Not(HasSubstr("crc32c"))));
  Put(folder / "m.weights.h5", "\x89HDF\r\n\x1a\n" + std::string(40, 'x'));
  const Result weights = Inspected(folder / "m.weights.h5");
  EXPECT_EQ(weights.code, 1);
  EXPECT_THAT(weights.err, AllOf(HasSubstr("HDF5"), HasSubstr("`h5ls -r " + folder / "m.weights.h5" + "`"),
                                 ::testing::Not(HasSubstr("crc32c"))));
  Put(folder / "short", "PK");
  EXPECT_THAT(Inspected(folder / "short").err, HasSubstr("cut off"));
  Put(folder / "m.index", "not a table");
  EXPECT_THAT(Inspected(folder / "m.index").err, HasSubstr("truncated"));
}

}  // namespace
}  // namespace cohort::tools
