// Drives Chromium over the explorer, served and as files of a static host: turns the knob, and holds
// what is drawn against sotto run. TestExplorerBrowser says by the environment where sotto is, and
// where it may keep files. It prints a line for each thing that held.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { hostname } from 'node:os';
import { extname, join } from 'node:path';
import { chromium } from 'playwright-core';

const { SOTTO: program, SOTTO_DIR: dir, SOTTO_SHOTS: shots, CHROMIUM: executablePath } = process.env;
const step = (text) => console.log(text);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// ---- the page by sotto, and as files
const served = spawn(program, ['explore', '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] });
process.on('exit', () => served.kill());
const native = await new Promise((done) => {
  let out = '';
  served.stdout.on('data', (text) => {
    out += text;
    if (/look: (\S+)\n/.test(out)) done(/look: (\S+)\n/.exec(out)[1]);
  });
});
execFileSync('go', ['run', '../../../lab/explore/make', join(dir, 'site')], { stdio: ['ignore', 'ignore', 'inherit'] });
const kinds = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json',
  '.svg': 'image/svg+xml', '.gz': 'application/gzip' };
const host = createServer(async (request, answer) => {
  const path = new URL(request.url, 'http://host').pathname;
  try {
    const b = await readFile(join(dir, 'site', path === '/' ? 'index.html' : path));
    answer.writeHead(200, { 'Content-Type': kinds[extname(path === '/' ? '.html' : path)] ?? 'text/html' }).end(b);
  } catch {
    answer.writeHead(404).end();
  }
});
await new Promise((done) => host.listen(0, '127.0.0.1', done));
const files = `http://127.0.0.1:${host.address().port}/`;

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic',
  '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage',
  `--host-resolver-rules=MAP ${hostname()} 127.0.0.1`] });
const start = 'arms=0.75,0.6,0.3&policies=adap-klucb,dp-se:beta=0.001,kl-ucb&epsilon=0.5&horizon=20000&runs=32&seed=3';

// open is a page that says of each picture what it has, and complains of nothing.
async function open(url, more = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce', ...more });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  [page.complaints, page.sent] = [[], []];
  page.on('console', (m) => { if (m.type() === 'error') page.complaints.push(`${m.text()} ${m.location().url}`); });
  page.on('pageerror', (e) => page.complaints.push(String(e)));
  page.on('request', (r) => page.sent.push(r.postData() ?? ''));
  page.on('request', (r) => { if (!r.url().replace(/^blob:/, '').startsWith(new URL(url).origin)) page.complaints.push(`asks ${r.url()}`); });
  await page.addInitScript(() => {
    globalThis.pictures = [];
    document.addEventListener('picture', (e) => globalThis.pictures.push(e.detail));
  });
  await page.goto(url);
  return page;
}

// settled waits for the last picture of what was asked for by a change.
async function settled(page, change) {
  await page.evaluate(() => { globalThis.pictures.length = 0; });
  await change();
  // The page asks in the next frame.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.waitForFunction(() => ['done', 'refused'].includes(document.querySelector('#regret')?.dataset.state) &&
    globalThis.pictures.length > 0);
  return page.evaluate(() => globalThis.pictures.at(-1));
}

let number = 0;
// summary is summary.csv of an experiment, or of a command, by metric, policy and budget.
function summary(of, more = []) {
  const out = join(dir, `run-${++number}`), rows = {};
  if (Array.isArray(of)) execFileSync(program, [...of, '--out', out], { stdio: 'ignore' });
  else {
    writeFileSync(join(dir, 'copied.yaml'), of);
    execFileSync(program, ['run', join(dir, 'copied.yaml'), '--out', out, ...more], { stdio: 'ignore' });
  }
  const [head, ...lines] = readFileSync(join(out, 'summary.csv'), 'utf8').trim().split('\n').map(fields);
  for (const line of lines) {
    const row = Object.fromEntries(head.map((h, i) => [h, line[i]]));
    (rows[`${row.metric} ${row.policy} ${row.budget}`] ??= []).push(row);
  }
  return rows;
}
const fields = (line) => [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].slice(0, -1).map((m) => m[1].replace(/^"|"$/g, '').replaceAll('""', '"'));

