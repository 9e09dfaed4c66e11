// The server: requests, latencies and queues over the last minutes, durations by route, a copy of the store, and a console for its APIs.
import { backup } from "/ui/api.js";
import { consoleCard } from "/ui/console.js";
import { bytes, button, count, deviceText, duration, el, note, plural, replace, svg, visible } from "/ui/dom.js";
import { EVERY_MS, KEPT, quantile, routeTable, samples, series, watch } from "/ui/figures.js";

const rate = (v) => v.toFixed(v < 10 ? 1 : 0);

const CHARTS = [
  ["Requests per second", (a, b, seconds) => (b.requests - a.requests) / seconds, rate],
  ["95% of requests within", (a, b) => quantile(a, b, 0.95), duration],
  ["Waiting in queues", (a, b) => b.queues.reduce((sum, queue) => sum + queue.value, 0), (v) => count(v)],
  ["Rows read per second", (a, b, seconds) => ((b.rows_read_total ?? 0) - (a.rows_read_total ?? 0)) / seconds, (v) => count(Math.round(v))],
  ["Tokens generated per second", (a, b, seconds) => ((b.generated_tokens_total ?? 0) - (a.generated_tokens_total ?? 0)) / seconds, rate],
  ["Failed requests per second", (a, b, seconds) => (b.failed - a.failed) / seconds, rate],
];

const WIDTH = 300, HEIGHT = 64;

// The least of 1, 2, 5, 10, 20 ... that is not below a value: the end of an axis.
function axisEnd(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * unit).find((end) => end >= value * 0.9999) ?? value;
}

function chart([title, of, show]) {
  const values = series(of);
  const known = values.filter(([, value]) => value !== null);
  const largest = Math.max(0, ...known.map(([, value]) => value));
  const top = largest > 0 ? axisEnd(largest) : 1;
  const last = known.length ? known[known.length - 1] : null;
  const now = samples.length ? samples[samples.length - 1].at : 0;
  const span = (KEPT * EVERY_MS) / 1000;
  const x = (at) => (WIDTH * (1 - (now - at) / span)).toFixed(1), y = (value) => (HEIGHT * (1 - value / top)).toFixed(1);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title}, ${last ? show(last[1]) : "nothing"} now, maximum ${known.length ? show(largest) : "nothing"}` },
    ...[0, 0.5, 1].map((share) => svg("line", { class: "rule", x1: 0, x2: WIDTH, y1: y(share * top), y2: y(share * top) })),
    ...[1, 2, 3, 4].map((part) => svg("line", { class: "rule", x1: (WIDTH * part) / 5, x2: (WIDTH * part) / 5, y1: 0, y2: HEIGHT })));
  if (known.length > 1) {
    const points = known.map(([at, value]) => `${x(at)},${y(value)}`);
    picture.append(svg("polygon", { class: "area", points: `${x(known[0][0])},${HEIGHT} ${points.join(" ")} ${x(last[0])},${HEIGHT}` }), svg("polyline", { class: "line", points: points.join(" ") }));
  }
  return el("article", { class: "card chart" }, el("h3", {}, title), el("p", { class: "now" }, last ? show(last[1]) : "–"),
    el("div", { class: "axes" }, el("div", { class: "axis-y", "aria-hidden": "true" }, el("span", {}, show(top)), el("span", {}, "0")), picture,
      el("div", { class: "axis-x", "aria-hidden": "true" }, el("span", {}, `${span / 60} min ago`), el("span", {}, "now"))),
    el("p", { class: "quiet" }, known.length ? `maximum ${show(largest)}` : "collecting…"));
}

const ROUTES_SHOWN = 15;

function routesCard() {
  const list = routeTable(), bound = (seconds) => (seconds === Infinity ? "over 10 s" : duration(seconds));
  const head = ["Route", "Requests", "Mean", "Half within", "95% within"].map((title) => el("th", { scope: "col" }, title));
  const lines = list.slice(0, ROUTES_SHOWN).map((route) => el("tr", {}, el("th", { scope: "row", class: "code" }, route.name),
    [count(route.count), duration(route.seconds / route.count), bound(route.half), bound(route.most)].map((text) => el("td", { class: "amount" }, text))));
  return [el("h2", {}, "Durations by route"), list.length > 0 && el("p", { class: "quiet" }, "in the last five minutes, those that took the most time together first"),
    list.length ? el("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": "Durations by route" }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, lines)))
      : el("p", { class: "quiet" }, "No request since this page was opened."),
    list.length > ROUTES_SHOWN && el("p", { class: "quiet" }, `and ${plural(list.length - ROUTES_SHOWN, "other route")}`)];
}

// A copy of the store, as a download. A second click stops it.
function backupButton() {
  let running = null;
  const start = button("Download a backup", async () => {
    if (running) return running.abort();
    running = new AbortController();
    start.textContent = "Stop the backup";
    try {
      const size = await backup(running.signal, (done, total) => { start.textContent = total ? `Stop the backup (${Math.floor((100 * done) / total)}%)` : "Stop the backup"; });
      note(`The backup has ${bytes(size)}`);
    } catch (error) {
      note(error.name === "AbortError" ? "The backup was stopped" : error.message, error.name === "AbortError" ? "" : "bad");
    }
    running = null;
    start.textContent = "Download a backup";
  });
  return { node: start, stop: () => running?.abort() };
}

function memoryText({ device, device_id, device_memory_bytes, device_memory_free_bytes }) {
  const free = `${bytes(device_memory_free_bytes)} of ${bytes(device_memory_bytes)} of memory free`;
  return device_id === "cpu" ? `Runs on the CPU (${device}), ${free}.` : `Runs on ${device} (${deviceText(device_id)}), ${free}.`;
}

export function mount(root, { all }) {
  const charts = el("div", { class: "charts" }), routes = el("section", { class: "routes" });
  const queues = el("p", { class: "quiet" });
  const draw = () => {
    replace(charts, CHARTS.map(chart));
    replace(routes, routesCard());
    const busy = samples.length ? samples[samples.length - 1].queues.filter((queue) => queue.value > 0) : [];
    queues.textContent = busy.length ? "Waiting: " + busy.map((queue) => `${queue.kind} ${visible(queue.name)} ${count(queue.value)}`).join(", ") : "No request is waiting.";
  };
  const models = all.models.map((model) => `${visible(model.name)} (${model.kind}, ${plural(model.context, "token")})`).join(", ");
  const saving = backupButton();
  replace(root, el("header", { class: "view-head" }, el("div", {}, el("h1", {}, "Server"),
    el("p", { class: "quiet" }, `Warpwave ${all.version}, up for ${duration(Number(all.uptime_seconds))}. ${memoryText(all)}`),
    el("p", { class: "quiet" }, all.models.length ? `Models: ${models}` : "The server has no models.")), saving.node), charts, queues, routes, consoleCard(all));
  draw();
  watch();
  addEventListener("metrics", draw);
  return () => {
    removeEventListener("metrics", draw);
    saving.stop();
  };
}
