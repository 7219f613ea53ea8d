// Finds, reads, checks and writes the files of TLS (cohort/core/tls_options.h).
#pragma once

#include <memory>
#include <string>

#include "cohort/cluster/tls/certificates.h"
#include "cohort/core/tls_options.h"

namespace cohort {

// Returns the text of a PEM file. Throws the errors of cohort/core/file.h, and ResourceExhaustedError if the file has
// more than a mebibyte.
std::string ReadTlsFile(const std::string& path);
// Does the same for a file with a private key. Throws PermissionDeniedError also if the file belongs to another user
// (but not root), or if other users may read or write it.
std::string ReadKeyFile(const std::string& path);

// Returns `given` if it names files. Otherwise returns the files that the environment names for the task (see
// TlsOptions), or empty options. `job` is "client" for a client. Throws InvalidArgumentError if some of the three files
// are named and others are not.
TlsOptions FindTlsFiles(const TlsOptions& given, const std::string& job, int index);

// Returns the files of a task in a folder that `cohort certificates` has made: ca.pem, ps-0.pem and ps-0.key, or
// ca.pem, client.pem and client.key.
TlsOptions TlsFilesIn(const std::string& folder, const std::string& job, int index);

// Makes `folder` and its parents if they are missing. A new folder is open for this user alone. Throws the errors of
// cohort/core/file.h.
void MakePrivateFolder(const std::string& folder);
// Writes the three files of TlsFilesIn, and replaces older ones. Only this user can read the key. Throws the errors of
// cohort/core/file.h.
void WriteTlsFiles(const TlsOptions& files, const std::string& ca_pem, const KeyedCertificate& own);
// Writes a file with a private key, and replaces an older one. Only this user can read the new file, at any time.
void WriteKeyFile(const std::string& path, const std::string& pem);
// Writes a file that others may read, and replaces an older one.
void WriteCertificateFile(const std::string& path, const std::string& pem);

// What a process proves itself with: the contents of the three files, and whom they are for. Constant.
struct TlsIdentity {
  TlsOptions files;
  std::string ca_pem;
  std::string certificate_pem;
  std::string key_pem;  // secret: it is never logged
  std::string job_id;
  std::string task;  // SubjectOf(job, index)
};

// Reads the files. Returns null if `files` is empty. Throws what ReadTlsFile and ReadKeyFile throw;
// InvalidArgumentError if a file does not hold what it should, or if the certificate names no task (subject.h);
// FailedPreconditionError if the key is not that of the certificate, if the authority has not signed the certificate,
// or if the certificate has expired.
std::shared_ptr<const TlsIdentity> LoadTlsIdentity(const TlsOptions& files);

// Throws FailedPreconditionError if the certificate is not for `task`, a full task name such as
// "/job:ps/replica:0/task:0". Every certificate of the job will do for a client.
void CheckIsFor(const TlsIdentity& identity, const std::string& task);

}  // namespace cohort
