"""A picture of TensorBoard with our logs: TensorBoard serves them, and Chromium draws its page without a screen."""

import base64
import fcntl
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

START_S = 60
PAGE_S = 300
ANSWER_S = 60
STOP_S = 30
SETTLED_S = 5  # so long the page has to stay as it is
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


def stop(process):
    """Asks the process to end, and ends it by force if it does not within STOP_S."""
    process.terminate()
    try:
        process.wait(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Browser:
    """Chromium without a screen, with one page. It is told what to do in JSON messages on a pair of pipes."""

    def __init__(self, profile, size):
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        if chromium is None:
            raise RuntimeError("chromium is not installed; on Debian: apt-get install chromium")
        read, self.writing = os.pipe()
        self.reading, write = os.pipe()
        # Chromium reads from 3 and writes to 4.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 16) for end in (read, write)]
        self.process = subprocess.Popen(
            [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=lambda: (os.dup2(ends[0], 3), os.dup2(ends[1], 4)), pass_fds=(3, 4),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (read, write, *ends):
            os.close(end)
        self.sent, self.waiting = 0, b""

    def ask(self, method, session=None, **parameters):
        """The result of a command. Raises RuntimeError after ANSWER_S, or if Chromium refuses or ends."""
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + ANSWER_S
        while True:
            answer, found, rest = self.waiting.partition(b"\0")
            if not found:
                ready = select.select([self.reading], [], [], max(0.0, end - time.monotonic()))[0]
                more = os.read(self.reading, 1 << 20) if ready else b""
                if not more:
                    raise RuntimeError(f"chromium did not answer '{method}' within {ANSWER_S} s")
                self.waiting += more
                continue
            self.waiting = rest
            answer = json.loads(answer)
            if answer.get("id") == self.sent:
                if "error" in answer:
                    raise RuntimeError(f"chromium refused '{method}': {answer['error']}")
                return answer["result"]

    def close(self):
        stop(self.process)
        os.close(self.writing)
        os.close(self.reading)


def shoot(url, path, size):
    """Writes a picture of the page once it has charts and does not change any more."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile, size)
        try:
            target = browser.ask("Target.createTarget", url=url)["targetId"]
            session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            browser.ask("Emulation.setDeviceMetricsOverride", session, width=size[0], height=size[1], deviceScaleFactor=1,
                        mobile=False)
            end, before = time.monotonic() + PAGE_S, None
            while time.monotonic() < end:
                time.sleep(SETTLED_S)
                data = base64.b64decode(browser.ask("Page.captureScreenshot", session, format="png")["data"])
                with open(path, "wb") as file:
                    file.write(data)
                if data == before and has_charts(path):
                    return
                before = data
        finally:
            browser.close()
    raise RuntimeError(f"the page had no finished charts after {PAGE_S} s; see {path}")


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
            shoot(f"http://127.0.0.1:{port}/?tagFilter={SHOWN}&smoothing=0#timeseries", path, size)
        finally:
            stop(process)
    small(path, largest)
