// Trains a network that tells classes of texts apart. The network takes raw texts: it has its vocabulary itself.
//   text_classifier                                      trains on generated sentences
//   text_classifier --data_dir=aclImdb/train --model=reviews.keras
//   text_classifier --data_dir=aclImdb/train --model=reviews.keras --no_train --predict="I loved it|What a bore"
// In --data_dir the texts of each class are .txt files in a folder of their own. So remove other folders before: that
// of IMDB's reviews has a folder "unsup", which is no class.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cohort.h"
#include "examples/command_line.h"
#include "examples/task.h"
#include "examples/text_classifier/sentences.h"

namespace {

using namespace cohort;

struct Flags {
  std::string data_dir, model = "texts.keras", predict;
  bool no_train = false;
  int batch_size = 32;
  int epochs = 10;
  int64_t max_tokens = 10'000;
  int64_t sequence_length = 250;
  int num_sentences = 2000;
};

struct Texts {
  data::Dataset training, validation;  // batches of texts and labels
  std::vector<std::string> class_names;
};

Texts GenerateTexts(const Flags& flags) {
  const examples::Sentences all = examples::MakeSentences(flags.num_sentences, /*seed=*/1);
  const int64_t n = all.texts.shape().dim(0), training = n - n / 5;
  const auto part = [&](int64_t begin, int64_t end) {
    return data::Dataset::FromTensorSlices({all.texts.Slice(begin, end), all.labels.Slice(begin, end)});
  };
  return {part(0, training).Shuffle(training, 1).Batch(flags.batch_size),
          part(training, n).Batch(flags.batch_size),
          {"negative", "positive"}};
}

// Reviews from the web have tags of HTML, which would become words.
data::Dataset WithoutTags(const data::Dataset& texts) {
  return texts.Map([](Graph&, const std::vector<Output>& element) {
    return std::vector<Output>{ops::RegexReplace(element[0], "<[a-z]+ */?>", " "), element[1]};
  });
}

Texts ReadTexts(const Flags& flags) {
  const auto read = [&](data::Subset subset) {
    return data::TextDatasetFromDirectory(
        flags.data_dir, {.batch_size = flags.batch_size, .seed = 1, .validation_split = 0.2, .subset = subset});
  };
  const data::TextFolder training = read(data::Subset::kTraining), validation = read(data::Subset::kValidation);
  std::printf("%zu classes, %zu texts to train and %zu to validate\n", training.class_names.size(),
              training.file_paths.size(), validation.file_paths.size());
  return {WithoutTags(training.dataset), WithoutTags(validation.dataset), training.class_names};
}

// The vocabulary is that of the texts to train with. A text becomes the mean of the vectors of its words.
keras::Sequential Network(const Flags& flags, const Texts& texts) {
  keras::TextVectorizationOptions options = {.max_tokens = flags.max_tokens,
                                             .output_sequence_length = flags.sequence_length};
  options.vocabulary = keras::LearnText(texts.training, options).vocabulary;
  const keras::LayerRef vectorize = keras::TextVectorization(options);
  const auto classes = static_cast<int64_t>(texts.class_names.size());
  return keras::Sequential(
      {keras::Input(Shape{}, {.dtype = DType::kString}), vectorize,
       keras::Embedding(keras::VocabularySize(vectorize), 16, {.mask_zero = true}), keras::Dropout(0.2),
       keras::GlobalAveragePooling1D(), keras::Dropout(0.2), keras::Dense(classes, {.activation = "softmax"})},
      {.seed = 1});
}

// Trains a model, saves it, and returns its accuracy on the other texts. Returns nothing, and saves nothing, if the
// program was told to stop.
std::optional<double> Train(const Flags& flags, const Texts& texts) {
  keras::Sequential model = Network(flags, texts);
  model.Compile({.optimizer = keras::Adam({.learning_rate = 0.01}),
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"}});
  const keras::History history = model.Fit(texts.training.Prefetch(2),
                                           {.epochs = flags.epochs, .verbose = 2, .validation_data = texts.validation});
  if (history.interrupted()) return {};
  model.Save(flags.model);
  std::printf("the model is in %s\n", flags.model.c_str());
  return history["val_accuracy"].back();
}

// Prints the class of each sentence. The file has no names of classes, so they are those of the data.
void Predict(const Flags& flags, const std::vector<std::string>& class_names) {
  std::vector<std::string> sentences;
  for (size_t begin = 0; begin <= flags.predict.size();) {
    const size_t end = std::min(flags.predict.find('|', begin), flags.predict.size());
    sentences.push_back(flags.predict.substr(begin, end - begin));
    begin = end + 1;
  }
  keras::Model model = keras::LoadModel(flags.model);
  const Tensor chances = model.Predict(Tensor::Vector(sentences));
  const int64_t classes = chances.shape().dim(1);
  if (classes != static_cast<int64_t>(class_names.size())) {
    throw InvalidArgumentError("[text_classifier] expected a model of the " + std::to_string(class_names.size()) +
                               " classes of the texts; " + flags.model + " has " + std::to_string(classes));
  }
  for (size_t i = 0; i < sentences.size(); ++i) {
    const float* row = chances.data<float>() + static_cast<int64_t>(i) * classes;
    const float* best = std::max_element(row, row + classes);
    std::printf("%s: %s (%.1f %%)\n", sentences[i].c_str(), class_names.at(static_cast<size_t>(best - row)).c_str(),
                100.0 * static_cast<double>(*best));
  }
}

void Run(const Flags& flags) {
  const bool generated = flags.data_dir.empty();
  if (generated && !flags.no_train) std::printf("training on generated sentences: no --data_dir is given\n");
  const Texts texts = generated ? GenerateTexts(flags) : ReadTexts(flags);
  std::optional<double> accuracy;
  if (!flags.no_train) {
    accuracy = Train(flags, texts);
    if (!accuracy.has_value()) return;
  }
  if (!flags.predict.empty()) Predict(flags, texts.class_names);
  if (!accuracy.has_value()) return;
  std::printf("validation accuracy: %.4f%s\n", *accuracy, generated ? " (of generated sentences)" : "");
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  examples::CommandLine line("Trains a network that tells classes of texts apart.");
  line.Add("--data_dir", &flags.data_dir,
           "Folder with a folder of .txt files for each class. Default: sentences are generated");
  line.Add("--num_sentences", &flags.num_sentences, "How many sentences to generate", examples::AtLeast(10));
  line.Add("--batch_size", &flags.batch_size, "Texts in one step", examples::AtLeast(1));
  line.Add("--epochs", &flags.epochs, "Passes over the texts", examples::AtLeast(1));
  line.Add("--max_tokens", &flags.max_tokens, "The most words of the vocabulary", examples::AtLeast(3));
  line.Add("--sequence_length", &flags.sequence_length, "The most words of a text", examples::AtLeast(1));
  line.Add("--model", &flags.model, "File of the model");
  line.Add("--predict", &flags.predict, "Print the classes of these sentences, with a | between two of them");
  line.AddSwitch("--no_train", &flags.no_train, "Take the model that --model has already");
  return examples::Main(argc, argv, line, [&] {
    Run(flags);
    return 0;
  });
}
