"""What a page must withstand: payloads that want to be more than text, ids that JavaScript rounds, keys."""
import json
import pathlib
import tempfile

from selenium.webdriver import Keys

from support import PageTest

HOSTILE = [
    "<img src=x onerror=\"window.hacked = 1\">",
    "</script><script>window.hacked = 2</script>",
    "<svg onload='window.hacked = 3'><script>window.hacked = 4</script></svg>",
    "javascript:window.hacked=5",
    "<a href=\"javascript:window.hacked=6\">click</a>",
    "<iframe srcdoc='<script>parent.hacked=7</script>'></iframe>",
    "https://example.com/tracker.png",
    "data:text/html,<script>window.hacked=8</script>",
    "\u202egnirts desrever\u202c \u2066isolated\u2069 \u200b\ufeff",
    "NUL \u0000 and \u0007 and \u001b[31mred",
    "{{constructor.constructor('window.hacked=9')()}} ${window.hacked=10}",
    "<style>*{display:none}</style><base href='https://example.com/'>",
]
KEYS = ["<img src=x onerror=window.hacked=11>", "__proto__", "constructor", "title\u202e", "href", "src", "onclick", "innerHTML", "a.b[0]"]


class Hostile(PageTest):
    """Rows whose payloads are hostile, in every view."""

    @classmethod
    def fill(cls):
        points = [{"id": i + 1, "vector": [1, i], "payload": {"title": text, "body": f"{text} {text}", "list": [text], "deep": {"html": text}}} for i, text in enumerate(HOSTILE)]
        points.append({"id": 100, "vector": [1, 50], "payload": {key: f"value of {key}" for key in KEYS}})
        for name in ("hostile", "<img src=x onerror=window.hacked=12>"):
            path = f"/collections/{name.replace('<', '%3C').replace('>', '%3E').replace(' ', '%20')}"
            cls.server.good("PUT", path, {"vectors": {"size": 2, "distance": "Euclid"}})
            cls.server.good("PUT", f"{path}/points", {"points": points})
        large = {"title": "large", "body": "<b>" + "x" * 10_000_000}
        cls.server.good("PUT", "/collections/hostile/points", {"points": [{"id": 200, "vector": [1, 60], "payload": large}]})

    def check(self):
        self.assertIsNone(self.run_script("return window.hacked ?? null"))
        made = self.run_script("return [...document.querySelectorAll('main img, main svg:not(.chart svg), main script, main iframe, main style, main base, .panel img, .panel a, .panel script')].length")
        self.assertEqual(made, 0)
        links = self.run_script("return [...document.querySelectorAll('a')].map((one) => one.getAttribute('href')).filter((href) => !/^(#|blob:)/.test(href))")
        self.assertEqual(links, [])

    def test_hostile_payloads_are_shown_as_text_in_every_view(self):
        self.go("#/collections")
        self.says("<img src=x onerror=window.hacked=12>", ".grid")
        self.check()
        self.go("#/rows/hostile")
        self.says("<img src=x onerror=", "tbody")
        self.says("⟨U+202E⟩gnirts desrever", "tbody")
        self.check()
        self.shot("hostile")
        for row in (1, 3, 9, 10, 100):
            self.button(str(row), "tbody").click()
            self.says(str(row), ".panel h2")
            self.wait("dl.payload")
            self.check()
        self.says("__proto__", ".panel")
        self.says("value of __proto__", ".panel")
        self.go("#/search/hostile?row=1")
        self.wait(".hit")
        self.says("</script><script>", ".hits")
        self.check()
        self.go("#/map/hostile")
        self.map_ready()
        self.choose("Colour by", "title")
        self.says("<img src=x", ".legend")
        self.one("canvas").send_keys(Keys.ENTER)
        self.wait(".found .hit")
        self.check()
        self.go("#/search/%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D12%3E")
        self.says("<img src=x onerror=window.hacked=12>", "main")
        self.check()

    def test_nul_and_escapes_are_visible(self):
        self.go("#/rows/hostile")
        self.says("NUL ⟨U+0000⟩ and ⟨U+0007⟩ and ⟨U+001B⟩[31mred", "tbody")

    def test_a_payload_of_ten_megabytes_does_not_stall_the_page(self):
        self.go("#/rows/hostile")
        self.wait("tbody tr")
        self.button("200", "tbody").click()
        self.says("Show the first 100,000 of 10,000,003 characters", ".panel")
        self.button("Show the first 100,000 of 10,000,003 characters", ".panel").click()
        self.assertLess(self.run_script("return document.querySelector('.panel').innerText.length"), 300000)
        self.button("Edit", ".panel").click()
        self.says("too large to edit here")
        self.check()
        self.go("#/search/hostile?row=200")
        self.wait(".hit")

    def test_an_edit_keeps_what_nobody_sees(self):
        self.go("#/rows/hostile")
        self.wait("tbody tr")
        self.button("9", "tbody").click()
        self.button("Edit", ".panel").click()
        text = self.run_script("return document.querySelector('.panel textarea').value")
        self.assertIn("\\u202egnirts", text)
        self.assertNotIn("\u202e", text)
        self.button("Save", ".panel").click()
        self.wait("dl.payload")
        [row] = json.loads(self.server.ask("POST", "/warpwave/collections/hostile/rows", {"ids": ["9"]})[1])["result"]["rows"]
        self.assertEqual(row["payload"]["title"], HOSTILE[8])

    def test_text_cannot_become_code(self):
        """The policy itself: what a defect of the page could try is refused by the browser."""
        self.go()
        self.wait(".collection")
        refused = self.driver.execute_async_script("""
            const done = arguments[0], refused = [];
            document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
            const attempts = [() => { document.body.innerHTML = "<b>x</b>"; }, () => { eval("1"); }, () => { new Image().src = "https://example.com/x.png"; },
                () => { const one = document.createElement("div"); one.setAttribute("style", "color: red"); document.body.append(one); }, () => fetch("https://example.com/").catch(() => {})];
            let thrown = 0;
            for (const attempt of attempts) try { attempt(); } catch { thrown++; }
            setTimeout(() => done([thrown, refused]), 500);""")
        self.assertGreaterEqual(refused[0], 1)
        self.assertEqual(self.text("body > b"), "")
        for directive in ("require-trusted-types-for", "img-src", "style-src-attr", "connect-src"):
            self.assertIn(directive, refused[1])
        self.driver.get_log("browser")  # the complaints were wanted, and so were the requests, which were refused
        self.requests()
        self.asked.clear()


