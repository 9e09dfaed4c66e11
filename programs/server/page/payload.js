// How payloads are shown: a title and a line for lists, every key in the side panel.
import { bytes, button, count, el, replace, shorten, visible } from "/ui/dom.js";
import { isNumber, stringify } from "/ui/json.js";

const TITLES = /^(title|name|words?|label|heading|subject|headline)$/i;
const TEXT = "text"; // what was embedded, beside the payload
const SHOWN_MAX = 100000; // characters of one value that are put into the page

export const idText = (id) => String(id);

const isText = (value) => typeof value === "string";

export function inline(value, length = 80) {
  if (value === undefined || value === null) return "";
  const text = isText(value) ? value.slice(0, 4 * length) : isNumber(value) || typeof value === "boolean" ? String(value) : shorten(stringify(value), 4 * length);
  return shorten(visible(text).replace(/\s+/g, " "), length);
}

// The fields that were chosen as titles, by collection. A reload forgets them.
const chosen = new Map();
export const titleKey = (collection) => chosen.get(collection);
export const chooseTitle = (collection, key) => (key ? chosen.set(collection, key) : chosen.delete(collection));

// The value of a field, "author.name", say.
export const valueAt = (payload, key) => key.split(".").reduce((value, part) => (value && typeof value === "object" ? value[part] : undefined), payload);

// A summary of a row: {title, body, rest}; body is a text of at most `length` characters, rest has [key, value] of the other short values. `key` names
// the field with the title. `find` returns where in the text something was found, -1 for nowhere: the body then begins shortly before it.
export function summary(row, length = 320, key = undefined, find = () => -1) {
  const payload = row.text === undefined ? row.payload : { ...row.payload, [TEXT]: row.text };
  if (!payload || typeof payload !== "object" || Array.isArray(payload))
    return { title: "", body: row.preview ? visible(row.preview) + "…" : row.text ? inline(row.text, length) : "", rest: [] };
  const keys = Object.keys(payload);
  const given = key === undefined ? undefined : valueAt(payload, key);
  const title = given === undefined || given === null ? keys.find((one) => TITLES.test(one) && isText(payload[one])) : key;
  const texts = keys.filter((key) => key !== title && isText(payload[key]) && payload[key].length > 24);
  const body = texts.sort((a, b) => payload[b].length - payload[a].length)[0];
  const rest = keys.filter((key) => key !== title && key !== body && key !== TEXT && payload[key] !== null && typeof payload[key] !== "object");
  return {
    title: title ? inline(given ?? payload[title], 120) : "",
    body: body ? excerpt(payload[body], length, find) : "",
    rest: rest.slice(0, 6).map((key) => [inline(key, 24), inline(payload[key], 40)]),
  };
}

// All texts of a row: what was embedded, and those of its payload.
export const textsOf = ({ text, preview, payload }) => [...new Set([text, preview, ...(payload && typeof payload === "object" ? Object.values(payload) : [])].filter(isText))];

function excerpt(text, length, find) {
  const at = find(text.slice(0, SHOWN_MAX));
  const from = at > length / 2 ? text.lastIndexOf(" ", at - 40) + 1 : 0;
  return (from > 0 ? "…" : "") + inline(text.slice(from), length);
}

// ---- words that were searched for

const WORD = /[\p{L}\p{N}]+/gu;
const folded = (word) => word.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
export const wordsOf = (text) => [...text.matchAll(WORD)].map((match) => ({ at: match.index, word: match[0], folded: folded(match[0]) }));

// A function that marks the words of a query in a text, in any case and with any accents, and one that finds the first of them.
export function marker(query) {
  const wanted = new Set(wordsOf(query ?? "").map((one) => one.folded));
  const hits = (text) => (wanted.size ? wordsOf(text).filter((one) => wanted.has(one.folded)) : []);
  const mark = (text) => {
    const nodes = [];
    let done = 0;
    for (const { at, word } of hits(text)) {
      nodes.push(text.slice(done, at), el("mark", {}, word));
      done = at + word.length;
    }
    return [...nodes, text.slice(done)];
  };
  return { mark, find: (text) => hits(text)[0]?.at ?? -1 };
}

function textValue(value) {
  const box = el("div", { class: "value text" });
  const part = (length) => visible(value.slice(0, length));
  const long = value.length > 600;
  replace(box, el("bdi", {}, part(long ? 500 : value.length) + (long ? "…" : "")));
  if (long) {
    const whole = Math.min(value.length, SHOWN_MAX);
    const text = whole < value.length ? `Show the first ${count(whole)} of ${count(value.length)} characters` : `Show all ${count(value.length)} characters`;
    box.append(button(text, (event) => { event.target.remove(); box.firstChild.textContent = part(whole); }, { class: "link" }));
  }
  return box;
}

function shownValue(value) {
  if (isText(value)) return textValue(value);
  if (value === null || typeof value !== "object" || isNumber(value))
    return el("div", { class: `value ${value === null ? "none" : "number"}` }, String(value));
  return el("pre", { class: "value" }, shorten(visible(stringify(value, 2)), SHOWN_MAX));
}

export function fullPayload(row) {
  const payload = row.payload;
  if (row.text !== undefined) return el("div", {}, el("dl", { class: "payload" }, el("dt", {}, "text that was embedded"), el("dd", {}, textValue(row.text))), payload ? fullPayload({ payload }) : null);
  if (payload === null || payload === undefined) return el("p", { class: "quiet" }, "This row has no payload.");
  if (typeof payload !== "object" || Array.isArray(payload)) return shownValue(payload);
  const keys = Object.keys(payload);
  if (!keys.length) return el("p", { class: "quiet" }, "The payload is empty.");
  return el("dl", { class: "payload" }, keys.map((key) => [el("dt", {}, el("bdi", {}, visible(shorten(key, 200)))), el("dd", {}, shownValue(payload[key]))]));
}

// One row in a list of results. `lead` stands before it, `actions` behind; the words of `query` are marked.
export function rowCard(row, { collection, lead, actions = [], open, query }) {
  const { mark, find } = marker(query);
  const { title, body, rest } = summary(row, 320, titleKey(collection), find);
  const id = idText(row.id);
  return el("li", { class: "card hit", "data-id": id },
    lead,
    el("div", { class: "hit-text" },
      el("div", { class: "hit-head" },
        button(title ? el("span", {}, mark(title)) : shorten(visible(id), 60), open, { class: "title", title: "Open the row" }),
        title && el("bdi", { class: "id" }, shorten(visible(id), 60))),
      body && el("p", {}, el("bdi", {}, mark(body))),
      row.payload === undefined && row.payload_bytes > 0 && el("p", { class: "quiet" }, `The payload has ${bytes(row.payload_bytes)}; open the row to see it.`),
      rest.length > 0 && el("div", { class: "chips" }, rest.map(([key, value]) => el("span", { class: "chip" }, el("b", {}, key), " ", el("bdi", {}, mark(value)))))),
    el("div", { class: "hit-actions" }, actions));
}
