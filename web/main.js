// SPDX-License-Identifier: Apache-2.0
// Joins the parts: what the daemon says goes in, once a frame everything that shows it is drawn.
import { clock, count, DASH, known, percent, plain, short, watts } from "./format.js";
import { start, state } from "./live.js";
import { draw as drawChart } from "./chart.js";
import { drawJobs } from "./jobs.js";
import { drawGpus } from "./gpus.js";
import { drawEvents, word } from "./events.js";

const el = (id) => document.getElementById(id);
const set = (id, text) => { const e = el(id); if (e.textContent !== text) e.textContent = text; };

// The sentence for a reason's name.
function reasonText(name) {
  const text = state.snapshot?.reasons[name] ?? (name ?? DASH).replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const times = (speed) => `${+speed.toPrecision(3)}`;

function drawLink() {
  const age = state.lastMs ? Math.round((performance.now() - state.lastMs) / 1000) : null;
  const old = age === null ? "" : ` Shown is the state of ${age} s ago.`;
  document.body.dataset.link = state.link;
  set("link-text", { connecting: "connecting", live: "live", stale: "stale", lost: "connection lost" }[state.link]);
  const lost = el("lost");
  lost.hidden = state.link !== "lost" && state.link !== "stale";
  if (!lost.hidden) {
    const said = state.link === "lost" ? "Connection lost, trying again." : "Connected, but the control loop has not turned.";
    set("lost", said + old);
  }
}

function drawSimulated(tick) {
  const strip = el("simulated");
  strip.hidden = !tick.simulated;
  if (tick.simulated)
    set("simulated", known(tick.speed) && tick.speed !== 1
      ? `Simulated site, ${times(tick.speed)} × as fast as the clock. Every figure here is simulated.`
      : "Simulated site. Every figure here is simulated.");
}

let announced = "none";
function drawEventLine(tick) {
  const e = tick.event, line = el("event");
  line.dataset.state = e.state;
  if (e.state === "none") {
    set("event-chip", "no event");
    set("event-text", "");
  } else {
    const left = e.state === "waiting" ? `starts in ${clock(e.start_s - tick.now_s)}`
      : e.state === "ramp" || e.state === "hold" ? `${clock(e.end_s - tick.now_s)} left` : "";
    set("event-chip", `${short(e.cut_frac)} cut`);
    set("event-text", [word(e.state), left].filter(Boolean).join(", "));
  }
  if (announced !== e.state) {
    announced = e.state;
    set("announce", e.state === "none" ? "No event" : `${short(e.cut_frac)} cut: ${word(e.state)}`);
  }
}

function drawNow(tick) {
  const { power_w: power, budget_w: budget, cap_sum_w: caps } = tick.site;
  const ceiling = known(budget) ? budget : caps;
  set("power", watts(power));
  set("budget", known(budget) ? `of ${watts(budget)} budget` : "no budget in force");
  const meter = el("meter"), top = known(ceiling) ? ceiling * 1.1 : NaN;
  meter.hidden = !known(power) || !known(top);
  if (!meter.hidden) {
    meter.children[0].style.width = `${Math.min(100, 100 * power / top).toFixed(2)}%`;
    meter.children[1].style.left = `${(100 / 1.1).toFixed(2)}%`;
    meter.dataset.over = String(known(budget) && power > budget * 1.01);
    meter.dataset.budget = String(known(budget));
  }
  document.title = known(power) ? `${watts(power)} · Tokwatt` : "Tokwatt";
}

function drawTiles(tick) {
  const s = tick.site, runs = ["ramp", "hold", "release"].includes(tick.event.state);
  const after = !known(s.tokens_saved) ? ", known after an event" : runs ? ", so far in this event" : ", last event";
  for (const tag of document.querySelectorAll("[data-simulated]")) tag.hidden = !tick.simulated;
  set("skill", percent(s.skill_mean30));
  set("skill-note", `less error than the best simple forecast, next 30 s${known(s.skill_mean60) ? ` (60 s: ${percent(s.skill_mean60)})` : ""}`);
  set("gap", percent(s.gap_recovered));
  set("gap-note", `of the way from equal shares to perfect knowledge${after}`);
  set("saved", count(s.tokens_saved));
  set("saved-note", `against equal shares${after}`);
}

// What an operator wants to know of the event beside its state; without one, of the caps.
function drawFacts(tick) {
  const e = tick.event, held = known(e.hold10_min_frac);
  const rows = e.state === "none" ? [["Caps in sum", watts(tick.site.cap_sum_w)]] : [
    ["Power before", watts(e.baseline_w)],
    ["Asked for", watts(e.target_w)],
    ["Held, 10 s means", held ? `${plain(100 * e.hold10_min_frac, 1)} to ${percent(e.hold10_max_frac, 1)} of it` : "after the ramp"],
    ["Tokens lost", known(e.tokens_lost) ? `${count(e.tokens_lost)}${known(e.tokens_lost_equal) ? ` (equal shares ${count(e.tokens_lost_equal)})` : ""}` : DASH],
  ];
  const list = el("facts");
  while (list.children.length > rows.length) list.lastChild.remove();
  rows.forEach(([name, value], i) => {
    let item = list.children[i];
    if (!item) {
      item = document.createElement("div");
      item.append(document.createElement("dt"), document.createElement("dd"));
      list.append(item);
    }
    item.children[0].textContent = name;
    item.children[1].textContent = value;
  });
}

let frame = 0;
function draw() {
  frame = 0;
  drawLink();
  const { tick } = state;
  if (!tick) return;
  drawSimulated(tick);
  drawNow(tick);
  drawEventLine(tick);
  drawFacts(tick);
  drawTiles(tick);
  drawChart(state);
  drawJobs(state, reasonText);
  drawGpus(state, reasonText);
  drawEvents(state, reasonText);
  const stale = tick.site.stale_gpus;
  set("foot", `${tick.site.gpus} GPUs, ${tick.site.jobs} jobs${stale ? `, ${stale} GPUs without a fresh reading` : ""}; turn ${tick.seq}.`);
}

const later = () => { frame ||= requestAnimationFrame(draw); };
document.addEventListener("redraw", later);
start(later);
