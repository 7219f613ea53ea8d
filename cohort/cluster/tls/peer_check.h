// PeerCheck: decides whether a peer's certificate is good, and says what is wrong with it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace cohort {

struct TlsIdentity;

enum class CertificateFault {
  kNone,
  kMissing,    // the peer has shown no certificate
  kForeign,    // no authority of this job has signed it, or it is for another job
  kExpired,    // or it does not hold yet
  kOtherTask,  // it is for another task than the one that is expected
};

// Returns "missing", "foreign", "expired" or "another task's".
std::string_view FaultName(CertificateFault fault);

struct CertificateVerdict {
  CertificateFault fault = CertificateFault::kNone;
  std::string reason;  // the sentence for the log; "" if there is no fault
  std::string task;    // whom the certificate is for, as in TlsIdentity::task; "" unless the authority has signed it
};

// Which side of a connection the peer is.
enum class PeerSide { kDialer, kAcceptor };

// The check of all peers of one process. Thread-safe. The owner is the transport.
class PeerCheck {
 public:
  // Copies what it needs from `own`. Requires: own.ca_pem holds certificates.
  explicit PeerCheck(const TlsIdentity& own);
  ~PeerCheck();
  PeerCheck(const PeerCheck&) = delete;
  PeerCheck& operator=(const PeerCheck&) = delete;

  // Checks what a peer has shown: `certificate` is its own, `chain` those between it and the authority, both PEM text.
  // `expected_task` is a full task name; "" means any task of the job.
  CertificateVerdict Check(std::string_view certificate, std::string_view chain, PeerSide side,
                           const std::string& expected_task) const;
  // Checks the certificate of this process as its peers will.
  CertificateVerdict CheckOwn() const;

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace cohort
