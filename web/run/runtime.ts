// The part of onnxruntime-web that the page uses. It is loaded from the folder runtime/ when the page runs.

export interface Tensor {
  data: Float32Array | BigInt64Array;
  dims: readonly number[];
}
export interface Session {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  /** `fetches`: the outputs to return; all by default. */
  run(feeds: Record<string, Tensor>, fetches?: readonly string[]): Promise<Record<string, Tensor>>;
}
export interface Runtime {
  Tensor: new (type: string, data: Float32Array | BigInt64Array, dims: readonly number[]) => Tensor;
  InferenceSession: { create(bytes: Uint8Array, options: object): Promise<Session> };
  env: { wasm: { wasmPaths: unknown; numThreads: number }; logLevel: string };
}

export async function loadRuntime(base: URL): Promise<Runtime> {
  const folder = new URL("runtime/", base);
  const runtime = (await import(new URL("ort.wasm.min.mjs", folder).href)) as Runtime;
  const name = "ort-wasm-simd-threaded";
  runtime.env.wasm.wasmPaths = { mjs: new URL(`${name}.mjs`, folder).href, wasm: new URL(`${name}.wasm`, folder).href };
  // Threads need shared memory, which a page has only if its host sends the headers for cross-origin isolation.
  runtime.env.wasm.numThreads = self.crossOriginIsolated ? Math.min(4, navigator.hardwareConcurrency) : 1;
  runtime.env.logLevel = "error";
  return runtime;
}

/** Rows of equal or different length as an int64 tensor (B, T). */
export function makeIds(runtime: Runtime, rows: number[][], padding: number): Tensor {
  const width = Math.max(...rows.map((row) => row.length));
  const data = new BigInt64Array(rows.length * width).fill(BigInt(padding));
  rows.forEach((row, r) => row.forEach((id, i) => (data[r * width + i] = BigInt(id))));
  return new runtime.Tensor("int64", data, [rows.length, width]);
}

/** Some rows of a tensor (B, ...), in this order. */
export function selectRows(runtime: Runtime, tensor: Tensor, rows: number[]): Tensor {
  const size = tensor.dims.slice(1).reduce((product, dim) => product * dim, 1);
  const isFloat = tensor.data instanceof Float32Array;
  const data = isFloat ? new Float32Array(rows.length * size) : new BigInt64Array(rows.length * size);
  rows.forEach((row, r) => data.set(tensor.data.subarray(row * size, (row + 1) * size) as any, r * size));
  return new runtime.Tensor(isFloat ? "float32" : "int64", data, [rows.length, ...tensor.dims.slice(1)]);
}
