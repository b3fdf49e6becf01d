// Drives Chromium through the life of an experiment, as people would. TestBrowser says by the
// environment where sotto is, where it may keep its data, and how many visitors come. It prints a
// line for each thing that held.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { chromium } from 'playwright-core';

const { SOTTO: program, SOTTO_DIR: dir, SOTTO_VISITORS: visitors, SOTTO_SHOTS: shots, CHROMIUM: browserPath } = process.env;
const name = 'button', patience = 240_000 + 30 * visitors;
const step = (text) => console.log(text);

// ---- the pages of a shop, of another origin
const kinds = { '.html': 'text/html', '.mjs': 'text/javascript', '.js': 'text/javascript' };
const shop = createServer(async (request, answer) => {
  const path = request.url === '/' ? '/visitors.html' : new URL(request.url, 'http://shop').pathname;
  try {
    const text = await readFile(join('.', path));
    answer.writeHead(200, { 'Content-Type': kinds[extname(path)] ?? 'text/plain' }).end(text);
  } catch {
    answer.writeHead(404).end();
  }
});
await new Promise((done) => shop.listen(0, '127.0.0.1', done));
const shopURL = `http://127.0.0.1:${shop.address().port}`;

// ---- the service, which will be killed
let service, admin, said = '';
async function start(listen) {
  service = spawn(program, ['serve', '--data', join(dir, 'data'), '--listen', listen, '--allow-origin', shopURL,
    '--person-cap', 'unit=person,epsilon=3/365d'],
    { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  service.stderr.on('data', (text) => { said += text; });
  await new Promise((done, failed) => {
    service.on('exit', (code) => failed(new Error(`sotto serve ended with ${code}: ${said}`)));
    service.stdout.on('data', (text) => {
      out += text;
      if (out.includes('/openapi.yaml')) done();
    });
  });
  service.removeAllListeners('exit');
  admin ??= /sotto_[\w-]+/.exec(out)[0];
  return /http:\S+?(?=,)/.exec(out)[0];
}
async function kill() {
  const gone = new Promise((done) => { service.once('exit', done); });
  service.kill('SIGKILL');
  await gone;
}
const base = await start('127.0.0.1:0');
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-gpu',
  '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync',
  '--disable-dev-shm-usage'] });
process.on('exit', () => service.kill('SIGKILL'));

async function post(path, body) {
  const r = await fetch(base + path, { method: 'POST', headers: { 'X-API-Key': admin }, body });
  assert.ok(r.ok, `${path}: ${r.status} ${await r.clone().text()}`);
  return r.json();
}
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const keyFor = async (...scopes) => (await post('/v1/keys', JSON.stringify({ name: scopes[0], scopes }))).key;

