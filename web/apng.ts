// An animated PNG from PNGs of equal size, as the third edition of the PNG specification defines it: each frame is an
// fcTL chunk and its image data, in IDAT for the first frame and in fdAT for the others. Browsers show it like a GIF.

export interface AnimationFrame {
  png: Uint8Array;
  /** Milliseconds. */
  delay: number;
  /** Whether its pixels cover those of the frame before (transparent ones keep them) instead of replacing all. */
  isOver: boolean;
}

interface Chunk {
  type: string;
  data: Uint8Array;
}

const SIGNATURE = [137, 80, 78, 71, 13, 10, 26, 10];

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? 0xedb88320 ^ (byte >>> 1) : byte >>> 1;
  return byte;
});

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = CRC_TABLE[(crc ^ byte) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}

/** Join PNGs that differ only in their image data. The animation repeats for as long as it is shown. */
export function joinFrames(frames: AnimationFrame[]): Uint8Array<ArrayBuffer> {
  const images = frames.map(({ png }) => readChunks(png));
  const header = images[0][0].data;
  const size = header.subarray(0, 8);
  const first = images[0].findIndex(({ type }) => type === "IDAT");
  const chunks = [images[0][0], { type: "acTL", data: numbers(frames.length, 0) }, ...images[0].slice(1, first)];
  let sequence = 0;
  images.forEach((image, i) => {
    if (image[0].data.join() !== header.join()) throw new Error(`Frame ${i + 1} has another size or color type.`);
    const { delay, isOver } = frames[i];
    const control = [numbers(sequence++), size, numbers(0, 0, (Math.round(delay) << 16) | 1000), [0, Number(isOver)]];
    chunks.push({ type: "fcTL", data: concatenate(control) });
    const data = image.filter(({ type }) => type === "IDAT").map((chunk) => chunk.data);
    if (i === 0) chunks.push({ type: "IDAT", data: concatenate(data) });
    else chunks.push({ type: "fdAT", data: concatenate([numbers(sequence++), ...data]) });
  });
  chunks.push({ type: "IEND", data: new Uint8Array() });
  return concatenate([SIGNATURE, ...chunks.flatMap(writeChunk)]);
}

function readChunks(png: Uint8Array): Chunk[] {
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength);
  const chunks: Chunk[] = [];
  for (let at = SIGNATURE.length; at < png.length;) {
    const start = at + 8; // after length and type
    const end = start + view.getUint32(at);
    chunks.push({ type: String.fromCharCode(...png.subarray(at + 4, start)), data: png.subarray(start, end) });
    at = end + 4; // after the CRC
  }
  return chunks;
}

function writeChunk({ type, data }: Chunk): Uint8Array[] {
  const body = concatenate([Array.from(type, (letter) => letter.charCodeAt(0)), data]);
  return [numbers(data.length), body, numbers(crc32(body))];
}

/** Numbers of 32 bits, big-endian. */
function numbers(...values: number[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(4 * values.length));
  values.forEach((value, i) => view.setUint32(4 * i, value));
  return new Uint8Array(view.buffer);
}

function concatenate(parts: ArrayLike<number>[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
