// TestCertificates: the files of TLS of one job, for tests.
#pragma once

#include <ctime>
#include <string>

#include "cohort/cluster/tls/certificates.h"
#include "cohort/cluster/tls/subject.h"
#include "cohort/cluster/tls/tls_files.h"
#include "cohort/core/testing/temp_folder.h"

namespace cohort::testing {

// An authority of its own, whose certificates are in a folder that ends with this object. The test owns it.
class TestCertificates {
 public:
  static constexpr std::time_t kHour = 3600;

  explicit TestCertificates(const std::string& job_id = "test") : authority_(job_id, ValidForDays(1)) {}

  const CertificateAuthority& authority() const { return authority_; }
  const TempFolder& folder() const { return folder_; }
  // Writes the files of the task, and returns them. The job "client" is that of clients.
  TlsOptions For(const std::string& job, int index = 0) const { return Make(job, index, ValidForDays(1)); }
  // The certificate of these files held until an hour ago.
  TlsOptions ExpiredFor(const std::string& job, int index = 0) const {
    const std::time_t now = std::time(nullptr);
    return Make(job, index, {now - 2 * kHour, now - kHour});
  }

 private:
  TlsOptions Make(const std::string& job, int index, const Validity& validity) const {
    const TlsOptions files = TlsFilesIn(folder_.path(), job, index);
    WriteTlsFiles(files, authority_.certificate(), authority_.Issue(SubjectOf(job, index), validity));
    return files;
  }

  const TempFolder folder_;
  const CertificateAuthority authority_;
};

}  // namespace cohort::testing
