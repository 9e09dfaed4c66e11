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

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["PAGE_BUILD"])
DATA = BUILD / "page-test"
MODELS = pathlib.Path(os.environ.get("WARPWAVE_MODELS", BUILD / "models"))
SHOTS = pathlib.Path(os.environ.get("PAGE_SCREENSHOTS", DATA / "screenshots"))
ENCODER = MODELS / "all-MiniLM-L6-v2.q8_0.gguf"
DECODER = MODELS / "SmolLM2-135M-Instruct.Q4_1.gguf"
WAIT_SECONDS = 60  # tests share two cores with others


class Server:
    """`warpwave serve` over a copy of a store, or over a new one."""

    def __init__(self, store=None, options=(), port=0):
        self.folder = tempfile.TemporaryDirectory(prefix="warpwave-page-")
        self.store = pathlib.Path(self.folder.name) / "served.db"
        if store:
            shutil.copy(store, self.store)
        self.options = list(options)
        self.port = port
        self.start()

    def start(self):
        self.process = subprocess.Popen([BUILD / "warpwave", "serve", self.store, "--device", "cpu", "--listen", f"127.0.0.1:{self.port}", *self.options],
                                        stderr=subprocess.PIPE, text=True)
        while True:
            line = self.process.stderr.readline()
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                break
            if not line:
                raise RuntimeError("the server did not start")
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
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1", "--mute-audio",
                     "--disable-background-networking", "--disable-component-update", "--no-first-run", f"--window-size={width},{height}"):
        options.add_argument(argument)
    for argument in ("--use-angle=swiftshader", "--enable-unsafe-swiftshader") if webgl else ("--disable-gpu", "--disable-3d-apis", "--disable-software-rasterizer"):
        options.add_argument(argument)
    if dark:
        options.add_argument("--force-dark-mode")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(DATA / "downloads")})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(WAIT_SECONDS)
    driver.set_script_timeout(WAIT_SECONDS)
    if width < 500:  # a window has a smallest width; the page's own has not
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True})
    return driver


def requests_of(driver):
    """The addresses that the page asked for since the last call."""
    urls = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            urls.append(message["params"]["request"]["url"])
    return urls


class Page:
    """What the tests do with a page."""

    def __init__(self, driver, url):
        self.driver, self.url = driver, url

    def go(self, place=""):
        if self.driver.current_url.split("#")[0].rstrip("/") == self.url:
            self.driver.execute_script("location.hash = ''")
            self.driver.execute_script("location.hash = arguments[0]", place)
        else:
            self.driver.get(f"{self.url}/{place}")

    def wait(self, what, seconds=WAIT_SECONDS):
        """Waits until `what`, a selector or a function of the driver, gives something."""
        test = (lambda driver: driver.find_elements(By.CSS_SELECTOR, what)) if isinstance(what, str) else what
        return WebDriverWait(self.driver, seconds, poll_frequency=0.1, ignored_exceptions=()).until(test, f"waited for {what}; the page says: {self.text()[:2000]}")

    def one(self, selector):
        return self.wait(selector)[0]

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector="body"):
        return self.driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def says(self, text, selector="body", seconds=WAIT_SECONDS):
        self.wait(lambda _: text in self.text(selector), seconds)

    def button(self, text, within="body"):
        """The button or link with this text."""
        def find(driver):
            return driver.execute_script("""
                return [...document.querySelectorAll(arguments[0] + ' button, ' + arguments[0] + ' a')].find((one) => one.innerText.trim() === arguments[1] && one.offsetParent) ?? null""",
                within, text)
        return self.wait(find)

    def shot(self, name):
        """A screenshot that is not empty: at least 8 colours cover it."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        path = SHOTS / f"{name}.png"
        self.driver.save_screenshot(str(path))
        return path
