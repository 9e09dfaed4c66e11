// The server: requests, latencies and queues over the last minutes, from /metrics; and a console for its APIs.
import { ask, send, text as fetchText } from "/ui/api.js";
import { button, bytes, copy, count, duration, el, field, plural, problem, replace, select, shorten, svg, visible } from "/ui/dom.js";
import { parse, stringify } from "/ui/json.js";

const EVERY_MS = 2000, KEPT = 150; // five minutes

// ---- figures

const samples = [];
let watching = false;

// Reads counters in Prometheus's format by name; those with labels become lists.
function read(text) {
  const figures = { at: performance.now() / 1000, requests: 0, failed: 0, buckets: [], queues: [] };
  for (const line of text.split("\n")) {
    const match = /^warpwave_(\w+?)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) continue;
    const [, name, labels = "", number] = match;
    const value = Number(number);
    if (name === "requests_total") {
      if (labels.includes('path="/metrics"')) continue; // this view's own
      figures.requests += value;
      if (/status="[45]xx"/.test(labels)) figures.failed += value;
    } else if (name === "request_duration_seconds_bucket") {
      figures.buckets.push([Number(/le="(.*)"/.exec(labels)[1].replace("+Inf", "Infinity")), value]);
    } else if (name === "queue_length") {
      const [, kind, queue] = /kind="(.*?)",name="(.*)"/.exec(labels);
      figures.queues.push({ kind, name: queue, value });
    } else if (!labels) {
      figures[name] = value;
    }
  }
  return figures;
}

async function sample() {
  try {
    if (!document.hidden) samples.push(read(await fetchText("/metrics")));
    if (samples.length > KEPT) samples.shift();
    dispatchEvent(new Event("metrics"));
  } catch { /* the frame says that the server does not answer */ }
  setTimeout(sample, EVERY_MS);
}

// Starts collecting figures, whichever view is shown.
export function watch() {
  if (!watching) sample();
  watching = true;
}

// The quantile of request times between two samples, from the histogram's buckets.
function quantile(before, after, share) {
  const added = after.buckets.map(([bound, value], i) => [bound, value - before.buckets[i][1]]);
  const total = added[added.length - 1][1];
  if (total <= 0) return null;
  const found = added.find(([, value]) => value >= share * total);
  return Number.isFinite(found[0]) ? found[0] : added[added.length - 2][0];
}

function series(of) {
  const values = [];
  for (let i = 1; i < samples.length; i++) {
    const before = samples[i - 1], after = samples[i];
    values.push([after.at, after.requests < before.requests ? null : of(before, after, after.at - before.at)]); // fewer: the server was restarted
  }
  return values;
}

const CHARTS = [
  ["Requests per second", (a, b, seconds) => (b.requests - a.requests) / seconds, (v) => v.toFixed(v < 10 ? 1 : 0)],
  ["95% of requests within", (a, b) => quantile(a, b, 0.95), (v) => duration(v)],
  ["Waiting in queues", (a, b) => b.queues.reduce((sum, queue) => sum + queue.value, 0), (v) => count(v)],
  ["Rows read per second", (a, b, seconds) => ((b.rows_read_total ?? 0) - (a.rows_read_total ?? 0)) / seconds, (v) => count(Math.round(v))],
  ["Tokens generated per second", (a, b, seconds) => ((b.generated_tokens_total ?? 0) - (a.generated_tokens_total ?? 0)) / seconds, (v) => v.toFixed(1)],
  ["Failed requests per second", (a, b, seconds) => (b.failed - a.failed) / seconds, (v) => v.toFixed(v < 10 ? 1 : 0)],
];

const WIDTH = 300, HEIGHT = 64;

