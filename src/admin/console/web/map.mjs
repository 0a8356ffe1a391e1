/* Draws the load by key and time, and the hosts, on canvases. */
import { hostName } from "./words.mjs";

/** Requests a second at which the next colour begins. */
export const STEPS = [1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000];
const HEAT = {
  light: ["#eceff3", "#cfe1f7", "#9dc6ef", "#62a8dd", "#2f8fb5", "#3f9e6b", "#a3b32b", "#e8b012", "#ee7d1a", "#d93a2b", "#8e0f3d"],
  dark: ["#23282f", "#15304f", "#134a77", "#1169a0", "#1b8aa8", "#35a276", "#93b440", "#e3bd32", "#f28c38", "#ee5547", "#ff8fb8"],
};
export const HOSTS = ["#4269d0", "#b35e00", "#a3266b", "#2f7d4f", "#7a5cc4", "#8a6d3b", "#00797d", "#5b6470"];
/** The kinds of change: a sign and a colour each, so that neither is needed to tell them apart. */
export const KINDS = {
  split: { sign: "\u25b2", light: "#0f6b2b", dark: "#7ee29a" },
  merge: { sign: "\u25bc", light: "#8f1280", dark: "#ff9df0" },
  stripe: { sign: "\u25c6", light: "#075e60", dark: "#6fe3e5" },
  unstripe: { sign: "\u25c7", light: "#6b3d00", dark: "#f0c38a" },
  move: { sign: "\u25b6", light: "#9c3f00", dark: "#ffb27a" },
};
const scheme = matchMedia("(prefers-color-scheme: dark)");
export const look = () => (scheme.matches ? "dark" : "light");
export const palette = () => HEAT[look()];
export const colourOf = kind => (KINDS[kind] ? KINDS[kind][look()] : style("--ink"));
export const onLookChange = call => scheme.addEventListener("change", call);

const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function step(rate) {
  let n = 0;
  while (n < STEPS.length && rate >= STEPS[n]) n++;
  return n;
}

/** The pen of a canvas that has as many pixels as the screen shows of it. */
function sized(canvas) {
  const ratio = devicePixelRatio || 1, box = canvas.getBoundingClientRect();
  const width = Math.max(50, Math.round(box.width * ratio)), height = Math.max(10, Math.round(box.height * ratio));
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const pen = canvas.getContext("2d");
  pen.clearRect(0, 0, width, height);
  return { pen, width, height, ratio };
}

/** The first and the last column of a stay. */
function columns(stay, width) {
  const first = Math.min(width - 1, Math.floor(stay.left * width));
  return [first, Math.max(first + 1, Math.round(stay.right * width))];
}

/** Draws the map. Returns the marks of changes: where they are, 0 to 1. */
export function drawMap(canvas, model, { kinds, cursor }) {
  const { pen, width, height, ratio } = sized(canvas), { start, end } = model.shown(), colours = palette();
  const y = time => ((time - start) / (end - start)) * height;
  model.axis();
  drawNothing({ pen, width, ratio }, y(model.samples[0].at));
  const hottest = new Float32Array(width);
  for (let i = 1; i < model.samples.length; i++) {
    const one = model.samples[i], top = Math.max(0, Math.floor(y(model.samples[i - 1].at))), bottom = Math.ceil(y(one.at));
    if (bottom <= 0) continue;
    hottest.fill(0);
    for (const [number, rate] of one.rates) {
      const stay = model.stays.get(number);
      if (!stay) continue;
      const [a, b] = columns(stay, width);
      for (let x = a; x < b; x++) if (rate > hottest[x]) hottest[x] = rate;
    }
    for (let x = 0; x < width;) {
      const n = step(hottest[x]);
      let to = x + 1;
      while (to < width && step(hottest[to]) === n) to++;
      pen.fillStyle = colours[n];
      pen.fillRect(x, top, to - x, Math.max(1, bottom - top));
      x = to;
    }
  }
  drawBounds({ pen, width, ratio, y }, model);
  const marks = drawChanges({ pen, width, height, ratio, y }, model, kinds);
  if (cursor) {
    pen.fillStyle = style("--ink");
    pen.fillRect(Math.round(cursor.x * width), 0, ratio, height);
    pen.fillRect(0, Math.round(cursor.y * height), width, ratio);
  }
  return marks;
}

/** Hatches the time before the first sample, for which the load is unknown. */
function drawNothing({ pen, width, ratio }, bottom) {
  if (bottom <= 0) return;
  pen.save();
  pen.beginPath();
  pen.rect(0, 0, width, bottom);
  pen.clip();
  pen.strokeStyle = style("--line");
  pen.lineWidth = ratio;
  pen.beginPath();
  for (let x = -bottom; x < width; x += 12 * ratio) {
    pen.moveTo(x, bottom);
    pen.lineTo(x + bottom, 0);
  }
  pen.stroke();
  pen.restore();
}

/** Lines where partitions begin, for as long as they do, unless they would cover the map. */
function drawBounds({ pen, width, ratio, y }, model) {
  if (model.stays.size > width / 6) return;
  const times = new Map(model.samples.map((one, i) => [one.number, model.samples[Math.max(0, i - 1)].at]));
  const last = model.samples.at(-1);
  pen.fillStyle = look() === "dark" ? "#ffffff40" : "#00000038";
  for (const stay of model.stays.values()) {
    const x = Math.floor(stay.left * width);
    const top = y(times.get(stay.since) ?? model.samples[0].at);
    const bottom = y(stay.until === null ? last.at : times.get(stay.until) ?? last.at);
    if (x) pen.fillRect(x, top, Math.max(1, ratio / 2), bottom - top);
  }
}

function drawChanges({ pen, width, height, ratio, y }, model, kinds) {
  const { start, end } = model.shown(), marks = [];
  pen.font = `${11 * ratio}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  for (const change of model.changes) {
    if (change.when < start || change.when > end || !kinds.has(change.kind)) continue;
    const [left, right] = model.placeOf(change), top = Math.round(y(change.when));
    const a = Math.min(left * width, width - 12 * ratio), b = Math.max(a + 12 * ratio, right * width);
    pen.fillStyle = colourOf(change.kind);
    pen.fillRect(a, top, b - a, Math.max(1, Math.round(ratio)));
    const [x, middle] = [(a + b) / 2, Math.min(height - 7 * ratio, Math.max(7 * ratio, top))];
    pen.strokeStyle = style("--paper");
    pen.lineWidth = 4 * ratio;
    pen.strokeText(KINDS[change.kind].sign, x, middle);
    pen.fillText(KINDS[change.kind].sign, x, middle);
    marks.push({ change, left: a / width, right: b / width, y: top / height });
  }
  return marks;
}

/** Draws which host has which keys now. */
export function drawHosts(canvas, model) {
  const { pen, width, height, ratio } = sized(canvas);
  pen.font = `${11 * ratio}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  model.axis();
  for (const stay of model.alive(model.samples.at(-1).number)) {
    const [a, b] = columns(stay, width), gap = b - a > 3 * ratio ? ratio : 0;
    pen.fillStyle = HOSTS[model.placeOfHost(stay) % HOSTS.length];
    pen.fillRect(a, 0, Math.max(1, b - a - gap), height);
    if (b - a > 16 * ratio) {
      pen.fillStyle = "#fff";
      pen.fillText(hostName(stay), (a + b) / 2, height / 2 + ratio / 2, b - a);
    }
  }
}
