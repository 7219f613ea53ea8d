"""`python tools/pictures ROOT PROGRAMS FOLDER [--keep]`: makes README's pictures in FOLDER out of real runs of the programs
in PROGRAMS: the demo, and a training of examples/fashion_mnist whose event files become curves and a page of TensorBoard. Needs
COHORT_DATA_DIR, the packages of bench/peers/venv.sh and Chromium. With --keep, runs that are there already are not repeated.
Only files below ROOT/build/ are written beside FOLDER."""

import os
import shutil
import socket
import subprocess
import sys

import browser
import cluster
import curves
import terminal

IMAGES, EPOCHS = 3000, 8
TRAINING = f"fashion_mnist --threads=1 --epochs={EPOCHS} --max_images={IMAGES}"
RUN_S = 3600


def demo(root, programs, keep):
    """What the demo prints."""
    kept = os.path.join(root, "build", "pictures", "demo.txt")
    if not (keep and os.path.exists(kept)):
        environment = dict(os.environ, COHORT_BUILD_DIR=os.path.dirname(programs))
        done = subprocess.run(["bash", os.path.join(root, "examples", "demo.sh"), "--fresh"], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=RUN_S)
        if done.returncode != 0:
            raise RuntimeError(f"the demo ended with {done.returncode}:\n{done.stdout[-2000:]}")
        with open(kept, "w", encoding="utf-8") as file:
            file.write(done.stdout)
    with open(kept, encoding="utf-8") as file:
        return file.read()


def training(root, programs, keep):
    """The folder of the event files of TRAINING."""
    logdir = os.path.join(root, "build", "pictures", "logs", "fashion_mnist")
    if not (keep and os.path.isdir(logdir)):
        shutil.rmtree(logdir, ignore_errors=True)
        subprocess.run([os.path.join(programs, "fashion_mnist")] + TRAINING.split()[1:] + ["--verbose=2", f"--logdir={logdir}"],
                       check=True, stdout=subprocess.DEVNULL, timeout=RUN_S)
    return logdir


def check_text(path, root):
    """No picture tells where it was made."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for secret in (root, os.environ["COHORT_DATA_DIR"], os.path.expanduser("~") + "/", socket.gethostname()):
        if len(secret) > 2 and secret in text:
            raise RuntimeError(f"{path} shows '{secret}', which is of this machine")


def main(root, programs, folder, keep):
    os.makedirs(folder, exist_ok=True)
    os.makedirs(os.path.join(root, "build", "pictures"), exist_ok=True)
    if not os.environ.get("COHORT_DATA_DIR"):
        raise RuntimeError("COHORT_DATA_DIR is not set; the pictures show trainings on Fashion-MNIST, not on generated images")
    logdir = training(root, programs, keep)
    about = f"{TRAINING}, on images of Fashion-MNIST"
    for name, made in [("cluster", cluster.picture()), ("curves", curves.picture(logdir, about)),
                       ("demo", terminal.picture("./dev demo", demo(root, programs, keep), root))]:
        path = os.path.join(folder, f"{name}.svg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(made.svg())
        check_text(path, root)
        print(path)
    path = os.path.join(folder, "tensorboard.png")
    browser.picture(os.path.dirname(logdir), path)
    print(path)


if __name__ == "__main__":
    try:
        main(*(os.path.abspath(argument) for argument in sys.argv[1:4]), keep="--keep" in sys.argv[4:])
    except (RuntimeError, KeyError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"pictures: {error}")
