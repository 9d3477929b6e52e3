// Ids to text, as src/regard/text/detokenize.py does it.

export type JoinStyle = "bytes" | "marks_before" | "marks_after" | "characters" | "words";

/** The bytes of each token; none for special tokens, except unk, which stands for unknown text. */
export function decodeBytes(
  texts: string[],
  style: JoinStyle,
  control: Set<number>,
  unk: number,
  extra: Set<number>,
  hasByteFallback: boolean,
): Uint8Array[] {
  const encoder = new TextEncoder();
  const alphabet = makeByteAlphabet();
  return texts.map((text, id) => {
    if (extra.has(id) || id === unk) return encoder.encode(text);
    if (control.has(id)) return new Uint8Array();
    if (style === "bytes") {
      const bytes = Array.from(text, (character) => alphabet.get(character));
      return Uint8Array.from(bytes.includes(undefined) ? [] : (bytes as number[]));
    }
    const byte = hasByteFallback && /^<0x([0-9A-F]{2})>$/.exec(text);
    if (byte) return Uint8Array.of(parseInt(byte[1], 16));
    return encoder.encode(style.startsWith("marks") ? text.replaceAll("▁", " ") : text);
  });
}

/** Decodes ids that arrive one by one; it holds back what the next token could still change. */
export class StreamingDecoder {
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  private isStart = true;
  private pendingSpace = "";

  constructor(
    private readonly bytes: Uint8Array[],
    private readonly style: JoinStyle,
    private readonly extra: Set<number>,
  ) {}

  /** Return the text that this token completes. */
  push(id: number): string {
    const content = this.bytes[id];
    if (content === undefined) throw new Error(`There is no token ${id}.`);
    const hasMarks = this.style === "marks_before" || this.style === "marks_after";
    if (hasMarks && this.extra.has(id)) {
      this.pendingSpace = "";
      this.isStart = true;
      return new TextDecoder().decode(content);
    }
    let text = this.decoder.decode(content, { stream: true });
    if (!content.length || this.style === "bytes" || this.style === "characters") return text;
    const isFirst = this.isStart;
    this.isStart = false;
    if (this.style === "words") return isFirst ? text : ` ${text}`;
    if (this.style === "marks_before") return isFirst && text.startsWith(" ") ? text.slice(1) : text;
    text = this.pendingSpace + text;
    this.pendingSpace = text.endsWith(" ") ? " " : "";
    return this.pendingSpace ? text.slice(0, -1) : text;
  }

  /** Return the rest: U+FFFD for bytes that do not complete a character. */
  finish(): string {
    this.pendingSpace = "";
    return this.decoder.decode();
  }
}

/** GPT-2's table of a printable character per byte. */
export function makeByteAlphabet(): Map<string, number> {
  const alphabet = new Map<string, number>();
  const isPrintable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  let next = 256;
  for (let byte = 0; byte < 256; byte++) alphabet.set(String.fromCharCode(isPrintable(byte) ? byte : next++), byte);
  return alphabet;
}
