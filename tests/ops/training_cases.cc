// Cases of update ops. Variables and slots are assigned from inputs, updated once or twice, and read.
#include <functional>
#include <string>

#include "cohort/ops/constant.h"
#include "cohort/ops/state.h"
#include "cohort/ops/training.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

// Adds the update of handles[0] and its slots by `grad` (and by `indices` if it is sparse).
using AddUpdate = std::function<Node*(const Outputs& handles, Output grad, Output indices)>;

// Builds two updates. The inputs are the variable, its slots, the gradient, and the indices of a sparse update.
OpCase::Build UpdateTwice(int variables, AddUpdate add) {
  return [variables, add](Graph& graph, const Outputs& in) {
    Outputs handles;
    std::vector<Node*> before;
    for (int i = 0; i < variables; ++i) {
      const Output& value = in[static_cast<size_t>(i)];
      handles.push_back(ops::VarHandleOp(graph, value.dtype(), Shape{3, 2}, "v" + std::to_string(i)));
      before.push_back(ops::AssignVariableOp(handles.back(), value));
    }
    const Output grad = in[static_cast<size_t>(variables)];
    const Output indices = in.back();
    for (int round = 0; round < 2; ++round) {
      const ControlDependencies after(graph, before);
      before = {add(handles, grad, indices)};
    }
    const ControlDependencies after(graph, before);
    Outputs values;
    for (const Output& handle : handles) values.push_back(ops::ReadVariableOp(handle));
    return values;
  };
}

// Adds a case. Slots are positive, as squares are.
void AddCase(std::vector<OpCase>& cases, const std::string& op, const std::string& label, int variables, bool sparse,
             AddUpdate add, bool is_tensorflows = true) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    std::vector<Tensor> inputs = {AsType(Scatter({3, 2}, -2, 2), dtype)};
    for (int i = 1; i < variables; ++i) inputs.push_back(AsType(Scatter({3, 2}, 1.5, 3.0, i + 1), dtype));
    inputs.push_back(AsType(Scatter({sparse ? 2 : 3, 2}, -1, 1, 9), dtype));
    if (sparse) inputs.push_back(Tensor::Vector(std::vector<int32_t>{2, 0}));
    cases.push_back({op, label + "_" + std::string(DTypeName(dtype)), inputs, UpdateTwice(variables, add)});
    cases.back().compare_values = is_tensorflows;
  }
}

Output Number(Output like, double value) { return ops::ScalarLike(like, value); }

ops::RMSPropScalars RmsScalars(Output like) {
  return {Number(like, 0.1), Number(like, 0.8), Number(like, 0.5), Number(like, 0.25)};
}
ops::FtrlScalars FtrlNumbers(Output like, double power) {
  return {Number(like, 0.1), Number(like, 0.05), Number(like, 0.02), Number(like, power)};
}

void AddDenseCases(std::vector<OpCase>& cases) {
  AddCase(cases, "ResourceApplyGradientDescent", "dense", 1, false, [](const Outputs& v, Output g, Output) {
    return ops::ResourceApplyGradientDescent(v[0], Number(g, 0.1), g);
  });
  for (const bool nesterov : {false, true}) {
    const std::string label = nesterov ? "nesterov" : "plain";
    AddCase(cases, "ResourceApplyMomentum", label, 2, false, [nesterov](const Outputs& v, Output g, Output) {
      return ops::ResourceApplyMomentum(v[0], v[1], Number(g, 0.1), g, Number(g, 0.9), nesterov);
    });
    AddCase(cases, "ResourceApplyKerasMomentum", label, 2, false, [nesterov](const Outputs& v, Output g, Output) {
      return ops::ResourceApplyKerasMomentum(v[0], v[1], Number(g, 0.1), g, Number(g, 0.9), nesterov);
    });
    AddCase(cases, "ResourceApplyAdam", label, 3, false, [nesterov](const Outputs& v, Output g, Output) {
      const ops::AdamScalars scalars = {Number(g, 0.81), Number(g, 0.98), Number(g, 0.1),
                                        Number(g, 0.9),  Number(g, 0.99), Number(g, 1e-3)};
      return ops::ResourceApplyAdam(v[0], v[1], v[2], scalars, g, nesterov);
    });
  }
  AddCase(cases, "ResourceApplyAdagrad", "dense", 2, false,
          [](const Outputs& v, Output g, Output) { return ops::ResourceApplyAdagrad(v[0], v[1], Number(g, 0.1), g); });
  AddCase(cases, "ResourceApplyAdagradV2", "dense", 2, false, [](const Outputs& v, Output g, Output) {
    return ops::ResourceApplyAdagradV2(v[0], v[1], Number(g, 0.1), Number(g, 0.01), g);
  });
  AddCase(
      cases, "ResourceApplyKerasAdagrad", "dense", 2, false,
      [](const Outputs& v, Output g, Output) {
        return ops::ResourceApplyKerasAdagrad(v[0], v[1], Number(g, 0.1), Number(g, 0.01), g);
      },
      false);
  AddCase(
      cases, "ResourceApplyWeightDecay", "dense", 1, false,
      [](const Outputs& v, Output g, Output) { return ops::ResourceApplyWeightDecay(v[0], Number(g, 0.1)); }, false);
  AddCase(cases, "ResourceApplyAdamWithAmsgrad", "dense", 4, false, [](const Outputs& v, Output g, Output) {
    const ops::AdamScalars scalars = {Number(g, 0.81), Number(g, 0.98), Number(g, 0.1),
                                      Number(g, 0.9),  Number(g, 0.99), Number(g, 1e-3)};
    return ops::ResourceApplyAdamWithAmsgrad(v[0], v[1], v[2], v[3], scalars, g);
  });
  AddCase(cases, "ResourceApplyRMSProp", "dense", 3, false, [](const Outputs& v, Output g, Output) {
    return ops::ResourceApplyRMSProp(v[0], v[1], v[2], RmsScalars(g), g);
  });
  // ms - mg^2 has to stay positive. mg is one of the slot values 1.5 to 3, so ms gets the largest ones.
  AddCase(cases, "ResourceApplyCenteredRMSProp", "dense", 4, false, [](const Outputs& v, Output g, Output) {
    ops::RMSPropScalars scalars = RmsScalars(g);
    scalars.epsilon = Number(g, 10);
    return ops::ResourceApplyCenteredRMSProp(v[0], v[1], v[2], v[3], scalars, g);
  });
  for (const double power : {-0.5, -0.7}) {
    AddCase(cases, "ResourceApplyFtrl", power == -0.5 ? "root" : "power", 3, false,
            [power](const Outputs& v, Output g, Output) {
              return ops::ResourceApplyFtrl(v[0], v[1], v[2], g, FtrlNumbers(g, power));
            });
    AddCase(cases, "ResourceApplyFtrlV2", power == -0.5 ? "root" : "power", 3, false,
            [power](const Outputs& v, Output g, Output) {
              return ops::ResourceApplyFtrlV2(v[0], v[1], v[2], g, FtrlNumbers(g, power), Number(g, 0.03));
            });
  }
}

