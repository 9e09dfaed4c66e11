// The map: all rows as points. The server places them; the page draws, and asks for payloads only of points that are looked at.
import { ask, binary, collectionPath, ownPath, result, rows, sendBinary } from "/ui/api.js";
import { button, count, el, field, note, plural, problem, replace, select, shorten, vectorName, visible } from "/ui/dom.js";
import { anywhere, facet, fieldsOf } from "/ui/filters.js";
import { parse } from "/ui/json.js";
import { Labels, nameRegions, regionsOf, textOf } from "/ui/labels.js";
import { openPanel } from "/ui/panel.js";
import { inline, rowCard, summary, titleKey } from "/ui/payload.js";
import { Plot } from "/ui/plot.js";
import { costLine, query, vectorOf } from "/ui/search.js";

const COLOURS = ["#3b5bdb", "#e8590c", "#2f9e44", "#c2255c", "#0c8599", "#e5a50a", "#7048e8", "#66a80f", "#d6336c", "#1c7ed6",
  "#b35c00", "#0b7a5a", "#ae3ec9", "#8d7b00", "#5c7cfa", "#20a08a", "#e03131", "#74b816", "#4527a0", "#f06595"];
const SCALE = ["#3d348b", "#2f6db3", "#1f9e9a", "#7cc576", "#f2d13c"];
const OTHER = 254, NONE = 255, STEPS = 250; // as the server numbers them
const LISTED = 30, NEIGHBOURS = 10, POLL_MS = 400, FOUND_MAX = 1000;

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const mix = (a, b, share) => a.map((v, i) => Math.round(v + (b[i] - v) * share));
const dark = () => (document.documentElement.dataset.theme === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : document.documentElement.dataset.theme === "dark");
const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;

const valueColour = (i) => (dark() ? mix(rgb(COLOURS[i]), [255, 255, 255], 0.28) : rgb(COLOURS[i]));
function scaleColour(share) {
  const at = share * (SCALE.length - 1), i = Math.min(SCALE.length - 2, Math.floor(at));
  return mix(rgb(SCALE[i]), rgb(SCALE[i + 1]), at - i);
}
const quietColour = () => (dark() ? [110, 120, 138] : [160, 168, 182]);

// The handles of the points' rows, as the server sends them: runs of consecutive ones, the first handle and their number. They stay 64-bit integers.
class Handles {
  constructor(numbers) {
    this.runs = [];
    let first = 0; // the number of the run's first point
    for (let i = 0; i < numbers.length; i += 2) {
      this.runs.push({ first, handle: numbers[i], length: numbers[i + 1] });
      first += Number(numbers[i + 1]);
    }
  }

  of(point) {
    let low = 0, high = this.runs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.runs[middle].first <= point) low = middle;
      else high = middle - 1;
    }
    return String(this.runs[low].handle + BigInt(point - this.runs[low].first));
  }

  // The point of a row, -1 if it is not on the map.
  pointOf(handle) {
    const run = this.runs.find((one) => handle >= one.handle && handle < one.handle + one.length);
    return run ? run.first + Number(handle - run.handle) : -1;
  }
}

