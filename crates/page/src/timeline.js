// The timeline of a page: what is visible, what is selected, and what keys, wheel and pointer do.

// Width of the lanes' names, in CSS pixels, and the height at which lanes begin to scroll.
const NAMES = 132, MOST_HEIGHT = 620;
// Shortest visible time, in quanta: one quantum is then less than a tenth of the view.
const SHORTEST = 16;
// Waits that `n` goes through.
const MOST_WAITS = 10000;

class Timeline {
  constructor(element, data) {
    this.element = element;
    this.data = data;
    this.view = { t0: 0, t1: Math.max(data.head.length, SHORTEST) };
    this.selected = null;
    this.worst = null;
    this.place = -1;
    this.build();
    this.layOut();
    this.listen();
    this.theme();
  }

  build() {
    const make = (tag, className, parent) => {
      const element = document.createElement(tag);
      element.className = className;
      parent.append(element);
      return element;
    };
    const bar = make('div', 'bar', this.element);
    const button = (text, title, action) => {
      const b = make('button', '', bar);
      b.type = 'button'; b.textContent = text; b.title = title;
      b.addEventListener('click', () => { action(); this.canvas.focus(); });
    };
    button('+', 'zoom in (w, or the wheel)', () => this.zoom(0.5));
    button('−', 'zoom out (s, or the wheel)', () => this.zoom(2));
    button('◀', 'to the left (a)', () => this.pan(-0.3));
    button('▶', 'to the right (d)', () => this.pan(0.3));
    button('all', 'the whole timeline (0)', () => this.show(0, this.data.head.length));
    button('next worst wait', 'the longest wait, then the next (n; N goes back)', () => this.nextWait(1));
    this.search = make('input', 'search', bar);
    this.search.type = 'search';
    this.search.placeholder = 'search (/): v3 wait, kick, 290 ms';
    this.search.setAttribute('aria-label', 'search the timeline');
    this.found = make('span', 'found', bar);
    this.found.setAttribute('role', 'status');
    this.scroller = make('div', 'scroller', this.element);
    this.sheet = make('div', 'sheet', this.scroller);
    this.canvas = make('canvas', '', this.sheet);
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'application');
    this.canvas.setAttribute('aria-label', 'timeline: w and s zoom, a and d move, n next worst wait, slash searches');
    this.tip = make('div', 'tip', this.element);
    this.details = make('div', 'details', this.element);
    this.details.setAttribute('aria-live', 'polite');
    this.details.textContent = 'Click a slice or a mark for its details, and a wait for its chain.';
    this.legend = make('div', 'legend', this.element);
    this.context = this.canvas.getContext('2d', { alpha: false });
  }

  /// Decides which lanes are shown, and where.
  layOut() {
    this.lanes = [];
    let y = AXIS;
    let group = '';
    // Locks that nobody waited for say little.
    const shown = this.data.lanes.filter((lane) => lane.group !== 'locks' || lane.waited > 0);
    for (const lane of shown) {
      if (lane.group !== group) {
        group = lane.group;
        this.lanes.push({ heading: group, y, height: GROUP, rows: [] });
        y += GROUP;
      }
      const rows = lane.rows.filter((row, i) => i === 0 || row.length > 0);
      const high = (i) => (i === 0 ? STATE_ROW : LOCK_ROW);
      let at = y;
      const placed = rows.map((row, i) => {
        const rowAt = { row, y: at, height: high(i) };
        at += high(i) + 1;
        return rowAt;
      });
      this.lanes.push({ lane, y, height: at - y, rows: placed });
      y = at + LANE_GAP;
    }
    this.height = y;
    this.resize();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const width = Math.max(this.scroller.clientWidth, 300);
    this.visible = Math.min(this.height, MOST_HEIGHT);
    this.scroller.style.height = `${this.visible + 2}px`;
    this.sheet.style.height = `${this.height}px`;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${this.visible}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.visible * ratio);
    this.ratio = ratio;
    this.width = width;
    const plot = this.canvas.width - Math.round(NAMES * ratio);
    const data = this.context.createImageData(plot, this.canvas.height);
    this.image = {
      data, pixels: new Uint32Array(data.data.buffer), width: plot, height: this.canvas.height, ratio,
    };
    this.sums = new Float32Array(plot * STYLES.length);
    this.redraw();
  }

  theme() {
    this.palette = new Palette(this.element);
    this.drawLegend();
    this.redraw();
  }

  redraw() {
    if (this.waiting || !this.palette) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  // ---- Drawing ----

  draw() {
    const { context, ratio, image, palette, view } = this;
    const left = Math.round(NAMES * ratio), top = this.scroller.scrollTop;
    image.pixels.fill(palette.background);
    const labels = [];
    for (const { rows, lane } of this.lanes) {
      for (const { row, y, height } of rows) {
        const y0 = Math.round((y - top) * ratio), y1 = Math.round((y - top + height) * ratio);
        if (y1 <= AXIS * ratio || y0 >= image.height) continue;
        for (const wide of drawRow(image, palette, row, view, y0, y1, this.sums)) {
          labels.push({ ...wide, row, lane, y: (y0 + y1) / 2, height });
        }
      }
    }
    context.putImageData(image.data, left, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawLabels(labels);
    this.drawNames(top);
    this.drawMarks(top);
    this.drawSelection(top);
    this.drawAxis();
    context.setTransform(1, 0, 0, 1, 0, 0);
  }

  drawLabels(labels) {
    const { context, ratio, data, palette } = this;
    if (!this.textless) {
      context.textBaseline = 'middle';
      context.textAlign = 'left';
      for (const { i, x0, x1, row, lane, y, height } of labels) {
        const slice = row.slice[i];
        const other = lane.vcpu !== undefined ? data.words(slice) : data.head.vcpus[data.vcpu[slice]];
        const text = row.style[i] === FREE ? 'free' : row.style[i] === SPINNING ? `spins: ${other}` : other;
        const room = (x1 - x0) / ratio - 8;
        context.font = `${height > 12 ? 11 : 8.5}px sans-serif`;
        if (context.measureText(text).width > room) continue;
        context.fillStyle = palette.labels[row.style[i]];
        if (PATTERNS[row.style[i]]) {
          // A plain ground, so that the pattern does not cut the letters.
          const [r, g, b] = [0, 8, 16].map((shift) => (palette.styles[row.style[i]][0] >>> shift) & 255);
          const ink = context.fillStyle;
          context.fillStyle = `rgb(${r} ${g} ${b})`;
          context.fillRect(NAMES + x0 / ratio + 2, y / ratio - height / 2, context.measureText(text).width + 4, height);
          context.fillStyle = ink;
        }
        context.fillText(text, NAMES + x0 / ratio + 4, y / ratio + 0.5);
      }
    }
  }

  drawNames(top) {
    const { context, palette } = this;
    context.fillStyle = palette.surface;
    context.fillRect(0, 0, NAMES, this.visible);
    context.textBaseline = 'middle';
    for (const { heading, lane, y, height } of this.lanes) {
      const at = y - top;
      if (at + height < AXIS || at > this.visible || this.textless) continue;
      if (heading) {
        context.font = 'bold 11px sans-serif';
        context.fillStyle = palette.faint;
        context.fillText(heading, 6, at + height / 2 + 2);
      } else {
        context.font = '12px sans-serif';
        context.fillStyle = palette.text;
        const name = lane.name.length > 20 ? `…${lane.name.slice(-19)}` : lane.name;
        context.fillText(name, 6, at + STATE_ROW / 2 + 1);
      }
    }
  }

  x(time) { return NAMES + (time - this.view.t0) / (this.view.t1 - this.view.t0) * (this.width - NAMES); }
  time(x) { return this.view.t0 + (x - NAMES) / (this.width - NAMES) * (this.view.t1 - this.view.t0); }

  drawMarks(top) {
    const { context, palette, data, view } = this;
    context.save();
    context.beginPath();
    context.rect(NAMES, AXIS, this.width - NAMES, this.visible - AXIS);
    context.clip();
    context.strokeStyle = context.fillStyle = palette.text;
    context.lineWidth = 1.5;
    const gap = MARK_GAP * (view.t1 - view.t0) / (this.width - NAMES);
    for (const { lane, y } of this.lanes) {
      if (!lane || lane.vcpu === undefined) continue;
      const at = y - top + STATE_ROW / 2;
      if (at < AXIS - 10 || at > this.visible + 10) continue;
      for (const mark of marksFrom(data.marksOf[lane.vcpu], view.t0, view.t1, gap)) {
        drawMark(context, mark.kind, mark.argument, this.x(mark.at), at, 4);
      }
    }
    for (const mark of marksFrom(data.changes, view.t0, view.t1, gap)) {
      const x = this.x(mark.at);
      context.globalAlpha = 0.5;
      context.fillRect(x, AXIS, 1, this.visible);
      context.globalAlpha = 1;
      drawMark(context, CHANGE, 0, x, AXIS + 6, 5);
    }
    context.restore();
  }

  drawSelection(top) {
    const s = this.selected;
    if (!s) return;
    const { context, palette } = this;
    const lane = this.lanes.find((l) => l.lane === s.lane);
    const row = lane?.rows[s.rowIndex] ?? lane?.rows[0];
    if (!row) return;
    context.save();
    context.beginPath();
    context.rect(NAMES, AXIS, this.width - NAMES, this.visible - AXIS);
    context.clip();
    const x0 = this.x(s.start), x1 = this.x(s.end);
    context.fillStyle = context.strokeStyle = palette.accent;
    context.globalAlpha = 0.12;
    context.fillRect(x0, AXIS, Math.max(x1 - x0, 1), this.visible);
    context.globalAlpha = 1;
    context.lineWidth = 2;
    context.strokeRect(x0 - 1, row.y - top - 1, Math.max(x1 - x0, 2) + 2, row.height + 2);
    context.restore();
  }

  drawAxis() {
    const { context, palette, data, view } = this;
    context.fillStyle = palette.surface;
    context.fillRect(0, 0, this.width, AXIS);
    const q = data.head.quantum_ns;
    const from = data.head.from_ns + view.t0 * q, to = data.head.from_ns + view.t1 * q;
    const step = niceStep((to - from) / Math.max((this.width - NAMES) / 110, 1));
    context.font = '11px sans-serif';
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    for (let ns = Math.ceil(from / step) * step; ns <= to; ns += step) {
      const x = this.x((ns - data.head.from_ns) / q);
      context.fillStyle = palette.faint;
      context.globalAlpha = 0.35;
      context.fillRect(x, AXIS - 5, 1, this.visible);
      context.globalAlpha = 1;
      if (!this.textless) context.fillText(axisLabel(ns, step), x + 3, AXIS / 2);
    }
  }

  drawLegend() {
    this.legend.replaceChildren();
    const item = (words, paint) => {
      const label = document.createElement('span');
      const canvas = document.createElement('canvas');
      canvas.width = 22; canvas.height = 13;
      paint(canvas.getContext('2d'));
      label.append(canvas, ` ${words}`);
      this.legend.append(label);
    };
    STYLES.forEach(({ words }, style) => item(words, (context) => {
      const data = context.createImageData(22, 13);
      const image = { pixels: new Uint32Array(data.data.buffer), width: 22, height: 13 };
      fillStyle(image, this.palette, style, 0, 22, 0, 13);
      context.putImageData(data, 0, 0);
    }));
    const present = new Set([...this.data.marksOf.flat(), ...this.data.changes].map((mark) => mark.kind));
    for (const [kind, argument, words] of MARKS.filter(([kind]) => present.has(kind))) {
      item(words, (context) => {
        context.strokeStyle = context.fillStyle = this.palette.text;
        context.lineWidth = 1.5;
        drawMark(context, kind, argument, 11, 6.5, 4.5);
      });
    }
  }

  // ---- The view ----

  show(t0, t1) {
    const whole = Math.max(this.data.head.length, SHORTEST);
    const length = Math.min(Math.max(t1 - t0, SHORTEST), whole);
    const middle = (t0 + t1) / 2;
    const from = Math.min(Math.max(middle - length / 2, 0), whole - length);
    this.view = { t0: from, t1: from + length };
    this.redraw();
  }

  /// Makes the visible time `factor` times as long; the time at `x` stays where it is.
  zoom(factor, x = (NAMES + this.width) / 2) {
    const { t0, t1 } = this.view;
    const time = this.time(Math.max(x, NAMES));
    const length = Math.min(Math.max((t1 - t0) * factor, SHORTEST), Math.max(this.data.head.length, SHORTEST));
    const from = time - (time - t0) * length / (t1 - t0);
    this.show(from, from + length);
  }

  pan(part) {
    const { t0, t1 } = this.view;
    this.show(t0 + part * (t1 - t0), t1 + part * (t1 - t0));
  }

  // ---- Selection ----

  select(selection, lines) {
    this.selected = selection;
    this.details.replaceChildren();
    const add = (tag, text, className = '') => {
      const e = document.createElement(tag);
      e.textContent = text;
      e.className = className;
      this.details.append(e);
      return e;
    };
    if (!selection) {
      add('p', 'Click a slice or a mark for its details, and a wait for its chain.');
    } else {
      lines(add);
    }
    this.redraw();
  }

  selectSlice(slice, lane, rowIndex) {
    const { data } = this;
    const start = data.start[slice], end = data.end[slice];
    this.select({ slice, lane, rowIndex, start, end }, (add) => {
      if (data.isWait(slice)) {
        const { title, lines } = chain(data, slice);
        add('p', title, 'chain-title');
        const table = add('table', '', 'chain');
        for (const { start: from, end: to, text } of lines) {
          const cells = [`+${data.ms(from - start)} ms`, `${data.ms(to - from)} ms`, text];
          const tr = table.insertRow();
          for (const cell of cells) tr.insertCell().textContent = cell;
          tr.addEventListener('click', () => this.show(from - (to - from), to + (to - from)));
        }
      } else {
        const vcpu = data.head.vcpus[data.vcpu[slice]];
        const why = data.kind[slice] === OFF ? decision(data, data.vcpu[slice], slice) : '';
        add('p', `${vcpu}: ${data.words(slice)}${why}`, 'chain-title');
      }
      add('p', `From ${data.at(start)} ms to ${data.at(end)} ms, ${data.ms(end - start)} ms long.`, 'faint');
    });
  }

  selectMark(mark, lane) {
    const vcpu = mark.kind === CHANGE ? '' : `${this.data.head.vcpus[mark.vcpu]}: `;
    this.select({ mark, lane, rowIndex: 0, start: mark.at, end: mark.at }, (add) => {
      add('p', `${vcpu}${this.data.markWords(mark)}`, 'chain-title');
      add('p', `At ${this.data.at(mark.at)} ms.`, 'faint');
    });
  }

  /// The slice or mark at a point of the canvas, in CSS pixels.
  under(x, y) {
    const at = y + this.scroller.scrollTop;
    if (x < NAMES || y < AXIS) return null;
    const time = this.time(x);
    const pixelTime = (this.view.t1 - this.view.t0) / (this.width - NAMES);
    for (const { lane, rows, y: top, height } of this.lanes) {
      if (!lane || at < top || at > top + height) continue;
      if (lane.vcpu !== undefined && at <= top + STATE_ROW) {
        const near = nearestMark(this.data.marksOf[lane.vcpu], time);
        if (near && Math.abs(near.at - time) <= 4 * pixelTime) return { lane, mark: near };
      }
      const index = rows.findIndex((row) => at >= row.y && at <= row.y + row.height);
      if (index < 0) return null;
      const piece = rows[index].row.at(time, 3 * pixelTime);
      return piece < 0 ? null : { lane, rowIndex: index, piece, row: rows[index].row };
    }
    return null;
  }

  selectUnder(hit) {
    if (!hit) { this.select(null); return; }
    if (hit.mark) { this.selectMark(hit.mark, hit.lane); return; }
    let slice = hit.row.slice[hit.piece];
    // A spinning vCPU: the wait says more than the runstate.
    if (hit.row.style[hit.piece] === SPINNING) {
      const wait = this.data.waitAt(this.data.vcpu[slice], undefined, hit.row.start[hit.piece]);
      if (wait >= 0) slice = wait;
    }
    this.selectSlice(slice, hit.lane, hit.rowIndex);
  }

  /// Shows a slice in the middle of the view, and its lane.
  goTo(slice, lane, rowIndex) {
    const start = this.data.start[slice], end = this.data.end[slice];
    const margin = Math.max((end - start) / 3, SHORTEST / 2);
    this.show(start - margin, end + margin);
    this.reveal(lane);
    this.selectSlice(slice, lane, rowIndex);
  }

  reveal(lane) {
    const placed = this.lanes.find((l) => l.lane === lane);
    if (!placed) return;
    const top = this.scroller.scrollTop;
    if (placed.y - AXIS < top || placed.y + placed.height > top + this.visible) {
      this.scroller.scrollTop = placed.y - this.visible / 2;
    }
  }

  /// Goes to the next longest wait, or back to the one before.
  nextWait(step) {
    this.worst ??= this.data.worstWaits().slice(0, MOST_WAITS);
    if (this.worst.length === 0) { this.found.textContent = 'no vCPU waits for a lock here'; return; }
    this.place = (this.place + step + this.worst.length) % this.worst.length;
    const wait = this.worst[this.place];
    this.found.textContent = `wait ${this.place + 1} of ${this.worst.length}, the longest first`;
    this.goTo(wait, this.data.vcpuLanes[this.data.vcpu[wait]], 1);
  }

  // ---- Search ----

  /// Goes to a time, or to the next slice or mark after the selection whose words contain all words of `text`.
  find(text) {
    const { data } = this;
    const time = /^\s*([\d.]+)\s*(ns|us|ms|s)\s*$/.exec(text);
    if (time) {
      const ns = Number(time[1]) * { ns: 1, us: 1e3, ms: 1e6, s: 1e9 }[time[2]];
      const at = (ns - data.head.from_ns) / data.head.quantum_ns;
      const half = (this.view.t1 - this.view.t0) / 2;
      this.show(at - half, at + half);
      this.found.textContent = '';
      return;
    }
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return;
    const has = (label) => words.every((word) => label.includes(word));
    const after = this.selected && this.lastSearch === text ? this.selected.start : this.view.t0 - 1;
    this.lastSearch = text;
    let best = null;
    // The earliest after `after`; if there is none, the earliest of all.
    const offer = (start, go) => {
      const order = start > after ? start : start + 2 * data.head.length;
      if (!best || order < best.order) best = { order, go };
    };
    const labels = new Map();
    for (const lane of data.vcpuLanes) {
      const name = lane.name.toLowerCase();
      for (const [rowIndex, [from, to]] of [data.states[lane.vcpu], data.locks[lane.vcpu]].entries()) {
        labels.clear();
        for (let i = from; i < to; i++) {
          const key = data.argument[i] * 8 + data.kind[i];
          if (!labels.has(key)) labels.set(key, has(`${name} ${data.words(i).toLowerCase()}`));
          if (labels.get(key)) offer(data.start[i], () => this.goTo(i, lane, rowIndex));
        }
      }
      for (const mark of data.marksOf[lane.vcpu]) {
        if (has(`${name} ${data.markWords(mark).toLowerCase()}`)) offer(mark.at, () => this.goToMark(mark, lane));
      }
    }
    for (const mark of data.changes) {
      if (has(data.markWords(mark).toLowerCase())) offer(mark.at, () => this.goToMark(mark, data.lanes[0]));
    }
    const lane = data.lanes.find((l) => has(l.name.toLowerCase()));
    if (best) {
      best.go();
    } else if (lane) {
      this.reveal(lane);
      this.redraw();
    }
    this.found.textContent = best ? `at ${data.at(this.selected.start)} ms; Enter goes on`
      : lane ? lane.name : 'nothing found';
  }

  goToMark(mark, lane) {
    const half = Math.min(this.view.t1 - this.view.t0, this.data.head.length / 20) / 2;
    this.show(mark.at - half, mark.at + half);
    this.reveal(lane);
    this.selectMark(mark, lane);
  }

  // ---- Input ----

  listen() {
    const { canvas } = this;
    canvas.addEventListener('wheel', (event) => {
      // Over the names the page scrolls, and with Shift the lanes do.
      if (event.shiftKey || event.offsetX < NAMES) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / 1000);
      else this.zoom(1.0015 ** event.deltaY, event.offsetX);
    }, { passive: false });
    this.scroller.addEventListener('scroll', () => this.redraw());
    let drag = null;
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      drag = { x: event.offsetX, y: event.clientY, view: { ...this.view }, top: this.scroller.scrollTop, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!drag) { this.hover(event.offsetX, event.offsetY); return; }
      const by = event.offsetX - drag.x;
      drag.moved ||= Math.abs(by) > 3 || Math.abs(event.clientY - drag.y) > 3;
      if (!drag.moved) return;
      const time = by / (this.width - NAMES) * (drag.view.t1 - drag.view.t0);
      this.show(drag.view.t0 - time, drag.view.t1 - time);
      this.scroller.scrollTop = drag.top - (event.clientY - drag.y);
    });
    canvas.addEventListener('pointerup', (event) => {
      if (drag && !drag.moved) this.selectUnder(this.under(event.offsetX, event.offsetY));
      drag = null;
    });
    canvas.addEventListener('pointercancel', () => { drag = null; });
    canvas.addEventListener('pointerleave', () => { this.tip.style.display = 'none'; });
    canvas.addEventListener('keydown', (event) => this.key(event));
    this.search.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') { this.find(this.search.value); event.preventDefault(); }
      if (event.key === 'Escape') { this.search.value = ''; this.found.textContent = ''; canvas.focus(); }
    });
    new ResizeObserver(() => { if (this.scroller.clientWidth !== this.width) this.resize(); }).observe(this.scroller);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      w: () => this.zoom(0.7), s: () => this.zoom(1 / 0.7), a: () => this.pan(-0.15), d: () => this.pan(0.15),
      ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15),
      ArrowUp: () => { this.scroller.scrollTop -= 40; }, ArrowDown: () => { this.scroller.scrollTop += 40; },
      0: () => this.show(0, this.data.head.length),
      n: () => this.nextWait(1), N: () => this.nextWait(-1),
      '/': () => this.search.focus(), Escape: () => this.select(null),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  hover(x, y) {
    const hit = this.under(x, y);
    this.tip.style.display = hit ? 'block' : 'none';
    if (!hit) return;
    const { data } = this;
    if (hit.mark) {
      this.tip.textContent = `${hit.lane.name}: ${data.markWords(hit.mark)} at ${data.at(hit.mark.at)} ms`;
    } else {
      const { row, piece } = hit;
      const slice = row.slice[piece];
      const length = data.ms(row.end[piece] - row.start[piece]);
      this.tip.textContent = `${data.head.vcpus[data.vcpu[slice]]}: ${STYLES[row.style[piece]].words}, `
        + `${data.words(slice)}; ${length} ms from ${data.at(row.start[piece])} ms`;
    }
    const box = this.canvas.getBoundingClientRect(), own = this.element.getBoundingClientRect();
    this.tip.style.left = `${Math.min(x + 12, this.width - 260)}px`;
    this.tip.style.top = `${box.top - own.top + y + 16}px`;
  }

  /// The share of each cause in a wait.
  causesOf(wait) {
    const { causes } = chain(this.data, wait);
    return causes.map((time) => time / Math.max(this.data.end[wait] - this.data.start[wait], 1));
  }

  /// Draws for `seconds` while it zooms and pans, a frame at a time as the browser asks for them. Returns the frames per
  /// second, and the longest time of one drawing in milliseconds.
  async measure(seconds) {
    const whole = this.data.head.length;
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    let frames = 0, longest = 0;
    const begin = performance.now();
    for (let passed = 0; passed < seconds; passed = (performance.now() - begin) / 1000) {
      // In and out three times, ending near a thousandth, while the middle moves from left to right.
      const length = whole * 10 ** (-1.5 + 1.5 * Math.cos(passed / seconds * 6 * Math.PI));
      const from = (whole - length) * passed / seconds;
      this.view = { t0: from, t1: from + Math.max(length, SHORTEST) };
      const drawing = performance.now();
      this.draw();
      longest = Math.max(longest, performance.now() - drawing);
      frames++;
      await frame();
    }
    return { fps: frames / ((performance.now() - begin) / 1000), longest_ms: longest };
  }
}

