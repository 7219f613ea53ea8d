// Writes the first inputs of the fuzz targets with the product's own writers: fuzz_corpus FOLDER. Each target has a
// folder of its own below FOLDER. Inputs with the same name are replaced; others, such as inputs of earlier findings,
// stay.
#include <zlib.h>

#include <filesystem>
#include <iostream>
#include <random>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/cluster/grpc/bulk.h"
#include "cohort/cluster/handshake.h"
#include "cohort/cluster/steps/protocol.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/cohort.h"
#include "cohort/collective/messages.h"
#include "cohort/core/file.h"
#include "cohort/core/images/jpeg.h"
#include "cohort/core/images/png.h"
#include "cohort/core/record_io.h"
#include "cohort/data/readers/idx.h"
#include "cohort/data/serialize.h"
#include "cohort/graph/graph_def.h"
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/weights_file.h"
#include "cohort/proto/example.pb.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

namespace {

std::string g_folder;  // NOLINT: main sets it once

void Put(const std::string& target, const std::string& name, std::string_view bytes) {
  const std::string folder = g_folder + "/" + target;
  CreateDirectories(folder);
  WriteFileAtomically(folder + "/" + name, bytes);
}

std::string WithByte(uint8_t byte, std::string_view bytes) {
  return std::string(1, static_cast<char>(byte)) + std::string(bytes);
}

std::string Packed(std::string_view bytes, int window) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, window, 9, Z_DEFAULT_STRATEGY) != Z_OK) throw InternalError("no deflate");
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
std::string Gzip(std::string_view bytes) { return Packed(bytes, 15 + 16); }
std::string Zlib(std::string_view bytes) { return Packed(bytes, 15); }

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  static_cast<void>(buffer.Dump(&slices));
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// ---- messages ----------------------------------------------------------------------------------------------------

ClusterSpec SomeCluster() { return ClusterSpec({{"ps", {"127.0.0.1:2222"}}, {"worker", {"h1:2222", "[::1]:2223"}}}); }

void MakeClusters() {
  Put("tf_config", "cluster", ClusterToJson(SomeCluster()));
  Put("tf_config", "task",
      R"({"cluster": {"chief": ["h0:1"], "worker": {"3": "h1:2"}}, "task": {"type": "worker", "index": "3"},
          "rpc_layer": "grpc", "environment": "cloud", "session_master": null})");
}

// The inputs of tests/fuzz/hello_fuzzer.cc: messages to an acceptor, messages to a dialer, and a whole handshake.
void MakeHellos() {
  const std::string token = "a token of enough bytes", address = "127.0.0.1:2222";
  TaskIdentity worker{"/job:worker/replica:0/task:0", "h1:2222", 7, 0, kProtocolVersion, "", "host"};
  TaskIdentity ps{"/job:ps/replica:0/task:0", address, 9, 0, kProtocolVersion, ClusterToJson(SomeCluster()), "host"};
  DialerHandshake dialer(token, worker, ps.task, address);
  AcceptorHandshake acceptor(token, [](uint64_t) { return std::nullopt; });
  std::string to_acceptor = WithByte(0, ""), to_dialer = WithByte(1, "");
  fuzz::AppendText(dialer.hello(), &to_acceptor);
  const std::string nonce = acceptor.OnMessage(dialer.hello());
  const std::string proof = dialer.OnMessage(nonce);
  acceptor.OnMessage(proof);
  fuzz::AppendText(proof, &to_acceptor);
  fuzz::AppendText(nonce, &to_dialer);
  for (const std::string& message : acceptor.Welcome(ps, 2222, 3)) fuzz::AppendText(message, &to_dialer);
  Put("hello", "acceptor", to_acceptor);
  Put("hello", "dialer", to_dialer);
  std::string refused = WithByte(1, "");
  fuzz::AppendText(EncodeRefusal(Status(Code::kPermissionDenied, "no")), &refused);
  Put("hello", "refused", refused);
  for (uint8_t damaged = 0; damaged < 6; ++damaged) {
    std::string both =
        WithByte(2, WithByte(damaged, WithByte(5, WithByte(damaged == 5 ? 0 : 1, WithByte(damaged, "")))));
    fuzz::AppendText(worker.task, &both);
    fuzz::AppendText(worker.address, &both);
    fuzz::AppendText(ps.cluster, &both);
    Put("hello", "both_" + std::to_string(damaged), both);
  }
}

std::unique_ptr<Graph> SomeGraph() {
  auto graph = std::make_unique<Graph>();
  const Output x = ops::Placeholder(*graph, DType::kFloat32, Shape{-1, 4}, "x");
  const ops::Variable w(*graph, Tensor::Zeros(DType::kFloat32, Shape{4, 3}), {.name = "w"});
  const Output y = ops::Relu(ops::MatMul(x, w));
  const auto parts = ops::Split(y, 1, 3);
  const Output loss = ops::Mean(ops::Concat(parts, 0));
  const auto gradients = Gradients({loss}, {w});
  w.AssignSub(ToDense(gradients[0]) * 0.1f);
  return graph;
}

