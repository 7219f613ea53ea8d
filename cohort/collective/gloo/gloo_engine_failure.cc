// How a GlooEngine ends: members that are gone, have left, or have failed, and the cause of what Gloo reports.
#include "cohort/collective/gloo/gloo_engine.h"

namespace cohort::collective {

void GlooEngine::OnPeerGone() {
  order_.OnPeerGone();
  cause_.OnPeerGone();
}

Status GlooEngine::Explain(const Status& seen) {
  cause_.Await(seen);
  host_.Fail(seen);
  return host_.status();
}

void GlooEngine::Fail(const Status& why) {
  if (!order_.SetFailed(why)) return;
  cause_.OnFailed();
  for (const auto& lane : lanes_) lane->Stop();
  order_.EndCalls();  // a call that runs ends by itself soon: its mesh is broken
}

}  // namespace cohort::collective