class Ids(PageTest):
    """Ids of 64 bits and UUIDs stay what they are."""
    IDS = [2**53 + 1, 2**63 + 1, 2**64 - 1, "936da01f-9abd-4d9d-80c7-02af85c822a8"]

    @classmethod
    def fill(cls):
        cls.server.good("PUT", "/collections/ids", {"vectors": {"size": 2, "distance": "Dot"}})
        cls.server.good("PUT", "/collections/ids/points", {"points": [{"id": one, "vector": [i, 1], "payload": {"n": i, "big": 2**53 + 1}} for i, one in enumerate(cls.IDS)]})

    def test_ids_are_shown_searched_and_found_on_the_map_to_the_last_digit(self):
        self.go("#/rows/ids")
        for one in self.IDS:
            self.says(str(one), "tbody")
        self.says("9007199254740993", "tbody")
        self.go(f"#/search/ids?row={2**64 - 1}")
        self.wait(".hit")
        found = self.run_script("return [...document.querySelectorAll('.hit')].map((one) => one.dataset.id)")
        self.assertEqual(sorted(found), sorted(str(one) for one in self.IDS if one != 2**64 - 1))
        self.go(f"#/map/ids?row={2**53 + 1}")
        self.says(str(2**53 + 1), ".found")
        self.assertEqual(len(self.all(".found .hit")), 4)


class KeyNeeded(PageTest):
    """A server with a key."""
    complaints_expected = ("401",)

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        path = pathlib.Path(cls.folder.name) / "keys"
        path.write_text("a-secret-key\n", encoding="utf-8")
        cls.options = ("--api-key-file", str(path))
        super().setUpClass()

    def test_a_key_is_asked_for_and_kept_in_memory_only(self):
        self.go()
        self.says("This server needs a key")
        self.shot("key")
        self.one("dialog input").send_keys("wrong", Keys.ENTER)
        self.says("does not accept this key")
        self.wait(lambda: len(self.all("dialog")) == 1)
        self.one("dialog input").send_keys("a-secret-key", Keys.ENTER)
        self.says("There is no collection yet")
        kept = self.run_script("return JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href, document.documentElement.outerHTML])")
        self.assertNotIn("a-secret-key", kept)
        self.assertFalse([url for url in self.requests() if "a-secret-key" in url])
        self.driver.refresh()
        self.says("This server needs a key")
