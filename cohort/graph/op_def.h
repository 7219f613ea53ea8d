// OpDef: what an operation is - inputs, outputs, attributes, shape rule, gradient, documentation - written once, in
// ops/<family>.cc, in TensorFlow's notation for the op of the same name. OpRegistry: all of them by name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/dtype.h"
#include "cohort/core/export.h"
#include "cohort/core/shape.h"
#include "cohort/graph/attr_value.h"

namespace cohort {

class Node;
struct Output;
class GradientContext;

// One input or output of an op. Exactly one of dtype, type_attr, type_list_attr says what its dtype is.
struct COHORT_EXPORT ArgDef {
  std::string name;
  DType dtype = DType::kInvalid;
  std::string type_attr;       // "x: T"
  std::string number_attr;     // "values: N * T"
  std::string type_list_attr;  // "input: Tin" where Tin is a list(type)
  bool host_memory = false;    // lies in host memory on every device (shapes, axes, ...)
};

enum class AttrKind {
  kInt,
  kFloat,
  kBool,
  kString,
  kType,
  kShape,
  kTensor,
  kFunc,
  kListInt,
  kListFloat,
  kListBool,
  kListString,
  kListType,
  kListShape
};

struct COHORT_EXPORT AttrDef {
  std::string name;
  AttrKind kind = AttrKind::kInt;
  std::optional<AttrValue> default_value;
  std::vector<DType> allowed_types;          // empty: any
  std::vector<std::string> allowed_strings;  // empty: any
  std::optional<int64_t> minimum;            // of an int, of the length of a list
};

// What is known of the inputs of a node: of their static shapes and constants while a graph is built, of their tensors
// while the node runs. A ShapeContext asks it; `i` is in [0, num_inputs()).
class COHORT_EXPORT InputFacts {
 public:
  virtual ~InputFacts() = default;
  virtual int num_inputs() const = 0;
  virtual const Shape& shape(int i) const = 0;
  virtual DType dtype(int i) const = 0;
  // The value of input i, or nullopt if it is not known.
  virtual std::optional<Tensor> value(int i) const = 0;
  // Input i read as a shape vector, with unknown elements as -1; UnknownRank if even its length is unknown. Throws
  // InvalidArgumentError for an input that is no shape.
  virtual Shape value_as_shape(int i) const = 0;
  // Shape and dtype of the variable behind the resource handle at input i; UnknownRank and kInvalid if they are not
  // known.
  virtual Shape handle_shape(int i) const = 0;
  virtual DType handle_dtype(int i) const = 0;
};

// What a shape rule may ask about a node: the node that is being added to a graph, or, on a device whose kernels only
// enqueue their work, the node that is about to run (device/output_shapes.h). Index errors are InternalError.
class COHORT_EXPORT ShapeContext {
 public:
  // Both must outlive the context.
  ShapeContext(const AttrMap& attrs, const InputFacts& inputs) : attrs_(attrs), inputs_(inputs) {}

  int num_inputs() const { return inputs_.num_inputs(); }
  const Shape& input(int i) const;
  DType input_dtype(int i) const;
  // The value of input i if it is known, else nullopt. While a graph is built that is a constant, or what is computable
  // from constants and static shapes: Shape, Size, Rank, Pack, Cast, Identity, ConcatV2 of such. While a node runs it
  // is an input that lies in host memory.
  std::optional<Tensor> input_value(int i) const;
  // As InputFacts has them.
  Shape input_as_shape(int i) const;
  Shape handle_shape(int i) const;
  DType handle_dtype(int i) const;

  template <typename T>
  const T& attr(std::string_view name) const;
  bool has_attr(std::string_view name) const { return attrs_.find(name) != attrs_.end(); }

  // Throws InvalidArgumentError "Shape must be rank 2 but is rank 1" unless the rank is `rank` or unknown (then the
  // result has `rank` unknown dimensions).
  Shape WithRank(int i, int rank) const;
  Shape WithRankAtLeast(int i, int rank) const;

 private:
  [[noreturn]] static void FailAttr(std::string_view name);
  void CheckIndex(int i) const;

  const AttrMap& attrs_;
  const InputFacts& inputs_;
};

template <typename T>
const T& ShapeContext::attr(std::string_view name) const {
  const auto it = attrs_.find(name);
  if (it == attrs_.end() || it->second.get<T>() == nullptr) FailAttr(name);
  return *it->second.get<T>();
}

// One shape an output. Throws InvalidArgumentError for inputs that do not fit; the graph adds op and node name.
using ShapeFn = std::function<std::vector<Shape>(ShapeContext&)>;
using GradientFn = std::function<void(GradientContext&)>;

class COHORT_EXPORT OpDef {
 public:
  explicit OpDef(std::string name) : name_(std::move(name)) {}

