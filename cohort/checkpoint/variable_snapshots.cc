// VariableSnapshots. The constructor groups the variables by device (a "shard") and adds each device's nodes. A save
// takes a snapshot on each device (Snapshots), and then moves the values into files. Write fetches all values chunk by
// chunk (Stream) into one file of this process. WriteSharded lets each task write its own part, and joins the parts.
#include "cohort/checkpoint/variable_snapshots.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include "cohort/checkpoint/stored_variable.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// The size of the chunks in which values are sent to the chief. It is large enough that the round trip hardly counts.
constexpr int64_t kChunkBytes = int64_t{4} << 20;

Output Fed(Graph& graph, DType dtype, const Shape& shape, const char* name) {
  return graph.Op("Placeholder").Name(name).Attr("dtype", dtype).Attr("shape", shape).IgnoreScopes().Finish1();
}

std::vector<Shape> DecodeShapes(const Tensor& encoded, size_t count) {
  const std::vector<int64_t> numbers = encoded.ToVector<int64_t>();
  std::vector<Shape> shapes;
  size_t at = 0;
  while (shapes.size() < count) {
    const auto rank = static_cast<size_t>(numbers.at(at++));
    shapes.emplace_back(std::span<const int64_t>(numbers).subspan(at, rank));
    at += rank;
  }
  return shapes;
}

std::string RandomHex() {
  std::random_device random;
  std::string text;
  for (int i = 0; i < 4; ++i) {
    char part[9];
    std::snprintf(part, sizeof part, "%08x", random());
    text += part;
  }
  return text;
}

// A folder that the destructor removes with its contents.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) { CreateDirectories(path_); }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

class VariableSnapshots::Snapshots {
 public:
  Snapshots(Session& session, const std::vector<Shard>& shards) : session_(session), shards_(shards) {
    try {
      // A run for each device: if a device fails, the snapshots of those before it are known and can be dropped.
      for (const Shard& shard : shards) {
        const std::vector<Tensor> values = session.Run({shard.take->output(0), shard.take->output(1)});
        taken_.push_back({values[0].scalar<int64_t>(), DecodeShapes(values[1], shard.variables.size())});
      }
    } catch (...) {
      Drop();
      throw;
    }
  }

  ~Snapshots() { Drop(); }
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  const Taken& operator[](size_t shard) const { return taken_[shard]; }

 private:
  void Drop() {
    if (taken_.empty()) return;
    FeedList feeds;
    std::vector<Node*> targets;
    for (size_t i = 0; i < taken_.size(); ++i) {
      feeds.emplace_back(shards_[i].drop_snapshot, Tensor::Scalar(taken_[i].snapshot));
      targets.push_back(shards_[i].drop);
    }
    try {
      session_.Run(feeds, {}, targets);
    } catch (const Error& e) {
      LogWarning("saver", "a snapshot stays on its task until the next save: ", e.what());
    }
  }

  Session& session_;
  const std::vector<Shard>& shards_;
  std::vector<Taken> taken_;
};

VariableSnapshots::VariableSnapshots(Graph& graph, std::vector<VariableInfo*> variables) {
  std::sort(variables.begin(), variables.end(), [](auto* a, auto* b) { return a->name < b->name; });
  std::map<std::string, std::vector<VariableInfo*>> by_device;
  for (VariableInfo* variable : variables) by_device[variable->handle.node->device()].push_back(variable);
  for (auto& [device, held] : by_device) {
    Shard& shard = shards_.emplace_back();
    shard.device = device;
    shard.variables = std::move(held);
    AddNodes(graph, shard);
  }
}

void VariableSnapshots::AddNodes(Graph& graph, Shard& shard) {
  const auto here = [&](const char* op, const char* name) {
    NodeBuilder builder = graph.Op(op);
    builder.Name(name).IgnoreScopes().Device(shard.device);
    return builder;
  };
  std::vector<Output> handles;
  std::vector<std::string> names, slices;
  for (const VariableInfo* variable : shard.variables) {
    const StoredVariable stored = StoredVariable::Of(*variable);
    handles.push_back(variable->handle);
    names.push_back(stored.name);
    slices.push_back(stored.ShapeAndSliceText());
  }
  shard.take =
      here("_SnapshotTake", "take").Inputs(handles).Attr("names", names).Attr("shape_and_slices", slices).Finish();
  shard.read_request = Fed(graph, DType::kInt64, Shape{4}, "read_request");
  shard.read = here("_SnapshotRead", "read").Input(shard.read_request).Finish1();
  shard.strings_request = Fed(graph, DType::kInt64, Shape{2}, "strings_request");
  shard.strings = here("_SnapshotReadStrings", "read_strings").Input(shard.strings_request).Finish1();
  shard.write_snapshot = Fed(graph, DType::kInt64, Shape(), "write_snapshot");
  shard.write_prefix = Fed(graph, DType::kString, Shape(), "write_prefix");
  shard.write = here("_SnapshotWrite", "write").Input(shard.write_snapshot).Input(shard.write_prefix).Finish();
  shard.drop_snapshot = Fed(graph, DType::kInt64, Shape(), "drop_snapshot");
  shard.drop = here("_SnapshotDrop", "drop").Input(shard.drop_snapshot).Finish();
  shard.probe_path = Fed(graph, DType::kString, Shape(), "probe_path");
  shard.probe_content = Fed(graph, DType::kString, Shape(), "probe_content");
  shard.probe = here("_CheckpointProbe", "probe").Input(shard.probe_path).Input(shard.probe_content).Finish();
}

