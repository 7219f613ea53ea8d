// A program that is linked with libcohort.so: what it uses crosses the border of the library. Prints what it saw; the
// test compares that.
#include <cohort/cohort.h>

#include <functional>
#include <iostream>
#include <typeinfo>
#include <vector>

using namespace cohort;

namespace {

// A graph, its gradients and twenty steps; true if the loss fell.
bool GraphLearns() {
  Graph g;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1}, "x");
  const ops::Variable w(g, Tensor::Scalar(0.0f), {.name = "w"});
  const Output loss = ops::Mean(ops::Square(x * w - x * 3.0f));
  Node* train = train::GradientDescentOptimizer(0.1).Minimize(loss);
  Session session(g);
  session.Run(ops::GlobalVariablesInitializer(g));
  const FeedList feeds = {{x, Tensor::Vector<float>({1, 2})}};
  const float before = session.Run(feeds, {loss})[0].scalar<float>();
  for (int step = 0; step < 20; ++step) session.Run(feeds, {}, {train});
  return session.Run(feeds, {loss})[0].scalar<float>() < 0.01f * before;
}

// A Keras model that learns y = -x by a loss, a metric and an optimizer that are given by name.
bool ModelLearns() {
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 64.0f;
  const Tensor x = Tensor::FromValues(values, Shape{64, 1});
  for (float& value : values) value = -value;
  const Tensor y = Tensor::FromValues(values, Shape{64, 1});
  keras::Sequential model({keras::Dense(1)});
  model.Compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}});
  const keras::History history = model.Fit(x, y, {.batch_size = 16, .epochs = 3, .verbose = 0});
  return history["loss"].back() < history["loss"].front() && history.Has("mae");
}

// Memory of this program, read by a kernel of the library and given back to this program.
bool LendsMemory() {
  std::vector<float> memory = {1, 2, 3};
  int returned = 0;
  {
    Graph g;
    const Output x = ops::Placeholder(g, DType::kFloat32, Shape{3}, "x");
    Session session(g);
    const FeedList feeds = {{x, Tensor::FromBlob(memory.data(), DType::kFloat32, Shape{3}, [&] { ++returned; })}};
    if (session.Run(feeds, {ops::Sum(x)})[0].scalar<float>() != 6.0f) return false;
  }
  return returned == 1;
}

// How an error that the library throws is caught here.
const char* Caught(const std::function<void()>& call) {
  try {
    call();
  } catch (const InvalidArgumentError&) {
    return "InvalidArgumentError";
  } catch (const CodedError<Code::kNotFound>&) {
    return "CodedError<kNotFound>";
  } catch (const Error&) {
    return "Error";
  } catch (...) {
    return "something unknown";
  }
  return "nothing";
}

}  // namespace

int main() {
  std::cout << "graph " << GraphLearns() << ", model " << ModelLearns() << ", memory " << LendsMemory() << "\n";
  std::cout << Caught([] { Tensor::Scalar(1.0f).Reshaped(Shape{2}); }) << "\n"
            << Caught([] { Graph().FindOutput("missing:0"); }) << "\n";
}
