// What a checkpoint has, for programs: names, shapes, dtypes and values, without a graph. As tf.train.load_checkpoint,
// list_variables and load_variable. TensorFlow's checkpoints can be read as well as Cohort's.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort {

class BundleReader;

namespace train {

// Reads one checkpoint. The program owns it. Thread-safe. The functions that take a name throw NotFoundError "Key NAME
// not found in checkpoint PREFIX" if there is no such tensor.
class COHORT_EXPORT CheckpointReader {
 public:
  // Opens the checkpoint with a prefix, such as "model/model.ckpt-100", or the newest one of a folder. Throws
  // NotFoundError if there is none, and DataLossError if its index is damaged.
  explicit CheckpointReader(const std::string& ckpt_dir_or_file);
  ~CheckpointReader();
  CheckpointReader(CheckpointReader&&) noexcept;
  CheckpointReader& operator=(CheckpointReader&&) noexcept;

  const std::string& prefix() const;
  bool HasTensor(const std::string& name) const;
  // Returns the value. The parts of a partitioned variable are joined. Throws DataLossError if its bytes are damaged,
  // and UnimplementedError for a dtype that Cohort does not have.
  Tensor GetTensor(const std::string& name) const;
  std::map<std::string, Shape> GetVariableToShapeMap() const;
  // The dtype is kInvalid if Cohort does not have it.
  std::map<std::string, DType> GetVariableToDtypeMap() const;

 private:
  std::unique_ptr<BundleReader> reader_;
};

// Return a reader of a checkpoint. NewCheckpointReader is the older name; it takes a prefix.
COHORT_EXPORT CheckpointReader LoadCheckpoint(const std::string& ckpt_dir_or_file);
inline CheckpointReader NewCheckpointReader(const std::string& filepattern) { return LoadCheckpoint(filepattern); }

struct COHORT_EXPORT StoredShape {
  std::string name;
  Shape shape;
};
// Returns the names and shapes of all tensors of a checkpoint, sorted by name. Throws as CheckpointReader does.
COHORT_EXPORT std::vector<StoredShape> ListVariables(const std::string& ckpt_dir_or_file);
// Returns the value of one tensor of a checkpoint. Throws as CheckpointReader does.
COHORT_EXPORT Tensor LoadVariable(const std::string& ckpt_dir_or_file, const std::string& name);

}  // namespace train
}  // namespace cohort
