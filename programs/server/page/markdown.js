// The Markdown that models write, as nodes. Text goes in as text: HTML stays visible as it was written, links become their text with the address behind
// it, and images their description, so that an answer can lead nobody anywhere and load nothing.
import { el, replace, visible } from "/ui/dom.js";

const TEXT_MAX = 50000, SPAN_MAX = 1000, DEPTH_MAX = 6; // characters of a text and of emphasis, and lists within lists

// ---- within a line

const span = `[^]{0,${SPAN_MAX}}?`;
// Each matches at a position, and makes nodes of what it found.
const INLINE = [
  [/\\([!-/:-@[-`{-~])/y, ([, sign]) => sign],
  [new RegExp(`(\`+)(?!\`)(${span}[^\`])\\1(?!\`)`, "y"), ([, , code]) => el("code", {}, visible(code.replace(/^ (.*[^ ].*) $/, "$1")))],
  [new RegExp(`(\\*\\*|__)(?=\\S)(${span}\\S)\\1(?!\\*)`, "y"), ([, , inner], cite, depth) => el("strong", {}, inline(inner, cite, depth + 1))],
  [new RegExp(`\\*(?=[^\\s*])(${span}[^\\s*])\\*(?!\\*)`, "y"), ([, inner], cite, depth) => el("em", {}, inline(inner, cite, depth + 1))],
  [new RegExp(`(?<![\\p{L}\\p{N}])_(?=[^\\s_])(${span}[^\\s_])_(?![\\p{L}\\p{N}])`, "yu"), ([, inner], cite, depth) => el("em", {}, inline(inner, cite, depth + 1))],
  [new RegExp(`~~(?=\\S)(${span}\\S)~~`, "y"), ([, inner], cite, depth) => el("del", {}, inline(inner, cite, depth + 1))],
  [/!\[([^\]\n]{0,500})\]\([^()\s]{0,1000}(?: "[^"\n]{0,200}")?\)/y, ([, text]) => visible(text)],
  [/\[(\d{1,2}(?:\s*,\s*\d{1,2})*)\](?!\()/y, ([whole, numbers], cite) => {
    const cited = numbers.split(",").map((number) => cite(Number(number)));
    return cited.every(Boolean) ? cited : whole;
  }],
  [/\[([^\]\n]{1,500})\]\(([^()\s]{1,1000})(?: "[^"\n]{0,200}")?\)/y, ([, text, address], cite, depth) => [inline(text, cite, depth + 1), ` (${visible(address)})`]],
];

function inline(text, cite, depth = 0) {
  const nodes = [];
  let plain = "";
  const flush = () => { if (plain) nodes.push(visible(plain)); plain = ""; };
  for (let at = 0; at < text.length;) {
    let found = null;
    if (depth < DEPTH_MAX && "\\`*_~![".includes(text[at]))
      for (const [pattern, make] of INLINE) {
        pattern.lastIndex = at;
        found = pattern.exec(text);
        if (!found) continue;
        flush();
        nodes.push(make(found, cite, depth));
        at += found[0].length;
        break;
      }
    if (found) continue;
    if (text[at] === "\n") {
      flush();
      nodes.push(el("br"));
    } else {
      plain += text[at];
    }
    at++;
  }
  flush();
  return nodes;
}

// ---- lines

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*[\w+-]*\s*$/, HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/, RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/, ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}|$)/, EDGE = /^\s*\|?(?:\s*:?-+:?\s*\|)+\s*:?-*:?\s*$/;

const begins = (line) => [FENCE, HEADING, RULE, QUOTE, ITEM].some((pattern) => pattern.test(line));

function fence(lines, at) {
  const mark = FENCE.exec(lines[at])[1];
  let end = at + 1;
  while (end < lines.length && !(lines[end].trim().startsWith(mark) && FENCE.test(lines[end]))) end++;
  return [el("pre", { class: "value" }, visible(lines.slice(at + 1, end).join("\n"))), end + 1];
}

function quote(lines, at, cite, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end++;
  return [el("blockquote", {}, blocks(lines.slice(at, end).map((line) => line.replace(QUOTE, "")), cite, depth + 1)), end];
}

// Items that follow each other. Lines that are indented belong to the item above; so does a line without a mark right after it.
function list(lines, at, cite, depth) {
  const ordered = /\d/.test(ITEM.exec(lines[at])[2]), items = [];
  const start = ordered ? Number.parseInt(ITEM.exec(lines[at])[2], 10) : 1;
  let end = at;
  while (end < lines.length) {
    const mark = ITEM.exec(lines[end]);
    if (!mark || RULE.test(lines[end]) || /\d/.test(mark[2]) !== ordered) break;
    const width = mark[0].length, own = [lines[end++].slice(width)];
    for (; end < lines.length; end++) {
      const line = lines[end], indent = line.length - line.trimStart().length;
      if (line.trim() === "" ? !/^\s{2,}\S/.test(lines[end + 1] ?? "") : indent < Math.min(2, width) && (lines[end - 1].trim() === "" || begins(line))) break;
      own.push(line.slice(Math.min(indent, width)));
    }
    items.push(el("li", {}, blocks(own, cite, depth + 1)));
    let next = end;
    while (next < lines.length && lines[next].trim() === "") next++;
    if (next > end && ITEM.test(lines[next] ?? "")) end = next;
  }
  return [el(ordered ? "ol" : "ul", { start: ordered && start !== 1 ? start : null }, items), end];
}

function table(lines, at, cite) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inline(cell.trim(), cite));
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end++;
  const head = cells(lines[at]);
  const row = (line) => el("tr", {}, cells(line).slice(0, head.length).map((cell) => el("td", {}, cell)));
  return [el("div", { class: "table-box" }, el("table", {}, el("thead", {}, el("tr", {}, head.map((cell) => el("th", {}, cell)))), el("tbody", {}, lines.slice(at + 2, end).map(row)))), end];
}

function paragraph(lines, at, cite) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== "" && !begins(lines[end])) end++;
  return [el("p", {}, inline(lines.slice(at, end).map((line) => line.trim()).join("\n"), cite)), end];
}

function blocks(lines, cite, depth) {
  const nodes = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    let node = null, next = at + 1;
    if (line.trim() === "") { at++; continue; }
    const heading = HEADING.exec(line);
    if (depth >= DEPTH_MAX) [node, next] = [el("p", {}, visible(lines.slice(at).join("\n"))), lines.length];
    else if (FENCE.test(line)) [node, next] = fence(lines, at);
    else if (heading) node = el(heading[1].length < 3 ? "h3" : "h4", {}, inline(heading[2], cite));
    else if (RULE.test(line)) node = el("hr");
    else if (QUOTE.test(line)) [node, next] = quote(lines, at, cite, depth);
    else if (ITEM.test(line)) [node, next] = list(lines, at, cite, depth);
    else if (line.includes("|") && EDGE.test(lines[at + 1] ?? "")) [node, next] = table(lines, at, cite);
    else [node, next] = paragraph(lines, at, cite);
    nodes.push(node);
    at = next;
  }
  return nodes;
}

// Shows a text in `box`. `cite` makes a node for the number of a source, null if there is none: "[7]" then stays a text.
export function showMarkdown(box, text, cite = () => null) {
  replace(box, blocks(text.slice(0, TEXT_MAX).replace(/\r\n?/g, "\n").replaceAll("\t", "    ").split("\n"), cite, 0));
}
