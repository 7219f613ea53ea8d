// OpDef: the definition of an operation: its inputs, outputs, attributes, shape rule, gradient and documentation. Each
// op is defined once, in ops/<family>.cc, in TensorFlow's notation for the op of the same name. OpRegistry: all ops by
// name.
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

// One input or output of an op. Exactly one of dtype, type_attr and type_list_attr is set. It decides the dtype of the
// input or output.
struct COHORT_EXPORT ArgDef {
  std::string name;
  DType dtype = DType::kInvalid;
  std::string type_attr;       // T for "x: T"
  std::string number_attr;     // N for "values: N * T"
  std::string type_list_attr;  // Tin for "input: Tin", if Tin is a list(type)
  bool host_memory = false;    // the value lies in host memory on every device (shapes, axes, ...)
};

// The type of an attribute of an op.
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

// The definition of one attribute of an op.
struct COHORT_EXPORT AttrDef {
  std::string name;
  AttrKind kind = AttrKind::kInt;
  std::optional<AttrValue> default_value;
  std::vector<DType> allowed_types;          // empty: all types are allowed
  std::vector<std::string> allowed_strings;  // empty: all strings are allowed
  std::optional<int64_t> minimum;            // of an int; for a list: of its length
};

// The facts that are known about the inputs of a node. While a graph is built, these are static shapes and constants.
// While the node runs, these are the shapes and dtypes of the tensors, and the values of the tensors in host memory.
// The caller of a shape rule owns the object; only the ShapeContext uses it. Every method requires that `i` is in [0,
// num_inputs()).
class COHORT_EXPORT InputFacts {
 public:
  virtual ~InputFacts() = default;
  virtual int num_inputs() const = 0;
  virtual const Shape& shape(int i) const = 0;
  virtual DType dtype(int i) const = 0;
  // Returns the value of input i, or nullopt if it is not known.
  virtual std::optional<Tensor> value(int i) const = 0;
  // Returns the shape that input i describes. An unknown element becomes -1. Returns UnknownRank if the length of the
  // input is not known. Throws InvalidArgumentError if the input cannot be a shape.
  virtual Shape value_as_shape(int i) const = 0;
  // Return shape and dtype of the variable whose handle is input i, or UnknownRank and kInvalid if they are not known.
  virtual Shape handle_shape(int i) const = 0;
  virtual DType handle_dtype(int i) const = 0;
};

// The argument of a shape rule. It answers questions about the inputs and the attributes of one node. Usually this is a
// node that is being added to a graph. On a device whose kernels only enqueue their work, it may also be a node that is
// about to run (device/output_shapes.h). The context exists during one call of the rule. The methods throw
// InternalError if an index is out of range, or if attr() asks for an attribute that the op lacks.
class COHORT_EXPORT ShapeContext {
 public:
  // Both arguments must live longer than the context.
  ShapeContext(const AttrMap& attrs, const InputFacts& inputs) : attrs_(attrs), inputs_(inputs) {}

  int num_inputs() const { return inputs_.num_inputs(); }
  const Shape& input(int i) const;
  DType input_dtype(int i) const;
  // Returns the value of input i, or nullopt if it is not known. While a graph is built, constants are known, and
  // values that graph/constant_value.h computes. While a node runs, inputs in host memory are known.
  std::optional<Tensor> input_value(int i) const;
  // These do what value_as_shape, handle_shape and handle_dtype of InputFacts do.
  Shape input_as_shape(int i) const;
  Shape handle_shape(int i) const;
  DType handle_dtype(int i) const;

  template <typename T>
  const T& attr(std::string_view name) const;
  bool has_attr(std::string_view name) const { return attrs_.find(name) != attrs_.end(); }

  // Returns the shape of input i. If the rank of the input is unknown, returns a shape of `rank` unknown dimensions.
  // Throws InvalidArgumentError "Shape must be rank 2 but is rank 1" if the input has another rank.
  Shape WithRank(int i, int rank) const;
  // Returns the shape of input i, also if its rank is unknown. Throws InvalidArgumentError if its rank is less than
  // `rank`.
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

// A shape rule: returns one shape for each output. Throws InvalidArgumentError if the inputs do not fit the op. The
// graph adds the names of op and node to the message.
using ShapeFn = std::function<std::vector<Shape>(ShapeContext&)>;
// A gradient function: sets the gradients of the node's inputs in the context.
using GradientFn = std::function<void(GradientContext&)>;

// The definition of one op. The methods from Input to Doc set its parts and are called in a chain:
// OpDef("Relu").Input("features: T").Output("activations: T")... Input, Output and Attr (and the Host forms) throw
// InvalidArgumentError if a text does not parse, or if a name is declared twice. After OpRegistry::Register the
// definition never changes, and all threads may read it. The registry owns it.
class COHORT_EXPORT OpDef {
 public:
  explicit OpDef(std::string name) : name_(std::move(name)) {}

