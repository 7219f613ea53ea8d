"""A picture of TensorBoard with our logs: TensorBoard serves them, and Chromium draws its page without a screen."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

START_S = 60
PAGE_S = 300
BUDGETS_MS = (90000, 300000)
SHOWN = "epoch_(loss%7Caccuracy)"  # a regular expression: both on one page


def wait_for_address(log, process):
    """The port that TensorBoard has taken; it prints that when it serves."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        with open(log, encoding="utf-8", errors="replace") as file:
            found = re.search(r"http://[^:/]+:(\d+)/", file.read())
        if found:
            return int(found.group(1))
        time.sleep(0.2)
    with open(log, encoding="utf-8", errors="replace") as file:
        raise RuntimeError(f"tensorboard did not serve within {START_S} s; it printed:\n{file.read()}")


def wait_for_runs(port):
    """Waits until TensorBoard has read the event files."""
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/data/runs", timeout=10) as answer:
            if answer.read().strip() not in (b"[]", b""):
                return
        time.sleep(0.5)
    raise RuntimeError(f"tensorboard found no run within {START_S} s")


def shoot(url, path, size, budget_ms):
    """Writes the page as it is after `budget_ms` of the page's own time, in which its waits for answers do not count."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise RuntimeError("chromium is not installed; on Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run([chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                        "--run-all-compositor-stages-before-draw",
                        f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}", f"--virtual-time-budget={budget_ms}",
                        f"--screenshot={path}", url], check=True, timeout=PAGE_S, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)


def has_charts(path):
    """Whether the cards of the charts are filled: an empty one has two colours."""
    from PIL import Image
    picture = Image.open(path).convert("RGB")
    width, height = picture.size
    middle = picture.crop((int(width * 0.25), int(height * 0.3), int(width * 0.75), int(height * 0.75)))
    return len(middle.getcolors(maxcolors=1 << 24)) > 20


def small(path, largest):
    """Fewer colours until the file is small enough."""
    from PIL import Image
    picture = Image.open(path).convert("RGB")
    for colours in (256, 128, 64, 32):
        picture.quantize(colours).save(path, optimize=True)
        if os.path.getsize(path) <= largest:
            return
    raise RuntimeError(f"{path} has {os.path.getsize(path)} bytes with 32 colours; at most {largest} are wanted")


def picture(logdir, path, size=(1440, 620), largest=200 * 1024):
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        with open(log, "w", encoding="utf-8") as file:
            command = [sys.executable, "-m", "tensorboard.main", "--logdir", logdir, "--host", "127.0.0.1", "--port", "0",
                       "--load_fast", "false"]
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            port = wait_for_address(log, process)
            wait_for_runs(port)
            for budget_ms in BUDGETS_MS:
                shoot(f"http://127.0.0.1:{port}/?tagFilter={SHOWN}&smoothing=0#timeseries", path, size,
                      budget_ms)
                if has_charts(path):
                    break
            else:
                raise RuntimeError(f"TensorBoard drew no charts within {BUDGETS_MS[-1]} ms; see {path}")
        finally:
            process.terminate()
            process.wait(timeout=30)
    small(path, largest)
