// IgnoreErrors: passes over elements that the stages before it cannot make.
#include <bit>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/stages/stages.h"
#include "cohort/data/stages/unary_stage.h"

namespace cohort::data {
namespace {

// An input that fails so often without an element fails for ever.
constexpr int64_t kMostInARow = 1000;

class IgnoreErrorsIterator : public UnaryIterator {
 public:
  IgnoreErrorsIterator(NodePtr node, StagePtr input, bool logs)
      : UnaryIterator(std::move(node), std::move(input)), logs_(logs) {}
  bool Next(Element* out) override {
    const bool has_element = NextThatCanBeMade(out);
    if (!has_element && !gave_one_ && !latest_.ok()) {
      ThrowError(latest_.code(), StrCat("[data] IgnoreErrors expected one element that can be made; there is none. The "
                                        "latest error: ",
                                        latest_.message()));
    }
    gave_one_ = gave_one_ || has_element;
    return has_element;
  }
  void Save(WireWriter* out) override {
    out->Varint(gave_one_ ? 1 : 0);
    input_->Save(out);
  }
  void Restore(WireReader* in) override {
    gave_one_ = in->Varint(1) != 0;
    input_->Restore(in);
  }

 private:
  bool NextThatCanBeMade(Element* out) {
    for (int64_t in_a_row = 1;; ++in_a_row) {
      try {
        return input_->Next(out);
      } catch (const CancelledError&) {
        throw;
      } catch (const Error& error) {
        Count(error);
        latest_ = Status(error.code(), error.what());
        if (in_a_row < kMostInARow) continue;
        ThrowError(error.code(), StrCat("[data] IgnoreErrors expected an element in ", kMostInARow,
                                        " attempts; the latest error: ", error.what()));
      }
    }
  }
  // Logs the 1st, 2nd, 4th, 8th ... error.
  void Count(const Error& error) {
    ++ignored_;
    if (!logs_ || !std::has_single_bit(static_cast<uint64_t>(ignored_))) return;
    LogWarning("data", "an element is left out (", ignored_, " so far): ", error.what());
  }

  const bool logs_;
  int64_t ignored_ = 0;
  Status latest_;
  bool gave_one_ = false;  // of this pass
};

class IgnoreErrorsNode : public DatasetNode {
 public:
  IgnoreErrorsNode(const NodePtr& input, bool logs) : DatasetNode({input}, input->spec()), logs_(logs) {}
  std::string kind() const override { return "IgnoreErrors"; }
  std::string Parameters() const override { return logs_ ? "" : "log_warning=false"; }
  int64_t Cardinality() const override {
    const int64_t most = input()->Cardinality();
    return most == 0 || most == kInfiniteCardinality ? most : kUnknownCardinality;
  }
  void Write(DescriptionWriter* out) const override { out->Int(logs_ ? 1 : 0); }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakeIgnoreErrors(inputs.at(0), logs_); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    return std::make_unique<IgnoreErrorsIterator>(shared_from_this(), input()->MakeIterator(context), logs_);
  }

 private:
  const bool logs_;
};

}  // namespace

NodePtr MakeIgnoreErrors(const NodePtr& input, bool log_warning) {
  return std::make_shared<IgnoreErrorsNode>(input, log_warning);
}

}  // namespace cohort::data
