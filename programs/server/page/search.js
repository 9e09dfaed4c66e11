// Search in words, by a row's vector, or by a pasted vector; shows what each answer cost and which hits are proven.
import { ask, collectionPath, rows } from "/ui/api.js";
import { FilterBuilder } from "/ui/filters.js";
import { button, bytes, count, duration, el, field, plural, problem, replace, select, shorten, visible } from "/ui/dom.js";
import { isNumber, parse } from "/ui/json.js";
import { openPanel } from "/ui/panel.js";
import { idText, rowCard } from "/ui/payload.js";

const PAYLOAD_BYTES = 8192; // of larger payloads only the beginning is shown

// The hits of a query with their rows: {hits: [{id, score, row}], cost, seconds}.
export async function query(collection, { vector, text, model, without, limit, filter, params, using }, signal) {
  const body = { limit: limit + (without === undefined ? 0 : 1), filter, params, with_payload: false, with_cost: true, using };
  body.query = text === undefined ? vector : { text, model };
  const answer = await ask("POST", `${collectionPath(collection)}/points/query`, body, signal);
  let hits = answer.result.points.map((point) => ({ id: idText(point.id), score: Number(point.score) }));
  if (without !== undefined) hits = hits.filter((hit) => hit.id !== without).slice(0, limit);
  const found = (await rows(collection, { ids: hits.map((hit) => hit.id), payload_bytes: PAYLOAD_BYTES }, { signal, using })).rows;
  const byId = new Map(found.map((row) => [row.id, row]));
  for (const hit of hits) hit.row = byId.get(hit.id) ?? { id: hit.id };
  return { hits, cost: answer.cost, seconds: Number(answer.time) };
}

// `using` is the name of the vector; undefined if vectors have no names.
export async function vectorOf(collection, id, using) {
  const [row] = (await rows(collection, { ids: [id], with_payload: false, with_vector: true }, { using })).rows;
  if (!row) throw new Error(using === undefined ? `there is no row ${shorten(id, 60)}` : `no row ${shorten(id, 60)} has a vector "${using}"`);
  return row.vector;
}

export function costLine({ cost, hits, seconds }) {
  const read = cost.rows_screened > 0 ? `${plural(cost.rows_screened, "row")} screened, ${count(cost.rows_scored)} scored` : `${plural(cost.rows_scored, "row")} scored`;
  const certain = cost.exact ? "exact" : `${count(Math.min(cost.proven, hits.length))} of ${count(hits.length)} proven`;
  const shared = cost.queries > 1 ? [`computed with ${plural(cost.queries - 1, "other")}`] : [];
  const lists = cost.lists_read > 0 ? [plural(cost.lists_read, "list")] : [];
  return el("p", { class: "cost", "data-cost": "" },
    [...lists, read, `${bytes(cost.bytes)} read`, cost.device, duration(seconds), ...shared].map((part) => el("span", {}, part)),
    el("span", { class: cost.exact ? "badge good" : "badge" }, certain));
}

function parseVector(text, dim) {
  const trimmed = text.trim();
  const value = parse(trimmed.startsWith("[") ? trimmed : `[${trimmed.split(/[\s,;]+/).join(",")}]`);
  if (!Array.isArray(value) || !value.every(isNumber)) throw new Error("a vector is a list of numbers, [0.1, 2, …]");
  if (dim && value.length !== dim) throw new Error(`the vector has ${count(value.length)} numbers; the collection has ${count(dim)}`);
  return value;
}

// The score as a bar, scaled from the worst to the best score shown, so that differences are visible.
function scoreBar(score, best, worst, distance) {
  const share = best === worst ? 1 : distance ? (worst - score) / (worst - best) : (score - worst) / (best - worst);
  const fill = el("span");
  fill.style.width = `${Math.round(8 + 92 * Math.max(0, Math.min(1, share)))}%`;
  return el("div", { class: "score" }, el("output", {}, score.toFixed(4)), el("div", { class: "bar", "aria-hidden": "true" }, fill));
}

class SearchView {
  constructor(root, collection, info, parameters) {
    Object.assign(this, { root, collection, info });
    this.filters = new FilterBuilder(collection, () => this.results.childNodes.length && this.run());
    this.results = el("section", { class: "results", "aria-label": "Results", "aria-live": "polite" });
    this.k = el("input", { type: "number", min: 1, max: 1000, value: 10 });
    this.using = info.vectors.length ? select(info.vectors.map((part) => [part.name, visible(part.name)]), info.vectors[0].name) : null;
    this.build(parameters);
  }

  dim() { return this.using ? this.info.vectors.find((part) => part.name === this.using.value).dim : this.info.dim; }

  metric() { return this.using ? this.info.vectors.find((part) => part.name === this.using.value).metric : this.info.metric; }

