"""The names of a map's regions, and finding rows on a map."""
from selenium.webdriver import Keys

from support import DATA, ENCODER, PageTest

REGIONS = """
    const [points, texts, done] = arguments;
    import("/ui/labels.js").then(({ regionsOf, nameRegions }) => {
        const xs = points.filter((_, i) => i % 2 === 0), ys = points.filter((_, i) => i % 2), low = (list) => Math.min(...list), size = (list) => Math.max(...list) - low(list);
        const regions = regionsOf(new Float32Array(points), { x: low(xs), y: low(ys), width: size(xs), height: size(ys) });
        done(nameRegions(regions.map((one) => one.points.map((i) => texts[i]))).map((name, i) => [name, Math.round(regions[i].x), Math.round(regions[i].y)]));
    });"""


class Labels(PageTest):
    """The module that names regions, without a map."""

    def test_regions_are_named_by_what_is_frequent_there_and_rare_elsewhere(self):
        points, texts = [], []
        for x, y, word, rows in ((0, 0, "Whale", 60), (100, 0, "ship", 50), (0, 100, "Äpfel", 40), (100, 100, "", 30)):
            for i in range(rows):
                points += [x + i % 8 * 0.5, y + i // 8 * 0.5]
                texts.append(f"the {word} of a day no {i % 2}" if i % 3 else "the day of it")
        self.go()
        self.wait(".view h1")
        named = self.driver.execute_async_script(REGIONS, points, texts)
        self.assertEqual([name for name, _, _ in named], ["whale", "ship", "äpfel", ""])
        for (_, x, y), (left, low) in zip(named, ((0, 0), (100, 0), (0, 100), (100, 100))):
            self.assertLess(abs(x - left) + abs(y - low), 6)
        self.assertEqual(self.driver.execute_async_script(REGIONS, points, texts), named)
        self.assertEqual(self.driver.execute_async_script(REGIONS, [0, 0, 1, 1], ["a", "b"]), [])


class Finding(PageTest):
    store, options = DATA / "base.db", ("--model", str(ENCODER))

    def labels(self):
        return self.run_script("return [...document.querySelectorAll('.labels span')].filter((one) => !one.hidden).map((one) => { const box = one.getBoundingClientRect(); return [one.textContent, box.left, box.top, box.right, box.bottom]; })")

    def test_the_regions_of_the_map_have_labels_that_move_with_it_and_do_not_cover_each_other(self):
        self.go("#/map/glosses")
        self.map_ready()
        self.says("noun", ".legend")
        self.wait(lambda: len(self.labels()) >= 5)
        self.shot("map-labels")
        before = self.labels()
        for i, (_, left, top, right, bottom) in enumerate(before):
            for _, left2, top2, right2, bottom2 in before[:i]:
                self.assertTrue(left >= right2 or left2 >= right or top >= bottom2 or top2 >= bottom, before)
        pages = [self.server.good("POST", "/warpwave/collections/glosses/rows", {"offset": offset, "limit": 1000})["rows"] for offset in (0, 1000, 2000)]
        words = " ".join(str(row["payload"]) for page in pages for row in page).lower()
        for text, *_ in before:
            for word in text.split(", "):
                self.assertIn(word, words)
        self.one("canvas").send_keys(Keys.ARROW_RIGHT)
        text, left, *_ = before[0]
        self.wait(lambda: any(one[0] == text and abs(one[1] - left + 50) <= 1 for one in self.labels()))
        self.one(".map input[type=checkbox]").click()
        self.assertTrue(self.run_script("return document.querySelector('.labels').hidden"))

    def find(self, text):
        box = self.one("input[aria-label='Find on the map']")
        box.clear()
        box.send_keys(text, Keys.ENTER)

    def test_a_row_is_found_by_its_id_and_by_its_words(self):
        self.go("#/map/glosses")
        self.map_ready()
        self.says("noun", ".legend")
        self.find("noun.00001740")
        self.says("Nearest to entity", ".found")
        self.assertEqual(self.one(".found .hit").get_attribute("data-id"), "noun.00001740")
        total = self.server.good("POST", "/warpwave/collections/glosses/rows", {"filter": {"should": [{"key": key, "match": {"substring": "boat"}} for key in ("words", "gloss")]}})["total"]
        self.assertGreater(total, 1)
        self.find("boat")
        self.says(f"{total} rows with “boat”", ".found")
        self.wait(lambda: len(self.all(".found .hit")) == min(total, 30))
        self.assertTrue(all("boat" in one.text.lower() for one in self.all(".found .hit")))
        self.shot("map-found")
        self.find("boat water")  # in no field as it stands, but as words
        self.says("with “boat water”", ".found")
        self.find("qqqzzz")
        self.says("No row on the map has the id or the text “qqqzzz”.", ".found")
