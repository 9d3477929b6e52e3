// The controls by name. Each adds inputs and outputs to a form; the probes of its block hold its numbers to Python's.

import type { Form } from "../form.ts";
import { algorithmControl } from "./algorithm.ts";
import { areasControl } from "./areas.ts";
import { beamControl } from "./beam.ts";
import { blockControl } from "./block.ts";
import { combineControl } from "./combine.ts";
import { costControl } from "./cost.ts";
import { eigenvalueControl } from "./eigenvalue.ts";
import { featuresControl } from "./features.ts";
import { fiveScoresControl } from "./five-scores.ts";
import { generateControl } from "./generate.ts";
import { historyControl } from "./history.ts";
import { lengthPenaltyControl } from "./length-penalty.ts";
import { lookupControl } from "./lookup.ts";
import { maskControl } from "./mask.ts";
import { melControl } from "./mel.ts";
import { mergesControl } from "./merges.ts";
import { ngramControl } from "./ngram.ts";
import { oneHotControl } from "./one_hot.ts";
import { orderControl } from "./order.ts";
import { ordersControl } from "./orders.ts";
import { permuteControl } from "./permute.ts";
import { pixelOrdersControl } from "./pixel-orders.ts";
import { pointsControl } from "./points.ts";
import { positionProductsControl } from "./position-products.ts";
import { positionsControl } from "./positions.ts";
import { rankControl } from "./rank.ts";
import { recursionControl } from "./recursion.ts";
import { rotaryControl } from "./rotary.ts";
import { rowControl } from "./row.ts";
import { samplingControl } from "./sampling.ts";
import { seriesControl } from "./series.ts";
import { softmaxControl } from "./softmax.ts";
import { stepControl } from "./step.ts";
import { switchesControl } from "./switches.ts";
import { varianceControl } from "./variance.ts";
import { wavesControl } from "./waves.ts";
import { windowControl } from "./window.ts";

// The parameters of a control come from Python, so their type is checked there.
export const CONTROLS: Record<string, (form: Form, params: any) => void> = {
  "five-scores": fiveScoresControl,
  "length-penalty": lengthPenaltyControl,
  "pixel-orders": pixelOrdersControl,
  "position-products": positionProductsControl,
  algorithm: algorithmControl,
  areas: areasControl,
  beam: beamControl,
  block: blockControl,
  combine: combineControl,
  cost: costControl,
  eigenvalue: eigenvalueControl,
  features: featuresControl,
  generate: generateControl,
  history: historyControl,
  lookup: lookupControl,
  mask: maskControl,
  mel: melControl,
  merges: mergesControl,
  ngram: ngramControl,
  one_hot: oneHotControl,
  order: orderControl,
  orders: ordersControl,
  permute: permuteControl,
  points: pointsControl,
  positions: positionsControl,
  rank: rankControl,
  recursion: recursionControl,
  rotary: rotaryControl,
  row: rowControl,
  sampling: samplingControl,
  series: seriesControl,
  softmax: softmaxControl,
  step: stepControl,
  switches: switchesControl,
  variance: varianceControl,
  waves: wavesControl,
  window: windowControl,
};
