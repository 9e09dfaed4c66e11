// The side panel: a row with its whole payload, its vector folded away, editing and deleting.
import { result, ownPath, rows } from "/ui/api.js";
import { button, bytes, copy, count, dialog, el, note, plural, problem, replace, shorten, visible } from "/ui/dom.js";
import { parse, stringify } from "/ui/json.js";
import { fullPayload } from "/ui/payload.js";

const EDIT_MAX = 200000; // characters of JSON that a text field takes without stalling

let open = null;

export function closePanel() {
  open?.aside.remove();
  document.body.classList.remove("has-panel");
  const back = open?.back;
  open = null;
  if (back?.isConnected) back.focus();
}

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && open && !document.querySelector("dialog[open]")) closePanel();
});

export function confirmDelete(collection, ids, done) {
  const what = ids.length === 1 ? `the row ${shorten(visible(ids[0]), 80)}` : `${count(ids.length)} rows`;
  dialog(`Delete ${ids.length === 1 ? "a row" : "rows"}`, el("p", {}, `This deletes ${what} from ${visible(collection)}, with vector and payload. It cannot be undone.`), {
    action: "Delete", danger: true,
    submit: async () => {
      const { deleted } = await result("POST", ownPath(collection, "/rows/delete"), { ids });
      note(`${plural(deleted, "row")} deleted`);
      done();
    },
  });
}

function editor(collection, row, shown) {
  const area = el("textarea", { class: "code", rows: 16, spellcheck: "false", "aria-label": "Payload as JSON" });
  area.value = stringify(row.payload ?? {}, 2);
  const failure = el("div");
  const save = button("Save", async () => {
    try {
      const payload = parse(area.value);
      if (payload === null || typeof payload !== "object" || Array.isArray(payload)) throw new Error("the payload must be an object, {…}");
      save.disabled = true;
      await result("PUT", ownPath(collection, "/rows"), { id: row.id, payload });
      note("Payload saved");
      shown(true);
    } catch (error) {
      replace(failure, problem(error));
      save.disabled = false;
    }
  }, { class: "primary" });
  return el("div", { class: "editor" }, area, failure, el("div", { class: "actions" }, button("Cancel", () => shown(false)), save));
}

function vectorFold(collection, id) {
  const body = el("div", { class: "vector code" });
  const fold = el("details", {}, el("summary", {}, "Vector"), body);
  fold.addEventListener("toggle", async () => {
    if (!fold.open || body.childNodes.length) return;
    try {
      const [row] = (await rows(collection, { ids: [id], with_payload: false, with_vector: true })).rows;
      const named = Array.isArray(row.vector) ? [["", row.vector]] : Object.entries(row.vector);
      replace(body, named.map(([name, vector]) => {
        const text = stringify(vector);
        return [el("p", { class: "quiet" }, el("bdi", {}, visible(name)), ` ${count(vector.length)} numbers `, button("Copy", () => copy(text, "The vector"), { class: "link" })), el("div", { class: "numbers" }, text)];
      }));
    } catch (error) {
      replace(body, problem(error));
    }
  });
  return fold;
}

// Shows a row. `changed` is called after the row was edited or deleted.
export async function openPanel(collection, id, { changed = () => {} } = {}) {
  const back = open?.back ?? document.activeElement;
  open?.aside.remove();
  const body = el("div", { class: "panel-body" }, el("p", { class: "quiet" }, "Loading…"));
  const aside = el("aside", { class: "panel", "aria-label": "Row" },
    el("header", {}, el("h2", { tabindex: "-1" }, el("bdi", {}, shorten(visible(id), 120))), button("×", closePanel, { class: "icon", "aria-label": "Close" })), body);
  open = { aside, back };
  document.body.append(aside);
  document.body.classList.add("has-panel");
  aside.querySelector("h2").focus();
  const show = async () => {
    try {
      const [row] = (await rows(collection, { ids: [id] })).rows;
      if (!row) return replace(body, el("p", { class: "quiet" }, "This row no longer exists."));
      const content = el("div", {}, fullPayload(row));
      const edit = () => {
        if (row.payload_bytes > EDIT_MAX) return note(`The payload has ${bytes(row.payload_bytes)}: too large to edit here`, "bad");
        replace(content, editor(collection, row, (saved) => { if (saved) changed(); show(); }));
        content.querySelector("textarea").focus();
      };
      const go = (view) => { location.hash = `#/${view}/${encodeURIComponent(collection)}?row=${encodeURIComponent(id)}`; };
      replace(body,
        el("div", { class: "toolbar" },
          button("Similar", () => go("search")), button("Map", () => go("map")), button("Edit", edit),
          button("Copy id", () => copy(id, "The id")),
          button("Delete", () => confirmDelete(collection, [id], () => { closePanel(); changed(); }), { class: "danger quiet-button" })),
        content, vectorFold(collection, id));
    } catch (error) {
      replace(body, problem(error));
    }
  };
  await show();
}
