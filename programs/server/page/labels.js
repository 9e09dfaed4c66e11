// Names for the regions of a map: where points crowd, the words that are frequent there and rare elsewhere. Only some rows of each region are read.
import { el, replace } from "/ui/dom.js";
import { textsOf, wordsOf } from "/ui/payload.js";

const LETTERS_MIN = 3, SHARE_MAX = 0.2; // of a word that names a region: its letters, and the share of all rows that may have it
const REGIONS = 14, ROWS_EACH = 40, SIDE_MAX = 48, CROWD = 4; // at most so many regions, rows read of each, cells to a side; points of the smallest crowd

// The peaks of the points' density, the highest first, none close to another: their middle and the points around it.
export function regionsOf(points, bounds) {
  const n = points.length / 2, side = Math.max(4, Math.min(SIDE_MAX, Math.round(Math.sqrt(n / 6))));
  const cell = (at, low, size) => Math.max(0, Math.min(side - 1, Math.floor(((at - low) / size) * side)));
  const members = Array.from({ length: side * side }, () => []);
  for (let i = 0; i < n; i++) members[cell(points[2 * i + 1], bounds.y, bounds.height) * side + cell(points[2 * i], bounds.x, bounds.width)].push(i);
  const around = (c) => {
    const found = [], column = c % side, line = Math.floor(c / side);
    for (let y = Math.max(0, line - 1); y <= Math.min(side - 1, line + 1); y++)
      for (let x = Math.max(0, column - 1); x <= Math.min(side - 1, column + 1); x++) found.push(y * side + x);
    return found;
  };
  const crowd = members.map((_, c) => around(c).reduce((sum, other) => sum + members[other].length, 0));
  const order = [...crowd.keys()].filter((c) => members[c].length && crowd[c] >= CROWD).sort((a, b) => crowd[b] - crowd[a] || a - b);
  const apart = Math.max(2, side / 6), chosen = [];
  for (const c of order) {
    if (chosen.length === REGIONS) break;
    if (chosen.every((one) => Math.hypot((one % side) - (c % side), Math.floor(one / side) - Math.floor(c / side)) >= apart)) chosen.push(c);
  }
  return chosen.map((c) => {
    const inside = around(c).flatMap((other) => members[other]).sort((a, b) => a - b);
    const middle = (axis) => inside.reduce((sum, i) => sum + points[2 * i + axis], 0) / inside.length;
    const step = Math.max(1, inside.length / ROWS_EACH);
    return { x: middle(0), y: middle(1), points: Array.from({ length: Math.min(inside.length, ROWS_EACH) }, (_, k) => inside[Math.floor(k * step)]) };
  });
}

const namesIn = (text) => new Set(wordsOf(text).filter(({ word }) => [...word].length >= LETTERS_MIN && /\p{L}/u.test(word)).map(({ word }) => word.toLowerCase()));

// The text of a row that its region may be named by.
export const textOf = (row) => textsOf(row).join(" ");

// One or two words for each region from the texts of its rows; "" where no word stands out. A word that names a denser region does not name another.
export function nameRegions(texts) {
  const counts = texts.map((list) => {
    const words = new Map();
    for (const text of list) for (const word of namesIn(text)) words.set(word, (words.get(word) ?? 0) + 1);
    return words;
  });
  const rows = texts.reduce((sum, list) => sum + list.length, 0), all = new Map(), used = new Set();
  for (const words of counts) for (const [word, count] of words) all.set(word, (all.get(word) ?? 0) + count);
  return counts.map((words, region) => {
    const here = texts[region].length;
    const scored = [...words].filter(([word, count]) => count >= Math.max(2, 0.1 * here) && all.get(word) <= Math.max(SHARE_MAX * rows, count) && !used.has(word)).map(([word, count]) => {
      const share = count / here;
      return [word, share * Math.log(share / (all.get(word) / rows))];
    });
    const best = scored.filter(([, score]) => score > 0.05).sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, 2).filter(([, score], i, list) => i === 0 || score > 0.6 * list[0][1]);
    for (const [word] of best) used.add(word);
    return best.map(([word]) => word).join(", ");
  });
}

// The labels over a plot's canvas. They move with it; one that would cover an earlier one is left out.
export class Labels {
  constructor(plot) {
    this.plot = plot;
    this.node = el("div", { class: "labels", "aria-hidden": "true" });
    this.list = [];
  }

  // `list` has {x, y, text}, the most important first.
  show(list) {
    this.list = list.filter((one) => one.text).map((one) => ({ ...one, node: el("span", {}, one.text) }));
    replace(this.node, this.list.map((one) => one.node));
    for (const one of this.list) Object.assign(one, { width: one.node.offsetWidth, height: one.node.offsetHeight });
    this.place();
  }

  place() {
    const { clientWidth, clientHeight } = this.plot.canvas, kept = [];
    for (const one of this.list) {
      const [x, y] = this.plot.pixelAt(one.x, one.y), left = Math.max(4, Math.min(clientWidth - one.width - 4, x - one.width / 2)), top = y - one.height / 2;
      const seen = x >= 0 && y >= 0 && x <= clientWidth && y <= clientHeight;
      const free = kept.every((other) => left > other.left + other.width || other.left > left + one.width || top > other.top + other.height || other.top > top + one.height);
      one.node.hidden = !seen || !free;
      if (!seen || !free) continue;
      kept.push({ left, top, width: one.width, height: one.height });
      one.node.style.transform = `translate(${left.toFixed(1)}px, ${top.toFixed(1)}px)`;
    }
  }
}
