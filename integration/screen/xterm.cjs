// What @xterm/headless makes of the conformance cases and how fast it is; internal/vt/xterm_test.go starts it.
//   node xterm.cjs NODE_FOLDER cases FILE.json       one JSON object: {case's index: error or null}
//   node xterm.cjs NODE_FOLDER speed RUNS FILE…      one JSON object: {file: [MB per second of processor time, of each run]}
// Rows are compared without the blanks at their end, a cursor behind the last column stands in it.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const [folder, what, ...args] = process.argv.slice(2);
const load = name => require(path.join(folder, 'node_modules', name));
const { Terminal } = load('@xterm/headless');
const { Unicode11Addon } = load('@xterm/addon-unicode11');

const open = (cols, rows) => {
  const term = new Terminal({ cols, rows, scrollback: 1000, allowProposedApi: true });
  term.loadAddon(new Unicode11Addon());
  term.unicode.activeVersion = '11';
  return term;
};
const write = (term, data) => new Promise(done => term.write(data, done));
const cut = text => text.replace(/ +$/, '');
const differ = (what, got, want) => {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
};

async function run(c) {
  let output = '';
  let term;
  const start = (cols, rows) => {
    term = open(cols, rows);
    term.onData(data => { output += data; });
  };
  start(c.cols, c.rows);
  const line = row => term.buffer.active.getLine(term.buffer.active.baseY + row);
  const text = row => cut(line(row).translateToString(true));
  for (const s of c.steps) {
    if ('write' in s) {
      output = '';
      await write(term, new Uint8Array(Buffer.from(s.write, 'base64')));
    } else if (s.reset) {
      start(...s.reset);
    } else if (s.resize) {
      term.resize(...s.resize);
    } else if (s.rows) {
      s.rows.forEach((want, i) => differ(`row ${i}`, text(i), cut(want)));
    } else if (s.cursor) {
      const b = term.buffer.active;
      differ('cursor', [Math.min(b.cursorX, term.cols - 1), b.cursorY], s.cursor);
    } else if ('output' in s) {
      differ('output', output, s.output);
    } else if ('row' in s) {
      differ(`row ${s.row}`, text(s.row), cut(s.want));
    } else if (s.cell) {
      const cell = line(s.cell[1]).getCell(s.cell[0]);
      differ('cell', [cut(cell.getChars()), cell.getWidth()], [s.want, s.width]);
    } else if (s.chars) {
      let all = '';
      const [top, left, bottom, right] = s.chars;
      for (let row = top; row < bottom; row++) {
        for (let col = left; col < right; col++) {
          const cell = line(row).getCell(col);
          all += cell.getChars() || (cell.getWidth() === 1 ? ' ' : '');
        }
      }
      differ('chars', cut(all), cut(s.want));
    } else {
      throw new Error('a step of an unknown kind');
    }
  }
}

async function cases(file) {
  const results = [];
  for (const c of JSON.parse(fs.readFileSync(file))) {
    results.push(await run(c).then(() => '', e => e.message));
  }
  return results;
}

// Written all at once, and waited for: the fastest way that the library has.
async function speed(runs, ...files) {
  const results = {};
  for (const file of files) {
    const data = new Uint8Array(fs.readFileSync(file));
    results[file] = [];
    for (let i = 0; i < runs; i++) {
      const term = open(80, 24);
      const from = process.cpuUsage();
      for (let at = 0; at < data.length; at += 65536) term.write(data.subarray(at, at + 65536));
      await write(term, '');
      const { user, system } = process.cpuUsage(from);
      results[file].push(data.length / (user + system));
    }
  }
  return results;
}

({ cases, speed })[what](...args).then(r => console.log(JSON.stringify(r)), e => { console.error(e); process.exit(1); });
