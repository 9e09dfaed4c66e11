// JSON that loses nothing. JavaScript's own parser rounds integers beyond 2^53; here they are BigInt, ids always are, and any
// other number that would not be written back as it came keeps its text.

const ID_KEYS = new Set(["id", "next_page_offset"]);

class KeptNumber {
  constructor(text) { this.text = text; }
  valueOf() { return Number(this.text); }
  toString() { return this.text; }
}

const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

class Reader {
  constructor(text) { this.text = text; this.at = 0; }

  fail(what) { throw new SyntaxError(`${what} at character ${this.at + 1}`); }

  space() {
    for (;;) {
      const c = this.text.charCodeAt(this.at);
      if (c !== 32 && c !== 10 && c !== 13 && c !== 9) return;
      this.at++;
    }
  }

  string() {
    const start = this.at;
    for (let end = start + 1; ; end++) {
      end = this.text.indexOf('"', end);
      if (end < 0) this.fail("a string that does not end");
      let escapes = 0;
      while (this.text[end - 1 - escapes] === "\\") escapes++;
      if (escapes % 2 === 0) {
        this.at = end + 1;
        return JSON.parse(this.text.slice(start, this.at));
      }
    }
  }

  number(key) {
    NUMBER.lastIndex = this.at;
    const match = NUMBER.exec(this.text);
    if (!match) this.fail("this is not a JSON value");
    const text = match[0];
    this.at += text.length;
    if (/^-?\d+$/.test(text) && (ID_KEYS.has(key) || text.length > 15)) return BigInt(text);
    const value = Number(text);
    return String(value) === text ? value : new KeptNumber(text);
  }

  list() {
    const values = [];
    this.at++;
    this.space();
    if (this.text[this.at] === "]") { this.at++; return values; }
    for (;;) {
      values.push(this.value(""));
      this.space();
      const c = this.text[this.at++];
      if (c === "]") return values;
      if (c !== ",") { this.at--; this.fail("a comma or ] is missing"); }
    }
  }

  // A Map would show a key "__proto__" as well, but so does an object without a prototype.
  object() {
    const values = Object.create(null);
    this.at++;
    this.space();
    if (this.text[this.at] === "}") { this.at++; return values; }
    for (;;) {
      this.space();
      if (this.text[this.at] !== '"') this.fail("a key is missing");
      const key = this.string();
      this.space();
      if (this.text[this.at] !== ":") this.fail("a colon is missing");
      this.at++;
      values[key] = this.value(key);
      this.space();
      const c = this.text[this.at++];
      if (c === "}") return values;
      if (c !== ",") { this.at--; this.fail("a comma or } is missing"); }
    }
  }

  value(key) {
    this.space();
    const c = this.text[this.at];
    if (c === "{") return this.object();
    if (c === "[") return this.list();
    if (c === '"') return this.string();
    for (const [word, value] of [["true", true], ["false", false], ["null", null]])
      if (this.text.startsWith(word, this.at)) { this.at += word.length; return value; }
    return this.number(key);
  }
}

export function parse(text) {
  const reader = new Reader(text);
  const value = reader.value("");
  reader.space();
  if (reader.at < text.length) reader.fail("unexpected text after the value");
  return value;
}

export const isNumber = (value) => typeof value === "number" || typeof value === "bigint" || value instanceof KeptNumber;

// Invisible characters and bidirectional controls: always written as escapes.
const UNSEEN = /[\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
const escaped = (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0");

export function stringify(value, indent = 0, level = 0) {
  if (isNumber(value)) return String(value);
  if (typeof value === "string") return JSON.stringify(value).replace(UNSEEN, escaped);
  if (value === null || typeof value === "boolean") return String(value);
  const line = indent ? "\n" + " ".repeat(indent * (level + 1)) : "";
  const last = indent ? "\n" + " ".repeat(indent * level) : "";
  const inner = (one) => stringify(one, indent, level + 1);
  if (Array.isArray(value)) {
    if (value.every(isNumber)) return "[" + value.map(String).join(indent ? ", " : ",") + "]";
    return value.length ? "[" + value.map((one) => line + inner(one)).join(",") + last + "]" : "[]";
  }
  const keys = Object.keys(value).filter((key) => value[key] !== undefined);
  const colon = indent ? ": " : ":";
  return keys.length ? "{" + keys.map((key) => line + stringify(key) + colon + inner(value[key])).join(",") + last + "}" : "{}";
}
