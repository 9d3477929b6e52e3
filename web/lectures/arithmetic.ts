// Arithmetic that several controls share, in double precision.

/** Return the softmax of scores; a row whose scores are all -Infinity gives NaN, as in Python. */
export function softmax(scores: readonly number[]): number[] {
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - most));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** Return the entropy of a distribution in bits. */
export function entropy(distribution: readonly number[]): number {
  return distribution.reduce((total, p) => (p > 0 ? total - p * Math.log2(p) : total), 0);
}
