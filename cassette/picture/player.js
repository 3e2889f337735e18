// The player of a recorded terminal. It reads the lines of #tape (JSON, one record a line, deflated by gzip, as base64) and
// shows the screen as text. Nothing is fetched. The records are described in page.go.
'use strict';
(() => {
  const $ = id => document.getElementById(id);
  const screen = $('screen'), stage = $('stage'), slider = $('slider');
  const SPEEDS = [0.5, 1, 2, 4, 8, 16];
  const KEYED = 64; // every so many frames the whole screen is kept, to go there at once
  const tape = { head: null, styles: [], lines: [null], texts: [''], frames: [], keys: [], marks: [], shapes: new Map(), end: 0 };
  let now = 0, at = -1, playing = false, speed = 1, raf = 0, last = 0;
  let rows = [], shown = [], size = [0, 0], hits = [], pattern = null;

  // ---- reading

  async function unpack() {
    const bytes = Uint8Array.from(atob($('tape').textContent.trim()), c => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    const text = await new Response(stream).text();
    for (const line of text.split('\n')) if (line) take(JSON.parse(line));
    tape.marks.sort((a, b) => a.t - b.t);
    indexFrames();
  }

  function take(r) {
    switch (r[0]) {
      case 0: tape.head = r[1]; break;
      case 1: tape.styles.push({ fg: r[1], bg: r[2], under: r[3], attr: r[4], line: r[5], link: r[6] || '' }); break;
      case 2: addLine(r); break;
      case 3: tape.frames.push({ t: r[1] / 1000, real: r[2] / 1000, rows: r[3], cursor: r[4], more: r[5] || null }); break;
      case 4: tape.marks.push({ t: r[1] / 1000, kind: r[2], label: r[3] }); break;
      case 5: tape.shapes.set(r[1], r[2]); break;
      case 6: tape.end = r[1] / 1000; break;
    }
  }

  // A run has a text, a style, and how many columns it takes; of a text without clusters each character takes one.
  function addLine(r) {
    const runs = [];
    let text = '';
    for (let i = 2; i < r.length; i += 3) {
      runs.push({ text: r[i], style: r[i + 1], cols: r[i + 2] || [...r[i]].length, single: r[i + 2] > 0 });
      text += r[i];
    }
    tape.lines.push({ wrapped: r[1] === 1, runs });
    tape.texts.push(text.trimEnd());
  }

  // Every frame says what is new in it. The size, title, cursor and colours that hold are written into each.
  function indexFrames() {
    let state = { ids: [], cursor: 0, size: [tape.head.rows, tape.head.cols], title: '', colors: null };
    tape.frames.forEach((f, i) => {
      state = step(state, f);
      if (i % KEYED === 0) tape.keys.push({ ...state, ids: state.ids.slice() });
    });
  }

  function step(s, f) {
    const m = f.more || {};
    const next = { ids: s.ids, cursor: f.cursor === null ? s.cursor : f.cursor, size: m.size || s.size, title: m.title === undefined ? s.title : m.title, colors: m.colors === undefined ? s.colors : m.colors };
    if (m.size) next.ids = s.ids.slice(0, m.size[0]);
    for (let i = 0; i < f.rows.length; i += 2) next.ids[f.rows[i]] = f.rows[i + 1];
    return next;
  }

  let memo = { i: -1, state: null };
  function stateAt(i) {
    const key = Math.floor(i / KEYED);
    let from = key * KEYED, s;
    if (memo.i >= from && memo.i <= i) [from, s] = [memo.i, memo.state];
    else s = { ...tape.keys[key], ids: tape.keys[key].ids.slice() };
    for (let k = from + 1; k <= i; k++) s = step(s, tape.frames[k]);
    memo = { i, state: s };
    return s;
  }

  function frameAt(t) { // the last one that is not after t
    let lo = 0, hi = tape.frames.length - 1;
    while (lo < hi) {
      const mid = (lo + hi + 1) >> 1;
      if (tape.frames[mid].t <= t + 1e-6) lo = mid; else hi = mid - 1;
    }
    return lo;
  }

  // ---- drawing

  const cssColor = (c, otherwise) => {
    const kind = c >>> 24, v = c & 0xffffff;
    if (kind === 2) return '#' + v.toString(16).padStart(6, '0');
    if (kind !== 1) return otherwise;
    return `var(--c${v}, ${xterm(v)})`;
  };
  function xterm(i) { // the colours from 16 on are everybody's
    if (i < 16) return 'inherit';
    if (i >= 232) { const g = 8 + 10 * (i - 232); return `rgb(${g},${g},${g})`; }
    const part = n => n && 55 + 40 * n;
    i -= 16;
    return `rgb(${part(Math.floor(i / 36))},${part(Math.floor(i / 6) % 6)},${part(i % 6)})`;
  }

  const BOLD = 1, FAINT = 2, ITALIC = 4, REVERSE = 16, HIDDEN = 32, STRIKE = 64, OVERLINE = 128;
  const UNDERLINES = ['', 'solid', 'double', 'wavy', 'dotted', 'dashed'];

  function colorsOf(s) {
    let fg = cssColor(s.fg, 'var(--fg)'), bg = cssColor(s.bg, '');
    if (s.attr & REVERSE) [fg, bg] = [bg || 'var(--bg)', fg];
    if (s.attr & FAINT) fg = `color-mix(in srgb, ${fg} 60%, ${bg || 'var(--bg)'})`;
    if (s.attr & HIDDEN) fg = 'transparent';
    return [fg, bg];
  }

  function paintSpan(el, s) {
    const [fg, bg] = colorsOf(s), css = el.style;
    if (fg !== 'var(--fg)') css.color = fg;
    if (bg) css.backgroundColor = bg;
    if (s.attr & BOLD) css.fontWeight = 'bold';
    if (s.attr & ITALIC) css.fontStyle = 'italic';
    const lines = [s.line && 'underline', s.attr & STRIKE && 'line-through', s.attr & OVERLINE && 'overline'].filter(Boolean);
    if (lines.length) {
      css.textDecorationLine = lines.join(' ');
      if (s.line) css.textDecorationStyle = UNDERLINES[s.line];
      if (s.under) css.textDecorationColor = cssColor(s.under, 'currentcolor');
    }
  }

  const SVG = 'http://www.w3.org/2000/svg';
  function rowElement(line, cols) {
    const row = document.createElement('div');
    row.className = 'row';
    if (!line) return row;
    let col = 0, art = null;
    for (const run of line.runs) {
      const s = tape.styles[run.style], shape = run.single || run.text.length === 1 ? tape.shapes.get(run.text) : null;
      const url = /^https?:/i.test(s.link);
      const el = document.createElement(url ? 'a' : 'span');
      if (url) { el.href = s.link; el.rel = 'noopener noreferrer'; el.target = '_blank'; }
      if (s.link) el.title = s.link;
      el.textContent = run.text;
      el.style.width = `calc(var(--cw) * ${run.cols})`;
      paintSpan(el, s);
      if (run.single) el.className = run.cols > 1 ? 'wide' : 'one';
      if (shape) {
        art = art || newArt(cols);
        drawShape(art, shape, col, run.cols, colorsOf(s)[0]);
        el.classList.add('drawn');
      }
      row.append(el);
      col += run.cols;
    }
    if (art) row.append(art);
    return row;
  }
  function newArt(cols) {
    const art = document.createElementNS(SVG, 'svg');
    art.setAttribute('viewBox', `0 0 ${cols * 8} 16`);
    art.setAttribute('preserveAspectRatio', 'none');
    art.setAttribute('aria-hidden', 'true');
    art.style.width = `calc(var(--cw) * ${cols})`;
    return art;
  }
  function drawShape(art, shape, col, cols, color) {
    for (const [d, cover, crisp] of shape) {
      const p = document.createElementNS(SVG, 'path');
      p.setAttribute('d', d);
      p.setAttribute('transform', `translate(${col * 8} 0) scale(${cols} 1)`);
      if (crisp) p.setAttribute('shape-rendering', 'crispEdges');
      p.style.fill = color;
      if (cover < 1) p.style.fillOpacity = cover;
      art.append(p);
    }
  }

  function draw(i) {
    if (i === at) return;
    const s = stateAt(i);
    at = i;
    if (s.size[0] !== size[0] || s.size[1] !== size[1]) resize(s.size);
    for (let r = 0; r < size[0]; r++) {
      const id = s.ids[r] || 0;
      if (shown[r] === id) continue;
      const el = rowElement(tape.lines[id], size[1]);
      rows[r].replaceWith(el);
      rows[r] = el;
      shown[r] = id;
    }
    drawCursor(s.cursor);
    drawColors(s.colors);
    $('size').textContent = `${size[1]}×${size[0]}`;
    $('window').textContent = s.title;
    drawHits();
  }

  function resize([r, c]) {
    size = [r, c];
    rows.forEach(el => el.remove());
    rows = Array.from({ length: r }, () => document.createElement('div'));
    shown = new Array(r).fill(-1);
    screen.prepend(...rows);
    fit();
  }

  function drawCursor(c) {
    const el = $('cursor');
    el.hidden = !c;
    if (!c) return;
    el.style.left = `calc(var(--cw) * ${c[1]})`;
    el.style.top = `calc(var(--lh) * ${c[0]})`;
    el.className = c[2] === 3 || c[2] === 4 ? 'under' : c[2] >= 5 ? 'bar' : 'block';
    el.style.width = c[3] && el.className !== 'bar' ? 'calc(var(--cw) * 2)' : '';
  }

  let changed = [];
  function drawColors(colors) { // what a program changed of its terminal's
    changed.forEach(name => stage.style.removeProperty(name));
    changed = Object.keys(colors || {}).filter(name => name !== '--none');
    changed.forEach(name => stage.style.setProperty(name, colors[name]));
  }

  // The letters are as large as the window lets them be.
  let ratio = 0;
  function fit() {
    if (!ratio) {
      const probe = document.createElement('span');
      probe.textContent = '0'.repeat(100);
      probe.className = 'probe';
      screen.append(probe);
      ratio = probe.getBoundingClientRect().width / 1600 || 0.6;
      probe.remove();
    }
    const style = getComputedStyle(stage);
    const room = document.querySelector('main').clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const height = window.innerHeight - $('top').offsetHeight - $('controls').offsetHeight - ($('events').hidden ? 56 : 96);
    const [most, widest] = tape.head.largest;
    const font = Math.max(6, Math.min(20, Math.min(room / (widest * ratio), height / (most * 1.2))));
    const line = Math.max(7, Math.round(font * 1.2));
    screen.style.fontSize = `${font}px`;
    stage.style.setProperty('--cw', `${font * ratio}px`);
    stage.style.setProperty('--lh', `${line}px`);
    stage.style.minHeight = `calc(var(--lh) * ${most} + ${style.paddingTop} + ${style.paddingBottom})`;
    $('player').style.minWidth = `min(100%, ${Math.ceil(font * ratio * widest) + parseFloat(style.paddingLeft) + parseFloat(style.paddingRight)}px)`;
    screen.style.width = `calc(var(--cw) * ${size[1]})`;
    screen.style.height = `calc(var(--lh) * ${size[0]})`;
  }

  // ---- time

  const clock = t => {
    const m = Math.floor(t / 60), s = t - 60 * m;
    return m + ':' + (s < 9.95 ? '0' : '') + s.toFixed(1);
  };

  function show(t) {
    now = Math.max(0, Math.min(tape.end, t));
    draw(frameAt(now));
    slider.value = now;
    slider.setAttribute('aria-valuetext', `${clock(now)} of ${clock(tape.end)}`);
    $('time').textContent = `${clock(now)} / ${clock(tape.end)}`;
    const f = tape.frames[at];
    $('time').title = `recorded at ${clock(f.real + now - f.t)}`;
    $('played').style.width = `${tape.end ? 100 * now / tape.end : 0}%`;
  }

  function seek(t) {
    show(t);
    note();
  }
  function note() {
    if (!playing) try { history.replaceState(null, '', '#t=' + now.toFixed(2).replace(/\.?0+$/, '')); } catch { /* the page may be in a frame */ }
  }

  function play(on) {
    if (on === playing) return;
    playing = on;
    cancelAnimationFrame(raf);
    $('play').textContent = on ? '❚❚' : '▶';
    $('play').setAttribute('aria-label', on ? 'Pause' : 'Play');
    if (!on) return note();
    if (now >= tape.end) show(0);
    last = performance.now();
    raf = requestAnimationFrame(tick);
  }
  function tick(ms) {
    const t = now + Math.max(0, ms - last) / 1000 * speed;
    last = ms;
    show(t);
    if (t >= tape.end) return play(false);
    raf = requestAnimationFrame(tick);
  }

  function stepFrame(by) {
    play(false);
    const i = Math.max(0, Math.min(tape.frames.length - 1, at + by));
    seek(tape.frames[i].t);
  }
  function setSpeed(v) {
    speed = v;
    $('speed').value = String(v);
  }
  const faster = by => setSpeed(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, SPEEDS.indexOf(speed) + by))]);

  // ---- search: in all lines first, then when each comes

  // group returns the rows that row r is one line with, as [first, last].
  function group(ids, r) {
    const wrapped = i => { const l = tape.lines[ids[i] || 0]; return l && l.wrapped; };
    let a = r, b = r;
    while (a > 0 && wrapped(a - 1)) a--;
    while (b + 1 < ids.length && wrapped(b)) b++;
    return [a, b];
  }
  const textOf = (ids, a, b) => {
    let text = '';
    for (let i = a; i <= b; i++) text += tape.texts[ids[i] || 0];
    return text;
  };

  function search(query) {
    hits = [];
    pattern = query ? query.toLowerCase() : null;
    if (pattern) {
      const found = tape.texts.map(t => t.toLowerCase().includes(pattern));
      let s = { ids: [], cursor: 0, size: [tape.head.rows, tape.head.cols], title: '', colors: null };
      let before = new Set();
      tape.frames.forEach((f, i) => {
        s = step(s, f);
        if (!f.rows.length) return;
        const here = new Set();
        for (let r = 0; r < s.ids.length; r++) {
          const id = s.ids[r] || 0;
          if (found[id]) here.add(id);
          else if (id && tape.lines[id].wrapped) {
            const [a, b] = group(s.ids, r);
            const text = textOf(s.ids, a, b);
            if (a === r && text.toLowerCase().includes(pattern)) here.add(text);
          }
        }
        for (const k of here) if (!before.has(k)) { hits.push(i); break; }
        before = here;
      });
    }
    $('count').textContent = pattern ? (hits.length ? `${hits.length} found` : 'not found') : '';
    drawMarks();
    drawHits();
  }

  function nextHit(by) {
    if (!hits.length) return;
    play(false);
    let k = by > 0 ? hits.findIndex(i => i > at) : hits.findLastIndex(i => i < at);
    if (k < 0) k = by > 0 ? 0 : hits.length - 1;
    seek(tape.frames[hits[k]].t);
    $('count').textContent = `${k + 1} of ${hits.length}`;
  }

  function drawHits() {
    $('hits').replaceChildren();
    if (!pattern || at < 0) return;
    const ids = stateAt(at).ids;
    for (let r = 0; r < size[0];) {
      const [a, b] = group(ids, r);
      const cells = [];
      for (let i = a; i <= b; i++) cells.push(...cellsOf(tape.lines[ids[i] || 0], i));
      markCells(cells);
      r = b + 1;
    }
  }
  function cellsOf(line, row) { // one a character: what it is and where it stands
    const cells = [];
    let col = 0;
    for (const run of line ? line.runs : []) {
      if (run.single) { cells.push([run.text, row, col, run.cols]); col += run.cols; }
      else for (const c of run.text) cells.push([c, row, col++, 1]);
    }
    return cells;
  }
  function markCells(cells) {
    let text = '';
    const where = [];
    cells.forEach((c, i) => { for (const _ of c[0].toLowerCase()) where.push(i); text += c[0].toLowerCase(); });
    const units = []; // the character that each unit of the text is of
    let k = 0;
    for (const c of text) { for (let u = 0; u < c.length; u++) units.push(where[k]); k++; }
    for (let i = text.indexOf(pattern); i >= 0; i = text.indexOf(pattern, i + pattern.length)) {
      for (let n = units[i]; n <= units[i + pattern.length - 1]; n++) {
        const [, row, col, cols] = cells[n];
        const el = document.createElement('i');
        el.style.left = `calc(var(--cw) * ${col})`;
        el.style.top = `calc(var(--lh) * ${row})`;
        el.style.width = `calc(var(--cw) * ${cols})`;
        $('hits').append(el);
      }
    }
  }

  // ---- marks

  const NAMES = { input: 'input', resize: 'size', signal: 'signal', service: 'event', hit: 'found' };
  function drawMarks() {
    const box = $('marks'), used = new Map();
    box.replaceChildren();
    const put = (t, kind, label) => { // not more of a kind than can be told apart
      const key = kind + Math.round(400 * t / (tape.end || 1));
      if (used.has(key)) { if (used.get(key).title.length < 300) used.get(key).title += '\n' + label; return; }
      const el = document.createElement('i');
      el.className = kind;
      el.style.left = `${tape.end ? 100 * t / tape.end : 0}%`;
      el.title = `${clock(t)} ${NAMES[kind] || kind}: ${label}`;
      el.addEventListener('click', () => seek(t));
      used.set(key, el);
      box.append(el);
    };
    for (const m of tape.marks) put(m.t, m.kind, m.label);
    for (const i of hits) put(tape.frames[i].t, 'hit', pattern);
  }
  function listMarks() {
    $('list').replaceChildren(...tape.marks.slice(0, 2000).map(m => {
      const li = document.createElement('li'), b = document.createElement('button');
      b.textContent = `${clock(m.t)}  ${NAMES[m.kind] || m.kind}: ${m.label}`;
      b.className = m.kind;
      b.addEventListener('click', () => seek(m.t));
      li.append(b);
      return li;
    }));
    $('events').hidden = !tape.marks.length;
  }
  function nextMark(by) {
    const all = by > 0 ? tape.marks : tape.marks.slice().reverse();
    const m = all.find(x => by > 0 ? x.t > now + 1e-3 : x.t < now - 1e-3);
    if (m) seek(m.t);
  }

  // ---- hands

  const toggle = el => { if (el.open) el.close(); else el.showModal(); };
  function turnTheme() {
    const root = document.documentElement;
    root.dataset.theme = root.dataset.theme === 'light' ? 'dark' : 'light';
  }
  function find() { $('find').focus(); $('find').select(); }
  const KEYS = {
    ' ': () => play(!playing), k: () => play(!playing),
    '.': () => stepFrame(1), ',': () => stepFrame(-1),
    ArrowRight: e => seek(now + (e.shiftKey ? 1 : 5)), ArrowLeft: e => seek(now - (e.shiftKey ? 1 : 5)),
    Home: () => seek(0), End: () => seek(tape.end),
    '>': () => faster(1), '<': () => faster(-1), '+': () => faster(1), '-': () => faster(-1),
    n: () => nextHit(1), N: () => nextHit(-1), '/': find,
    ']': () => nextMark(1), '[': () => nextMark(-1),
    t: turnTheme, '?': () => toggle($('help')),
  };
  function onKey(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const from = e.target;
    if (from === $('find')) {
      if (e.key === 'Enter') { nextHit(e.shiftKey ? -1 : 1); e.preventDefault(); }
      if (e.key === 'Escape') { from.blur(); e.preventDefault(); }
      return;
    }
    if (from.tagName === 'SELECT' || ($('help').open && e.key !== '?')) return;
    if (e.key === ' ' && (from.tagName === 'BUTTON' || from.tagName === 'SUMMARY')) return; // presses it
    const act = /^[0-9]$/.test(e.key) ? () => seek(tape.end * e.key / 10) : KEYS[e.key];
    if (!act) return;
    e.preventDefault();
    act(e);
  }

  function fragment() {
    const m = /^#t=([0-9.]+)$/.exec(location.hash);
    return m ? parseFloat(m[1]) : null;
  }

  function listen() {
    document.addEventListener('keydown', onKey);
    $('play').addEventListener('click', () => play(!playing));
    $('back').addEventListener('click', () => stepFrame(-1));
    $('forth').addEventListener('click', () => stepFrame(1));
    $('theme').addEventListener('click', turnTheme);
    $('keys').addEventListener('click', () => toggle($('help')));
    $('prev').addEventListener('click', () => nextHit(-1));
    $('next').addEventListener('click', () => nextHit(1));
    $('speed').addEventListener('change', e => setSpeed(parseFloat(e.target.value)));
    slider.addEventListener('input', () => seek(parseFloat(slider.value)));
    let typed = 0;
    $('find').addEventListener('input', e => { clearTimeout(typed); typed = setTimeout(search, 120, e.target.value); });
    screen.addEventListener('click', () => { if (String(getSelection()) === '') play(!playing); });
    window.addEventListener('hashchange', () => { const t = fragment(); if (t !== null) seek(t); });
    window.addEventListener('resize', fit);
  }

  async function start() {
    try {
      await unpack();
    } catch (err) {
      $('fault').textContent = `This browser cannot show the recording: ${err.message}. Any browser since 2023 can.`;
      $('fault').hidden = false;
      return;
    }
    const root = document.documentElement;
    if (root.dataset.theme === 'auto') root.dataset.theme = matchMedia('(prefers-color-scheme: light)').matches ? 'light' : 'dark';
    $('still').remove();
    screen.hidden = false;
    listMarks();
    slider.max = tape.end;
    listen();
    drawMarks();
    const t = fragment();
    show(t === null ? 0 : t);
    document.body.dataset.ready = 'yes';
    if (t === null && tape.frames.length > 1 && !matchMedia('(prefers-reduced-motion: reduce)').matches) play(true);
  }
  start();
})();