  // TensorFlow's notation: Input("x: T"), Input("values: N * T"), Input("shape: int32"), Input("data: Tin").
  OpDef&& Input(const std::string& spec) &&;
  // The same, in host memory on every device.
  OpDef&& HostInput(const std::string& spec) &&;
  OpDef&& Output(const std::string& spec) &&;
  OpDef&& HostOutput(const std::string& spec) &&;
  // "T: type", "T: {float32, float64} = float32", "N: int >= 1", "keep_dims: bool = false", "padding:
  // {'SAME','VALID'}", "axes: list(int) >= 1 = []", "shape: shape", "value: tensor", "f: func", "name: string = ''".
  OpDef&& Attr(const std::string& spec) &&;
  OpDef&& ShapeRule(ShapeFn fn) &&;
  OpDef&& Gradient(GradientFn fn) &&;
  // No gradient flows through the op; `reason` is what the reviewed list of such ops says.
  OpDef&& NotDifferentiable(std::string reason) &&;
  // Has an effect or a state: never merged with an equal node, never folded.
  OpDef&& Stateful() &&;
  // Changes a variable: belongs to the update set of its step.
  OpDef&& UpdatesVariable() &&;

  // Traits: what passes, planners and backends need to know of an op beside its schema. None changes what the op does.
  //
  // Each element of the result depends on the element at the same place of each input alone. All inputs have the
  // result's shape.
  OpDef&& Elementwise() &&;
  // As Elementwise, but the inputs broadcast against each other.
  OpDef&& Broadcasting() &&;
  // A function of one input without attributes, by whose name a fused kernel may be asked to end in it. Implies
  // Elementwise.
  OpDef&& Activation() &&;
  // The gradient of an activation, as a function of the gradient, which is input `gradient` (0 or 1), and of the
  // activation's result, which is the other input. Implies Elementwise.
  OpDef&& ActivationGradient(int gradient) &&;
  // Answers in host memory what the shape of its input is. It never reads the elements.
  OpDef&& ReadsShapeOnly() &&;
  // The shapes of its results depend on the elements of inputs that are not in host memory.
  OpDef&& DataDependentShape() &&;
  // The value of the last input is kept after the step, by a variable or a list for instance.
  OpDef&& KeepsLastInput() &&;
  // The memory of the results was there before the step and stays after it.
  OpDef&& ReturnsKeptValue() &&;
  OpDef&& Doc(std::string text) &&;

  const std::string& name() const { return name_; }
  const std::vector<ArgDef>& inputs() const { return inputs_; }
  const std::vector<ArgDef>& outputs() const { return outputs_; }
  const std::vector<AttrDef>& attrs() const { return attrs_; }
  const AttrDef* FindAttr(std::string_view name) const;
  const ShapeFn& shape_fn() const { return shape_fn_; }
  const GradientFn& gradient_fn() const { return gradient_fn_; }
  const std::string& not_differentiable_reason() const { return not_differentiable_; }
  bool is_stateful() const { return stateful_; }
  bool updates_variable() const { return updates_variable_; }
  bool is_elementwise() const { return traits_.elementwise; }
  bool is_broadcasting() const { return traits_.broadcasting; }
  bool is_activation() const { return traits_.activation; }
  // Which input of an activation's gradient is the gradient; nullopt for any other op.
  std::optional<int> activation_gradient() const { return traits_.activation_gradient; }
  bool reads_shape_only() const { return traits_.reads_shape_only; }
  bool has_data_dependent_shape() const { return traits_.data_dependent_shape; }
  bool keeps_last_input() const { return traits_.keeps_last_input; }
  bool returns_kept_value() const { return traits_.returns_kept_value; }
  const std::string& doc() const { return doc_; }
  // One line that holds all of the signature; part of the registry's fingerprint.
  std::string Signature() const;

 private:
  friend class OpRegistry;
  struct Traits {
    bool elementwise = false;
    bool broadcasting = false;
    bool activation = false;
    std::optional<int> activation_gradient;
    bool reads_shape_only = false;
    bool data_dependent_shape = false;
    bool keeps_last_input = false;
    bool returns_kept_value = false;
  };

  // Tells type attributes from type lists once all attributes are known. Throws InvalidArgumentError for an input or
  // output that names an attribute that the op lacks or that is of the wrong type.
  void ResolveArgs();
  void ResolveArg(ArgDef& arg) const;

  std::string name_;
  std::vector<ArgDef> inputs_;
  std::vector<ArgDef> outputs_;
  std::vector<AttrDef> attrs_;
  ShapeFn shape_fn_;
  GradientFn gradient_fn_;
  std::string not_differentiable_;
  bool stateful_ = false;
  bool updates_variable_ = false;
  Traits traits_;
  std::string doc_;
};

// Filled once at start by the explicit registration list (cohort/registration.h), read-only afterwards.
class COHORT_EXPORT OpRegistry {
 public:
  static OpRegistry& Global();

  // Throws AlreadyExistsError for a second op of the name.
  void Register(OpDef&& def);
  // Throws NotFoundError with the closest names.
  const OpDef& Get(std::string_view name) const;
  const OpDef* Find(std::string_view name) const;
  std::vector<const OpDef*> All() const;  // by name
  // Hash of all signatures: equal in two processes that know the same ops.
  uint64_t Fingerprint() const;

 private:
  std::map<std::string, std::unique_ptr<OpDef>, std::less<>> ops_;
};

}  // namespace cohort