  // Add the next input or output. Examples: "x: T", "values: N * T", "shape: int32", "data: Tin". HostInput and
  // HostOutput say that the value lies in host memory on every device.
  OpDef&& Input(const std::string& spec) &&;
  OpDef&& HostInput(const std::string& spec) &&;
  OpDef&& Output(const std::string& spec) &&;
  OpDef&& HostOutput(const std::string& spec) &&;
  // Adds an attribute. Examples: "T: type", "T: {float32, float64} = float32", "N: int >= 1", "keep_dims: bool =
  // false", "padding: {'SAME','VALID'}", "axes: list(int) >= 1 = []", "shape: shape", "value: tensor", "f: func",
  // "name: string = ''".
  OpDef&& Attr(const std::string& spec) &&;
  OpDef&& ShapeRule(ShapeFn fn) &&;
  OpDef&& Gradient(GradientFn fn) &&;
  // Says that no gradient flows through the op. `reason` says why. The op must also be in the reviewed list of ops
  // without a gradient (tests/ops/registry_test.cc).
  OpDef&& NotDifferentiable(std::string reason) &&;
  // Says that the op has an effect or a state. Then passes never merge a node of the op with an equal node, and never
  // replace it by a constant. In the body of a function such a node always runs.
  OpDef&& Stateful() &&;
  // Says that the op changes a variable. Its nodes belong to the update set of their step.
  OpDef&& UpdatesVariable() &&;

  // Says that the op, which has no output, adds something to a resource that is not a variable. If a step is repeated
  // as another attempt of its closure (device/closure_id.h), the node adds nothing if an earlier attempt has done so.
  OpDef&& AddsToResource() &&;

  // Traits: facts that passes and backends need, besides the op's inputs, outputs and attributes. They do not change
  // what the op does.
  //
  // Each element of the result depends only on the elements at the same place of the inputs. All inputs have the
  // result's shape.
  OpDef&& Elementwise() &&;
  // As Elementwise, but the inputs may be broadcast to the result's shape.
  OpDef&& Broadcasting() &&;
  // The op computes a function of one input, and no attribute changes this function. A fused kernel, such as a matrix
  // product with a bias, may apply the function to its result. It knows the function by the op's name. Implies
  // Elementwise.
  OpDef&& Activation() &&;
  // The op computes the gradient of an activation from two inputs: the gradient of the activation's result (input
  // number `gradient`, 0 or 1), and the result itself (the other input). Implies Elementwise. Throws
  // InvalidArgumentError if `gradient` is neither 0 nor 1.
  OpDef&& ActivationGradient(int gradient) &&;
  // The op returns something about the shape of its input, in host memory. It never reads the elements.
  OpDef&& ReadsShapeOnly() &&;
  // The shapes of the results depend on elements of inputs that do not lie in host memory.
  OpDef&& DataDependentShape() &&;
  // The op keeps the value of its last input after the step, for example in a variable or a list.
  OpDef&& KeepsLastInput() &&;
  // The op returns values whose memory existed before the step and stays after it, such as the value of a variable.
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
  bool adds_to_resource() const { return adds_to_resource_; }
  bool is_elementwise() const { return traits_.elementwise; }
  bool is_broadcasting() const { return traits_.broadcasting; }
  bool is_activation() const { return traits_.activation; }
  // Returns the `gradient` of ActivationGradient; nullopt for every other op.
  std::optional<int> activation_gradient() const { return traits_.activation_gradient; }
  bool reads_shape_only() const { return traits_.reads_shape_only; }
  bool has_data_dependent_shape() const { return traits_.data_dependent_shape; }
  bool keeps_last_input() const { return traits_.keeps_last_input; }
  bool returns_kept_value() const { return traits_.returns_kept_value; }
  const std::string& doc() const { return doc_; }
  // Returns, in one line, the op's name, inputs, outputs and attributes, and whether it is stateful or updates a
  // variable. OpRegistry::Fingerprint hashes these lines.
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

  // Finds out which inputs and outputs are type lists, when all attributes are known. Throws InvalidArgumentError if an
  // input or output names an attribute that the op lacks or that has the wrong type.
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
  bool adds_to_resource_ = false;
  Traits traits_;
  std::string doc_;
};

// All ops by name. cohort/registration.h fills it once at the start. After that it never changes, and all threads may
// read it.
class COHORT_EXPORT OpRegistry {
 public:
  static OpRegistry& Global();

  // Throws AlreadyExistsError if there is an op of this name, and InvalidArgumentError if an input or output names an
  // attribute that the op lacks.
  void Register(OpDef&& def);
  // Returns the op. Throws NotFoundError, with similar names, if there is none.
  const OpDef& Get(std::string_view name) const;
  // Returns the op, or nullptr if there is none.
  const OpDef* Find(std::string_view name) const;
  std::vector<const OpDef*> All() const;  // sorted by name
  // Returns a hash of all signatures. Two processes that know the same ops have equal hashes.
  uint64_t Fingerprint() const;

 private:
  std::map<std::string, std::unique_ptr<OpDef>, std::less<>> ops_;
};

}  // namespace cohort