  build(parameters) {
    const words = Boolean(this.info.served_model);
    this.inputs = {
      words: el("input", { type: "search", class: "big", placeholder: "Describe what you are looking for", "aria-label": "Words" }),
      row: el("input", { type: "text", class: "big", placeholder: "The id of a row", "aria-label": "Id of a row" }),
      vector: el("textarea", { class: "big code", rows: 3, placeholder: `[0.12, -0.5, …]  ${count(this.dim())} numbers`, "aria-label": "Vector" }),
    };
    this.box = el("div", { class: "query-box" });
    this.modes = el("div", { class: "segments", role: "radiogroup", "aria-label": "Search by" },
      [["words", "Words"], ["row", "Row"], ["vector", "Vector"]].map(([mode, text]) =>
        el("label", {}, el("input", { type: "radio", name: "mode", value: mode, onchange: () => this.show(mode) }), el("span", {}, text))));
    const form = el("form", { class: "search", onsubmit: (event) => { event.preventDefault(); this.run(); } },
      el("div", { class: "query-line" }, this.box, el("button", { type: "submit", class: "primary" }, "Search")),
      el("div", { class: "options" }, this.modes, field("Results", this.k, { class: "field beside" }), this.exactness(), this.using && field("Vector", this.using, { class: "field beside" })),
      this.filters.node);
    replace(this.root, el("header", { class: "view-head" }, el("div", {}, el("h1", {}, "Search"), el("p", { class: "quiet" }, `${plural(this.info.rows, "row")} in `, el("bdi", {}, visible(this.collection))))), form, this.results);
    if (Number(this.info.rows) === 0) replace(this.results, el("p", { class: "empty" }, "The collection has no rows yet."));
    const row = parameters.get("row");
    this.show(row !== null ? "row" : words ? "words" : "row");
    if (row !== null) {
      this.inputs.row.value = row;
      this.run();
    } else {
      this.inputs[this.mode].focus();
    }
  }

  // Without an index there is nothing to choose.
  exactness() {
    const index = this.info.index;
    if (!index) return el("span", { class: "quiet hint", title: "An index (IVF) lets a search read fewer rows" }, "Exact (there is no index)");
    const number = el("input", { type: "number", "aria-label": "Value", hidden: true });
    const way = select([["exact", "exact"], ["nprobe", "lists to read"], ...(index.calibrated ? [["recall", "recall"]] : [])], "exact", (value) => {
      number.hidden = value === "exact";
      Object.assign(number, value === "recall" ? { min: 0.5, max: 1, step: 0.01, value: 0.95 } : { min: 1, max: Number(index.lists), step: 1, value: 8 });
    });
    this.params = () => (way.value === "exact" ? { exact: true } : { [way.value]: Number(number.value) });
    return el("span", { class: "field beside" }, field("Certainty", way, { class: "field beside" }), number);
  }

  show(mode) {
    this.mode = mode;
    this.modes.querySelector(`input[value=${mode}]`).checked = true;
    replace(this.box, this.inputs[mode]);
    if (mode === "words" && !this.info.served_model) {
      const why = this.info.model ? `The model ${visible(this.info.model)} made the vectors, but it is not served: start the server with --model.` : "No model is known for this collection: search by a row or a vector.";
      replace(this.box, el("p", { class: "quiet missing" }, why));
    }
  }

  async request() {
    const limit = Math.max(1, Number(this.k.value) || 10);
    const asked = { limit, filter: this.filters.filter(), params: this.params?.(), using: this.using?.value };
    if (this.mode === "words") {
      const text = this.inputs.words.value.trim();
      return text && this.info.served_model ? { ...asked, text, model: this.info.served_model } : null;
    }
    if (this.mode === "row") {
      const id = this.inputs.row.value.trim();
      if (!id) return null;
      return { ...asked, vector: await vectorOf(this.collection, id, this.using?.value), without: id };
    }
    return this.inputs.vector.value.trim() ? { ...asked, vector: parseVector(this.inputs.vector.value, this.dim()) } : null;
  }

  async run() {
    this.running?.abort();
    const running = (this.running = new AbortController());
    this.results.setAttribute("aria-busy", "true");
    try {
      const asked = await this.request();
      if (asked) {
        const answer = await query(this.collection, asked, running.signal);
        if (running === this.running) this.draw(answer);
      } else {
        replace(this.results);
      }
    } catch (error) {
      if (error.name !== "AbortError" && running === this.running) replace(this.results, problem(error));
    }
    if (running === this.running) this.results.removeAttribute("aria-busy");
  }

  similar(id) {
    this.inputs.row.value = id;
    this.show("row");
    this.run();
    this.inputs.row.focus();
  }

  mapOf(id) {
    return `#/map/${encodeURIComponent(this.collection)}?row=${encodeURIComponent(id)}${this.using ? `&vector=${encodeURIComponent(this.using.value)}` : ""}`;
  }

  draw(answer) {
    const { hits } = answer;
    if (!hits.length) {
      replace(this.results, costLine(answer), el("p", { class: "empty" }, "Nothing was found. Remove a filter, or search for something else."));
      return;
    }
    const distance = this.metric() === "l2";
    const scores = hits.map((hit) => hit.score);
    const best = distance ? Math.min(...scores) : Math.max(...scores), worst = distance ? Math.max(...scores) : Math.min(...scores);
    const cards = hits.map((hit) => rowCard(hit.row, {
      lead: scoreBar(hit.score, best, worst, distance),
      open: () => openPanel(this.collection, hit.id, { changed: () => this.run() }),
      actions: [button("Similar", () => this.similar(hit.id)), el("a", { class: "button", href: this.mapOf(hit.id) }, "Map")],
    }));
    replace(this.results, costLine(answer), el("ol", { class: "hits" }, cards));
  }
}

export function mount(root, { collection, info, parameters }) {
  const view = new SearchView(root, collection, info, parameters);
  return () => view.running?.abort();
}
