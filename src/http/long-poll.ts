// Answers that wait: when a request that asked to wait must be answered, and that it is not cut meanwhile.

/** Beyond the wait itself, what Bun gives the answer before it cuts an idle connection. Seconds. */
const GRACE_SECONDS = 10;

/**
 * The two ends of a wait: `until` at the deadline or when the hub stops, `gone` when the client hangs up.
 * @param ms how long the client asked to wait
 */
export function waitFor(
  call: { request: Request; server: { timeout(request: Request, seconds: number): void } | null | undefined },
  stopping: AbortSignal,
  ms: number,
): { until: AbortSignal; gone: AbortSignal } {
  call.server?.timeout(call.request, Math.ceil(ms / 1000) + GRACE_SECONDS);
  return { until: AbortSignal.any([stopping, AbortSignal.timeout(ms)]), gone: call.request.signal };
}
