// Time in the browser. Ages tick from the hub's clock (data-now), never from this machine's.
const root = document.documentElement;
const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const listen = (name, act) => document.addEventListener(name, act);
const say = (text) => {
  find("#announce").textContent = text;
};
/** Milliseconds since the page began, whatever this machine's clock does meanwhile. */
const elapsed = () => performance.now();
let offset = Number(root.dataset.now) - elapsed();
const hubNow = () => offset + elapsed();
/** Delays only make the hub look earlier, so the latest reading wins, unless its clock was set back. */
const hubSays = (now) => {
  const next = now - elapsed();
  if (next > offset || offset - next > 5000) offset = next;
};

const words = (ms) => {
  const s = Math.max(0, Math.floor(ms / 1000));
  const [m, h, d] = [Math.floor(s / 60), Math.floor(s / 3600), Math.floor(s / 86400)];
  if (s < 60) return `${s} s`;
  if (m < 60) return `${m} min`;
  if (h < 24) return m % 60 ? `${h} h ${m % 60} min` : `${h} h`;
  return h % 24 ? `${d} d ${h % 24} h` : `${d} d`;
};
const countdown = (ms) => {
  const s = Math.ceil(ms / 1000);
  return ms <= 0 ? "lapsed" : s < 3600 ? `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}` : words(ms);
};

function tick() {
  for (const time of all("time[data-ago], time[data-for], time[data-left]")) {
    const gone = hubNow() - Date.parse(time.dateTime);
    const text = "left" in time.dataset ? countdown(-gone) : words(gone) + ("ago" in time.dataset ? " ago" : "");
    if (time.textContent !== text) time.textContent = text;
    if ("left" in time.dataset) turnRing(time.closest("[data-ttl]"), -gone);
  }
  // A status whose evidence is older than its bound turns by itself.
  for (const status of all(".status[data-bound]")) {
    const seen = find("time", status);
    if (seen) status.classList.toggle("status--stale", hubNow() - Date.parse(seen.dateTime) > Number(status.dataset.bound));
  }
}
function turnRing(row, left) {
  const ring = row && find(".ring", row);
  if (!ring) return;
  const percent = Math.max(0, Math.min(100, (left / Number(row.dataset.ttl)) * 100));
  find(".ring__left", ring)?.setAttribute("stroke-dashoffset", String(100 - percent));
  ring.classList.toggle("ring--soon", percent > 0 && percent <= 20);
  ring.classList.toggle("ring--out", percent <= 0);
}
