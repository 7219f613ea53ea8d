// Handshake: how two sides of a new connection make sure of each other - same token, same protocol, same ops, the right
// task. The token itself never travels: each side proves it with HMAC-SHA256 over both sides' random numbers.
#pragma once

#include <string>
#include <string_view>

#include "cohort/cluster/transport.h"

namespace cohort {

struct Hello {
  TaskIdentity identity;
  std::string nonce;          // 16 random bytes
  std::string expected_task;  // whom the dialer wants to reach, "" = whoever
  std::string proof;          // of the acceptor; empty in the dialer's hello
};

std::string EncodeHello(const Hello& hello);
// Throws DataLossError for bytes that are no hello.
Hello DecodeHello(std::string_view bytes);

// 16 bytes from the system's generator.
std::string NewNonce();
// HMAC-SHA256(token, side || dialer's nonce || acceptor's nonce); side is "dial" or "accept".
std::string ProveToken(const std::string& token, std::string_view side, std::string_view dialer_nonce,
                       std::string_view acceptor_nonce);
// Compares in constant time. Throws PermissionDeniedError that names the peer and where tokens come from.
void CheckProof(const std::string& proof, const std::string& expected, const TaskIdentity& peer);
// Protocol version, op registry and the task that was meant. Throws FailedPreconditionError that names both sides'
// values.
void CheckCompatible(const TaskIdentity& mine, const TaskIdentity& theirs, const std::string& expected_task);

}  // namespace cohort
