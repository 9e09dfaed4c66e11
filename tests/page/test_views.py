"""Each view of the page with real data: glosses of WordNet, embedded by MiniLM."""
import json
import re
import shutil
import subprocess
import time

from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

from support import BUILD, DATA, DECODER, DOWNLOADS, ENCODER, PageTest

QUESTION = "an animal that lives in water"


class Views(PageTest):
    store = DATA / "base.db"
    options = ("--model", str(ENCODER), "--model", str(DECODER))

    # ---- collections

    def test_collections_are_listed_made_and_dropped(self):
        self.go()
        self.says("3,000 rows")
        self.says("384 × f32, cosine")
        self.says("all-MiniLM-L6-v2")
        self.says("4.6 MB of vectors")
        self.shot("collections")
        self.button("New collection").click()
        self.one("dialog input").send_keys("notes & more")
        self.button("Create", "dialog").click()
        self.says("notes & more", ".grid")
        self.wait(lambda: not self.all("dialog"))
        self.assertEqual(self.server.good("GET", "/collections/notes%20%26%20more")["points_count"], 0)
        card = next(one for one in self.all(".collection") if "notes & more" in one.text)
        card.find_element("css selector", ".danger").click()
        drop = self.button("Drop", "dialog")
        self.assertFalse(drop.is_enabled())
        self.one("dialog input").send_keys("notes")
        self.assertFalse(drop.is_enabled())
        self.one("dialog input").send_keys(" & more")
        drop.click()
        self.wait(lambda: "notes & more" not in self.text(".grid"))
        self.assertEqual(self.server.ask("GET", "/collections/notes%20%26%20more")[0], 404)

    # ---- search

    def ids(self):
        return self.run_script("return [...document.querySelectorAll('.hit')].map((one) => one.dataset.id)")

    def search(self, text):
        self.go("#/search/glosses")
        box = self.one("input[type=search]")
        box.send_keys(text, Keys.ENTER)
        return self.wait(".hit")

    def test_a_search_in_words_shows_scores_payloads_and_its_cost(self):
        hits = self.search(QUESTION)
        self.assertEqual(len(hits), 10)
        scores = [float(one.text) for one in self.all(".score output")]
        self.assertEqual(scores, sorted(scores, reverse=True))
        cost = self.text("[data-cost]").replace("\n", " ")
        self.assertRegex(cost, r"^[\d,]+ rows screened, [\d,]+ scored.*[\d.]+ [KM]B read.*on the CPU.*[\d.]+ m?s.*exact$")
        self.assertTrue(any(word in self.text(".hits") for word in ("fish", "aquatic", "marine", "sea", "water")), self.text(".hits"))
        self.shot("search")

    def test_a_filter_offers_the_values_that_there_are_with_counts(self):
        self.search(QUESTION)
        self.button("+ Add a filter").click()
        self.choose("Field", "kind")
        self.choose("Value", "verb (351)")
        self.wait(lambda: len(self.all(".hit")) == 10 and all("verb." in one.text for one in self.all(".hit")))
        self.shot("search-filter")
        self.button("×", ".condition").click()
        self.wait(lambda: any("noun." in one.text for one in self.all(".hit")))

    def test_similar_rows_are_found_by_a_row_and_by_a_pasted_vector(self):
        self.search(QUESTION)
        first = self.ids()[0]
        self.button("Similar", ".hit").click()
        self.wait(lambda: self.ids() and first not in self.ids())
        similar = self.ids()
        [row] = self.server.good("POST", "/warpwave/collections/glosses/rows", {"ids": [first], "with_vector": True})["rows"]
        self.one("input[value=vector]").click()
        box = self.one("textarea.big")
        self.run_script("arguments[0].value = arguments[1]", box, " ".join(map(str, row["vector"])))
        self.button("Search", "form").click()
        self.wait(lambda: first in self.ids())
        self.assertEqual(self.ids()[1:], similar[:9])
        self.run_script("arguments[0].value = '[1, 2, 3]'", box)
        self.button("Search", "form").click()
        self.says("the vector has 3 numbers; the collection has 384", ".problem")

    # ---- rows

    def test_rows_have_pages_a_search_and_a_panel(self):
        self.go("#/rows/glosses")
        self.wait("tbody tr")
        self.says("1–50 of 3,000", ".pages")
        first = self.text("tbody th")
        self.shot("rows")
        self.button("Next").click()
        self.says("51–100 of 3,000", ".pages")
        self.assertNotEqual(self.text("tbody th"), first)
        self.button("Last").click()
        self.says("2,951–3,000 of 3,000", ".pages")
        self.one("input[type=search]").send_keys("whale", Keys.ENTER)
        self.wait(lambda: re.search(r"1–(\d+) of \1$", self.text(".pages span")))
        self.assertTrue(all("whale" in one.text.lower() for one in self.all("tbody tr")))
        self.all("tbody button")[0].click()
        self.wait("dl.payload")
        self.assertFalse(self.run_script("return document.querySelector('details').open"))
        self.one("summary").click()
        self.says("384 numbers", ".vector")
        self.one("summary").click()
        self.shot("row")

    def test_a_payload_is_edited_and_a_row_deleted(self):
        self.server.good("PUT", "/collections/edits", {"vectors": {"size": 2, "distance": "Dot"}})
        self.server.good("PUT", "/collections/edits/points", {"points": [
            {"id": 9223372036854775809, "vector": [1, 2], "payload": {"big": 12345678901234567890, "real": 1.0, "note": "old"}}, {"id": 5, "vector": [2, 1]}]})
        self.go("#/rows/edits")
        self.says("9223372036854775809", "tbody")
        self.button("9223372036854775809", "tbody").click()
        self.button("Edit", ".panel").click()
        area = self.one(".panel textarea")
        self.run_script("arguments[0].value = arguments[0].value.replace('old', 'new')", area)
        self.button("Save", ".panel").click()
        self.says("new", "dl.payload")
        raw = self.server.ask("POST", "/warpwave/collections/edits/rows", {"ids": ["9223372036854775809"]})[1].decode()
        self.assertIn('"big":12345678901234567890', raw)
        self.assertIn('"real":1.0', raw)
        self.assertIn('"note":"new"', raw)
        self.button("Edit", ".panel").click()
        self.run_script("arguments[0].value = '{\"a\": }'", self.one(".panel textarea"))
        self.button("Save", ".panel").click()
        self.wait(".panel .problem")
        self.button("Cancel", ".panel").click()
        self.wait(".panel dl.payload")
        self.button("Delete", ".panel").click()
        self.button("Delete", "dialog").click()
        self.wait(lambda: "9223372036854775809" not in self.text("tbody"))
        self.assertEqual(self.server.good("POST", "/collections/edits/points/count", {})["count"], 1)

    def test_rows_are_exported_as_json_lines(self):
        for old in DOWNLOADS.glob("*"):
            old.unlink()
        self.go("#/rows/glosses")
        self.wait("tbody tr")
        self.one("input[type=checkbox]").click()
        self.one("input[type=search]").send_keys("whale", Keys.ENTER)
        self.wait(lambda: re.search(r"1–(\d+) of \1$", self.text(".pages span")))
        count = int(re.search(r"of (\d+)", self.text(".pages span")).group(1))
        self.button("Export JSON lines").click()
        self.wait(lambda: (DOWNLOADS / "glosses.jsonl").exists())
        time.sleep(0.5)
        lines = [json.loads(line) for line in (DOWNLOADS / "glosses.jsonl").read_text(encoding="utf-8").splitlines()]
        self.assertEqual(len(lines), count)
        self.assertTrue(all(len(line["vector"]) == 384 and line["id"] and "words" in line["payload"] for line in lines))

    # ---- map

    def test_the_map_is_coloured_searched_and_cut_out(self):
        self.go("#/map/glosses")
        self.map_ready()
        self.says("noun", ".legend")
        self.says("2,094", ".legend")
        self.choose("Colour by", "topic")
        self.says("artifact", ".legend")
        self.shot("map")
        before = self.drawn()["count"]
        self.assertGreater(before, 3000)
        entries = self.all(".legend-entry")
        for entry in entries[:10]:
            entry.click()
        self.assertLess(self.drawn()["count"], 0.8 * before)
        for entry in entries[:10]:
            entry.click()
        canvas = self.one("canvas")
        canvas.send_keys("0")
        x, y = self.drawn()["near"]
        middle = canvas.size["width"] // 2, canvas.size["height"] // 2
        ActionChains(self.driver, duration=30).move_to_element_with_offset(canvas, x - middle[0], y - middle[1]).click().perform()
        self.wait(".found .hit")
        self.assertEqual(len(self.all(".found .hit")), 11)
        self.assertIn("exact", self.text("[data-cost]"))
        self.shot("map-neighbours")
        self.one("input[value=lasso]").click()
        square = [(160, 0), (0, 160), (-160, 0), (0, -150)]
        actions = ActionChains(self.driver, duration=30).move_to_element_with_offset(canvas, -80, -80).click_and_hold()
        for x, y in square:
            actions.move_by_offset(x, y)
        actions.release().perform()
        self.says("rows selected", ".found")
        self.shot("map-lasso")
        canvas.send_keys(Keys.ESCAPE)
        self.wait(lambda: not self.text(".found"))

    def test_the_map_is_dragged_and_zoomed_with_a_pointer(self):
        self.go("#/map/glosses")
        self.map_ready()
        self.says("noun", ".legend")  # which makes the canvas narrower
        canvas = self.one("canvas")
        before = self.drawn()
        ActionChains(self.driver, duration=30).move_to_element(canvas).click_and_hold().move_by_offset(60, 0).move_by_offset(60, 10).release().perform()
        self.wait(lambda: abs(self.drawn()["left"] - before["left"] - 120) <= 2)
        self.button("Fit").click()
        self.wait(lambda: abs(self.drawn()["left"] - before["left"]) <= 2)
        wheel = ScrollOrigin.from_element(canvas)
        ActionChains(self.driver).scroll_from_origin(wheel, 0, 300).perform()
        self.wait(lambda: self.drawn()["right"] - self.drawn()["left"] < 0.8 * (before["right"] - before["left"]))
        ActionChains(self.driver).scroll_from_origin(wheel, 0, -300).perform()
        self.wait(lambda: abs(self.drawn()["left"] - before["left"]) <= 3)

    def test_a_point_shows_its_row_when_the_pointer_rests_on_it(self):
        self.go("#/map/glosses")
        self.map_ready()
        canvas = self.one("canvas")
        for x in range(-200, 200, 10):
            ActionChains(self.driver, duration=20).move_to_element_with_offset(canvas, x, x // 3).pause(0.25).perform()
            if not self.run_script("return document.querySelector('.tip').hidden"):
                break
        self.assertGreater(len(self.text(".tip")), 10)

    # ---- ask

    def test_a_question_is_answered_with_sources(self):
        self.go("#/ask/glosses")
        self.one("textarea").send_keys("What is a fish?", Keys.ENTER)
        self.wait(".sources li")
        self.wait(lambda: len(self.text(".answer-text")) > 10 and self.button("Ask", "form"))
        self.assertEqual(len(self.all(".sources li")), 4)
        self.shot("ask")
        self.all(".sources li button")[0].click()
        self.wait("dl.payload")

    def test_a_second_question_is_asked_with_the_first(self):
        self.go("#/ask/glosses")
        for question in ("What is a whale?", "Where does it live?"):
            self.one("textarea").send_keys(question, Keys.ENTER)
            self.wait(lambda: len(self.text(".answer-text")) > 10 and self.button("Ask", "form"))  # noqa: B023
        self.assertEqual(len(self.all(".turn")), 2)
        asked = [json.loads(request["postData"])["messages"] for request in self.sent() if request["url"].endswith("/chat/completions")]
        self.assertEqual([message["role"] for message in asked[-1]], ["system", "user", "assistant", "user"])
        self.assertEqual(asked[-1][1]["content"], "What is a whale?")
        self.assertIn("[4] ", asked[-1][3]["content"])
        self.button("New conversation").click()
        self.wait(lambda: not self.all(".turn"))

    def test_an_answer_can_be_stopped(self):
        self.go("#/ask/glosses")
        self.one("textarea").send_keys("Tell a long story about all animals of the sea, with many details, one after the other.", Keys.ENTER)
        self.wait(lambda: len(self.text(".answer-text")) > 20)
        self.button("Stop").click()
        self.says("Stopped.", ".turn")
        length = len(self.text(".answer-text"))
        time.sleep(1.5)
        self.assertEqual(len(self.text(".answer-text")), length)
        self.wait(lambda: b"warpwave_requests_active 0" in self.server.ask("GET", "/metrics")[1])

    # ---- server

    def test_the_server_shows_charts_and_a_console(self):
        self.go("#/server")
        self.wait(".chart")
        for _ in range(30):
            self.server.ask("GET", "/collections")
        self.wait(lambda: len(self.all(".chart .line")) >= 3)
        self.shot("server")
        self.choose("Examples", "Count rows")
        self.assertIn("curl -X POST", self.text(".curl"))
        self.assertIn("points/count", self.text(".curl"))
        self.button("Send").click()
        self.says('"count": ', ".output")
        self.says("200", ".output .badge")
        path = self.one("input[aria-label=Path]")
        path.clear()
        path.send_keys("//example.com/")
        self.button("Send").click()
        self.says("begins with one slash", ".output")


class Filtered(PageTest):
    """Rows that filters of each kind find."""

    @classmethod
    def fill(cls):
        cls.server.good("PUT", "/collections/mixed", {"vectors": {"size": 2, "distance": "Cosine"}})
        points = [{"id": i, "vector": [1, i], "payload": {"n": i, "tag": ("red", "green")[i % 2], "words": f"number {i} of twenty", "even": i % 2 == 0}} for i in range(1, 21)]
        for point in points[:4]:
            del point["payload"]["tag"]
        cls.server.good("PUT", "/collections/mixed/points", {"points": points})

    def total(self):
        found = re.search(r"of ([\d,]+)$", self.text(".pages span"))
        return int(found.group(1)) if found else 0

    def filtered(self, field, condition, count, **texts):
        """Adds a filter, checks how many rows it leaves, and removes it."""
        self.button("+ Add a filter").click()
        self.choose("Field", field)
        self.choose("Condition", condition)
        for label, text in texts.items():
            if label == "Value":
                self.choose(label, text)
            else:
                self.one(f"input[aria-label={label}]").send_keys(text, Keys.TAB)
        self.wait(lambda: self.total() == count)
        self.button("×", ".condition").click()
        self.wait(lambda: self.total() == 20)

    def test_filters_of_each_kind_and_deleting_what_is_ticked(self):
        self.go("#/rows/mixed")
        self.wait("tbody tr")
        self.filtered("n", "between", 5, **{"from": "5", "to": "9"})
        self.filtered("n", "is", 1, Value="7")
        self.filtered("tag", "is", 8, Value="red (8)")
        self.filtered("tag", "not", 12, Value="red (8)")
        self.filtered("tag", "there", 16)
        self.filtered("tag", "missing", 4)
        self.filtered("words", "contains", 11, Text="number 1")
        self.filtered("words", "words", 20, Text="twenty number")
        self.filtered("even", "is", 10, Value="true")
        for box in self.all("tbody input")[:3]:
            box.click()
        self.button("Delete 3…").click()
        self.says("This deletes 3 rows from mixed", "dialog")
        self.button("Delete", "dialog").click()
        self.says("3 rows deleted")
        self.wait(lambda: self.total() == 17)
        self.assertEqual(self.server.good("POST", "/collections/mixed/points/count", {})["count"], 17)


class Growing(PageTest):
    """A map whose rows change."""

    @classmethod
    def fill(cls):
        cls.server.good("PUT", "/collections/plane", {"vectors": {"size": 2, "distance": "Euclid"}})
        cls.put(range(200))

    @classmethod
    def put(cls, ids):
        points = [{"id": i, "vector": [i % 20, i // 20 + i % 3 / 4], "payload": {"side": "ab"[i % 2]}} for i in ids]
        cls.server.good("PUT", "/collections/plane/points?wait=true", {"points": points})

    def test_new_rows_are_placed_and_the_map_is_made_again(self):
        self.go("#/map/plane")
        self.says("200 rows of plane", ".view-head")
        self.server.good("POST", "/collections/plane/points/delete?wait=true", {"points": [17, 18, 120]})
        self.put((230, 231))
        self.go("#/map/plane?row=231")
        self.says("199 rows of plane, 15 neighbours each, 2 placed since it was made", ".view-head")
        for row in (231, 119, 121, 0):  # each is in the middle, where the key Enter finds it
            self.go(f"#/map/plane?row={row}")
            self.wait(".found .hit")
            canvas = self.one("canvas")
            canvas.send_keys(Keys.ESCAPE)
            self.wait(lambda: not self.all(".found .hit"))
            canvas.send_keys(Keys.ENTER)
            self.wait(".found .hit")
            self.assertEqual(self.one(".found .hit").get_attribute("data-id"), str(row))
        self.button("Make the map again").click()
        self.wait(lambda: self.text(".view-head p").endswith("199 rows of plane, 15 neighbours each"))
        self.assertFalse(self.all(".found .hit"))
        self.server.good("POST", "/warpwave/collections/plane/map/remake")  # as another window would
        self.wait(lambda: not self.server.good("GET", "/warpwave/collections/plane/map")["running"])
        self.choose("Colour by", "one colour")
        self.choose("Colour by", "side")
        self.says("100", ".legend")


class Empty(PageTest):
    """A server without collections, and a collection without rows."""

    def test_each_view_says_what_is_missing(self):
        self.go()
        self.says("There is no collection yet")
        self.shot("empty")
        self.go("#/search")
        self.says("There is no collection yet")
        self.server.good("PUT", "/collections/bare", {"vectors": {"size": 2, "distance": "Dot"}})
        for view, text in (("collections", "0 rows"), ("search", "The collection has no rows yet."), ("rows", "The collection has no rows yet."), ("map", "The collection has no rows yet."),
                           ("ask", "The server has no model that generates text."), ("server", "The server has no models.")):
            self.go(f"#/{view}/bare")
            self.says(text, "main")
            self.shot(f"empty-{view}", colours=6)
        self.go("#/map/bare")
        self.says("The collection has no rows yet.")
        self.button("Select visible").click()
        self.one("canvas").send_keys(Keys.ENTER, "+", Keys.ESCAPE)


class Indexed(PageTest):
    """A collection with an index: searches that read some lists only."""
    store, options = DATA / "indexed.db", ("--model", str(ENCODER))

    @classmethod
    def setUpClass(cls):
        if not cls.store.exists():
            made = DATA / "indexing.db"
            shutil.copy(DATA / "base.db", made)
            for action in (("build-ivf", made, "glosses", "--nlist", "32"), ("calibrate", made, "glosses")):
                subprocess.run([BUILD / "warpwave", "store", *action, "--device", "cpu", "--quiet"], check=True, stdout=subprocess.DEVNULL)
            made.rename(cls.store)
        super().setUpClass()

    def cost(self):
        return self.text("[data-cost]").replace("\n", " ")

    def test_a_search_by_lists_says_what_is_proven(self):
        self.go()
        self.wait(lambda: re.search(r"32 lists, the largest [\d.]+ times the mean", self.text(".grid")))
        self.go("#/search/glosses")
        self.one("input[type=search]").send_keys("a small boat", Keys.ENTER)
        self.wait(lambda: re.search(r"^[\d,]+ rows screened.*exact$", self.cost()))
        self.choose("Certainty", "nprobe")
        self.button("Search", "form").click()
        self.wait(lambda: re.search(r"^8 lists.*\d+ of 10 proven$", self.cost()))
        self.shot("search-lists")
        before = self.cost()
        self.choose("Certainty", "recall")
        self.button("Search", "form").click()
        self.wait(lambda: self.cost() != before and re.search(r"^\d+ lists?.*\d+ of 10 proven$|exact$", self.cost()))


class Named(PageTest):
    """A collection whose vectors have names: each has a map."""

    @classmethod
    def fill(cls):
        cls.server.good("PUT", "/collections/pair", {"vectors": {"left & right": {"size": 2, "distance": "Euclid"}, "above": {"size": 3, "distance": "Dot"}}})
        points = [{"id": i, "vector": {"left & right": [i % 20, i // 20], "above": [i % 7, i % 11, 1]}, "payload": {"side": "ab"[i % 2], "words": f"point {i}"}} for i in range(300)]
        for point in points[:100]:
            del point["vector"]["above"]
        cls.server.good("PUT", "/collections/pair/points?wait=true", {"points": points})

    def test_each_vector_has_a_map_with_its_own_neighbours(self):
        for vector, rows in (("left & right", 300), ("above", 200)):
            self.go("#/map/pair")
            self.choose("Vector", vector)
            self.says(f"{rows} rows of pair", ".view-head")
            self.map_ready()
            self.says("a", ".legend")
            self.one("canvas").send_keys(Keys.ENTER)
            self.wait(".found .hit")
            self.assertEqual(len(self.all(".found .hit")), 11)
            ids = self.run_script("return [...document.querySelectorAll('.found .hit')].map((one) => one.dataset.id)")
            near = self.server.good("POST", "/collections/pair/points/query", {"query": int(ids[0]), "using": vector, "limit": 10})["points"]
            self.assertEqual(ids[1:], [str(one["id"]) for one in near])
            self.shot(f"map-{vector.split(' ', maxsplit=1)[0]}")

    def test_a_row_shows_all_its_vectors_and_finds_similar_ones_by_each(self):
        self.go()
        self.says("above: 3 × f32, dot product", ".collection")
        self.shot("collections-named")
        self.go("#/rows/pair")
        self.button("Last").click()
        self.says("251–300 of 300", ".pages")
        self.button("299", "tbody").click()
        self.wait("dl.payload")
        self.one("summary").click()
        self.says("left & right 2 numbers", ".vector")
        self.says("above 3 numbers", ".vector")
        self.go("#/search/pair?row=299")
        self.wait(".hit")
        self.choose("Vector", "left & right")
        self.button("Search", "form").click()
        self.wait(lambda: self.run_script("return [...document.querySelectorAll('.hit')].slice(0, 2).map((one) => one.dataset.id)") == ["279", "298"])
