#!/usr/bin/env python3
"""Peer: a training step of guide-004's network in JAX on a GPU, or of a perceptron with layers of 784, 128 and 10.

The step is that of torch_network.py: softmax cross-entropy, gradients, SGD with momentum 0.9, the same batch each time. It is
one jitted function that reuses the memory of its inputs, with images in the order NHWC. Prints one JSON object for each
batch and precision: float32 (no TF32), tf32, bfloat16 (weights float32, computed in bfloat16).
"""

import argparse
import time

import timing

SEPARABLES = ((128, 128, True), (128, 256, False), (256, 256, True), (256, 512, False), (512, 512, True))
PRECISIONS = {"float32": ("float32", "float32"), "tf32": ("float32", "tensorfloat32"), "bfloat16": ("bfloat16", "default")}


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--network", choices=("guide", "perceptron"), default="guide")
    p.add_argument("--batches", type=timing.numbers, default=[64, 256, 2048])
    p.add_argument("--precisions", type=timing.words, default=list(PRECISIONS))
    p.add_argument("--steps", type=int, default=30, help="steps of each of the five samples")
    p.add_argument("--warmup", type=int, default=10)
    p.add_argument("--seconds", type=float, default=150, help="begin no further setting after so many seconds")
    return p.parse_args()


class Network:
    """Weights by name, and the loss that follows from them."""

    def __init__(self, jax, kind):
        self.jax, self.kind = jax, kind

    def shapes(self):
        """Returns the shape and the number of inputs of each weight."""
        if self.kind == "perceptron":
            return {"w0": ((784, 128), 784), "b0": ((128,), 0), "w1": ((128, 10), 128), "b1": ((10,), 0)}
        shapes = {"first": ((3, 3, 1, 128), 9), "first_bias": ((128,), 0)}
        for i, (inputs, outputs, _) in enumerate(SEPARABLES):
            shapes[f"depth{i}"] = ((3, 3, 1, inputs), 9)
            shapes[f"point{i}"] = ((1, 1, inputs, outputs), inputs)
            shapes[f"bias{i}"] = ((outputs,), 0)
        return shapes | {"w0": ((4608, 512), 4608), "b0": ((512,), 0), "w1": ((512, 10), 512), "b1": ((10,), 0)}

    def weights(self):
        numpy, random = self.jax.numpy, self.jax.random
        made, key = {}, random.PRNGKey(1)
        for name, (shape, inputs) in self.shapes().items():
            key, own = random.split(key)
            made[name] = random.normal(own, shape) / inputs**0.5 if inputs else numpy.zeros(shape)
        return made

    def _convolution(self, images, filters, groups=1):
        return self.jax.lax.conv_general_dilated(images, filters, window_strides=(1, 1), padding="SAME",
                                                 dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)

    def _features(self, w, images):
        selu, lax = self.jax.nn.selu, self.jax.lax
        values = selu(self._convolution(images, w["first"]) + w["first_bias"])
        for i, (inputs, _, pooled) in enumerate(SEPARABLES):
            values = self._convolution(values, w[f"depth{i}"], groups=inputs)
            values = selu(self._convolution(values, w[f"point{i}"]) + w[f"bias{i}"])
            if pooled:
                values = lax.reduce_window(values, -float("inf"), lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return values.reshape(values.shape[0], -1)

    def loss(self, weights, inputs, labels, dtype):
        numpy, nn = self.jax.numpy, self.jax.nn
        w = {name: value.astype(dtype) for name, value in weights.items()}
        values, activation = inputs.astype(dtype), nn.relu
        if self.kind == "guide":
            values, activation = self._features(w, values), nn.selu
        logits = activation(values @ w["w0"] + w["b0"]) @ w["w1"] + w["b1"]
        chances = nn.log_softmax(logits.astype(numpy.float32))
        return -numpy.take_along_axis(chances, labels[:, None], axis=1).mean()


def measure(jax, args, setting):
    numpy, tree = jax.numpy, jax.tree_util.tree_map
    network, batch = Network(jax, args.network), setting["batch"]
    dtype, products = PRECISIONS[setting["precision"]]
    shape = (batch, 784) if args.network == "perceptron" else (batch, 28, 28, 1)
    inputs, labels = jax.random.uniform(jax.random.PRNGKey(2), shape), numpy.arange(batch) % 10

    def step(weights, momenta, inputs, labels):
        loss, gradients = jax.value_and_grad(network.loss)(weights, inputs, labels, dtype)
        momenta = tree(lambda m, g: 0.9 * m + g, momenta, gradients)
        return tree(lambda w, m: w - 0.001 * m, weights, momenta), momenta, loss

    with jax.default_matmul_precision(products):
        weights = network.weights()
        momenta = tree(numpy.zeros_like, weights)
        begin = time.perf_counter()
        compiled = jax.jit(step, donate_argnums=(0, 1)).lower(weights, momenta, inputs, labels).compile()
        losses = []

        def run():
            nonlocal weights, momenta
            weights, momenta, loss = compiled(weights, momenta, inputs, labels)
            losses[1 if losses else 0:] = [loss]  # the first and the last

        for _ in range(args.warmup):
            run()
        losses[-1].block_until_ready()
        warmup_s = time.perf_counter() - begin
        times = timing.clock_ms(run, lambda: losses[-1].block_until_ready(), args.steps)
    first, last = float(losses[0]), float(losses[-1])
    if not last < first:
        raise RuntimeError(f"the loss went from {first} to {last}")
    memory = compiled.memory_analysis()
    fields = {}
    if memory is not None:  # what a step needs, inputs included, outputs in the same places
        fields["peak_mib"] = round((memory.temp_size_in_bytes + memory.argument_size_in_bytes) / 2**20, 1)
    timing.emit(**setting, version=jax.__version__, card=jax.devices()[0].device_kind, **timing.summary(times, batch),
                **fields, warmup_s=round(warmup_s, 1), first_loss=round(first, 5), last_loss=round(last, 5))


def main():
    args = parse()
    import jax

    end = time.monotonic() + args.seconds
    for batch in args.batches:
        for precision in args.precisions:
            setting = {"peer": "JAX", "network": args.network, "mode": "jit", "batch": batch, "precision": precision}
            if time.monotonic() > end:
                timing.emit(**setting, error=f"left out: {args.seconds:.0f} s are over")
                continue
            try:
                measure(jax, args, setting)
            except Exception as error:  # one setting that fails does not end the others
                timing.fail(setting, error)


if __name__ == "__main__":
    main()
