// The job token: a secret that all tasks of one job share. Without it a process cannot connect to them.
#pragma once

#include <string>

namespace cohort {

// Returns the token. It is the value of COHORT_TOKEN. If that is not set, it is the first line of the file that
// COHORT_TOKEN_FILE names. If that is not set either, it is the first line of the file `token` in COHORT_TLS_FOLDER, if
// there is one, and else of the user's own file cohort/token in $XDG_CONFIG_HOME or ~/.config. The first call creates
// the user's file with a random token and mode 0600, so a cluster on one machine needs no settings. Throws
// PermissionDeniedError if other users can read the file or it cannot be created, InvalidArgumentError if the token is
// empty, NotFoundError if COHORT_TOKEN_FILE names no file, and FailedPreconditionError if HOME is not set either.
std::string JobToken();

}  // namespace cohort
