// The headers of status messages. Put functions write a part of a header and Get functions read it, in the same order.
#include "cohort/cluster/status/status_messages.h"

#include <bit>
#include <cmath>

#include "cohort/cluster/steps/protocol.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/wire.h"

namespace cohort {
namespace {

// The limits of counts in a header, so that a damaged message cannot make the receiver allocate much memory.
constexpr uint64_t kMostWaits = 1 << 16;
constexpr auto kLastState = static_cast<uint64_t>(TaskActivity::kStopping);

void PutTime(WireWriter& out, std::chrono::milliseconds time) {
  out.Varint(time.count() > 0 ? static_cast<uint64_t>(time.count()) : 0);
}

std::chrono::milliseconds GetTime(WireReader& in) {
  return std::chrono::milliseconds(static_cast<int64_t>(in.Varint(INT64_MAX)));
}

void PutRate(WireWriter& out, double rate) { out.Fixed64(std::bit_cast<uint64_t>(rate)); }

double GetRate(WireReader& in) {
  const auto rate = std::bit_cast<double>(in.Fixed64());
  if (!std::isfinite(rate) || rate < 0) {
    throw DataLossError(StrCat("[status] expected a rate of at least 0; got ", rate, " from the peer"));
  }
  return rate;
}

bool GetBool(WireReader& in) { return in.Varint(1) == 1; }

void PutStep(WireWriter& out, const StepStatus& step) {
  out.Fixed64(step.session);
  out.Varint(static_cast<uint64_t>(step.step));
  PutTime(out, step.age);
  PutTime(out, step.without_progress);
  out.Varint(step.may_wait ? 1 : 0);
  out.Varint(step.waits.size());
  for (const WaitStatus& wait : step.waits) {
    out.Varint(wait.of_value ? 1 : 0);
    out.String(wait.what);
    out.String(wait.task);
  }
}

StepStatus GetStep(WireReader& in) {
  StepStatus step;
  step.session = in.Fixed64();
  step.step = static_cast<int64_t>(in.Varint(INT64_MAX));
  step.age = GetTime(in);
  step.without_progress = GetTime(in);
  step.may_wait = GetBool(in);
  const uint64_t waits = in.Varint(kMostWaits);
  for (uint64_t i = 0; i < waits; ++i) {
    WaitStatus wait;
    wait.of_value = GetBool(in);
    wait.what = in.String();
    wait.task = in.String();
    step.waits.push_back(std::move(wait));
  }
  return step;
}

void PutPeer(WireWriter& out, const PeerStatus& peer) {
  out.String(peer.task);
  out.String(peer.address);
  out.Varint(peer.connected ? 1 : 0);
  PutTime(out, peer.silent);
  out.Varint(peer.sent_bytes);
  out.Varint(peer.received_bytes);
}

PeerStatus GetPeer(WireReader& in) {
  PeerStatus peer;
  peer.task = in.String();
  peer.address = in.String();
  peer.connected = GetBool(in);
  peer.silent = GetTime(in);
  peer.sent_bytes = in.Varint();
  peer.received_bytes = in.Varint();
  return peer;
}

// Who the task is.
void PutIdentity(WireWriter& out, const TaskStatus& status) {
  out.String(status.task);
  out.String(status.address);
  out.String(status.host);
  out.Varint(static_cast<uint64_t>(status.pid));
  out.Fixed64(status.incarnation);
  out.Varint(status.is_chief ? 1 : 0);
}

void GetIdentity(WireReader& in, TaskStatus* status) {
  status->task = in.String();
  status->address = in.String();
  status->host = in.String();
  status->pid = static_cast<int64_t>(in.Varint(INT64_MAX));
  status->incarnation = in.Fixed64();
  status->is_chief = GetBool(in);
}

void PutFigures(WireWriter& out, const TaskStatus& status) {
  out.Varint(static_cast<uint64_t>(status.activity));
  PutTime(out, status.uptime);
  out.Varint(status.global_step ? 1 : 0);
  out.Fixed64(static_cast<uint64_t>(status.global_step.value_or(0)));
  PutRate(out, status.global_steps_per_second);
  out.Varint(status.steps);
  PutRate(out, status.steps_per_second);
  PutRate(out, status.shares.data);
  PutRate(out, status.shares.compute);
  PutRate(out, status.shares.wait);
  out.Varint(status.sent_bytes);
  out.Varint(status.received_bytes);
  PutRate(out, status.sent_per_second);
  PutRate(out, status.received_per_second);
  out.Varint(status.memory_bytes);
  out.Varint(status.sessions);
  out.Varint(status.variables);
  out.Varint(status.variable_bytes);
  out.Varint(status.restarts);
  out.String(status.hang);
}

void GetFigures(WireReader& in, TaskStatus* status) {
  status->activity = static_cast<TaskActivity>(in.Varint(kLastState));
  status->uptime = GetTime(in);
  const bool has_global_step = GetBool(in);
  const auto global_step = static_cast<int64_t>(in.Fixed64());
  if (has_global_step) status->global_step = global_step;
  status->global_steps_per_second = GetRate(in);
  status->steps = in.Varint();
  status->steps_per_second = GetRate(in);
  status->shares.data = GetRate(in);
  status->shares.compute = GetRate(in);
  status->shares.wait = GetRate(in);
  status->sent_bytes = in.Varint();
  status->received_bytes = in.Varint();
  status->sent_per_second = GetRate(in);
  status->received_per_second = GetRate(in);
  status->memory_bytes = in.Varint();
  status->sessions = in.Varint();
  status->variables = in.Varint();
  status->variable_bytes = in.Varint();
  status->restarts = in.Varint();
  status->hang = in.String();
}

}  // namespace

Message EncodeStatusRequest(const StatusRequest& request) {
  WireWriter out;
  out.Varint(request.request);
  out.Varint(request.dump ? 1 : 0);
  return {static_cast<uint16_t>(MessageKind::kStatusRequest), out.Take(), {}};
}

StatusRequest DecodeStatusRequest(const Message& message) {
  WireReader in(message.header);
  StatusRequest request;
  request.request = in.Varint();
  request.dump = GetBool(in);
  in.ExpectEnd();
  return request;
}

Message EncodeStatus(const StatusReply& reply) {
  WireWriter out;
  out.Varint(reply.request);
  PutIdentity(out, reply.status);
  PutFigures(out, reply.status);
  out.Varint(reply.status.running.size());
  for (const StepStatus& step : reply.status.running) PutStep(out, step);
  out.Varint(reply.status.more_running);
  out.Varint(reply.status.peers.size());
  for (const PeerStatus& peer : reply.status.peers) PutPeer(out, peer);
  out.String(reply.dump);
  return {static_cast<uint16_t>(MessageKind::kStatus), out.Take(), {}};
}

StatusReply DecodeStatus(const Message& message) {
  WireReader in(message.header);
  StatusReply reply;
  reply.request = in.Varint();
  GetIdentity(in, &reply.status);
  GetFigures(in, &reply.status);
  const uint64_t steps = in.Varint(kMostListedSteps);
  for (uint64_t i = 0; i < steps; ++i) reply.status.running.push_back(GetStep(in));
  reply.status.more_running = in.Varint();
  const uint64_t peers = in.Varint(kMostListedPeers);
  for (uint64_t i = 0; i < peers; ++i) reply.status.peers.push_back(GetPeer(in));
  reply.dump = in.String();
  in.ExpectEnd();
  return reply;
}

}  // namespace cohort
