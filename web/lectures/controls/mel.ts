// The mel spectrogram of a pure tone: a window, its spectrum, and triangles that are evenly spaced in mels (Slaney).

import { fill } from "../../dom.ts";
import type { Form } from "../form.ts";
import { svg } from "../svg.ts";

interface Params {
  rate: number; // samples per second
  window: number; // samples
  hop: number; // samples
  bins: number;
  frames: number; // per token
}

const toMels = (hertz: number): number =>
  hertz < 1000 ? (hertz * 15) / 1000 : 15 + (27 / Math.log(6.4)) * Math.log(hertz / 1000);
const toHertz = (mels: number): number =>
  mels < 15 ? (mels * 1000) / 15 : 1000 * Math.exp(((mels - 15) * Math.log(6.4)) / 27);

/** Return the power of a tone in each mel bin, from one window of samples. */
export function measureBins(hertz: number, { rate, window, bins }: Params): number[] {
  const samples = Array.from({ length: window }, (_, i) => {
    const hann = 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / window);
    return hann * Math.sin((2 * Math.PI * hertz * i) / rate);
  });
  const power = Array.from({ length: window / 2 + 1 }, (_, k) => {
    const angle = (2 * Math.PI * k) / window;
    const real = samples.reduce((sum, value, i) => sum + value * Math.cos(angle * i), 0);
    const imaginary = samples.reduce((sum, value, i) => sum + value * Math.sin(angle * i), 0);
    return real ** 2 + imaginary ** 2;
  });
  const edges = Array.from({ length: bins + 2 }, (_, i) => toHertz((toMels(rate / 2) * i) / (bins + 1)));
  return Array.from({ length: bins }, (_, bin) => {
    const [low, center, high] = [edges[bin]!, edges[bin + 1]!, edges[bin + 2]!];
    return power.reduce((sum, value, k) => {
      const frequency = (k * rate) / window;
      const height = Math.min((frequency - low) / (center - low), (high - frequency) / (high - center));
      return sum + (Math.max(0, height) * 2 * value) / (high - low);
    }, 0);
  });
}

export function melControl(form: Form, params: Params): void {
  const { rate, hop, bins, frames } = params;
  form.slider("hertz", "Frequency of the tone in hertz", { min: 100, max: 3800, step: 50, value: 440 });
  form.slider("seconds", "Seconds", { min: 0.1, max: 5, step: 0.1, value: 1 });
  form.run(() => {
    const power = measureBins(form.number("hertz"), params);
    const most = Math.max(...power);
    const bars = power.map((value, i) => {
      const height = Math.max(0, 8 + Math.log10(value / most)) * 12; // eight powers of ten, as in the spectrogram
      return svg("rect", { x: 8 * i, y: 100 - height, width: 7, height, fill: "var(--hue)" });
    });
    const label = "Logarithm of the power in each mel bin, low frequencies on the left";
    const attributes = {
      viewBox: `0 0 ${8 * bins} 100`,
      style: "width: min(100%, 480px)",
      role: "img",
      "aria-label": label,
    };
    fill(form.picture, svg("svg", attributes, ...bars));
    const samples = Math.round(form.number("seconds") * rate);
    const count = Math.floor(samples / hop);
    form.show("loudest", "Loudest mel bin", power.indexOf(most));
    form.show("samples", "Samples", samples);
    form.show("frames", "Frames", count);
    form.show("tokens", "Tokens", Math.ceil(count / frames));
  });
}
