// KXM's icon set: 16 px grid, 1.5 px stroke, currentColor; our own drawings.
// Invariant: status icons differ in shape, so that state survives greyscale and colour blindness.
const dot = (x: number, y: number, r = 1) => `<circle cx="${x}" cy="${y}" r="${r}" fill="currentColor" stroke="none"/>`;
const p = (...ds: string[]) => ds.map((d) => `<path d="${d}"/>`).join("");
const c = (x: number, y: number, r: number, extra = "") => `<circle cx="${x}" cy="${y}" r="${r}"${extra}/>`;
const r = (x: number, y: number, w: number, h: number, rx = 1.5) => `<rect x="${x}" y="${y}" width="${w}" height="${h}" rx="${rx}"/>`;

export const PATHS = {
  // status
  ok: c(8, 8, 6.25) + p("M5.2 8.2l2 2 3.7-4.1"),
  run: `${p("M8 1.75A6.25 6.25 0 1 1 1.75 8")}<path d="M6.6 5.4v5.2L10.8 8z" fill="currentColor" stroke="none"/>`,
  wait: c(8, 8, 6.25) + p("M8 4.6V8l2.3 1.6"),
  attn: p("M8 2.1l6.2 11.2H1.8z", "M8 6.3v3.2") + dot(8, 11.4, 0.85),
  bad: p("M5.4 1.75h5.2l3.65 3.65v5.2l-3.65 3.65H5.4L1.75 10.6V5.4z", "M6 6l4 4M10 6l-4 4"),
  unknown: c(8, 8, 6.25, ' stroke-dasharray="2.4 1.85"') + p("M6.4 6.5a1.65 1.65 0 1 1 2.2 1.55c-.4.15-.6.45-.6.95") + dot(8, 11.1, 0.8),
  uncertain: p("M8 1.4L14.6 8 8 14.6 1.4 8z", "M6.6 6.7a1.45 1.45 0 1 1 1.9 1.35c-.35.13-.5.4-.5.8") + dot(8, 10.7, 0.8),
  lost: p("M3.6 12.4A6.25 6.25 0 0 1 11.7 2.95", "M13.4 4.9a6.25 6.25 0 0 1-7.6 8.95", "M2 14L14 2"),
  idle: c(8, 8, 6.25) + p("M5.5 8h5"),
  queued: c(8, 8, 6.25, ' stroke-dasharray=".1 2.35" stroke-linecap="round"') + dot(8, 8, 1.6),
  cancelled: c(8, 8, 6.25) + p("M3.7 12.3l8.6-8.6"),
  expired: p("M4 1.75h8M4 14.25h8", "M5 1.75c0 3.2 3 4 3 6.25s-3 3.05-3 6.25M11 1.75c0 3.2-3 4-3 6.25s3 3.05 3 6.25"),
  paused: c(8, 8, 6.25) + p("M6.4 5.7v4.6M9.6 5.7v4.6"),
  blocked: `${c(8, 8, 6.25)}<rect x="4.6" y="7" width="6.8" height="2" rx=".5" fill="currentColor" stroke="none"/>`,
  // places
  overview: r(1.75, 2, 5, 7) + r(9.25, 2, 5, 4) + r(1.75, 11.5, 5, 2.5, 1) + r(9.25, 8.5, 5, 5.5),
  approvals: p("M1.75 9.5h3.2l1.1 2h3.9l1.1-2h3.2", "M3.6 3h8.8l1.85 6.5v3a1 1 0 0 1-1 1H2.75a1 1 0 0 1-1-1v-3z"),
  runs:
    c(3.5, 3.75, 1.75) +
    c(12.5, 8, 1.75) +
    c(3.5, 12.25, 1.75) +
    p("M5.25 3.75h1.5A2.5 2.5 0 0 1 9.2 6l.2.4A2.6 2.6 0 0 0 10.7 8", "M5.25 12.25h1.5A2.5 2.5 0 0 0 9.2 10"),
  messages: r(1.75, 3, 12.5, 10) + p("M2.2 4l5.8 4.6L13.8 4"),
  leases: c(5, 8, 3.25) + p("M8.25 8h6", "M11.5 8v2.4M14 8v1.8"),
  agents: r(2.5, 5, 11, 8.25, 2.5) + p("M8 5V2.6") + dot(8, 2.2, 1.1) + p("M5.8 8.4v1.4M10.2 8.4v1.4"),
  runtimes: r(1.75, 2.25, 12.5, 4.75) + r(1.75, 9, 12.5, 4.75) + dot(4.6, 4.65, 0.9) + dot(4.6, 11.4, 0.9) + p("M7.5 4.65h4M7.5 11.4h4"),
  context: p("M8 1.9l6.25 3.2L8 8.3 1.75 5.1z", "M1.75 8L8 11.2 14.25 8", "M1.75 10.9L8 14.1l6.25-3.2"),
  journal: p("M3 2.75A1 1 0 0 1 4 1.75h9v10.5H4.2A1.2 1.2 0 0 0 3 13.4z", "M3 13.4a1 1 0 0 0 1 .85h9v-2", "M6 5h4.2M6 7.75h2.8"),
  sync: p("M13.9 6.3A6.1 6.1 0 0 0 3 4.4L1.9 5.9", "M1.75 2.6v3.4h3.4", "M2.1 9.7A6.1 6.1 0 0 0 13 11.6l1.1-1.5", "M14.25 13.4V10h-3.4"),
  cost: c(8, 8, 6.25) + p("M10 5.9c-.4-.6-1.1-.9-2-.9-1.2 0-2 .6-2 1.5 0 2 4.1 1 4.1 3 0 .9-.9 1.5-2.1 1.5-.9 0-1.7-.3-2.1-1", "M8 3.8V5M8 11v1.2"),
  search: c(7, 7, 4.75) + p("M10.6 10.6l3.65 3.65"),
  webhooks: c(4, 11.5, 2.25) + c(12, 11.5, 2.25) + c(8, 4, 2.25) + p("M6.3 11.5h3.4", "M6.9 6L5.1 9.5", "M9.1 6l1.8 3.5"),
  audit: p("M8 1.75l5.5 2v4.1c0 3.2-2.2 5.3-5.5 6.4-3.3-1.1-5.5-3.2-5.5-6.4V3.75z", "M5.6 8l1.7 1.7L10.6 6.4"),
  settings: p("M1.75 4.5h6.5M11.75 4.5h2.5M1.75 11.5h2.5M7.75 11.5h6.5") + c(10, 4.5, 1.75) + c(6, 11.5, 1.75),
  // acts
  check: p("M2.75 8.6l3.4 3.4 7.1-7.8"),
  x: p("M3.5 3.5l9 9M12.5 3.5l-9 9"),
  copy: r(5.25, 5.25, 9, 9, 1.5) + p("M10.75 5.2V3.25a1.5 1.5 0 0 0-1.5-1.5h-6a1.5 1.5 0 0 0-1.5 1.5v6a1.5 1.5 0 0 0 1.5 1.5H5.2"),
  down: p("M3.5 6l4.5 4.5L12.5 6"),
  right: p("M6 3.5l4.5 4.5L6 12.5"),
  left: p("M10 3.5L5.5 8l4.5 4.5"),
  updown: p("M5 6l3-3.25L11 6", "M5 10l3 3.25L11 10"),
  arrow: p("M2.5 8h11", "M9.5 4l4 4-4 4"),
  plus: p("M8 3v10M3 8h10"),
  more: dot(3.5, 8, 1.2) + dot(8, 8, 1.2) + dot(12.5, 8, 1.2),
  filter: p("M2 3.5h12M4.5 8h7M6.75 12.5h2.5"),
  sort: p("M5 3v10M2.5 10.5L5 13l2.5-2.5", "M11 13V3M8.5 5.5L11 3l2.5 2.5"),
  play: `<path d="M4.5 2.75v10.5L13 8z"/>`,
  pause: p("M5 3v10M11 3v10"),
  retry: p("M13.5 8a5.5 5.5 0 1 1-1.8-4.1L13.5 5.5", "M13.75 2v3.5h-3.5"),
  stop: r(3.5, 3.5, 9, 9),
  sun: c(8, 8, 2.9) + p("M8 1v1.4M8 13.6V15M1 8h1.4M13.6 8H15M3.05 3.05l1 1M11.95 11.95l1 1M3.05 12.95l1-1M11.95 4.05l1-1"),
  moon: p("M13.6 9.7A6 6 0 0 1 6.3 2.4a6 6 0 1 0 7.3 7.3z"),
  auto: `${c(8, 8, 6.25)}<path d="M8 1.75a6.25 6.25 0 0 1 0 12.5z" fill="currentColor" stroke="none"/>`,
  keys: r(1.25, 3.75, 13.5, 8.5) + p("M4 6.6h.01M6.7 6.6h.01M9.3 6.6h.01M12 6.6h.01M4.6 9.5h6.8"),
  hash: p("M6.2 2.5l-1.4 11M11.2 2.5l-1.4 11M2.75 5.75h11M2.25 10.25h11"),
  branch: c(4.5, 3.6, 1.75) + c(4.5, 12.4, 1.75) + c(11.5, 5.1, 1.75) + p("M4.5 5.4v5.2", "M11.5 6.9c0 2.4-5 1.7-6.6 3.9"),
  diff: p("M8 2.5v6M5 5.5h6M5 12.5h6"),
  file: p("M3.25 2.75a1 1 0 0 1 1-1H9l3.75 3.75v7.75a1 1 0 0 1-1 1h-7.5a1 1 0 0 1-1-1z", "M9 1.75V5.5h3.75"),
  terminal: r(1.5, 2.5, 13, 11) + p("M4.25 6l2.25 2-2.25 2M8.25 10.25h3.25"),
  lock: r(3, 7, 10, 7) + p("M5.25 7V4.75a2.75 2.75 0 0 1 5.5 0V7"),
  bell: p("M3.5 11.5c.9-.9 1-2 1-4.2a3.5 3.5 0 0 1 7 0c0 2.2.1 3.3 1 4.2z", "M6.75 13.75h2.5"),
  star: p("M8 1.9l1.9 3.9 4.3.6-3.1 3 .7 4.3L8 11.7l-3.8 2 .7-4.3-3.1-3 4.3-.6z"),
  link: p("M6.6 9.4l2.8-2.8", "M7.4 4.6l1.5-1.5a2.83 2.83 0 0 1 4 4l-1.5 1.5", "M8.6 11.4l-1.5 1.5a2.83 2.83 0 0 1-4-4l1.5-1.5"),
  download: p("M8 2v8M4.5 7L8 10.5 11.5 7M2.5 13.5h11"),
  person: c(8, 5, 2.75) + p("M2.75 13.75c.6-2.9 2.5-4.25 5.25-4.25s4.65 1.35 5.25 4.25"),
  gate: p("M3 13.75V6.5a5 5 0 0 1 10 0v7.25", "M1.75 13.75h12.5", "M6.35 13.75V8M9.65 13.75V8"),
  panel: r(1.75, 5.25, 8.5, 8.5) + p("M5 5V3.25a1.5 1.5 0 0 1 1.5-1.5h6.25a1.5 1.5 0 0 1 1.5 1.5V9.5a1.5 1.5 0 0 1-1.5 1.5h-2"),
  signal: p("M4.2 11.8a5.4 5.4 0 0 1 0-7.6M11.8 4.2a5.4 5.4 0 0 1 0 7.6") + c(8, 8, 1.6),
  shieldoff: p("M8 1.75l5.5 2v4.1c0 3.2-2.2 5.3-5.5 6.4-3.3-1.1-5.5-3.2-5.5-6.4V3.75z", "M8 5v3.4") + dot(8, 10.6, 0.85),
  eyeoff: p("M2 8c1.5-2.6 3.5-3.9 6-3.9S12.5 5.4 14 8c-1.5 2.6-3.5 3.9-6 3.9S3.5 10.6 2 8z", "M2.5 13.5l11-11"),
  send: p("M14 2L7 9", "M14 2L9.5 14 7 9 2 6.5z"),
  enter: p("M13 3.5v4a1.5 1.5 0 0 1-1.5 1.5H3", "M6 6L3 9l3 3"),
  bolt: p("M9 1.75L3.25 9H8l-1 5.25L12.75 7H8z"),
  list: p("M5.5 4h8.5M5.5 8h8.5M5.5 12h8.5") + dot(2.6, 4, 0.9) + dot(2.6, 8, 0.9) + dot(2.6, 12, 0.9),
  wake: p("M8 14.25a6.25 6.25 0 1 0 0-12.5", "M1.5 8h7M6 5.5L8.5 8 6 10.5"),
  quote: p("M2.5 4h11M2.5 8h7M2.5 12h9"),
  signout: p("M6.5 2.5H4a1.5 1.5 0 0 0-1.5 1.5v8A1.5 1.5 0 0 0 4 13.5h2.5", "M10.25 5l3 3-3 3M13 8H6.25"),
  undo: p("M2.5 5.5h7a4 4 0 0 1 0 8H5", "M5.5 2.5l-3 3 3 3"),
};

/** The mark: four agents on two strands that cross in one hub. */
export const MARK = `<path d="M3.2 3.2l6 6M14.8 14.8l6 6M20.8 3.2l-6 6M9.2 14.8l-6 6" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round"/><circle class="mark__hub" cx="12" cy="12" r="3.4" fill="none" stroke="currentColor" stroke-width="2.2"/>`;
/** The wordmark: K X M drawn with one pen; the X carries the hub. */
export const WORD = `<g fill="none" stroke="currentColor" stroke-width="2.1" stroke-linecap="round" stroke-linejoin="round"><path d="M2 2v14M11.5 2L3.6 9l7.9 7"/><path d="M17 2l4.3 4.9M29 16l-4.3-4.9M29 2l-4.3 4.9M17 16l4.300-4.900"/><path d="M35 16V2l6.5 8L48 2v14"/></g><circle class="mark__hub" cx="23" cy="9" r="2.6" fill="none" stroke="currentColor" stroke-width="2.1"/>`;
