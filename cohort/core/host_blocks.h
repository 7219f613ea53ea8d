// Large blocks of host memory for an owner that divides them itself. Internal: the runtime's arena uses them.
#pragma once

#include <cstddef>
#include <span>

#include "cohort/core/buffer.h"

namespace cohort {

// Returns a block of at least `bytes`. When it is freed it is kept, whole, for the next caller that asks for as much or
// a little less (down to a quarter). If a block has to come from the system, a kept one that was too small goes back
// there. All cached blocks of the size classes of `replaces`, whose place the block takes, go back to the system.
// Thread-safe.
BufferPtr AllocateWholeHostBlock(size_t bytes, std::span<const size_t> replaces);
// Returns a block that goes back to the system when it is freed, for a size that will not be asked for again.
// Thread-safe.
BufferPtr AllocatePassingHostBlock(size_t bytes);

}  // namespace cohort
