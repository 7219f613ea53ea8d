// The messages of the handshake, before a peer has proved anything. The first byte chooses: an acceptor or a dialer
// that gets the rest of the input as messages, or a whole handshake between two sides with identities of the input, in
// which one byte of one message is changed. No such change may go unnoticed.
#include <optional>
#include <string>

#include "cohort/cluster/handshake.h"
#include "cohort/cluster/steps/protocol.h"
#include "cohort/cluster/tf_config.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

namespace {

constexpr char kToken[] = "a token of enough bytes";
constexpr char kAddress[] = "127.0.0.1:2222";

TaskIdentity Identity(const std::string& task, const std::string& address) {
  TaskIdentity identity;
  identity.task = task;
  identity.address = address;
  identity.incarnation = 7;
  identity.protocol_version = kProtocolVersion;
  identity.cluster = R"({"cluster":{"ps":{"0":"127.0.0.1:2222"}}})";
  return identity;
}

std::optional<ConnectionSecret> NoConnection(uint64_t) { return std::nullopt; }

void OnlyAcceptor(fuzz::Input& input) {
  AcceptorHandshake acceptor(kToken, NoConnection);
  while (!input.empty() && !acceptor.proved()) acceptor.OnMessage(input.Text());
}

void OnlyDialer(fuzz::Input& input) {
  DialerHandshake dialer(kToken, Identity("/job:worker/replica:0/task:0", ""), "", kAddress);
  while (!input.empty() && !dialer.done()) dialer.OnMessage(input.Text());
}

// Carries the messages of a handshake, and changes one byte of one of them.
class Wire {
 public:
  explicit Wire(fuzz::Input& input) : left_(input.Below(6)), at_(input.Byte()), mask_(input.Byte()) {}

  std::string operator()(std::string message) {
    if (left_-- != 0 || message.empty() || mask_ == 0) return message;
    char& byte = message[at_ % message.size()];
    byte = static_cast<char>(byte ^ mask_);
    changed_ = true;
    return message;
  }
  bool changed() const { return changed_; }

 private:
  uint64_t left_;
  const size_t at_;
  const uint8_t mask_;
  bool changed_ = false;
};

void Both(fuzz::Input& input) {
  Wire wire(input);
  const bool other_cluster = input.Bool();
  TaskIdentity mine = Identity(std::string(input.Text()), std::string(input.Text()));
  if (other_cluster) mine.cluster = input.Text();
  const TaskIdentity theirs = Identity("/job:ps/replica:0/task:0", kAddress);
  DialerHandshake dialer(kToken, mine, "", kAddress);
  AcceptorHandshake acceptor(kToken, NoConnection);
  const std::string nonce = acceptor.OnMessage(wire(dialer.hello()));
  acceptor.OnMessage(wire(dialer.OnMessage(wire(nonce))));
  for (const std::string& message : acceptor.Welcome(theirs, 2222, 9)) dialer.OnMessage(wire(message));
  fuzz::Require(dialer.done() && !wire.changed());
  fuzz::Require(dialer.keys().send == acceptor.keys().receive && dialer.keys().receive == acceptor.keys().send);
  fuzz::Require(dialer.peer().cluster == theirs.cluster && acceptor.peer().task == mine.task);
  fuzz::Accepts([&] { ParseTFConfig(dialer.peer().cluster); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint64_t mode = input.Below(3);
  fuzz::Accepts([&] {
    if (mode == 0) OnlyAcceptor(input);
    if (mode == 1) OnlyDialer(input);
    if (mode == 2) Both(input);
  });
  return 0;
}
