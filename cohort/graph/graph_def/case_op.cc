// LowerCase. All new functions have the same arguments: the number of the branch, and then the inputs of the branches.
// The one for several branches asks on which side of the middle the number is. The one for a single branch calls it.
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/graph_def/case_op_internal.h"

namespace cohort {
namespace {

constexpr char kNumber[] = "branch_index";

// The nodes of the graph or of a function, to which nodes are added.
struct Place {
  bool in_graph;
  std::function<proto::NodeDef*()> add;
  std::function<std::string(const std::string&)> name;

  // Adds a node with one output and returns how its value is called.
  std::string Add(const std::string& wanted_name, const char* op, const char* output,
                  const std::vector<std::string>& inputs) const {
    proto::NodeDef* node = add();
    node->set_name(name(wanted_name));
    node->set_op(op);
    for (const std::string& input : inputs) node->add_input(input);
    return in_graph ? node->name() : StrCat(node->name(), ":", output, ":0");
  }
  std::string AddInt(const std::string& wanted_name, int value) const {
    proto::NodeDef* node = add();
    node->set_name(name(wanted_name));
    node->set_op("Const");
    (*node->mutable_attr())["dtype"].set_type(proto::DT_INT32);
    proto::TensorProto& tensor = *(*node->mutable_attr())["value"].mutable_tensor();
    tensor.set_dtype(proto::DT_INT32);
    tensor.mutable_tensor_shape();
    tensor.add_int_val(value);
    return in_graph ? node->name() : StrCat(node->name(), ":output:0");
  }
};

class CaseLowering {
 public:
  CaseLowering(const proto::NodeDef& node, const CaseContext& context) : node_(node), context_(context) {}

  CaseParts Lower() {
    ReadNode();
    const Place place{context_.in_graph, [this] { return &parts_.nodes.emplace_back(); }, context_.new_node};
    const auto below = [this](const char* name) { return StrCat(node_.name(), "/", name); };
    const int count = branches_->func_size();
    const std::string& number = inputs_[0];
    const std::string negative = place.Add(below("negative"), "Less", "z", {number, place.AddInt(below("zero"), 0)});
    inputs_[0] =
        place.Add(below("number"), "SelectV2", "output", {negative, place.AddInt(below("last"), count - 1), number});
    AddBranch(place, below(""), node_.name(), 0, count, inputs_);
    for (const std::string& control : controls_) parts_.nodes.back().add_input(control);
    return std::move(parts_);
  }

 private:
  const proto::AttrValue::ListValue& ListOf(const char* name) const {
    const auto attr = node_.attr().find(name);
    return attr == node_.attr().end() ? proto::AttrValue::ListValue::default_instance() : attr->second.list();
  }

  void ReadNode() {
    for (const std::string& input : node_.input()) {
      (input.starts_with('^') ? controls_ : inputs_).push_back(input);
    }
    branches_ = &ListOf("branches");
    const auto num_types = static_cast<size_t>(ListOf("Tin").type_size());
    const auto num_args = static_cast<size_t>(context_.first->signature().input_arg_size());
    if (branches_->func_size() > 0 && inputs_.size() == num_types + 1 && num_args == num_types) return;
    throw InvalidArgumentError(
        StrCat("[graph] expected branches, and a number and the arguments of a branch as inputs "
               "of the node '",
               node_.name(), "' (", node_.op(), "); got ", branches_->func_size(), " branches of ", num_args,
               " arguments, and ", inputs_.size(), " inputs"));
  }

  // Adds the branch among the branches [begin, end) to `place`. `inputs` begin with the number.
  void AddBranch(const Place& place, const std::string& prefix, const std::string& name, int begin, int end,
                 const std::vector<std::string>& inputs) {
    const int middle = begin + (end - begin + 1) / 2;
    const std::string low = MakeFunction(begin, middle);
    const std::string high = middle < end ? MakeFunction(middle, end) : low;  // of one branch, both sides are the same
    std::vector<std::string> all = {
        place.Add(prefix + "below", "Less", "z", {inputs[0], place.AddInt(prefix + "middle", middle)})};
    all.insert(all.end(), inputs.begin(), inputs.end());
    proto::NodeDef* branch = place.add();
    branch->set_name(name);
    branch->set_op(node_.op() == "Case" ? "If" : "StatelessIf");
    for (const std::string& input : all) branch->add_input(input);
    auto& attrs = *branch->mutable_attr();
    attrs["Tcond"].set_type(proto::DT_BOOL);
    attrs["Tin"].mutable_list()->add_type(proto::DT_INT32);
    attrs["Tin"].mutable_list()->MergeFrom(ListOf("Tin"));
    *attrs["Tout"].mutable_list() = ListOf("Tout");
    *attrs["output_shapes"].mutable_list() = ListOf("output_shapes");
    attrs["then_branch"].mutable_func()->set_name(low);
    attrs["else_branch"].mutable_func()->set_name(high);
  }

  // Makes the function for the branches [begin, end) and returns its name.
  std::string MakeFunction(int begin, int end) {
    proto::FunctionDef def;
    def.mutable_signature()->set_name(context_.new_function(StrCat("case_", begin, "_", end)));
    proto::OpDef::ArgDef* number = def.mutable_signature()->add_input_arg();
    number->set_name(kNumber);
    number->set_type(proto::DT_INT32);
    std::vector<std::string> inputs = {kNumber};
    for (int i = 0; i < context_.first->signature().input_arg_size(); ++i) {
      proto::OpDef::ArgDef* arg = def.mutable_signature()->add_input_arg();
      *arg = context_.first->signature().input_arg(i);
      arg->set_name(StrCat("arg", i));
      inputs.push_back(arg->name());
      const auto attrs = context_.first->arg_attr().find(static_cast<uint32_t>(i));
      if (attrs == context_.first->arg_attr().end()) continue;
      (*def.mutable_arg_attr())[static_cast<uint32_t>(i) + 1] = attrs->second;
    }
    const Place place{false, [&def] { return def.add_node_def(); }, [](const std::string& name) { return name; }};
    if (end - begin > 1) {
      AddBranch(place, "", "branch", begin, end, inputs);
    } else {
      proto::NodeDef* call = place.add();
      call->set_name("branch");
      call->set_op("StatefulPartitionedCall");
      for (size_t i = 1; i < inputs.size(); ++i) call->add_input(inputs[i]);
      *(*call->mutable_attr())["f"].mutable_func() = branches_->func(begin);
    }
    (*def.mutable_control_ret())["branch"] = "branch";
    for (int i = 0; i < ListOf("Tout").type_size(); ++i) {
      proto::OpDef::ArgDef* result = def.mutable_signature()->add_output_arg();
      result->set_name(StrCat("result", i));
      result->set_type(ListOf("Tout").type(i));
      (*def.mutable_ret())[result->name()] = StrCat("branch:output:", i);
    }
    context_.take(def.ByteSizeLong());
    parts_.functions.push_back(std::move(def));
    return parts_.functions.back().signature().name();
  }

  const proto::NodeDef& node_;
  const CaseContext& context_;
  std::vector<std::string> inputs_, controls_;
  const proto::AttrValue::ListValue* branches_ = nullptr;
  CaseParts parts_;
};

}  // namespace

CaseParts LowerCase(const proto::NodeDef& node, const CaseContext& context) {
  return CaseLowering(node, context).Lower();
}

}  // namespace cohort
