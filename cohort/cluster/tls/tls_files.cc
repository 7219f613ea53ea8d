#include "cohort/cluster/tls/tls_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "cohort/cluster/tls/openssl_internal.h"
#include "cohort/cluster/tls/peer_check.h"
#include "cohort/cluster/tls/subject.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr int64_t kLargestFile = 1 << 20;
constexpr mode_t kOthers = 077;

std::string Variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

void CheckIsComplete(const TlsOptions& files, const char* where) {
  if (!files.ca_file.empty() && !files.certificate_file.empty() && !files.key_file.empty()) return;
  throw InvalidArgumentError(StrCat("[tls] expected three files of TLS in ", where, "; got the authority '",
                                    files.ca_file, "', the certificate '", files.certificate_file, "' and the key '",
                                    files.key_file, "'; give all three, or none for no TLS"));
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) ThrowErrno(errno, "[tls] cannot read " + path);
    if (fstat(fd_, &info_) != 0 || !S_ISREG(info_.st_mode)) {
      close(fd_);
      throw FailedPreconditionError(StrCat("[tls] expected a file; got something else: ", path));
    }
  }
  ~OpenFile() { close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  const struct stat& info() const { return info_; }
  std::string Contents() const {
    if (info_.st_size > kLargestFile) {
      throw ResourceExhaustedError(
          StrCat("[tls] expected a PEM file of at most ", kLargestFile, " bytes; got ", info_.st_size, ": ", path_));
    }
    std::string text(static_cast<size_t>(info_.st_size), '\0');
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t got = pread(fd_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (got < 0) ThrowErrno(errno, "[tls] cannot read " + path_);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    text.resize(done);
    return text;
  }

 private:
  const std::string path_;
  const int fd_;
  struct stat info_ {};
};

// Writes a new file of the mode beside `path`, and gives it that name.
void WriteFileOfMode(const std::string& path, const std::string& text, mode_t mode) {
  const std::string temporary = StrCat(path, ".", getpid(), ".new");
  unlink(temporary.c_str());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) ThrowErrno(errno, "[tls] cannot make " + temporary);
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  int error = errno;
  close(fd);
  if (written && rename(temporary.c_str(), path.c_str()) == 0) return;
  if (written) error = errno;
  unlink(temporary.c_str());
  ThrowErrno(error, "[tls] cannot write " + path);
}

CertificateSubject SubjectIn(X509& certificate, const std::string& file) {
  const std::vector<std::string> uris = UriNamesOf(certificate);
  const auto subject = uris.size() == 1 ? ParseSubject(uris[0]) : std::nullopt;
  if (subject && !subject->task.empty()) return *subject;
  throw InvalidArgumentError(
      StrCat("[tls] expected one URI such as cohort://JOB_ID/job:ps/replica:0/task:0 among the subject alternative ",
             "names of ", file, "; got ", uris.empty() ? "none" : uris[0]));
}

}  // namespace

std::string ReadTlsFile(const std::string& path) { return OpenFile(path).Contents(); }

std::string ReadKeyFile(const std::string& path) {
  const OpenFile file(path);
  if (file.info().st_uid != geteuid() && file.info().st_uid != 0) {
    throw PermissionDeniedError(
        StrCat("[tls] expected a key file of this user; got one of user ", file.info().st_uid, ": ", path));
  }
  if ((file.info().st_mode & kOthers) != 0) {
    throw PermissionDeniedError(StrCat("[tls] other users can read the private key in ", path, " (mode ", std::oct,
                                       file.info().st_mode & 0777, "); run: chmod 600 ", path));
  }
  return file.Contents();
}

TlsOptions TlsFilesIn(const std::string& folder, const std::string& job, int index) {
  const std::filesystem::path base(folder);
  const std::string stem = FileStem(job, index);
  return {(base / "ca.pem").string(), (base / (stem + ".pem")).string(), (base / (stem + ".key")).string()};
}

