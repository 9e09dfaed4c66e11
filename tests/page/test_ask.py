"""Answers: the Markdown of a model, which never becomes HTML, the numbers of its sources, and when an answer is said to be complete."""
from selenium.webdriver import Keys

from support import DATA, DECODER, ENCODER, PageTest

# Answers the next chat with the texts that window.pieces is given; a null ends the answer.
STREAM = """
    const real = window.fetch;
    window.pieces = [];
    let told = () => {};
    window.give = (piece) => { window.pieces.push(piece); told(); };
    window.fetch = (path, options) => {
        if (path !== "/v1/chat/completions") return real(path, options);
        const body = new ReadableStream({ async pull(stream) {
            const stopped = () => options.signal.aborted;
            options.signal.addEventListener("abort", () => told());
            while (!window.pieces.length && !stopped()) await new Promise((done) => { told = done; });
            if (stopped()) return stream.error(new DOMException("stopped", "AbortError"));
            const piece = window.pieces.shift();
            const line = piece === null ? "[DONE]" : JSON.stringify({ choices: [{ delta: { content: piece } }] });
            stream.enqueue(new TextEncoder().encode(`data: ${line}\\n\\n`));
            if (piece === null) stream.close();
        } });
        return Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } }));
    };"""

# Shows a text, and returns the HTML that it became.
SHOW = """
    const [text, sources, done] = arguments;
    import("/ui/markdown.js").then(({ showMarkdown }) => {
        const box = document.createElement("div");
        const cite = (number) => { if (number > sources) return null; const node = document.createElement("button"); node.textContent = number; return node; };
        showMarkdown(box, text, cite);
        done(box.innerHTML);
    });"""


class Markdown(PageTest):
    """The module that shows Markdown, without a model."""

    def show(self, text, sources=0):
        return self.driver.execute_async_script(SHOW, text, sources)

    def setUp(self):
        super().setUp()
        self.go()
        self.wait(".view h1")

    def test_paragraphs_emphasis_and_code(self):
        for text, html in (
                ("one\n\ntwo", "<p>one</p><p>two</p>"),
                ("a *b* **c *d*** _e_ ~~f~~ `g*h*`", "<p>a <em>b</em> <strong>c <em>d</em></strong> <em>e</em> <del>f</del> <code>g*h*</code></p>"),
                ("snake_case_name 2 * 3 * 4", "<p>snake_case_name 2 * 3 * 4</p>"),
                ("a\nb", "<p>a<br>b</p>"),
                (r"\*no\*", "<p>*no*</p>"),
                ("# A\n### B #", "<h3>A</h3><h4>B</h4>"),
                ("```c\nint *a;\n```\nend", '<pre class="value">int *a;</pre><p>end</p>'),
                ("```\nunfinished", '<pre class="value">unfinished</pre>'),
                ("> said\n> he", "<blockquote><p>said<br>he</p></blockquote>"),
                ("---", "<hr>")):
            with self.subTest(text=text):
                self.assertEqual(self.show(text), html)

    def test_lists_and_tables(self):
        self.assertEqual(self.show("- a\n- b\n  - c\n\n- d"), "<ul><li><p>a</p></li><li><p>b</p><ul><li><p>c</p></li></ul></li><li><p>d</p></li></ul>")
        self.assertEqual(self.show("2. a\n3. b\nend"), '<ol start="2"><li><p>a</p></li><li><p>b<br>end</p></li></ol>')
        self.assertEqual(self.show("1. a\n\n2. b\n\nend"), "<ol><li><p>a</p></li><li><p>b</p></li></ol><p>end</p>")
        table = self.show("| a | b |\n|---|:-:|\n| 1 | *2* | 3 |\n\nend")
        self.assertIn("<thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td><em>2</em></td></tr></tbody>", table)

    def test_numbers_of_sources_are_cited_and_others_stay_text(self):
        self.assertEqual(self.show("a [1] b [2, 1] c [3] d [1](x)", 2), "<p>a <button>1</button> b <button>2</button><button>1</button> c [3] d 1 (x)</p>")

    def test_no_html_no_link_and_no_image_comes_out_of_an_answer(self):
        hostile = ("<img src=x onerror=\"window.hacked = 1\"> <script>window.hacked = 2</script>", "[click](javascript:window.hacked=3)", "![a picture](https://example.com/x.png)",
                   "<https://example.com/>", "[a](https://example.com/?q=secret)", "```<b>\n<b>x</b>\n```", "| <b>a</b> |\n|---|\n| <i>b</i> |", "- <svg onload=window.hacked=4>",
                   "**<b>x</b>**", "&lt;b&gt;", "[<b>](<b>)", "\u202egnirts", "> <base href=x>")
        for text in hostile:
            html = self.show(text, 1)
            with self.subTest(text=text):
                self.assertNotRegex(html, r"<(?!/?(p|br|em|strong|del|code|pre|ul|ol|li|blockquote|hr|div|table|thead|tbody|tr|th|td|h3|h4|button)\b)")
                self.assertNotRegex(html, r"<[^>]*\b(href|src|on\w+|style)\s*=")
                self.assertNotIn("\u202e", html)
        self.assertEqual(self.show(hostile[2]), "<p>a picture</p>")
        self.assertEqual(self.show(hostile[4]), "<p>a (https://example.com/?q=secret)</p>")
        self.assertIsNone(self.run_script("return window.hacked ?? null"))

    def test_a_text_that_is_made_to_take_long_does_not(self):
        for text in ("*a " * 20000, "[" * 50000, "> " * 20000, "`" * 50000, "- " * 20000, "**" * 25000, "_a" * 25000, "|" * 30000 + "\n" + "|-" * 20000, "  - a\n" * 8000):
            took = self.driver.execute_async_script("const [text, done] = arguments, begun = performance.now(); import('/ui/markdown.js').then(({ showMarkdown }) => {"
                                                    "showMarkdown(document.createElement('div'), text); done(performance.now() - begun); })", text)
            with self.subTest(text=text[:8]):
                self.assertLess(took, 5000)