// same holds a picture, and the table that is drawn, against what sotto run finds.
async function same(page, p) {
  assert.ok(!p.error, p.error);
  const yaml = await page.locator('#yaml').textContent();
  assert.equal(yaml, p.yaml);
  const rows = summary(yaml);
  for (const l of p.lines) {
    const found = rows[`regret ${l.policy} ${l.budget}`];
    assert.ok(found, `${l.policy} at ${l.budget} is not in ${Object.keys(rows)}`);
    for (const [k, column] of [['mean', 'mean'], ['q05', 'q05'], ['q95', 'q95']]) {
      assert.deepEqual(l[k], found.map((r) => Number(r[column])), `${l.label} ${k}`);
    }
    assert.deepEqual(p.at, found.map((r) => Number(r.t)));
  }
  const drawn = await page.locator('#price tbody tr').evaluateAll((trs) => trs.map((tr) => [tr.dataset.policy, tr.dataset.budget,
    ...[...tr.querySelectorAll('td[data-v]')].map((td) => Number(td.dataset.v))]));
  assert.equal(drawn.length, p.lines.filter((l) => l.asked).length);
  for (const [label, budget, regret, twin, price] of drawn) {
    const policy = label.split(' ')[0], last = (metric, b) => Number(rows[`${metric} ${policy} ${b}`].at(-1).mean);
    assert.equal(regret, last('regret', budget));
    if (budget === 'none') continue;
    assert.equal(twin, last('regret', 'none'));
    assert.equal(price, last('difference', budget));
  }
  const command = (await page.locator('#command').textContent()).split(' ').slice(1).map((w) => w.replace(/^'|'$/g, ''));
  const again = summary(command);
  for (const l of p.lines) {
    assert.equal(Number(again[`regret ${l.policy} ${l.budget}`].at(-1).mean), l.mean.at(-1));
  }
}

// honest looks for what a page must not say, and what it must take away or explain.
async function honest(url) {
  const page = await open(`${url}#${start}`);
  const sentence = () => page.locator('#sentence').textContent();
  const asks = (link) => settled(page, () => page.evaluate((s) => { location.hash = s; }, link));
  const two = 'arms=0.75,0.6&policies=dp-imed,dp-se&epsilon=0.05&horizon=2000&runs=16';

  // The bound is of T → ∞, and of a trusted server's noise.
  const early = await asks('arms=0.55,0.5&policies=dp-imed&epsilon=0.05&horizon=500&runs=16');
  const bound = early.bounds.find((b) => !b.worstCase).value.at(-1);
  assert.ok(bound > early.lines[0].mean.at(-1), `${bound} is not above the regret`);
  assert.match(await sentence(), /long-run lower bound with a trusted server, about .* does not hold yet/);
  assert.doesNotMatch(await sentence(), /can have less than/);
  await asks(two.replace('2000', '1000000').replace('dp-imed', 'dp-klucb')); // which is above the bound by then
  assert.match(await sentence(), /In the long run no policy with a trusted server can have less than about/);
  assert.equal(await page.locator('#free-mark').isVisible(), true);
  for (const trust of ['local', 'shuffle', 'two-server']) {
    await asks(`${two.replace('dp-imed,dp-se', 'batch-se')}&trust=${trust}`);
    assert.doesNotMatch(await sentence(), /bound|can have less/, trust);
    assert.equal(await page.locator('#free-mark').isVisible(), false);
    assert.equal(await page.locator('#free option').count(), 0);
  }

  // A budget that is free in the worst case says nothing of these arms.
  const worst = await asks('arms=0.5,0.6&policies=adac-ucb&rho=0.5&horizon=2000&runs=16');
  assert.deepEqual(worst.free.map((f) => f.worstCase), [true]);
  assert.doesNotMatch(await sentence(), /free/);
  assert.equal(await page.locator('#free option').count(), 0);

  // Numbers are short where they are shown, and whole where they are copied.
  await asks(two.replace('0.05', '0.03333333333333333'));
  assert.equal(await page.locator('#budget-value').textContent(), 'ε = 0.03333');
  assert.match(await sentence(), /^At ε = 0\.03333 /);
  assert.match(await page.locator('#link').textContent(), /epsilon=0\.03333333333333333/);

  // Arms that are equal, and rewards that are clipped, have no winner.
  await asks('arms=0.5,0.5&policies=dp-se,dp-imed&epsilon=1&horizon=2000&runs=16');
  assert.match(await sentence(), /^All arms have the same mean/);
  assert.equal(await page.locator('#against').isVisible(), false);
  await page.waitForTimeout(300); // until the page has nothing else to do
  const clipped = await asks('arms=table(0:0.6,10:0.4),table(1:1)&policies=dp-se,dp-imed&epsilon=1&horizon=2000&runs=16');
  assert.equal(clipped.unranked, true);
  assert.match(await sentence(), /^These regrets rank no policy: .*clipped/);
  assert.deepEqual((await page.locator('#price tbody td:last-child').allTextContents()).filter(Boolean), []);
  assert.doesNotMatch(await page.locator('#progress').textContent(), /ranking/);

  // What was played before is not left under another name.
  const log = join(dir, 'sent.csv');
  writeFileSync(log, 'arm,sent\nred,1\nblue,0\n');
  const refused = await settled(page, () => page.locator('#csv').setInputFiles(log));
  assert.match(refused.error, /no column "reward"/);
  assert.doesNotMatch(refused.error, /--/);
  for (const part of ['#sentence', '#regret', '#price', '#against', '#take', '#free-mark']) {
    assert.equal(await page.locator(part).isVisible(), false, part);
  }
  assert.equal((await asks('policies=&horizon=1000')).error, 'policies: at least one is needed');
  await asks(two.replace('dp-imed,dp-se', 'dp-se'));
  assert.equal(await page.locator('#regret canvas').isVisible(), true);

  // A change whose frame is late is one already: what was asked for before plays no other budgets.
  await page.evaluate((links) => new Promise((done) => {
    const frame = globalThis.requestAnimationFrame;
    const drawn = ({ detail }) => {
      if (detail.next) return;
      document.removeEventListener('picture', drawn);
      globalThis.requestAnimationFrame = (f) => setTimeout(() => { globalThis.requestAnimationFrame = frame; frame(f); done(); }, 500);
      location.hash = links[1];
    };
    document.addEventListener('picture', drawn);
    location.hash = links[0];
  }), [two, two.replace('0.75,0.6', '0.7,0.6')]);
  await asks(two.replace('dp-imed,dp-se', 'dp-se'));

  // The last policy stays, and it is said why; a box stands beside its name.
  const box = page.getByRole('checkbox', { name: /^DP-SE ?older$/ });
  await box.click();
  assert.equal(await box.isChecked(), true);
  assert.match(await page.locator('#policies-hint').textContent(), /at least one policy/);
  const [at, label] = await box.evaluate((e) => [e, e.parentElement].map((x) => x.getBoundingClientRect()).map((r) => r.top + r.height / 2));
  assert.ok(Math.abs(at - label) < 1.5, `a box is at ${at}, its label at ${label}`);

  // A long state stays in its card.
  await page.setViewportSize({ width: 390, height: 900 });
  assert.ok(await page.evaluate(() => {
    const card = document.createElement('p'), state = document.createElement('span');
    [card.className, state.className, state.textContent] = ['card', 'state', 'waits for what it needs '.repeat(5)];
    document.querySelector('.sight').prepend(card);
    card.append(state);
    const fits = state.getBoundingClientRect().right <= card.getBoundingClientRect().right;
    card.remove();
    return fits;
  }), 'a state is wider than its card');
  assert.deepEqual(page.complaints, []);
  await page.context().close();
}

