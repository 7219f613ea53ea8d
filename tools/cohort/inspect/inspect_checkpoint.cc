#include <google/protobuf/stubs/logging.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/proto/checkpoint.pb.h"
#include "tools/cohort/inspect/inspect_kinds.h"

namespace cohort::tools {
namespace {

std::string Hex(uint32_t value) {
  char text[11];
  std::snprintf(text, sizeof(text), "0x%08x", value);
  return text;
}

constexpr char kObjectGraph[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

class CheckpointLister {
 public:
  CheckpointLister(const std::string& prefix, const InspectOptions& options, std::ostream& out, std::ostream& err)
      : reader_(prefix), options_(options), out_(out), err_(err) {}

  bool List() {
    ReadVariableNames();
    AddRow("variable", {"tensor", "dtype", "shape", "bytes", "shard", "offset", options_.verify ? "crc" : "crc32c"});
    for (const auto& [name, entry] : reader_.tensors()) ListTensor(name, entry);
    out_ << "checkpoint " << reader_.prefix() << ": " << reader_.tensors().size() << " tensors, " << bytes_
         << " bytes in " << reader_.num_shards() << (reader_.num_shards() == 1 ? " shard\n" : " shards\n");
    table_.Print(out_);
    Try([this] { reader_.CheckFiles(); });
    if (problems_ > 0) err_ << "cohort inspect: " << problems_ << (problems_ == 1 ? " problem\n" : " problems\n");
    return problems_ == 0;
  }

 private:
  // Returns whether `call` throws nothing. Reports what it throws, but only once.
  template <typename Call>
  bool Try(const Call& call) {
    try {
      call();
      return true;
    } catch (const Error& error) {
      if (error.what() != last_problem_) {
        err_ << "cohort inspect: " << error.what() << "\n";
        ++problems_;
      }
      last_problem_ = error.what();
      return false;
    }
  }

  // Checkpoints of objects, which TensorFlow 2 writes, call their tensors by the way to the object. They also have the
  // names of the variables.
  void ReadVariableNames() {
    const auto entry = reader_.tensors().find(kObjectGraph);
    if (entry == reader_.tensors().end() || entry->second.dtype() != DType::kString || entry->second.shape != Shape()) {
      return;
    }
    proto::TrackableObjectGraph objects;
    const google::protobuf::LogSilencer quiet;  // names that are no UTF-8 are only reported here, too
    if (!Try([&] { CheckParsed(objects.ParseFromString(reader_.Read(kObjectGraph).scalar<std::string>())); })) return;
    for (const auto& object : objects.nodes()) {
      for (const auto& tensor : object.attributes()) variables_[tensor.checkpoint_key()] = tensor.full_name();
    }
  }
  static void CheckParsed(bool parsed) {
    if (!parsed) throw DataLossError(StrCat("[checkpoint] the value of ", kObjectGraph, " is damaged"));
  }

  // The name of the variable is in the last column, if there are such names.
  void AddRow(const std::string& variable, std::vector<std::string> cells) {
    if (!variables_.empty()) cells.push_back(Printable(variable));
    table_.AddRow(std::move(cells));
  }

  void ListTensor(const std::string& name, const BundleEntry& entry) {
    const bool good = !options_.verify || Try([&] { reader_.Verify(name); });
    const std::string state = good ? "ok" : "BAD";
    std::vector<const BundleEntry*> parts;
    Try([&] { parts = reader_.StoredParts(name); });
    int64_t bytes = 0;
    for (const BundleEntry* part : parts) bytes += part->size;
    bytes_ += bytes;
    const auto known = variables_.find(name);
    const std::string variable = known == variables_.end() ? "" : known->second;
    if (entry.slices.empty()) {
      AddRow(variable, {Printable(name), entry.dtype_name(), entry.shape.ToString(), StrCat(bytes), StrCat(entry.shard),
                        StrCat(entry.offset), options_.verify ? state : Hex(entry.crc32c)});
    } else {
      AddRow(variable, {Printable(name), entry.dtype_name(), entry.shape.ToString(), StrCat(bytes),
                        StrCat(entry.slices.size(), " parts"), "", options_.verify ? state : ""});
    }
    for (size_t i = 0; i < parts.size() && !entry.slices.empty(); ++i) {
      AddRow("", {"  " + entry.slices[i].ToString(), "", parts[i]->shape.ToString(), StrCat(parts[i]->size),
                  StrCat(parts[i]->shard), StrCat(parts[i]->offset), options_.verify ? "" : Hex(parts[i]->crc32c)});
    }
    if (options_.values && entry.dtype() == DType::kInvalid) {
      table_.AddLine(StrCat("  (values of ", entry.dtype_name(), " cannot be shown)"));
    } else if (options_.values && good) {
      Try([&] { table_.AddLine("  " + Printable(reader_.Read(name).ToString(options_.max_values))); });
    }
  }

  const BundleReader reader_;
  const InspectOptions& options_;
  std::ostream& out_;
  std::ostream& err_;
  std::map<std::string, std::string> variables_;  // names, by the names of tensors
  TextTable table_;
  int64_t bytes_ = 0;
  int problems_ = 0;
  std::string last_problem_;
};

}  // namespace

bool InspectCheckpoint(const std::string& prefix, const InspectOptions& options, std::ostream& out, std::ostream& err) {
  return CheckpointLister(prefix, options, out, err).List();
}

}  // namespace cohort::tools
