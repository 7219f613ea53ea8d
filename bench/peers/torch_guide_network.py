#!/usr/bin/env python3
"""Peer: a training step (SGD) of the guide network in PyTorch, alone or as DistributedDataParallel over Gloo.

The network is: a 3x3 convolution 1 -> 128, five depthwise-separable convolutions 128-128-256-256-512-512 with three pools,
a dense layer of 512, SELU between them, and softmax cross-entropy over 10 classes. Every step has the same batch. It prints
one JSON object to stdout.

It runs with any Python that has torch: /usr/bin/python3 with Debian's python3-torch, or a wheel.
"""

import argparse
import os
import statistics
import sys
import time

import measure
import processes

SEPARABLES = ((128, 128, True), (128, 256, False), (256, 256, True), (256, 512, False), (512, 512, True))


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batch", type=int, default=256, help="images in one step of this process")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--channels_last", action="store_true", help="use NHWC in memory instead of NCHW")
    p.add_argument("--malloc_tuned", action="store_true", help="keep freed memory (environment of glibc's malloc)")
    p.add_argument("--bfloat16", action="store_true", help="use autocast to bfloat16")
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--world", type=int, default=1, help="number of processes that train together, each with a --rank")
    p.add_argument("--rank", type=int, default=0)
    p.add_argument("--store", metavar="FILE", help="file by which the processes find each other; use a new one each time")
    p.add_argument("--pin", action="store_true", help="run on one core: rank 0 on the first core, rank 1 on the second")
    args = p.parse_args()
    if args.world > 1 and not args.store:
        p.error("--world needs a --store")
    return args


def build(torch):
    class SeparableConv(torch.nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.depthwise = torch.nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False)
            self.pointwise = torch.nn.Conv2d(inputs, outputs, 1)

        def forward(self, x):
            return self.pointwise(self.depthwise(x))

    layers = [torch.nn.Conv2d(1, 128, 3, padding=1), torch.nn.SELU()]
    for inputs, outputs, pooled in SEPARABLES:
        layers += [SeparableConv(inputs, outputs), torch.nn.SELU()]
        layers += [torch.nn.MaxPool2d(2)] if pooled else []
    layers += [torch.nn.Flatten(), torch.nn.Linear(512 * 9, 512), torch.nn.SELU(), torch.nn.Linear(512, 10)]
    return torch.nn.Sequential(*layers)


def main():
    args = parse()
    if args.malloc_tuned:
        processes.keep_freed_memory()
    if args.pin:
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[args.rank]})
    import torch

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    layout = torch.channels_last if args.channels_last else torch.contiguous_format
    model = build(torch).to(memory_format=layout)
    if args.world > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{args.store}", rank=args.rank,
                                             world_size=args.world)
        model = torch.nn.parallel.DistributedDataParallel(model)
    images = torch.rand(args.batch, 1, 28, 28).to(memory_format=layout)
    labels = torch.arange(args.batch) % 10
    loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bfloat16):
            loss = loss_of(model(images).float(), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    memory = measure.PeakMemory()
    losses, times = [], []
    for i in range(args.warmup + args.steps):
        begin = time.perf_counter()
        losses.append(step())
        if i >= args.warmup:
            times.append(time.perf_counter() - begin)
    if not losses[-1] < losses[0]:
        sys.exit(f"the loss went from {losses[0]} to {losses[-1]}")
    seconds = statistics.median(times)
    measure.emit(peer="PyTorch", version=torch.__version__, batch=args.batch, threads=args.threads,
                 channels_last=args.channels_last, malloc_tuned=args.malloc_tuned, bfloat16=args.bfloat16,
                 world=args.world, rank=args.rank, step_ms=round(seconds * 1e3, 2),
                 images_per_s=round(args.world * args.batch / seconds, 1), peak_mib=round(memory.mib(), 1))


if __name__ == "__main__":
    main()
