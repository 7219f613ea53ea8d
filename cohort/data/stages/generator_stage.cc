// FromGenerator: the elements that a function of this process makes.
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/data/stages/counted_iterator.h"
#include "cohort/data/stages/stages.h"

namespace cohort::data {
namespace {

// Counts calls, also those that failed or ended the pass.
class GeneratorIterator : public CountedIterator {
 public:
  GeneratorIterator(NodePtr node, const HostGenerator& generator, std::shared_ptr<const std::atomic<bool>> stop)
      : node_(std::move(node)), generator_(generator), stop_(std::move(stop)) {}

  bool Next(Element* out) override {
    if (ended_) return false;
    return node_->Guard([&] {
      Begin();
      ++index_;
      std::optional<Element> element = next_();
      if (!element) {
        ended_ = true;
        next_ = nullptr;
        return false;
      }
      CheckElement(*element, node_->spec());
      *out = std::move(*element);
      return true;
    });
  }

  void Restore(WireReader* in) override {
    const uint64_t index = in->Varint();
    if (index > 0) node_->Guard([&] { Begin(); });
    Element element;
    while (index_ < index && !ended_) {
      CheckNotStopped(stop_.get());
      try {
        (void)Next(&element);
      } catch (...) {
        // The saved iterator's Next has thrown it. The element is passed over here, too.
      }
    }
  }

 private:
  void Begin() {
    if (next_) return;
    next_ = generator_();
    if (!next_) throw InvalidArgumentError("[data] expected a generator that returns a function; got an empty one");
  }

  const NodePtr node_;
  const HostGenerator& generator_;  // the node's
  const std::shared_ptr<const std::atomic<bool>> stop_;
  HostElementSource next_;  // of this pass
  bool ended_ = false;
};

class GeneratorNode : public DatasetNode {
 public:
  GeneratorNode(HostGenerator generator, ElementSpec spec)
      : DatasetNode({}, std::move(spec)), generator_(std::move(generator)) {}
  std::string kind() const override { return "FromGenerator"; }
  std::string Parameters() const override { return data::ToString(spec()); }
  int64_t Cardinality() const override { return kUnknownCardinality; }
  void Write(DescriptionWriter*) const override { RefuseToWrite("FromGenerator"); }
  NodePtr WithInputs(std::vector<NodePtr>) const override { return shared_from_this(); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    return std::make_unique<GeneratorIterator>(shared_from_this(), generator_, context.stop);
  }

 private:
  const HostGenerator generator_;
};

}  // namespace

NodePtr MakeGenerator(HostGenerator generator, ElementSpec output_spec) {
  if (!generator) throw InvalidArgumentError("[data] expected a generator; got an empty function");
  if (output_spec.empty()) {
    throw InvalidArgumentError("[data] expected one component at least for FromGenerator; got none in output_spec");
  }
  return std::make_shared<GeneratorNode>(std::move(generator), std::move(output_spec));
}

}  // namespace cohort::data
