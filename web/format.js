// SPDX-License-Identifier: Apache-2.0
// Numbers for people. null, undefined and NaN are unknown and shown as a dash.
const NBSP = "\u00a0", MINUS = "\u2212";
export const DASH = "–";
export const known = (x) => typeof x === "number" && Number.isFinite(x);

// Three significant digits, without an exponent.
function three(x) {
  const a = Math.abs(x);
  return (x < 0 ? MINUS : "") + a.toFixed(a >= 99.95 || a === 0 ? 0 : a >= 9.995 ? 1 : 2);
}

function scaled(x, unit, steps) {
  if (!known(x)) return DASH;
  for (const [size, prefix] of steps)
    if (Math.abs(x) >= size * 0.9995) return three(x / size) + NBSP + prefix + unit;
  return three(x) + (unit ? NBSP + unit : "");
}

export const watts = (x) => scaled(x, "W", [[1e6, "M"], [1e3, "k"]]);
export const count = (x) => scaled(x, "", [[1e9, "G"], [1e6, "M"], [1e3, "k"]]);
export const percent = (x, digits = 0) => (known(x) ? (100 * x).toFixed(digits).replace("-", MINUS) + NBSP + "%" : DASH);
// 0.3 -> "30 %", 0.125 -> "12.5 %"
export const short = (x) => percent(x, known(x) && Math.abs(100 * x - Math.round(100 * x)) > 0.04 ? 1 : 0);
export const plain = (x, digits = 2) => (known(x) ? x.toFixed(digits) : DASH);
export const ratio = (a, b) => (known(a) && known(b) && b > 0 ? a / b : NaN);

// 102 -> "1:42", 3723 -> "1:02:03"
export function clock(seconds) {
  if (!known(seconds)) return DASH;
  const s = Math.max(0, Math.round(seconds)), h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  const two = (x) => String(x).padStart(2, "0");
  return h ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`;
}

// 300 -> "5 min"
export function span(seconds) {
  if (!known(seconds)) return DASH;
  if (seconds < 90) return `${Math.round(seconds)}${NBSP}s`;
  if (seconds < 5400) return `${+(seconds / 60).toFixed(1)}${NBSP}min`;
  return `${+(seconds / 3600).toFixed(1)}${NBSP}h`;
}
