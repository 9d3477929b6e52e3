// The blocks of src/regard/lectures/blocks.py.

export type Cell = string | number;

export interface Probe {
  inputs: Record<string, Cell>;
  outputs: Record<string, number>;
}

export interface Option {
  text: string;
  consequence: string;
  is_right: boolean;
}

export interface Quiz {
  kind: "quiz";
  question: string;
  options: Option[];
}

export interface Verdict {
  kind: "verdict";
  judgment: string;
  text: string;
}

export interface Table {
  kind: "table";
  title: string;
  columns: string[];
  rows: Cell[][];
  digits: number;
  shaded: boolean;
}

export interface ControlBlock {
  kind: "control";
  control: string;
  title: string;
  params: Record<string, unknown>;
  probes: Probe[];
}

export type Block =
  | { kind: "text"; text: string }
  | { kind: "formula"; formula: string; text: string }
  | Table
  | { kind: "command"; command: string; output: string; stored: string }
  | ControlBlock
  | { kind: "look"; name: string; title: string; view: string; height: number }
  | Quiz;

export interface Station {
  name: string;
  title: string;
  claim: string;
  predict: Quiz;
  blocks: Block[];
  change: string;
  verdict: Verdict;
  items: number[];
  terms: string[];
}

export interface Lecture {
  number: number;
  title: string;
  introduction: string;
  stations: Station[];
}

export interface Overview {
  number: number;
  title: string;
  introduction: string;
  stations: { name: string; title: string }[];
}

export interface Site {
  lecture?: Lecture;
  lectures: Overview[];
  version: string;
}
