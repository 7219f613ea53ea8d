#include "cohort/cluster/status/cluster_file.h"

#include "cohort/cluster/json_text_internal.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

std::string PathOfClusterFile(const std::string& folder) {
  return StrCat(folder, folder.ends_with('/') ? "" : "/", kClusterFile);
}

}  // namespace

void WriteClusterFile(const std::string& folder, const ClusterFile& file) {
  nlohmann::json contents = nlohmann::json::parse(ClusterToJson(file.cluster));
  if (!file.token_file.empty()) contents["token_file"] = file.token_file;
  CreateDirectories(folder);
  WriteFileAtomically(PathOfClusterFile(folder), contents.dump(1) + "\n");
}

ClusterFile ReadClusterFile(const std::string& folder) {
  const std::string path = PathOfClusterFile(folder);
  if (!FileExists(path)) {
    throw NotFoundError(StrCat("[status] expected the file ", path,
                               ", which the chief of a training writes; got none; "
                               "give the address of a task instead"));
  }
  const std::string text = ReadFile(path);
  try {
    ClusterFile file{.cluster = ParseTFConfig(text).cluster};
    const nlohmann::json contents = cluster_internal::ParseJson(text, "cluster file");
    if (const auto token = contents.find("token_file"); token != contents.end() && token->is_string()) {
      file.token_file = token->get<std::string>();
    }
    if (file.cluster.empty()) throw InvalidArgumentError("it names no task");
    return file;
  } catch (const Error& e) {
    throw InvalidArgumentError(StrCat("[status] expected the addresses of a cluster in ", path, "; got: ", e.what()));
  }
}

}  // namespace cohort
