// Reads and writes the state file, finds complete checkpoints, and deletes files. The state file is a protobuf message
// as text. If it cannot be read, it is treated as missing, and the *.index files of the directory are used instead.
#include "cohort/checkpoint/checkpoint_state.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>

#include "cohort/checkpoint/bundle_format.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/proto/checkpoint.pb.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;
using google::protobuf::TextFormat;

constexpr char kToBeginAnew[] =
    "\nTo begin anew, use another folder, or restore nothing (restore = false of a Supervisor, --fresh of a program "
    "that has it)";

// Collects the first error, so that protobuf does not write errors to stderr.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty()) text = StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  std::string text;
};

std::string JoinPath(const std::string& dir, const std::string& path) {
  return path.empty() || path.front() == '/' ? path : StrCat(dir, dir.ends_with('/') ? "" : "/", path);
}

std::string RelativeTo(const std::string& dir, const std::string& path) {
  return fs::absolute(path).lexically_normal().lexically_relative(fs::absolute(dir).lexically_normal()).string();
}

// Prefixes of the directory's index files, the last modified first; equal times by descending name.
std::vector<std::string> IndexedPrefixes(const std::string& dir) {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".index") continue;
    std::error_code no_time;
    const fs::file_time_type time = it->last_write_time(no_time);
    if (!no_time) found.emplace_back(time, JoinPath(dir, it->path().stem().string()));
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> prefixes;
  prefixes.reserve(found.size());
  for (auto& [time, prefix] : found) prefixes.push_back(std::move(prefix));
  return prefixes;
}

// Returns the first complete checkpoint, or "" if there is none. Logs why the checkpoints before it are not complete.
std::string FirstComplete(const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    const Status status = CheckCheckpointComplete(prefix);
    if (status.ok()) return prefix;
    LogWarning("checkpoint", "passing over ", prefix, ": ", status.message());
  }
  return "";
}

}  // namespace

std::optional<CheckpointState> ReadCheckpointState(const std::string& dir, const std::string& file) {
  const std::string path = JoinPath(dir, file);
  if (!FileExists(path)) return std::nullopt;
  proto::CheckpointState message;
  FirstError parse_error;
  try {
    TextFormat::Parser parser;
    parser.RecordErrorsTo(&parse_error);
    parser.AllowUnknownField(true);
    if (!parser.ParseFromString(ReadFile(path), &message)) {
      LogWarning("checkpoint", "the state file ", path, " is treated as missing; ", parse_error.text);
      return std::nullopt;
    }
  } catch (const Error& error) {
    LogWarning("checkpoint", "the state file ", path, " is treated as missing: ", error.what());
    return std::nullopt;
  }
  CheckpointState state;
  state.model_checkpoint_path = JoinPath(dir, message.model_checkpoint_path());
  for (const std::string& one : message.all_model_checkpoint_paths()) {
    state.all_model_checkpoint_paths.push_back(JoinPath(dir, one));
  }
  state.all_model_checkpoint_timestamps.assign(message.all_model_checkpoint_timestamps().begin(),
                                               message.all_model_checkpoint_timestamps().end());
  state.last_preserved_timestamp = message.last_preserved_timestamp();
  return state;
}

void WriteCheckpointState(const std::string& dir, CheckpointState state, bool relative_paths, const std::string& file) {
  std::vector<std::string>& paths = state.all_model_checkpoint_paths;
  if (paths.empty() || paths.back() != state.model_checkpoint_path) paths.push_back(state.model_checkpoint_path);
  const bool relative = relative_paths || dir.empty() || dir.front() != '/';
  const auto written = [&](const std::string& path) { return relative ? RelativeTo(dir, path) : path; };

  proto::CheckpointState message;
  message.set_model_checkpoint_path(written(state.model_checkpoint_path));
  for (const std::string& path : paths) message.add_all_model_checkpoint_paths(written(path));
  for (const double time : state.all_model_checkpoint_timestamps) message.add_all_model_checkpoint_timestamps(time);
  message.set_last_preserved_timestamp(state.last_preserved_timestamp);
  std::string text;
  TextFormat::PrintToString(message, &text);
  WriteFileAtomically(JoinPath(dir, file), text);
}

