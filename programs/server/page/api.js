// Requests to the server that sent the page, and to no other. The key lives in this variable only: a reload forgets it.
import { download } from "/ui/dom.js";
import { parse, stringify } from "/ui/json.js";

let key = "";
const listeners = { key: null, reach: null };
let reachable = true;

export const setKey = (text) => { key = text; };
export const hasKey = () => key !== "";
// `key` is called when a key is needed and returns a promise of one; `reach` when the server stops or starts to answer.
export const listen = (handlers) => Object.assign(listeners, handlers);

function reached(value) {
  if (value === reachable) return;
  reachable = value;
  listeners.reach?.(value);
  if (!value) setTimeout(look, 1000);
}

// Waits until the server is ready. One that is loading answers some requests already.
async function look() {
  try {
    const answer = await fetch("/readyz", { cache: "no-store" });
    if (answer.ok) return reached(true);
  } catch { /* not yet */ }
  setTimeout(look, 1000);
}

export class ApiError extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

function messageOf(text, status) {
  try {
    const value = parse(text);
    return String(value.status?.error ?? value.error?.message ?? text);
  } catch {
    return text || `the server answered ${status}`;
  }
}

// The raw answer of any request. `body` is a text or undefined.
export async function send(method, path, body, signal) {
  const headers = {};
  if (body !== undefined) headers["content-type"] = "application/json";
  if (key) headers["api-key"] = key;
  try {
    return await fetch(path, { method, headers, body, signal, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name !== "AbortError") reached(false);
    throw error.name === "AbortError" ? error : new ApiError(0, "the server does not answer");
  }
}

async function checked(method, path, body, signal) {
  for (;;) {
    const answer = await send(method, path, body === undefined ? undefined : stringify(body), signal);
    if (answer.ok) return answer;
    const text = await answer.text();
    if (answer.status === 401 && listeners.key) {
      await listeners.key(key !== "");
      continue;
    }
    throw new ApiError(answer.status, messageOf(text, answer.status));
  }
}

export const ask = async (method, path, body, signal) => parse(await (await checked(method, path, body, signal)).text());
export const result = async (method, path, body, signal) => (await ask(method, path, body, signal)).result;
export const binary = async (path, signal) => (await checked("GET", path, undefined, signal)).arrayBuffer();
export const sendBinary = async (method, path, body) => (await checked(method, path, body)).arrayBuffer();
export const text = async (path) => (await checked("GET", path)).text();

const name = (text) => encodeURIComponent(text);
export const collectionPath = (collection) => `/collections/${name(collection)}`;
// `rest` is "/map", say; `using` the name of a vector if vectors have names.
export const ownPath = (collection, rest = "", using = undefined) => `/warpwave/collections/${name(collection)}${rest}${using === undefined ? "" : `?using=${name(using)}`}`;

export const overview = () => result("GET", "/warpwave/overview");
export const rows = (collection, body, { signal, using } = {}) => result("POST", ownPath(collection, "/rows", using), body, signal);

// Copies the store into a file that the browser saves; returns its size. `progress` is told the bytes that have arrived, and all.
export async function backup(signal, progress) {
  const answer = await checked("POST", "/warpwave/backup", undefined, signal);
  const total = Number(answer.headers.get("content-length")), reader = answer.body.getReader(), parts = [];
  let done = 0;
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    parts.push(piece.value);
    done += piece.value.length;
    progress(done, total);
  }
  if (done !== total) throw new ApiError(0, "the server stopped in the middle of the backup");
  const name = /filename="([\w.-]+)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1] ?? "backup.db";
  download(name, parts, "application/vnd.sqlite3");
  return done;
}

// Server-sent events, each as a value; ends with the stream.
export async function* events(path, body, signal) {
  const answer = await checked("POST", path, body, signal);
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let waiting = "";
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      if (error.name !== "AbortError") reached(false);
      throw error.name === "AbortError" ? error : new ApiError(0, "the server stopped in the middle of the answer");
    }
    if (piece.done) return;
    waiting += decoder.decode(piece.value, { stream: true });
    for (let end = waiting.indexOf("\n\n"); end >= 0; end = waiting.indexOf("\n\n")) {
      const event = waiting.slice(0, end);
      waiting = waiting.slice(end + 2);
      const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n");
      if (data === "[DONE]") return;
      if (data) yield parse(data);
    }
  }
}