std::vector<Message> StepMessages() {
  ExecutableSpec spec;
  spec.key = {77, 3};
  spec.tasks = {"/job:a/replica:0/task:0", "/job:b/replica:0/task:0"};
  spec.edges = {{0, 1, "x:0"}, {1, 0, "y:0"}};
  spec.num_args = 2;
  spec.partitions.push_back({"/job:a/replica:0/task:0/device:CPU:0", SomeGraph()});
  const StepRef ref{{77, 3}, 12};
  StepStats stats;
  stats.dev_stats.push_back({"/job:a/replica:0/task:0/device:CPU:0", {}});
  const Status error(Code::kAborted, "why");
  return {EncodeListDevices(5),
          EncodeDevices(5, {{DeviceName::Parse("/job:a/replica:0/task:0/device:CPU:0"), "CPU", 1 << 20, 9}}),
          EncodeRegister(6, spec),
          EncodeRegistered(6, error),
          EncodeStartStep(ref, StepStart(12, ClosureId{3, 4, 2}), {Tensor::Scalar(1.0f)}),
          EncodeStepDone(ref, Status(), {Tensor::Vector<float>({1, 2})}, stats),
          EncodeValues(ref, {{1, Tensor::Scalar(1.0f)}, {0, Tensor::Scalar(int64_t{3})}}),
          EncodeCancelStep(ref, error),
          EncodeCloseSession(77),
          EncodeResetContainer("box"),
          EncodeTrainingDone(8),
          EncodeTrainingDoneAck(8)};
}

std::vector<Message> CollectiveMessages() {
  using namespace collective;
  CallSignature signature;
  signature.dtype = DType::kFloat32;
  signature.shape = Shape{3, -1};
  const GroupRef group{1, 2};
  const Status error(Code::kUnavailable, "lost");
  JoinMessage join{group, "/job:worker/task:0", "host", {"/job:worker/task:0/device:CPU:0"},
                   {},    Algorithm::kAuto,     {"e"}};
  join.schedule = {{4, "reduce", signature}};
  return {EncodeJoin(join),
          EncodeData({group, {4, 1}, 0, 1, 2, signature, 9}, Tensor::Vector<float>({1, 2, 3})),
          EncodeAbort({group, error}),
          EncodeLeave({group, error}),
          EncodeFarewell({group}),
          EncodeSchedule({group, 0, 1, 9, 10, false, join.schedule})};
}

void MakeMessages() {
  std::vector<Message> all = StepMessages();
  for (Message& message : CollectiveMessages()) all.push_back(std::move(message));
  std::string frames;
  for (const Message& message : all) {
    const std::string kind = std::to_string(message.kind);
    Put("messages", "kind_" + kind,
        WithByte(static_cast<uint8_t>(message.kind),
                 WithByte(static_cast<uint8_t>(message.tensors.size()), message.header)));
    frames.clear();
    fuzz::AppendText(BytesOf(EncodeMessages({message, AfterBulk({3, "late", {}}, 1)})), &frames);
    Put("frames", "kind_" + kind, frames);
  }
  frames.clear();
  BulkSender sender({3, "header", {Tensor::Vector<float>({1, 2, 3}), Tensor::Vector<std::string>({"a", "", "bcd"})}});
  while (!sender.done()) fuzz::AppendText(BytesOf(sender.Next(9)), &frames);
  Put("frames", "bulk", frames);
  frames.clear();
  BulkSender through({3, "header", {Tensor::Vector<int64_t>({1, 2, 3})}});
  const auto window = SendWindow::Make(4096);
  while (!through.done()) {
    fuzz::AppendText(BytesOf(through.NextThrough(*window->Reserve(std::min<size_t>(11, through.left())))), &frames);
  }
  Put("frames", "window", frames);
}

// ---- graphs ------------------------------------------------------------------------------------------------------

// The inputs of tests/fuzz/saved_model_fuzzer.cc that are not of Cohort were written by TensorFlow 2.
void MakeSavedModels() {
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{2}, "x");
  const auto twice = [](Graph&, const std::vector<Output>& in) { return std::vector<Output>{in[0] * 2.0f}; };
  const auto same = [](Graph&, const std::vector<Output>& in) { return std::vector<Output>{ops::Identity(in[0])}; };
  const auto branch = [&](Graph&, const std::vector<Output>& in) {
    return ops::If(ops::Less(ops::Sum(in[0]), 0.0f), {in[0]}, twice, same);
  };
  const Output y = ops::Call(graph, {ops::Call(graph, {x}, twice)[0]}, branch)[0];
  const std::string folder = g_folder + "/saved_model/folder";
  Session session(graph);
  saved_model::SimpleSave(session, folder, {{"x", x}}, {{"y", y}});
  Put("saved_model", "calls", ReadFile(folder + "/saved_model.pb"));
  std::filesystem::remove_all(folder);
}

