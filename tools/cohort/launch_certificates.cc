#include "tools/cohort/launch_certificates.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "cohort/cluster/tls/certificates.h"
#include "cohort/cluster/tls/subject.h"
#include "cohort/cluster/tls/tls_files.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"

namespace cohort::tools {
namespace {

constexpr int kDays = 3650;
constexpr char kClientJob[] = "client";

std::string NewFolder() {
  std::error_code none;
  const std::filesystem::path base = std::filesystem::temp_directory_path(none);
  std::string path = ((none ? std::filesystem::path("/tmp") : base) / "cohort-tls-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) ThrowErrno(errno, StrCat("[launch] cannot make a folder ", path, " for --tls"));
  return path;
}

}  // namespace

LaunchCertificates::LaunchCertificates(const std::vector<TaskId>& tasks) : folder_(NewFolder()) {
  try {
    const Validity validity = ValidForDays(kDays);
    const CertificateAuthority authority(NewJobId(), validity);
    const auto write = [&](const std::string& job, int index) {
      WriteTlsFiles(TlsFilesIn(folder_, job, index), authority.certificate(),
                    authority.Issue(SubjectOf(job, index), validity));
    };
    for (const TaskId& task : tasks) {
      if (task.InCluster()) write(task.job, task.index);
    }
    write(kClientJob, 0);
  } catch (...) {
    Remove();
    throw;
  }
}

void LaunchCertificates::SetFiles(const TaskId& task, Environment* current) const {
  const TlsOptions files = TlsFilesIn(folder_, task.InCluster() ? task.job : kClientJob, task.index);
  current->erase("COHORT_TLS_FOLDER");
  (*current)["COHORT_TLS_CA"] = files.ca_file;
  (*current)["COHORT_TLS_CERTIFICATE"] = files.certificate_file;
  (*current)["COHORT_TLS_KEY"] = files.key_file;
}

void LaunchCertificates::Remove() const {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace cohort::tools
