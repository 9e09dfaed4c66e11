// A console for the server's APIs, which shows each request as a curl command.
import { ask, send } from "/ui/api.js";
import { button, bytes, copy, duration, el, field, problem, replace, select, shorten, visible } from "/ui/dom.js";
import { parse, stringify } from "/ui/json.js";

const EXAMPLES = (collection) => [
  ["List collections", "GET", "/collections"],
  ["Describe a collection", "GET", `/collections/${collection}`],
  ["Count rows", "POST", `/collections/${collection}/points/count`, { exact: true }],
  ["List rows", "POST", `/collections/${collection}/points/scroll`, { limit: 3, with_payload: true }],
  ["Search by a text", "POST", `/collections/${collection}/points/query`, { query: { text: "a fox" }, limit: 3, with_payload: true, with_cost: true }],
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

export function consoleCard(all) {
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
