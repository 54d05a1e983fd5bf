// SPDX-License-Identifier: Apache-2.0
// A job's curve, small: throughput kept against power kept; what was measured, what was fitted, where it is now.
import { known, percent } from "./format.js";

const NS = "http://www.w3.org/2000/svg";
const W = 150, H = 104, LEFT = 6, RIGHT = 8, TOP = 8, BOTTOM = 14;

function node(name, attributes, parent) {
  const e = document.createElementNS(NS, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (parent) parent.append(e);
  return e;
}

// t(x) = (1 - exp(-k (x - x0))) / (1 - exp(-k (1 - x0))); a straight line as k goes to 0
function fitted({ k, x0 }, x) {
  if (Math.abs(k) < 1e-6) return (x - x0) / (1 - x0);
  return (1 - Math.exp(-k * (x - x0))) / (1 - Math.exp(-k * (1 - x0)));
}

export function makeCurve() {
  const svg = node("svg", { viewBox: `0 0 ${W} ${H}`, class: "curve", role: "img" });
  const frame = node("g", { class: "frame" }, svg);
  node("path", { d: `M${LEFT} ${TOP}V${H - BOTTOM}H${W - RIGHT}` }, frame);
  const equal = node("path", { class: "equal" }, svg);
  const fit = node("path", { class: "fit" }, svg);
  const points = node("g", { class: "points" }, svg);
  const now = node("circle", { class: "here", r: 4.5 }, svg);
  const text = (x, anchor, label) => {
    const t = node("text", { x, y: H - 3, "text-anchor": anchor }, svg);
    t.textContent = label;
    return t;
  };
  const left = text(LEFT, "start", "");
  text(W - RIGHT, "end", "power kept 100 %");
  return { svg, equal, fit, points, now, left };
}

// job: of the snapshot (curve, points); here: {x, t} now
export function drawCurve(c, job, here) {
  const xs = [...job.points.map((p) => p.power_frac), ...(known(here.x) ? [here.x] : [])];
  const low = Math.max(0, Math.min(0.6, Math.min(...xs, 1) - 0.06));
  const px = (x) => LEFT + (W - LEFT - RIGHT) * (x - low) / (1.04 - low);
  const py = (t) => H - BOTTOM - (H - TOP - BOTTOM) * Math.max(0, t - low * 0.8) / (1.06 - low * 0.8);
  const path = (f) => {
    const d = [];
    for (let i = 0; i <= 40; i++) {
      const x = low + (1 - low) * i / 40;
      d.push(`${i ? "L" : "M"}${px(x).toFixed(1)} ${py(f(x)).toFixed(1)}`);
    }
    return d.join("");
  };
  const isFitted = known(job.curve.k) && known(job.curve.x0);
  c.equal.setAttribute("d", path((x) => x));
  c.fit.setAttribute("d", isFitted ? path((x) => fitted(job.curve, x)) : "");
  c.points.replaceChildren(...job.points.map((p) => node("circle", { cx: px(p.power_frac), cy: py(p.throughput_frac), r: 2.4 })));
  const show = known(here.x) && known(here.t);
  c.now.style.display = show ? "" : "none";
  if (show) {
    c.now.setAttribute("cx", px(Math.min(here.x, 1.04)));
    c.now.setAttribute("cy", py(Math.min(here.t, 1.06)));
  }
  c.left.textContent = percent(low);
  c.svg.setAttribute("aria-label", isFitted
    ? `Curve from ${job.points.length} points: at 70 % of its power this job keeps ${percent(fitted(job.curve, 0.7))} of its throughput`
    : "The curve of this job is not known yet");
}
