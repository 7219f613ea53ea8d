#include "tools/cohort/inspect/inspect.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "cohort/checkpoint/bundle_format.h"
#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/record_io.h"
#include "cohort/core/str_cat.h"
#include "cohort/summary/event_reader.h"
#include "tools/cohort/inspect/inspect_kinds.h"

namespace cohort::tools {
namespace {

namespace fs = std::filesystem;

bool HasEventName(const std::string& path) {
  return fs::path(path).filename().string().find("tfevents") != std::string::npos;
}

// Returns whether the file is an event file. An event file with another name begins with the version.
bool IsEventFile(const std::string& path) {
  if (HasEventName(path)) return true;
  try {
    EventReader reader(path);
    Event event;
    return reader.Read(&event) == RecordReader::Outcome::kRecord && event.kind == Event::Kind::kFileVersion;
  } catch (const Error&) {
    return false;
  }
}

// Returns the prefix of the checkpoint that `path` names or belongs to, or "" if there is none.
std::string CheckpointPrefix(const std::string& path) {
  if (FileExists(IndexFileName(path))) return path;
  const fs::path file(path);
  std::string prefix = (file.parent_path() / file.stem()).string();
  const std::string extension = file.extension().string();
  if (extension == ".index" || extension == ".meta") return prefix;
  return extension.starts_with(".data-") && FileExists(IndexFileName(prefix)) ? prefix : "";
}

bool InspectDirectory(const std::string& path, const InspectOptions& options, std::ostream& out, std::ostream& err) {
  std::vector<std::string> events;
  bool has_checkpoint = false;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (HasEventName(entry.path().string())) events.push_back(entry.path().string());
    has_checkpoint = has_checkpoint || entry.path().extension() == ".index";
  }
  std::sort(events.begin(), events.end());
  if (events.empty() && !has_checkpoint) {
    throw NotFoundError(
        StrCat("there is no checkpoint (*.index), no event file (*tfevents*) and no saved_model.pb in ", path));
  }
  bool good = true;
  if (has_checkpoint) {
    const std::string latest = LatestCheckpoint(path);
    if (latest.empty()) {
      err << "cohort inspect: no checkpoint in " << path << " is complete\n";
      good = false;
    } else {
      good = InspectCheckpoint(latest, options, out, err);
    }
  }
  for (const std::string& file : events) good = InspectEvents(file, options, out, err) && good;
  return good;
}

// Throws InvalidArgumentError if the file is of a kind that other programs list: it says which, and how.
void RefuseKerasFile(const std::string& path) {
  char begin[8];
  const std::string_view bytes(begin, RandomAccessFile(path).Read(0, begin));
  const char* expected = "expected a checkpoint, an event file or a TFRecord file; got ";
  if (bytes.starts_with("PK\x03\x04")) {
    throw InvalidArgumentError(
        StrCat(expected, path, ", a zip archive, such as Keras's .keras files are; list its members with `unzip -l ",
               path, "`, print its layers as JSON with `unzip -p ", path,
               " config.json`, or call keras::LoadModel and Summary in a program"));
  }
  if (bytes == "\x89HDF\r\n\x1a\n") {
    throw InvalidArgumentError(StrCat(
        expected, path, ", an HDF5 file, such as Keras's .weights.h5 files are; list its ", "weights with `h5ls -r ",
        path, "` (package hdf5-tools), or call LoadWeights of the model in a program"));
  }
}

bool InspectAny(const std::string& path, const InspectOptions& options, std::ostream& out, std::ostream& err) {
  const std::string prefix = CheckpointPrefix(path);
  if (!prefix.empty()) return InspectCheckpoint(prefix, options, out, err);
  if (!FileExists(path)) {
    throw NotFoundError(StrCat("expected a checkpoint, an event file, a TFRecord file or a directory of them; neither ",
                               path, " nor ", IndexFileName(path), " exists"));
  }
  if (fs::is_directory(path) && FileExists(path + "/saved_model.pb")) return InspectSavedModel(path, options, out, err);
  if (fs::is_directory(path)) return InspectDirectory(path, options, out, err);
  if (fs::path(path).filename() == "saved_model.pb") {
    const std::string dir = fs::path(path).parent_path();
    return InspectSavedModel(dir.empty() ? "." : dir, options, out, err);
  }
  RefuseKerasFile(path);
  return IsEventFile(path) ? InspectEvents(path, options, out, err) : InspectRecords(path, options, out, err);
}

}  // namespace

void TextTable::Print(std::ostream& out) const {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows_) {
    if (row.size() == 1) continue;
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      out << row[i] << (last ? "" : std::string(widths[i] - row[i].size() + 2, ' '));
    }
    out << "\n";
  }
}

std::string Printable(const std::string& text) { return PrintableKey(text); }

int Inspect(const std::string& path, const InspectOptions& options, std::ostream& out, std::ostream& err) {
  try {
    return InspectAny(path, options, out, err) ? 0 : 1;
  } catch (const std::exception& error) {
    err << "cohort inspect: " << error.what() << "\n";
    return 1;
  }
}

int Inspect(const std::string& path, const InspectOptions& options) {
  return Inspect(path, options, std::cout, std::cerr);
}

}  // namespace cohort::tools
