"""A server with data, and Chromium to look at its page."""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from PIL import Image
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

BUILD = pathlib.Path(os.environ["PAGE_BUILD"]).resolve()
DATA = BUILD / "page-test"
DOWNLOADS = DATA / "downloads"
SHOTS = DATA / "screenshots"
MODELS = pathlib.Path(os.environ.get("WARPWAVE_MODELS", BUILD / "models"))
ENCODER = MODELS / "all-MiniLM-L6-v2.q8_0.gguf"
DECODER = MODELS / "SmolLM2-135M-Instruct.Q4_1.gguf"
WAIT_SECONDS = 90  # other programs may use the machine, too


class Server:
    """`warpwave serve` over a copy of a store, or over a new one."""

    def __init__(self, store=None, options=()):
        self.folder = tempfile.TemporaryDirectory(prefix="warpwave-page-")
        self.path = pathlib.Path(self.folder.name)
        if store:
            shutil.copy(store, self.path / "served.db")
        self.options = list(options)
        self.port = 0
        self.start()

    def start(self):
        self.process = subprocess.Popen([BUILD / "warpwave", "serve", self.path / "served.db", "--device", "cpu", "--listen", f"127.0.0.1:{self.port}", *self.options],
                                        stderr=subprocess.PIPE, text=True)
        found, said = None, ""
        while not found:
            line = self.process.stderr.readline()
            if not line:
                raise RuntimeError(f"the server did not start: {said}")
            said += line
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        self.port = int(found.group(1))
        self.url = f"http://127.0.0.1:{self.port}"
        deadline = time.monotonic() + WAIT_SECONDS
        while self.ask("GET", "/readyz")[0] != 200 and time.monotonic() < deadline:
            time.sleep(0.1)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)
        self.process.stderr.close()

    def close(self):
        if self.process.poll() is None:
            self.stop()
        self.folder.cleanup()

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, None if body is None else json.dumps(body), {"content-type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    def good(self, method, path, body=None):
        status, content = self.ask(method, path, body)
        assert status == 200, (path, status, content[:500])
        return json.loads(content)["result"]


def browser(width=1280, height=860, webgl=True, dark=False):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1",
                     "--disable-background-networking", "--disable-component-update", "--no-first-run", f"--window-size={width},{height}"):
        options.add_argument(argument)
    for argument in ("--use-angle=swiftshader", "--enable-unsafe-swiftshader") if webgl else ("--disable-gpu", "--disable-3d-apis"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(DOWNLOADS)})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(WAIT_SECONDS)
    driver.set_script_timeout(WAIT_SECONDS)
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
    if dark:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    return driver


