#!/usr/bin/env python3
"""What a card can do, measured with PyTorch: the limits against which steps are compared, and cuDNN's depthwise convolutions.

Prints one JSON object for each of: copies of the card's memory; a large product in bfloat16, TF32 and float32; the time of a
launch and of a launch of a graph; copies to and from the host, from pinned and pageable memory; and cuDNN's depthwise 3x3
convolutions of guide-004's network (bfloat16, channels last): forward, input gradient and filter gradient, as parts of the
copy's bandwidth. A depthwise convolution has to read and write each of its two images once; the filters are small.
"""

import argparse

import timing
from torch_network import event_ms

MIB = 2**20
DEPTHWISE = ((28, 128), (14, 128), (14, 256), (7, 256), (7, 512))  # rows and columns, channels


def copies(torch, mib=1024):
    source = torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    times = event_ms(torch, lambda: target.copy_(source), 20)
    fields = timing.summary(times)
    bandwidth = 2 * mib * MIB / (fields["step_ms"] * 1e-3)
    timing.emit(what="copy on the card", mib=mib, gb_per_s=round(bandwidth / 1e9, 1), **fields)
    return bandwidth


def products(torch, size=8192):
    for precision, dtype, tf32 in (("bfloat16", torch.bfloat16, True), ("tf32", torch.float32, True),
                                   ("float32", torch.float32, False)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a = torch.randn(size, size, device="cuda").to(dtype)
        b = torch.randn(size, size, device="cuda").to(dtype)
        fields = timing.summary(event_ms(torch, lambda a=a, b=b: a @ b, 10))
        timing.emit(what="product", size=size, precision=precision,
                    tflop_per_s=round(2 * size**3 / fields["step_ms"] / 1e9, 1), **fields)


def launches(torch, count=1000):
    value = torch.zeros(1, device="cuda")

    def many():
        for _ in range(count):
            value.add_(1)

    many()
    torch.cuda.synchronize()
    times = [t * 1e3 / count for t in event_ms(torch, many, 1)]
    timing.emit(what="launch", us=round(sorted(times)[2], 3))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value.add_(1)
    times = [t * 1e3 for t in event_ms(torch, graph.replay, count)]
    timing.emit(what="launch of a graph with one kernel", us=round(sorted(times)[2], 3))
    with torch.cuda.graph(graph := torch.cuda.CUDAGraph()):
        for _ in range(100):
            value.add_(1)
    times = [t * 1e3 / 100 for t in event_ms(torch, graph.replay, 50)]
    timing.emit(what="a kernel of a graph with 100", us=round(sorted(times)[2], 3))


def host_copies(torch, mib=64):
    card = torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")
    for pinned in (True, False):
        host = torch.empty(mib * MIB, dtype=torch.uint8, pin_memory=pinned)
        for name, copy in (("to the card", lambda h=host: card.copy_(h, non_blocking=True)),
                           ("to the host", lambda h=host: h.copy_(card, non_blocking=True))):
            copy()
            fields = timing.summary(timing.clock_ms(copy, torch.cuda.synchronize, 10))
            timing.emit(what=f"copy {name}", pinned=pinned, mib=mib,
                        gb_per_s=round(mib * MIB / fields["step_ms"] / 1e6, 1), **fields)


def depthwise(torch, batch, bandwidth):
    conv = torch.ops.aten
    for size, channels in DEPTHWISE:
        def image():
            made = torch.randn(batch, channels, size, size, device="cuda", dtype=torch.bfloat16)
            return made.to(memory_format=torch.channels_last)

        images, gradients = image(), image()
        filters = torch.randn(channels, 1, 3, 3, device="cuda", dtype=torch.bfloat16)
        rest = ([1, 1], [1, 1], [1, 1], False, [0, 0], channels)
        parts = {
            "forward": lambda: conv.convolution(images, filters, None, *rest),
            "input gradient": lambda: conv.convolution_backward(gradients, images, filters, None, *rest,
                                                                [True, False, False]),
            "filter gradient": lambda: conv.convolution_backward(gradients, images, filters, None, *rest,
                                                                 [False, True, False])}
        least = 2 * images.numel() * images.element_size() / bandwidth * 1e3
        for part, run in parts.items():
            for _ in range(3):
                run()
            fields = timing.summary(event_ms(torch, run, 10))
            timing.emit(what="depthwise", by="cuDNN", part=part, batch=batch, size=size, channels=channels,
                        of_copy_bandwidth=round(least / fields["step_ms"], 3), **fields)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batch", type=int, default=2048, help="images of a depthwise convolution")
    args = p.parse_args()
    import torch

    torch.backends.cudnn.benchmark = True
    timing.emit(what="card", name=torch.cuda.get_device_name(), version=torch.__version__, cuda=torch.version.cuda,
                cudnn=torch.backends.cudnn.version())
    bandwidth = copies(torch)
    for part in (products, launches, host_copies, lambda t: depthwise(t, args.batch, bandwidth)):
        try:
            part(torch)
        except Exception as error:  # one part that fails does not end the others
            timing.fail({"what": getattr(part, "__name__", "depthwise")}, error)


if __name__ == "__main__":
    main()
