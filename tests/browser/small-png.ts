// A picture of a page in 256 colours: a third of the bytes of the browser's own PNG, and the same to the eye.
import { deflateSync } from "node:zlib";
import type { Page } from "playwright-core";

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
const COLOURS_MAX = 256;
const COMMON_COLOURS = 160;

/** Decodes in `page`, which may be any page of the browser that no policy binds (about:blank). */
export async function smallPng(page: Page, picture: Buffer): Promise<Buffer> {
  const { width, height, pixels } = await page.evaluate(decode, `data:image/png;base64,${picture.toString("base64")}`);
  const { palette, indexes } = inFewColours(Buffer.from(pixels, "base64"));
  const rows = Buffer.alloc((width + 1) * height); // each row begins with its filter: 0, none
  for (let row = 0; row < height; row += 1) rows.set(indexes.subarray(row * width, (row + 1) * width), row * (width + 1) + 1);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3], 8); // eight bits, each an index into the palette
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 0xff, colour & 0xff]));
  const data = deflateSync(rows, { level: 9, memLevel: 9 });
  return Buffer.concat([SIGNATURE, chunk("IHDR", header), chunk("PLTE", colours), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]);
}

async function decode(address: string): Promise<{ width: number; height: number; pixels: string }> {
  const bitmap = await createImageBitmap(await (await fetch(address)).blob());
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  if (context === null) throw new Error("this browser draws nothing");
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  let bytes = "";
  for (let at = 0; at < data.length; at += 0x8000) bytes += String.fromCharCode(...data.subarray(at, at + 0x8000));
  return { width, height, pixels: btoa(bytes) };
}

/** The colours that most pixels have, and of the rest those that differ most from them: a red badge of twenty pixels stays red. */
function inFewColours(pixels: Buffer): { palette: number[]; indexes: Uint8Array } {
  const counts = new Map<number, number>();
  for (let at = 0; at < pixels.length; at += 4) {
    const colour = pixels.readUIntBE(at, 3);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const palette: number[] = [];
  const nearest = new Map([...counts.keys()].map((colour) => [colour, { index: 0, distance: Number.POSITIVE_INFINITY }]));
  const add = (colour: number): void => {
    const index = palette.push(colour) - 1;
    for (const [other, known] of nearest) {
      const distance = distanceOf(colour, other);
      if (distance < known.distance) nearest.set(other, { index, distance });
    }
  };
  const byCount = [...counts].sort(([, a], [, b]) => b - a);
  for (const [colour] of byCount.slice(0, COMMON_COLOURS)) add(colour);
  while (palette.length < Math.min(COLOURS_MAX, counts.size)) add(farthest(nearest));
  const indexes = new Uint8Array(pixels.length / 4);
  for (let at = 0; at < indexes.length; at += 1) indexes[at] = nearest.get(pixels.readUIntBE(at * 4, 3))?.index ?? 0;
  return { palette, indexes };
}

function farthest(nearest: ReadonlyMap<number, { distance: number }>): number {
  let [far, most] = [0, -1];
  for (const [colour, { distance }] of nearest) if (distance > most) [far, most] = [colour, distance];
  return far;
}

function distanceOf(a: number, b: number): number {
  const by = (shift: number): number => (((a >> shift) & 0xff) - ((b >> shift) & 0xff)) ** 2;
  return by(16) + by(8) + by(0);
}

function chunk(name: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.byteLength);
  sum.writeUInt32BE(Bun.hash.crc32(named));
  return Buffer.concat([length, named, sum]);
}
