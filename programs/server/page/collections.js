// All collections with their figures; creating and dropping them.
import { collectionPath, overview, result } from "/ui/api.js";
import { button, bytes, count, dialog, el, field, note, plural, problem, replace, select, visible } from "/ui/dom.js";

const link = (view, name, text, title) => el("a", { href: `#/${view}/${encodeURIComponent(name)}`, class: "button", title }, text);

const METRICS = { l2: "Euclidean", cosine: "cosine", dot: "dot product" };

function indexOf(index) {
  const balance = Number(index.rows_mean) > 0 ? (index.rows_largest / Number(index.rows_mean)).toFixed(1) : "1.0";
  return `${plural(index.lists, "list")}, the largest ${balance} times the mean`;
}

function indexText({ index, vectors }) {
  const named = vectors.filter((part) => part.index).map((part) => `${visible(part.name)}: ${indexOf(part.index)}`);
  if (!index && !named.length) return "none: every search is exact";
  return index ? indexOf(index) : named;
}

// The vectors of a collection are loaded when they are first needed.
function memoryText({ rows, bytes_device, bytes_host, device }) {
  if (rows > 0 && bytes_device === 0) return "not loaded yet; the first search loads it";
  return `${bytes(bytes_device)} on ${device}${bytes_host > 0 ? `, ${bytes(bytes_host)} on the host` : ""}`;
}

function create(changed) {
  const name = el("input", { type: "text", required: true, maxlength: 120, autocomplete: "off" });
  const size = el("input", { type: "number", min: 1, max: 65536, value: 384, required: true });
  const distance = select([["Cosine", "Cosine"], ["Dot", "Dot product"], ["Euclid", "Euclidean"]], "Cosine");
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

function card(collection, changed) {
  const name = collection.name;
  const remove = button("Drop…", () => drop(collection, changed), { class: "danger quiet-button" });
  if (collection.failure)
    return el("article", { class: "card collection" }, el("h2", {}, el("bdi", {}, visible(name))), problem(collection.failure), el("div", { class: "toolbar" }, remove));
  const vectors = collection.vectors.length
    ? collection.vectors.map((part) => `${visible(part.name)}: ${vectorText(part)}`)
    : vectorText(collection);
  const model = collection.model ? visible(collection.model) + (collection.served_model ? "" : " (not served)") : "none";
  return el("article", { class: "card collection" },
    el("h2", {}, el("a", { href: `#/search/${encodeURIComponent(name)}` }, el("bdi", {}, visible(name))), el("span", { class: "row-count" }, plural(collection.rows, "row"))),
    el("dl", { class: "figures" },
      figure("Vectors", vectors),
      figure("Index", indexText(collection)),
      figure("Model", model),
      figure("Memory", memoryText(collection)),
      figure("On disk", `${bytes(collection.bytes_vectors)} of vectors`)),
    el("div", { class: "toolbar" }, link("search", name, "Search"), link("rows", name, "Rows"), link("map", name, "Map"), link("ask", name, "Ask"), remove));
}

export async function mount(root, { refresh }) {
  const draw = async () => {
    const all = await overview();
    refresh(all);
    const head = el("header", { class: "view-head" },
      el("div", {}, el("h1", {}, "Collections"),
        el("p", { class: "quiet" }, `${plural(all.collections.length, "collection")}, ${bytes(all.bytes_file)} on disk, ${all.device}`)),
      button("New collection", () => create(draw), { class: "primary" }));
    const empty = el("div", { class: "empty" }, el("p", {}, "There is no collection yet."),
      el("p", { class: "quiet" }, "Create one here, send points with any Qdrant client, or fill the file with warpwave store add."));
    replace(root, head, all.collections.length ? el("div", { class: "grid" }, all.collections.map((one) => card(one, draw))) : empty);
  };
  await draw();
}
