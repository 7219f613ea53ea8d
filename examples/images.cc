#include "examples/images.h"

#include <cstdio>

namespace examples {

cohort::data::ImageDataset LoadImages(const std::string& data_dir, bool say) {
  cohort::data::ImageDataset images = cohort::datasets::FashionMnist(data_dir);
  if (images.generated && say) {
    std::printf("training on generated images: neither --data_dir nor COHORT_DATA_DIR is given\n");
  }
  return images;
}

const char* ImagesNote(bool generated) { return generated ? " (of generated images)" : ""; }

}  // namespace examples
