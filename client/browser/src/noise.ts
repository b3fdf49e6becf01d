// Exact discrete noise: Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential
// Privacy", Algorithms 1 to 3, in whole numbers of any size. All randomness is the browser's.

import type { Law } from './sotto-private.ts';

/** A number that is uniform below n. */
function below(n: bigint): bigint {
  const bits = (n - 1n).toString(2).length;
  for (;;) {
    let x = 0n;
    for (const b of crypto.getRandomValues(new Uint8Array((bits + 7) >> 3))) x = (x << 8n) | BigInt(b);
    x >>= BigInt(-bits & 7);
    if (x < n) return x;
  }
}

const coin = (n: bigint, d: bigint) => below(d) < n;

/** True with probability exp(−n/d). */
function bernoulliExp(n: bigint, d: bigint): boolean {
  for (; n > d; n -= d) if (!bernoulliExp(1n, 1n)) return false;
  let k = 1n;
  while (coin(n, d * k)) k++;
  return (k & 1n) === 1n;
}

/** P(x) ∝ exp(−|x|·den/num). */
function laplace(num: bigint, den: bigint): bigint {
  for (;;) {
    const u = below(num);
    if (!bernoulliExp(u, num)) continue;
    let v = 0n;
    while (bernoulliExp(1n, 1n)) v++;
    const x = (u + num * v) / den, minus = coin(1n, 2n);
    if (!minus) return x;
    if (x !== 0n) return -x; // else 0 would have double mass
  }
}

function isqrt(n: bigint): bigint {
  let x = BigInt(Math.floor(Math.sqrt(Number(n))));
  while (x * x > n) x--;
  while ((x + 1n) * (x + 1n) <= n) x++;
  return x;
}

/** P(x) ∝ exp(−x²·den/(2·num)). */
function gaussian(num: bigint, den: bigint): bigint {
  const t = isqrt(num / den) + 1n;
  for (;;) {
    const y = laplace(t, 1n);
    const off = (y < 0n ? -y : y) * den * t - num; // (|y| − σ²/t)²/(2σ²), all times den·t
    if (bernoulliExp(off * off, 2n * num * den * t * t)) return y;
  }
}

/** Draws from a law of noise. */
export function draw(law: Law, fraction: string): bigint {
  const [num = 0n, den = 0n] = /^\d{1,20}\/\d{1,20}$/.test(fraction) ? fraction.split('/').map(BigInt) : [];
  if (num < 1n || den < 1n) throw new TypeError('sotto: noise must be a fraction of two whole numbers');
  switch (law) {
    case 'laplace': return laplace(num, den);
    case 'gaussian': return gaussian(num, den);
    default: throw new TypeError('sotto: law must be laplace or gaussian');
  }
}

/**
 * A share of the range, from 0 to 1, as a multiple of 1/grid: rounded up with the probability of the
 * fraction, else down, so that its mean is the share.
 */
export function round(share: number, grid: number): number {
  const unit = 53n, exact = BigInt(Math.round(share * 2 ** 53)) * BigInt(grid);
  const rest = exact & ((1n << unit) - 1n);
  return Number((exact >> unit) + (rest !== 0n && below(1n << unit) < rest ? 1n : 0n));
}

/** A share of the range in steps of 2⁻²⁰. */
export const steps = (share: number): number => Math.floor(share * 2 ** 20 + 0.5);
