// Reads and writes descriptions of datasets. DescriptionWriter::Node writes a stage's kind, its inputs and then its
// parameters. DescriptionReader::Node finds the kind in the table Kinds(), reads the inputs, and lets the kind's
// function read the parameters and make the stage. To add a stage, add a row to Kinds(). Lists grow while they are
// read, because a damaged length may be huge.
#include "cohort/data/description.h"

#include <cstring>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/element_codec.h"
#include "cohort/data/graph_function.h"
#include "cohort/data/readers/file_format.h"
#include "cohort/data/serialize.h"
#include "cohort/data/stages/stages.h"

namespace cohort::data {
namespace {

constexpr int64_t kVersion = 1;
constexpr int64_t kMany = int64_t{1} << 62;

using Inputs = std::vector<NodePtr>;

[[noreturn]] void FailFunction(const std::string& kind) {
  throw InvalidArgumentError(
      StrCat("[data] expected a function that this program knows; got '", kind, "' in the description of a dataset"));
}

// `spec` is that of the elements that the function gets.
std::shared_ptr<const ElementFunction> ReadElementFunction(DescriptionReader& in, const ElementSpec& spec) {
  const std::string kind = in.String();
  if (kind == "Graph") return ReadGraphFunction(in, spec);
  if (kind == "ParseExample") return ReadParseExample(in);
  FailFunction(kind);
}

std::vector<Tensor> ReadTensors(DescriptionReader& in) {
  std::vector<Tensor> tensors;
  for (int64_t left = in.Int(1, 1 << 16); left > 0; --left) tensors.push_back(in.TensorReference());
  return tensors;
}

NodePtr ReadRange(DescriptionReader& in) {
  const int64_t start = in.Int(), stop = in.Int();
  return MakeRange(start, stop, in.Int());
}

NodePtr ReadShuffle(DescriptionReader& in, const Inputs& inputs) {
  const int64_t buffer_size = in.Int();
  const bool seeded = in.Bool();
  const int64_t seed = in.Int();
  const bool reshuffle = in.Bool();
  const auto drawn = static_cast<uint64_t>(in.Int());
  return MakeShuffle(inputs[0], buffer_size, seeded ? std::optional(seed) : std::nullopt, reshuffle, drawn);
}

NodePtr ReadBatch(DescriptionReader& in, const Inputs& inputs) {
  const int64_t size = in.Int();
  return MakeBatch(inputs[0], size, in.Bool());
}

NodePtr ReadPaddedBatch(DescriptionReader& in, const Inputs& inputs) {
  const int64_t size = in.Int();
  PaddedBatchOptions options;
  options.drop_remainder = in.Bool();
  for (const TensorSpec& part : in.Spec()) {
    options.padded_shapes.push_back(part.shape);
    options.padding_values.push_back(in.Bool() ? in.TensorReference() : Tensor());
  }
  return MakePaddedBatch(inputs[0], size, options);
}

NodePtr ReadRebatch(DescriptionReader& in, const Inputs& inputs) {
  std::vector<int64_t> sizes;
  for (int64_t left = in.Int(1, 1 << 20); left > 0; --left) sizes.push_back(in.Int(0, 1 << 30));
  return MakeRebatch(inputs[0], std::move(sizes));
}

NodePtr ReadSubset(DescriptionReader& in, const std::string& kind, const Inputs& inputs) {
  const int64_t first = in.Int(0, kMany), stride = in.Int(1, kMany), limit = in.Int(-1, kMany);
  const bool require_non_empty = in.Bool();
  if (kind == "Take") return MakeTake(inputs[0], limit);
  if (kind == "Skip") return MakeSkip(inputs[0], limit == 0 ? -1 : first);
  return MakeShard(inputs[0], stride, first, require_non_empty);
}

// A format that checks each file before it opens it. The names of the files are known only when the dataset runs.
class CheckedFormat final : public FileFormat {
 public:
  CheckedFormat(std::shared_ptr<const FileFormat> format, DescriptionReader::FileCheck check)
      : format_(std::move(format)), check_(std::move(check)) {}
  std::string kind() const override { return format_->kind(); }
  std::string Parameters() const override { return format_->Parameters(); }
  const ElementSpec& spec() const override { return format_->spec(); }
  std::unique_ptr<FileReader> Open(const std::string& path) const override {
    check_(path);
    return format_->Open(path);
  }
  void Write(DescriptionWriter* out) const override { format_->Write(out); }

