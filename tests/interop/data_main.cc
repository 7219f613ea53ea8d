// Builds the dataset that its argument describes, and prints its elements as JSON. The argument is a JSON list of
// stages, each [name, argument, ...]. An element is a list of components, and a component is a list of values in
// row-major order.
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cohort/backends/register.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/data/dataset.h"
#include "cohort/data/readers/image_folder.h"
#include "cohort/data/readers/readers.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/graph/function.h"
#include "cohort/graph/graph_def.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/join.h"
#include "cohort/ops/math.h"
#include "cohort/ops/register.h"
#include "cohort/runtime/kernels/runtime_kernels.h"

namespace cohort::data {
namespace {

using Json = nlohmann::json;

Dataset Build(const Json& stages);

int64_t Int(const Json& stage, size_t i, int64_t otherwise = 0) {
  return i < stage.size() ? stage[i].get<int64_t>() : otherwise;
}

std::vector<std::string> Strings(const Json& stage, size_t from) {
  std::vector<std::string> strings;
  for (size_t i = from; i < stage.size(); ++i) strings.push_back(stage[i]);
  return strings;
}

std::optional<Dataset> Source(const Json& stage) {
  const std::string name = stage.at(0);
  if (name == "range") return Dataset::Range(Int(stage, 1), Int(stage, 2), Int(stage, 3, 1));
  if (name == "generator") {
    const int64_t end = Int(stage, 1);
    return Dataset::FromGenerator(
        [end]() -> HostElementSource {
          return [n = int64_t{0}, end]() mutable {
            return n < end ? std::optional<Element>(Element{Tensor::Scalar(n++)}) : std::nullopt;
          };
        },
        {{DType::kInt64, Shape()}});
  }
  if (name == "names") return FileNames(Strings(stage, 1));
  if (name == "lines") return TextLineDataset(Strings(stage, 2), static_cast<Compression>(Int(stage, 1)));
  if (name == "records") return TFRecordDataset(Strings(stage, 2), static_cast<Compression>(Int(stage, 1)));
  if (name == "csv") {
    const std::vector<CsvColumn> columns = {{DType::kFloat32, Tensor::Scalar(-1.0f)},
                                            {DType::kInt64, Tensor::Scalar(int64_t{-1})},
                                            {DType::kString, Tensor::Scalar("none")}};
    return CsvDataset(Strings(stage, 1), columns, {.header = true, .na_value = "NA"});
  }
  if (name == "image_folder") {
    return ImageDatasetFromDirectory(stage.at(1), {.label_mode = static_cast<LabelMode>(Int(stage, 2)),
                                                   .channels = static_cast<int>(Int(stage, 3)),
                                                   .batch_size = Int(stage, 4),
                                                   .image_height = Int(stage, 5),
                                                   .image_width = Int(stage, 6),
                                                   .shuffle = false,
                                                   .interpolation = static_cast<Interpolation>(Int(stage, 7)),
                                                   .crop_to_aspect_ratio = Int(stage, 8) != 0})
        .dataset;
  }
  if (name == "zip") {
    std::vector<Dataset> inputs;
    for (size_t i = 1; i < stage.size(); ++i) inputs.push_back(Build(stage[i]));
    return Dataset::Zip(inputs);
  }
  return std::nullopt;
}

// Maps a scalar n to the numbers 10 n, ..., 10 n + n - 1.
Dataset Inner(const Element& element) {
  const int64_t n = element.at(0).scalar<int64_t>();
  return Dataset::Range(10 * n, 11 * n);
}

Dataset LinesOf(const Element& name) { return TextLineDataset({name.at(0).scalar<std::string>()}); }
Dataset Twice(const Element& element) { return Dataset::FromTensors(element).Repeat(2); }

// Maps a scalar n to n numbers n, and to a matrix [n, 5 - n] of them.
Element Vector(const Element& element) {
  const int64_t n = element.at(0).scalar<int64_t>();
  return {Tensor::Vector(std::vector<int64_t>(static_cast<size_t>(n), n))};
}
Element Matrix(const Element& element) {
  const int64_t n = element.at(0).scalar<int64_t>();
  return {Tensor::FromValues(std::vector<int64_t>(static_cast<size_t>(n * (5 - n)), n), Shape{n, 5 - n})};
}

// The arguments of the stage: batch size, drop_remainder, a list of padded shapes or null, and a list of padding values
// (null: the default), or null.
Dataset PaddedBatch(const Dataset& dataset, const Json& stage) {
  PaddedBatchOptions options;
  options.drop_remainder = Int(stage, 2) != 0;
  for (const Json& shape : stage.at(3)) options.padded_shapes.emplace_back(shape.get<std::vector<int64_t>>());
  for (const Json& value : stage.at(4)) {
    Tensor& tensor = options.padding_values.emplace_back();
    if (value.is_string()) tensor = Tensor::Scalar(value.get<std::string>());
    if (value.is_number_float()) tensor = Tensor::Scalar(value.get<float>());
    if (value.is_number_integer()) tensor = Tensor::Scalar(value.get<int64_t>());
  }
  return dataset.PaddedBatch(Int(stage, 1), options);
}

InterleaveOptions CycleAndBlock(const Json& stage) {
  return {static_cast<int>(Int(stage, 1)), static_cast<int>(Int(stage, 2))};
}

Dataset TakeLinesBefore(const Dataset& dataset, const Json& stage) {
  return dataset.TakeWhile(
      [end = stage.at(1).get<std::string>()](const Element& e) { return e[0].scalar<std::string>() != end; });
}

using Stage = std::function<Dataset(const Dataset&, const Json&)>;

// The stages with functions of this program or of a graph.
Dataset ApplyFunction(const Dataset& dataset, const Json& stage) {
  static const std::map<std::string, Stage> stages = {
      {"vectors",
       [](const auto& d, const auto&) {
         return d.Map(Vector, {{DType::kInt64, Shape{-1}}});
       }},
      {"matrices",
       [](const auto& d, const auto&) {
         return d.Map(Matrix, {{DType::kInt64, Shape{-1, -1}}});
       }},
      {"graph",
       [](const auto& d, const auto& s) {
         return d.Map(ParseGraphDef(ReadFile(s.at(1)))->FindFunction(s.at(2).template get<std::string>()));
       }},
      {"parse",
       [](const auto& d, const auto&) {
         return ParseExampleDataset(d, {{"x", DType::kFloat32, {2}},
                                        {"label", DType::kInt64, {}, Tensor::Scalar(int64_t{-1})},
                                        {"name", DType::kString, {}, Tensor::Scalar("none")}});
       }},
      {"parse_lists",
       [](const auto& d, const auto&) {
         return ParseExampleDataset(d, {{.name = "x", .dtype = DType::kFloat32, .variable_length = true},
                                        {.name = "ids", .dtype = DType::kInt64, .variable_length = true},
                                        {.name = "names", .dtype = DType::kString, .variable_length = true}});
       }},
      {"double",
       [](const auto& d, const auto&) {
         return d.Map([](const Element& e) -> Element { return {Tensor::Scalar(2 * e[0].template scalar<int64_t>())}; },
                      {{DType::kInt64, Shape()}}, {.num_parallel_calls = 2});
       }},
      {"odd",
       [](const auto& d, const auto&) {
         return d.Filter([](const Element& e) { return e[0].template scalar<int64_t>() % 2 != 0; });
       }},
      {"take_while",
       [](const auto& d, const auto&) {
         return d.TakeWhile([](const Element& e) { return e[0].template scalar<int64_t>() % 12 != 11; });
       }},
      {"take_lines_before", TakeLinesBefore},
      {"flat_map",
       [](const auto& d, const auto&) {
         return d.FlatMap(Inner, {{DType::kInt64, Shape()}});
       }},
      {"interleave",
       [](const auto& d, const auto& s) {
         return d.Interleave(Inner, {{DType::kInt64, Shape()}}, CycleAndBlock(s));
       }},
      {"lines_of", [](const auto& d, const auto&) { return TextLineDataset(d); }},
      {"interleave_lines",
       [](const auto& d, const auto& s) {
         return d.Interleave(LinesOf, {{DType::kString, Shape()}}, CycleAndBlock(s));
       }},
      {"interleave_twice",
       [](const auto& d, const auto& s) { return d.Interleave(Twice, d.element_spec(), CycleAndBlock(s)); }},
  };
  return stages.at(stage.at(0))(dataset, stage);
}

Dataset Apply(const Dataset& dataset, const Json& stage) {
  static const std::map<std::string, Stage> stages = {
      {"shuffle", [](const auto& d, const auto& s) { return d.Shuffle(Int(s, 1), Int(s, 2), Int(s, 3, 1) != 0); }},
      {"repeat", [](const auto& d, const auto& s) { return d.Repeat(Int(s, 1)); }},
      {"batch", [](const auto& d, const auto& s) { return d.Batch(Int(s, 1), Int(s, 2) != 0); }},
      {"padded_batch", PaddedBatch},
      {"unbatch", [](const auto& d, const auto&) { return d.Unbatch(); }},
      {"take", [](const auto& d, const auto& s) { return d.Take(Int(s, 1)); }},
      {"skip", [](const auto& d, const auto& s) { return d.Skip(Int(s, 1)); }},
      {"shard", [](const auto& d, const auto& s) { return d.Shard(Int(s, 1), Int(s, 2)); }},
      {"shard_hint", [](const auto& d, const auto&) { return d.Shard(kShardHint, kShardHint); }},
      {"cache", [](const auto& d, const auto&) { return d.Cache(); }},
      {"prefetch", [](const auto& d, const auto& s) { return d.Prefetch(Int(s, 1)); }},
      {"enumerate", [](const auto& d, const auto& s) { return d.Enumerate(Int(s, 1)); }},
      {"concatenate", [](const auto& d, const auto& s) { return d.Concatenate(Build(s.at(1))); }},
      {"auto_shard",
       [](const auto& d, const auto& s) {
         return AutoShard(d, Int(s, 1), Int(s, 2), static_cast<AutoShardPolicy>(Int(s, 3)));
       }},
      {"rebatch", [](const auto& d,
                     const auto& s) { return Rebatch(d, RebatchSizes(Int(s, 1), Int(s, 2), Int(s, 3), Int(s, 4))); }},
      {"legacy_rebatch", [](const auto& d, const auto& s) { return LegacyRebatch(d, Int(s, 1)); }},
  };
  const auto found = stages.find(stage.at(0));
  return found == stages.end() ? ApplyFunction(dataset, stage) : found->second(dataset, stage);
}

Dataset Build(const Json& stages) {
  Dataset dataset = Source(stages.at(0)).value();
  for (size_t i = 1; i < stages.size(); ++i) dataset = Apply(dataset, stages[i]);
  return dataset;
}

Json Values(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kInt32: return tensor.ToVector<int32_t>();
    case DType::kInt64: return tensor.ToVector<int64_t>();
    case DType::kFloat32: return tensor.ToVector<float>();
    default: return tensor.ToVector<std::string>();
  }
}

Json Elements(const Dataset& dataset) {
  const auto iterator = dataset.MakeIterator();
  Json all = Json::array();
  Element element;
  while (iterator->Next(&element)) {
    Json components = Json::array();
    for (const Tensor& tensor : element) components.push_back(Values(tensor));
    all.push_back(components);
  }
  return all;
}

// Writes a GraphDef whose library has "affine": (x float32[?], n int64[]) -> (2 x + 1, the halves of [x, x], n).
void WriteFunction(const std::string& path) {
  Graph graph;
  const auto body = [](Graph& body, const std::vector<Output>& args) -> std::vector<Output> {
    const Output two = ops::Const(body, 2.0f);
    const Output one = ops::Const(body, 1.0f);
    const std::vector<Output> halves = ops::Split(ops::Concat({args[0], args[0]}, 0), 0, 2);
    return {args[0] * two + one, halves.at(1), args[1]};
  };
  graph.DefineFunction("affine", {{DType::kFloat32, Shape{-1}, "x"}, {DType::kInt64, Shape(), "n"}}, body);
  WriteFileAtomically(path, SerializeGraphDef(graph));
}

int Main(int argc, char** argv) {
  RegisterOps();
  RegisterBackends();
  RegisterRuntimeKernels(KernelRegistry::Global());
  try {
    if (argc == 3 && std::string(argv[1]) == "write-function") {
      WriteFunction(argv[2]);
      return 0;
    }
    for (int i = 1; i < argc; ++i) {
      const Dataset dataset = Build(Json::parse(argv[i]));
      std::cout << Json{{"elements", Elements(dataset)}, {"cardinality", dataset.Cardinality()}}.dump() << "\n";
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "interop_data: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace cohort::data

int main(int argc, char** argv) { return cohort::data::Main(argc, argv); }
