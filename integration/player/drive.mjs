// Works the player in a browser: node drive.mjs CHROMIUM PAGE FOLDER. FOLDER/expected.json says what the screen shows when.
// It prints a JSON object a check: {"name", "error"}; screenshots go to FOLDER.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createRequire } from 'node:module';

const [chromium, page, folder] = process.argv.slice(2);
const { chromium: browserType } = createRequire(join(process.env.TAPEDECK_PLAYER, 'here'))('playwright-core');
const url = pathToFileURL(page).href;
const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'));
const browser = await browserType.launch({
  executablePath: chromium,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
});

async function check(name, options, fragment, body) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 760 }, reducedMotion: 'reduce', colorScheme: 'dark', ...options });
  const p = await context.newPage(), trouble = [], asked = [];
  p.on('console', m => { if (m.type() === 'error' || m.type() === 'warning') trouble.push(m.text()); });
  p.on('pageerror', e => trouble.push(String(e)));
  p.on('request', r => asked.push(r.url()));
  let error = '';
  try {
    await p.goto(url + fragment);
    await p.waitForFunction(() => document.body.dataset.ready === 'yes', null, { timeout: 20000 });
    await body(p);
    assert.deepEqual(trouble, [], 'what the browser complains of');
    assert.deepEqual(asked.filter(u => u.split('#')[0] !== url), [], 'what the page asked for');
  } catch (e) {
    error = String(e.stack || e);
  }
  console.log(JSON.stringify({ name, error }));
  await context.close();
}

const time = p => p.evaluate(() => Number(document.getElementById('slider').value));
const playing = p => p.evaluate(() => document.getElementById('play').getAttribute('aria-label') === 'Pause');
const text = p => p.evaluate(() => [...document.querySelectorAll('.row')].map(r => r.textContent.trimEnd()).join('\n').trimEnd());
const near = (a, b) => assert.ok(Math.abs(a - b) < 0.02, `${a}, expected ${b}`);

await check('plays by itself, and to the end', { reducedMotion: 'no-preference' }, '', async p => {
  assert.ok(await playing(p), 'it does not play');
  await p.selectOption('#speed', '16');
  await p.waitForFunction(() => Number(document.getElementById('slider').value) > 2);
  await p.keyboard.press('9');
  await p.waitForFunction(() => document.getElementById('play').getAttribute('aria-label') === 'Play');
  near(await time(p), expected.end);
  assert.equal(await text(p), expected.screens.at(-1).text);
});

await check('does not play by itself for who wants no motion', {}, '', async p => {
  assert.ok(!await playing(p));
  near(await time(p), 0);
  await p.keyboard.press(' ');
  assert.ok(await playing(p), 'space does not play');
  await p.waitForFunction(() => Number(document.getElementById('slider').value) > 0.05);
  await p.keyboard.press(' ');
  assert.ok(!await playing(p), 'space does not pause');
});

for (const { t, text: want, size } of expected.screens) {
  await check(`shows at ${t} what the screen was`, {}, `#t=${t}`, async p => {
    near(await time(p), t);
    assert.ok(!await playing(p));
    assert.equal(await text(p), want);
    assert.equal(await p.textContent('#size'), size);
    await p.screenshot({ path: join(folder, `shot-${t}.png`) });
  });
}

