// The headers of the step protocol's messages and of the collectives' messages, without the frames around them. The
// first byte is the kind, the second one the number of tensors, and the rest is the header.
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/messages.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  Message message;
  message.kind = input.Byte();
  message.tensors.assign(input.Below(8), Tensor::Scalar(1.0f));
  message.header = input.Rest();
  fuzz::DecodeAny(message);
  return 0;
}
