// TlsOptions: the files with which a process proves to other tasks who it is. docs/security.md has the whole story.
#pragma once

#include <string>

#include "cohort/core/export.h"

namespace cohort {

// The three files of mutual TLS, in PEM form. Set all of them or none. If none is set, the process takes the files of
// its environment: those that COHORT_TLS_CA, COHORT_TLS_CERTIFICATE and COHORT_TLS_KEY name, or else those of this task
// in the folder COHORT_TLS_FOLDER (`cohort certificates` makes such folders). If the environment names none either,
// there is no TLS.
struct COHORT_EXPORT TlsOptions {
  std::string ca_file;           // the certificates of the authorities that may sign certificates of this job's tasks
  std::string certificate_file;  // the certificate of this task, and those between it and the authority, if any
  std::string key_file;          // the private key of the certificate; other users must not be able to read it

  bool empty() const { return ca_file.empty() && certificate_file.empty() && key_file.empty(); }
  bool operator==(const TlsOptions&) const = default;
};

}  // namespace cohort