await check('is worked by keys', {}, '', async p => {
  await p.keyboard.press('5');
  near(await time(p), expected.end / 2);
  await p.keyboard.press('ArrowRight');
  near(await time(p), expected.end / 2 + 5);
  await p.keyboard.press('Shift+ArrowLeft');
  near(await time(p), expected.end / 2 + 4);
  await p.keyboard.press('Home');
  near(await time(p), 0);
  await p.keyboard.press('.');
  near(await time(p), expected.frames[1]);
  await p.keyboard.press('.');
  near(await time(p), expected.frames[2]);
  await p.keyboard.press(',');
  near(await time(p), expected.frames[1]);
  assert.match(await p.evaluate(() => location.hash), /^#t=/);
  await p.keyboard.press('>');
  assert.equal(await p.inputValue('#speed'), '2');
  await p.keyboard.press('t');
  assert.equal(await p.evaluate(() => document.documentElement.dataset.theme), 'light');
  await p.keyboard.press('?');
  assert.ok(await p.evaluate(() => document.getElementById('help').open), 'no help');
  await p.screenshot({ path: join(folder, 'help.png') });
  await p.keyboard.press('Escape');
  assert.ok(!await p.evaluate(() => document.getElementById('help').open), 'the help stays');
  await p.keyboard.press('End');
  near(await time(p), expected.end);
  await p.evaluate(() => { location.hash = '#t=3'; });
  await p.waitForFunction(() => Number(document.getElementById('slider').value) === 3);
});

await check('finds', {}, '', async p => {
  await p.keyboard.press('/');
  await p.keyboard.type('NEEdle');
  await p.waitForFunction(n => document.getElementById('count').textContent === `${n} found`, expected.needles.length);
  assert.equal(await p.locator('#marks .hit').count(), expected.needles.length);
  await p.keyboard.press('Enter');
  near(await time(p), expected.needles[0]);
  await p.keyboard.press('Escape');
  for (const t of [...expected.needles.slice(1), expected.needles[0]]) {
    await p.keyboard.press('n');
    near(await time(p), t);
    assert.ok(await p.locator('#hits i').count() >= 6, 'the hit is not shown on the screen');
  }
  await p.keyboard.press('N');
  near(await time(p), expected.needles.at(-1));
  await p.screenshot({ path: join(folder, 'found.png') });
  await p.fill('#find', 'no such thing');
  await p.waitForFunction(() => document.getElementById('count').textContent === 'not found');
});

await check('shows what happened beside the output', {}, '', async p => {
  for (const { kind, label, t } of expected.marks) {
    const mark = p.locator(`#marks .${kind}[title*="${label}"]`);
    assert.equal(await mark.count(), 1, `${kind} ${label}`);
    await mark.click({ force: true });
    near(await time(p), t);
  }
  await p.keyboard.press('Home');
  await p.keyboard.press(']');
  near(await time(p), expected.marks[0].t);
  await p.click('#events summary');
  assert.equal(await p.locator('#list li').count(), expected.marks.length);
});

await check('has every column in its place, and text that can be copied', {}, `#t=${expected.columns.t}`, async p => {
  const off = await p.evaluate(() => {
    const cw = parseFloat(getComputedStyle(document.getElementById('stage')).getPropertyValue('--cw'));
    const left = document.getElementById('screen').getBoundingClientRect().left;
    return [...document.querySelectorAll('.row')].map(row => {
      const bar = [...row.querySelectorAll('span')].findLast(s => s.textContent.includes('#'));
      if (!bar) return null;
      const range = document.createRange(), at = bar.textContent.lastIndexOf('#');
      range.setStart(bar.firstChild, at);
      range.setEnd(bar.firstChild, at + 1);
      return (range.getBoundingClientRect().left - left) / cw;
    }).filter(x => x !== null);
  });
  assert.ok(off.length >= 4, `${off.length} rows have a mark`);
  for (const col of off) assert.ok(Math.abs(col - expected.columns.col) < 0.2, `column ${col}, expected ${expected.columns.col}`);
  const copied = await p.evaluate(() => {
    getSelection().selectAllChildren(document.getElementById('screen'));
    return String(getSelection());
  });
  assert.ok(copied.includes(expected.columns.copied), copied);
});

await check('is named for who cannot see it', {}, '', async p => {
  const nameless = await p.evaluate(() => [...document.querySelectorAll('button,input,select')].filter(e => !(e.getAttribute('aria-label') || e.textContent.trim())).length);
  assert.equal(nameless, 0);
});

await browser.close();
