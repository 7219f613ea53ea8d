// The job token: what all tasks of one job share, so that nobody else can join or command them.
#pragma once

#include <string>

namespace cohort {

// COHORT_TOKEN; else the first line of the file named by COHORT_TOKEN_FILE; else of this user's own file
// ($XDG_CONFIG_HOME or ~/.config)/cohort/token, made with a random token and mode 0600 on first use, so that a cluster
// started by hand on one machine works. Throws PermissionDeniedError for a file that others can read,
// InvalidArgumentError for an empty token, NotFoundError for a COHORT_TOKEN_FILE that is not there.
std::string JobToken();

}  // namespace cohort