class MapView {
  constructor(root, collection, info, parameters) {
    Object.assign(this, { root, collection, parameters, generation: -1, hidden: new Set(), payloads: new Map(), legend: null, alive: true });
    this.canvas = el("canvas", { class: "plot", tabindex: "0", role: "application",
      "aria-label": "Map of all rows. Arrow keys move, plus and minus zoom, 0 shows everything, Enter searches from the point in the middle, Escape clears." });
    this.tip = el("div", { class: "tip", hidden: true });
    this.cross = el("div", { class: "cross", "aria-hidden": "true" });
    this.state = el("div", { class: "map-state", role: "status" });
    this.found = el("section", { class: "found", "aria-label": "Selected rows", "aria-live": "polite" });
    this.key = el("div", { class: "legend" });
    this.colourBy = select([["", "one colour"]], "", () => this.colour());
    this.tool = "move";
    const vectors = info.vectors.map((one) => one.name);
    this.using = vectors.includes(parameters.get("vector")) ? parameters.get("vector") : vectors[0]; // undefined if vectors have no names
    const vector = vectors.length > 0 && select(vectors.map((name) => [name, vectorName(name)]), this.using, (name) => {
      location.hash = `#/map/${encodeURIComponent(collection)}?vector=${encodeURIComponent(name)}`;
    });
    this.labelled = el("input", { type: "checkbox", checked: true, onchange: () => { this.labels.node.hidden = !this.labelled.checked; } });
    const tools = el("div", { class: "segments", role: "radiogroup", "aria-label": "Pointer" }, [["move", "Move"], ["lasso", "Lasso"]].map(([tool, text]) =>
      el("label", {}, el("input", { type: "radio", name: "tool", value: tool, checked: tool === "move", onchange: () => { this.tool = tool; this.canvas.dataset.tool = tool; } }), el("span", {}, text))));
    const bar = el("div", { class: "options" }, tools,
      el("div", { class: "toolbar" }, button("−", () => this.plot.zoomBy(1 / 1.5), { "aria-label": "Zoom out" }), button("+", () => this.plot.zoomBy(1.5), { "aria-label": "Zoom in" }), button("Fit", () => this.plot.fit()),
        button("Select visible", () => this.choose(this.plot.visible()))),
      vector && field("Vector", vector, { class: "field beside" }), field("Colour by", this.colourBy, { class: "field beside" }),
      el("label", { class: "check" }, this.labelled, "Labels"), button("Make the map again", () => this.remake(), { class: "link" }));
    this.words = el("input", { type: "search", placeholder: "Find a row: its id, or words in it", "aria-label": "Find on the map" });
    const finder = el("form", { class: "query-line finder", onsubmit: (event) => { event.preventDefault(); this.find(this.words.value.trim()); } }, this.words, el("button", { type: "submit" }, "Find"));
    this.info = el("p", { class: "quiet" });
    replace(root, el("header", { class: "view-head" }, el("div", {}, el("h1", {}, "Map"), this.info), finder), bar,
      el("div", { class: "map-box" }, el("div", { class: "plot-box" }, this.canvas, this.cross, this.tip, this.state), this.key), this.found);
    this.plot = Plot.on(this.canvas);
    if (!this.plot) return;
    this.labels = new Labels(this.plot);
    this.plot.onframe = () => this.labels.place();
    this.cross.after(this.labels.node);
  }

  path(rest) { return ownPath(this.collection, rest, this.using); }

  rows(body) { return rows(this.collection, body, { using: this.using }); }

  // ---- getting it

  async start() {
    if (!this.plot) {
      replace(this.root, el("header", { class: "view-head" }, el("h1", {}, "Map")), el("div", { class: "empty" },
        el("p", {}, "The map needs WebGL2, which this browser does not offer or has switched off."),
        el("p", { class: "quiet" }, "Collections, search, rows, questions and figures work without it.")));
      return;
    }
    this.listen();
    this.retheme = () => { this.paintColours(); this.drawLegend(); };
    addEventListener("themechange", this.retheme);
    await this.follow(await result("POST", this.path("/map")));
    if (!this.alive) return;
    await this.offerColours();
    const row = this.parameters.get("row");
    if (row !== null) await this.searchFrom(row, true);
  }

  async remake() {
    try {
      await this.follow(await result("POST", this.path("/map/remake")));
      this.colour();
    } catch (error) {
      note(error.message, "bad");
    }
  }

  // Waits until the map is made, and shows it.
  async follow(state) {
    while (state.running && this.alive) {
      const share = Number(state.total) > 0 ? Number(state.done) / Number(state.total) : 0;
      replace(this.state, el("div", { class: "making" }, el("p", {}, this.plot.points ? "Bringing the map up to date…" : "Making the map: neighbours of all rows, then the layout."),
        el("progress", { max: 1, value: share, "aria-label": "Progress" })));
      this.state.querySelector("progress").value = share;
      await new Promise((done) => setTimeout(done, POLL_MS));
      state = await result("GET", this.path("/map"));
    }
    if (!this.alive) return;
    replace(this.state);
    if (state.failure && !state.map) throw new Error(state.failure);
    if (state.failure) note(state.failure, "bad");
    if (state.map) await this.load(state.map);
  }

  async load(info) {
    const bytes = await binary(this.path("/map/points"));
    const [generation, n] = new Uint32Array(bytes, 0, 2);
    this.generation = generation;
    this.handles = new Handles(new BigInt64Array(bytes, 8 + 8 * n));
    this.payloads.clear();
    const placed = info.rows_placed > 0 ? `, ${count(info.rows_placed)} placed since it was made` : "";
    this.info.textContent = `${plural(n, "row")} of ${visible(this.collection)}, ${info.neighbours} neighbours each${placed}`;
    if (n === 0) return replace(this.state, el("div", { class: "making" }, el("p", {}, "The collection has no rows yet.")));
    this.plot.setPoints(new Float32Array(bytes, 8, 2 * n));
    this.clear();
    this.colours = new Uint8Array(n);
    this.paintColours();
    this.label().catch((error) => note(error.message, "bad"));
  }

