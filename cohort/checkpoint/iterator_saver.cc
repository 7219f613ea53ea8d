// The file has a version, the names and positions, and a checksum of all that (WireWriter).
#include "cohort/checkpoint/iterator_saver.h"

#include <chrono>
#include <map>

#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/wire.h"
#include "cohort/data/graph_iterator.h"
#include "cohort/graph/device_name.h"

namespace cohort {
namespace {

constexpr uint64_t kFileVersion = 1;
constexpr char kPsJob[] = "ps";
constexpr RunOptions kLimit{.timeout = std::chrono::seconds(30)};

using Positions = std::map<std::string, std::string>;

DeviceName TaskOf(const IteratorSaverOptions& options) {
  DeviceName task = DeviceName::Parse(options.task);
  if (!task.IsEmpty() && (!task.job || !task.task)) {
    throw InvalidArgumentError(
        StrCat("[iterators] expected the name of a task, as '/job:worker/task:1'; got '", options.task, "'"));
  }
  return task;
}

// Whether an iterator on `device` is saved by the process of `own` task.
bool IsOwn(const DeviceName& device, const DeviceName& own, bool is_chief) {
  if (!device.job || own.IsEmpty()) return true;
  if (*device.job == kPsJob && is_chief) return true;
  return device.job == own.job && device.task.value_or(0) == *own.task;
}

std::string EncodePositions(const Positions& positions) {
  WireWriter out;
  out.Varint(kFileVersion);
  out.Varint(positions.size());
  for (const auto& [name, position] : positions) {
    out.String(name);
    out.String(position);
  }
  const uint32_t crc = crc32c::Mask(crc32c::Extend(0, out.view()));
  out.Fixed64(crc);
  return out.Take();
}

Positions DecodePositions(const std::string& bytes, const std::string& path) {
  constexpr size_t kCrcBytes = 8;
  try {
    const std::string_view body = std::string_view(bytes).substr(0, bytes.size() - std::min(bytes.size(), kCrcBytes));
    WireReader crc(std::string_view(bytes).substr(body.size()));
    if (crc.Fixed64() != crc32c::Mask(crc32c::Extend(0, body)))
      throw DataLossError("another checksum than that of the bytes");
    WireReader in(body);
    const uint64_t version = in.Varint();
    if (version != kFileVersion) throw DataLossError(StrCat("version ", version));
    Positions positions;
    for (uint64_t left = in.Varint(bytes.size()); left > 0; --left) {
      std::string name = in.String();
      positions[std::move(name)] = in.String();
    }
    in.ExpectEnd();
    return positions;
  } catch (const DataLossError& error) {
    throw DataLossError(StrCat("[iterators] expected positions of iterators (version ", kFileVersion, ") in ", path,
                               "; got ", error.what(), "; delete the file to begin at the start of the input"));
  }
}

}  // namespace

IteratorSaver::IteratorSaver(Graph& graph, const IteratorSaverOptions& options) {
  const DeviceName own = TaskOf(options);
  suffix_ = own.IsEmpty() ? ".iterators" : StrCat(".iterators-", *own.job, "-", *own.task);
  const NameScope scope(graph, options.name);
  const ControlDependencies none(graph, nullptr);
  for (const Output& handle : data::GraphIteratorHandles(graph)) {
    if (!IsOwn(DeviceName::Parse(handle.node->device()), own, options.is_chief)) continue;
    Entry entry;
    entry.name = handle.node->name();
    const ColocateWith beside(graph, *handle.node);
    entry.position = graph.Op("_IteratorSave").Name("Save").Input(handle).Finish1();
    entry.fed = graph.Op("Placeholder")
                    .Name("position")
                    .Attr("dtype", DType::kString)
                    .Attr("shape", Shape())
                    .IgnoreScopes()
                    .Finish1();
    entry.restore = graph.Op("_IteratorRestore").Name("Restore").Input(handle).Input(entry.fed).Finish();
    entries_.push_back(std::move(entry));
  }
}

std::vector<std::string> IteratorSaver::iterators() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

std::string IteratorSaver::PathFor(const std::string& prefix) const { return prefix + suffix_; }

void IteratorSaver::Save(Session& session, const std::string& prefix) const {
  Positions positions;
  for (const Entry& entry : entries_) {
    try {
      positions[entry.name] = session.Run({}, {entry.position}, {}, kLimit)[0].scalar<std::string>();
    } catch (const FailedPreconditionError& error) {
      LogInfo("iterators", "no position is saved: ", error.what());
    }
  }
  if (!positions.empty()) WriteFileAtomically(PathFor(prefix), EncodePositions(positions));
}

bool IteratorSaver::Restore(Session& session, const std::string& prefix) const {
  const std::string path = PathFor(prefix);
  if (entries_.empty() || !FileExists(path)) return false;
  const Positions positions = DecodePositions(ReadFile(path), path);
  for (const Entry& entry : entries_) {
    const auto found = positions.find(entry.name);
    if (found == positions.end()) {
      LogWarning("iterators", "iterator '", entry.name, "' begins at the start of its dataset, because ", path,
                 " has no position of it");
      continue;
    }
    try {
      session.Run({{entry.fed, Tensor::Scalar(found->second)}}, {}, {entry.restore}, kLimit);
    } catch (const InvalidArgumentError& error) {
      LogWarning("iterators", "iterator '", entry.name, "' stays where it is: ", error.what());
    }
  }
  return true;
}

}  // namespace cohort
