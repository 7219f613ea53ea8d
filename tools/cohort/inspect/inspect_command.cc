#include <CLI/CLI.hpp>
#include <string>

#include "tools/cohort/command.h"
#include "tools/cohort/inspect/inspect.h"

namespace cohort::tools {

int InspectCommand(const Arguments& arguments) {
  CLI::App app("Lists the contents of a checkpoint, a SavedModel, an event file or a TFRecord file.", "cohort inspect");
  app.set_help_flag("-h,--help", "Print this text");
  std::string path;
  InspectOptions options;
  app.add_option("PATH", path,
                 "A checkpoint's prefix or one of its files, an event file, a TFRecord file, the folder of a "
                 "SavedModel, or another folder. Of another folder, its newest complete checkpoint and its event files "
                 "are listed")
      ->required();
  app.add_flag("--values", options.values,
               "Print the values of tensors, the buckets of histograms and the features of examples");
  app.add_flag("--verify", options.verify, "Read every tensor and check its checksum");
  app.add_option("--max_values", options.max_values,
                 "With --values: print at most N values of each tensor, and N examples (8)")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->type_name("N");
  if (const auto done = ParseFlags(&app, arguments.flags)) return *done;
  return Inspect(path, options);
}

}  // namespace cohort::tools
