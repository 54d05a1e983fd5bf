// SPDX-License-Identifier: Apache-2.0
// What the daemon says, as it says it: the stream, the history behind it, and the snapshot with names and curves.
//
// start(onChange) keeps `state` up to date and calls onChange after each change. state.link is "connecting", "live",
// "stale" (connected, but no turn for some seconds) or "lost".

const STALE_MS = 5000, KEEP = 3600, RETRY_MS = 2000, SNAPSHOT_MS = 1000;

const empty = () => ({ t: [], power: [], budget: [], low: [], mid: [], high: [] });
export const state = { link: "connecting", run: null, tick: null, snapshot: null, history: empty(), seq: 0, lastMs: 0 };

let changed = () => {};
let source = null, catchingUp = false, snapshotDue = 0, snapshotBusy = false;

function setLink(link) {
  if (state.link === link) return;
  state.link = link;
  changed();
}

async function getJson(url) {
  const reply = await fetch(url, { cache: "no-store" });
  if (!reply.ok) throw new Error(`${url}: ${reply.status}`);
  return reply.json();
}

function append(points) {
  const h = state.history;
  const last = h.t.length ? h.t[h.t.length - 1] : -Infinity;
  points.t_s.forEach((t, i) => {
    if (!(t > last)) return;
    h.t.push(t);
    h.power.push(points.power_w[i]);
    h.budget.push(points.budget_w[i]);
    h.low.push(points.low_w[i]);
    h.mid.push(points.mid_w[i]);
    h.high.push(points.high_w[i]);
  });
  const extra = h.t.length - KEEP;
  if (extra > 0) for (const column of Object.values(h)) column.splice(0, extra);
}

// The turns between what we have and what the stream gives now.
async function catchUp() {
  if (catchingUp) return;
  catchingUp = true;
  try {
    const run = state.run;
    const points = await getJson(`/v1/history?since=${state.seq}`);
    if (points.run === run && run === state.run && points.seq !== null) {
      append(points);
      state.seq = points.seq;
    }
  } catch { /* the next tick tries again */ }
  catchingUp = false;
  changed();
}

async function refreshSnapshot() {
  if (snapshotBusy || performance.now() < snapshotDue) return;
  snapshotBusy = true;
  try {
    state.snapshot = await getJson("/v1/snapshot");
  } catch { /* the next tick tries again */ }
  snapshotBusy = false;
  snapshotDue = performance.now() + SNAPSHOT_MS;
  changed();
}

function onTick(message) {
  const tick = JSON.parse(message.data);
  if (tick.run !== state.run) { // another life of the daemon: nothing of the old one holds
    state.run = tick.run;
    state.history = empty();
    state.seq = 0;
    state.snapshot = null;
  }
  state.tick = tick;
  state.lastMs = performance.now();
  if (tick.points.after > state.seq) {
    catchUp();
  } else {
    append(tick.points);
    state.seq = Math.max(state.seq, tick.seq);
  }
  if (!state.snapshot || state.snapshot.rev !== tick.rev) refreshSnapshot();
  state.link = "live";
  changed();
}

function connect() {
  source = new EventSource("/v1/stream");
  source.addEventListener("tick", onTick);
  source.addEventListener("error", () => {
    setLink("lost");
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, RETRY_MS); // refused: the browser gives up
  });
}

export function start(onChange) {
  changed = onChange;
  connect();
  setInterval(() => {
    if (state.link === "live" && performance.now() - state.lastMs > STALE_MS) setLink("stale");
    else if (state.link !== "live") changed(); // the age that is shown grows
  }, 1000);
}

// One detail that ticks do not carry.
export const snapshotNow = () => getJson("/v1/snapshot");
