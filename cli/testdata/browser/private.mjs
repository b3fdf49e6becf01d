// Drives Chromium through an experiment whose rewards nobody sees: a leader and a helper, each a
// process with a database of its own, and visitors whose reports are made by the library that the
// helper serves. TestBrowserPrivate says by the environment where sotto is, where it may keep its
// data, where the leader's PostgreSQL is, and how many visitors come. It prints a line for each thing
// that held, and on stderr what was measured.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const { SOTTO: program, SOTTO_DIR: dir, SOTTO_DATABASE_OF_LEADER: database, SOTTO_VISITORS, CHROMIUM: browserPath } = process.env;
const visitors = Number(SOTTO_VISITORS);
const step = (text) => console.log(text);
const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });

// ---- the shop
let imports = '';
const shop = createServer(async (request, answer) => {
  const path = new URL(request.url, 'http://shop').pathname;
  const name = { '/': 'private.html', '/private-visitors.mjs': 'private-visitors.mjs' }[path];
  if (!name) {
    answer.writeHead(404).end();
    return;
  }
  const text = (await readFile(name, 'utf8')).replace('IMPORTS', imports);
  answer.writeHead(200, { 'Content-Type': name.endsWith('.html') ? 'text/html' : 'text/javascript' }).end(text);
});
await new Promise((done) => { shop.listen(0, '127.0.0.1', done); });
const shopURL = `http://127.0.0.1:${shop.address().port}`;

// ---- the two servers
const running = [];
let said = '';
async function start(last, ...args) {
  const p = spawn(program, ['serve', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  running.push(p);
  let out = '';
  p.stderr.on('data', (text) => { said += text; });
  await new Promise((done, failed) => {
    p.on('exit', (code) => failed(new Error(`sotto serve ${args} ended with ${code}: ${said}`)));
    p.stdout.on('data', (text) => {
      out += text;
      if (out.includes(last)) done();
    });
  });
  p.removeAllListeners('exit');
  return { p, out, url: /http:\/\/[\d.:]+/.exec(out)[0] };
}
async function end(p) {
  const gone = new Promise((done) => { p.once('exit', done); });
  p.kill('SIGTERM');
  await gone;
}
process.on('exit', () => running.forEach((p) => p.kill('SIGKILL')));

const secret = join(dir, 'secret'), declaration = join(dir, 'shop.yaml'), helperData = join(dir, 'helper');
const first = await start('integrity', '--role', 'helper', '--listen', '127.0.0.1:0', '--data', helperData);
await end(first.p);
const helperKey = /helper\.key[^:]*: (\S+)/.exec(first.out)[1], integrity = /integrity (\S+)/.exec(first.out)[1];
const window = visitors > 1000 ? 30 : 10;
await writeFile(declaration, `name: shop
arms: [red, blue]
policy: {policy: dp-klucb-j, first: ${Math.max(10, Math.floor(visitors / 8))}}
budget: {epsilon: 30}
trust: two-server
grid: 1
report_after: 1s
window: ${window}s
missing: default
unit: {of: visit}
helper: {url: "${first.url}", key: "${helperKey}"}
`);
const helper = await start('integrity', '--role', 'helper', '--listen', first.url.slice(7), '--data', helperData,
  '--task', declaration, '--secret-file', secret);
const leader = await start('/openapi.yaml', '--listen', '127.0.0.1:0', '--database', database,
  '--allow-origin', shopURL, '--helper-secret', `shop=${secret}`);
const admin = /sotto_[\w-]+/.exec(leader.out)[0];
async function ask(method, path, body) {
  const r = await fetch(leader.url + path, { method, headers: { 'X-API-Key': admin }, body });
  const text = await r.text();
  assert.ok(r.ok, `${path}: ${r.status} ${text}`);
  return text;
}
const keyFor = async (...scopes) =>
  JSON.parse(await ask('POST', '/v1/keys', JSON.stringify({ name: scopes[0], scopes }))).key;
await ask('POST', '/v1/experiments', await readFile(declaration, 'utf8'));
await ask('POST', '/v1/experiments/shop/start');
step('two servers have started');

const mac = createHash('sha256').update(await keyFor('sign')).digest(), open = await keyFor('browser', 'decide', 'reward');
let made = 0;
const tokens = (n) => Array.from({ length: n }, () => {
  const text = Buffer.from(`person ${++made}`).toString('base64url') + '.' + (Math.floor(Date.now() / 1000) + 3600);
  return text + '.' + createHmac('sha256', mac).update(`*\n${text}`).digest('base64url');
});

const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-gpu',
  '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync',
  '--disable-dev-shm-usage'] });
