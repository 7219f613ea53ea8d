// The headers of the step protocol's messages. Put functions write a part of a header and Get functions read it. A
// count in a header is limited, so that a damaged message cannot make the receiver allocate much memory.
#include "cohort/cluster/steps/protocol.h"

#include "cohort/core/str_cat.h"
#include "cohort/core/wire.h"
#include "cohort/graph/graph_def.h"

namespace cohort {
namespace {

constexpr uint64_t kMaxCount = 1 << 24;  // the limit of each count in a header

// The bits of the last number of a start.
constexpr uint64_t kTraced = 1;
constexpr uint64_t kRepeated = 2;

Message Make(MessageKind kind, WireWriter& header, std::vector<Tensor> tensors = {}) {
  return {static_cast<uint16_t>(kind), header.Take(), std::move(tensors)};
}

// Returns a message whose header is only the number of a request.
Message MakeNumbered(MessageKind kind, uint64_t request) {
  WireWriter out;
  out.Varint(request);
  return Make(kind, out);
}

uint64_t NumberOf(const Message& message) {
  WireReader in(message.header);
  const uint64_t request = in.Varint();
  in.ExpectEnd();
  return request;
}

void Put(WireWriter& out, const ExecutableKey& key) {
  out.Fixed64(key.session);
  out.Varint(static_cast<uint64_t>(key.id));
}

ExecutableKey GetKey(WireReader& in) {
  ExecutableKey key;
  key.session = in.Fixed64();
  key.id = static_cast<int32_t>(in.Varint(INT32_MAX));
  return key;
}

void Put(WireWriter& out, const StepRef& ref) {
  Put(out, ref.key);
  out.Varint(static_cast<uint64_t>(ref.step));
}

void Put(WireWriter& out, const NodeExecStats& node) {
  out.String(node.node_name);
  out.String(node.op);
  out.Varint(node.inputs.size());
  for (const std::string& input : node.inputs) out.String(input);
  out.String(node.transfer);
  out.Varint(static_cast<uint64_t>(node.all_start_nanos));
  out.Varint(static_cast<uint64_t>(node.all_end_rel_nanos));
  out.Varint(static_cast<uint64_t>(node.output_bytes));
  out.Varint(node.thread_id);
}

NodeExecStats GetNodeStats(WireReader& in) {
  NodeExecStats node;
  node.node_name = in.String();
  node.op = in.String();
  const uint64_t inputs = in.Varint(kMaxCount);
  for (uint64_t i = 0; i < inputs; ++i) node.inputs.push_back(in.String());
  node.transfer = in.String();
  node.all_start_nanos = static_cast<int64_t>(in.Varint(INT64_MAX));
  node.all_end_rel_nanos = static_cast<int64_t>(in.Varint(INT64_MAX));
  node.output_bytes = static_cast<int64_t>(in.Varint(INT64_MAX));
  node.thread_id = static_cast<uint32_t>(in.Varint(UINT32_MAX));
  return node;
}

void Put(WireWriter& out, const StepStats& stats) {
  out.Varint(stats.dev_stats.size());
  for (const DeviceStepStats& device : stats.dev_stats) {
    out.String(device.device);
    out.Varint(static_cast<uint64_t>(device.num_dropped));
    out.Varint(device.node_stats.size());
    for (const NodeExecStats& node : device.node_stats) Put(out, node);
  }
}

StepStats GetStepStats(WireReader& in) {
  StepStats stats;
  const uint64_t devices = in.Varint(kMaxCount);
  for (uint64_t i = 0; i < devices; ++i) {
    DeviceStepStats device;
    device.device = in.String();
    device.num_dropped = static_cast<int64_t>(in.Varint(INT64_MAX));
    const uint64_t nodes = in.Varint(kMaxCount);
    for (uint64_t j = 0; j < nodes; ++j) device.node_stats.push_back(GetNodeStats(in));
    stats.dev_stats.push_back(std::move(device));
  }
  return stats;
}

StepRef GetRef(WireReader& in) {
  StepRef ref;
  ref.key = GetKey(in);
  ref.step = static_cast<int64_t>(in.Varint(INT64_MAX));
  return ref;
}

void Put(WireWriter& out, const std::vector<RunningOperation>& operations) {
  out.Varint(operations.size());
  for (const RunningOperation& operation : operations) {
    out.String(operation.node);
    out.String(operation.op);
    out.String(operation.device);
    out.Varint(static_cast<uint64_t>(operation.thread));
    out.Varint(static_cast<uint64_t>(operation.wait));
    out.String(operation.what);
    out.String(operation.peer);
  }
}

std::vector<RunningOperation> GetOperations(WireReader& in) {
  std::vector<RunningOperation> operations;
  const uint64_t count = in.Varint(kMaxCount);
  for (uint64_t i = 0; i < count; ++i) {
    RunningOperation operation;
    operation.node = in.String();
    operation.op = in.String();
    operation.device = in.String();
    operation.thread = static_cast<int>(in.Varint(INT32_MAX));
    operation.wait = static_cast<WaitKind>(in.Varint(static_cast<uint64_t>(WaitKind::kGate)));
    operation.what = in.String();
    operation.peer = in.String();
    operations.push_back(std::move(operation));
  }
  return operations;
}

}  // namespace

Message EncodeListDevices(uint64_t request) { return MakeNumbered(MessageKind::kListDevices, request); }

uint64_t DecodeListDevices(const Message& message) { return NumberOf(message); }

Message EncodeDevices(uint64_t request, const std::vector<DeviceAttributes>& devices) {
  WireWriter out;
  out.Varint(request);
  out.Varint(devices.size());
  for (const DeviceAttributes& device : devices) {
    out.String(device.name.ToString());
    out.Fixed64(device.incarnation);
    out.Varint(static_cast<uint64_t>(device.memory_limit));
  }
  return Make(MessageKind::kDevices, out);
}

DevicesReply DecodeDevices(const Message& message) {
  WireReader in(message.header);
  DevicesReply reply;
  reply.request = in.Varint();
  const uint64_t count = in.Varint(kMaxCount);
  for (uint64_t i = 0; i < count; ++i) {
    DeviceAttributes device;
    device.name = DeviceName::Parse(in.String());
    if (!device.name.IsFull()) throw DataLossError("[protocol] a device's name is not full");
    device.type = *device.name.type;
    device.incarnation = in.Fixed64();
    device.memory_limit = static_cast<int64_t>(in.Varint(INT64_MAX));
    reply.devices.push_back(std::move(device));
  }
  in.ExpectEnd();
  return reply;
}

Message EncodeRegister(uint64_t request, const ExecutableSpec& spec) {
  WireWriter out;
  out.Varint(request);
  Put(out, spec.key);
  out.Varint(static_cast<uint64_t>(spec.self));
  out.Varint(static_cast<uint64_t>(spec.num_args));
  out.Varint(static_cast<uint64_t>(spec.num_rets));
  out.Varint(spec.tasks.size());
  for (const std::string& task : spec.tasks) out.String(task);
  out.Varint(spec.edges.size());
  for (const EdgeRoute& edge : spec.edges) {
    out.Varint(static_cast<uint64_t>(edge.src_task));
    out.Varint(static_cast<uint64_t>(edge.dst_task));
    out.String(edge.tensor_name);
  }
  out.Varint(spec.partitions.size());
  for (const ExecutableSpec::Part& part : spec.partitions) {
    out.String(part.device);
    out.String(SerializeGraphDef(*part.graph));
  }
  return Make(MessageKind::kRegister, out);
}

RegisterRequest DecodeRegister(const Message& message) {
  WireReader in(message.header);
  RegisterRequest request;
  request.request = in.Varint();
  ExecutableSpec& spec = request.spec;
  spec.key = GetKey(in);
  const uint64_t self = in.Varint(kMaxCount);
  spec.num_args = static_cast<int>(in.Varint(kMaxCount));
  spec.num_rets = static_cast<int>(in.Varint(kMaxCount));
  const uint64_t tasks = in.Varint(kMaxCount);
  for (uint64_t i = 0; i < tasks; ++i) spec.tasks.push_back(in.String());
  if (self >= tasks) throw DataLossError("[protocol] an executable's own task is none of its tasks");
  spec.self = static_cast<int>(self);
  const uint64_t edges = in.Varint(kMaxCount);
  for (uint64_t i = 0; i < edges; ++i) {
    EdgeRoute edge;
    edge.src_task = static_cast<int>(in.Varint(tasks - 1));
    edge.dst_task = static_cast<int>(in.Varint(tasks - 1));
    edge.tensor_name = in.String();
    spec.edges.push_back(std::move(edge));
  }
  const uint64_t partitions = in.Varint(kMaxCount);
  for (uint64_t i = 0; i < partitions; ++i) {
    ExecutableSpec::Part part;
    part.device = in.String();
    part.graph = ParseGraphDef(in.String());
    spec.partitions.push_back(std::move(part));
  }
  in.ExpectEnd();
  return request;
}

Message EncodeRegistered(uint64_t request, const Status& status) {
  WireWriter out;
  out.Varint(request);
  PutStatus(out, status);
  return Make(MessageKind::kRegistered, out);
}

RegisteredReply DecodeRegistered(const Message& message) {
  WireReader in(message.header);
  RegisteredReply reply;
  reply.request = in.Varint();
  reply.status = GetStatus(in);
  in.ExpectEnd();
  return reply;
}

Message EncodeStartStep(const StepRef& ref, const StepStart& start, std::vector<Tensor> args) {
  const ClosureId& closure = start.closure;
  WireWriter out;
  Put(out, ref);
  out.Fixed64(closure.coordinator);
  if (closure.valid()) {
    out.Varint(static_cast<uint64_t>(closure.number));
    out.Varint(static_cast<uint64_t>(closure.lowest));
  }
  out.Varint((start.trace != nullptr ? kTraced : 0) | (start.repeat ? kRepeated : 0));
  return Make(MessageKind::kStartStep, out, std::move(args));
}

StartStepMessage DecodeStartStep(const Message& message) {
  WireReader in(message.header);
  StartStepMessage start;
  start.ref = GetRef(in);
  start.closure.coordinator = in.Fixed64();
  if (start.closure.valid()) {
    start.closure.number = static_cast<int64_t>(in.Varint(INT64_MAX));
    start.closure.lowest = static_cast<int64_t>(in.Varint(INT64_MAX));
  }
  const uint64_t flags = in.Varint(kTraced | kRepeated);
  start.traced = (flags & kTraced) != 0;
  start.repeat = (flags & kRepeated) != 0;
  in.ExpectEnd();
  return start;
}

Message EncodeStepDone(const StepRef& ref, const Status& status, std::vector<Tensor> rets, const StepStats& stats) {
  WireWriter out;
  Put(out, ref);
  PutStatus(out, status);
  Put(out, stats);
  return Make(MessageKind::kStepDone, out, std::move(rets));
}

StepDoneMessage DecodeStepDone(const Message& message) {
  WireReader in(message.header);
  StepDoneMessage done;
  done.ref = GetRef(in);
  done.status = GetStatus(in);
  done.stats = GetStepStats(in);
  in.ExpectEnd();
  return done;
}

Message EncodeValues(const StepRef& ref, std::vector<EdgeValue> values) {
  WireWriter out;
  Put(out, ref);
  out.Varint(values.size());
  std::vector<Tensor> tensors;
  tensors.reserve(values.size());
  for (EdgeValue& value : values) {
    out.Varint(static_cast<uint64_t>(value.edge));
    tensors.push_back(std::move(value.value));
  }
  return Make(MessageKind::kValues, out, std::move(tensors));
}

ValuesMessage DecodeValues(const Message& message) {
  WireReader in(message.header);
  ValuesMessage values;
  values.ref = GetRef(in);
  const uint64_t count = in.Varint(kMaxCount);
  if (count != message.tensors.size()) {
    throw DataLossError(StrCat("[protocol] ", count, " edges and ", message.tensors.size(), " tensors"));
  }
  for (uint64_t i = 0; i < count; ++i) values.edges.push_back(static_cast<EdgeId>(in.Varint(INT32_MAX)));
  in.ExpectEnd();
  return values;
}

Message EncodeCancelStep(const StepRef& ref, const Status& why) {
  WireWriter out;
  Put(out, ref);
  PutStatus(out, why);
  return Make(MessageKind::kCancelStep, out);
}

CancelStepMessage DecodeCancelStep(const Message& message) {
  WireReader in(message.header);
  CancelStepMessage cancel;
  cancel.ref = GetRef(in);
  cancel.why = GetStatus(in);
  in.ExpectEnd();
  return cancel;
}

Message EncodeCloseSession(uint64_t session) {
  WireWriter out;
  out.Fixed64(session);
  return Make(MessageKind::kCloseSession, out);
}

uint64_t DecodeCloseSession(const Message& message) {
  WireReader in(message.header);
  const uint64_t session = in.Fixed64();
  in.ExpectEnd();
  return session;
}

Message EncodeResetContainer(const std::string& container) {
  WireWriter out;
  out.String(container);
  return Make(MessageKind::kResetContainer, out);
}

std::string DecodeResetContainer(const Message& message) {
  WireReader in(message.header);
  std::string container = in.String();
  in.ExpectEnd();
  return container;
}

Message EncodeAskAboutStep(const StepQuestion& question) {
  WireWriter out;
  out.Varint(question.request);
  out.Fixed64(question.session);
  out.Varint(static_cast<uint64_t>(question.step));
  out.Varint(question.with_stacks ? 1 : 0);
  return Make(MessageKind::kAskAboutStep, out);
}

StepQuestion DecodeAskAboutStep(const Message& message) {
  WireReader in(message.header);
  StepQuestion question;
  question.request = in.Varint();
  question.session = in.Fixed64();
  question.step = static_cast<int64_t>(in.Varint(INT64_MAX));
  question.with_stacks = in.Varint(1) == 1;
  in.ExpectEnd();
  return question;
}

Message EncodeStepReport(uint64_t request, const StepReport& report) {
  WireWriter out;
  out.Varint(request);
  out.Varint(report.known ? 1 : 0);
  out.Fixed64(report.step.stamp);
  Put(out, report.step.operations);
  Put(out, report.others);
  out.String(report.hang);
  out.Varint(report.launcher_ends_it ? 1 : 0);
  out.String(report.stacks);
  return Make(MessageKind::kStepReport, out);
}

StepReportMessage DecodeStepReport(const Message& message) {
  WireReader in(message.header);
  StepReportMessage reply;
  reply.request = in.Varint();
  reply.report.known = in.Varint(1) == 1;
  reply.report.step.stamp = in.Fixed64();
  reply.report.step.operations = GetOperations(in);
  reply.report.others = GetOperations(in);
  reply.report.hang = in.String();
  reply.report.launcher_ends_it = in.Varint(1) == 1;
  reply.report.stacks = in.String();
  in.ExpectEnd();
  return reply;
}

uint64_t IncomingStamp(const Connection& connection, uint64_t session, int64_t step) {
  const std::optional<IncomingMessage> incoming = connection.incoming();
  if (!incoming) return 0;
  const auto kind = static_cast<MessageKind>(incoming->kind);
  if (kind != MessageKind::kStartStep && kind != MessageKind::kStepDone && kind != MessageKind::kValues) return 0;
  try {
    WireReader in(incoming->header);
    const StepRef ref = GetRef(in);
    return ref.key.session == session && ref.step == step ? 1 + incoming->bytes : 0;
  } catch (const DataLossError&) {
    return 0;  // the receiver of the whole message reports it
  }
}

Message EncodeTrainingDone(uint64_t request) { return MakeNumbered(MessageKind::kTrainingDone, request); }

uint64_t DecodeTrainingDone(const Message& message) { return NumberOf(message); }

Message EncodeTrainingDoneAck(uint64_t request) { return MakeNumbered(MessageKind::kTrainingDoneAck, request); }

uint64_t DecodeTrainingDoneAck(const Message& message) { return NumberOf(message); }

}  // namespace cohort
