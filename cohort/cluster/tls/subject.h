// CertificateSubject: whom a certificate of Cohort is for. A certificate says it with one URI among its subject
// alternative names: "cohort://JOB_ID/job:ps/replica:0/task:0" for a task, and "cohort://JOB_ID/job:client" for all
// clients of the job.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cohort {

inline constexpr std::string_view kClientSubject = "/job:client";
// The name that a dialer asks for in the TLS handshake. gRPC's server logs an error if its certificate does not have
// it.
inline constexpr std::string_view kTlsServerName = "cohort";

struct CertificateSubject {
  std::string job_id;  // the same in all certificates of a job: 1 to 64 letters, digits, '-', '_' and '.'
  std::string task;    // "/job:ps/replica:0/task:0", or kClientSubject; "" for the authority itself

  std::string Uri() const;
};

// Returns nullopt if the URI is not of the form above.
std::optional<CertificateSubject> ParseSubject(std::string_view uri);

// Returns whether a process with a certificate for `subject` may call itself `task`. A client has a random index. A
// task of the job may be a client, too: a worker can open a session on a server of another process.
bool MayBe(std::string_view subject, std::string_view task);

// Returns "/job:ps/replica:0/task:0" for ("ps", 0), and kClientSubject for the job "client".
std::string SubjectOf(std::string_view job, int index);
// Returns the name of a subject's files without an ending: "ps-0" or "client".
std::string FileStem(std::string_view job, int index);

}  // namespace cohort