// The bytes of one value, chunk by chunk.
class VariableSnapshots::Stream {
 public:
  Stream(Session& session, const Source& source, int64_t bytes)
      : read_(session.MakeCallable({source.shard->read_request}, {source.shard->read})),
        source_(source),
        bytes_(bytes) {}

  void Fill(std::span<char> out) {
    while (!out.empty()) {
      if (left_ == 0) Next();
      const size_t n = std::min(out.size(), static_cast<size_t>(left_));
      std::memcpy(out.data(), chunk_.data<uint8_t>() + (chunk_.num_elements() - left_), n);
      left_ -= static_cast<int64_t>(n);
      out = out.subspan(n);
    }
  }

 private:
  void Next() {
    const int64_t n = std::min(kChunkBytes, bytes_ - offset_);
    chunk_ =
        read_({Tensor::Vector<int64_t>({source_.taken->snapshot, static_cast<int64_t>(source_.index), offset_, n})})[0];
    if (n <= 0 || chunk_.num_elements() != n) {
      throw InternalError(
          StrCat("[saver] expected ", n, " bytes of a value at ", offset_, "; got ", chunk_.num_elements()));
    }
    offset_ += n;
    left_ = n;
  }

  const Callable read_;
  const Source source_;
  const int64_t bytes_;
  int64_t offset_ = 0;
  Tensor chunk_;
  int64_t left_ = 0;  // bytes of the chunk that have not been handed out
};

void VariableSnapshots::Append(Session& session, const Source& source, BundleWriter& writer) {
  const VariableInfo& variable = *source.shard->variables[source.index];
  const Shape& shape = source.taken->shapes[source.index];
  if (variable.dtype == DType::kString) {
    const Tensor request = Tensor::Vector<int64_t>({source.taken->snapshot, static_cast<int64_t>(source.index)});
    writer.Add(variable.name, session.Run({{source.shard->strings_request, request}}, {source.shard->strings})[0]);
    return;
  }
  Stream stream(session, source, shape.num_elements() * static_cast<int64_t>(DTypeSize(variable.dtype)));
  const auto fill = [&](std::span<char> out) { stream.Fill(out); };
  const StoredVariable stored = StoredVariable::Of(variable);
  stored.rows ? writer.AppendSlice(stored.name, variable.dtype, stored.shape, *stored.rows, fill)
              : writer.Append(stored.name, variable.dtype, shape, fill);
}

void VariableSnapshots::Write(Session& session, const std::string& prefix) const {
  BundleWriter writer(prefix);  // first: a folder that cannot be written is known before anything is taken
  {
    const Snapshots taken(session, shards_);
    std::vector<Source> sources;
    for (size_t i = 0; i < shards_.size(); ++i) {
      for (size_t v = 0; v < shards_[i].variables.size(); ++v) sources.push_back({&shards_[i], &taken[i], v});
    }
    const auto name = [](const Source& source) -> const std::string& {
      return source.shard->variables[source.index]->name;
    };
    std::sort(sources.begin(), sources.end(), [&](const Source& a, const Source& b) { return name(a) < name(b); });
    for (const Source& source : sources) Append(session, source, writer);
  }
  writer.Finish();
}

void VariableSnapshots::WriteSharded(Session& session, const std::string& prefix) const {
  const std::string hex = RandomHex();
  const TemporaryFolder folder(std::filesystem::absolute(StrCat(prefix, "_temp_", hex)).lexically_normal().string());
  const std::string probe = folder.path() + "/probe";
  WriteFileAtomically(probe, hex);
  FeedList probe_feeds;
  std::vector<Node*> probes;
  for (const Shard& shard : shards_) {
    probe_feeds.emplace_back(shard.probe_path, Tensor::Scalar(probe));
    probe_feeds.emplace_back(shard.probe_content, Tensor::Scalar(hex));
    probes.push_back(shard.probe);
  }
  session.Run(probe_feeds, {}, probes);
  RemoveFile(probe);

  std::vector<std::string> parts;
  {
    const Snapshots taken(session, shards_);
    FeedList feeds;
    std::vector<Node*> writes;
    for (size_t i = 0; i < shards_.size(); ++i) {
      char name[64];
      std::snprintf(name, sizeof name, "/part-%05zu-of-%05zu", i, shards_.size());
      parts.push_back(folder.path() + name);
      feeds.emplace_back(shards_[i].write_snapshot, Tensor::Scalar(taken[i].snapshot));
      feeds.emplace_back(shards_[i].write_prefix, Tensor::Scalar(parts.back()));
      writes.push_back(shards_[i].write);
    }
    session.Run(feeds, {}, writes);
  }
  MergeBundles(parts, prefix);
}

}  // namespace cohort
