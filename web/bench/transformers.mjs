// Load an exported language model or classifier in @huggingface/transformers, and compare it with Python.
//
//   npm install @huggingface/transformers
//   regard export MODEL --to onnx
//   python -m bench.transformers_js MODEL LINES > expected.json
//   node bench/transformers.mjs MODEL-onnx expected.json
//
// expected.json is a list of {text, ids, output}: the output is a greedy continuation, or the probabilities by label.
// Nothing is downloaded: remote models are switched off.
import { readFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { env, pipeline } from "@huggingface/transformers";

const [folder, expectedFile] = process.argv.slice(2);
env.allowRemoteModels = false;
env.localModelPath = dirname(resolve(folder)) + "/";
const isClassifier = JSON.parse(readFileSync(`${folder}/pipeline.json`, "utf8")).task === "text_classification";
const started = performance.now();
const run = await pipeline(isClassifier ? "text-classification" : "text-generation", basename(resolve(folder)));
const loaded = performance.now();

let sameIds = 0;
let same = 0;
let tokens = 0;
let difference = 0;
const examples = JSON.parse(readFileSync(expectedFile, "utf8"));
for (const { text, ids, output } of examples) {
  const found = Array.from(run.tokenizer(text).input_ids.data, Number);
  sameIds += found.join() === ids.join();
  tokens += found.length;
  if (isClassifier) {
    const scores = await run(text, { top_k: null });
    for (const { label, score } of scores) difference = Math.max(difference, Math.abs(score - output[label]));
    const best = Object.keys(output).reduce((a, b) => (output[b] > output[a] ? b : a));
    same += scores[0].label === best;
  } else {
    const options = { max_new_tokens: 32, do_sample: false, return_full_text: false };
    const [{ generated_text }] = await run(text, options);
    same += generated_text === output;
    tokens += run.tokenizer(generated_text).input_ids.data.length;
    if (generated_text !== output) console.log(JSON.stringify({ text, output, generated_text }));
  }
}
const seconds = (performance.now() - loaded) / 1000;
console.log(`load: ${((loaded - started) / 1000).toFixed(2)} s`);
console.log(`ids: ${sameIds} of ${examples.length} texts equal`);
console.log(
  `outputs: ${same} of ${examples.length} equal` +
    (isClassifier ? `, probabilities within ${difference.toExponential(1)}` : ""),
);
console.log(`speed: ${(examples.length / seconds).toFixed(1)} texts/s, ${(tokens / seconds).toFixed(0)} tokens/s`);
