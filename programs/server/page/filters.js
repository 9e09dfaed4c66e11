// Filters built from the payloads' own keys, with the existing values and their counts.
import { ask, collectionPath, ownPath, result } from "/ui/api.js";
import { button, count, el, replace, select, visible } from "/ui/dom.js";
import { inline } from "/ui/payload.js";

const known = new Map(); // collection: promise of fields

export function fieldsOf(collection) {
  if (!known.has(collection)) {
    const asked = result("GET", ownPath(collection, "/fields")).then((answer) => answer.fields);
    asked.catch(() => known.delete(collection));
    known.set(collection, asked);
  }
  return known.get(collection);
}

export const forgetFields = (collection) => known.delete(collection);

export const facet = async (collection, key, filter, limit = 50) =>
  (await ask("POST", `${collectionPath(collection)}/facet`, { key, limit, filter })).result.hits;

const WAYS = {
  is: "is", not: "is not", contains: "contains", words: "has the words", between: "is between", there: "exists", missing: "is missing",
};

function waysOf(field) {
  const ways = [];
  if (field.types.includes("text") || field.types.includes("bool") || field.types.includes("number") || field.types.includes("list")) ways.push("is", "not");
  if (field.types.includes("text") || field.types.includes("list")) ways.push("contains", "words");
  if (field.types.includes("number")) ways.unshift("between");
  return [...ways, "there", "missing"];
}

// A text field with many values is first filtered by words, one with few by value.
class Condition {
  constructor(builder, field) {
    this.builder = builder;
    this.field = field;
    this.input = el("span", { class: "condition-value" });
    this.key = select(builder.fields.map((one) => [one.key, inline(one.key, 40)]), field.key, (key) => {
      this.field = builder.fields.find((one) => one.key === key);
      this.reset();
    });
    this.key.setAttribute("aria-label", "Field");
    this.way = el("select", { "aria-label": "Condition", onchange: () => this.showInput() });
    this.node = el("div", { class: "condition" }, this.key, this.way, this.input,
      button("×", () => builder.remove(this), { class: "icon", "aria-label": "Remove this filter" }));
    this.reset();
  }

  reset() {
    replace(this.way, waysOf(this.field).map((way) => el("option", { value: way }, WAYS[way])));
    this.showInput();
  }

  changed() { this.builder.onchange(); }

  async showInput() {
    const way = this.way.value;
    this.read = () => null;
    if (way === "is" || way === "not") {
      replace(this.input, el("span", { class: "quiet" }, "counting…"));
      try {
        const hits = await facet(this.builder.collection, this.field.key);
        if (this.way.value !== way) return;
        const list = select([["", "choose…"], ...hits.map((hit, i) => [String(i), `${inline(hit.value, 50)} (${count(hit.count)})`])], "", () => this.changed());
        list.setAttribute("aria-label", "Value");
        replace(this.input, list);
        this.read = () => (list.value === "" ? null : { key: this.field.key, match: { value: hits[Number(list.value)].value } });
      } catch (error) {
        replace(this.input, el("span", { class: "quiet" }, visible(error.message)));
      }
      return;
    }
    if (way === "between") {
      const box = (label) => el("input", { type: "number", step: "any", placeholder: label, "aria-label": label, onchange: () => this.changed() });
      const low = box("from"), high = box("to");
      replace(this.input, low, high);
      this.read = () => {
        const range = {};
        if (low.value !== "") range.gte = Number(low.value);
        if (high.value !== "") range.lte = Number(high.value);
        return Object.keys(range).length ? { key: this.field.key, range } : null;
      };
    } else if (way === "contains" || way === "words") {
      const box = el("input", { type: "text", "aria-label": "Text", onchange: () => this.changed() });
      replace(this.input, box);
      this.read = () => (box.value ? { key: this.field.key, match: way === "words" ? { text: box.value } : { substring: box.value } } : null);
    } else {
      replace(this.input);
      this.read = () => ({ is_empty: { key: this.field.key } });
      this.changed();
    }
  }
}

export class FilterBuilder {
  constructor(collection, onchange = () => {}) {
    this.collection = collection;
    this.onchange = onchange;
    this.conditions = [];
    this.list = el("div", { class: "conditions" });
    this.adder = button("+ Add a filter", () => this.add(), { class: "link" });
    this.node = el("div", { class: "filters" }, this.list, this.adder);
  }

  async add() {
    this.fields = await fieldsOf(this.collection);
    this.fields = this.fields.filter((field) => !(field.types.length === 1 && field.types[0] === "object"));
    if (!this.fields.length) {
      replace(this.adder, "No row has a payload to filter by");
      return;
    }
    const condition = new Condition(this, this.fields[0]);
    this.conditions.push(condition);
    this.list.append(condition.node);
    condition.key.focus();
  }

  remove(condition) {
    this.conditions = this.conditions.filter((one) => one !== condition);
    condition.node.remove();
    this.adder.focus();
    this.onchange();
  }

  // A filter of Qdrant's API, or undefined. `more` are conditions that must hold as well.
  filter(more = []) {
    const must = [...more], must_not = [];
    for (const condition of this.conditions) {
      const read = condition.read();
      if (read) (["not", "there"].includes(condition.way.value) ? must_not : must).push(read);
    }
    const filter = {};
    if (must.length) filter.must = must;
    if (must_not.length) filter.must_not = must_not;
    return must.length + must_not.length ? filter : undefined;
  }
}

// Conditions for rows that have the text in one of their fields.
export async function anywhere(collection, text) {
  const fields = (await fieldsOf(collection)).filter((field) => field.types.includes("text") || field.types.includes("list"));
  return fields.length ? { should: fields.map((field) => ({ key: field.key, match: { substring: text } })) } : null;
}
