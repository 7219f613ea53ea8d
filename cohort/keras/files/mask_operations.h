// MaskOperations: the operations among the layers of a functional model in a file. Internal to keras/.
//
// In Keras's files a functional model lists not only layers but also the operations that compute its masks, and a call
// of a layer that uses a mask has the result of such an operation as its argument `mask`. Here layers find the masks of
// their inputs themselves. So a reader leaves the operations out, after it has checked that they compute no other mask.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "cohort/keras/files/config.h"

namespace cohort::keras {

// Immutable. LayersReader makes one for each functional model that it reads. The file must live as long.
class MaskOperations {
 public:
  // Returns whether an entry of the list of layers is an operation and not a layer.
  static bool IsOperation(const ConfigValue& layer);
  // Returns the name by which calls refer to an entry of the list of layers.
  static const std::string& NameOf(const ConfigValue& layer);

  explicit MaskOperations(const ConfigValue::List& layers);

  bool Has(const std::string& name) const { return operations_.count(name) > 0; }
  // Throws InvalidArgumentError unless `mask`, the argument of a call of the layer `layer`, is empty or follows by
  // Keras's rules from the masks that layers Embedding and Masking make.
  void Check(const std::string& layer, const ConfigValue& mask) const;

 private:
  // Adds the operations whose results `argument` has to *names.
  void AddOperations(const std::string& layer, const ConfigValue& argument, std::set<std::string>* names) const;
  void CheckComparison(const std::string& layer, const ConfigValue& operation) const;

  std::map<std::string, const ConfigValue*> operations_;  // by name
  // A value, as files refer to it, and the number by which a layer finds its masked steps.
  std::set<std::pair<std::string, double>> sources_;
};

}  // namespace cohort::keras
