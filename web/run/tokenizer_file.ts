// The parts of tokenizer.json, the file of Hugging Face tokenizers, that this page reads.

export interface TokenizerFile {
  added_tokens: { id: number; content: string; special: boolean }[];
  normalizer: { type: string; normalizers?: Step[] } | null;
  pre_tokenizer: Step | null;
  decoder: Step | null;
  model: ModelPart;
}
export interface Step {
  type: string;
  [key: string]: any;
}
export interface ModelPart {
  type: string;
  vocab: any;
  merges?: [string, string][];
  unk_token?: string | null;
  unk_id?: number | null;
  byte_fallback?: boolean;
}
