// SPDX-License-Identifier: Apache-2.0
// Power events: ask for one (after a second look), see them, cancel them; and the reasons of all caps, counted.
import { DASH, clock, known, short, span, watts } from "./format.js";

const form = document.getElementById("event-form");
const problem = document.getElementById("event-problem");
const list = document.getElementById("event-list");
const reasons = document.getElementById("reasons");
const dialog = document.getElementById("confirm");
const MAX_SHOWN = 5, REFRESH_MS = 2000;
let latest = null, events = [], due = 0, busy = false, possible = true, drawn = "";

const WORDS = { waiting: "waiting", ramp: "ramping down", hold: "holding", release: "returning", done: "done" };
export const word = (state) => WORDS[state] ?? "no event";

function complain(text) {
  problem.hidden = !text;
  problem.textContent = text;
}

async function call(method, url, body) {
  const reply = await fetch(url, { method, headers: body ? { "Content-Type": "application/json" } : {}, body })
    .catch(() => { throw new Error("the daemon does not answer"); });
  const answer = await reply.json().catch(() => ({}));
  if (!reply.ok) throw Object.assign(new Error(answer.error || `the daemon answered ${reply.status}`), { status: reply.status });
  return answer;
}

async function refresh() {
  if (busy || performance.now() < due) return;
  busy = true;
  due = performance.now() + REFRESH_MS;
  try {
    events = (await call("GET", "/v1/events")).events;
  } catch (e) {
    if (e.status === 501) {
      possible = false;
      form.hidden = true;
      complain("This daemon takes no events.");
    }
  }
  busy = false;
  drawList();
}

function ask(title, text, yes) {
  document.getElementById("confirm-title").textContent = title;
  document.getElementById("confirm-text").textContent = text;
  document.getElementById("confirm-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

async function act(request) {
  complain("");
  try {
    await request();
  } catch (e) {
    complain(e.message.charAt(0).toUpperCase() + e.message.slice(1) + ".");
  }
  due = 0;
  refresh();
}

form.addEventListener("submit", async (e) => {
  e.preventDefault();
  const cut = Number(form.elements.cut.value) / 100, seconds = Number(form.elements.minutes.value) * 60;
  const power = latest?.site.power_w, speed = latest?.speed;
  const about = known(power) ? ` That is about ${watts(cut * power)} of the ${watts(power)} it draws now.` : "";
  const fast = latest?.simulated && known(speed) && speed !== 1 ? ` Site time runs ${speed} times as fast as the clock.` : "";
  const text = `Cut the site's power by ${short(cut)} for ${span(seconds)}, starting now.${about}${fast}`;
  if (await ask("Start a power event?", text, "Start the cut"))
    act(() => call("POST", "/v1/events", JSON.stringify({ cut_frac: cut, for_s: seconds })));
});

list.addEventListener("click", async (e) => {
  const id = e.target.dataset?.cancel;
  if (id && await ask(`Cancel event ${id}?`, "Power returns at the ramp limit.", "Cancel the event"))
    act(() => call("DELETE", `/v1/events/${id}`));
});

// The running event as the tick has it, which is newer than the list.
function newest(ev) {
  const now = latest?.event;
  return now && now.start_s === ev.start_s && !ev.cancelled ? { ...ev, state: now.state, end_s: now.end_s } : ev;
}

function describe(listed) {
  const now = latest ? latest.now_s : NaN, ev = newest(listed);
  const length = span(ev.end_s - ev.start_s);
  if (ev.cancelled) return `${length}, cancelled`;
  if (ev.state === "waiting") return `${length}, starts in ${clock(ev.start_s - now)}`;
  if (ev.state === "ramp" || ev.state === "hold") return `${word(ev.state)}, ${clock(ev.end_s - now)} left`;
  return `${length}, ${word(ev.state)}`;
}

function drawList() {
  const recent = events.slice(-MAX_SHOWN).reverse();
  const canCancel = (ev) => !ev.cancelled && ["waiting", "ramp", "hold"].includes(ev.state);
  const key = JSON.stringify(recent.map((ev) => [ev.id, canCancel(ev)])); // else only words change, and focus stays
  if (key !== drawn) {
    drawn = key;
    list.replaceChildren(...recent.map((ev) => {
      const li = document.createElement("li");
      const name = document.createElement("span"), text = document.createElement("span");
      name.textContent = `${short(ev.cut_frac)} cut`;
      name.className = "name";
      text.className = "note";
      li.append(name, text);
      if (canCancel(ev)) {
        const b = document.createElement("button");
        b.type = "button";
        b.className = "quiet";
        b.textContent = "Cancel";
        b.dataset.cancel = ev.id;
        b.setAttribute("aria-label", `Cancel event ${ev.id}`);
        li.append(b);
      }
      return li;
    }));
    if (!recent.length && possible) {
      const li = document.createElement("li");
      li.className = "note";
      li.textContent = "None yet.";
      list.append(li);
    }
  }
  recent.forEach((ev, i) => { list.children[i].querySelector(".note").textContent = describe(ev); });
}

function drawReasons(tick, reasonText) {
  const counts = new Map();
  for (const g of tick.gpus) counts.set(g[5], (counts.get(g[5]) ?? 0) + 1);
  const rows = [...counts].sort((a, b) => b[1] - a[1]);
  while (reasons.children.length > rows.length) reasons.lastChild.remove();
  rows.forEach(([reason, n], i) => {
    let li = reasons.children[i];
    if (!li) {
      li = document.createElement("li");
      li.append(document.createElement("b"), document.createElement("span"));
      reasons.append(li);
    }
    li.children[0].textContent = n;
    li.children[1].textContent = reasonText(reason) || DASH;
  });
}

export function drawEvents(state, reasonText) {
  latest = state.tick;
  drawReasons(state.tick, reasonText);
  drawList();
  if (possible && state.link === "live") refresh();
}
