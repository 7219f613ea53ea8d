// `cohort launch`: declares its flags, checks them, and makes the LaunchOptions. Then it prints the plan (--dry_run),
// or runs a Launcher inside RunWatched.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "tools/cohort/command.h"
#include "tools/cohort/launcher.h"
#include "tools/cohort/process_tree.h"

namespace cohort::tools {
namespace {

constexpr int kMaxTasks = 1000;
constexpr double kMaxSeconds = 1e6;
constexpr double kMaxTimeout = 1e9;

constexpr char kFooter[] =
    "Each task is a process of PROGRAM. Its environment has TF_CONFIG, COHORT_TOKEN, COHORT_TOKEN_FILE,\n"
    "COHORT_HEALTH, COHORT_RESTARTS, OMP_NUM_THREADS and COHORT_LINE_BUFFERED=1. With --tls, it also has "
    "COHORT_TLS_CA,\n"
    "COHORT_TLS_CERTIFICATE and COHORT_TLS_KEY, which name files that the launch removes at its end. If tasks share\n"
    "cores, it also has OMP_WAIT_POLICY=passive and GOMP_SPINCOUNT=1000. If a terminal shows progress bars, it also "
    "has\n"
    "COHORT_PROGRESS=bar.\n\n"
    "The exit code is 0 if all tasks have ended with 0. Otherwise it is that of the first task that failed (128 +\n"
    "signal if a signal ended it). It is 2 for a wrong command line, and 126 or 127 if PROGRAM cannot be run.\n\n"
    "Example: cohort launch --ps=2 --workers=2 -- ./mnist_classifier --max_steps=200\n";

// The flags with their values, as CLI11 fills them in.
struct Flags {
  LaunchOptions options;
  double restart_window = options.restart_window.count();
  double grace = options.grace.count();
  double kill_after = options.kill_after.count();
  double unhealthy_after = options.unhealthy_after.count();
  int threads_per_task = 0;  // 0: not given
  std::optional<double> orphan_timeout;
  std::optional<double> chief_timeout;
  std::string color = "auto";
  bool chief = false;
  bool evaluator = false;
  bool dry_run = false;
};

class HelpWithProgram : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return "Usage: cohort launch [FLAGS] -- PROGRAM [ARGS]\n";
  }
};

// Adds a flag with a number between `low` and `high`. The help text does not show the bounds, to stay short.
template <typename T, typename Bound>
void AddNumber(CLI::App* app, const char* name, T* value, Bound low, Bound high, const char* text) {
  CLI::Validator range = CLI::Range(low, high);
  app->add_option(name, *value, text)->check(range.description(""))->type_name("N");
}

CLI::Validator OneOf(std::vector<std::string> words) {
  CLI::Validator member = CLI::IsMember(std::move(words));
  return member.description("");
}

// Adds a flag for a job with at most one task: --chief, --chief=1, --chief=false.
void AddOptionalTask(CLI::App* app, const char* name, bool* value, const char* text) {
  app->add_flag(name, *value, text)->check(OneOf({"0", "1", "false", "true"}));
}

ColorMode ColorOf(const std::string& word) {
  return word == "auto" ? ColorMode::kAuto : word == "always" ? ColorMode::kAlways : ColorMode::kNever;
}

