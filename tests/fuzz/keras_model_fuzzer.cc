// LoadModel: layers and a graph from a configuration. The input is the text of config.json; the archive around it has
// right checksums, and the weights of a small model.
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/files/weights_file.h"
#include "cohort/registration.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string weights = keras::EncodeWeights(
      {{"layers/dense", "dense", {Tensor::Zeros(DType::kFloat32, Shape{2, 3}), Tensor::Vector<float>({1, 2, 3})}}});
  keras::ModelArchive archive;
  archive.config = fuzz::View(data, size);
  archive.weights = weights;
  const std::string path = fuzz::ScratchPath("model.keras");
  keras::WriteModelArchive(path, archive);
  keras::LoadOptions options;
  options.session.intra_op_parallelism_threads = 1;
  fuzz::Accepts([&] { keras::LoadModel(path, options); });
  return 0;
}