  // Names the regions by words of some of their rows.
  async label() {
    const generation = this.generation;
    this.labels.show([]);
    const regions = regionsOf(this.plot.points, this.plot.bounds);
    if (!regions.length) return;
    const handles = regions.flatMap((one) => one.points.map((i) => this.handles.of(i)));
    const found = new Map((await this.rows({ handles, payload_bytes: 2048 })).rows.map((row) => [row.handle, row]));
    if (!this.alive || generation !== this.generation) return;
    const names = nameRegions(regions.map((one) => one.points.map((i) => found.get(this.handles.of(i))).filter(Boolean).map(textOf)));
    this.labels.show(regions.map(({ x, y }, i) => ({ x, y, text: shorten(visible(names[i]), 40) })));
  }

  // ---- finding rows

  // Rows with a text in their payloads; if there are none, those whose own texts have its words.
  async rowsWith(text) {
    const filter = await anywhere(this.collection, text);
    const answer = filter ? await this.rows({ filter, limit: FOUND_MAX, with_payload: false }) : { rows: [], total: 0 };
    if (answer.rows.length) return answer;
    const { points } = (await ask("POST", `${collectionPath(this.collection)}/points/query`, { query: { text, model: "bm25" }, limit: FOUND_MAX, using: this.using, with_payload: false })).result;
    return points.length ? this.rows({ ids: points.map((point) => String(point.id)), with_payload: false }) : answer;
  }

  async find(text) {
    if (!text || !this.plot?.points) return;
    try {
      const [row] = (await this.rows({ ids: [text], with_payload: false })).rows;
      if (row) return await this.searchFrom(row.id, true);
      const { rows: list, total } = await this.rowsWith(text);
      const numbers = list.map((one) => this.pointOf(one.handle)).filter((i) => i >= 0);
      if (numbers.length === 1) return await this.searchFrom(list.find((one) => this.pointOf(one.handle) >= 0).id, true);
      if (numbers.length) {
        this.plot.fit();
        return await this.choose(numbers, `${Number(total) > list.length ? `The first ${count(numbers.length)} of ${plural(total, "row")}` : plural(numbers.length, "row")} with “${shorten(visible(text), 60)}”`, text);
      }
      this.clear();
      replace(this.found, el("p", { class: "quiet" }, `No row on the map has the id or the text “${shorten(visible(text), 60)}”.`));
    } catch (error) {
      replace(this.found, problem(error));
    }
  }

  // ---- colours

  async offerColours() {
    const fields = (await fieldsOf(this.collection)).filter((one) => one.types.some((type) => ["text", "bool", "number", "list"].includes(type)));
    replace(this.colourBy, el("option", { value: "" }, "one colour"), fields.map((one) => el("option", { value: one.key }, inline(one.key, 30))));
    for (const one of fields.slice(0, 8)) {
      const values = await facet(this.collection, one.key, undefined, 21);
      if (values.length < 2 || values.length > 20) continue;
      if (this.colourBy.value === "") this.colourBy.value = one.key; // unless the user has already chosen
      break;
    }
    await this.colour();
  }

  // If another window has remade the map, or the server was restarted, the map is loaded again first.
  async fetchColours(key) {
    const fetched = () => sendBinary("POST", this.path("/map/colours"), { key, generation: this.generation });
    try {
      return await fetched();
    } catch (error) {
      if (error.status !== 404 && error.status !== 409) throw error;
      await this.follow(await result("POST", this.path("/map")));
      return fetched();
    }
  }

  async colour() {
    this.hidden.clear();
    const key = this.colourBy.value;
    this.legend = null;
    if (key && this.plot.points) {
      try {
        const bytes = await this.fetchColours(key);
        const length = new Uint32Array(bytes, 0, 1)[0];
        this.legend = parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
        this.colours = new Uint8Array(bytes, 4 + length);
      } catch (error) {
        note(error.message, "bad");
      }
    }
    this.paintColours();
    this.drawLegend();
  }

  colourOf(number) {
    if (number === OTHER || number === NONE) return quietColour();
    if (!this.legend) return valueColour(0);
    return this.legend.kind === "scale" ? scaleColour(number / STEPS) : valueColour(number);
  }

