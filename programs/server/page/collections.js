// All collections with their figures; creating and dropping them.
import { collectionPath, overview, result } from "/ui/api.js";
import { button, bytes, count, deviceText, dialog, el, field, note, plural, problem, replace, select, vectorName, visible } from "/ui/dom.js";

const TABLE_FROM = 10; // fewer collections are cards

const link = (view, name, text, title) => el("a", { href: `#/${view}/${encodeURIComponent(name)}`, class: "button", title }, text);

const METRICS = { l2: "Euclidean", manhattan: "Manhattan", cosine: "cosine", dot: "dot product" };

function indexOf(index) {
  const balance = Number(index.rows_mean) > 0 ? (index.rows_largest / Number(index.rows_mean)).toFixed(1) : "1.0";
  return `${plural(index.lists, "list")}, the largest ${balance} times the mean`;
}

function indexText({ index, vectors }) {
  const named = vectors.filter((part) => part.index).map((part) => `${vectorName(part.name)}: ${indexOf(part.index)}`);
  if (!index && !named.length) return "none: every search is exact";
  return index ? indexOf(index) : named;
}

// The vectors of a collection are loaded when they are first needed. Without a GPU there is one memory only.
function memoryText({ rows, bytes_device, bytes_host, device }) {
  if (rows > 0 && bytes_device === 0) return "not loaded yet; the first search loads it";
  if (device === "cpu") return bytes(bytes_device + bytes_host);
  return `${bytes(bytes_device)} of ${deviceText(device)}${bytes_host > 0 ? `, ${bytes(bytes_host)} of the computer` : ""}`;
}

function create(changed) {
  const name = el("input", { type: "text", required: true, maxlength: 120, autocomplete: "off" });
  const size = el("input", { type: "number", min: 1, max: 65536, value: 384, required: true });
  const distance = select([["Cosine", "Cosine"], ["Dot", "Dot product"], ["Euclid", "Euclidean"], ["Manhattan", "Manhattan"]], "Cosine");
  const type = select([["float32", "f32: 32 bits"], ["float16", "f16: 16 bits"], ["uint8", "u8: integers from 0 to 255"]], "float32");
  dialog("New collection", el("div", { class: "form" }, field("Name", name), field("Dimension", size), field("Metric", distance), field("Type", type)), {
    action: "Create",
    submit: async () => {
      const vectors = { size: Number(size.value), distance: distance.value, datatype: type.value };
      await result("PUT", collectionPath(name.value), { vectors });
      note(`${visible(name.value)} was created`);
      changed();
    },
  });
  name.focus();
}

function drop(collection, changed) {
  const typed = el("input", { type: "text", autocomplete: "off", spellcheck: "false", oninput: () => { send.disabled = typed.value !== collection.name; } });
  const { send } = dialog("Drop a collection", el("div", { class: "form" },
    el("p", {}, `This deletes ${visible(collection.name)} with ${plural(collection.rows ?? 0, "row")}. It cannot be undone.`),
    field("Type the name again", typed)), {
    action: "Drop", danger: true,
    submit: async () => {
      if (typed.value !== collection.name) return false;
      await result("DELETE", collectionPath(collection.name));
      note(`${visible(collection.name)} was dropped`);
      changed();
    },
  });
  send.disabled = true;
  typed.focus();
}

const vectorText = ({ dim, type, metric }) => `${count(dim)} × ${type}, ${METRICS[metric] ?? metric}`;

// A value, or one for each vector with a name.
const figure = (name, ...values) => el("div", {}, el("dt", {}, name), el("dd", {}, values.flat().map((value) => el("p", {}, value))));

const vectorsOf = (collection) => (collection.vectors.length ? collection.vectors.map((part) => `${vectorName(part.name)}: ${vectorText(part)}`) : [vectorText(collection)]);

const modelOf = ({ model, served_model }) => (model ? visible(model) + (served_model ? "" : " (not served)") : "none");

const dropButton = (collection, changed) => button("Drop…", () => drop(collection, changed), { class: "danger quiet-button" });

function card(collection, changed) {
  const name = collection.name, remove = dropButton(collection, changed);
  if (collection.failure)
    return el("article", { class: "card collection" }, el("h2", {}, el("bdi", {}, visible(name))), problem(collection.failure), el("div", { class: "toolbar" }, remove));
  return el("article", { class: "card collection" },
    el("h2", {}, el("a", { href: `#/search/${encodeURIComponent(name)}` }, el("bdi", {}, visible(name))), el("span", { class: "row-count" }, plural(collection.rows, "row"))),
    el("dl", { class: "figures" },
      figure("Vectors", vectorsOf(collection)),
      figure("Index", indexText(collection)),
      figure("Model", modelOf(collection)),
      figure("Memory", memoryText(collection)),
      figure("On disk", `${bytes(collection.bytes_vectors)} of vectors`)),
    el("div", { class: "toolbar" }, link("search", name, "Search"), link("rows", name, "Rows"), link("map", name, "Map"), link("ask", name, "Ask"), remove));
}

