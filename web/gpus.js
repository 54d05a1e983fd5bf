// SPDX-License-Identifier: Apache-2.0
// A cell for each GPU, coloured by power over cap; one is chosen by click or arrow keys and told in full.
import { DASH, known, percent, watts } from "./format.js";
import { snapshotNow } from "./live.js";

const STEPS = [0.4, 0.6, 0.75, 0.85, 0.92, 0.97]; // finest where a cap begins to bind
const OVER = 1.03;

const box = document.getElementById("gpus");
const panel = document.getElementById("gpu");
let cells = [], shown = null, chosen = -1, detail = null, latest = null, asked = 0;

function level(power, cap) {
  if (!known(power)) return "none";
  if (!known(cap) || cap <= 0) return "0";
  const share = power / cap;
  return share > OVER ? "over" : String(STEPS.filter((s) => share >= s).length);
}

function group(gpus) {
  const groups = new Map();
  gpus.forEach((g, i) => {
    const name = (g.node || "").split("/")[0];
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(i);
  });
  return groups;
}

function build(gpus) {
  cells = [];
  const list = document.createElement("div");
  list.className = "cells" + (gpus.length > 128 ? " many" : "");
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "GPUs; arrow keys move");
  for (const [name, indices] of group(gpus)) {
    const part = document.createElement("div");
    part.className = "rack";
    part.setAttribute("role", "group");
    part.setAttribute("aria-label", name || "GPUs");
    if (name) {
      const title = document.createElement("p");
      title.className = "label";
      title.textContent = name;
      title.setAttribute("aria-hidden", "true");
      part.append(title);
    }
    const row = document.createElement("div");
    row.className = "row";
    row.setAttribute("role", "presentation");
    for (const i of indices) {
      const cell = document.createElement("span");
      cell.setAttribute("role", "option");
      cell.setAttribute("aria-selected", "false");
      cell.setAttribute("aria-label", `GPU ${i}, ${gpus[i].node || gpus[i].uuid}`);
      cell.tabIndex = cells.length === 0 ? 0 : -1;
      cell.dataset.i = i;
      row.append(cell);
      cells[i] = cell;
    }
    part.append(row);
    list.append(part);
  }
  box.replaceChildren(list);
  list.addEventListener("click", (e) => e.target.dataset.i && choose(Number(e.target.dataset.i)));
  list.addEventListener("keydown", onKey);
  chosen = -1;
  panel.replaceChildren(note(gpus.length ? "Choose a GPU to see its cap and why." : "No GPU is known."));
}

function note(text) {
  const p = document.createElement("p");
  p.className = "note";
  p.textContent = text;
  return p;
}

// The cell above or below: nearest in x on the next line of cells.
function vertical(from, sign) {
  const here = cells[from].getBoundingClientRect();
  let best = from, score = Infinity;
  cells.forEach((cell, i) => {
    const there = cell.getBoundingClientRect(), dy = (there.top - here.top) * sign;
    if (dy <= 1) return;
    const s = dy * 10 + Math.abs(there.left - here.left);
    if (s < score) { score = s; best = i; }
  });
  return best;
}

function onKey(e) {
  const from = chosen >= 0 ? chosen : 0;
  const to = { ArrowRight: from + 1, ArrowLeft: from - 1, Home: 0, End: cells.length - 1,
    Enter: from, " ": from }[e.key] ?? (e.key === "ArrowDown" ? vertical(from, 1) : e.key === "ArrowUp" ? vertical(from, -1) : null);
  if (to === null) return;
  e.preventDefault();
  choose(Math.min(cells.length - 1, Math.max(0, to)));
  cells[chosen].focus();
}

function choose(i) {
  const old = cells[chosen] ?? cells[0];
  old.setAttribute("aria-selected", "false");
  old.tabIndex = -1;
  chosen = i;
  cells[i].setAttribute("aria-selected", "true");
  cells[i].tabIndex = 0;
  detail = null;
  if (latest) drawDetail();
  fetchDetail();
}

// Bands are not in the ticks: ask for them while a GPU is chosen, at most every two seconds.
async function fetchDetail() {
  const want = chosen;
  asked = performance.now();
  try {
    const snapshot = await snapshotNow();
    if (want === chosen) detail = snapshot.gpus[want];
    drawDetail();
  } catch { /* the next draw asks again */ }
}

const withBand = (mid, band) => (band && known(band.low_w) ? `${watts(mid)} (${Math.round(band.low_w)} to ${Math.round(band.high_w)})` : watts(mid));

function drawDetail() {
  const { snapshot, tick, reasonText } = latest;
  const g = snapshot.gpus[chosen], now = tick.gpus[chosen];
  if (!g || !now) return;
  const [power, cap, enforced, mean30, mean60, reason] = now;
  const rows = [
    ["Power", watts(power)],
    ["Cap asked for", watts(cap)],
    ["Cap enforced", watts(enforced)],
    ["Power over cap", percent(known(power) && cap > 0 ? power / cap : NaN)],
    ["Next 30 s, mean", withBand(mean30, detail && detail.mean30)],
    ["Next 60 s, mean", withBand(mean60, detail && detail.mean60)],
    ["Job", snapshot.jobs[g.job]?.name ?? "none"],
    ["Node", g.node || DASH],
    ["UUID", g.uuid],
  ];
  const title = document.createElement("h3");
  title.textContent = `GPU ${chosen}`;
  const why = document.createElement("p");
  why.className = "why";
  why.textContent = reasonText(reason);
  const list = document.createElement("dl");
  for (const [k, v] of rows) {
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = k;
    dd.textContent = v;
    list.append(dt, dd);
  }
  panel.replaceChildren(title, why, list);
}

export function drawGpus(state, reasonText) {
  const { snapshot, tick } = state;
  if (!snapshot) return;
  latest = { snapshot, tick, reasonText };
  const key = snapshot.run + snapshot.gpus.map((g) => g.uuid).join();
  if (key !== shown) {
    shown = key;
    build(snapshot.gpus);
  }
  tick.gpus.forEach(([power, cap], i) => {
    const l = level(power, cap);
    if (cells[i] && cells[i].dataset.l !== l) cells[i].dataset.l = l;
  });
  if (chosen >= 0) {
    drawDetail();
    if (performance.now() - asked > 2000) fetchDetail();
  }
}
