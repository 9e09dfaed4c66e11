"""The server's figures: charts with axes, durations by route, and a backup."""
import re
import subprocess
import time

from support import BUILD, DATA, DOWNLOADS, PageTest


class Figures(PageTest):
    store = DATA / "base.db"

    def routes(self):
        """The table of durations: by route its cells."""
        return {row.find_element("css selector", "th").text: [one.text for one in row.find_elements("css selector", "td")] for row in self.all(".routes tbody tr")}

    def test_durations_are_shown_by_route_and_those_asked_for_first_do_not_break_them(self):
        self.go("#/server")
        self.wait(lambda: len(self.all(".chart .line")) >= 1)
        for _ in range(3):
            self.assertEqual(self.server.ask("GET", "/telemetry")[0], 200)  # a route that the first figures did not have
        self.server.ask("GET", "/no/such/route")
        self.wait(lambda: "GET /telemetry" in self.routes() and "no such route" in self.routes())
        requests, mean, half, most = self.routes()["GET /telemetry"]
        self.assertEqual(requests, "3")
        for text in (mean, half, most):
            self.assertRegex(text, r"^[\d.]+ m?s$")
        self.assertNotIn("GET /metrics", self.routes())
        self.wait(lambda: re.search(r"[\d.]+ m?s", self.all(".chart")[1].text))
        self.shot("server-routes")

    def test_the_charts_have_axes(self):
        self.go("#/server")
        self.wait(lambda: len(self.all(".chart .line")) >= 1)
        for _ in range(12):
            self.server.ask("GET", "/collections")
        self.wait(lambda: self.run_script("return document.querySelector('.chart .axis-y span').textContent") not in ("1.0", "–"))
        for chart in self.all(".chart"):
            self.assertEqual([one.text for one in chart.find_elements("css selector", ".axis-x span")], ["5 min ago", "now"])
        top, zero = [float(one.text) for one in self.all(".chart")[0].find_elements("css selector", ".axis-y span")]
        shown = float(re.search(r"maximum ([\d.]+)", self.all(".chart")[0].text).group(1))
        self.assertEqual(zero, 0)
        self.assertGreaterEqual(top, shown)
        self.assertIn(f"{top:g}".strip("0.")[0], "125")

    # What routeTable() makes of two texts of /metrics, with three requests of a route within 1, 10 and more than 10 seconds.
    READ = """
        const [before, after, done] = arguments;
        import("/ui/figures.js").then(({ read, routeTable }) => done(routeTable([before, after].map(read)).map(({ name, count, half, most }) => [name, count, String(half), String(most)])));"""

    def test_durations_are_differences_of_the_histograms(self):
        def text(one, ten, more, total):
            lines = [f'warpwave_requests_total{{method="GET",path="/a",status="2xx"}} {total}']
            for bound, value in (("1", one), ("10", ten), ("+Inf", more)):
                lines.append(f'warpwave_request_duration_seconds_bucket{{method="GET",path="/a",le="{bound}"}} {value}')
            return "\n".join([*lines, f'warpwave_request_duration_seconds_sum{{method="GET",path="/a"}} {more}', f'warpwave_request_duration_seconds_count{{method="GET",path="/a"}} {more}'])

        self.go()
        self.wait(".view h1")
        read = lambda before, after: self.driver.execute_async_script(self.READ, before, after)  # noqa: E731
        self.assertEqual(read(text(5, 5, 5, 5), text(6, 7, 8, 8)), [["GET /a", 3, "10", "Infinity"]])
        self.assertEqual(read("", text(1, 1, 1, 1)), [["GET /a", 1, "1", "1"]])
        self.assertEqual(read(text(5, 5, 5, 5), text(1, 1, 1, 1)), [])  # the server was restarted

    def test_a_backup_is_downloaded_and_is_a_whole_store(self):
        path = DOWNLOADS / "backup.db"
        path.unlink(missing_ok=True)
        self.go("#/server")
        self.button("Download a backup").click()
        self.says("The backup has", ".notes")
        self.wait(path.exists)
        time.sleep(0.5)
        said = subprocess.run([BUILD / "warpwave", "store", "info", path], check=True, capture_output=True, text=True).stdout
        self.assertIn("3,000" if "3,000" in said else "3000", said)
        subprocess.run([BUILD / "warpwave", "store", "check", path], check=True, capture_output=True)
        self.assertTrue(self.button("Download a backup"))
