// The audio clip of a document: its samples, and a player whose position a view draws.

import { h } from "./dom.ts";
import type { Decoded, LookDocument, Loader } from "./document.ts";

/** The samples of 8-bit mu-law codes, from -1 to 1. */
export function decodeMuLaw(codes: ArrayLike<number>): Float32Array {
  return Float32Array.from(codes, (code) => {
    const level = (code - 127) / 127;
    return (Math.sign(level) * (256 ** Math.abs(level) - 1)) / 255;
  });
}

/** Plays a clip from its start. `moved` is called on every frame and once at the end. */
export class Player {
  /** Seconds since the start of the clip; null when it does not play. */
  position: number | null = null;
  private audio: AudioContext | null = null;

  constructor(
    private samples: Float32Array,
    private rate: number,
    private moved: () => void,
  ) {}

  get seconds(): number {
    return this.samples.length / this.rate;
  }

  play(): void {
    this.stop();
    const audio = new AudioContext();
    const buffer = audio.createBuffer(1, this.samples.length, this.rate);
    const peak = this.samples.reduce((largest, sample) => Math.max(largest, Math.abs(sample)), 1e-3);
    buffer.getChannelData(0).set(this.samples.map((sample) => (0.8 * sample) / peak)); // recordings are often quiet
    const source = audio.createBufferSource();
    source.buffer = buffer;
    source.connect(audio.destination);
    source.onended = () => this.audio === audio && this.stop();
    source.start();
    this.audio = audio;
    const move = () => {
      if (this.audio !== audio) return;
      this.position = Math.min(audio.currentTime, this.seconds);
      this.moved();
      requestAnimationFrame(move);
    };
    move();
  }

  stop(): void {
    if (!this.audio) return;
    void this.audio.close();
    this.audio = this.position = null;
    this.moved();
  }
}

export interface PlayControl {
  button: HTMLButtonElement;
  /** Seconds since the start of the clip; null when it does not play. */
  position(): number | null;
}

/** A button that plays the clip of a document; null if it has none. `moved` draws the position. */
export function makePlayControl(doc: LookDocument, blobs: Loader<Decoded>, moved: () => void): PlayControl | null {
  const { audio, rate } = doc.picture ?? {};
  if (!audio || !rate) return null;
  let player: Player | null = null;
  const button = h("button", { type: "button", class: "play" }, "▶ Play") as HTMLButtonElement;
  const show = () => {
    const plays = player !== null && player.position !== null;
    button.textContent = plays ? "■ Stop" : "▶ Play";
    if (plays && !button.isConnected) return player!.stop(); // another tab was chosen
    moved();
  };
  button.addEventListener("click", () => {
    const decoded = blobs.read(audio);
    if (!decoded) return;
    player ??= new Player(decodeMuLaw(decoded.codes), rate, show);
    if (player.position === null) player.play();
    else player.stop();
  });
  blobs.read(audio); // so that the first click finds the samples
  return { button, position: () => player?.position ?? null };
}