class Answers(PageTest):
    """The view, with a stream of the test's own in place of the model's."""
    store, options = DATA / "base.db", ("--model", str(ENCODER), "--model", str(DECODER))

    def ask(self):
        self.go("#/ask/glosses")
        self.wait("textarea")
        self.run_script(STREAM)
        self.one("textarea").send_keys("What is a fish?", Keys.ENTER)
        self.wait(".sources li")

    def give(self, *pieces):
        for piece in pieces:
            self.run_script("window.give(arguments[0])", piece)

    def test_an_answer_is_markdown_cites_its_sources_and_ends_with_its_time(self):
        self.ask()
        self.give("A **fish** lives in water [", "2]:\n\n- it ")
        self.wait(".answer-text li")
        self.assertNotIn("Answered in", self.text(".turn"))
        self.assertEqual(self.text(".answer-text strong"), "fish")
        self.give("swims [1, 9]\n- it has <b>gills</b> [2]", None)
        self.says("Answered in", ".turn")
        self.assertRegex(self.text(".answer-foot"), r"^Answered in [\d.]+ m?s\. It cites \[2\]\.")
        self.says("<b>gills</b>", ".answer-text")
        self.says("[1, 9]", ".answer-text")  # there are four sources
        self.assertEqual([one.text for one in self.all(".sources li.cited .badge")], ["2"])
        self.shot("ask-markdown")
        title = self.all(".sources li button")[1].text
        self.assertIn(title, self.one(".cite").get_attribute("title"))
        self.one(".cite").click()
        self.wait("dl.payload")
        self.says(title, ".panel")

    def test_an_answer_without_a_source_says_so_and_a_stopped_one_has_no_time(self):
        self.ask()
        self.give("I do not know.", None)
        self.says("It cites no source.", ".turn")
        self.button("New conversation").click()
        self.one("textarea").send_keys("What is a whale?", Keys.ENTER)
        self.give("A whale is")
        self.says("A whale is", ".answer-text")
        self.button("Stop").click()
        self.says("Stopped.", ".turn")
        self.assertNotIn("Answered in", self.text(".turn"))
