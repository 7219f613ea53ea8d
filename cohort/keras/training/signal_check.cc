#include "cohort/keras/training/signal_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cohort/core/str_cat.h"

namespace cohort::keras {
namespace {

constexpr double kCollapsed = 1e-3;
constexpr double kExploded = 1e3;
constexpr double kStuck = 1e-5;

std::string Number(double value) {
  if (std::isnan(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof(text), "%.2e", value);
  return text;
}

const char* const kScaleRemedy =
    "choose an initializer whose variance fits the layer's inputs (\"he_normal\" for relu, \"lecun_normal\" for selu), "
    "or put BatchNormalization() behind it";

std::string Remedy(const std::vector<LayerSignal>& layers, size_t end) {
  const bool keras_fans = std::any_of(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(end) + 1,
                                      [](const LayerSignal& layer) { return layer.keras_fans; });
  if (!keras_fans) return kScaleRemedy;
  return "depthwise kernels up to here count rows * columns * channels inputs though each output sums rows * columns "
         "of "
         "them, so that their weights are too small: use DepthwiseFans::kTrue (the default), or put "
         "BatchNormalization() behind them";
}

// "conv2d (Conv2D)".
std::string Title(const LayerSignal& layer) { return StrCat(layer.layer, " (", layer.class_name, ")"); }

// Describes the first layer with a problem.
std::string ActivationProblem(const std::vector<LayerSignal>& layers, double input) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerSignal& layer = layers[i];
    if (std::isnan(layer.activation)) continue;  // no floating numbers
    if (std::isinf(layer.activation)) {
      return StrCat("the output of ", Title(layer), " is not finite; look at its inputs and initial weights");
    }
    // If it is exactly 0, kernels begin at 0. That is no problem if gradients reach them.
    if (!(input > 0) || layer.activation == 0 || layer.class_name == "InputLayer") continue;
    const double share = layer.activation / input;
    if (share >= kCollapsed && share <= kExploded) continue;
    return StrCat("the signal ", share < kCollapsed ? "collapses" : "explodes", ": rms ", Number(layer.activation),
                  " behind ", Title(layer), ", from ", Number(input), " at the model's input; ", Remedy(layers, i));
  }
  return "";
}

std::string GradientProblem(const std::vector<LayerSignal>& layers) {
  double best = -1;
  const LayerSignal* of = nullptr;
  for (const LayerSignal& layer : layers) {
    if (std::isinf(layer.weight_gradient)) {
      return StrCat("the gradient of the kernels of ", Title(layer), " is not finite");
    }
    if (std::isnan(layer.weight_gradient)) continue;
    const double share = layer.weight > 0 ? layer.weight_gradient / layer.weight : layer.weight_gradient;
    if (share > best) {
      best = share;
      of = &layer;
    }
  }
  if (of == nullptr || best >= kStuck) return "";
  return StrCat("no gradient reaches the kernels: the largest, of ", Title(*of), ", has rms ",
                Number(of->weight_gradient), ", ", Number(best), " of the kernel's own ", Number(of->weight), "; ",
                Remedy(layers, layers.size() - 1));
}

}  // namespace

std::vector<std::string> SignalReport::Problems() const {
  std::vector<std::string> problems;
  if (!std::isfinite(loss)) problems.push_back(StrCat("the loss is ", loss));
  if (layers.empty()) return problems;
  if (layers[0].activation == 0) {
    problems.emplace_back("the model's input is all zeros: look at how the data is scaled");
    return problems;
  }
  for (const std::string& problem : {ActivationProblem(layers, layers[0].activation), GradientProblem(layers)}) {
    if (!problem.empty()) problems.push_back(problem);
  }
  return problems;
}

std::string SignalReport::ToString() const {
  std::string text;
  char line[256];
  std::snprintf(line, sizeof(line), "%-40s %-22s %10s %10s %10s %10s\n", "Layer (type)", "Output Shape", "rms out",
                "rms grad", "rms kernel", "rms its grad");
  text += line;
  for (const LayerSignal& layer : layers) {
    std::snprintf(line, sizeof(line), "%-40s %-22s %10s %10s %10s %10s\n", Title(layer).c_str(),
                  layer.shape.ToString().c_str(), Number(layer.activation).c_str(), Number(layer.gradient).c_str(),
                  Number(layer.weight).c_str(), Number(layer.weight_gradient).c_str());
    text += line;
  }
  for (const std::string& problem : Problems()) text += StrCat("! ", problem, "\n");
  return text;
}

}  // namespace cohort::keras
