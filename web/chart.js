// SPDX-License-Identifier: Apache-2.0
// Site power against its budget: what was, what was forecast for it, and the next 60 s.
import { known, watts, span as spanText } from "./format.js";

/* global uPlot */
const LEAD_S = 30, LEAD_SLACK_S = 4, AHEAD_S = 60;

let plot = null, spanS = 900, nowS = 0, eventNow = null;
const box = document.getElementById("chart");
const outputs = Object.fromEntries([...document.querySelectorAll("#legend [data-of]")].map((e) => [e.dataset.of, e]));

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The forecast made LEAD_S earlier for each x, from columns that are sorted by t.
function madeBefore(h, from, column) {
  const out = [];
  let j = 0;
  for (let i = from; i < h.t.length; i++) {
    const want = h.t[i] - LEAD_S;
    while (j + 1 < h.t.length && h.t[j + 1] <= want) j++;
    out.push(Math.abs(h.t[j] - want) <= LEAD_SLACK_S ? column[j] : null);
  }
  return out;
}

// Columns for uPlot: x, past low, past high, ahead low, ahead high, ahead middle, budget, power.
function columns(h, tick) {
  let from = 0;
  while (from < h.t.length && h.t[from] < nowS - spanS) from++;
  const past = h.t.slice(from), n = past.length;
  const last = n ? h.power[h.power.length - 1] : null;
  const none = new Array(Math.max(0, n - 1)).fill(null);
  const ahead = (key) => [...none, ...(n ? [last] : []), ...tick.path.map((p) => p[key])];
  const gap = new Array(tick.path.length).fill(null);
  const budget = h.budget.slice(from);
  const held = n ? budget[n - 1] : null;
  const budgetAhead = tick.path.map((p) => (known(held) && budgetHolds(nowS + p.lead_s) ? held : null));
  return [
    [...past, ...tick.path.map((p) => nowS + p.lead_s)],
    [...madeBefore(h, from, h.low), ...gap],
    [...madeBefore(h, from, h.high), ...gap],
    ahead("low_w"), ahead("high_w"), ahead("mid_w"),
    [...budget, ...budgetAhead],
    [...h.power.slice(from), ...gap],
  ];
}

function budgetHolds(t) {
  return eventNow && known(eventNow.end_s) ? t <= eventNow.end_s : true;
}

const axisWatts = (values, isKnown) => {
  if (!isKnown) return values.map(() => "");
  const top = Math.max(...values.map(Math.abs)), mega = top >= 1e6, kilo = top >= 1e3;
  const size = mega ? 1e6 : kilo ? 1e3 : 1;
  const step = values.length > 1 ? (values[1] - values[0]) / size : 1;
  const digits = [0, 1, 2].find((d) => Math.abs(step * 10 ** d - Math.round(step * 10 ** d)) < 1e-6) ?? 3;
  return values.map((v) => (v / size).toFixed(digits) + "\u00a0" + (mega ? "MW" : kilo ? "kW" : "W"));
};

const axisTime = (values) => values.map((v) => {
  const s = Math.round(v - nowS);
  return Math.abs(s) < 1 ? "now" : (s < 0 ? "−" : "+") + spanText(Math.abs(s));
});

const ticksFromNow = (self, axis, min, max) => {
  const width = self.bbox.width / devicePixelRatio;
  const steps = [15, 30, 60, 120, 180, 300, 600, 900, 1800];
  const step = steps.find((s) => (max - min) / s <= width / 90) || 3600;
  const out = [];
  for (let t = nowS - Math.floor((nowS - min) / step) * step; t <= max; t += step) out.push(t);
  return out;
};

// Behind the lines: the event's stretch, and a line at now.
function drawBehind(u) {
  const { ctx, bbox } = u;
  const x = (t) => Math.min(bbox.left + bbox.width, Math.max(bbox.left, u.valToPos(t, "x", true)));
  ctx.save();
  if (eventNow && known(eventNow.start_s)) {
    ctx.fillStyle = colour("--wash");
    const left = x(eventNow.start_s), right = x(eventNow.end_s);
    ctx.fillRect(left, bbox.top, Math.max(0, right - left), bbox.height);
  }
  ctx.strokeStyle = colour("--muted");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(x(nowS), bbox.top);
  ctx.lineTo(x(nowS), bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

function show(u) {
  const i = u.cursor.idx;
  const at = (s) => (i == null ? null : u.data[s][i]);
  const low = at(1) ?? at(3), high = at(2) ?? at(4);
  outputs.power.textContent = i == null ? "" : watts(at(7));
  outputs.budget.textContent = i == null ? "" : watts(at(6));
  outputs.band.textContent = i == null || !known(low) ? "" : `${watts(low)} to ${watts(high)}`;
  outputs.when.textContent = i == null ? "" : axisTime([u.data[0][i]])[0];
}

function make(data) {
  const power = colour("--power"), budget = colour("--budget"), muted = colour("--muted"), grid = colour("--line");
  const font = "12px system-ui, sans-serif";
  const line = { points: { show: false } };
  const axis = { stroke: muted, font, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
  return new uPlot({
    width: box.clientWidth, height: box.clientHeight,
    legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: () => [nowS - spanS, nowS + AHEAD_S] },
      y: { range: (u, min, max) => {
        if (!known(min)) return [0, 1];
        const pad = Math.max((max - min) * 0.12, max * 0.02);
        return [Math.max(0, min - pad), max + pad];
      } },
    },
    axes: [
      { ...axis, values: (u, v) => axisTime(v), splits: ticksFromNow, size: 34 },
      { ...axis, values: (u, v) => axisWatts(v, known(u.data[7].findLast(known))), size: 68, space: 44 },
    ],
    series: [
      {},
      { ...line, stroke: "transparent" }, { ...line, stroke: "transparent" },
      { ...line, stroke: "transparent" }, { ...line, stroke: "transparent" },
      { ...line, stroke: power, width: 1.5, dash: [3, 4] },
      { ...line, stroke: budget, width: 2, dash: [8, 5], paths: uPlot.paths.stepped({ align: 1 }) },
      { ...line, stroke: power, width: 2 },
    ],
    bands: [{ series: [2, 1], fill: colour("--band") }, { series: [4, 3], fill: colour("--band-ahead") }],
    hooks: { drawClear: [drawBehind], setCursor: [show] },
  }, data, box);
}

function rebuild() {
  if (!plot) return;
  const data = plot.data;
  plot.destroy();
  plot = make(data);
}

export function draw(state) {
  const { tick, history } = state;
  nowS = tick.now_s;
  eventNow = tick.event.state === "none" ? null : tick.event;
  const data = columns(history, tick);
  if (!plot) plot = make(data);
  else plot.setData(data);
  show(plot);
  const power = watts(tick.site.power_w);
  box.setAttribute("aria-label", known(tick.site.budget_w)
    ? `Chart of site power: now ${power} against a budget of ${watts(tick.site.budget_w)}`
    : `Chart of site power: now ${power}, no budget in force`);
}

document.addEventListener("theme", rebuild);
new ResizeObserver(() => plot && plot.setSize({ width: box.clientWidth, height: box.clientHeight })).observe(box);
document.getElementById("span").addEventListener("click", (e) => {
  const chosen = e.target.closest("button");
  if (!chosen) return;
  spanS = Number(chosen.dataset.span);
  for (const b of e.currentTarget.children) b.setAttribute("aria-pressed", String(b === chosen));
  document.dispatchEvent(new Event("redraw"));
});