void Declare(CLI::App* app, Flags* flags) {
  LaunchOptions& options = flags->options;
  app->set_help_flag("-h,--help", "Print this text");
  app->formatter(std::make_shared<HelpWithProgram>());
  app->footer(kFooter);
  app->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  AddNumber(app, "--ps", &options.jobs.ps, 0, kMaxTasks, "Number of parameter servers");
  AddNumber(app, "--workers", &options.jobs.workers, 0, kMaxTasks, "Number of workers");
  AddOptionalTask(app, "--chief", &flags->chief, "Also start a chief");
  AddOptionalTask(app, "--evaluator", &flags->evaluator,
                  "Also start an evaluator, if PROGRAM knows that task type (the examples do not)");
  AddNumber(app, "--restart,--max_restarts", &options.restarts, 0, 1'000'000,
            "Start each failed task again, up to N times (0) within --restart_window");
  AddNumber(app, "--restart_window", &flags->restart_window, 0.0, kMaxSeconds,
            "Forget restarts that are N seconds old (600)");
  AddNumber(app, "--grace", &flags->grace, 0.0, kMaxSeconds,
            "After a failure, give tasks N seconds to end by themselves (10)");
  AddNumber(app, "--kill_after", &flags->kill_after, 0.0, kMaxSeconds,
            "Wait N seconds between SIGTERM and SIGKILL (5)");
  AddNumber(app, "--unhealthy_after", &flags->unhealthy_after, 0.0, kMaxSeconds,
            "Kill a task with a server that is stopped or has not answered for N seconds (30; 0: never)");
  AddNumber(app, "--threads_per_task", &flags->threads_per_task, 1, 65536,
            "Set OMP_NUM_THREADS of every task to N, not to a share of the cores");
  AddNumber(app, "--orphan_timeout", &flags->orphan_timeout, 0.0, kMaxTimeout,
            "End a server if the chief has been gone for N seconds (sets COHORT_ORPHAN_TIMEOUT)");
  AddNumber(app, "--chief_timeout", &flags->chief_timeout, 0.0, kMaxTimeout,
            "End a server if no chief has come for N seconds (sets COHORT_CHIEF_TIMEOUT)");
  app->add_flag("--tls", options.tls,
                "Encrypt all connections: make certificates for this launch, and give each task its own");
  app->add_option("--color", flags->color, "Colour the task names: auto, always or never (auto)")
      ->check(OneOf({"auto", "always", "never"}))
      ->type_name("WHEN");
  app->add_option("--output_dir", options.output_dir, "Also write each task's output there, to worker-0.log, ...")
      ->type_name("DIR");
  app->add_option("--logdir", options.logdir, "Write the addresses into DIR/cluster.json, for 'cohort status --logdir'")
      ->type_name("DIR");
  app->add_flag("--ps_gpus", options.ps_gpus,
                "Let parameter servers use GPUs (without it, they get an empty CUDA_VISIBLE_DEVICES)");
  app->add_flag("--metrics", options.metrics,
                "Give each task a port of 127.0.0.1 for /metrics and /healthz (sets COHORT_METRICS_PORT)");
  app->add_flag("--dry_run", flags->dry_run, "Print each task's TF_CONFIG and start nothing");
}

int PrintPlan(const LaunchOptions& options) {
  const LaunchPlan plan(options);
  for (size_t task = 0; task < plan.tasks().size(); ++task) {
    std::cout << plan.tasks()[task].Name() << " TF_CONFIG=" << plan.TFConfig(task) << "\n";
  }
  return 0;
}

int RunWith(const LaunchOptions& options) {
  std::optional<LaunchCertificates> certificates;
  if (options.tls) certificates.emplace(TasksOf(options.jobs));
  return RunWatched([&](int parent_fd) {
    const LaunchCertificates* const made = certificates ? &*certificates : nullptr;
    const int code = Launcher(options, parent_fd, made).Run();
    if (made != nullptr) made->Remove();  // the parent of this process, which also does it, may have been killed
    return code;
  });
}

LaunchOptions OptionsOf(const Flags& flags, const std::vector<std::string>& command) {
  LaunchOptions options = flags.options;
  options.jobs.chief = flags.chief ? 1 : 0;
  options.jobs.evaluator = flags.evaluator ? 1 : 0;
  options.restart_window = std::chrono::duration<double>(flags.restart_window);
  options.grace = std::chrono::duration<double>(flags.grace);
  options.kill_after = std::chrono::duration<double>(flags.kill_after);
  options.unhealthy_after = std::chrono::duration<double>(flags.unhealthy_after);
  if (flags.threads_per_task > 0) options.threads_per_task = flags.threads_per_task;
  options.orphan_timeout = flags.orphan_timeout;
  options.chief_timeout = flags.chief_timeout;
  options.color = ColorOf(flags.color);
  options.command = command;
  return options;
}

// Returns what is wrong with the combination of flags, or "" if nothing is.
std::string MistakeIn(const LaunchOptions& options, bool dry_run) {
  const size_t tasks = TasksOf(options.jobs).size();
  if (tasks == 0) return "expected at least one task; give --workers=N, --ps=N or --chief";
  if (tasks > kMaxTasks) return StrCat("expected at most ", kMaxTasks, " tasks; got ", tasks);
  if (options.command.empty() && !dry_run) return "expected -- PROGRAM [ARGS] behind the flags";
  return "";
}

}  // namespace

int LaunchCommand(const Arguments& arguments) {
  CLI::App app("Starts the tasks of a cluster on this machine, and ends when they have ended.", "cohort launch");
  Flags flags;
  Declare(&app, &flags);
  if (const auto done = ParseFlags(&app, arguments.flags)) return *done;
  const LaunchOptions options = OptionsOf(flags, arguments.rest);
  const std::string mistake = MistakeIn(options, flags.dry_run);
  if (!mistake.empty()) return UsageError(app.get_name(), mistake);
  try {
    if (flags.dry_run) return PrintPlan(options);
    return RunWith(options);
  } catch (const Error& e) {
    std::cerr << "cohort launch: " << e.what() << "\n";
    return 1;
  }
}

}  // namespace cohort::tools
