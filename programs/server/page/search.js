// Search by a text, by a row's vector, or by a pasted vector; shows what each answer cost and which hits are proven. A text is searched for by its
// meaning, by its words (BM25), or by both.
import { ask, collectionPath, rows } from "/ui/api.js";
import { FilterBuilder, fieldsOf } from "/ui/filters.js";
import { button, bytes, count, deviceText, duration, el, field, plural, problem, replace, select, shorten, vectorName, visible } from "/ui/dom.js";
import { isNumber, parse } from "/ui/json.js";
import { openPanel } from "/ui/panel.js";
import { chooseTitle, idText, inline, rowCard, titleKey } from "/ui/payload.js";

const PAYLOAD_BYTES = 8192; // of larger payloads only the beginning is shown
const fusedDepth = (limit) => Math.max(100, limit); // how many of the best by meaning, and by keywords, a search by both looks at

// A query of Qdrant's API for a text. `by` is "meaning", "keywords" or "both".
function textQuery({ text, model, by, limit, filter, params, using }) {
  const words = { query: { text, model: "bm25" }, filter, using }, meaning = { query: { text, model }, filter, params, using };
  if (by === "keywords") return words;
  const depth = fusedDepth(limit);
  return by === "both" ? { query: { fusion: "rrf" }, prefetch: [{ ...meaning, limit: depth }, { ...words, limit: depth }] } : meaning;
}

// The hits of a query with their rows: {hits: [{id, score, row}], cost, seconds}.
export async function query(collection, { vector, text, model, by, without, limit, filter, params, using }, signal) {
  const what = text === undefined ? { query: vector, filter, params, using } : textQuery({ text, model, by, limit, filter, params, using });
  const body = { ...what, limit: limit + (without === undefined ? 0 : 1), with_payload: false, with_cost: true };
  const answer = await ask("POST", `${collectionPath(collection)}/points/query`, body, signal);
  let hits = answer.result.points.map((point) => ({ id: idText(point.id), score: Number(point.score) }));
  if (without !== undefined) hits = hits.filter((hit) => hit.id !== without).slice(0, limit);
  const found = (await rows(collection, { ids: hits.map((hit) => hit.id), payload_bytes: PAYLOAD_BYTES }, { signal, using })).rows;
  const byId = new Map(found.map((row) => [row.id, row]));
  for (const hit of hits) hit.row = byId.get(hit.id) ?? { id: hit.id };
  return { hits, by, limit, cost: answer.cost, seconds: Number(answer.time) };
}

// `using` is the name of the vector; undefined if vectors have no names.
export async function vectorOf(collection, id, using) {
  const [row] = (await rows(collection, { ids: [id], with_payload: false, with_vector: true }, { using })).rows;
  if (!row) throw new Error(using === undefined ? `there is no row ${shorten(id, 60)}` : `no row ${shorten(id, 60)} has a vector "${using}"`);
  return row.vector;
}

export function costLine({ cost, hits, seconds, by, limit }) {
  if (by === "keywords") return el("p", { class: "cost", "data-cost": "" }, el("span", {}, "by keywords (BM25)"), el("span", {}, duration(seconds)));
  const read = cost.rows_screened > 0 ? `${plural(cost.rows_screened, "row")} screened, ${count(cost.rows_scored)} scored` : `${plural(cost.rows_scored, "row")} scored`;
  const certain = cost.exact ? "exact" : `${count(Math.min(cost.proven, hits.length))} of ${count(hits.length)} proven`;
  const shared = cost.queries > 1 ? [`computed with ${plural(cost.queries - 1, "other")}`] : [];
  const lists = cost.lists_read > 0 ? [plural(cost.lists_read, "list")] : [];
  return el("p", { class: "cost", "data-cost": "" },
    [...(by === "both" ? [`the best ${count(fusedDepth(limit))} by meaning and by keywords`] : []), ...lists, read, `${bytes(cost.bytes)} read`, `on ${deviceText(cost.device)}`, duration(seconds), ...shared].map((part) => el("span", {}, part)),
    el("span", { class: cost.exact ? "badge good" : "badge" }, certain));
}

function parseVector(text, dim) {
  const trimmed = text.trim();
  const value = parse(trimmed.startsWith("[") ? trimmed : `[${trimmed.split(/[\s,;]+/).join(",")}]`);
  if (!Array.isArray(value) || !value.every(isNumber)) throw new Error("a vector is a list of numbers, [0.1, 2, …]");
  if (dim && value.length !== dim) throw new Error(`the vector has ${count(value.length)} numbers; the collection has ${count(dim)}`);
  return value;
}

// How full the bar of a score is, and what that means. The scale does not depend on the other hits, so bars of two searches can be compared.
const SCALES = {
  cosine: [(score) => score, "a full bar is a cosine of 1"],
  dot: [(score) => score / (1 + score), "half a bar is a dot product of 1"],
  l2: [(score) => 1 / (1 + score), "a full bar is a distance of 0, half a bar one of 1"],
  manhattan: [(score) => 1 / (1 + score), "a full bar is a distance of 0, half a bar one of 1"],
  keywords: [(score) => score / (10 + score), "half a bar is a BM25 score of 10"],
  both: [(score) => score, "a full bar is the first by meaning and by keywords"],
};

function scoreBar(score, scale) {
  const [share, meaning] = SCALES[scale] ?? SCALES.dot;
  const fill = el("span");
  fill.style.width = `${(100 * Math.max(0, Math.min(1, score > 0 || scale === "l2" || scale === "manhattan" ? share(score) : 0))).toFixed(1)}%`;
  return el("div", { class: "score", title: `Score ${score}: ${meaning}` }, el("output", {}, score.toFixed(4)), el("div", { class: "bar", "aria-hidden": "true" }, fill));
}

