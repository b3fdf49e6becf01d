// HPKE (RFC 9180), base mode, one message: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, by
// the browser's own cryptography.
import { ascii, base64url, big, concat, unbase64url, type Bytes } from './bytes.ts';

const kem = concat(ascii('KEM'), big(0x20, 2));
const suite = concat(ascii('HPKE'), big(0x20, 2), big(1, 2), big(1, 2));
const none = new Uint8Array();

async function hmac(key: Bytes, data: Bytes): Promise<Bytes> {
  // WebCrypto refuses an empty key, which HMAC fills up with zeros
  const k = await crypto.subtle.importKey('raw', key.length ? key : new Uint8Array(32),
    { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return new Uint8Array(await crypto.subtle.sign('HMAC', k, data));
}

const extract = (id: Bytes, salt: Bytes, label: string, key: Bytes) =>
  hmac(salt, concat(ascii('HPKE-v1'), id, ascii(label), key));

/** LabeledExpand of at most 32 bytes. */
async function expand(id: Bytes, key: Bytes, label: string, info: Bytes, size: number): Promise<Bytes> {
  const text = concat(big(size, 2), ascii('HPKE-v1'), id, ascii(label), info, Uint8Array.of(1));
  return (await hmac(key, text)).slice(0, size);
}

/** DeriveKeyPair: the key of 32 random bytes. */
async function keyPair(seed: Bytes): Promise<{ secret: CryptoKey; open: Bytes }> {
  const raw = await expand(kem, await extract(kem, none, 'dkp_prk', seed), 'sk', none, 32);
  // an X25519 key in PKCS #8, which is how WebCrypto takes one (RFC 8410)
  const der = concat(unbase64url('MC4CAQAwBQYDK2VuBCIEIA', 'header'), raw);
  const secret = await crypto.subtle.importKey('pkcs8', der, { name: 'X25519' }, true, ['deriveBits']);
  const { x } = await crypto.subtle.exportKey('jwk', secret);
  return { secret, open: unbase64url(x!, 'public key') };
}

/** A server's key, DAP's HpkeConfig. */
export interface Config { id: number; key: Bytes }

const kind = concat(big(0x20, 2), big(1, 2), big(1, 2), big(32, 2));
const size = 1 + kind.length + 32;

/** Reads an HpkeConfig in base64url. what names it in the error. */
export function parseConfig(text: string, what: string): Config {
  const raw = unbase64url(text, what);
  if (raw.length !== size || kind.some((x, i) => x !== raw[1 + i])) {
    throw new TypeError(`sotto: ${what} must be of X25519, HKDF-SHA256 and AES-128-GCM`);
  }
  return { id: raw[0]!, key: raw.slice(size - 32) };
}

/** Reads the first HpkeConfig of a list, as servers of Sotto write it. */
export const parseConfigs = (list: Uint8Array, what: string): Config =>
  parseConfig(base64url(list.subarray(2, 2 + size)), what);

/** Encrypts to a server, with a key of its own that 32 random bytes make: the key and the text. */
export async function seal(to: Config, info: Bytes, aad: Bytes, text: Bytes, seed: Bytes):
  Promise<[Bytes, Bytes]> {
  const { secret, open } = await keyPair(seed);
  const key = await crypto.subtle.importKey('raw', to.key, { name: 'X25519' }, false, []);
  const dh = new Uint8Array(await crypto.subtle.deriveBits({ name: 'X25519', public: key }, secret, 256));
  const shared = await expand(kem, await extract(kem, none, 'eae_prk', dh), 'shared_secret',
    concat(open, to.key), 32);
  const schedule = concat(Uint8Array.of(0), await extract(suite, none, 'psk_id_hash', none),
    await extract(suite, none, 'info_hash', info));
  const prk = await extract(suite, shared, 'secret', none);
  const aes = await crypto.subtle.importKey('raw', await expand(suite, prk, 'key', schedule, 16),
    'AES-GCM', false, ['encrypt']);
  const iv = await expand(suite, prk, 'base_nonce', schedule, 12);
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv, additionalData: aad }, aes, text);
  return [open, new Uint8Array(sealed)];
}
