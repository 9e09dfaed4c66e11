// The frame around the views: navigation, the key, and the message when the server does not answer.
import { listen, overview, setKey } from "/ui/api.js";
import { button, dialog, el, field, problem, replace, select, visible } from "/ui/dom.js";
import { closePanel } from "/ui/panel.js";

const VIEWS = [
  ["collections", "Collections", () => import("/ui/collections.js")],
  ["search", "Search", () => import("/ui/search.js")],
  ["map", "Map", () => import("/ui/map.js")],
  ["rows", "Rows", () => import("/ui/rows.js")],
  ["ask", "Ask", () => import("/ui/ask.js")],
  ["server", "Server", () => import("/ui/server.js")],
];
const WITHOUT_COLLECTION = new Set(["collections", "server"]);

const root = el("main", { id: "main", tabindex: "-1" });
const picker = el("div", { class: "picker" });
const nav = el("nav", { "aria-label": "Views" });
const offline = el("div", { class: "offline", role: "alert", hidden: true }, "The server does not answer. Trying again…");
let known = null; // the last overview
let leave = null;
let shown = 0;
let current = { view: "collections", collection: "" };

// #/search/glosses?row=12
function place() {
  const [path, parameters = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, collection = ""] = path.split("/");
  let name = "";
  try { name = decodeURIComponent(collection); } catch { /* not one of ours */ }
  return { view: VIEWS.some(([key]) => key === view) ? view : "collections", collection: name, parameters: new URLSearchParams(parameters) };
}

const address = (view, collection) => `#/${view}${collection && !WITHOUT_COLLECTION.has(view) ? "/" + encodeURIComponent(collection) : ""}`;

function drawFrame() {
  replace(nav, VIEWS.map(([view, text]) => el("a", { href: address(view, current.collection), "aria-current": view === current.view ? "page" : null }, text)));
  nav.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  const names = known ? known.collections.map((one) => one.name) : [];
  if (!names.length) return replace(picker);
  const list = select(names.map((name) => [name, visible(name)]), names.includes(current.collection) ? current.collection : undefined, (name) => {
    location.hash = address(WITHOUT_COLLECTION.has(current.view) ? "search" : current.view, name);
  });
  replace(picker, field("Collection", list));
}

function refresh(all) {
  known = all;
  const names = all.collections.map((one) => one.name);
  if (!names.includes(current.collection)) current.collection = names[0] ?? "";
  drawFrame();
}

async function show() {
  const turn = ++shown;
  const { view, collection, parameters } = place();
  closePanel();
  leave?.();
  leave = null;
  current = { view, collection: collection || current.collection };
  drawFrame();
  replace(root, el("p", { class: "quiet loading" }, "Loading…"));
  document.title = `${VIEWS.find(([key]) => key === view)[1]} · Warpwave`;
  const box = el("div", { class: `view ${view}` });
  try {
    const module = await VIEWS.find(([key]) => key === view)[2]();
    if (view !== "collections") refresh(await overview());
    const info = known?.collections.find((one) => one.name === current.collection);
    if (turn !== shown) return;
    if (!WITHOUT_COLLECTION.has(view) && (!info || info.failure)) {
      replace(root, info?.failure ? problem(info.failure) : el("div", { class: "empty" }, el("p", {}, "There is no collection yet."), el("p", {}, el("a", { href: "#/collections" }, "Create one"))));
      return;
    }
    replace(root, box);
    const left = await module.mount(box, { collection: current.collection, info, all: known, parameters, refresh });
    if (turn === shown) leave = left;
    else left?.();
  } catch (error) {
    if (turn === shown) replace(root, problem(error), button("Try again", show));
  }
}

// ---- the key

let asking = null;
function askKey(wrong) {
  asking ??= new Promise((done) => {
    const input = el("input", { type: "password", autocomplete: "off", required: true });
    dialog("This server needs a key", el("div", { class: "form" },
      wrong && el("p", { class: "problem" }, "The server does not accept this key."),
      field("Key", input), el("p", { class: "quiet" }, "The key stays in the memory of this tab. A reload forgets it.")), {
      action: "Use this key", cancel: false,
      submit: () => { setKey(input.value); asking = null; done(); },
    });
    input.focus();
  });
  return asking;
}

// ---- light and dark

const themes = ["system", "light", "dark"];
const themeButton = button("", () => setTheme(themes[(themes.indexOf(theme) + 1) % themes.length]), { class: "theme quiet-button" });
let theme = "system";
function setTheme(value) {
  theme = value;
  document.documentElement.dataset.theme = value;
  themeButton.textContent = `Colours: ${value}`;
  dispatchEvent(new Event("themechange"));
}

listen({
  key: askKey,
  reach: (reachable) => {
    offline.hidden = reachable;
    if (reachable && root.querySelector(".problem")) show();
  },
});
setTheme("system");
document.body.append(
  el("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); root.focus(); } }, "Skip to the content"),
  el("div", { class: "side" }, el("a", { class: "brand", href: "#/collections" }, el("img", { src: "/ui/icon.svg", alt: "", width: 28, height: 28 }), "Warpwave"), picker, nav, el("div", { class: "side-end" }, themeButton)),
  el("div", { class: "stage" }, offline, root));
addEventListener("hashchange", show);
show().then(() => import("/ui/figures.js")).then((figures) => figures.watch(), () => {});
