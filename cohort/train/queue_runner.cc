#include "cohort/train/queue_runner.h"

#include <atomic>
#include <utility>

#include "cohort/core/str_cat.h"

namespace cohort::train {
namespace {

// The runs of one op. If the op is on one device, its task repeats it, and there is one RunAsync. Otherwise a run may
// end while RunAsync, which has started it, is still on the stack. Then this RunAsync's caller starts the next run, so
// that the stack does not grow.
class Repetition : public std::enable_shared_from_this<Repetition> {
 public:
  Repetition(Session& session, Node* op, std::function<void(const Status&)> on_end)
      : session_(session), op_(op), on_end_(std::move(on_end)) {}

  void Go() {
    for (;;) {
      state_.store(State::kStarting);
      session_.RunAsync({{}, {}, {op_}, {.repeat_on_task = true}},
                        [self = shared_from_this()](const Status& status, const RunResults&) { self->OnDone(status); });
      State starting = State::kStarting;
      if (state_.compare_exchange_strong(starting, State::kRunning)) return;
      if (!status_.ok()) return on_end_(status_);
    }
  }

 private:
  enum class State { kStarting, kRunning, kEnded };

  void OnDone(const Status& status) {
    status_ = status;
    State starting = State::kStarting;
    if (state_.compare_exchange_strong(starting, State::kEnded)) return;
    status.ok() ? Go() : on_end_(status);
  }

  Session& session_;
  Node* const op_;
  const std::function<void(const Status&)> on_end_;
  std::atomic<State> state_{State::kStarting};
  Status status_;  // written before state_ becomes kEnded, and read after that
};

bool IsEndOfData(const Status& status) {
  return status.code() == Code::kOutOfRange || status.code() == Code::kCancelled;
}

}  // namespace

void RepeatOp(Session& session, Node* op, std::function<void(const Status&)> on_end) {
  std::make_shared<Repetition>(session, op, std::move(on_end))->Go();
}

QueueRunner::QueueRunner(const ops::Queue& queue, std::vector<Node*> enqueue_ops)
    : enqueue_ops_(std::move(enqueue_ops)) {
  const ControlDependencies none(queue.handle().graph(), nullptr);
  close_ = queue.Close();
  cancel_ = queue.Close(true);
  if (enqueue_ops_.empty()) {
    throw InvalidArgumentError(
        StrCat("[train/queue runner] expected an enqueue op for the queue '", queue.name(), "'; got none"));
  }
  if (queue.handle().node->attr<int64_t>("capacity") < 0) {
    throw InvalidArgumentError(StrCat("[train/queue runner] expected a queue with a capacity; '", queue.name(),
                                      "' has no limit, so it would be filled for ever"));
  }
}

void QueueRunner::Start(Session& session, Coordinator& coordinator) const {
  for (Node* node : {close_, cancel_}) session.MakeCallable({}, {}, {node});  // now: the end of a run must not wait
  const auto left = std::make_shared<std::atomic<size_t>>(enqueue_ops_.size());
  for (Node* op : enqueue_ops_) {
    RepeatOp(session, op, [left, close = close_, cancel = cancel_, &session, &coordinator](const Status& status) {
      const bool is_last = left->fetch_sub(1) == 1;
      if (IsEndOfData(status)) {
        if (is_last) session.RunAsync({{}, {}, {close}, {}}, [](const Status&, const RunResults&) {});
        return;
      }
      // If the queue cannot be reached, the session is closed, or steps that use the queue fail anyway.
      session.RunAsync({{}, {}, {cancel}, {}}, [status, &coordinator](const Status& reached, const RunResults&) {
        if (reached.ok()) coordinator.RequestStop(status);
      });
    });
  }
}

}  // namespace cohort::train
