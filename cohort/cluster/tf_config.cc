// Reads TF_CONFIG: parse the JSON, check the spelling of the keys, read the cluster, read the task, check that the task
// is in the cluster. Each error names the field and its value. The last part is the resolver.
#include "cohort/cluster/tf_config.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "cohort/cluster/json_text_internal.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

using cluster_internal::JsonExcerpt;
using cluster_internal::JsonKind;
using cluster_internal::ParseJson;
using nlohmann::json;

[[noreturn]] void WrongType(const std::string& field, const char* expected, const json& got,
                            const std::string& advice = "") {
  throw InvalidArgumentError(StrCat("[TF_CONFIG] expected ", expected, " as ", field, "; got ", JsonKind(got), ": ",
                                    JsonExcerpt(got), advice));
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Returns whether `a` becomes `b` if one letter is inserted, removed or replaced.
bool OneEditApart(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  size_t i = 0;
  while (i < a.size() && a[i] == b[i]) ++i;
  return a.size() == b.size() ? a.substr(std::min(i + 1, a.size())) == b.substr(std::min(i + 1, b.size()))
                              : a.substr(i) == b.substr(i + 1);
}

// Returns whether `word` was probably meant as `name`: it differs only in case, has a plural or "hosts" behind it, or
// has one wrong letter.
bool LooksLike(const std::string& word, const std::string& name) {
  const std::string lower = Lower(word);
  for (const char* suffix : {"", "s", "_hosts", "_host", "hosts", "-hosts", "_servers", "_tasks"}) {
    if (lower == name + suffix) return true;
  }
  const bool letters = std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
  return letters && name.size() > 3 && OneEditApart(lower, name);
}

void CheckSpelling(const json& object, const std::string& where, const char* what,
                   const std::vector<std::string>& known) {
  for (const auto& item : object.items()) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    for (const std::string& name : known) {
      if (LooksLike(item.key(), name)) {
        throw InvalidArgumentError(
            StrCat("[TF_CONFIG] ", where, " has a ", what, " \"", item.key(), "\"; did you mean \"", name, "\"?"));
      }
    }
  }
}

// Returns a whole number, or the number in a string. Returns nullopt for any other value.
std::optional<int64_t> AsInteger(const json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int32_t>::max()) return std::nullopt;
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string AddressOf(const std::string& field, const json& value) {
  if (!value.is_string()) WrongType(field, "an address \"host:port\"", value);
  return value.get<std::string>();
}

ClusterSpec::Tasks TasksOf(const std::string& job, const json& value) {
  const std::string field = "cluster." + job;
  ClusterSpec::Tasks tasks;
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      tasks.emplace(static_cast<int>(i), AddressOf(StrCat(field, "[", i, "]"), value[i]));
    }
    return tasks;
  }
  if (!value.is_object()) {
    WrongType(field, "a list of addresses", value, value.is_string() ? "; write [" + JsonExcerpt(value) + "]" : "");
  }
  for (const auto& item : value.items()) {
    const std::optional<int64_t> index = AsInteger(json(item.key()));
    if (!index || *index < 0 || *index > ClusterSpec::kMaxTaskIndex) {
      throw InvalidArgumentError(StrCat("[TF_CONFIG] expected task indices from 0 to ", ClusterSpec::kMaxTaskIndex,
                                        " as keys of ", field, "; got \"", item.key(), "\""));
    }
    const bool first =
        tasks.emplace(static_cast<int>(*index), AddressOf(field + "." + item.key(), item.value())).second;
    if (!first) {
      throw InvalidArgumentError(StrCat("[TF_CONFIG] expected each index once in ", field, "; got ", *index, " twice"));
    }
  }
  return tasks;
}

void CheckNoAddressTwice(const ClusterSpec& cluster) {
  std::map<std::pair<std::string, int>, std::string> seen;
  for (const auto& [job, tasks] : cluster.as_map()) {
    for (const auto& [index, address] : tasks) {
      HostPort at = ParseAddress(address);
      if (at.port == 0) continue;
      const auto [other, first] = seen.emplace(std::pair(Lower(at.host), at.port), TaskName(job, index));
      if (!first) {
        throw InvalidArgumentError(StrCat("[TF_CONFIG] expected one address a task; got \"", address, "\" for both ",
                                          other->second, " and ", TaskName(job, index)));
      }
    }
  }
}

ClusterSpec ClusterOf(const json& value) {
  if (!value.is_object()) WrongType("cluster", "an object of jobs", value);
  CheckSpelling(value, "cluster", "job", {"ps", "worker", "chief", "evaluator", "master"});
  std::map<std::string, ClusterSpec::Tasks> jobs;
  for (const auto& item : value.items()) jobs.emplace(item.key(), TasksOf(item.key(), item.value()));
  ClusterSpec cluster;
  try {
    cluster = ClusterSpec::FromSparse(std::move(jobs));
  } catch (const InvalidArgumentError& e) {
    throw InvalidArgumentError(StrCat("[TF_CONFIG] cluster: ", e.what()));
  }
  CheckNoAddressTwice(cluster);
  return cluster;
}

