// Saver. The constructor chooses the variables and adds the nodes. Save writes a checkpoint, then the state file, then
// deletes checkpoints that are no longer kept. Restore reads and checks all values first, and then assigns them in
// steps of up to kRestoreBytes.
#include "cohort/checkpoint/saver.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>

#include "cohort/checkpoint/stored_variable.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/checkpoint/variable_snapshots.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// Small variables are assigned together in one step, up to this many bytes.
constexpr size_t kRestoreBytes = size_t{4} << 20;

double SecondsSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void ExpectIn(const Graph& graph, const ops::Variable& variable) {
  if (variable.valid() && &variable.graph() == &graph) return;
  throw InvalidArgumentError(
      "[saver] expected variables of the graph in var_list; got one of none or of another graph");
}

// Returns the variable as checkpoints have it under the name `name`.
VariableInfo Renamed(const VariableInfo& variable, const std::string& name) {
  VariableInfo renamed = variable;
  renamed.name = name;
  if (!renamed.rows_of) return renamed;
  if (!name.starts_with(variable.name)) {
    throw InvalidArgumentError(StrCat("[saver] expected a name that begins with '", variable.name,
                                      "' for this part of '", renamed.rows_of->name, "'; got '", name, "'"));
  }
  renamed.rows_of->name += name.substr(variable.name.size());
  return renamed;
}

// Checks every byte of the checkpoint `prefix`.
Status CheckIntact(const std::string& prefix) {
  try {
    VerifyCheckpoint(prefix);
    return Status();
  } catch (const Error&) {
    return Status::FromCurrentException();
  }
}

double ModifiedAt(const std::string& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  if (error) return 0;
  return std::chrono::duration<double>(std::chrono::file_clock::to_sys(time).time_since_epoch()).count();
}

}  // namespace

std::vector<VariableInfo*> Saver::VariablesOf(const Graph& graph) {
  if (!options_.names.empty() && !options_.var_list.empty()) {
    throw InvalidArgumentError("[saver] expected either var_list or names; got both");
  }
  std::vector<VariableInfo*> variables;
  for (const ops::Variable& variable : options_.var_list) {
    ExpectIn(graph, variable);
    variables.push_back(variable.info());
  }
  for (const auto& [name, variable] : options_.names) {
    ExpectIn(graph, variable);
    variables.push_back(&renamed_.emplace_back(Renamed(*variable.info(), name)));
  }
  if (variables.empty()) {
    for (VariableInfo* variable : graph.variables()) {
      if (!variable->local) variables.push_back(variable);
    }
  }
  if (variables.empty())
    throw InvalidArgumentError("[saver] expected at least one variable; the graph has none to save");
  std::sort(variables.begin(), variables.end(), [](auto* a, auto* b) { return a->name < b->name; });
  const auto twice =
      std::adjacent_find(variables.begin(), variables.end(), [](auto* a, auto* b) { return a->name == b->name; });
  if (twice != variables.end()) {
    throw InvalidArgumentError(
        StrCat("[saver] expected variables of different names; got '", (*twice)->name, "' twice"));
  }
  return variables;
}

Saver::Saver(Graph& graph, const SaverOptions& options)
    : options_(options),
      variables_(VariablesOf(graph)),
      rotation_(options.max_to_keep, options.keep_checkpoint_every_n_hours, SecondsSince1970()) {
  const NameScope scope(graph, options.name);
  snapshots_ = std::make_unique<VariableSnapshots>(graph, variables_);
  for (const VariableInfo* variable : variables_) {
    const Output fed = graph.Op("Placeholder")
                           .Name("restored")
                           .Attr("dtype", variable->dtype)
                           .Attr("shape", variable->shape)
                           .IgnoreScopes()
                           .Finish1();
    Node* assign = graph.Op("AssignVariableOp")
                       .Name("Assign")
                       .Input(variable->handle)
                       .Input(fed)
                       .IgnoreScopes()
                       .Device(variable->handle.node->device())
                       .Colocate(variable->handle.node->name())
                       .Finish();
    assignments_.push_back({fed, assign});
  }
}

Saver::~Saver() = default;

std::string Saver::PrefixOf(const std::string& save_path, std::optional<int64_t> global_step) const {
  if (save_path.empty() || save_path.back() == '/') {
    throw InvalidArgumentError(
        StrCat("[saver] expected a path with a file name, as in 'logdir/model.ckpt'; got '", save_path, "'"));
  }
  if (!global_step) return save_path;
  char number[32];
  std::snprintf(number, sizeof number, options_.pad_step_number ? "%08lld" : "%lld",
                static_cast<long long>(*global_step));
  return StrCat(save_path, "-", number);
}

