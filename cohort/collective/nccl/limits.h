// The time limits of groups that use NCCL. Internal to nccl/.
#pragma once

#include <chrono>

namespace cohort::collective {

// A member that is lost, frozen or different is named within this time. The limits that lead to its name are shorter.
inline constexpr std::chrono::seconds kNcclNamedWithin{5};

// How long a small collective may take. Large ones get more time, and so does the first of a kind and size.
inline constexpr std::chrono::milliseconds kNcclCollectiveLimit{4000};
// How long a call of a communicator that does not block may take.
inline constexpr std::chrono::seconds kNcclCallLimit{4};
// How long a member whose connection of NCCL's has broken waits for the reason.
inline constexpr std::chrono::seconds kNcclCauseLimit{3};
static_assert(kNcclCollectiveLimit < kNcclNamedWithin && kNcclCallLimit < kNcclNamedWithin &&
              kNcclCauseLimit < kNcclNamedWithin);

// How long the members may take to connect.
inline constexpr std::chrono::seconds kNcclConnectLimit{30};
// How long an abort may take after the group has failed. Then the process ends.
inline constexpr std::chrono::seconds kNcclAbortLimit{5};

}  // namespace cohort::collective