void ReadTask(const json& value, TFConfig* config) {
  if (!value.is_object()) WrongType("task", "an object with \"type\" and \"index\"", value);
  CheckSpelling(value, "task", "key", {"type", "index"});
  const auto type = value.find("type");
  if (type != value.end()) {
    if (!type->is_string()) WrongType("task.type", "a job name", *type);
    config->task_type = type->get<std::string>();
  }
  const auto index = value.find("index");
  if (index == value.end()) return;
  const std::optional<int64_t> number = AsInteger(*index);
  if (!number) WrongType("task.index", "a whole number", *index);
  if (*number < 0 || *number > ClusterSpec::kMaxTaskIndex) {
    throw InvalidArgumentError(
        StrCat("[TF_CONFIG] expected 0 to ", ClusterSpec::kMaxTaskIndex, " as task.index; got ", *number));
  }
  config->task_index = static_cast<int>(*number);
}

void CheckTaskInCluster(const TFConfig& config) {
  if (config.cluster.empty()) return;
  if (!config.task_type) {
    if (!config.task_index) return;
    throw InvalidArgumentError(StrCat("[TF_CONFIG] expected task.type beside task.index ", *config.task_index,
                                      "; got none; the cluster's jobs are ", StrJoin(config.cluster.jobs(), ", ")));
  }
  const std::string& type = *config.task_type;
  if (!config.cluster.has_job(type)) {
    if (type == "evaluator") return;
    throw InvalidArgumentError(StrCat("[TF_CONFIG] expected a job of the cluster (",
                                      StrJoin(config.cluster.jobs(), ", "), ") as task.type; got \"", type, "\""));
  }
  if (config.task_index && !config.cluster.has_task(type, *config.task_index)) {
    throw InvalidArgumentError(StrCat("[TF_CONFIG] expected as task.index one of job \"", type, "\"'s ",
                                      config.cluster.num_tasks(type), " tasks (",
                                      StrJoin(config.cluster.task_indices(type), ", "), "); got ", *config.task_index));
  }
}

std::optional<std::string> StringOf(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (!found->is_string()) WrongType(key, "a string", *found);
  return found->get<std::string>();
}

}  // namespace

TFConfig ParseTFConfig(std::string_view text) {
  TFConfig config;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return config;
  const json value = ParseJson(text, "TF_CONFIG");
  if (!value.is_object()) WrongType("the whole", "an object", value);
  CheckSpelling(value, "the top", "key",
                {"cluster", "task", "rpc_layer", "session_master", "eval_session_master", "environment"});
  if (value.contains("cluster")) config.cluster = ClusterOf(value["cluster"]);
  if (value.contains("task")) ReadTask(value["task"], &config);
  config.rpc_layer = StringOf(value, "rpc_layer");
  config.session_master = StringOf(value, "session_master");
  config.eval_session_master = StringOf(value, "eval_session_master");
  config.environment = StringOf(value, "environment");
  CheckTaskInCluster(config);
  return config;
}

std::string ClusterToJson(const ClusterSpec& cluster) {
  nlohmann::json jobs = nlohmann::json::object();
  for (const auto& [job, tasks] : cluster.as_map()) {
    nlohmann::json& addresses = jobs[job] = nlohmann::json::object();
    for (const auto& [index, address] : tasks) addresses[std::to_string(index)] = address;
  }
  return nlohmann::json{{"cluster", jobs}}.dump();
}

TFConfigClusterResolver::TFConfigClusterResolver(Options options) : options_(std::move(options)) {}
TFConfigClusterResolver::TFConfigClusterResolver(std::string json) : json_(std::move(json)) {}
TFConfigClusterResolver::TFConfigClusterResolver(std::string json, Options options)
    : json_(std::move(json)), options_(std::move(options)) {}

TFConfig TFConfigClusterResolver::Read() const {
  if (json_) return ParseTFConfig(*json_);
  const char* text = std::getenv("TF_CONFIG");
  return ParseTFConfig(text == nullptr ? "" : text);
}

ClusterSpec TFConfigClusterResolver::cluster_spec() const { return Read().cluster; }

std::optional<std::string> TFConfigClusterResolver::task_type() const {
  return options_.task_type ? options_.task_type : Read().task_type;
}

std::optional<int> TFConfigClusterResolver::task_id() const {
  return options_.task_id ? options_.task_id : Read().task_index;
}

std::optional<std::string> TFConfigClusterResolver::rpc_layer() const {
  return options_.rpc_layer ? options_.rpc_layer : Read().rpc_layer;
}

std::string TFConfigClusterResolver::MasterOf(std::optional<std::string> type, std::optional<int> id,
                                              std::optional<std::string> layer) const {
  if (const std::optional<std::string> master = Read().session_master) return *master;
  return ClusterResolver::MasterOf(std::move(type), id, std::move(layer));
}

}  // namespace cohort
