// CertificateAuthority: makes the certificates of a job, for `cohort launch --tls` and `cohort certificates`.
#pragma once

#include <ctime>
#include <memory>
#include <string>

namespace cohort {

// When a certificate holds. A peer refuses it before and after.
struct Validity {
  std::time_t from = 0;
  std::time_t until = 0;
};
// Returns the time from an hour ago, because the clocks of two hosts differ, until `days` days from now.
Validity ValidForDays(int days);

// A certificate and its private key, as PEM text.
struct KeyedCertificate {
  std::string certificate;
  std::string key;
};

// The authority that signs the certificates of one job. Its key is as secret as all keys of the job together: whoever
// has it can be any task. All keys are on the elliptic curve P-256. Const members are thread-safe.
class CertificateAuthority {
 public:
  // Makes an authority with a new key. `job_id` tells the jobs of several authorities apart (see subject.h). Throws
  // InvalidArgumentError if it is not an id.
  CertificateAuthority(const std::string& job_id, const Validity& validity);
  // Reads an authority that `cohort certificates` has written. Throws what ReadTlsFile and ReadKeyFile (tls_files.h)
  // throw, InvalidArgumentError if the files do not hold an authority of Cohort, FailedPreconditionError if the key is
  // not the certificate's, or if the certificate has expired.
  CertificateAuthority(const std::string& ca_file, const std::string& key_file);
  ~CertificateAuthority();
  CertificateAuthority(CertificateAuthority&&) noexcept;

  const std::string& job_id() const { return job_id_; }
  const std::string& certificate() const { return pem_.certificate; }
  const std::string& key() const { return pem_.key; }
  // Makes a certificate for the task, with a new key. `subject` is SubjectOf(job, index). The certificate does not
  // hold longer than the authority's. That of a client cannot be used by a server.
  KeyedCertificate Issue(const std::string& subject, const Validity& validity) const;

 private:
  struct Parts;
  std::string job_id_;
  std::unique_ptr<Parts> parts_;
  KeyedCertificate pem_;
};

// Returns 16 random hexadecimal digits, for a new job.
std::string NewJobId();

}  // namespace cohort
