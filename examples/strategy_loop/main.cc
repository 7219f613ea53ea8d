// Fits a line to points with its own training loop, under any strategy. Each batch is divided among all replicas. The
// same program runs on one device, on several devices, and on several machines. Only the strategy differs.
#include <iostream>

#include "cohort/cohort.h"
#include "examples/strategy_loop/flags.h"

using namespace cohort;

int main(int argc, char** argv) {
  const auto strategy = examples::StrategyFromFlags(argc, argv);  // for instance distribute::Mirrored()

  Graph graph;
  ops::Variable w, b;
  {
    const auto scope = strategy->Scope(graph);
    w = ops::GetVariable(graph, "w", Shape{2, 1});
    b = ops::GetVariable(graph, "b", Shape{1});
  }
  const data::Dataset points = examples::PointsOnALine(200).Shuffle(200).Batch(32);
  const auto batches = distribute::DistributeDataset(strategy, points);
  const distribute::ReplicaInputs inputs(graph, batches);
  const auto losses = strategy->Run(graph, [&](distribute::ReplicaContext& replica) {
    const Output x = inputs.Of(replica)[0], y = inputs.Of(replica)[1];
    const Output predicted = ops::MatMul(x, replica.Local(w)) + replica.Local(b);
    return replica.MeanOfGlobalBatch(ops::SquaredDifference(predicted, y));
  });
  train::MomentumOptimizer optimizer(0.05, 0.9);
  Node* update = strategy->Minimize(optimizer, losses);
  const Output loss = strategy->Reduce(distribute::Reduction::kSum, losses);

  const auto session = strategy->OpenSession(graph);
  const auto step = inputs.MakeStep(*session, {loss}, {update});
  session->Run(ops::GlobalVariablesInitializer(graph));
  for (int epoch = 0; epoch < 20; ++epoch) {
    const auto iterator = batches.MakeIterator({.epoch = epoch});
    float last = 0;
    for (distribute::PerReplica<std::vector<Tensor>> parts; iterator->Next(&parts);)
      last = step(parts)[loss].scalar<float>();
    if (strategy->is_chief()) std::cout << "epoch " << epoch + 1 << ": loss " << last << "\n";
  }
  if (strategy->is_chief()) examples::PrintLine(*strategy, session->Run({}, {w, b}));
}
