// A peer: measures a step through TensorFlow's C API (TF_SessionRun), without Python, on graphs of small ops. The graph
// is that of tf_session_run.py: a chain on x [rows, 8] f32 of Mul by -1 and AddV2 of (i % 7) by turns. Every run feeds
// a new tensor. The result, which is exact in f32, is checked after every run. build_capi.sh compiles it.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "samples.h"
#include "tensorflow/c/c_api.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<int> ops = {1, 10, 100, 1000};
  int rows = 1;
  double seconds = 1.0;
  int rounds = 5;
  std::string settings;  // ",name,name,"; empty: all
};

// A session setting is a serialized tensorflow.ConfigProto: field 2 intra_op_parallelism_threads, field 5
// inter_op_parallelism_threads, field 9 use_per_session_threads, field 16.3 experimental.executor_type.
struct Setting {
  const char* name;
  std::string config;
};

std::vector<Setting> Settings() {
  const std::string one_thread("\x10\x01\x28\x01\x48\x01", 6);
  // inter_op = -1 runs every op on the thread that calls TF_SessionRun, unless the session has its own threads.
  const std::string caller("\x10\x01\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13);
  const std::string executor = "SINGLE_THREADED_EXECUTOR";
  const std::string single = one_thread + "\x82\x01" + static_cast<char>(executor.size() + 2) + "\x1a" +
                             static_cast<char>(executor.size()) + executor;
  return {{"default", ""}, {"threads_1", one_thread}, {"caller_thread", caller}, {"single_threaded_executor", single}};
}

class Status {
 public:
  ~Status() { TF_DeleteStatus(status_); }
  operator TF_Status*() { return status_; }
  void Check(const std::string& what) {
    if (TF_GetCode(status_) != TF_OK) throw std::runtime_error(what + ": " + TF_Message(status_));
  }

 private:
  TF_Status* status_ = TF_NewStatus();
};

TF_Tensor* NewTensor(const std::vector<int64_t>& dims, const float* values) {
  size_t bytes = sizeof(float);
  for (int64_t d : dims) bytes *= static_cast<size_t>(d);
  TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, dims.data(), static_cast<int>(dims.size()), bytes);
  std::memcpy(TF_TensorData(tensor), values, bytes);
  return tensor;
}

class Chain {
 public:
  Chain(int ops, int rows, const Setting& setting) : rows_(rows), graph_(TF_NewGraph()) {
    Build(ops);
    Status status;
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetConfig(options, setting.config.data(), setting.config.size(), status);
    status.Check("TF_SetConfig");
    session_ = TF_NewSession(graph_, options, status);
    TF_DeleteSessionOptions(options);
    status.Check("TF_NewSession");
  }

  ~Chain() {
    Status status;
    TF_CloseSession(session_, status);
    TF_DeleteSession(session_, status);
    TF_DeleteGraph(graph_);
  }

  // Runs one step: makes a new feed tensor, runs the session, and copies the result to `out`.
  void Run(const std::vector<float>& x, std::vector<float>* out) {
    TF_Tensor* input = NewTensor({rows_, 8}, x.data());
    TF_Tensor* output = nullptr;
    TF_SessionRun(session_, nullptr, &x_, &input, 1, &y_, &output, 1, nullptr, 0, nullptr, status_);
    TF_DeleteTensor(input);
    status_.Check("TF_SessionRun");
    std::memcpy(out->data(), TF_TensorData(output), std::min(TF_TensorByteSize(output), out->size() * sizeof(float)));
    TF_DeleteTensor(output);
  }

  float Expected(float x) const { return sign_ * x + offset_; }

 private:
  void Build(int ops) {
    TF_OperationDescription* desc = TF_NewOperation(graph_, "Placeholder", "x");
    const int64_t dims[] = {rows_, 8};
    TF_SetAttrType(desc, "dtype", TF_FLOAT);
    TF_SetAttrShape(desc, "shape", dims, 2);
    x_ = y_ = Finish(desc);
    for (int i = 0; i < ops; ++i) {
      const bool multiply = i % 2 == 0;
      const float constant = multiply ? -1.0f : static_cast<float>(i % 7);
      desc = TF_NewOperation(graph_, multiply ? "Mul" : "AddV2", ("op" + std::to_string(i)).c_str());
      TF_AddInput(desc, y_);
      TF_AddInput(desc, Constant("c" + std::to_string(i), constant));
      y_ = Finish(desc);
      sign_ *= multiply ? -1.0f : 1.0f;
      offset_ = multiply ? -offset_ : offset_ + constant;
    }
  }