def processor_seconds(roots):
    """What these processes and all their children have used."""
    seconds, parents = {}, {}
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has just ended
        parents[int(entry.parent.name)], seconds[int(entry.parent.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    known = set(roots)
    while more := {pid for pid, parent in parents.items() if parent in known} - known:
        known |= more
    return sum(seconds.get(pid, 0) for pid in known) / os.sysconf("SC_CLK_TCK")


class PageTest(unittest.TestCase):
    """A server and a browser for all tests of a class. A test fails, too, if the page asked another origin for something, or if the browser
    complained: of a refused script, say, or of an error that nobody caught."""
    store, options, size, webgl, dark = None, (), (1280, 860), True, False
    complaints_expected = ()  # texts of complaints that belong to a test

    @classmethod
    def setUpClass(cls):
        cls.server = Server(cls.store, cls.options)
        cls.addClassCleanup(cls.server.close)
        cls.fill()
        cls.driver = browser(*cls.size, webgl=cls.webgl, dark=cls.dark)
        cls.addClassCleanup(cls.driver.quit)

    @classmethod
    def fill(cls):
        """Puts data into the server."""

    def tearDown(self):
        others = [url for url in [*self.asked, *self.requests()] if not url.startswith((self.server.url + "/", "blob:" + self.server.url, "data:", "chrome:", "about:"))]
        self.assertEqual(others, [], "requests to other origins")
        complaints = [entry["message"] for entry in self.driver.get_log("browser")
                      if entry["level"] in ("SEVERE", "WARNING") and not any(text in entry["message"] for text in self.complaints_expected)
                      and "GPU stall" not in entry["message"]]
        self.assertEqual(complaints, [], "complaints of the browser")

    def setUp(self):
        self.asked = []  # addresses that were looked at before the test's end

    def sent(self):
        """The requests of the page since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        found = [message["params"]["request"] for message in messages if message["method"] == "Network.requestWillBeSent"]
        self.asked += [request["url"] for request in found]
        return found

    def requests(self):
        """Their addresses."""
        return [request["url"] for request in self.sent()]

    def processor_seconds(self):
        return processor_seconds([self.driver.service.process.pid, self.server.process.pid])

    # ---- what the tests do with the page

    def go(self, place=""):
        self.driver.get("about:blank")
        self.driver.get(f"{self.server.url}/{place}")

    def run_script(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, what, seconds=WAIT_SECONDS):
        """Waits until `what`, a selector or a function, gives something."""
        test = (lambda _: self.driver.find_elements(By.CSS_SELECTOR, what)) if isinstance(what, str) else (lambda _: what())
        try:
            return WebDriverWait(self.driver, seconds, poll_frequency=0.1, ignored_exceptions=(StaleElementReferenceException,)).until(test)
        except TimeoutException:
            self.driver.save_screenshot(str(SHOTS / f"failed-{self.id()}.png"))
            raise AssertionError(f"waited for {what}; the page says: {self.text()[:3000]}") from None

    def one(self, selector):
        return self.wait(selector)[0]

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector="body"):
        return self.run_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def says(self, text, selector="body"):
        self.wait(lambda: text in self.text(selector))

    def button(self, text, within="body"):
        """The visible button or link with this text."""
        script = """const all = [...document.querySelectorAll(arguments[0])].flatMap((box) => [...box.querySelectorAll("button, a")]);
            return all.find((one) => one.innerText.trim() === arguments[1] && one.checkVisibility()) ?? null"""
        return self.wait(lambda: self.run_script(script, within, text))

    def choose(self, label, value):
        """Chooses an option of the list with this label."""
        script = """const list = [...document.querySelectorAll("select")].find((one) => one.getAttribute("aria-label") === arguments[0] ||
                [...document.querySelectorAll("label")].some((text) => text.innerText === arguments[0] && text.htmlFor === one.id));
            const options = [...(list?.options ?? [])];
            const option = options.find((one) => one.value === arguments[1]) ?? options.find((one) => one.innerText.startsWith(arguments[1]));
            if (!option) return false;
            list.value = option.value;
            list.dispatchEvent(new Event("change"));
            return true;"""
        self.wait(lambda: self.run_script(script, label, value))

    def drawn(self):
        """What is drawn on the canvas: how many pixels, their leftmost and rightmost column, and the one nearest to the middle."""
        return self.driver.execute_async_script("""
            const done = arguments[0], canvas = document.querySelector("canvas"), copy = document.createElement("canvas").getContext("2d");
            let frames = null;
            const look = () => {
                if (canvas.width !== Math.round(canvas.clientWidth * devicePixelRatio)) return requestAnimationFrame(look);
                if (frames === null) {
                    frames = canvas.dataset.frames;
                    canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "+"}));
                    canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "-"}));
                }
                if (canvas.dataset.frames === frames) return requestAnimationFrame(look); // the last frame is still being drawn
                copy.canvas.width = canvas.width; copy.canvas.height = canvas.height;
                copy.drawImage(canvas, 0, 0);
                const { width, height } = canvas, pixels = copy.getImageData(0, 0, width, height).data;
                const found = { count: 0, left: width, right: 0, near: null };
                let best = Infinity;
                for (let i = 3; i < pixels.length; i += 4) {
                    if (!pixels[i]) continue;
                    const x = (i >> 2) % width, y = Math.floor((i >> 2) / width), far = Math.hypot(x - width / 2, y - height / 2);
                    found.count++;
                    found.left = Math.min(found.left, x);
                    found.right = Math.max(found.right, x);
                    if (far < best) { best = far; found.near = [x, y]; }
                }
                done(found);
            };
            look();""")

    def map_ready(self):
        self.wait(lambda: self.run_script("return document.querySelector('canvas')?.dataset.frames > 0"))

    def shot(self, name, colours=12):
        """A screenshot, which must not be empty: no colour covers it all, and there are some."""
        time.sleep(0.3)
        SHOTS.mkdir(parents=True, exist_ok=True)
        path = SHOTS / f"{name}.png"
        self.driver.save_screenshot(str(path))
        with Image.open(path) as image:
            picture = image.convert("RGB")
        counts = picture.getcolors(maxcolors=1 << 24)
        self.assertGreater(len(counts), colours, name)
        self.assertLess(max(n for n, _ in counts), 0.97 * picture.width * picture.height, f"{name} is empty")
        # 256 colours: the most frequent ones as they are, the others by their neighbours.
        palette = Image.new("P", (1, 1))
        frequent = [colour for _, colour in sorted(counts, reverse=True)[:128]]
        others = picture.quantize(128, dither=Image.Dither.NONE).getpalette()
        palette.putpalette(([value for colour in frequent for value in colour] + others)[:768])
        picture.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)
        self.assertLess(path.stat().st_size, 150000, name)
        return path
