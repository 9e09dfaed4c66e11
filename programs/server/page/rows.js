// A table of rows: pages, search in payloads, the side panel, deleting, exporting.
import { rows } from "/ui/api.js";
import { FilterBuilder, anywhere, fieldsOf, forgetFields } from "/ui/filters.js";
import { button, count, download, el, note, plural, problem, replace, shorten, visible } from "/ui/dom.js";
import { stringify } from "/ui/json.js";
import { confirmDelete, openPanel } from "/ui/panel.js";
import { inline, valueAt } from "/ui/payload.js";

const PAGE = 50, COLUMNS = 5, EXPORT_PAGE = 500, PAYLOAD_BYTES = 4096;

class RowsView {
  constructor(root, collection) {
    Object.assign(this, { root, collection, offset: 0, chosen: new Set() });
    this.words = el("input", { type: "search", placeholder: "Find in payloads", "aria-label": "Find in payloads" });
    this.filters = new FilterBuilder(collection, () => this.first());
    this.body = el("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": "Rows" });
    this.position = el("span", { class: "quiet", role: "status" });
    this.pages = [
      button("First", () => this.go(0)), button("Previous", () => this.go(this.offset - PAGE)), this.position,
      button("Next", () => this.go(this.offset + PAGE)), button("Last", () => this.go(Math.floor(Math.max(0, this.total - 1) / PAGE) * PAGE)),
    ];
    this.remove = button("Delete…", () => confirmDelete(collection, [...this.chosen], () => this.load()), { class: "danger quiet-button", disabled: true });
    this.export = button("Export JSON lines", () => this.exporting ? this.exporting.abort() : this.save());
    this.withVectors = el("input", { type: "checkbox" });
    replace(root,
      el("header", { class: "view-head" }, el("div", {}, el("h1", {}, "Rows"), el("p", { class: "quiet" }, el("bdi", {}, visible(collection)))),
        el("div", { class: "toolbar" }, el("label", { class: "check" }, this.withVectors, "with vectors"), this.export, this.remove)),
      el("form", { class: "search", onsubmit: (event) => { event.preventDefault(); this.first(); } },
        el("div", { class: "query-line" }, this.words, el("button", { type: "submit", class: "primary" }, "Find")), this.filters.node),
      this.body, el("nav", { class: "pages", "aria-label": "Pages" }, this.pages));
  }

  async filter() {
    const text = this.words.value;
    const found = text ? await anywhere(this.collection, text) : null;
    if (text && !found) throw new Error("no row has a text in its payload");
    return this.filters.filter(found ? [found] : []);
  }

  first() { return this.go(0); }

  go(offset) {
    this.offset = Math.max(0, offset);
    return this.load();
  }

  async load() {
    this.running?.abort();
    const running = (this.running = new AbortController());
    this.chosen.clear();
    this.remove.disabled = true;
    try {
      const [fields, filter] = [await fieldsOf(this.collection), await this.filter()];
      const answer = await rows(this.collection, { offset: this.offset, limit: PAGE, filter, payload_bytes: PAYLOAD_BYTES }, running);
      if (running !== this.running) return;
      this.total = Number(answer.total);
      if (this.offset > 0 && this.offset >= this.total) return this.go(Math.floor(Math.max(0, this.total - 1) / PAGE) * PAGE);
      this.draw(answer.rows, fields);
    } catch (error) {
      if (error.name !== "AbortError" && running === this.running) replace(this.body, problem(error));
    }
  }

  changed() {
    forgetFields(this.collection);
    this.load();
  }

  choose(id, on) {
    if (on) this.chosen.add(id);
    else this.chosen.delete(id);
    this.remove.disabled = !this.chosen.size;
    this.remove.textContent = this.chosen.size ? `Delete ${count(this.chosen.size)}…` : "Delete…";
  }

  draw(list, fields) {
    const texts = list.some((row) => row.text !== undefined);
    const columns = fields.filter((field) => !field.types.every((type) => type === "object")).slice(0, texts ? COLUMNS - 1 : COLUMNS).map((field) => field.key);
    const last = Math.min(this.offset + list.length, this.total);
    this.position.textContent = this.total ? `${count(this.offset + 1)}–${count(last)} of ${count(this.total)}` : "no rows";
    this.pages[0].disabled = this.pages[1].disabled = this.offset === 0;
    this.pages[3].disabled = this.pages[4].disabled = this.offset + PAGE >= this.total;
    this.choose("", false);
    if (!list.length) return replace(this.body, el("p", { class: "empty" }, this.words.value || this.filters.conditions.length ? "No row matches." : "The collection has no rows yet."));
    const line = (row) => el("tr", {},
      el("td", { class: "tick" }, el("input", { type: "checkbox", "aria-label": `Choose ${shorten(visible(row.id), 60)}`, onchange: (event) => this.choose(row.id, event.target.checked) })),
      el("th", { scope: "row" }, button(shorten(visible(row.id), 44), () => openPanel(this.collection, row.id, { changed: () => this.changed() }), { class: "link id" })),
      row.preview ? el("td", { colspan: columns.length || 1 }, el("bdi", {}, inline(row.preview, 120)))
        : columns.map((key) => el("td", {}, el("bdi", {}, inline(valueAt(row.payload, key), 90)))),
      texts && el("td", {}, el("bdi", {}, inline(row.text, 120))));
    replace(this.body, el("table", {},
      el("thead", {}, el("tr", {}, el("th", { class: "tick" }, el("span", { class: "hidden" }, "Choose")), el("th", { scope: "col" }, "id"), columns.map((key) => el("th", { scope: "col" }, el("bdi", {}, inline(key, 40)))), texts && el("th", { scope: "col" }, "text"))),
      el("tbody", {}, list.map(line))));
  }

  // All rows that the filter admits, page by page. A second click stops.
  async save() {
    const running = (this.exporting = new AbortController());
    const parts = [];
    let done = 0, total = 0;
    try {
      const filter = await this.filter();
      do {
        const answer = await rows(this.collection, { offset: done, limit: EXPORT_PAGE, filter, with_vector: this.withVectors.checked }, running);
        for (const row of answer.rows) parts.push(stringify({ id: row.id, text: row.text, vector: row.vector, payload: row.payload }) + "\n");
        total = Number(answer.total);
        if (!answer.rows.length) break;
        done += answer.rows.length;
        this.export.textContent = `Stop (${Math.floor((100 * done) / total)}%)`;
      } while (done < total);
      download(`${this.collection.replace(/[^\w.-]+/g, "_")}.jsonl`, parts, "application/jsonl");
      note(`${plural(done, "row")} exported`);
    } catch (error) {
      note(error.name === "AbortError" ? "The export was stopped" : error.message, error.name === "AbortError" ? "" : "bad");
    }
    this.exporting = null;
    this.export.textContent = "Export JSON lines";
  }
}

export async function mount(root, { collection }) {
  const view = new RowsView(root, collection);
  await view.load();
  return () => {
    view.running?.abort();
    view.exporting?.abort();
  };
}