try {
  const { page, complaints } = await operator();
  await declare(page);
  await life(page);
  await weigh();
  await read(page);
  await plain();
  await typed(page);
  const at = `/experiments/${name}`;
  for (const path of ['/', '/login', '/new', '/new?as=text', '/keys', '/account', '/experiments/none', '/none', at, `${at}/ledger`, `${at}/stop`, '/help/serve.md',
    `${at}/off`]) await inspect(page, path);
  await page.goto(base + at);
  const metric = page.getByRole('region', { name: 'Metric basket' });
  assert.match(await metric.innerText(), /red control.*\[.*\nblue.*\[.*\[/s);
  await page.getByText("the floor's coin gave red").waitFor();
  step('axe finds nothing serious');
  await stop(page);
  // Only that were asked for on purpose, and a service that was killed.
  assert.deepEqual(complaints.filter((c) => !/40[04]|503|ERR_/.test(c)), []);
} finally {
  await browser.close();
  shop.close();
}
process.exit(0);

// operator opens a browser with a key, and says what its console says. Nothing moves in it, so that
// axe sees no color on its way to another.
async function operator() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  const complaints = [];
  page.on('console', (m) => { if (m.type() === 'error') complaints.push(m.text()); });
  page.on('pageerror', (e) => complaints.push(String(e)));
  await page.goto(base);
  await page.getByLabel('Key').fill(admin);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Log out' }).waitFor();
  step('a key logs in');
  return { context, page, complaints };
}

// declare makes an experiment by the form, which says what is wrong while it is filled in, and starts it.
async function declare(page) {
  await page.getByRole('link', { name: 'New experiment' }).click();
  await page.locator('[name=goal][value=earn]').check();
  await page.locator('#name').fill('Button!');
  await page.locator('#arms').fill('red\nblue');
  await page.getByText(/Name.* must/).first().waitFor();
  await page.locator('#name').fill(name);
  await page.locator('#description').fill('Which color of the button do people buy by?');
  await page.locator('#window').fill('1s');
  await page.getByText('More settings').click();
  await page.locator('#floor').fill('0.2');
  const said = page.locator('#preview');
  await page.getByText('Units that come again').click();
  await page.locator('#per_person').fill('3');
  await page.locator('#checked').getByText('at most 3 decisions of a person').waitFor();
  assert.match(await said.textContent(), /per_person: 3/);
  await page.locator('#per_person').fill('');
  const keep = page.locator('#keep');
  await keep.fill('green');
  await keep.blur();
  await page.locator('#keep-error:not([hidden])').waitFor();
  await keep.fill('leader');
  await page.locator('#keep-error[hidden]').waitFor({ state: 'attached' });
  assert.match(await said.textContent(), /stop: {keep: "leader"}/);
  await keep.fill('');
  await page.locator('#checked .good').waitFor();
  step('the form says what is wrong, and then what it promises');
  await page.getByRole('button', { name: 'Edit as text' }).click();
  const text = page.getByLabel('Declaration');
  await text.fill((await text.inputValue()).replace('{policy: "auto"}', '{policy: dp-klucb, first: 40}') +
    '\nmetrics: [{name: basket, range: [0, 200], budget: {epsilon: 0.5}}]\n');
  await page.getByRole('button', { name: 'Make a draft' }).click();
  await page.getByRole('button', { name: 'Start' }).click();
  await page.locator('#live-state .state', { hasText: 'running' }).waitFor();
  step('the experiment has started');
}

// life sends visitors while somebody looks: red sells better at first, then blue does, and the
// service is killed between.
async function life(page) {
  const decisions = async () => Number(await page.locator('[data-decisions]').getAttribute('data-decisions'));
  const leads = (arm) => page.locator(`[data-leader="${arm}"]`);
  const sign = await keyFor('sign'), open = await keyFor('browser', 'decide', 'reward');
  const mac = createHash('sha256').update(sign).digest();
  let made = 0;
  const tokens = (n) => Array.from({ length: n }, () => {
    const text = Buffer.from(`person ${++made}`).toString('base64url') + '.' + (Math.floor(Date.now() / 1000) + 3600);
    return text + '.' + createHmac('sha256', mac).update(`*\n${text}`).digest('base64url');
  });
  const context = await browser.newContext();
  const street = await context.newPage();
  await street.goto(shopURL);
  await street.waitForFunction('globalThis.ready');
  await street.evaluate(([at, key, flag, first]) => open_(at, key, flag, first), [base, open, name, tokens(6)]);
  const began = Date.now();
  let asked = 0, away = 0;
  const come = async (n, share) => {
    asked += n;
    return street.evaluate(([flag, t, s]) => visit(flag, t, s), [name, tokens(n), share]);
  };
  const until = async (arm, share, least) => {
    const end = Date.now() + patience;
    do {
      assert.ok(Date.now() < end, `${arm} does not lead: the page says ${await page.locator('#live-state').innerText()}`);
      const seen = await come(200, share);
      assert.equal(seen.lost, 0, 'visitors were given nothing');
    } while (asked < least || !(await leads(arm).count()));
  };
  await until('red', { red: 0.7, blue: 0.3 }, visitors / 5);
  const before = await decisions();
  step('red leads');

  await kill();
  await page.getByText('Reconnecting').waitFor();
  step('the page says that it reconnects');
  await start(new URL(base).host);
  await page.getByText('Reconnecting').waitFor({ state: 'hidden' });
  await until('blue', { red: 0, blue: 1 }, visitors);
  const after = await decisions();
  assert.ok(after > before, `decisions were ${before}, and are ${after}`);
  step('after a restart the numbers go on, and blue leads');
  const seconds = (Date.now() - began) / 1000;
  console.error(`${asked} visitors in ${seconds.toFixed(1)} s, ${(asked / seconds).toFixed(0)} per second`);
  await context.close();
}

// read goes through the charts by the keyboard: what is there is spoken.
async function read(page) {
  for (const id of ['course', 'traffic']) {
    const chart = page.locator(`#${id} .canvas`), spoken = page.locator(`#${id} [aria-live]`);
    await chart.focus();
    await page.keyboard.press('ArrowLeft');
    assert.match(await spoken.textContent(), id === 'course' ? /\d\d:\d\d.*red 0\.\d+ \(.* to .*\), blue 0\.\d+/ : /red \S+, blue \S+/);
    await page.keyboard.press('Escape');
    assert.equal(await spoken.textContent(), '');
  }
  for (const width of [360, 1280]) await point(page, width);
  await page.locator('#over').selectOption('log');
  await page.locator('#course canvas').waitFor();
  step('charts are read by the keyboard');
}

// point goes over a chart of twelve lines, and sees that nothing moves, and that two lines have colours.
async function point(page, width) {
  await page.setViewportSize({ width, height: 900 });
  const figure = await page.evaluateHandle(() => {
    const f = document.createElement('figure');
    f.className = 'chart';
    f.id = 'twelve';
    document.getElementById('main').prepend(f);
    Charts.make(f, { kind: 'step', labels: true, focus: true, x: { kind: 'number' }, y: { label: 'mean' },
      series: Array.from({ length: 12 }, (_, i) => ({ name: `variant ${i}`, dash: i > 3, band: true })) })
      .set({ x: [1, 2, 3], lead: 7, series: Array.from({ length: 12 }, (_, i) => ({ y: [i, i + 1, i], lo: [i - 1, i, i - 1], hi: [i + 1, i + 2, i + 1] })) });
    return f;
  });
  const lit = () => page.locator('#twelve .lit').allTextContents();
  await page.locator('#twelve').scrollIntoViewIfNeeded();
  assert.deepEqual(await lit(), ['variant 7']);
  await page.waitForTimeout(200); // for what was on its way
  const places = () => page.evaluate(() => [...document.querySelectorAll('#twelve .canvas, #twelve .legend, #arms')]
    .map((e) => JSON.stringify(e.getBoundingClientRect())).join());
  await page.evaluate(() => {
    globalThis.moved = 0;
    globalThis.watch = new PerformanceObserver((list) => { for (const e of list.getEntries()) globalThis.moved += e.value; });
    watch.observe({ type: 'layout-shift' });
  });
  const box = await page.locator('#twelve .canvas').boundingBox(), was = await places(), seen = new Set();
  for (let i = 1; i < 20; i++) {
    await page.mouse.move(box.x + box.width * i / 20, box.y + box.height * ((i * 3) % 7 + 1) / 9);
    assert.equal(await places(), was, `at ${width} pixels something moves`);
    const now = await lit();
    assert.ok(now.includes('variant 7') && now.length <= 2, `${now} have colours`);
    for (const name of now) seen.add(name);
  }
  assert.ok(seen.size > 3, `only ${[...seen]} were pointed at`);
  assert.equal(await page.evaluate(() => new Promise((done) => setTimeout(() => done(moved), 100))), 0, 'layout shift');
  await page.evaluate(() => watch.disconnect());
  await figure.evaluate((f) => f.remove());
  await page.setViewportSize({ width: 1280, height: 900 });
}

// plain looks at the pages without script.
async function plain() {
  const context = await browser.newContext({ javaScriptEnabled: false });
  await context.addCookies(await browser.contexts()[0].cookies());
  const page = await context.newPage();
  await page.goto(`${base}/experiments/${name}`);
  assert.match(await page.locator('#live-arms').innerText(), /blue/);
  assert.match(await page.getByRole('region', { name: 'Decisions by hour' }).innerText(), /\d{4}-\d\d-\d\d \d\d:00/);
  await page.goto(`${base}/?q=none`);
  await page.getByText('No experiment matches').waitFor();
  await page.getByLabel('Search').fill('BUTT');
  await page.getByLabel('State').selectOption('running');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByRole('link', { name }).waitFor();
  await page.goto(`${base}/new`);
  await page.locator('#name').fill('other');
  await page.getByRole('button', { name: 'Check' }).click();
  await page.locator('#arms-error:not([hidden])').waitFor();
  step('all is there without script');
  await context.close();
}

// typed fills in the form, and leaves it in all ways: what was typed is there. It also has a forecast, and a key is copied.
async function typed(page) {
  const field = (id) => page.locator(`#${id}`);
  await page.goto(`${base}/new`);
  await field('name').fill(name);
  await field('name-error').getByText('taken').waitFor();
  await field('name').fill('other');
  await field('arms').fill('one\ntwo');
  await field('epsilon').fill('0');
  await field('epsilon').blur();
  await field('epsilon-error').getByText('above 0').waitFor();
  await page.reload();
  await page.getByText('what you typed before').waitFor();
  assert.equal(await field('arms').inputValue(), 'one\ntwo');
  await page.getByRole('button', { name: 'Edit as text' }).click();
  assert.match(await page.getByLabel('Declaration').inputValue(), /name: "other"[^]*"one"[^]*epsilon: 0/);
  await page.goBack();
  assert.equal(await field('epsilon').inputValue(), '0');
  await field('epsilon').fill('1');
  await field('odds').getByText('factor of 2.72').waitFor();
  await field('traffic').fill('2000');
  await field('effect').fill('0.2');
  await field('window').fill('1h');
  await page.locator('#unit').fill('');
  await page.getByRole('button', { name: 'Make a draft' }).click();
  for (const id of ['goal', 'unit']) await page.locator(`#${id}-error:not([hidden])`).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.name), 'goal');
  await page.locator('#unit').fill('person');
  await page.locator('[name=goal][value=decide]').check();
  await page.locator('#forecast').getByText('in half of the runs').waitFor();
  await page.getByText('Choose a policy yourself').click();
  assert.deepEqual([await page.locator('[name=policy][value=split]').isVisible(), await page.locator('[name=policy][value=dp-imed]').isVisible()],
    [true, false]);
  await inspectHere(page, '/new, filled in');
  await page.getByRole('button', { name: 'Make a draft' }).click();
  await page.getByText('it has not been started').waitFor();
  await page.goto(`${base}/new`);
  await page.locator('#again[hidden]').waitFor({ state: 'attached' });
  await page.waitForFunction(() => document.getElementById('name').value === '');
  await page.goto(`${base}/keys`);
  await page.locator('#name').fill('copied');
  await page.getByLabel('read:').check();
  await page.getByRole('button', { name: 'Make a key' }).click();
  await page.getByRole('button', { name: 'Copy' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  step('the form loses nothing that was typed');
}

// stop ends the experiment: not by accident.
async function stop(page) {
  await page.goto(`${base}/experiments/${name}`);
  await page.getByRole('link', { name: 'Stop and declare' }).click();
  await page.getByLabel('Reason').fill('blue sells better');
  await page.getByLabel('type the name').fill('buton');
  await page.getByRole('button', { name: 'Stop and declare' }).click();
  await page.getByText('this is not the name').waitFor();
  await page.getByLabel('type the name').fill(name);
  await page.getByRole('button', { name: 'Stop and declare' }).click();
  await page.getByText('everybody gets blue').waitFor();
  assert.match(await page.locator('#history').innerText(), /Stopped: .* by admin\s*“?"?blue sells better/);
  step('who types its name stops it');
}

// weigh says what a first look costs: what is fetched, and when something is seen.
async function weigh() {
  const context = await browser.newContext();
  const page = await context.newPage();
  await context.addCookies((await browser.contexts()[0].cookies()));
  await page.goto(`${base}/experiments/${name}`, { waitUntil: 'load' });
  const got = await page.evaluate(() => {
    const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
    return { paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
      plain: all.reduce((n, r) => n + r.decodedBodySize, 0), sent: all.reduce((n, r) => n + r.transferSize, 0) };
  });
  console.error(`the live page: ${got.plain} bytes, ${got.sent} as sent, first paint after ${got.paint?.toFixed(0)} ms`);
  assert.ok(got.plain > 50_000 && got.plain < 150_000, `the live page takes ${got.plain} bytes`);
  step('the live page is light');
  await context.close();
}

// inspect has axe look at a page in both color schemes, and sees that nothing is wider than any of
// three screens; and takes its picture where these are wanted.
async function inspect(page, path) {
  await page.goto(base + path);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const width of [360, 820, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${path} is ${over} pixels wider than ${width}`);
      if (shots) {
        await page.waitForTimeout(300); // for charts of the new width
        const file = `${path.slice(1).replaceAll('/', '-') || 'home'}-${width}-${colorScheme}.png`;
        await page.screenshot({ path: join(shots, file), fullPage: true });
      }
      if (width !== { light: 360, dark: 1280 }[colorScheme]) continue; // axe takes a second
      await inspectHere(page, `${path}, ${colorScheme}, ${width}`);
    }
  }
}

// inspectHere has axe look at the page that is open, as it is.
async function inspectHere(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
  for (const v of found.violations) {
    const where = v.nodes.map((n) => `${n.target}: ${n.failureSummary}`).join('\n');
    console.error(`axe, ${what}: ${v.impact}: ${v.id}: ${v.help}\n${where}`);
  }
  assert.deepEqual(found.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => v.id), [], what);
}
