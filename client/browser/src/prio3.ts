// Prio3Sum of draft-irtf-cfrg-vdaf-14, the client's half, for two servers: a number is split into
// two shares, of which each alone is uniformly random, with a proof that it is in the range.
import { turboshake128 } from '@noble/hashes/sha3-addons.js';
import { ascii, big, concat, type Bytes } from './bytes.ts';

/** The order of the field, Field64. */
const p = 0xffffffff00000001n;

const add = (a: bigint, b: bigint) => (a + b) % p;
const sub = (a: bigint, b: bigint) => (a + p - b) % p;
const mul = (a: bigint, b: bigint) => (a * b) % p;

function pow(a: bigint, n: bigint): bigint {
  let r = 1n;
  for (; n > 0n; n >>= 1n, a = mul(a, a)) if (n & 1n) r = mul(r, a);
  return r;
}

// The usages of randomness.
const measurementShare = 1, proofShare = 2, prove = 4;

/** n field elements of XofTurboShake128. */
function expand(seed: Bytes, ctx: Bytes, usage: number, binder: number[], n: number): bigint[] {
  const dst = concat(big(0x0c00, 2), big(2, 4), big(usage, 2), ctx);
  const xof = turboshake128.create({ D: 1 })
    .update(concat(Uint8Array.of(dst.length & 255, dst.length >> 8), dst, Uint8Array.of(seed.length),
      seed, Uint8Array.from(binder)));
  const out: bigint[] = [];
  while (out.length < n) {
    const x = new DataView(xof.xof(8).slice().buffer).getBigUint64(0, true);
    if (x < p) out.push(x);
  }
  return out;
}

/** The polynomial with these values at the powers of a root of unity, the constant first. */
function interpolate(values: bigint[]): bigint[] {
  const n = BigInt(values.length), back = pow(pow(7n, (p - 1n) / n), p - 2n), scale = pow(n, p - 2n);
  let at = 1n;
  return values.map(() => {
    const y = values.reduceRight((sum, v) => add(mul(sum, at), v), 0n);
    at = mul(at, back);
    return mul(y, scale);
  });
}

const little = (v: bigint[]): Bytes => {
  const out = new DataView(new ArrayBuffer(8 * v.length));
  v.forEach((x, i) => out.setBigUint64(8 * i, x, true));
  return new Uint8Array(out.buffer);
};

/** The circuit's proof that each wire is 0 or 1: the wire's seed, and the gadget's polynomial. */
function proofOf(measurement: bigint[], first: bigint): bigint[] {
  const wire = [first, ...measurement];
  while (wire.length & (wire.length - 1)) wire.push(0n);
  const w = interpolate(wire);
  const gadget = new Array<bigint>(2 * w.length - 1).fill(0n); // w² − w
  w.forEach((a, i) => {
    w.forEach((b, j) => { gadget[i + j] = gadget[i + j]! + a * b; });
  });
  return [first, ...gadget.map((x, i) => sub(x % p, w[i] ?? 0n))];
}

/**
 * Splits a value from 0 to grid, a power of two, into the leader's share and the helper's, which is
 * the seed.
 */
export function shard(grid: number, value: number, ctx: Bytes, seed: Bytes, proverSeed: Bytes): Bytes {
  const bits = grid.toString(2).length;
  const measurement = [value, value + 2 ** bits - 1 - grid].flatMap((x) =>
    Array.from({ length: bits }, (_, i) => BigInt(Math.floor(x / 2 ** i) % 2)));
  const proof = proofOf(measurement, expand(proverSeed, ctx, prove, [1], 1)[0]!);
  const less = (of: bigint[], usage: number, binder: number[]) => {
    const theirs = expand(seed, ctx, usage, binder, of.length);
    return little(of.map((x, i) => sub(x, theirs[i]!)));
  };
  return concat(less(measurement, measurementShare, [1]), less(proof, proofShare, [1, 1]));
}

/** The application context of a task: dap-16, and its id. */
export const context = (version: string, task: Bytes): Bytes => concat(ascii(version), task);
