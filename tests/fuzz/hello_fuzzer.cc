// The first message of a peer, before it has proved anything, and the description of a cluster in it.
#include "cohort/cluster/handshake.h"
#include "cohort/cluster/steps/protocol.h"
#include "cohort/cluster/tf_config.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Hello hello;
  if (!fuzz::Accepts([&] { hello = DecodeHello(fuzz::View(data, size)); })) return 0;
  fuzz::Accepts([&] { ParseTFConfig(hello.identity.cluster); });
  TaskIdentity mine;
  mine.task = "/job:ps/replica:0/task:0";
  mine.protocol_version = kProtocolVersion;
  fuzz::Accepts([&] { CheckCompatible(mine, hello.identity, hello.expected_task); });
  fuzz::Accepts([&] {
    CheckProof(hello.proof, ProveToken("a token", "dial", hello.nonce, std::string(16, 'n')), hello.identity);
  });
  const std::string again = EncodeHello(hello);
  fuzz::Require(EncodeHello(DecodeHello(again)) == again);
  return 0;
}