 private:
  const std::shared_ptr<const FileFormat> format_;
  const DescriptionReader::FileCheck check_;
};

NodePtr ReadFiles(const DescriptionReader& in, const Inputs& inputs, std::shared_ptr<const FileFormat> format) {
  if (in.check()) format = std::make_shared<CheckedFormat>(std::move(format), in.check());
  return MakeReader(inputs[0], std::move(format));
}

NodePtr ReadCache(DescriptionReader& in, const Inputs& inputs) {
  const std::string filename = in.String();
  if (in.check() && !filename.empty()) in.check()(filename + ".cache");
  return filename.empty() ? MakeMemoryCache(inputs[0]) : MakeFileCache(inputs[0], filename);
}

NodePtr ReadMap(DescriptionReader& in, const Inputs& inputs) {
  auto function = ReadElementFunction(in, inputs[0]->spec());
  return MakeMap(inputs[0], std::move(function), static_cast<int>(in.Int(1, 1 << 16)));
}

NodePtr ReadFilter(DescriptionReader& in, const Inputs& inputs) {
  return MakeFilter(inputs[0], ReadElementFunction(in, inputs[0]->spec()));
}

NodePtr ReadTakeWhile(DescriptionReader& in, const Inputs& inputs) {
  return MakeTakeWhile(inputs[0], ReadElementFunction(in, inputs[0]->spec()));
}

NodePtr ReadInterleave(DescriptionReader& in, const Inputs& inputs) {
  const std::string kind = in.String();
  if (kind != "GraphSlices") FailFunction(kind);
  auto function = ReadGraphSlices(in, inputs[0]->spec());
  InterleaveOptions options;
  options.cycle_length = static_cast<int>(in.Int(1, 1 << 20));
  options.block_length = static_cast<int>(in.Int(1, 1 << 30));
  return MakeInterleave(inputs[0], std::move(function), options);
}

NodePtr ReadIdxFiles(DescriptionReader& in) {
  std::vector<std::string> paths;
  for (int64_t left = in.Int(1, 1 << 16); left > 0; --left) {
    const std::string& path = paths.emplace_back(in.String());
    if (in.check()) in.check()(path);
  }
  return MakeIdx(std::move(paths));
}

struct Kind {
  const char* name;
  size_t min_inputs, max_inputs;
  std::function<NodePtr(DescriptionReader&, const Inputs&)> read;
};

const std::vector<Kind>& Kinds() {
  using R = DescriptionReader;
  using I = const Inputs;
  static const auto* kinds = new std::vector<Kind>{
      {"FromTensorSlices", 0, 0, [](R& in, I&) { return MakeSlices(ReadTensors(in)); }},
      {"FromTensors", 0, 0, [](R& in, I&) { return MakeTensors(ReadTensors(in)); }},
      {"Range", 0, 0, [](R& in, I&) { return ReadRange(in); }},
      {"Zip", 1, 1 << 16, [](R&, I& inputs) { return MakeZip(inputs); }},
      {"Concatenate", 2, 2, [](R&, I& inputs) { return MakeConcatenate(inputs[0], inputs[1]); }},
      {"Shuffle", 1, 1, ReadShuffle},
      {"Repeat", 1, 1, [](R& in, I& inputs) { return MakeRepeat(inputs[0], in.Int()); }},
      {"Batch", 1, 1, ReadBatch},
      {"PaddedBatch", 1, 1, ReadPaddedBatch},
      {"Rebatch", 1, 1, ReadRebatch},
      {"LegacyRebatch", 1, 1, [](R& in, I& inputs) { return MakeLegacyRebatch(inputs[0], in.Int()); }},
      {"ShardHint", 1, 1, [](R&, I& inputs) { return MakeShardHint(inputs[0]); }},
      {"Unbatch", 1, 1, [](R&, I& inputs) { return MakeUnbatch(inputs[0]); }},
      {"Take", 1, 1, [](R& in, I& inputs) { return ReadSubset(in, "Take", inputs); }},
      {"Skip", 1, 1, [](R& in, I& inputs) { return ReadSubset(in, "Skip", inputs); }},
      {"Shard", 1, 1, [](R& in, I& inputs) { return ReadSubset(in, "Shard", inputs); }},
      {"Cache", 1, 1, ReadCache},
      {"TextLine", 1, 1, [](R& in, I& inputs) { return ReadFiles(in, inputs, ReadTextLineFormat(in)); }},
      {"TFRecord", 1, 1, [](R& in, I& inputs) { return ReadFiles(in, inputs, ReadTFRecordFormat(in)); }},
      {"Csv", 1, 1, [](R& in, I& inputs) { return ReadFiles(in, inputs, ReadCsvFormat(in)); }},
      {"Idx", 0, 0, [](R& in, I&) { return ReadIdxFiles(in); }},
      {"Map", 1, 1, ReadMap},
      {"Filter", 1, 1, ReadFilter},
      {"TakeWhile", 1, 1, ReadTakeWhile},
      {"IgnoreErrors", 1, 1, [](R& in, I& inputs) { return MakeIgnoreErrors(inputs[0], in.Int(0, 1) != 0); }},
      {"Interleave", 1, 1, ReadInterleave},
      {"Prefetch", 1, 1, [](R& in, I& inputs) { return MakePrefetch(inputs[0], in.Int()); }},
  };
  return *kinds;
}

const Kind& FindKind(const std::string& name) {
  for (const Kind& kind : Kinds()) {
    if (kind.name == name) return kind;
  }
  throw InvalidArgumentError(StrCat("[data] expected a stage that this program knows; got '", name,
                                    "' in the description of a dataset; use the same version on both sides"));
}

uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

uint64_t HashBytes(uint64_t hash, const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  hash = Mix(hash ^ size);
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min(sizeof(word), size - at));
    hash = Mix(hash + 0x9e3779b97f4a7c15u + word);
  }
  return hash;
}

