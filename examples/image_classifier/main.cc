// Trains a network on a folder of images whose folders are their classes, and classifies a file with it:
//   image_classifier --make_images=shapes                      writes images to try it with
//   image_classifier --data_dir=shapes --image_size=28 --model=shapes.keras
//   image_classifier --data_dir=shapes --image_size=28 --model=shapes.keras --classify=photo.jpg
// The images are read while the network trains. Each epoch shifts them in another way.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "cohort/cohort.h"
#include "examples/command_line.h"
#include "examples/task.h"

namespace {

using namespace cohort;

struct Flags {
  std::string data_dir, make_images, model = "images.keras", classify;
  int image_size = 128;
  int batch_size = 32;
  int epochs = 5;
  int num_images = 2000;
};

// Writes generated images of ten classes as PNG files.
void MakeImages(const Flags& flags) {
  const data::ImageDataset images = data::GeneratedImages(1, flags.num_images, 0);
  const Shape one{images.train_images.shape().dim(1), images.train_images.shape().dim(2), 1};
  for (int i = 0; i < flags.num_images; ++i) {
    const std::string label = std::to_string(images.train_labels.data<uint8_t>()[i]);
    const std::filesystem::path folder = std::filesystem::path(flags.make_images) / ("class_" + label);
    std::filesystem::create_directories(folder);
    std::ofstream file(folder / (std::to_string(i) + ".png"), std::ios::binary);
    if (!(file << images::EncodePng(images.train_images.Slice(i, i + 1).Reshaped(one))).flush()) {
      throw std::runtime_error("cannot write images to " + folder.string());
    }
  }
  std::printf("wrote %d images to %s\n", flags.num_images, flags.make_images.c_str());
}

data::ImageFolder Read(const Flags& flags, data::Subset subset) {
  return data::ImageDatasetFromDirectory(flags.data_dir, {.batch_size = flags.batch_size,
                                                          .image_height = flags.image_size,
                                                          .image_width = flags.image_size,
                                                          .seed = 1,
                                                          .validation_split = 0.2,
                                                          .subset = subset});
}

keras::Sequential Network(int image_size, size_t num_classes) {
  keras::Sequential model({keras::Input(Shape{image_size, image_size, 3}),
                           keras::RandomTranslation(0.1, 0.1, {.interpolation = "nearest"}),
                           keras::Rescaling(1.0 / 255)});
  for (const int filters : {16, 32, 64}) {
    model.Add(keras::Conv2D(filters, 3, {.padding = "same", .use_bias = false}));
    model.Add(keras::BatchNormalization({.momentum = 0.9}));  // the default of 0.99 is for more steps
    model.Add(keras::Activation("relu"));
    model.Add(keras::MaxPooling2D());
  }
  model.Add(keras::GlobalAveragePooling2D());
  model.Add(keras::Dense(static_cast<int64_t>(num_classes), {.activation = "softmax"}));
  return model;
}

void Train(const Flags& flags) {
  const data::ImageFolder training = Read(flags, data::Subset::kTraining);
  const data::ImageFolder validation = Read(flags, data::Subset::kValidation);
  std::printf("%zu classes, %zu images to train and %zu to validate\n", training.class_names.size(),
              training.file_paths.size(), validation.file_paths.size());
  keras::Sequential model = Network(flags.image_size, training.class_names.size());
  model.Compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  const keras::History history = model.Fit(
      training.dataset.Prefetch(2), {.epochs = flags.epochs, .verbose = 2, .validation_data = validation.dataset});
  if (history.interrupted()) return;  // told to stop: an earlier model stays
  std::printf("validation accuracy: %.4f\n", history["val_accuracy"].back());
  model.Save(flags.model);
  std::printf("the model is in %s\n", flags.model.c_str());
}

// The class names are those of --data_dir, in the order in which the model was trained.
void Classify(const Flags& flags) {
  keras::Model model = keras::LoadModel(flags.model);
  const std::vector<std::string> names = Read(flags, data::Subset::kTraining).class_names;
  Graph graph;
  const Output image = ops::DecodeImage(ops::ReadFile(ops::Const(graph, flags.classify)), 3);
  Session session(graph);
  const Tensor pixels = session.Run(ops::ResizeBilinear(ops::ExpandDims(image, 0), {flags.image_size, flags.image_size},
                                                        {.half_pixel_centers = true}));
  const std::vector<float> probabilities = model.Predict(pixels).ToVector<float>();
  const auto best = std::max_element(probabilities.begin(), probabilities.end());
  std::printf("%s: %s (%.1f %%)\n", flags.classify.c_str(),
              names.at(static_cast<size_t>(best - probabilities.begin())).c_str(), 100.0 * static_cast<double>(*best));
}

void Run(const Flags& flags) {
  if (!flags.make_images.empty()) return MakeImages(flags);
  if (flags.data_dir.empty()) throw std::invalid_argument("expected --data_dir or --make_images; see --help");
  if (!flags.classify.empty()) return Classify(flags);
  Train(flags);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  examples::CommandLine line("Trains a network on a folder of images whose folders are their classes.");
  line.Add("--data_dir", &flags.data_dir, "Folder with a folder of JPEG or PNG files for each class");
  line.Add("--make_images", &flags.make_images, "Write generated images into this folder, and end");
  line.Add("--num_images", &flags.num_images, "How many images to generate", examples::AtLeast(10));
  line.Add("--image_size", &flags.image_size, "Rows and columns that images are resized to", examples::AtLeast(8));
  line.Add("--batch_size", &flags.batch_size, "Images in one step", examples::AtLeast(1));
  line.Add("--epochs", &flags.epochs, "Passes over the images", examples::AtLeast(1));
  line.Add("--model", &flags.model, "File of the model");
  line.Add("--classify", &flags.classify, "Classify this file with the model, and do not train");
  return examples::Main(argc, argv, line, [&] {
    Run(flags);
    return 0;
  });
}