try {
  for (const [name, url] of [['served', native], ['static', files]]) {
    const page = await open(`${url}#${start}`);
    const first = await settled(page, () => page.reload());
    await same(page, first);
    const moved = await page.evaluate(() => new Promise((done) => {
      let sum = 0;
      new PerformanceObserver((list) => { for (const e of list.getEntries()) sum += e.value; }).observe({ type: 'layout-shift', buffered: true });
      setTimeout(() => done(sum), 200);
    }));
    assert.ok(moved < 0.05, `while the page begins it moves by ${moved}`);
    // Who has the least regret is not said of a ranking that is not settled.
    const unsettled = await open(`${url}#arms=0.6,0.5&policies=dp-klucb,dp-imed&epsilon=1&horizon=20000&runs=16`);
    assert.equal((await settled(unsettled, () => unsettled.reload())).verdicts[0], 'unsettled');
    assert.match(await unsettled.locator('#sentence').textContent(), /has the least regret so far,/);
    await unsettled.context().close();
    step(`${name}: what a link asks for is drawn, with the numbers of sotto run`);

    const knob = page.getByRole('slider', { name: /Privacy budget/ });
    const turned = await settled(page, async () => {
      await knob.focus();
      for (let i = 0; i < 9; i++) await page.keyboard.press('ArrowRight');
    });
    const value = await knob.getAttribute('aria-valuetext');
    assert.match(value, /^ε = 0\.7\d*$/);
    assert.equal(turned.budget, value.replace('ε = ', 'epsilon='));
    await same(page, turned);
    step(`${name}: the knob turns by its keys, and the numbers are those of sotto run`);

    if (name === 'static') await page.context().setOffline(true);
    const rho = await settled(page, () => page.getByLabel('Kind of budget').selectOption('rho'));
    assert.match(rho.budget, /^rho=/);
    const ticked = await settled(page, () => page.getByRole('checkbox', { name: 'zCDP-IMED' }).check());
    await same(page, ticked);
    const arm = await settled(page, () => page.getByRole('button', { name: 'Add an arm' }).click());
    assert.equal(arm.yaml.includes('laws: [0.75, 0.6, 0.3, 0.5]'), true);
    await same(page, arm);
    const shuffled = await settled(page, () => page.getByLabel('Who adds the noise').selectOption('local'));
    await same(page, shuffled);
    if (name === 'static') await page.context().setOffline(false);
    step(`${name}: budgets, policies, arms and trust${name === 'static' ? ', offline' : ''}`);

    const link = await page.locator('#link').textContent();
    const copy = await open(link);
    const copied = await settled(copy, () => copy.reload());
    assert.deepEqual(copied.lines, shuffled.lines);
    await copy.context().close();
    step(`${name}: a link has all of it`);

    mkdirSync(join(dir, 'logs'), { recursive: true });
    const log = join(dir, 'my log.csv');
    writeFileSync(log, 'arm,reward\n' + Array.from({ length: 200 }, (_, i) => `${i % 2 ? 'blue' : 'red'},${i % 5 < 2 + i % 2 ? 1 : 0}`).join('\n') + '\n');
    const logged = await settled(page, () => page.locator('#csv').setInputFiles(log));
    assert.match(logged.yaml, /csv: "my log.csv"/);
    assert.equal(page.sent.some((body) => body.includes('blue')), name === 'served');
    const rows = summary(logged.yaml);
    for (const l of logged.lines) assert.deepEqual(l.mean, rows[`regret ${l.policy} ${l.budget}`].map((r) => Number(r.mean)));
    await settled(page, () => page.getByRole('button', { name: 'Back to sliders' }).click());
    step(`${name}: a log is dropped in`);

    const bad = await settled(page, async () => {
      await page.getByLabel('Arm 2: mean or law').fill('1.5');
      await page.keyboard.press('Enter');
    });
    assert.match(bad.error, /law "1.5": bernoulli: p is 1.5, must be between 0 and 1/);
    assert.equal(await page.getByRole('alert').textContent(), bad.error);
    await settled(page, async () => {
      await page.getByLabel('Arm 2: mean or law').fill('beta(2,3)');
      await page.keyboard.press('Enter');
    });
    assert.equal(await page.getByRole('alert').count(), 0);
    step(`${name}: what is wrong is said`);

    // It is one page: all of its widths and schemes are looked at once.
    const views = name === 'static' || shots ? ['light', 'dark'].flatMap((s) => [390, 820, 1280].map((w) => [s, w])) : [['light', 1280]];
    for (const [colorScheme, width] of views) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await page.waitForTimeout(50);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `wider than ${width}`);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
      assert.deepEqual(violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).join(' ')}`), []);
      if (shots) await page.screenshot({ path: join(shots, `explorer-${name}-${width}-${colorScheme}.png`), fullPage: true });
    }
    assert.deepEqual(page.complaints, []);
    await page.context().close();
    step(`${name}: axe finds nothing serious, and nothing is wider than the page`);
  }

  // By the machine's name the page may be anybody's.
  const remote = await open(`${native.replace('127.0.0.1', hostname())}#${start}`);
  await settled(remote, () => remote.reload());
  assert.equal(await remote.locator('#stays').isVisible(), false);
  const kept = await settled(remote, () => remote.locator('#csv').setInputFiles(join(dir, 'my log.csv')));
  assert.match(kept.error, /another computer, which gets no log: run sotto explore on your own/);
  assert.equal(remote.sent.some((body) => body.includes('blue')), false);
  await remote.context().close();
  step('served: a log does not leave this computer');

  await honest(files);
  step('nothing is said that is not known, and nothing stays that was not asked for');

  // A policy that decides in each round of many keeps nobody waiting who turns on: neither while the
  // simulator starts, also where the page writes its last link between the change and its event, nor
  // in the middle of a run.
  const long = 'policies=dp-ucb&epsilon=1&horizon=1000000000&runs=4';
  for (const url of [files, native]) {
    const slow = await open(`${url}#${long}`);
    await slow.waitForFunction(() => document.querySelector('#regret').dataset.state === 'asked');
    const leave = (write) => settled(slow, () => slow.evaluate(([to, from]) => {
      location.hash = to;
      if (from) history.replaceState(null, '', `#${from}`);
    }, [start, write && long]));
    assert.equal((await leave(true)).runs, 32);
    await slow.evaluate((s) => { location.hash = s; }, long);
    await slow.waitForTimeout(300);
    assert.equal((await leave(false)).runs, 32);
    await slow.context().close();
  }
  step('a long run is left when the knob turns on');

  const plain = await open(files, { javaScriptEnabled: false });
  assert.match(await plain.locator('noscript').textContent(), /JavaScript and WebAssembly/);
  step('without script the page says what it needs');
} finally {
  await browser.close();
  host.close();
  served.kill(); // the end, once all is printed
}