TlsOptions FindTlsFiles(const TlsOptions& given, const std::string& job, int index) {
  if (!given.empty()) {
    CheckIsComplete(given, "the options");
    return given;
  }
  const TlsOptions named{Variable("COHORT_TLS_CA"), Variable("COHORT_TLS_CERTIFICATE"), Variable("COHORT_TLS_KEY")};
  if (!named.empty()) {
    CheckIsComplete(named, "COHORT_TLS_CA, COHORT_TLS_CERTIFICATE and COHORT_TLS_KEY");
    return named;
  }
  const std::string folder = Variable("COHORT_TLS_FOLDER");
  return folder.empty() ? TlsOptions() : TlsFilesIn(folder, job, index);
}

void MakePrivateFolder(const std::string& folder) {
  const std::filesystem::path path(folder);
  if (path.has_parent_path()) CreateDirectories(path.parent_path().string());
  if (mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    ThrowErrno(errno, "[tls] cannot make the folder " + folder);
}

void WriteKeyFile(const std::string& path, const std::string& pem) { WriteFileOfMode(path, pem, S_IRUSR | S_IWUSR); }

void WriteCertificateFile(const std::string& path, const std::string& pem) {
  WriteFileOfMode(path, pem, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
}

void WriteTlsFiles(const TlsOptions& files, const std::string& ca_pem, const KeyedCertificate& own) {
  WriteCertificateFile(files.ca_file, ca_pem);
  WriteCertificateFile(files.certificate_file, own.certificate);
  WriteKeyFile(files.key_file, own.key);
}

std::shared_ptr<const TlsIdentity> LoadTlsIdentity(const TlsOptions& files) {
  if (files.empty()) return nullptr;
  CheckIsComplete(files, "the options");
  auto identity = std::make_shared<TlsIdentity>();
  identity->files = files;
  identity->ca_pem = ReadTlsFile(files.ca_file);
  identity->certificate_pem = ReadTlsFile(files.certificate_file);
  identity->key_pem = ReadKeyFile(files.key_file);
  if (CertificatesIn(identity->ca_pem).empty()) {
    throw InvalidArgumentError(StrCat("[tls] expected a certificate in PEM form in ", files.ca_file, "; got none"));
  }
  const std::vector<X509Ptr> chain = CertificatesIn(identity->certificate_pem);
  if (chain.empty()) {
    throw InvalidArgumentError(
        StrCat("[tls] expected a certificate in PEM form in ", files.certificate_file, "; got none"));
  }
  const KeyPtr key = KeyIn(identity->key_pem);
  if (key == nullptr) {
    throw InvalidArgumentError(
        StrCat("[tls] expected a private key without a password, in PEM form, in ", files.key_file, "; got none"));
  }
  const CertificateSubject subject = SubjectIn(*chain[0], files.certificate_file);
  identity->job_id = subject.job_id;
  identity->task = subject.task;
  const bool is_its_key = X509_check_private_key(chain[0].get(), key.get()) == 1;
  TakeOpenSslErrors();
  if (!is_its_key) {
    throw FailedPreconditionError(
        StrCat("[tls] the key in ", files.key_file, " is not that of the certificate in ", files.certificate_file));
  }
  const CertificateVerdict verdict = PeerCheck(*identity).CheckOwn();
  if (verdict.fault != CertificateFault::kNone) {
    throw FailedPreconditionError(
        StrCat("[tls] every peer would refuse the certificate in ", files.certificate_file, ": ", verdict.reason));
  }
  return identity;
}

void CheckIsFor(const TlsIdentity& identity, const std::string& task) {
  if (MayBe(identity.task, task)) return;
  throw FailedPreconditionError(StrCat("[tls] expected a certificate for ", task, "; got one for ", identity.task,
                                       " in ", identity.files.certificate_file,
                                       "; give each task its own (`cohort certificates` makes one for each)"));
}

}  // namespace cohort
