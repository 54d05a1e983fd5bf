// SPDX-License-Identifier: Apache-2.0
// A card for each job. Names and curves come from the snapshot, numbers from each tick.
import { count, known, percent, plain, ratio, watts } from "./format.js";
import { drawCurve, makeCurve } from "./curve.js";

const box = document.getElementById("jobs");
const note = document.getElementById("jobs-note");
let cards = [], shown = null;

function make(tag, className, parent, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  if (parent) parent.append(e);
  return e;
}

function barRow(list, name) {
  const group = make("div", "", list);
  make("dt", "", group, name);
  const dd = make("dd", "", group);
  const value = make("span", "value", dd), fill = make("span", "", make("span", "track", dd)), share = make("span", "share", dd);
  return { value, share, fill };
}

function factRow(list, name) {
  const group = make("div", "", list);
  make("dt", "", group, name);
  const dd = make("dd", "", group);
  return { value: make("span", "value", dd), share: make("span", "share", dd) };
}

function makeCard(job) {
  const card = make("article", "panel card");
  const head = make("header", "", card);
  make("h3", "", head, job.name);
  make("span", "note", head, `${job.gpus}\u00a0GPU${job.gpus === 1 ? "" : "s"}`);
  const body = make("div", "body", card);
  const bars = make("dl", "bars", body), facts = make("dl", "pair", card);
  const c = { card, power: barRow(bars, "Power"), rate: barRow(bars, `Work, ${job.unit || "units/s"}`),
    pfi: factRow(facts, "PFI"), lost: factRow(facts, `Lost, ${(job.unit || "units").replace(/\/s$/, "")}`) };
  c.curve = makeCurve();
  body.append(c.curve.svg);
  c.reason = make("p", "note reason", card);
  return c;
}

function fillBar(bar, value, share, of) {
  bar.value.textContent = value;
  bar.share.textContent = known(share) ? `${percent(share)} of ${of}` : "";
  bar.fill.style.width = known(share) ? `${Math.min(100, 100 * share).toFixed(1)}%` : "0";
}

function update(card, job, now) {
  const x = ratio(now.power_w, now.p0_w), t = ratio(now.throughput, now.t0);
  fillBar(card.power, watts(now.power_w), x, "P₀");
  fillBar(card.rate, count(now.throughput), t, "T₀");
  card.pfi.value.textContent = plain(now.pfi);
  card.pfi.share.textContent = known(now.pfi_low) && known(now.pfi_high) ? `${plain(now.pfi_low)} to ${plain(now.pfi_high)}` : "";
  card.pfi.share.title = "90 % interval";
  card.lost.value.textContent = count(now.lost_units);
  drawCurve(card.curve, job, { x, t });
}

export function drawJobs(state, reasonText) {
  const { snapshot, tick } = state;
  if (!snapshot) return;
  if (shown !== snapshot.run + snapshot.jobs.map((j) => j.name + j.gpus).join()) {
    shown = snapshot.run + snapshot.jobs.map((j) => j.name + j.gpus).join();
    cards = snapshot.jobs.map(makeCard);
    box.replaceChildren(...cards.map((c) => c.card));
  }
  note.textContent = snapshot.jobs.length ? "Work and power against each job without a cap (T₀, P₀). PFI above 1: sheds power cheaply."
    : "No job is known.";
  snapshot.jobs.forEach((job, i) => {
    const now = tick.jobs[i] ?? job;
    update(cards[i], job, now);
    cards[i].reason.textContent = reasonText(now.reason);
  });
}
