#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/graph.h"

namespace cohort {

namespace {

Node& NodeOf(const Output& output, const char* asked) {
  if (output.node == nullptr) {
    throw InvalidArgumentError(StrCat("[graph] expected a value of a graph; got an empty Output, whose ", asked,
                                      " was asked for; Output() and the values of a gradient that does not exist "
                                      "(Gradient::exists) are empty"));
  }
  return *output.node;
}

}  // namespace

DType Output::dtype() const { return NodeOf(*this, "dtype").output_dtype(index); }
const Shape& Output::shape() const { return NodeOf(*this, "shape").output_shape(index); }
Graph& Output::graph() const { return NodeOf(*this, "graph").graph(); }
std::string Output::name() const { return StrCat(NodeOf(*this, "name").name(), ":", index); }

void Node::FailAttr(std::string_view name) const {
  const auto it = attrs_.find(name);
  if (it == attrs_.end()) {
    throw InvalidArgumentError(StrCat("[graph] ", Describe(), " has no attribute '", name, "'"));
  }
  throw InvalidArgumentError(StrCat("[graph] ", Describe(), ": attribute '", name, "' is ", it->second.ToString(),
                                    ", which is of another type than was asked for"));
}

void Node::AddControlInput(Node* node) {
  if (node == nullptr || node == this || node->graph_ != graph_) {
    throw InvalidArgumentError(StrCat("[graph] ", Describe(),
                                      ": expected as control input another node of its graph, got ",
                                      node == nullptr ? "none" : node->Describe()));
  }
  if (std::find(control_inputs_.begin(), control_inputs_.end(), node) == control_inputs_.end()) {
    control_inputs_.push_back(node);
  }
}

void Node::ReplaceInput(int i, Output value) {
  if (i < 0 || i >= num_inputs() || !value.valid() || &value.graph() != graph_ || value.index < 0 ||
      value.index >= value.node->num_outputs()) {
    throw InvalidArgumentError(StrCat("[graph] ", Describe(), ": cannot replace input ", i, " of ", num_inputs(),
                                      " by ", value.valid() ? value.name() : "nothing"));
  }
  if (value.dtype() != input(i).dtype()) {
    throw InvalidArgumentError(StrCat("[graph] ", Describe(), ": expected ", input(i).dtype(), " for input ", i,
                                      ", got ", value.dtype(), " of ", value.name()));
  }
  inputs_[static_cast<size_t>(i)] = value;
}

std::string Node::Describe() const {
  std::string text = StrCat(op_->name(), " node '", name_, "' (inputs: ");
  if (inputs_.empty()) text += "none";
  const char* between = "";
  for (const Output& value : inputs_) {
    text += StrCat(between, value.dtype(), value.shape());
    between = ", ";
  }
  text += ")";
  if (site_.file != nullptr) text += ", made at " + site_.ToString();
  return text;
}

}  // namespace cohort
