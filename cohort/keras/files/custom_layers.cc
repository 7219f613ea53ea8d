#include "cohort/keras/files/custom_layers.h"

#include <map>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/model_config.h"
#include "cohort/keras/files/serialization.h"

namespace cohort::keras {
namespace {

struct Registry {
  Mutex mu;
  std::map<std::string, LayerFactory> factories COHORT_GUARDED_BY(mu);
};

Registry& RegistryOfLayers() {
  static Registry* const registry = new Registry;  // never destroyed: other statics may use it at the end
  return *registry;
}

}  // namespace

void RegisterLayer(const std::string& class_name, LayerFactory factory) {
  if (!factory) {
    throw InvalidArgumentError(StrCat("[keras/layer] expected a factory for layer class '", class_name, "'; got none"));
  }
  const bool keras = IsKerasLayer(class_name) || IsModelClass(class_name);
  Registry& registry = RegistryOfLayers();
  const MutexLock lock(registry.mu);
  if (!keras && registry.factories.emplace(class_name, std::move(factory)).second) return;
  throw AlreadyExistsError(StrCat("[keras/layer] expected a new class of layers to register; got '", class_name,
                                  keras ? "', which Keras has" : "', which is registered already",
                                  "; give the class another name, or the factory to LoadOptions::custom_layers"));
}

LayerFactory RegisteredLayer(const std::string& class_name) {
  Registry& registry = RegistryOfLayers();
  const MutexLock lock(registry.mu);
  const auto found = registry.factories.find(class_name);
  return found == registry.factories.end() ? LayerFactory() : found->second;
}

std::vector<std::string> RegisteredLayerNames() {
  Registry& registry = RegistryOfLayers();
  const MutexLock lock(registry.mu);
  std::vector<std::string> names;
  for (const auto& [name, factory] : registry.factories) names.push_back(name);
  return names;
}

}  // namespace cohort::keras
