"""Ways to search for a text, the titles and scores of what is found, and the table of many collections."""
from selenium.webdriver import Keys

from support import DATA, ENCODER, PageTest


class Ways(PageTest):
    """By meaning, by keywords and by both."""
    store, options = DATA / "base.db", ("--model", str(ENCODER))

    def search(self, text, by):
        self.go("#/search/glosses")
        self.choose("Find by", by)
        self.one("input[type=search]").send_keys(text, Keys.ENTER)
        self.wait(".hit")
        return self.ids()

    def ids(self):
        return self.run_script("return [...document.querySelectorAll('.hit')].map((one) => one.dataset.id)")

    def bars(self):
        """The scores that are shown, and how full their bars are."""
        return self.run_script("return [...document.querySelectorAll('.score')].map((one) => [Number(one.querySelector('output').textContent), parseFloat(one.querySelector('.bar span').style.width)])")

    def found(self, body):
        return [point["id"] for point in self.server.good("POST", "/collections/glosses/points/query", {**body, "limit": 10})["points"]]

    def test_a_text_is_searched_for_by_meaning_by_keywords_and_by_both(self):
        text = "boat on water"
        meaning, keywords = {"query": {"text": text}}, {"query": {"text": text, "model": "bm25"}}
        self.assertEqual(self.search(text, "meaning"), self.found(meaning))
        self.assertIn("exact", self.text("[data-cost]"))
        self.assertEqual(self.search(text, "keywords"), self.found(keywords))
        self.assertIn("by keywords (BM25)", self.text("[data-cost]"))
        self.shot("search-keywords")
        both = {"query": {"fusion": "rrf"}, "prefetch": [{**meaning, "limit": 100}, {**keywords, "limit": 100}]}
        self.assertEqual(self.search(text, "both"), self.found(both))
        self.assertIn("the best 100 by meaning and by keywords", self.text("[data-cost]"))
        self.shot("search-both")

    def test_a_filter_holds_for_each_way(self):
        for by in ("meaning", "keywords", "both"):
            self.search("water", by)
            self.button("+ Add a filter").click()
            self.choose("Field", "kind")
            self.choose("Value", "verb (351)")
            self.wait(lambda: self.ids() and all(one.startswith("verb.") for one in self.ids()))

    def test_the_words_of_a_search_are_marked_where_they_stand(self):
        self.search("Water", "keywords")
        marked = {one.text.lower() for one in self.all(".hit mark")}
        self.assertEqual(marked, {"water"})
        self.assertTrue(all("water" in one.text.lower() for one in self.all(".hit")))
        self.go("#/search/glosses?row=noun.00001740")
        self.wait(".hit")
        self.assertEqual(self.all(".hit mark"), [])

    def test_a_bar_means_the_same_in_every_search(self):
        for text in ("an animal that lives in water", "zzzz qqqq"):
            self.search(text, "meaning")
            for score, width in self.bars():  # a cosine of 1 is a full bar
                self.assertAlmostEqual(width, 100 * max(0, score), delta=0.1)
        self.search("water", "keywords")
        for score, width in self.bars():
            self.assertAlmostEqual(width, 100 * score / (10 + score), delta=0.1)
        self.assertIn("half a bar is a BM25 score of 10", self.one(".score").get_attribute("title"))

    def test_a_field_is_chosen_as_title(self):
        ids = self.search("water", "keywords")
        [row] = self.server.good("POST", "/warpwave/collections/glosses/rows", {"ids": ids[:1]})["rows"]
        self.assertEqual(self.text(".hit .title"), row["payload"]["words"])
        self.assertEqual(row["text"], row["payload"]["gloss"])
        self.choose("Title", "topic")
        self.wait(lambda: self.text(".hit .title") == row["payload"]["topic"])
        self.run_script("location.hash = arguments[0]", "#/map/glosses?row=" + ids[0])
        self.wait(".found .hit")
        self.assertEqual(self.text(".found .hit .title"), row["payload"]["topic"])
        self.run_script("location.hash = '#/search/glosses'")
        self.wait(lambda: self.run_script("return [...document.querySelectorAll('select')].some((one) => one.value === 'topic')"))
        self.choose("Title", "automatic")


class WithoutModel(PageTest):
    """Keywords need no model."""
    store = DATA / "base.db"

    def test_keywords_find_rows_without_a_model(self):
        self.go("#/search/glosses")
        self.one("input[type=search]").send_keys("animal", Keys.ENTER)
        self.wait(".hit")
        self.assertTrue(all("animal" in one.text.lower() for one in self.all(".hit p")))
        self.choose("Find by", "meaning")
        self.says("is not served", ".query-box")


class Many(PageTest):
    """More collections than cards are good for."""

    @classmethod
    def fill(cls):
        for number in range(9):
            cls.add(f"set {number}", number)

    @classmethod
    def add(cls, name, rows):
        path = f"/collections/{name.replace(' ', '%20')}"
        cls.server.good("PUT", path, {"vectors": {"size": 2 + rows % 3, "distance": "Euclid"}})
        points = [{"id": i, "vector": [i] * (2 + rows % 3)} for i in range(rows)]
        if points:
            cls.server.good("PUT", f"{path}/points", {"points": points})

    def names(self):
        return [one.text for one in self.all("tbody th")]

    def test_ten_collections_are_a_table_that_is_sorted_and_filtered(self):
        self.go()
        self.wait(".grid .collection")
        self.assertEqual(len(self.all(".grid .collection")), 9)
        self.assertEqual(self.all("table"), [])
        self.add("set 10", 20)
        self.go()
        self.wait("tbody tr")
        self.assertEqual(self.names(), [f"set {n}" for n in (*range(9), 10)])  # by name, numbers as numbers
        self.shot("collections-table")
        self.button("Rows", "thead").click()
        self.assertEqual(self.names()[:3], ["set 10", "set 8", "set 7"])
        self.assertEqual(self.one("[aria-sort=descending]").text.split()[0], "Rows")
        self.button("Rows ↓", "thead").click()
        self.assertEqual(self.names()[:2], ["set 0", "set 1"])
        self.one("input[aria-label=Filter]").send_keys("set 1")
        self.wait(lambda: self.names() == ["set 1", "set 10"])
        self.says("2 of 10 collections")
        self.one("input[aria-label=Filter]").send_keys("xyz")
        self.says("No collection matches.")
        self.one("input[aria-label=Filter]").clear()
        self.one("input[aria-label=Filter]").send_keys("10")
        self.button("Drop…", "tbody").click()
        self.one("dialog input").send_keys("set 10")
        self.button("Drop", "dialog").click()
        self.wait(".grid .collection")
        self.assertEqual(self.server.ask("GET", "/collections/set%2010")[0], 404)

    def test_memory_on_a_machine_without_a_gpu_is_one_figure(self):
        self.server.good("POST", "/collections/set%208/points/query", {"query": [1, 1, 1, 1], "limit": 1})
        self.go()
        self.wait(".collection")
        self.assertNotIn("on the host", self.text("main"))
        self.assertNotIn("on cpu", self.text("main"))
        self.assertRegex(self.text("main"), r"Memory\s+[\d.]+ [KM]?B\n")