int64_t BytesOf(const Tensor& tensor) {
  if (tensor.dtype() != DType::kString) return static_cast<int64_t>(tensor.bytes());
  int64_t bytes = 0;
  for (const std::string& text : tensor.values<std::string>()) bytes += static_cast<int64_t>(text.size());
  return bytes;
}

}  // namespace

uint64_t HashTensor(const Tensor& tensor) {
  uint64_t hash = Mix(static_cast<uint64_t>(tensor.dtype()) + 1);
  hash = HashBytes(hash, tensor.shape().dims().data(), tensor.shape().dims().size_bytes());
  if (tensor.dtype() != DType::kString) return HashBytes(hash, tensor.raw_data(), tensor.bytes());
  for (const std::string& text : tensor.values<std::string>()) hash = HashBytes(hash, text.data(), text.size());
  return hash;
}

void DescriptionWriter::Int(int64_t value) { WriteInt(value, &bytes_); }
void DescriptionWriter::Spec(const ElementSpec& spec) { WriteSpec(spec, &bytes_); }

void DescriptionWriter::TensorReference(const Tensor& tensor) {
  const int64_t bytes = BytesOf(tensor);
  CheckBytes(bytes, tensor);  // before the hash, which would read all of a tensor that is too large
  const uint64_t hash = HashTensor(tensor);
  bytes_.Fixed64(hash);
  if (!tensors_.emplace(hash, tensor).second) return;
  tensor_bytes_ += bytes;
  CheckBytes(tensor_bytes_, tensor);
}

void DescriptionWriter::CheckBytes(int64_t bytes, const Tensor& tensor) const {
  if (bytes <= max_tensor_bytes_) return;
  throw InvalidArgumentError(StrCat(
      "[data] expected at most ", max_tensor_bytes_, " bytes of tensors inside of the description of a dataset; got ",
      bytes, " up to the tensor ", tensor.dtype(), tensor.shape(),
      "; write the examples to files (TFRecordDataset, CsvDataset, IdxDataset) and read them there"));
}

void DescriptionWriter::Node(const DatasetNode& node) {
  String(node.kind());
  Int(static_cast<int64_t>(node.inputs().size()));
  for (const NodePtr& input : node.inputs()) Node(*input);
  node.Write(this);
}

int64_t DescriptionReader::Int() { return ReadInt(&in_); }

int64_t DescriptionReader::Int(int64_t low, int64_t high) {
  const int64_t value = Int();
  if (value >= low && value <= high) return value;
  throw DataLossError(
      StrCat("[data] expected a number from ", low, " to ", high, "; got ", value, " in the description of a dataset"));
}

ElementSpec DescriptionReader::Spec() { return ReadSpec(&in_); }

Tensor DescriptionReader::TensorReference() {
  const uint64_t hash = in_.Fixed64();
  Tensor tensor = lookup_(hash);
  if (tensor.defined() && HashTensor(tensor) == hash) return tensor;
  throw DataLossError(StrCat("[data] expected the tensor with hash ", hash, " of the description of a dataset; got ",
                             tensor.defined() ? tensor.ToString() : "none"));
}

NodePtr DescriptionReader::Node() {
  if (++depth_ > kMaxDepth) {
    throw InvalidArgumentError(
        StrCat("[data] expected a description of at most ", kMaxDepth, " stages above one another; got more"));
  }
  const Kind& kind = FindKind(String());
  Inputs inputs;
  int64_t left = Int(static_cast<int64_t>(kind.min_inputs), static_cast<int64_t>(kind.max_inputs));
  for (; left > 0; --left) inputs.push_back(Node());
  --depth_;
  return kind.read(*this, inputs);
}

SerializedDataset Serialize(const Dataset& dataset, int64_t max_tensor_bytes) {
  DescriptionWriter out(max_tensor_bytes);
  out.Int(kVersion);
  out.Node(*dataset.node());
  return {out.TakeBytes(), out.TakeTensors()};
}

Dataset Deserialize(std::string_view description, const std::function<Tensor(uint64_t hash)>& lookup, FileCheck check) {
  DescriptionReader in(description, lookup, std::move(check));
  const int64_t version = in.Int();
  if (version != kVersion) {
    throw InvalidArgumentError(
        StrCat("[data] expected a description of a dataset of version ", kVersion, "; got version ", version));
  }
  NodePtr node = in.Node();
  in.ExpectEnd();
  return Dataset(std::move(node));
}

Dataset Deserialize(const SerializedDataset& serialized, FileCheck check) {
  const auto lookup = [&](uint64_t hash) {
    const auto found = serialized.tensors.find(hash);
    return found == serialized.tensors.end() ? Tensor() : found->second;
  };
  return Deserialize(serialized.description, lookup, std::move(check));
}

}  // namespace cohort::data