// ---- the table

// Title, what a column is sorted by, its cell, and whether it has numbers. A damaged collection has its name only.
const COLUMNS = [
  ["Name", (one) => one.name, null],
  ["Rows", (one) => Number(one.rows), (one) => count(one.rows), true],
  ["Vectors", (one) => vectorsOf(one).join(), (one) => vectorsOf(one).map((text) => el("p", {}, text))],
  ["Index", (one) => Number(one.index?.lists ?? 0), (one) => (one.index ? plural(one.index.lists, "list") : one.vectors.some((part) => part.index) ? "by vector" : "none"), true],
  ["Model", (one) => modelOf(one), (one) => modelOf(one)],
  ["Memory", (one) => Number(one.bytes_device) + Number(one.bytes_host), (one) => (one.rows > 0 && one.bytes_device === 0 ? "not loaded" : memoryText(one)), true],
  ["On disk", (one) => Number(one.bytes_vectors), (one) => bytes(one.bytes_vectors), true],
];

const order = { column: 0, down: false, words: "" }; // kept while the page is open

function compare(a, b) {
  if (Boolean(a.failure) !== Boolean(b.failure)) return a.failure ? 1 : -1;
  const of = a.failure ? COLUMNS[0][1] : COLUMNS[order.column][1], x = of(a), y = of(b);
  const way = typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
  return (order.down ? -way : way) || a.name.localeCompare(b.name, "en");
}

function line(collection, changed) {
  const { name } = collection;
  const head = el("th", { scope: "row" }, collection.failure ? el("bdi", {}, visible(name)) : el("a", { href: `#/search/${encodeURIComponent(name)}` }, el("bdi", {}, visible(name))));
  const cells = collection.failure ? el("td", { colspan: COLUMNS.length - 1 }, problem(collection.failure)) : COLUMNS.slice(1).map(([, , cell, number]) => el("td", { class: number ? "amount" : null }, cell(collection)));
  return el("tr", {}, head, cells, el("td", {}, el("div", { class: "toolbar" }, !collection.failure && [link("rows", name, "Rows"), link("map", name, "Map")], dropButton(collection, changed))));
}

function table(collections, changed) {
  const box = el("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": "Collections" }), found = el("span", { class: "quiet", role: "status" });
  const draw = () => {
    const words = order.words.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = collections.filter((one) => words.every((word) => `${one.name} ${one.model ?? ""}`.toLowerCase().includes(word))).sort(compare);
    found.textContent = shown.length === collections.length ? "" : `${count(shown.length)} of ${plural(collections.length, "collection")}`;
    const head = COLUMNS.map(([title], column) => {
      const sorted = column === order.column;
      const sort = () => {
        Object.assign(order, { column, down: sorted ? !order.down : COLUMNS[column][3] === true });
        draw();
        box.querySelectorAll("thead button")[column].focus();
      };
      return el("th", { scope: "col", "aria-sort": sorted ? (order.down ? "descending" : "ascending") : "none" }, button(title + (sorted ? (order.down ? " ↓" : " ↑") : ""), sort, { class: "link", title: `Sort by ${title.toLowerCase()}` }));
    });
    replace(box, shown.length ? el("table", {}, el("thead", {}, el("tr", {}, head, el("th", {}, el("span", { class: "hidden" }, "Actions")))), el("tbody", {}, shown.map((one) => line(one, changed)))) : el("p", { class: "empty" }, "No collection matches."));
  };
  const filter = el("input", { type: "search", value: order.words, placeholder: "Filter by name or model", "aria-label": "Filter", oninput: () => { order.words = filter.value; draw(); } });
  draw();
  return el("div", { class: "collection-table" }, el("div", { class: "toolbar" }, filter, found), box);
}

export async function mount(root, { refresh }) {
  const draw = async () => {
    const all = await overview();
    refresh(all);
    const head = el("header", { class: "view-head" },
      el("div", {}, el("h1", {}, "Collections"),
        el("p", { class: "quiet" }, `${plural(all.collections.length, "collection")}, ${bytes(all.bytes_file)} on disk, on ${all.device}`)),
      button("New collection", () => create(draw), { class: "primary" }));
    const shown = (list) => (list.length < TABLE_FROM ? el("div", { class: "grid" }, list.map((one) => card(one, draw))) : table(list, draw));
    const empty = el("div", { class: "empty" }, el("p", {}, "There is no collection yet."),
      el("p", { class: "quiet" }, "Create one here, send points with any Qdrant client, or fill the file with warpwave store add."));
    replace(root, head, all.collections.length ? shown(all.collections) : empty);
  };
  await draw();
}
