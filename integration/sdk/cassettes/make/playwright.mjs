// node playwright.mjs PLAYWRIGHT-CORE CHROMIUM BASE DIRECTORY
const [core, executablePath, base, dir] = process.argv.slice(2);
const { chromium } = await import(core + '/index.mjs');
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
for (const [file, content] of [['playwright.har', 'embed'], ['playwright-omit.har', 'omit']]) {
  const context = await browser.newContext({ recordHar: { path: `${dir}/${file}`, content } });
  const page = await context.newPage();
  await page.goto(base + '/');
  await page.evaluate(async () => {
    const get = async (path, options) => {
      try {
        await (await fetch(path, options)).arrayBuffer();
      } catch {} // what fails is recorded too
    };
    await get('/json?api_key=Lk4nB7vC2xZ9aa', { headers: { Authorization: 'Bearer sk-verysecretverysecret123' } });
    for (const path of ['/zipped', '/binary', '/lines', '/empty', '/nowhere']) await get(path);
    await get('/echo', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ name: 'café' }) });
    await get('/echo', { method: 'POST', headers: { 'Content-Type': 'application/octet-stream' }, body: new Uint8Array([255, 254, 0]) });
    await get('/echo', { method: 'POST', body: new URLSearchParams({ a: '1 2', b: 'x' }) });
    await get('http://127.0.0.1:9/refused');
    await get('data:text/plain,x');
  });
  await context.close();
}
await browser.close();