  paintColours() {
    if (!this.plot?.points) return;
    const palette = new Uint8Array(1024), opacity = this.plot.count > 20000 ? 170 : 205;
    for (let i = 0; i < 256; i++) {
      const known = this.legend ? this.legend.kind === "scale" || i < this.legend.values.length || i >= OTHER : true;
      const colour = known ? this.colourOf(this.legend ? i : 0) : [0, 0, 0];
      palette.set([...colour, this.hidden.has(i) ? 0 : i >= OTHER && this.legend ? opacity * 0.6 : opacity], 4 * i);
    }
    this.plot.lineInk = dark() ? [1, 1, 1, 0.75] : [0.1, 0.13, 0.2, 0.6];
    this.plot.setColours(this.legend ? this.colours : new Uint8Array(this.plot.count), palette);
  }

  drawLegend() {
    const { legend } = this;
    if (!legend) return replace(this.key);
    const entry = (number, text, n) => {
      const dot = el("span", { class: "dot" });
      dot.style.background = css(this.colourOf(number));
      const box = el("input", { type: "checkbox", checked: !this.hidden.has(number), onchange: () => {
        if (box.checked) this.hidden.delete(number);
        else this.hidden.add(number);
        this.paintColours();
      } });
      return el("label", { class: "legend-entry" }, box, dot, el("bdi", {}, text), el("span", { class: "quiet" }, count(n)));
    };
    if (legend.kind === "scale") {
      const strip = el("div", { class: "strip" });
      strip.style.background = `linear-gradient(90deg, ${SCALE.join(", ")})`;
      return replace(this.key, el("h2", {}, inline(this.colourBy.value, 40)), strip, el("div", { class: "strip-ends" }, el("span", {}, String(legend.min)), el("span", {}, String(legend.max))),
        legend.missing > 0 && entry(NONE, "without a value", legend.missing));
    }
    replace(this.key, el("h2", {}, inline(this.colourBy.value, 40)), legend.values.map((value, i) => entry(i, inline(value.value, 40), value.count)),
      legend.other > 0 && entry(OTHER, "other values", legend.other), legend.missing > 0 && entry(NONE, "without a value", legend.missing));
  }

  // ---- pointer and keys