/// Index of the first mark at `time` or later.
function firstMark(marks, time) {
  let low = 0, high = marks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (marks[middle].at < time) low = middle + 1; else high = middle;
  }
  return low;
}

/// Marks between two times, without those that are nearer than `gap` to the one before.
function* marksFrom(marks, t0, t1, gap) {
  for (let i = firstMark(marks, t0); i < marks.length && marks[i].at <= t1; ) {
    yield marks[i];
    i = Math.max(i + 1, firstMark(marks, marks[i].at + gap));
  }
}

/// The mark nearest to a time; undefined if there is none.
function nearestMark(marks, time) {
  const i = firstMark(marks, time);
  const [before, after] = [marks[i - 1], marks[i]];
  return before && (!after || time - before.at < after.at - time) ? before : after;
}

/// Unpacks and shows every timeline of the page.
async function startTimelines(root) {
  const timelines = [];
  for (const element of root.querySelectorAll('.timeline')) {
    const status = element.querySelector('.loading');
    try {
      if (!('DecompressionStream' in window)) {
        throw new Error('this browser cannot inflate data (DecompressionStream); a version of 2023 or later can');
      }
      const head = JSON.parse(document.getElementById(`${element.id}-head`).textContent);
      const bytes = await inflate(document.getElementById(`${element.id}-data`).textContent);
      status.remove();
      timelines.push(new Timeline(element, new TimelineData(head, bytes)));
    } catch (error) {
      status.textContent = `The timeline cannot be shown: ${error.message}`;
    }
  }
  return timelines;
}
