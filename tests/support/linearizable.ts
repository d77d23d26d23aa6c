// Whether what clients saw of one lease can be explained by one lease: a search for an order of all operations that respects who was answered before
// who asked (Wing and Gong, with Lowe's memory of states seen). Times are the hub's clock; an outcome that nobody learned may have happened or not.

/** One call of one client. */
export type LeaseOp = {
  /** Places in the order of all calls and answers; `ret` is Infinity when no answer came. */
  call: number;
  ret: number;
  /** The hub's clock: not before `from`, not after `to`. */
  from: number;
  to: number;
  who: string;
  f: "acquire" | "renew" | "release" | "write";
  /** The token that was presented. */
  token?: number;
  ttlMs?: number;
  /** How long an acquire was ready to wait. */
  waitMs?: number;
  ok?: boolean;
  /** What was granted: its token, its end, and its beginning when it is new. */
  granted?: { token: number; until: number; renewed: boolean; at: number };
  /** Whom a refusal named as the holder of which token. */
  saw?: { holder: string; token: number };
};
/** The one lease: `until` lies between lo and hi, which differ only after an outcome that nobody learned. */
type State = { holder: string | null; token: number; lo: number; hi: number };

const START: State = { holder: null, token: 0, lo: 0, hi: 0 };

/** Where an operation leads, or undefined when it cannot have happened in this state. */
function step(state: State, op: LeaseOp, fits: (token: number, who: string) => boolean): State | undefined {
  const mine = state.holder === op.who && state.token === op.token;
  const mayHaveLapsed = state.lo <= op.to;
  const mayLive = state.hi > op.from;
  if (op.ok === undefined) return unknownStep(state, op, fits);
  switch (op.f) {
    case "acquire":
      return op.ok ? granted(state, op) : state.holder !== null && state.holder !== op.who && mayLive ? state : undefined;
    case "renew":
      if (op.ok) return mine && state.hi > op.granted!.until - op.ttlMs! ? { ...state, lo: op.granted!.until, hi: op.granted!.until } : undefined;
      return mine && !mayHaveLapsed ? undefined : state;
    case "release":
      return op.ok === mine ? (op.ok ? { ...state, holder: null, lo: 0, hi: 0 } : state) : undefined;
    case "write": {
      const current = state.holder !== null && state.token === op.token;
      return op.ok ? (current && mayLive ? state : undefined) : current && !mayHaveLapsed ? undefined : state;
    }
  }
}

function granted(state: State, { who, from, to, ttlMs, granted }: LeaseOp): State | undefined {
  const { token, until, renewed, at } = granted!;
  // An agent that stood in line twice is served by its first request, for as long as that one asked.
  const decidedAt = renewed ? until - ttlMs! : at;
  if (decidedAt < from || decidedAt > to) return undefined; // by another clock than the hub's
  const next = { holder: who, token, lo: until, hi: until };
  if (renewed) return state.holder === who && state.token === token && state.hi > decidedAt ? next : undefined;
  if (token <= state.token) return undefined;
  return state.holder === null || state.lo <= at ? next : undefined;
}

/**
 * The effect of a call whose answer was lost. That it had none needs no step. A waiter that nobody listens to is served until its deadline.
 * Tokens rise by one, so a lost grant can only have taken one that nobody else was given: that keeps the search small.
 */
function unknownStep(
  state: State,
  { f, who, token, from, to, ttlMs = 0, waitMs = 0 }: LeaseOp,
  fits: (token: number, who: string) => boolean,
): State | undefined {
  const latest = to + waitMs;
  const bounds = { lo: from + ttlMs, hi: latest + ttlMs };
  const mine = state.holder === who && state.token === token;
  if (f === "renew") return mine && state.hi > from ? { ...state, ...bounds } : undefined;
  if (f === "release") return mine ? { ...state, holder: null, lo: 0, hi: 0 } : undefined;
  if (f === "write") return undefined;
  if (state.holder === who && state.hi > from) return { ...state, lo: Math.min(state.lo, bounds.lo), hi: Math.max(state.hi, bounds.hi) };
  if (!fits(state.token + 1, who)) return undefined;
  return state.holder === null || state.lo <= latest ? { holder: who, token: state.token + 1, ...bounds } : undefined;
}

/** Whether there is such an order. @param lastToken the newest token that the store knows at the end; needed when answers were lost */
export function isLinearizable(history: LeaseOp[], lastToken = Number.POSITIVE_INFINITY): boolean {
  const ops = history.toSorted((a, b) => a.call - b.call);
  const done = new Uint8Array(ops.length);
  const seen = new Set<string>();
  const holders = new Map<number, string>(); // of tokens that somebody was told about
  const taken = new Set<number>();
  for (const { granted, saw, who } of ops) {
    if (granted) holders.set(granted.token, who);
    if (granted && !granted.renewed) taken.add(granted.token);
    if (saw) holders.set(saw.token, saw.holder);
  }
  const fits = (token: number, who: string) => token <= lastToken && !taken.has(token) && (holders.get(token) ?? who) === who;
  const known = ops.filter(({ ret }) => ret !== Number.POSITIVE_INFINITY).length;
  let low = 0;

  const key = (state: State) => {
    const high = done.lastIndexOf(1);
    return `${low}|${state.holder}|${state.token}|${state.lo}|${state.hi}|${done.subarray(low, high + 1).join("")}`;
  };

  /** Operations that nobody has to wait for: asked before the first of those that are left was answered. */
  const candidates = (): number[] => {
    while (low < ops.length && done[low]) low++;
    let soonest = Number.POSITIVE_INFINITY;
    for (let at = low; at < ops.length && ops[at]!.call <= soonest; at++) if (!done[at]) soonest = Math.min(soonest, ops[at]!.ret);
    const found: number[] = [];
    for (let at = low; at < ops.length && ops[at]!.call <= soonest; at++) if (!done[at]) found.push(at);
    return found;
  };

  const search = (state: State, left: number): boolean => {
    const idled: number[] = [];
    let open = candidates();
    // What fits now and changes nothing may as well happen now: an order that has it later has it here, too.
    for (let more = true; more; open = more ? candidates() : open) {
      const idle = open.filter((at) => ops[at]!.ok !== undefined && step(state, ops[at]!, fits) === state);
      for (const at of idle) done[at] = 1;
      idled.push(...idle);
      left -= idle.length;
      more = idle.length > 0;
    }
    if (left === 0) return true; // what is left was never answered: it may not have happened
    const place = key(state);
    if (!seen.has(place)) {
      seen.add(place);
      open.sort((a, b) => Number(ops[a]!.ok === undefined) - Number(ops[b]!.ok === undefined)); // answered ones first
      for (const at of open) {
        const next = step(state, ops[at]!, fits);
        if (!next || next === state) continue;
        const start = low;
        done[at] = 1;
        if (search(next, left - Number(ops[at]!.ok !== undefined))) return true;
        done[at] = 0;
        low = start;
      }
    }
    for (const at of idled) {
      done[at] = 0;
      low = Math.min(low, at);
    }
    return false;
  };
  return search(START, known);
}
