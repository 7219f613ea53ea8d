#include "cohort/data/readers/text_folder.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/readers/class_folders.h"
#include "cohort/ops/image_files.h"
#include "cohort/ops/strings.h"

namespace cohort::data {
namespace {

void Check(const TextFolderOptions& options) {
  const auto check = [](bool good, const auto&... what) {
    if (!good) throw InvalidArgumentError(StrCat("[data/texts] expected ", what...));
  };
  check(options.batch_size >= 0, "a batch_size of at least 0; got ", options.batch_size);
  check(!options.max_length || *options.max_length >= 0, "a max_length of at least 0; got ",
        options.max_length.value_or(0));
  check(options.num_parallel_calls >= 1, "at least 1 parallel call; got ", options.num_parallel_calls);
}

}  // namespace

TextFolder TextDatasetFromDirectory(const std::string& directory, const TextFolderOptions& options) {
  Check(options);
  const ClassFolders folders = {
      .component = "data/texts",
      .files = ".txt file",
      .is_wanted = [](const std::string&, const std::string& name) { return name.ends_with(".txt"); },
      .label_mode = options.label_mode,
      .class_names = options.class_names,
      .shuffle = options.shuffle,
      .seed = options.seed,
      .validation_split = options.validation_split,
      .subset = options.subset};
  ClassFiles files = ListClassFiles(directory, folders);
  const int classes = static_cast<int>(files.class_names.size());
  Dataset dataset = PathsAndLabels(files, folders)
                        .Map(
                            [&](Graph&, const std::vector<Output>& element) {
                              Output text = ops::ReadFile(element[0]);
                              if (options.max_length) text = ops::Substr(text, int64_t{0}, *options.max_length);
                              std::vector<Output> results = LabelIn(options.label_mode, element[1], classes);
                              results.insert(results.begin(), text);
                              return results;
                            },
                            {.num_parallel_calls = options.num_parallel_calls});
  if (options.batch_size > 0) dataset = dataset.Batch(options.batch_size);
  return {dataset, std::move(files.class_names), std::move(files.paths), std::move(files.labels)};
}

}  // namespace cohort::data
