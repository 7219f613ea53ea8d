#!/usr/bin/env python3
"""Peer: a training step of guide-004's network in PyTorch on a GPU, or of a perceptron with layers of 784, 128 and 10.

A step is: forward pass, softmax cross-entropy, gradients, SGD with momentum 0.9. Every step has the same batch. Prints one
JSON object for each setting: a batch, a precision, an order of the image's axes, and a mode:
  eager          calls of kernels
  graph          one CUDA graph of the whole step, optimizer included
  compile        torch.compile of forward and backward pass
  compile_graph  the same with mode="max-autotune", which has CUDA graphs
Precisions: float32 (no TF32 anywhere), tf32 (in all products and convolutions), bfloat16 (autocast).
"""

import argparse
import itertools
import time

import timing

SEPARABLES = ((128, 128, True), (128, 256, False), (256, 256, True), (256, 512, False), (512, 512, True))


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--network", choices=("guide", "perceptron"), default="guide")
    p.add_argument("--batches", type=timing.numbers, default=[64, 256, 2048])
    p.add_argument("--precisions", type=timing.words, default=["float32", "tf32", "bfloat16"])
    p.add_argument("--modes", type=timing.words, default=["eager", "graph", "compile", "compile_graph"])
    p.add_argument("--orders", type=timing.words, default=["channels_last", "channels_first"],
                   help="channels_first runs with eager and graph only")
    p.add_argument("--steps", type=int, default=30, help="steps of each of the five samples")
    p.add_argument("--warmup", type=int, default=10)
    p.add_argument("--seconds", type=float, default=420, help="begin no further setting after so many seconds")
    p.add_argument("--device", default="cuda", help="cpu: only to see that the script runs")
    return p.parse_args()


def separable(nn, inputs, outputs):
    """Returns the layers of a separable convolution: a filter for each channel, then one for all channels."""
    return [nn.Conv2d(inputs, inputs, kernel_size=3, padding="same", groups=inputs, bias=False),
            nn.Conv2d(inputs, outputs, kernel_size=1), nn.SELU()]


def guide_network(torch):
    nn = torch.nn
    layers = [nn.Conv2d(1, 128, kernel_size=3, padding="same"), nn.SELU()]
    for inputs, outputs, pooled in SEPARABLES:
        layers += separable(nn, inputs, outputs)
        if pooled:
            layers.append(nn.MaxPool2d(kernel_size=2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(3 * 3 * 512, 512), nn.SELU(), nn.Linear(512, 10))


def perceptron(torch):
    nn = torch.nn
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


class Training:
    """A model with its batch and its optimizer, in one setting."""

    def __init__(self, torch, args, setting):
        self.torch, self.device = torch, args.device
        bfloat16 = setting["precision"] == "bfloat16"
        tf32 = setting["precision"] != "float32"
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = True  # the peer at its best: it times algorithms during the warm-up
        torch.manual_seed(1)
        batch = setting["batch"]
        if setting["network"] == "guide":
            layout = torch.channels_last if setting["order"] == "channels_last" else torch.contiguous_format
            self.model = guide_network(torch).to(args.device).to(memory_format=layout)
            self.inputs = torch.rand(batch, 1, 28, 28, device=args.device).to(memory_format=layout)
        else:
            self.model = perceptron(torch).to(args.device)
            self.inputs = torch.rand(batch, 784, device=args.device)
        self.labels = torch.arange(batch, device=args.device) % 10
        fused = {"fused": True} if args.device == "cuda" else {}
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001, momentum=0.9, **fused)

        def loss_of(inputs, labels):
            with torch.autocast(args.device, dtype=torch.bfloat16, enabled=bfloat16):
                outputs = self.model(inputs)
            return torch.nn.functional.cross_entropy(outputs.float(), labels)

        self.loss_of = loss_of
        if setting["mode"] == "compile":
            self.loss_of = torch.compile(loss_of)
        elif setting["mode"] == "compile_graph":
            self.loss_of = torch.compile(loss_of, mode="max-autotune")

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss_of(self.inputs, self.labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def captured(self):
        """Returns a function that launches the whole step as one CUDA graph, and the tensor of its loss."""
        cuda = self.torch.cuda
        aside = cuda.Stream()
        aside.wait_stream(cuda.current_stream())
        with cuda.stream(aside):
            for _ in range(5):
                self.step()
        cuda.current_stream().wait_stream(aside)
        graph = cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with cuda.graph(graph):
            loss = self.step()
        return graph.replay, loss


def event_ms(torch, run, steps):
    times = []
    for _ in range(timing.SAMPLES):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(steps):
            run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / steps)
    return times


def measure(torch, args, setting):
    begin = time.perf_counter()
    if args.device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    training = Training(torch, args, setting)
    first = float(training.step())
    if setting["mode"] == "graph":
        run, loss = training.captured()
    else:
        loss = None
        run = training.step
    for _ in range(args.warmup):
        run()
    wait = torch.cuda.synchronize if args.device == "cuda" else lambda: None
    wait()
    warmup_s = time.perf_counter() - begin
    fields = {}
    if args.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        times = event_ms(torch, run, args.steps)
        fields["peak_mib"] = round(torch.cuda.max_memory_allocated() / 2**20, 1)
        fields["card"] = torch.cuda.get_device_name()
    else:
        times = timing.clock_ms(run, wait, args.steps)
    last = float(loss if loss is not None else training.step())
    if not last < first:
        raise RuntimeError(f"the loss went from {first} to {last}")
    timing.emit(**setting, version=torch.__version__, **timing.summary(times, setting["batch"]), **fields,
                warmup_s=round(warmup_s, 1), first_loss=round(first, 5), last_loss=round(last, 5))


def main():
    args = parse()
    import torch

    end = time.monotonic() + args.seconds
    orders = args.orders if args.network == "guide" else ["rows"]
    # The fast modes of all batches come first, because compiling takes most of the time.
    for mode, batch, precision, order in itertools.product(args.modes, args.batches, args.precisions, orders):
        if order == "channels_first" and mode.startswith("compile"):
            continue
        setting = {"peer": "PyTorch", "network": args.network, "mode": mode, "batch": batch, "precision": precision,
                   "order": order}
        if time.monotonic() > end:
            timing.emit(**setting, error=f"left out: {args.seconds:.0f} s are over")
            continue
        try:
            measure(torch, args, setting)
            if mode.startswith("compile"):
                torch.compiler.reset()
        except Exception as error:  # one setting that fails does not end the others
            timing.fail(setting, error)


if __name__ == "__main__":
    main()
