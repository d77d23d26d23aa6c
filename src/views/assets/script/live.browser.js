// One stream of signals per page. A signal names a topic; regions of that topic refetch themselves and are morphed in by htmx.
const SILENT_MS = 25_000; // the hub beats at least every 10 s
const HIDDEN_MS = 10_000; // a tab nobody sees gives its connection back: a browser has six per host
const WORDS = { on: "Live", wait: "Connecting", retry: "Reconnecting", paused: "Paused", off: "Hub unreachable", gone: "Signed out" };
let source, beats, lastId, heardAt, retryAt, lostAt, hiddenAt, oldest, behind, shown;
let [tries, waiting, paused, stale, gone] = [0, 0];

const topicsHere = () => new Set(all("[data-live-topics]").flatMap((region) => region.dataset.liveTopics.split(" ")));

function changed(topic, at) {
  if (paused) waiting++;
  else {
    if (at && topicsHere().has(topic)) oldest ??= at;
    htmx.trigger(document.body, `live:${topic}`);
  }
}
function connect() {
  const url = new URL(root.dataset.events, location);
  if (lastId) url.searchParams.set("after", lastId);
  const mine = (source = new EventSource(url));
  [retryAt, heardAt] = [undefined, elapsed()];
  const known = new Set();
  const on = (name, act) => {
    if (known.has(name)) return;
    known.add(name);
    mine.addEventListener(name, (event) => {
      heardAt = elapsed();
      if (event.lastEventId) lastId = event.lastEventId;
      const data = JSON.parse(event.data || "{}");
      if (data.now) hubSays(data.now);
      act(data);
      showState();
    });
  };
  mine.listen = () => {
    for (const topic of topicsHere()) on(topic, ({ at }) => changed(topic, at));
  };
  on("beat", () => {
    beats = true;
  });
  on("reset", () => changed("all"));
  mine.listen();
  mine.onopen = () => {
    if (lostAt || !url.searchParams.has("after")) changed("all");
    [tries, lostAt, gone] = [0];
    showState();
  };
  mine.onerror = lost;
}
function lost() {
  close();
  lostAt ??= hubNow();
  retryAt = elapsed() + Math.min(15_000, 500 * 2 ** tries++) * (0.8 + 0.4 * Math.random());
  // A stream does not say why it was refused; the page itself does.
  if (tries === 2)
    fetch(location, { redirect: "manual" }).then(
      (answer) => {
        gone = answer.type === "opaqueredirect";
      },
      () => {},
    );
  showState();
}
function close() {
  source?.close();
  source = undefined;
}
function showState() {
  const open = source?.readyState === EventSource.OPEN;
  const state = gone ? "gone" : paused ? "paused" : open && !stale ? "on" : tries > 4 ? "off" : lostAt || stale ? "retry" : "wait";
  const lag = oldest ? hubNow() - oldest : behind;
  const detail = {
    on: lag === undefined ? "" : lag < 10_000 ? `${(Math.max(0, lag) / 1000).toFixed(1)} s behind` : `${words(lag)} behind`,
    retry: retryAt ? `try ${tries}, in ${Math.max(0, Math.ceil((retryAt - elapsed()) / 1000))} s` : "some parts are older",
    paused: waiting > 0 ? `${waiting} waiting` : "",
    gone: "sign in again",
    off: lostAt ? `since ${new Date(lostAt).toISOString().slice(11, 16)}` : "",
  }[state];
  for (const button of all("[data-live]")) {
    button.className = state === "on" ? "live" : `live live--${state}`;
    for (const [part, text] of [
      ["[data-word]", WORDS[state]],
      ["[data-behind]", detail ?? ""],
    ]) {
      const slot = find(part, button);
      if (slot.textContent !== text) slot.textContent = text;
    }
  }
  if (shown && shown !== state && state !== "wait" && shown !== "wait") say(`Updates: ${WORDS[state]}`);
  shown = state;
}
function pause() {
  if (gone) location.reload();
  paused = !paused;
  if (!paused) {
    waiting = 0;
    changed("all");
  }
  showState();
}
function watch() {
  const now = elapsed();
  if (hiddenAt && now - hiddenAt > HIDDEN_MS) close();
  else if (source && beats && now - heardAt > SILENT_MS) lost();
  else if (!hiddenAt && retryAt && now >= retryAt) connect();
}
function seen() {
  hiddenAt = document.hidden ? elapsed() : undefined;
  if (!hiddenAt && !source) {
    lostAt ??= hubNow();
    connect();
  }
}

// What the reader has done to the page is not undone by an update: opened details and dialogs, the current row, an open completion list.
htmx.registerExtension("kxm", {
  htmx_before_morph_attr: (element, { attrName }) =>
    !(attrName === "open" ? element.matches("details, dialog") : attrName.startsWith("aria-") && element.matches("[data-row], [role=combobox]")),
});
const regionOf = (event) => event.detail.ctx?.sourceElement?.dataset?.liveTopics;
listen("htmx:after:swap", (event) => {
  tick();
  count();
  source?.listen();
  if (!regionOf(event) || event.detail.ctx.response.status >= 400) return;
  if (oldest) [behind, oldest] = [hubNow() - oldest, undefined];
  stale = false;
  showState();
});
for (const failure of ["htmx:response:error", "htmx:error"])
  listen(failure, (event) => {
    if (!regionOf(event)) return;
    if (!stale) setTimeout(() => changed("all"), 5000);
    stale = true;
    showState();
  });
setInterval(() => {
  if (!paused) tick();
  if (!root.dataset.events) return;
  watch();
  showState();
}, 1000);
tick();
if (root.dataset.events) {
  listen("visibilitychange", seen);
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && seen());
  connect();
  showState();
}
