// Reading server-sent events: bytes to frames, bounded. Reconnecting, with the id of the last frame, is the caller's business.

/** One frame. `event` is "message" when the sender named none. */
export interface Frame {
  event: string;
  data: string;
  id: string | undefined;
}

/** Most characters of one frame; a sender beyond it is not one of ours. */
const FRAME_CHARS_MAX = 4_194_304;

/**
 * The frames of an event stream, in order. Ends when the sender closes it; comments and `retry:` are skipped.
 * @param onId told of every id, also of one that comes without data (heartbeats of a quiet stream carry the cursor)
 * @param onBytes told whenever anything arrives, comments too
 * @throws whatever reading the body throws, and an Error for a frame without end
 */
export async function* readFrames(response: Response, onId?: (id: string) => void, onBytes?: () => void): AsyncGenerator<Frame> {
  if (!response.body) return;
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes?.();
      text += decoder.decode(value, { stream: true });
      if (text.length > FRAME_CHARS_MAX) throw new Error("the stream sent a frame without end");
      const blocks = text.split(/\r\n\r\n|\n\n|\r\r/);
      text = blocks.pop()!;
      for (const block of blocks) {
        const { hasData, ...frame } = parseFrame(block);
        if (frame.id !== undefined) onId?.(frame.id);
        if (hasData) yield frame;
      }
    }
  } finally {
    await reader.cancel().catch(() => {}); // the sender closed it first
  }
}

/** One block between blank lines. */
function parseFrame(block: string): Frame & { hasData: boolean } {
  let event = "message";
  let id: string | undefined;
  const data: string[] = [];
  for (const line of block.split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") event = value;
    else if (name === "id") id = value;
    else if (name === "data") data.push(value);
  }
  return { event, id, data: data.join("\n"), hasData: data.length > 0 };
}