void MakeGraphs() {
  Put("graph_def", "training", SerializeGraphDef(*SomeGraph(), {.output_shapes = true}));
  Graph branches;
  const Output x = ops::Placeholder(branches, DType::kFloat32, Shape{2}, "x");
  ops::If(
      ops::Placeholder(branches, DType::kBool, Shape(), "p"), {x},
      [](Graph&, const std::vector<Output>& in) { return std::vector<Output>{in[0] * 2.0f}; },
      [](Graph&, const std::vector<Output>& in) { return std::vector<Output>{in[0]}; });
  Put("graph_def", "branches", SerializeGraphDef(branches));
  const Function function("f", {{DType::kFloat32, Shape{-1, 2}, "a"}, {DType::kInt32, Shape(), "b"}},
                          [](Graph&, const std::vector<Output>& in) {
                            return std::vector<Output>{ops::Reshape(in[0], ops::ShapeOf(in[0])), ops::Identity(in[1])};
                          });
  Put("function_def", "two_results", SerializeFunction(function));
  std::mt19937 random(1);
  for (const char* target : {"op_shapes", "kernels"}) {
    for (int i = 0; i < 32; ++i) {
      std::string bytes(96, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random());
      Put(target, "random_" + std::to_string(i), bytes);
    }
  }
  const data::Dataset numbers = data::Dataset::Range(10).Shuffle(4, 3).Repeat(2).Batch(3).Prefetch(1);
  Put("dataset", "numbers", data::Serialize(numbers).description);
  const data::Dataset files =
      data::CsvDataset({std::string("a.csv")}, {{DType::kFloat32, std::nullopt}}, {.header = true});
  Put("dataset", "files",
      data::Serialize(data::Dataset::Zip({files, data::TFRecordDataset({std::string("r")})})).description);
}

// ---- files -------------------------------------------------------------------------------------------------------

std::string CheckpointInput(const std::string& prefix) {
  std::string input = WithByte(0, "");
  fuzz::AppendText(ReadFile(prefix + ".index"), &input);
  return input + ReadFile(prefix + ".data-00000-of-00001");
}

void MakeCheckpoints() {
  const std::string prefix = fuzz::ScratchPath("made");
  BundleWriter writer(prefix);
  writer.Add("weights", Tensor::Vector<float>({1, 2, 3}));
  writer.Add("step", Tensor::Scalar(int64_t{7}));
  writer.Add("names", Tensor::Vector<std::string>({"a", "", "bcd"}));
  const Shape full{4, 2};
  for (int64_t row = 0; row < 4; row += 2) {
    writer.AddSlice("parts", full, TensorSlice::Rows(full, row, 2), Tensor::Zeros(DType::kFloat64, Shape{2, 2}));
  }
  writer.Finish();
  Put("checkpoint", "bundle", CheckpointInput(prefix));
  const BundleIndex index = DecodeIndex(ReadFile(prefix + ".index"), "made");
  const TableEntries table = DecodeTable(ReadFile(prefix + ".index"), "made");
  std::string entries = WithByte(1, WithByte(static_cast<uint8_t>(table.size() - 1), ""));
  for (const auto& [key, value] : table) {
    fuzz::AppendText(key, &entries);
    fuzz::AppendText(value, &entries);
  }
  Put("checkpoint", "entries", entries + ReadFile(prefix + ".data-00000-of-00001"));
  const std::string folder = fuzz::ScratchPath("state");
  CreateDirectories(folder);
  CheckpointState state;
  state.model_checkpoint_path = folder + "/model-7";
  WriteCheckpointState(folder, state, true);
  Put("checkpoint", "state", WithByte(2, ReadFile(folder + "/checkpoint")));
  Put("checkpoint", "slice", WithByte(3, "4 2 2,2:-"));
}