class SearchView {
  constructor(root, collection, info, parameters, texts) {
    Object.assign(this, { root, collection, info, texts });
    this.filters = new FilterBuilder(collection, () => this.results.childNodes.length && this.run());
    this.results = el("section", { class: "results", "aria-label": "Results", "aria-live": "polite" });
    this.k = el("input", { type: "number", min: 1, max: 1000, value: 10 });
    this.using = info.vectors.length ? select(info.vectors.map((part) => [part.name, vectorName(part.name)]), info.vectors[0].name) : null;
    this.build(parameters);
  }

  dim() { return this.using ? this.info.vectors.find((part) => part.name === this.using.value).dim : this.info.dim; }

  metric() { return this.using ? this.info.vectors.find((part) => part.name === this.using.value).metric : this.info.metric; }

  build(parameters) {
    const served = Boolean(this.info.served_model);
    this.inputs = {
      text: el("input", { type: "search", class: "big", placeholder: "Describe what you are looking for", "aria-label": "Text" }),
      row: el("input", { type: "text", class: "big", placeholder: "The id of a row", "aria-label": "Id of a row" }),
      vector: el("textarea", { class: "big code", rows: 3, placeholder: `[0.12, -0.5, …]  ${count(this.dim())} numbers`, "aria-label": "Vector" }),
    };
    this.box = el("div", { class: "query-box" });
    this.modes = el("div", { class: "segments", role: "radiogroup", "aria-label": "Search by" },
      [["text", "Text"], ["row", "Row"], ["vector", "Vector"]].map(([mode, text]) =>
        el("label", {}, el("input", { type: "radio", name: "mode", value: mode, onchange: () => this.show(mode) }), el("span", {}, text))));
    this.by = select([["meaning", "meaning"], ["keywords", "keywords"], ["both", "both"]], served ? "meaning" : "keywords", () => this.show("text"));
    this.byField = field("Find by", this.by, { class: "field beside" });
    const form = el("form", { class: "search", onsubmit: (event) => { event.preventDefault(); this.run(); } },
      el("div", { class: "query-line" }, this.box, el("button", { type: "submit", class: "primary" }, "Search")),
      el("div", { class: "options" }, this.modes, this.byField, field("Results", this.k, { class: "field beside" }), this.exactness(), this.using && field("Vector", this.using, { class: "field beside" }), this.titles()),
      this.filters.node);
    replace(this.root, el("header", { class: "view-head" }, el("div", {}, el("h1", {}, "Search"), el("p", { class: "quiet" }, `${plural(this.info.rows, "row")} in `, el("bdi", {}, visible(this.collection))))), form, this.results);
    if (Number(this.info.rows) === 0) replace(this.results, el("p", { class: "empty" }, "The collection has no rows yet."));
    const row = parameters.get("row");
    this.show(row !== null || !(served || this.texts) ? "row" : "text");
    if (row !== null) {
      this.inputs.row.value = row;
      this.run();
    } else {
      this.inputs[this.mode].focus();
    }
  }

  // Which field is the title of a row, here and in the other views.
  titles() {
    const list = select([["", "automatic"]], "", (key) => {
      chooseTitle(this.collection, key);
      if (this.answer) this.draw(this.answer);
    });
    fieldsOf(this.collection).then((fields) => {
      list.append(...fields.filter((one) => one.types.some((type) => type === "text" || type === "number")).map((one) => el("option", { value: one.key }, inline(one.key, 30))));
      list.value = titleKey(this.collection) ?? "";
    }, () => {}); // without the fields the choice stays automatic
    return field("Title", list, { class: "field beside" });
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
    this.byField.hidden = mode !== "text";
    replace(this.box, this.inputs[mode]);
    if (mode === "text" && !this.info.served_model && this.by.value !== "keywords") {
      const why = this.info.model ? `The model ${visible(this.info.model)} made the vectors, but it is not served: start the server with --model.` : "No model is known for this collection: search by keywords, a row or a vector.";
      replace(this.box, el("p", { class: "quiet missing" }, why));
    }
  }

  async request() {
    const limit = Math.max(1, Number(this.k.value) || 10);
    const asked = { limit, filter: this.filters.filter(), params: this.params?.(), using: this.using?.value };
    if (this.mode === "text") {
      const text = this.inputs.text.value.trim(), by = this.by.value;
      return text && (this.info.served_model || by === "keywords") ? { ...asked, text, by, model: this.info.served_model ?? undefined } : null;
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
        answer.words = asked.text;
        if (running === this.running) this.draw(answer);
      } else {
        this.answer = null;
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
    const { hits, by } = answer;
    this.answer = answer;
    if (!hits.length) {
      const hint = by === "keywords" ? "No row has these words in its text. Rows that were added as vectors only have no text." : "Nothing was found. Remove a filter, or search for something else.";
      replace(this.results, costLine(answer), el("p", { class: "empty" }, hint));
      return;
    }
    const scale = by === "keywords" || by === "both" ? by : this.metric();
    const cards = hits.map((hit) => rowCard(hit.row, {
      collection: this.collection, query: answer.words,
      lead: scoreBar(hit.score, scale),
      open: () => openPanel(this.collection, hit.id, { changed: () => this.run() }),
      actions: [button("Similar", () => this.similar(hit.id)), el("a", { class: "button", href: this.mapOf(hit.id) }, "Map")],
    }));
    replace(this.results, costLine(answer), el("ol", { class: "hits" }, cards));
  }
}

export async function mount(root, { collection, info, parameters }) {
  const [first] = (await rows(collection, { limit: 1, payload_bytes: PAYLOAD_BYTES })).rows;
  const view = new SearchView(root, collection, info, parameters, first?.text !== undefined);
  return () => view.running?.abort();
}
