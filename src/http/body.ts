// Reading request bodies: type, size, encoding and JSON form, in this order. The limit counts bytes received, not content-length.
import { HubError } from "../protocol/errors.ts";
import { parseBody } from "../protocol/json.ts";
import { BODY_BYTES_MAX } from "../protocol/limits.ts";

/** application/json with parameters; the only charset is UTF-8. */
const JSON_TYPE = /^application\/json\s*(?:;(?!.*charset\s*=)(?:.*)|;.*charset\s*=\s*"?utf-8"?\s*(?:;.*)?)?$/i;

/** @throws HubError unsupported_media_type unless the request says JSON in UTF-8 without compression */
export function requireJson(request: Request): void {
  const type = request.headers.get("content-type");
  if (type !== "application/json" && !JSON_TYPE.test(type ?? ""))
    throw new HubError("unsupported_media_type", "the request must carry content-type: application/json");
  if (request.headers.has("content-encoding")) throw new HubError("unsupported_media_type", "compressed bodies are not accepted");
}

/** The raw body. @throws HubError payload_too_large beyond the limit, without reading further */
export async function readBytes(request: Request, max = BODY_BYTES_MAX): Promise<Uint8Array> {
  const claimed = Number(request.headers.get("content-length") ?? Number.NaN);
  if (claimed > max) throw tooLarge(max);
  if (claimed >= 0) {
    const bytes = await request.bytes();
    if (bytes.length > max) throw tooLarge(max);
    return bytes;
  }
  return readChunks(request, max);
}

/** The body as one JSON object. @throws HubError unsupported_media_type, payload_too_large, invalid_json */
export async function readJson(request: Request): Promise<Record<string, unknown>> {
  requireJson(request);
  return parseBody(await readBytes(request));
}

const tooLarge = (max: number) => new HubError("payload_too_large", `the body is larger than ${max} bytes`);

async function readChunks(request: Request, max: number): Promise<Uint8Array> {
  if (!request.body) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks);
    size += value.length;
    if (size > max) {
      void reader.cancel().catch(() => {});
      throw tooLarge(max);
    }
    chunks.push(value);
  }
}