try {
  const library = `${helper.url}/client/sotto-private.js`;
  const context = await browser.newContext();

  // A library with another hash does not run.
  imports = JSON.stringify({ imports: { sotto: library }, integrity: { [library]: `sha384-${'A'.repeat(64)}` } });
  const wrong = await context.newPage();
  const blocked = wrong.waitForEvent('console', (m) => /integrity/.test(m.text()));
  await wrong.goto(shopURL);
  await blocked;
  assert.equal(await wrong.evaluate('globalThis.ready'), undefined);
  await wrong.close();
  step('a library with another hash is not run');

  imports = JSON.stringify({ imports: { sotto: library }, integrity: { [library]: integrity } });
  const page = await context.newPage();
  const complaints = [];
  page.on('console', (m) => complaints.push(m.text()));
  page.on('pageerror', (e) => complaints.push(String(e)));
  await page.goto(shopURL);
  await page.waitForFunction('globalThis.ready');
  const task = /task shop: (\S+)/.exec(helper.out)[1];
  const pin = { trust: 'two-server', helper: helperKey, task }, share = { red: 0.25, blue: 0.75 };
  const began = Date.now();
  const seen = async () => page.evaluate('globalThis.seen()');
  for (let left = visitors; left > 0; left -= 500) {
    await page.evaluate(([...args]) => visit(...args), [leader.url, open, pin, tokens(Math.min(left, 500)), share]);
  }
  const made1 = Date.now() - began;
  let at = await seen();
  for (let i = 0; i < 600 && at.requests < visitors - at.lost; i++, at = await seen()) await sleep(100);
  const { given, lost, reports, refused, bytes, error } = at;
  process.stderr.write(`${visitors} visitors in ${made1} ms, reports after ${Date.now() - began} ms: ${
    JSON.stringify({ given, lost, reports, refused, bytes })}\n`);
  assert.equal(lost, 0, error);
  assert.equal(at.requests, visitors);
  assert.equal(Object.keys(bytes).length, 1); // whatever happened
  const missing = visitors - reports;
  assert.ok(missing <= visitors / 10, `${missing} reports were not taken`);
  step('every visitor sent one report');

  // What is released is the sum of what was reported, in the order of the decisions' numbers, with two
  // noises of which P(|X + Y| > 1) < 1e-11 a line: the budget is large on purpose.
  let lines, text, released;
  for (let i = 0; i < 1200; i++) {
    text = await ask('GET', '/v1/experiments/shop/transcript');
    lines = text.trim().split('\n').map((l) => JSON.parse(l)).filter((l) => l.release);
    released = lines.flatMap((l) => l.release.n).reduce((x, y) => x + y, 0);
    if (released >= visitors / 3) break;
    await sleep(100);
  }
  assert.ok(released >= visitors / 3, `${released} are released: ${said}`);
  const next = [0, 0];
  let worst = 0;
  for (const { plays, release } of lines) {
    const arms = plays.filter((x) => x.release).map((x) => x.arm);
    assert.equal(release.mechanism.trust, 'two-server');
    assert.equal(arms.length, release.n.length);
    release.n.forEach((n, i) => {
      const of = at.outcomes[arms[i]].slice(next[arms[i]], next[arms[i]] += n);
      assert.equal(of.length, n);
      const off = release.sum[i] - of.reduce((x, y) => x + y, 0);
      assert.ok(off < 1 && off > -1 - missing, `arm ${arms[i]}: a sum of ${n} is off by ${off}`);
      worst = Math.max(worst, Math.abs(off));
    });
  }
  process.stderr.write(`${lines.length} lines release ${released}, off by ${worst} at most, ${missing} missing\n`);
  step('what is released is what was reported');

  const file = join(dir, 'transcript.jsonl');
  await writeFile(file, text);
  const replay = spawnSync(program, ['replay', file], { encoding: 'utf8' });
  assert.equal(replay.status, 0, replay.stderr);
  step('the transcript replays');

  const [mean, size] = [await page.evaluate(([...args]) => time(...args), [leader.url, open, pin, tokens(5)]),
    Object.keys(bytes)];
  process.stderr.write(`a report is made in ${mean} ms, and has ${size} bytes\n`);
  assert.deepEqual(complaints.filter((c) => !/503/.test(c)), []); // of a service that was busy
} finally {
  await browser.close();
  shop.close();
}
process.exit(0);
