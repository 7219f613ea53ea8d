#include "cohort/collective/shared/shared_device_work.h"

#include <algorithm>

#include "cohort/core/str_cat.h"
#include "cohort/device/backend.h"

namespace cohort::collective {

void PrepareOnDevice(CollectiveCall& call) {
  if (!call.in_device_memory()) return;
  const CallKind kind = call.signature.kind;
  const bool may_overwrite = kind == CallKind::kAllReduce || kind == CallKind::kBroadcast;
  if (may_overwrite && call.input.OwnsBufferAlone()) {
    call.output = call.input;
  } else if (kind != CallKind::kBroadcast || call.signature.root != call.rank) {
    call.output = Tensor(call.signature.dtype, call.output_shape, call.device->allocator());
  }
  call.ready = call.device->compute_stream()->Record();
}

bool AreOnDevices(const std::vector<CollectiveCall>& calls) {
  const auto on_device = [](const CollectiveCall& call) { return call.ready != nullptr; };
  const auto odd = std::find_if(calls.begin(), calls.end(),
                                [&](const CollectiveCall& call) { return on_device(call) != on_device(calls[0]); });
  if (odd == calls.end()) return on_device(calls[0]);
  throw InvalidArgumentError(
      StrCat("[collective] expected the inputs of all members in host memory, or all in device "
             "memory; got the input of rank 0 in ",
             calls[0].input.space().ToString(), ", and that of rank ", odd->rank, " in ", odd->input.space().ToString(),
             ": copy them to one kind of memory"));
}

std::vector<Tensor> RunOnDevices(const std::vector<CollectiveCall>& calls) {
  std::vector<DevicePart> parts;
  parts.reserve(calls.size());
  for (const CollectiveCall& call : calls) parts.push_back({call.device, call.input, call.output, call.ready});
  const DeviceCollectives& collectives = *calls[0].device->backend().collectives();
  const CallSignature& what = calls[0].signature;
  switch (what.kind) {
    case CallKind::kAllReduce: collectives.AllReduce(what.op, parts); break;
    case CallKind::kReduceScatter: collectives.ReduceScatter(what.op, parts); break;
    case CallKind::kAllGather: collectives.AllGather(parts); break;
    case CallKind::kBroadcast: collectives.Broadcast(what.root, parts); break;
    case CallKind::kBarrier: break;
  }
  std::vector<Tensor> results;
  results.reserve(calls.size());
  for (const CollectiveCall& call : calls) {
    const bool is_root = what.kind == CallKind::kBroadcast && call.rank == what.root;
    results.push_back(is_root ? call.input : call.output);
  }
  return results;
}

}  // namespace cohort::collective
