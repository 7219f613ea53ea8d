// Encodes and decodes the messages of a group. Each message has a header of varints and strings, and at most one
// tensor. The Decode functions check every number before they use it, and check that the header ends where it should.
#include "cohort/collective/messages.h"

#include <algorithm>

#include "cohort/core/str_cat.h"
#include "cohort/core/wire.h"

namespace cohort::collective {
namespace {

constexpr uint64_t kMaxMembers = 1 << 16;
constexpr uint64_t kMaxSchedule = 1 << 20;

Message Make(Kind kind, WireWriter& header, std::vector<Tensor> tensors = {}) {
  return {static_cast<uint16_t>(kind), header.Take(), std::move(tensors)};
}

// Instances and generations may be any number.
void PutNumber(WireWriter& out, int64_t value) { out.Varint(static_cast<uint64_t>(value)); }
int64_t GetNumber(WireReader& in) { return static_cast<int64_t>(in.Varint()); }

void Put(WireWriter& out, const GroupRef& group) {
  PutNumber(out, group.key);
  PutNumber(out, group.generation);
}

GroupRef GetGroup(WireReader& in) {
  GroupRef group;
  group.key = GetNumber(in);
  group.generation = GetNumber(in);
  return group;
}

// Rank and dimensions are stored plus one: 0 is unknown.
void Put(WireWriter& out, const CallSignature& signature) {
  out.Varint(static_cast<uint64_t>(signature.kind));
  out.Varint(static_cast<uint64_t>(signature.op));
  out.Varint(static_cast<uint64_t>(signature.algorithm));
  out.Varint(static_cast<uint64_t>(signature.root));
  out.Varint(static_cast<uint64_t>(signature.dtype));
  out.Varint(static_cast<uint64_t>(signature.shape.rank() + 1));
  for (const int64_t dim : signature.shape.dims()) out.Varint(static_cast<uint64_t>(dim + 1));
}

Algorithm GetAlgorithm(WireReader& in) {
  const auto algorithm = static_cast<Algorithm>(in.Varint(static_cast<uint64_t>(AllAlgorithms().back())));
  if (std::find(AllAlgorithms().begin(), AllAlgorithms().end(), algorithm) != AllAlgorithms().end()) return algorithm;
  throw DataLossError(StrCat("[collective] a message names the unknown algorithm ", static_cast<int>(algorithm)));
}

CallSignature GetSignature(WireReader& in) {
  CallSignature signature;
  signature.kind = static_cast<CallKind>(in.Varint(static_cast<uint64_t>(CallKind::kBarrier)));
  signature.op = static_cast<ReduceOp>(in.Varint(static_cast<uint64_t>(ReduceOp::kMean)));
  signature.algorithm = GetAlgorithm(in);
  signature.root = static_cast<int32_t>(in.Varint(INT32_MAX));
  const uint64_t dtype = in.Varint(INT32_MAX);
  if (dtype != 0 && !IsKnownDType(static_cast<int32_t>(dtype))) {
    throw DataLossError(StrCat("[collective] a message names the unknown dtype ", dtype));
  }
  signature.dtype = static_cast<DType>(dtype);
  const int rank = static_cast<int>(in.Varint(Shape::kMaxRank + 1)) - 1;
  if (rank < 0) {
    signature.shape = Shape::UnknownRank();
    return signature;
  }
  for (int i = 0; i < rank; ++i) signature.shape.AddDim(static_cast<int64_t>(in.Varint(INT64_MAX)) - 1);
  return signature;
}

void Put(WireWriter& out, const std::vector<ScheduleEntry>& entries) {
  out.Varint(entries.size());
  for (const ScheduleEntry& entry : entries) {
    PutNumber(out, entry.instance);
    out.String(entry.name);
    Put(out, entry.signature);
  }
}

std::vector<ScheduleEntry> GetEntries(WireReader& in) {
  std::vector<ScheduleEntry> entries;
  for (uint64_t left = in.Varint(kMaxSchedule); left > 0; --left) {
    ScheduleEntry entry;
    entry.instance = GetNumber(in);
    entry.name = in.String();
    entry.signature = GetSignature(in);
    entries.push_back(std::move(entry));
  }
  return entries;
}

void ExpectTensors(const Message& message, size_t count) {
  if (message.tensors.size() != count) {
    throw DataLossError(StrCat("[collective] expected ", count, " tensors in a message of kind ", message.kind,
                               "; got ", message.tensors.size()));
  }
}

}  // namespace

Message EncodeJoin(const JoinMessage& join) {
  WireWriter out;
  Put(out, join.group);
  out.String(join.task);
  out.String(join.host);
  out.Varint(join.members.size());
  for (const std::string& member : join.members) out.String(member);
  Put(out, join.schedule);
  out.Varint(static_cast<uint64_t>(join.algorithm));
  out.Varint(join.endpoints.size());
  for (const std::string& endpoint : join.endpoints) out.String(endpoint);
  return Make(Kind::kJoin, out);
}

JoinMessage DecodeJoin(const Message& message) {
  ExpectTensors(message, 0);
  WireReader in(message.header);
  JoinMessage join;
  join.group = GetGroup(in);
  join.task = in.String();
  join.host = in.String();
  for (uint64_t left = in.Varint(kMaxMembers); left > 0; --left) join.members.push_back(in.String());
  join.schedule = GetEntries(in);
  join.algorithm = GetAlgorithm(in);
  for (uint64_t left = in.Varint(kMaxMembers); left > 0; --left) join.endpoints.push_back(in.String());
  in.ExpectEnd();
  return join;
}

Message EncodeData(const DataMessage& data, Tensor tensor) {
  WireWriter out;
  Put(out, data.group);
  PutNumber(out, data.call.instance);
  PutNumber(out, data.call.round);
  out.Varint(static_cast<uint64_t>(data.from));
  out.Varint(static_cast<uint64_t>(data.to));
  out.Varint(static_cast<uint64_t>(data.sequence));
  Put(out, data.signature);
  out.Fixed64(data.schedule_fingerprint);
  std::vector<Tensor> tensors;
  tensors.push_back(std::move(tensor));
  return Make(Kind::kData, out, std::move(tensors));
}

DataMessage DecodeData(const Message& message) {
  ExpectTensors(message, 1);
  WireReader in(message.header);
  DataMessage data;
  data.group = GetGroup(in);
  data.call.instance = GetNumber(in);
  data.call.round = GetNumber(in);
  data.from = static_cast<int32_t>(in.Varint(INT32_MAX));
  data.to = static_cast<int32_t>(in.Varint(INT32_MAX));
  data.sequence = static_cast<int32_t>(in.Varint(INT32_MAX));
  data.signature = GetSignature(in);
  data.schedule_fingerprint = in.Fixed64();
  in.ExpectEnd();
  return data;
}

Message EncodeAbort(const AbortMessage& abort) {
  WireWriter out;
  Put(out, abort.group);
  PutStatus(out, abort.why);
  return Make(Kind::kAbort, out);
}

AbortMessage DecodeAbort(const Message& message) {
  ExpectTensors(message, 0);
  WireReader in(message.header);
  AbortMessage abort;
  abort.group = GetGroup(in);
  abort.why = GetStatus(in);
  if (abort.why.ok()) abort.why = Status(Code::kUnknown, "the peer gave no reason");
  in.ExpectEnd();
  return abort;
}

Message EncodeLeave(const LeaveMessage& leave) {
  WireWriter out;
  Put(out, leave.group);
  PutStatus(out, leave.failed_before);
  return Make(Kind::kLeave, out);
}

Message EncodeFarewell(const FarewellMessage& farewell) {
  WireWriter out;
  Put(out, farewell.group);
  return Make(Kind::kFarewell, out);
}

FarewellMessage DecodeFarewell(const Message& message) {
  ExpectTensors(message, 0);
  WireReader in(message.header);
  FarewellMessage farewell;
  farewell.group = GetGroup(in);
  in.ExpectEnd();
  return farewell;
}

Message EncodeSchedule(const ScheduleMessage& schedule) {
  WireWriter out;
  Put(out, schedule.group);
  out.Varint(static_cast<uint64_t>(schedule.from));
  out.Varint(static_cast<uint64_t>(schedule.to));
  out.Fixed64(schedule.ours);
  out.Fixed64(schedule.theirs);
  out.Varint(schedule.agreed ? 1 : 0);
  Put(out, schedule.entries);
  return Make(Kind::kSchedule, out);
}

ScheduleMessage DecodeSchedule(const Message& message) {
  ExpectTensors(message, 0);
  WireReader in(message.header);
  ScheduleMessage schedule;
  schedule.group = GetGroup(in);
  schedule.from = static_cast<int32_t>(in.Varint(INT32_MAX));
  schedule.to = static_cast<int32_t>(in.Varint(INT32_MAX));
  schedule.ours = in.Fixed64();
  schedule.theirs = in.Fixed64();
  schedule.agreed = in.Varint(1) == 1;
  schedule.entries = GetEntries(in);
  in.ExpectEnd();
  return schedule;
}

LeaveMessage DecodeLeave(const Message& message) {
  ExpectTensors(message, 0);
  WireReader in(message.header);
  LeaveMessage leave;
  leave.group = GetGroup(in);
  leave.failed_before = GetStatus(in);
  in.ExpectEnd();
  return leave;
}

}  // namespace cohort::collective
