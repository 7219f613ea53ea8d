// `cohort certificates`: makes the authority and the certificates of a cluster on several hosts.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/cluster/tls/certificates.h"
#include "cohort/cluster/tls/subject.h"
#include "cohort/cluster/tls/tls_files.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/str_split.h"
#include "tools/cohort/command.h"
#include "tools/cohort/launch_layout.h"

namespace cohort::tools {
namespace {

namespace fs = std::filesystem;

constexpr char kCertificatesFooter[] =
    "FOLDER then has one folder for each host of the cluster, with ca.pem, the job's token, a certificate and a key\n"
    "for each task of the host, and those of a client. Copy it to the host, and set COHORT_TLS_FOLDER there to its\n"
    "path: each task finds its own files. FOLDER/client is for programs on other hosts. FOLDER/ca.key makes more\n"
    "certificates: who has it can be any task, so keep it on this host. A second run with the same FOLDER makes new\n"
    "certificates with the same authority.\n\n"
    "Example, for two hosts:\n"
    "  cohort certificates --ps_hosts=10.0.0.1:2222 --worker_hosts=10.0.0.1:2223,10.0.0.2:2222 --out=tls\n"
    "  scp -rp tls/10.0.0.2 10.0.0.2:tls\n"
    "  export COHORT_TLS_FOLDER=$PWD/tls/10.0.0.1        # on 10.0.0.1; on 10.0.0.2: $HOME/tls\n\n"
    "docs/security.md says how to use certificates of another authority.\n";

struct CertificateFlags {
  std::string cluster;
  std::string ps_hosts;
  std::string worker_hosts;
  std::string out;
  std::string job_id;
  int days = 365;
};

// Returns the cluster of {"cluster": {...}} or of the inner part alone.
ClusterSpec ClusterIn(const std::string& json) {
  const ClusterSpec whole = ParseTFConfig(json).cluster;
  return whole.empty() ? ParseTFConfig(StrCat("{\"cluster\":", json, "}")).cluster : whole;
}

ClusterSpec ClusterOfFlags(const CertificateFlags& flags) {
  if (!flags.cluster.empty()) return ClusterIn(flags.cluster);
  if (flags.ps_hosts.empty() && flags.worker_hosts.empty()) return TFConfigClusterResolver().cluster_spec();
  std::map<std::string, std::vector<std::string>> jobs;
  if (!flags.ps_hosts.empty()) jobs["ps"] = StrSplit(flags.ps_hosts, ',');
  if (!flags.worker_hosts.empty()) jobs["worker"] = StrSplit(flags.worker_hosts, ',');
  return ClusterSpec(jobs);
}

CertificateAuthority AuthorityFor(const CertificateFlags& flags, const Validity& validity) {
  const std::string certificate = (fs::path(flags.out) / "ca.pem").string();
  const std::string key = (fs::path(flags.out) / "ca.key").string();
  if (!fs::exists(certificate)) {
    CertificateAuthority made(flags.job_id.empty() ? NewJobId() : flags.job_id, validity);
    MakePrivateFolder(flags.out);
    WriteKeyFile(key, made.key());
    WriteCertificateFile(certificate, made.certificate());
    return made;
  }
  if (!fs::exists(key)) {
    throw FailedPreconditionError(
        StrCat("[certificates] expected the key of the authority in ", key,
               "; there is none; to make new certificates for all tasks, give another --out"));
  }
  CertificateAuthority found(certificate, key);
  if (!flags.job_id.empty() && flags.job_id != found.job_id()) {
    throw InvalidArgumentError(
        StrCat("[certificates] expected --job_id=", found.job_id(), ", as in ", certificate, "; got ", flags.job_id));
  }
  return found;
}

// Returns the name of a host's folder. A path of `scp` must not contain a colon.
std::string FolderOf(std::string host) {
  std::replace(host.begin(), host.end(), ':', '_');
  return host;
}

// Returns the job's token. The first run makes it.
std::string TokenIn(const std::string& file) {
  if (fs::exists(file)) return ReadKeyFile(file);
  const std::string made = NewToken() + "\n";
  WriteKeyFile(file, made);
  return made;
}

void MakeCertificates(const CertificateFlags& flags, const ClusterSpec& cluster) {
  const Validity validity = ValidForDays(flags.days);
  const CertificateAuthority authority = AuthorityFor(flags, validity);
  const std::string token = TokenIn((fs::path(flags.out) / "token").string());
  const auto write = [&](const std::string& folder, const std::string& job, int index) {
    MakePrivateFolder(folder);
    WriteKeyFile((fs::path(folder) / "token").string(), token);
    WriteTlsFiles(TlsFilesIn(folder, job, index), authority.certificate(),
                  authority.Issue(SubjectOf(job, index), validity));
  };
  std::map<std::string, std::string> tasks_of;  // by the path of the host's folder
  for (const auto& [job, index] : cluster.tasks()) {
    const std::string host = FolderOf(ParseAddress(cluster.task_address(job, index)).host);
    const std::string folder = (fs::path(flags.out) / host).string();
    write(folder, job, index);
    std::string& tasks = tasks_of[folder];
    tasks += StrCat(tasks.empty() ? "" : ", ", TaskName(job, index));
  }
  const std::string clients = (fs::path(flags.out) / "client").string();
  tasks_of[clients];
  for (auto& [folder, tasks] : tasks_of) {
    write(folder, "client", 0);
    tasks += StrCat(tasks.empty() ? "" : ", ", "clients");
    std::cout << folder << ": " << tasks << "\n";
  }
  std::cout << "job " << authority.job_id() << ", for " << flags.days << " days. Copy each folder to its host, and set "
            << "COHORT_TLS_FOLDER to its path there.\n";
}

}  // namespace

int CertificatesCommand(const Arguments& arguments) {
  CLI::App app("Makes certificates for the tasks of a cluster on several hosts, for TLS between them.",
               "cohort certificates");
  app.set_help_flag("-h,--help", "Print this text");
  app.footer(kCertificatesFooter);
  CertificateFlags flags;
  app.add_option("--cluster", flags.cluster, R"(The cluster, as in TF_CONFIG: {"ps": ["h0:2222"], "worker": [...]})")
      ->type_name("JSON");
  app.add_option("--ps_hosts", flags.ps_hosts, "Addresses of the parameter servers, host:port, separated by commas");
  app.add_option("--worker_hosts", flags.worker_hosts, "Addresses of the workers, host:port, separated by commas");
  app.add_option("--out", flags.out, "Folder for the certificates; made if missing")->required()->type_name("FOLDER");
  app.add_option("--days", flags.days, "Days for which they hold (365)")
      ->check(CLI::Range(1, 36500).description(""))
      ->type_name("N");
  app.add_option("--job_id", flags.job_id, "Name of the job in the certificates (a random one)")->type_name("ID");
  if (const auto done = ParseFlags(&app, arguments.flags)) return *done;
  try {
    const ClusterSpec cluster = ClusterOfFlags(flags);
    if (cluster.empty()) {
      return UsageError(app.get_name(), "no cluster: give --cluster, or --ps_hosts and --worker_hosts, or TF_CONFIG");
    }
    MakeCertificates(flags, cluster);
    return 0;
  } catch (const Error& e) {
    std::cerr << "cohort certificates: " << CodeName(e.code()) << ": " << e.what() << "\n";
    return 1;
  }
}

}  // namespace cohort::tools
