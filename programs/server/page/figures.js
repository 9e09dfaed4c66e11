// The server's figures over the last minutes, from /metrics in Prometheus's format. They are collected whichever view is shown.
import { text as fetchText } from "/ui/api.js";

export const EVERY_MS = 2000, KEPT = 150; // five minutes

export const samples = [];
let watching = false;

const labelsOf = (text) => Object.fromEntries([...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]));

// The durations of a route: how many requests, their seconds together, and [bound, requests within it] for each bound.
function routeOf(figures, { method, path }) {
  const name = method ? `${method} ${path}` : "no such route";
  if (!figures.routes.has(name)) figures.routes.set(name, { count: 0, seconds: 0, buckets: [] });
  return figures.routes.get(name);
}

// Reads counters by name. The view's own requests do not count.
export function read(text) {
  const figures = { at: performance.now() / 1000, requests: 0, failed: 0, routes: new Map(), queues: [] };
  for (const line of text.split("\n")) {
    const match = /^warpwave_(\w+?)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) continue;
    const name = match[1], labels = labelsOf(match[2] ?? ""), value = Number(match[3]);
    if (labels.path === "/metrics") continue;
    if (name === "requests_total") {
      figures.requests += value;
      if (/^[45]xx$/.test(labels.status)) figures.failed += value;
    } else if (name === "request_duration_seconds_bucket") {
      routeOf(figures, labels).buckets.push([Number(labels.le.replace("+Inf", "Infinity")), value]);
    } else if (name === "request_duration_seconds_sum") {
      routeOf(figures, labels).seconds = value;
    } else if (name === "request_duration_seconds_count") {
      routeOf(figures, labels).count = value;
    } else if (name === "queue_length") {
      figures.queues.push({ kind: labels.kind, name: labels.name, value });
    } else if (match[2] === undefined) {
      figures[name] = value;
    }
  }
  return figures;
}

async function sample() {
  try {
    if (!document.hidden) samples.push(read(await fetchText("/metrics")));
    if (samples.length > KEPT) samples.shift();
    dispatchEvent(new Event("metrics"));
  } catch { /* the frame says that the server does not answer */ }
  setTimeout(sample, EVERY_MS);
}

// Starts collecting figures.
export function watch() {
  if (!watching) sample();
  watching = true;
}

// What a route did between two samples; before its first answer a sample has nothing of it.
function since(before, after) {
  const first = new Map(before?.buckets ?? []);
  return { count: after.count - (before?.count ?? 0), seconds: after.seconds - (before?.seconds ?? 0), buckets: after.buckets.map(([bound, value]) => [bound, value - (first.get(bound) ?? 0)]) };
}

// The least bound within which a share of the requests was answered; Infinity beyond the last one, null without requests.
function within({ count, buckets }, share) {
  if (count <= 0) return null;
  return buckets.find(([, value]) => value >= share * count)?.[0] ?? Infinity;
}

// The same for all routes together.
export function quantile(before, after, share) {
  const all = { count: 0, buckets: [] }, sums = new Map();
  for (const [name, route] of after.routes) {
    const added = since(before.routes.get(name), route);
    all.count += added.count;
    for (const [bound, value] of added.buckets) sums.set(bound, (sums.get(bound) ?? 0) + value);
  }
  all.buckets = [...sums].sort(([a], [b]) => a - b);
  const found = within(all, share);
  return found === Infinity ? all.buckets.at(-2)[0] : found;
}

// Were the counters of `after` counted on from `before`? Fewer requests: the server was restarted.
const continues = (before, after) => after.requests >= before.requests;

// The routes that were asked for in the last minutes, those that took the most time first.
export function routeTable(all = samples) {
  const last = all.at(-1);
  let first = all.length - 1;
  while (first > 0 && continues(all[first - 1], all[first])) first--;
  if (!last || first === all.length - 1) return [];
  const list = [...last.routes].map(([name, route]) => ({ name, ...since(all[first].routes.get(name), route) })).filter((route) => route.count > 0);
  return list.sort((a, b) => b.seconds - a.seconds).map((route) => ({ ...route, half: within(route, 0.5), most: within(route, 0.95) }));
}

// [second, value] for each sample but the first; null where the server was restarted.
export function series(of) {
  return samples.slice(1).map((after, i) => [after.at, continues(samples[i], after) ? of(samples[i], after, after.at - samples[i].at) : null]);
}