Status CheckCheckpointComplete(const std::string& prefix) {
  try {
    BundleReader(prefix).CheckFiles();
    return Status();
  } catch (const Error&) {
    return Status::FromCurrentException();
  }
}

std::string LatestCheckpoint(const std::string& dir, const std::string& file) {
  const CheckpointCandidates candidates = FindCheckpoints(dir, file);
  std::string named = FirstComplete(candidates.named);
  if (!named.empty()) return named;
  std::string found = FirstComplete(candidates.others);
  if (!found.empty())
    LogWarning("checkpoint", "no state file of ", dir, " names a complete checkpoint; taking ", found);
  return found;
}

CheckpointCandidates FindCheckpoints(const std::string& dir, const std::string& file) {
  CheckpointCandidates candidates;
  if (const std::optional<CheckpointState> state = ReadCheckpointState(dir, file)) {
    if (!state->model_checkpoint_path.empty()) candidates.named.push_back(state->model_checkpoint_path);
    const std::vector<std::string>& all = state->all_model_checkpoint_paths;
    for (auto it = all.rbegin(); it != all.rend(); ++it) {
      if (*it != state->model_checkpoint_path) candidates.named.push_back(*it);
    }
  }
  for (const std::string& prefix : IndexedPrefixes(dir)) {
    if (std::find(candidates.named.begin(), candidates.named.end(), prefix) == candidates.named.end()) {
      candidates.others.push_back(prefix);
    }
  }
  return candidates;
}

std::string NewestUsableCheckpoint(const std::string& dir, const std::string& file,
                                   const std::function<Status(const std::string&)>& check) {
  for (CheckpointCandidates candidates = FindCheckpoints(dir, file);;) {
    std::string reasons;
    for (const std::vector<std::string>* list : {&candidates.named, &candidates.others}) {
      for (const std::string& prefix : *list) {
        const Status status = check(prefix);
        if (status.ok()) return prefix;
        LogWarning("checkpoint", "passing over the checkpoint ", prefix, ": ", status.message());
        reasons += StrCat("\n  ", prefix, ": ", status.ToString());
      }
    }
    if (candidates.named.empty()) {
      if (!FileExists(JoinPath(dir, file)) || ReadCheckpointState(dir, file)) return "";
      throw DataLossError(StrCat("[checkpoint] the state file ", JoinPath(dir, file),
                                 " is damaged, and no checkpoint beside it can be used:", reasons, kToBeginAnew));
    }
    CheckpointCandidates now = FindCheckpoints(dir, file);
    if (now.named == candidates.named) {
      throw DataLossError(StrCat("[checkpoint] the state file ", JoinPath(dir, file),
                                 " names checkpoints, and none of them can be used:", reasons, kToBeginAnew));
    }
    candidates = std::move(now);
  }
}

void DeleteCheckpoint(const std::string& prefix) {
  RemoveFile(IndexFileName(prefix));
  RemoveFile(prefix + ".meta");
  const std::string name_of_prefix = fs::path(prefix).filename().string();
  const std::string start = name_of_prefix + ".data-", iterators = name_of_prefix + ".iterators";
  std::error_code error;
  std::vector<std::string> data_files;
  for (fs::directory_iterator it(DirectoryOf(prefix), error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    // Keeps temporary files, which another process may be writing for this prefix.
    if ((name.starts_with(start) || name.starts_with(iterators)) && name.find(".tempstate") == std::string::npos)
      data_files.push_back(it->path().string());
  }
  for (const std::string& name : data_files) RemoveFile(name);
}

int RemoveAbandonedFiles(const std::string& dir) {
  std::vector<std::string> abandoned;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().find(".tempstate") != std::string::npos)
      abandoned.push_back(it->path().string());
  }
  for (const std::string& name : abandoned) RemoveFile(name);
  return static_cast<int>(abandoned.size());
}

}  // namespace cohort