void MakeRecords() {
  proto::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  for (const float value : {1.5f, -2.0f}) features["f"].mutable_float_list()->add_value(value);
  features["i"].mutable_int64_list()->add_value(-3);
  for (const char* text : {"a", "bcd"}) features["s"].mutable_bytes_list()->add_value(text);
  const std::string bytes = example.SerializeAsString();
  Put("example", "all_kinds", bytes);
  std::string records;
  for (const std::string_view payload : {std::string_view(bytes), std::string_view("second"), std::string_view()}) {
    EncodeRecord(payload, &records);
  }
  Put("tf_record", "plain", WithByte(0, records));
  Put("tf_record", "gzip", WithByte(1, Gzip(records)));
  Put("tf_record", "zlib", WithByte(2, Zlib(records)));
  Put("tf_record", "reader", WithByte(3, records));

  const std::string text = "a,b,c\r\n1.5,-3,\"text, \"\"quoted\"\"\"\n,NA,\n";
  for (const int mode : {0, 1, 3, 11, 27})
    Put("csv", "mode_" + std::to_string(mode), WithByte(static_cast<uint8_t>(mode), text));
  Put("csv", "gzip", WithByte(32 + 11, Gzip(text)));
  for (const int mode : {0, 3})
    Put("gzip", "plain_" + std::to_string(mode), WithByte(static_cast<uint8_t>(mode), text));
  for (const int mode : {1, 4})
    Put("gzip", "gzip_" + std::to_string(mode), WithByte(static_cast<uint8_t>(mode), Gzip(text) + Gzip("more\n")));
  for (const int mode : {2, 5})
    Put("gzip", "zlib_" + std::to_string(mode), WithByte(static_cast<uint8_t>(mode), Zlib(text)));

  const std::string path = fuzz::ScratchPath("idx");
  data::WriteIdx(path, Tensor::Zeros(DType::kUint8, Shape{2, 3, 3}));
  Put("idx", "images", ReadFile(path));
  Put("idx", "images_gzip", Gzip(ReadFile(path)));
  data::WriteIdx(path, Tensor::Vector<uint8_t>({1, 2, 3}));
  Put("idx", "labels", ReadFile(path));

  for (const int64_t channels : {1, 3}) {
    const Tensor image = Tensor::Zeros(DType::kUint8, Shape{9, 12, channels});
    Put("image_file", "png_" + std::to_string(channels), images::EncodePng(image));
    Put("image_file", "jpeg_" + std::to_string(channels), images::EncodeJpeg(image));
    Put("image_file", "progressive_" + std::to_string(channels), images::EncodeJpeg(image, {.progressive = true}));
  }
}

void MakeEvents() {
  const std::string folder = fuzz::ScratchPath("events_of_a_run");
  EventWriter writer(folder, {.now = [] { return 1.7e9; }});
  writer.Scalar("loss", 0.5f, 1);
  writer.Histogram("weights", Tensor::Vector<float>({-1, 0, 0.25f, 3}), 2);
  Graph small;
  ops::Const(small, 1.0f, "one");
  writer.Graph(SerializeGraphDef(small));
  writer.SessionLog(SessionStatus::kCheckpoint, 3, "model-3", "saved");
  writer.Close();
  Put("event_file", "file", WithByte(0, ReadFile(writer.path())));
  RecordReader reader(writer.path());
  std::string events = WithByte(1, ""), payload;
  while (reader.Read(&payload) == RecordReader::Outcome::kRecord) fuzz::AppendText(payload, &events);
  Put("event_file", "events", events);
}

// ---- models ------------------------------------------------------------------------------------------------------

void PutModel(const std::string& name, const keras::Model& model) {
  const std::string path = fuzz::ScratchPath(name + ".keras");
  keras::SaveModel(model, path);
  const keras::ModelArchive archive = keras::ReadModelArchive(path);
  Put("keras_archive", name, ReadFile(path));
  Put("keras_config", name, archive.config);
  Put("keras_model", name, archive.config);
  Put("weights_h5", name, archive.weights);
}

void MakeModels() {
  keras::Sequential chain({keras::Input(Shape{2}), keras::Dense(3, {.activation = "tanh"}), keras::Dropout(0.1)},
                          keras::ModelOptions{.name = "chain"});
  chain.Compile({.optimizer = keras::SGD({.learning_rate = 0.1, .momentum = 0.9}), .loss = "mse", .metrics = {"mae"}});
  PutModel("chain", chain);
  const keras::LayerTensor in = keras::Input(Shape{4, 4, 1});
  const keras::LayerTensor image = keras::Conv2D(2, 3, {.padding = "same"})(in);
  const keras::LayerTensor sum = keras::Add()({image, keras::BatchNormalization()(image)});
  PutModel("images", keras::Model({in}, {keras::Dense(2)(keras::Flatten()(sum))}));
  Put("weights_h5", "dtypes",
      keras::EncodeWeights({{"layers/a", "a", {Tensor::Scalar(true), Tensor::Zeros(DType::kBfloat16, Shape{3})}},
                            {"layers/b/c", "c", {Tensor::Scalar(1.0), Tensor::Vector<uint8_t>({1, 2})}}}));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: fuzz_corpus FOLDER\n";
    return 2;
  }
  g_folder = argv[1];
  MakeClusters();
  MakeHellos();
  MakeMessages();
  MakeGraphs();
  MakeSavedModels();
  MakeCheckpoints();
  MakeRecords();
  MakeEvents();
  MakeModels();
  return 0;
}
