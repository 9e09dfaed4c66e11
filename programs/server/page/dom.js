// Building the page. Text goes in as text: there is no HTML from strings anywhere.

// el("button", {class: "primary", onclick: f, disabled: true}, "Search", icon)
export function el(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "value") node.value = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export const button = (text, onclick, properties = {}) => el("button", { type: "button", onclick, ...properties }, text);

let fields = 0;
// A label above its control, or beside it.
export function field(label, control, properties = {}) {
  control.id ||= `field-${++fields}`;
  return el("div", { class: "field", ...properties }, el("label", { for: control.id }, label), control);
}

export function select(options, value, onchange) {
  const node = el("select", { onchange: () => onchange && onchange(node.value) });
  for (const option of options) {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    node.append(el("option", { value: key }, text));
  }
  if (value !== undefined) node.value = value;
  return node;
}

export const replace = (node, ...children) => node.replaceChildren(...children.flat(Infinity).filter(Boolean));

// ---- words and numbers

const whole = new Intl.NumberFormat("en");
export const count = (n) => whole.format(typeof n === "object" ? Number(n) : n);
export const plural = (n, one, many = one + "s") => `${count(n)} ${Number(n) === 1 ? one : many}`;

export function bytes(n) {
  n = Number(n);
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) { n /= 1000; unit++; }
  return `${n < 10 && unit ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

export const deviceText = (id) => (id === "cpu" ? "the CPU" : id);

export function duration(seconds) {
  if (seconds < 0.0995) return `${(seconds * 1000).toFixed(seconds < 0.00995 ? 2 : 1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} minutes` : `${Math.round(seconds / 3600)} hours`;
}

// Makes control characters and bidirectional controls in foreign text visible.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
export const visible = (text) =>
  text.replace(UNSEEN, (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

// The name of a vector, which may be "".
export const vectorName = (name) => visible(name) || "without a name";

export const shorten = (text, length) => (text.length > length ? text.slice(0, length) + "…" : text);

// ---- messages and dialogs

const notes = el("div", { class: "notes", role: "status", "aria-live": "polite" });

export function note(text, kind = "") {
  if (!notes.isConnected) document.body.append(notes);
  const one = el("div", { class: `note ${kind}` }, visible(shorten(text, 400)));
  notes.append(one);
  setTimeout(() => one.remove(), kind === "bad" ? 9000 : 4000);
}

export const problem = (error) =>
  el("div", { class: "problem", role: "alert" }, el("strong", {}, "That did not work: "), visible(shorten(String(error.message || error), 2000)));

// A dialog with a form. `submit` may return false, or throw, to keep it open.
export function dialog(title, content, { action = "OK", danger = false, submit, cancel = true }) {
  const failure = el("div");
  const send = el("button", { type: "submit", class: danger ? "danger" : "primary" }, action);
  const form = el("form", { method: "dialog" }, el("h2", {}, title), content, failure,
    el("div", { class: "actions" }, cancel && button("Cancel", () => box.close()), send));
  const box = el("dialog", { "aria-label": title }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      if ((await submit()) !== false) box.close();
    } catch (error) {
      replace(failure, problem(error));
    }
    send.disabled = false;
  });
  if (!cancel) box.addEventListener("cancel", (event) => event.preventDefault());
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return { box, send };
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    note(`${what} copied`);
  } catch {
    note("The browser does not allow copying here", "bad");
  }
}

// Offers bytes as a file.
export function download(name, parts, type) {
  const link = el("a", { download: name, href: URL.createObjectURL(new Blob(parts, { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