  listen() {
    const { canvas, plot } = this;
    const held = new Map(); // pointers that are down
    let last = null, path = null, moved = 0;
    const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const spread = () => { const [a, b] = [...held.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]); };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, at(event));
      last = at(event);
      moved = 0;
      path = this.tool === "lasso" && held.size === 1 ? [last] : null;
      this.hideTip();
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = at(event);
      if (!held.has(event.pointerId)) return this.hover(now);
      if (held.size === 2) { // two fingers zoom
        const before = spread();
        held.set(event.pointerId, now);
        if (before > 0) plot.zoomBy(spread() / before, ...now);
        moved += 10;
        return;
      }
      held.set(event.pointerId, now);
      moved += Math.abs(now[0] - last[0]) + Math.abs(now[1] - last[1]);
      if (path) {
        path.push(now);
        plot.loop = path;
        plot.draw();
      } else {
        plot.move(now[0] - last[0], now[1] - last[1]);
      }
      last = now;
    });
    const up = (event) => {
      if (!held.delete(event.pointerId)) return;
      if (path && moved > 6) this.choose(plot.inside(path));
      else if (moved <= 6 && event.type === "pointerup") this.click(at(event));
      path = null;
      plot.loop = null;
      plot.draw();
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => this.hideTip());
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      plot.zoomBy(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0016)), ...at(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    const { plot } = this;
    const step = event.shiftKey ? 160 : 50;
    const keys = {
      ArrowLeft: () => plot.move(step, 0), ArrowRight: () => plot.move(-step, 0), ArrowUp: () => plot.move(0, step), ArrowDown: () => plot.move(0, -step),
      "+": () => plot.zoomBy(1.4), "=": () => plot.zoomBy(1.4), "-": () => plot.zoomBy(1 / 1.4), 0: () => plot.fit(), Escape: () => this.clear(),
      Enter: () => this.click([this.canvas.clientWidth / 2, this.canvas.clientHeight / 2], 400),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.hideTip();
    keys[event.key]();
  }

  hideTip() { this.tip.hidden = true; this.over = -1; }

  // The payload of the point under the pointer, once it rests there.
  async hover([px, py]) {
    const i = this.plot.at(px, py);
    if (i < 0) return this.hideTip();
    if (i === this.over) return;
    this.over = i;
    const row = await this.rowOf(i);
    if (this.over !== i || !row) return;
    const { title, body, rest } = summary(row, 320, titleKey(this.collection));
    replace(this.tip, el("strong", {}, title || shorten(visible(row.id), 60)), body && el("p", {}, shorten(body, 180)), rest.length > 0 && el("p", { class: "quiet" }, rest.map(([key, value]) => `${key} ${value}`).join(" · ")));
    const [x, y] = this.plot.pixelOf(i);
    this.tip.hidden = false;
    const width = this.canvas.clientWidth;
    this.tip.style.left = `${Math.max(8, Math.min(width - this.tip.offsetWidth - 8, x + 14))}px`;
    this.tip.style.top = `${y + 14 + this.tip.offsetHeight > this.canvas.clientHeight ? y - this.tip.offsetHeight - 10 : y + 14}px`;
  }

  async rowOf(i) {
    if (!this.payloads.has(i)) {
      await new Promise((done) => setTimeout(done, 60)); // the pointer may only be passing
      if (this.over !== i) return null;
      if (this.payloads.size > 2000) this.payloads.clear();
      const asked = this.rows({ handles: [this.handles.of(i)], payload_bytes: 4096 }).then((answer) => answer.rows[0] ?? null, () => null);
      this.payloads.set(i, asked);
    }
    return this.payloads.get(i);
  }

  async click([px, py], radius = 12) {
    const i = this.plot.at(px, py, radius);
    if (i < 0) return this.clear();
    try {
      const [row] = (await this.rows({ handles: [this.handles.of(i)], with_payload: false })).rows;
      if (row) await this.searchFrom(row.id, false, i);
    } catch (error) {
      replace(this.found, problem(error));
    }
  }

  // ---- what was selected

  clear() {
    this.plot.setMarks(null);
    this.plot.setLines([]);
    replace(this.found);
  }

  pointOf(handle) { return this.handles.pointOf(BigInt(handle)); }

  card(row, lead, query) {
    return rowCard(row, { collection: this.collection, lead, query, open: () => openPanel(this.collection, row.id), actions: [button("Search from here", () => this.searchFrom(row.id, true))] });
  }

  // The neighbours of a row, as lines and as a list.
  async searchFrom(id, look, number = -1) {
    try {
      const [row] = (await this.rows({ ids: [id], payload_bytes: 8192 })).rows;
      if (!row) throw new Error(`there is no row ${shorten(id, 60)}`);
      const centre = number >= 0 ? number : this.pointOf(row.handle);
      const answer = await query(this.collection, { vector: await vectorOf(this.collection, id, this.using), using: this.using, without: id, limit: NEIGHBOURS, params: { exact: true } });
      if (!this.alive) return;
      const numbers = answer.hits.map((hit) => (hit.row.handle ? this.pointOf(hit.row.handle) : -1)).filter((i) => i >= 0);
      if (centre >= 0) {
        this.plot.setMarks([centre, ...numbers]);
        this.plot.setLines(numbers.map((i) => [centre, i]));
        if (look) this.plot.lookAt(centre);
      } else {
        note("This row is not on the map yet: make the map again");
      }
      const score = (value) => el("div", { class: "score" }, el("output", {}, value));
      replace(this.found, el("div", { class: "view-head" }, el("h2", {}, "Nearest to ", el("bdi", {}, summary(row, 320, titleKey(this.collection)).title || shorten(visible(id), 60))), button("Clear", () => this.clear())), costLine(answer),
        el("ol", { class: "hits" }, this.card(row, score("selected")), answer.hits.map((hit) => this.card(hit.row, score(hit.score.toFixed(4))))));
    } catch (error) {
      replace(this.found, problem(error));
    }
  }

  async choose(numbers, title = `${plural(numbers.length, "row")} selected`, query = undefined) {
    this.plot.setLines([]);
    if (!numbers.length) return this.clear();
    this.plot.setMarks(numbers);
    try {
      const answer = await this.rows({ handles: numbers.slice(0, LISTED).map((i) => this.handles.of(i)), payload_bytes: 4096 });
      replace(this.found, el("div", { class: "view-head" }, el("h2", {}, title), button("Clear", () => this.clear())),
        numbers.length > LISTED && el("p", { class: "quiet" }, `The first ${LISTED}:`), el("ol", { class: "hits" }, answer.rows.map((row) => this.card(row, null, query))));
    } catch (error) {
      replace(this.found, problem(error));
    }
  }

  close() {
    this.alive = false;
    removeEventListener("themechange", this.retheme);
    this.plot?.close();
  }
}

export async function mount(root, { collection, info, parameters }) {
  const view = new MapView(root, collection, info, parameters);
  view.start().catch((error) => view.alive && replace(view.state, problem(error)));
  return () => view.close();
}