function chart([title, of, show]) {
  const values = series(of);
  const known = values.filter(([, value]) => value !== null);
  const top = Math.max(1e-9, ...known.map(([, value]) => value));
  const last = known.length ? known[known.length - 1] : null;
  const now = samples.length ? samples[samples.length - 1].at : 0;
  const span = (KEPT * EVERY_MS) / 1000;
  const x = (at) => (WIDTH * (1 - (now - at) / span)).toFixed(1), y = (value) => (HEIGHT - 2 - ((HEIGHT - 6) * value) / top).toFixed(1);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title}, ${last ? show(last[1]) : "nothing"} now, maximum ${known.length ? show(top) : "nothing"}` });
  if (known.length > 1) {
    const points = known.map(([at, value]) => `${x(at)},${y(value)}`);
    picture.append(svg("polygon", { class: "area", points: `${x(known[0][0])},${HEIGHT} ${points.join(" ")} ${x(last[0])},${HEIGHT}` }), svg("polyline", { class: "line", points: points.join(" ") }));
  }
  return el("article", { class: "card chart" }, el("h3", {}, title), el("p", { class: "now" }, last ? show(last[1]) : "–"), picture,
    el("p", { class: "quiet" }, known.length ? `maximum ${show(top)}` : "collecting…"));
}

// ---- the console

const EXAMPLES = (collection) => [
  ["List collections", "GET", "/collections"],
  ["Describe a collection", "GET", `/collections/${collection}`],
  ["Count rows", "POST", `/collections/${collection}/points/count`, { exact: true }],
  ["List rows", "POST", `/collections/${collection}/points/scroll`, { limit: 3, with_payload: true }],
  ["Search in words", "POST", `/collections/${collection}/points/query`, { query: { text: "a fox" }, limit: 3, with_payload: true, with_cost: true }],
  ["Create a collection", "PUT", "/collections/example", { vectors: { size: 4, distance: "Cosine" } }],
  ["Add points", "PUT", "/collections/example/points", { points: [{ id: 1, vector: [0.1, 0.2, 0.3, 0.4], payload: { title: "first" } }] }],
  ["Embed a text", "POST", "/v1/embeddings", { model: "", input: "a fox" }],
  ["Chat", "POST", "/v1/chat/completions", { model: "", messages: [{ role: "user", content: "Name three colours." }], max_tokens: 40 }],
];

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curlLine(method, path, body) {
  const parts = ["curl", "-X", method, quoted(location.origin + path), "-H", '"api-key: $WARPWAVE_KEY"'];
  if (body) parts.push("-H", "'content-type: application/json'", "-d", quoted(body));
  return parts.join(" ");
}

async function routes() {
  const { paths } = await ask("GET", "/openapi.json");
  return Object.entries(paths).flatMap(([path, ways]) => Object.entries(ways).map(([method, way]) => [`${method.toUpperCase()} ${path}`, way.summary]));
}

function consoleCard(all) {
  const collection = encodeURIComponent(all.collections[0]?.name ?? "example");
  const examples = EXAMPLES(collection);
  const named = (kind) => all.models.find((model) => model.kind === kind)?.name ?? "";
  examples[7][3].model = named("encoder");
  examples[8][3].model = named("decoder");
  const method = select(["GET", "POST", "PUT", "PATCH", "DELETE"], "GET", () => update());
  method.setAttribute("aria-label", "Method");
  const known = el("datalist", { id: "routes" });
  const path = el("input", { type: "text", class: "code", value: "/collections", list: "routes", spellcheck: "false", autocomplete: "off", "aria-label": "Path", oninput: () => update() });
  const body = el("textarea", { class: "code", rows: 8, spellcheck: "false", oninput: () => update() });
  const line = el("code", { class: "curl" });
  const output = el("div", { class: "output" });
  const update = () => { line.textContent = visible(shorten(curlLine(method.value, path.value, method.value === "GET" ? "" : body.value.trim()), 4000)); };
  const choose = select([["", "Examples…"], ...examples.map(([title], i) => [String(i), title])], "", (value) => {
    if (value === "") return;
    const [, way, where, content] = examples[Number(value)];
    method.value = way;
    path.value = where;
    body.value = content ? stringify(content, 2) : "";
    choose.value = "";
    update();
  });
  choose.setAttribute("aria-label", "Examples");
  const run = async () => {
    const begun = performance.now();
    replace(output, el("p", { class: "quiet" }, "Waiting…"));
    try {
      if (!path.value.startsWith("/") || path.value.startsWith("//")) throw new Error("a path of this server begins with one slash");
      const answer = await send(method.value, path.value, method.value === "GET" ? undefined : body.value.trim() || undefined);
      const content = await answer.text();
      let shown = content;
      try { shown = stringify(parse(content), 2); } catch { /* shown as it came */ }
      replace(output, el("p", {}, el("span", { class: answer.ok ? "badge good" : "badge bad" }, `${answer.status}`), el("span", { class: "quiet" }, ` ${duration((performance.now() - begun) / 1000)}, ${bytes(content.length)}`)),
        el("pre", { class: "value", tabindex: "0" }, visible(shorten(shown, 60000))));
    } catch (error) {
      replace(output, problem(error));
    }
  };
  routes().then((list) => replace(known, list.map(([name, what]) => el("option", { value: name.split(" ")[1] }, `${name}: ${what}`))), () => {});
  update();
  return el("section", { class: "card console" }, el("div", { class: "console-head" }, el("h2", {}, "Console"), choose),
    el("form", { onsubmit: (event) => { event.preventDefault(); run(); } },
      el("div", { class: "query-line" }, el("div", { class: "path-line" }, method, path, known), el("button", { type: "submit", class: "primary" }, "Send")), field("Body", body),
      el("div", { class: "curl-line" }, line, button("Copy", () => copy(line.textContent, "The command")))), output);
}

export function mount(root, { all }) {
  const charts = el("div", { class: "charts" });
  const queues = el("p", { class: "quiet" });
  const draw = () => {
    replace(charts, CHARTS.map(chart));
    const busy = samples.length ? samples[samples.length - 1].queues.filter((queue) => queue.value > 0) : [];
    queues.textContent = busy.length ? "Waiting: " + busy.map((queue) => `${queue.kind} ${visible(queue.name)} ${count(queue.value)}`).join(", ") : "No request is waiting.";
  };
  const models = all.models.map((model) => `${visible(model.name)} (${model.kind}, ${plural(model.context, "token")})`).join(", ");
  replace(root, el("header", { class: "view-head" }, el("div", {}, el("h1", {}, "Server"),
    el("p", { class: "quiet" }, `Warpwave ${all.version}, up for ${duration(Number(all.uptime_seconds))}. ${all.device}, ${bytes(all.device_memory_free_bytes)} of ${bytes(all.device_memory_bytes)} free.`),
    el("p", { class: "quiet" }, all.models.length ? `Models: ${models}` : "The server has no models."))), charts, queues, consoleCard(all));
  draw();
  watch();
  addEventListener("metrics", draw);
  return () => removeEventListener("metrics", draw);
}