void AddSparseCases(std::vector<OpCase>& cases) {
  for (const bool nesterov : {false, true}) {
    const std::string label = nesterov ? "nesterov" : "plain";
    AddCase(cases, "ResourceSparseApplyMomentum", label, 2, true, [nesterov](const Outputs& v, Output g, Output i) {
      return ops::ResourceSparseApplyMomentum(v[0], v[1], Number(g, 0.1), g, i, Number(g, 0.9), nesterov);
    });
    AddCase(cases, "ResourceSparseApplyKerasMomentum", label, 2, true,
            [nesterov](const Outputs& v, Output g, Output i) {
              return ops::ResourceSparseApplyKerasMomentum(v[0], v[1], Number(g, 0.1), g, i, Number(g, 0.9), nesterov);
            });
  }
  AddCase(cases, "ResourceSparseApplyAdagrad", "rows", 2, true, [](const Outputs& v, Output g, Output i) {
    return ops::ResourceSparseApplyAdagrad(v[0], v[1], Number(g, 0.1), g, i);
  });
  AddCase(cases, "ResourceSparseApplyAdagradV2", "rows", 2, true, [](const Outputs& v, Output g, Output i) {
    return ops::ResourceSparseApplyAdagradV2(v[0], v[1], Number(g, 0.1), Number(g, 0.01), g, i);
  });
  AddCase(
      cases, "ResourceSparseApplyKerasAdagrad", "rows", 2, true,
      [](const Outputs& v, Output g, Output i) {
        return ops::ResourceSparseApplyKerasAdagrad(v[0], v[1], Number(g, 0.1), Number(g, 0.01), g, i);
      },
      false);
  AddCase(
      cases, "ResourceSparseApplyAdam", "rows", 3, true,
      [](const Outputs& v, Output g, Output i) {
        const ops::AdamScalars scalars = {Number(g, 0.81), Number(g, 0.98), Number(g, 0.1),
                                          Number(g, 0.9),  Number(g, 0.99), Number(g, 0.01)};
        return ops::ResourceSparseApplyAdam(v[0], v[1], v[2], scalars, g, i);
      },
      false);
  AddCase(cases, "ResourceSparseApplyRMSProp", "rows", 3, true, [](const Outputs& v, Output g, Output i) {
    return ops::ResourceSparseApplyRMSProp(v[0], v[1], v[2], RmsScalars(g), g, i);
  });
  AddCase(cases, "ResourceSparseApplyCenteredRMSProp", "rows", 4, true, [](const Outputs& v, Output g, Output i) {
    ops::RMSPropScalars scalars = RmsScalars(g);
    scalars.epsilon = Number(g, 10);
    return ops::ResourceSparseApplyCenteredRMSProp(v[0], v[1], v[2], v[3], scalars, g, i);
  });
  AddCase(cases, "ResourceSparseApplyFtrl", "rows", 3, true, [](const Outputs& v, Output g, Output i) {
    return ops::ResourceSparseApplyFtrl(v[0], v[1], v[2], g, i, FtrlNumbers(g, -0.5));
  });
  AddCase(cases, "ResourceSparseApplyFtrlV2", "rows", 3, true, [](const Outputs& v, Output g, Output i) {
    return ops::ResourceSparseApplyFtrlV2(v[0], v[1], v[2], g, i, FtrlNumbers(g, -0.5), Number(g, 0.03));
  });
}

}  // namespace

void AddTrainingCases(std::vector<OpCase>& cases) {
  AddDenseCases(cases);
  AddSparseCases(cases);
}

}  // namespace cohort::testing
