// DecodeAny: reads a message of a peer as the server does that gets it.
#pragma once

#include "cohort/cluster/transport.h"

namespace cohort::fuzz {

// Reads the header by the message's kind, and checks what the server checks before it uses the message. Does nothing
// for a kind that no part of the server has. Ignores errors of ours.
void DecodeAny(const Message& message);

}  // namespace cohort::fuzz