  TF_Output Constant(const std::string& name, float value) {
    TF_OperationDescription* desc = TF_NewOperation(graph_, "Const", name.c_str());
    TF_Tensor* tensor = NewTensor({}, &value);
    Status status;
    TF_SetAttrType(desc, "dtype", TF_FLOAT);
    TF_SetAttrTensor(desc, "value", tensor, status);
    TF_DeleteTensor(tensor);
    status.Check(name);
    return Finish(desc);
  }

  static TF_Output Finish(TF_OperationDescription* desc) {
    Status status;
    TF_Operation* operation = TF_FinishOperation(desc, status);
    status.Check("TF_FinishOperation");
    return {operation, 0};
  }

  int rows_;
  TF_Graph* graph_;
  TF_Session* session_ = nullptr;
  TF_Output x_{}, y_{};
  float sign_ = 1.0f, offset_ = 0.0f;
  Status status_;
};

void Measure(int ops, const Setting& setting, const Options& options) {
  Chain chain(ops, options.rows, setting);
  std::vector<float> x(static_cast<size_t>(options.rows) * 8), y(x.size());
  int64_t run = 0;
  auto timed_run = [&] {
    for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(static_cast<int64_t>(k) + run % 64);
    ++run;
    const auto start = Clock::now();
    chain.Run(x, &y);
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    for (size_t k = 0; k < x.size(); ++k) {
      if (y[k] != chain.Expected(x[k])) {
        throw std::runtime_error(std::to_string(ops) + " ops, run " + std::to_string(run) + ": y[" + std::to_string(k) +
                                 "] is " + std::to_string(y[k]) + ", expected " + std::to_string(chain.Expected(x[k])));
      }
    }
    return us;
  };
  for (int i = 0; i < 50; ++i) timed_run();
  std::vector<double> medians, p99s;
  for (int round = 0; round < options.rounds; ++round) {
    std::vector<double> samples;
    const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
    while (Clock::now() < end || samples.size() < 20) samples.push_back(timed_run());
    medians.push_back(Quantile(samples, 0.5));
    p99s.push_back(Quantile(samples, 0.99));
  }
  std::printf(
      "{\"peer\": \"TF_SessionRun\", \"version\": \"%s\", \"setting\": \"%s\", \"ops\": %d, \"rows\": %d, "
      "\"us_per_run_median\": %.2f, \"us_per_run_best\": %.2f, \"p99\": %.2f, \"runs\": %lld}\n",
      TF_Version(), setting.name, ops, options.rows, Quantile(medians, 0.5),
      *std::min_element(medians.begin(), medians.end()), Quantile(p99s, 0.5), static_cast<long long>(run));
  std::fflush(stdout);
}

constexpr char kUsage[] =
    "usage: tf_capi_session_run [--ops=N[,N...]] [--rows=N] [--seconds=S] [--rounds=N] [--settings=NAME[,...]]\n"
    "settings: default, threads_1, caller_thread, single_threaded_executor (default: all)\n"
    "Prints one JSON line for each session setting and size; x is [rows, 8] f32.\n";

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const size_t equals = arg.find('=');
    const std::string key = arg.substr(0, equals);
    if (key == "--help" || key == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (equals == std::string::npos) throw std::invalid_argument("unknown argument or missing value: " + arg);
    std::string value = arg.substr(equals + 1);
    if (key == "--ops") {
      options.ops.clear();
      for (char* at = value.data(); *at != '\0'; at += *at == ',') {
        char* end = at;
        options.ops.push_back(static_cast<int>(std::strtol(at, &end, 10)));
        if (end == at || options.ops.back() < 1) throw std::invalid_argument("--ops wants positive numbers: " + value);
        at = end;
      }
    } else if (key == "--rows") {
      options.rows = std::max(1, std::stoi(value));
    } else if (key == "--seconds") {
      options.seconds = std::stod(value);
    } else if (key == "--settings") {
      options.settings = "," + value + ",";
    } else if (key == "--rounds") {
      options.rounds = std::max(1, std::stoi(value));
    } else {
      throw std::invalid_argument("unknown argument: " + arg);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = Parse(argc, argv);
    setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0);
    for (const Setting& setting : Settings()) {
      if (!options.settings.empty() &&
          options.settings.find("," + std::string(setting.name) + ",") == std::string::npos) {
        continue;
      }
      for (int ops : options.ops) Measure(ops, setting, options);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tf_capi_session_run: %s\n%s", error.what(), kUsage);
    return 1;
  }
}
