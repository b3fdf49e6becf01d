// Bytes as the drafts write them.

/** Bytes of a buffer that nobody shares, as WebCrypto wants them. */
export type Bytes = Uint8Array<ArrayBuffer>;

export function concat(...parts: Uint8Array[]): Bytes {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    out.set(p, at);
    at += p.length;
  }
  return out;
}

export const ascii = (text: string): Bytes => new TextEncoder().encode(text);

/** A number in so many bytes, the highest first. */
export function big(x: number | bigint, size: number): Bytes {
  const out = new Uint8Array(size);
  let rest = BigInt(x);
  for (let i = size - 1; i >= 0; i--) {
    out[i] = Number(rest & 255n);
    rest >>= 8n;
  }
  return out;
}

/** What has its length before it, in so many bytes. */
export const sized = (b: Uint8Array, size: number): Bytes => concat(big(b.length, size), b);

export function base64url(b: Uint8Array): string {
  let text = '';
  for (const x of b) text += String.fromCharCode(x);
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** Reads base64url without padding; what names the text in the error. */
export function unbase64url(text: string, what: string): Bytes {
  if (!/^[\w-]*$/.test(text) || text.length % 4 === 1) {
    throw new TypeError(`sotto: ${what} must be in base64url without padding`);
  }
  const raw = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(raw, (c) => c.charCodeAt(0));
}
