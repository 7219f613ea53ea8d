#!/usr/bin/env python3
"""Peer: a training step (SGD) of the guide network in Keras on TensorFlow, as one tf.function.

The network is that of torch_guide_network.py. Every step has the same batch. It prints one JSON object to stdout.
"""

import argparse
import os
import statistics
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import measure  # noqa: E402
import processes  # noqa: E402


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--malloc_tuned", action="store_true", help="keep freed memory (environment of glibc's malloc)")
    p.add_argument("--jit", action="store_true", help="compile the step with XLA")
    p.add_argument("--bfloat16", action="store_true", help="use the mixed_bfloat16 policy")
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--warmup", type=int, default=2)
    return p.parse_args()


def build(keras):
    layers = keras.layers
    stack = [layers.Input((28, 28, 1)), layers.Conv2D(128, 3, padding="same", activation="selu")]
    for filters, pooled in ((128, True), (256, False), (256, True), (512, False), (512, True)):
        # The kernels have true fans. With Keras's own rule for depthwise kernels the signal fades, and the loss does not fall.
        stack.append(layers.SeparableConv2D(filters, 3, padding="same", activation="selu",
                                            depthwise_initializer=keras.initializers.RandomUniform(-0.58, 0.58)))
        stack += [layers.MaxPooling2D()] if pooled else []
    stack += [layers.Flatten(), layers.Dense(512, activation="selu"), layers.Dense(10, dtype="float32")]
    return keras.Sequential(stack)


def main():
    args = parse()
    if args.malloc_tuned:
        processes.keep_freed_memory()
    import keras
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(1)
    if args.bfloat16:
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
    model = build(keras)
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    images = tf.random.uniform((args.batch, 28, 28, 1))
    labels = tf.range(args.batch) % 10

    @tf.function(jit_compile=args.jit)
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    step.get_concrete_function(images, labels)  # traced before the memory of a step is measured
    memory = measure.PeakMemory()
    losses, times = [], []
    for i in range(args.warmup + args.steps):
        begin = time.perf_counter()
        losses.append(float(step(images, labels)))
        if i >= args.warmup:
            times.append(time.perf_counter() - begin)
    if not losses[-1] < losses[0]:
        sys.exit(f"the loss went from {losses[0]} to {losses[-1]}")
    seconds = statistics.median(times)
    measure.emit(peer="TensorFlow", version=tf.__version__, batch=args.batch, threads=args.threads, jit=args.jit,
                 malloc_tuned=args.malloc_tuned, bfloat16=args.bfloat16, step_ms=round(seconds * 1e3, 2),
                 images_per_s=round(args.batch / seconds, 1), peak_mib=round(memory.mib(), 1))


if __name__ == "__main__":
    main()
