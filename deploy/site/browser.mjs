// Drives Chromium over the site as a host of files gives it: TestBrowser says by the environment where it is. It
// prints a line for each thing that held. SITE_ALL asks for every page at three sizes, light and dark, and SITE_SHOTS
// for pictures of what is seen.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';

const { SITE: dir, SITE_ALL: all, SITE_SHOTS: shots, CHROMIUM: executablePath } = process.env;
const require = createRequire(new URL('../../cli/testdata/browser/site.mjs', import.meta.url)); // it has these installed
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const step = (text) => console.log(text);

const kinds = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json',
  '.svg': 'image/svg+xml', '.png': 'image/png', '.md': 'text/markdown', '.txt': 'text/plain' };
const host = createServer(async (request, answer) => {
  let path = decodeURIComponent(new URL(request.url, 'http://host').pathname);
  if (path.endsWith('/')) path += 'index.html';
  try {
    const b = await readFile(join(dir, path));
    answer.writeHead(200, { 'Content-Type': kinds[extname(path)] ?? 'application/octet-stream' }).end(b);
  } catch {
    answer.writeHead(404, { 'Content-Type': 'text/html' }).end(await readFile(join(dir, '404.html')));
  }
});
await new Promise((done) => host.listen(0, '127.0.0.1', done));
const site = `http://127.0.0.1:${host.address().port}/`;

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic',
  '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'] });

// open is a page that asks nothing of anybody else, and complains of nothing.
const complaints = [];
async function open(path, more = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce', ...more });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on('console', (m) => { if (m.type() === 'error') complaints.push(`${m.text()} ${m.location().url}`); });
  page.on('pageerror', (e) => complaints.push(`${path}: ${e}`));
  page.on('request', (r) => { if (!r.url().replace(/^blob:/, '').startsWith(site) && !r.url().startsWith('data:')) complaints.push(`${path} asks ${r.url()}`); });
  await page.goto(site + path);
  return page;
}

// ---- by the keyboard
let page = await open('index.html');
await page.keyboard.press('Tab');
assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the text');
await page.keyboard.press('Enter');
assert.equal(await page.evaluate(() => document.activeElement.id), 'site-main');
step('the first key press skips to the text');

await page.keyboard.press('/');
await page.keyboard.type('choosing ε');
await page.locator('#site-results a').first().waitFor();
assert.match(await page.locator('#site-found').textContent(), /\d+ pages?/);
const titles = await page.locator('#site-results a').allTextContents();
assert.ok(titles.some((t) => /Choosing ε/.test(t)), titles.join('\n'));
await page.keyboard.press('ArrowDown');
const to = await page.evaluate(() => document.activeElement.href);
await page.keyboard.press('Enter');
await page.waitForURL(to);
assert.equal(await page.locator('h1').textContent(), 'Guide');
step('the search finds a section, and leads to it');

await page.keyboard.press('/');
assert.equal(await page.evaluate(() => document.activeElement.id), 'site-query');
await page.keyboard.press('Escape');
assert.equal(await page.locator('dialog[open]').count(), 0);
step('Escape closes the search');
await page.context().close();

// ---- without script, and on a phone
page = await open('docs/guide.html', { javaScriptEnabled: false, viewport: { width: 360, height: 780 } });
assert.equal(await page.locator('#site-open').isVisible(), false);
assert.equal(await page.locator('nav.side').isVisible(), false);
await page.getByRole('link', { name: 'Documents', exact: true }).click();
assert.equal(await page.locator('nav.side').isVisible(), true);
await page.getByRole('link', { name: 'Close', exact: true }).click();
assert.equal(await page.locator('nav.side').isVisible(), false);
assert.ok(await page.locator('pre span').count() > 0 || await page.locator('pre').count() > 0);
await page.goto(site + 'docs/clients.html');
assert.ok(await page.locator('pre .s').count() > 5, 'code has no colours');
step('without script there are the list of documents and code in colours');
await page.context().close();

// ---- the explorer, in its page
page = await open('docs/explorer.html');
const frame = page.frameLocator('iframe');
await page.locator('iframe').scrollIntoViewIfNeeded();
await frame.locator('#sentence strong').first().waitFor();
assert.match(await frame.locator('#sentence').textContent(), /\d/);
assert.equal(await frame.locator('a.brand').getAttribute('href'), '../../index.html');
step('the explorer plays in its page');
await page.context().close();

// ---- every page has its place, and axe finds nothing
const some = ['index.html', 'docs/choose.html', 'docs/gallery.html', 'deploy/nginx.conf.html', '404.html'];
const pages = all ? (await readdir(dir, { recursive: true })).filter((name) => name.endsWith('.html') &&
  !/^pagefind|^docs\/explorer\/|^examples\/.*page\.html$/.test(name)) : some;
const found = [];
for (const colorScheme of ['light', 'dark']) {
  for (const width of all ? [360, 1280, 1920] : [colorScheme === 'light' ? 360 : 1280]) {
    page = await open('index.html', { colorScheme, viewport: { width, height: 900 } });
    for (const path of pages) {
      await page.goto(site + path);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) found.push(`${path} at ${width} is ${over} px too wide`);
      if (shots) await page.screenshot({ path: join(shots, `${path.replaceAll('/', '_')}-${width}-${colorScheme}.png`) });
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run(document, { iframes: false }));
      for (const v of violations) found.push(`${path} at ${width}, ${colorScheme}: ${v.id}: ${v.nodes[0].html} ${v.nodes[0].failureSummary}`);
    }
    await page.context().close();
  }
}
assert.deepEqual(found, []);
step('nothing is too wide, and axe finds nothing');

// ---- on paper, and where there is nothing
page = await open('docs/guide.html');
await page.emulateMedia({ media: 'print' });
assert.deepEqual(await page.locator('.top, .side, .here, .turn').evaluateAll((all) => all.filter((n) => n.offsetParent).length), 0);
step('paper has the text alone');
assert.deepEqual(complaints, []);
await page.emulateMedia({ media: 'screen' });
await page.goto(site + 'docs/gone/away.html');
assert.equal(await page.locator('h1').textContent(), 'There is no such page');
assert.equal(await page.locator('article a').getAttribute('href'), '/docs/index.html');
assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('.shell')).display), 'grid');
complaints.shift(); // the browser's, of the address
assert.deepEqual(complaints, []);
step('an address that is none leads on');
await browser.close();
host.close();