std::string Saver::Save(Session& session, const std::string& save_path, std::optional<int64_t> global_step) {
  std::string prefix = PrefixOf(save_path, global_step);
  MutexLock lock(mu_);
  if (options_.sharded) {
    snapshots_->WriteSharded(session, prefix);
  } else {
    snapshots_->Write(session, prefix);
  }
  const std::vector<std::string> outdated = rotation_.Add(prefix, SecondsSince1970());
  CheckpointState state;
  state.model_checkpoint_path = prefix;
  state.all_model_checkpoint_paths = rotation_.StatePaths();
  WriteCheckpointState(DirectoryOf(prefix), std::move(state), options_.save_relative_paths, options_.latest_filename);
  for (const std::string& old : outdated) {
    try {
      DeleteCheckpoint(old);
    } catch (const Error& e) {
      LogWarning("saver", "the old checkpoint ", old, " could not be deleted: ", e.what());
    }
  }
  return prefix;
}

void Saver::CheckFits(const BundleReader& reader) const {
  for (const VariableInfo* variable : variables_) {
    const StoredVariable stored = StoredVariable::In(reader, *variable);
    const BundleEntry& entry = reader.Find(stored.name);
    if (!IsReadableAs(entry.dtype(), variable->dtype)) {
      throw InvalidArgumentError(StrCat("[saver] expected variable '", stored.name, "' as ", variable->dtype,
                                        stored.shape, "; got ", entry.dtype_name(), entry.shape, " in checkpoint ",
                                        reader.prefix()));
    }
    if (!stored.shape.IsCompatibleWith(entry.shape)) {
      throw InvalidArgumentError(StrCat("[saver] Assign requires shapes of both tensors to match: variable '",
                                        stored.name, "' has shape ", stored.shape, ", checkpoint ", reader.prefix(),
                                        " has ", entry.shape,
                                        "; restore a checkpoint of this model, or use another logdir"));
    }
  }
}

void Saver::Assign(Session& session, const BundleReader& reader, const std::vector<std::string>& only) const {
  FeedList feeds;
  std::vector<Node*> assigns;
  size_t bytes = 0;
  const auto flush = [&] {
    session.Run(feeds, {}, assigns);
    feeds.clear();
    assigns.clear();
    bytes = 0;
  };
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!only.empty() && std::ranges::find(only, variables_[i]->name) == only.end()) continue;
    const StoredVariable stored = StoredVariable::In(reader, *variables_[i]);
    const Shape& whole = reader.Find(stored.name).shape;
    const int64_t elements = (stored.rows ? stored.rows->ShapeIn(whole) : whole).num_elements();
    const size_t size = static_cast<size_t>(elements) * DTypeSize(variables_[i]->dtype);
    if (!feeds.empty() && bytes + size > kRestoreBytes) flush();
    bytes += size;
    feeds.emplace_back(assignments_[i].fed, stored.Read(reader, variables_[i]->dtype));
    assigns.push_back(assignments_[i].assign);
  }
  if (!feeds.empty()) flush();
}

void Saver::Restore(Session& session, const std::string& prefix) {
  MutexLock lock(mu_);
  LogInfo("saver", "Restoring parameters from ", prefix);
  const BundleReader reader(prefix);
  CheckFits(reader);
  reader.CheckFiles();
  std::set<std::string> names;  // parts of one tensor have one name
  for (const VariableInfo* variable : variables_) names.insert(StoredVariable::In(reader, *variable).name);
  for (const std::string& name : names) reader.Verify(name);
  Assign(session, reader);
}

std::string Saver::RestoreLatest(Session& session, const std::string& dir, const std::vector<std::string>& only) {
  MutexLock lock(mu_);
  std::string prefix = NewestUsableCheckpoint(dir, options_.latest_filename, CheckIntact);
  if (prefix.empty()) return "";
  LogInfo("saver", "Restoring parameters from ", prefix);
  const BundleReader reader(prefix);
  CheckFits(reader);
  Assign(session, reader, only);
  return prefix;
}

void Saver::RecoverLastCheckpoints(const std::string& dir) {
  const std::optional<CheckpointState> state = ReadCheckpointState(dir, options_.latest_filename);
  if (!state) return;
  CheckpointRotation::Kept kept;
  for (const std::string& prefix : state->all_model_checkpoint_paths) {
    const std::string index = IndexFileName(prefix);
    if (FileExists(index)) kept.emplace_back(prefix, ModifiedAt(index));
  }
  MutexLock lock(mu_);
  rotation_.Recover(std::move(kept));
}

std::vector<std::string> Saver::last_checkpoints() const {
  MutexLock lock(mu_);
  std::vector<std::string> prefixes;
  for (const auto& [prefix, time] : rotation_.kept()) prefixes.push_back(prefix);
  return prefixes;
}

}  // namespace cohort
