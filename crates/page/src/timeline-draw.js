// Draws the rows of a timeline into the pixels of a canvas. Each style has a colour and a pattern, and each mark a
// shape, so that nothing depends on colour alone.

// Height of each row of a lane, and the space between lanes, in CSS pixels.
const STATE_ROW = 15, LOCK_ROW = 9, LANE_GAP = 5, AXIS = 24, GROUP = 20;
// Marks that are nearer than this to the mark before are left out, in CSS pixels.
const MARK_GAP = 7;

/// A CSS colour as a pixel of an ImageData.
function pixel(colour) {
  const m = /^#(..)(..)(..)$/.exec(colour.trim());
  const [r, g, b] = m ? m.slice(1).map((hex) => parseInt(hex, 16)) : [128, 128, 128];
  return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
}

/// Between two pixels: `part` of the first.
function mixed(a, b, part) {
  const channel = (shift) => Math.round(((a >>> shift) & 255) * part + ((b >>> shift) & 255) * (1 - part)) << shift;
  return (255 << 24 | channel(16) | channel(8) | channel(0)) >>> 0;
}

/// The pattern of each style: whether the pixel at x, y has the second colour.
const PATTERNS = [
  null, // running
  (x, y) => x % 4 < 2 && y % 4 < 2, // spinning: dots
  (x, y) => (x + y) % 6 < 2, // preempted: rising lines
  (x, y) => y % 5 === 0, // asleep: level lines
  null, // hold
  (x, y) => (x + y) % 6 < 2, // held by a vCPU off its pCPU: rising lines
  (x, y) => (x - y + 6000) % 6 < 2, // wait: falling lines
  (x, y) => (x % 6 < 1) || (y % 6 < 1), // free: a grid
];

/// The colours of the page's theme.
class Palette {
  constructor(element) {
    const style = getComputedStyle(element);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    this.background = pixel(of('plot'));
    this.text = of('text');
    this.faint = of('faint');
    this.accent = of('accent');
    this.surface = of('surface');
    this.styles = STYLES.map(({ name }) => {
      const base = pixel(of(`style-${name}`));
      return [base, mixed(base, of('dark') === '1' ? 0xff000000 : 0xffffffff, 0.55)];
    });
    this.labels = STYLES.map(({ name }) => (name === 'hold' || name === 'running' || name === 'held-off' ? '#fff' : '#000'));
  }
}

/// Fills a rectangle of device pixels with a style.
function fillStyle(image, palette, style, x0, x1, y0, y1) {
  const { pixels, width, height } = image;
  const [base, second] = palette.styles[style];
  const pattern = PATTERNS[style];
  x0 = Math.max(x0, 0); x1 = Math.min(x1, width); y0 = Math.max(y0, 0); y1 = Math.min(y1, height);
  if (x1 <= x0) return;
  for (let y = y0; y < y1; y++) {
    const line = y * width;
    pixels.fill(base, line + x0, line + x1);
    if (pattern && x1 - x0 > 3) {
      for (let x = x0; x < x1; x++) if (pattern(x, y)) pixels[line + x] = second;
    }
  }
}

/// Draws one row. Pieces of at least a pixel become rectangles. The others are added up, and each pixel becomes a stack
/// of the time of each style in it. Returns the rectangles that have room for a label.
function drawRow(image, palette, row, view, y0, y1, sums) {
  const { width, pixels } = image;
  const scale = width / (view.t1 - view.t0);
  const styles = STYLES.length;
  const wide = [];
  const rectangles = [];
  const { start, end, style } = row;
  let any = false;
  // Adds a time of less than a pixel to the one or two pixels that it touches.
  const add = (x0, x1, s, time) => {
    const left = Math.floor(x0), right = Math.floor(x1);
    const part = left === right ? 1 : (right - x0) / (x1 - x0);
    if (left >= 0 && left < width) sums[left * styles + s] += time * part;
    if (left !== right && right >= 0 && right < width) sums[right * styles + s] += time * (1 - part);
    any = true;
  };
  row.visit(view.t0, view.t1, 1 / scale, (i) => {
    const x0 = (start[i] - view.t0) * scale, x1 = (end[i] - view.t0) * scale;
    if (x1 - x0 >= 1) {
      // Whole pixels are filled; the rest of both ends is added up like short pieces.
      const left = Math.ceil(x0), right = Math.floor(x1);
      if (left > x0) add(x0, left, style[i], left - x0);
      if (x1 > right) add(right, x1, style[i], x1 - right);
      if (right > left) rectangles.push(i);
    } else {
      add(x0, x1, style[i], Math.max(x1 - x0, 1e-3));
    }
  }, (level, i) => {
    const x0 = (level.start[i] - view.t0) * scale, x1 = (level.end[i] - view.t0) * scale;
    for (let s = 0; s < styles; s++) {
      const time = level.time[i * styles + s] * scale;
      if (time > 0) add(x0, x1, s, time);
    }
  });
  if (any) {
    const height = y1 - y0;
    for (let x = 0; x < width; x++) {
      let total = 0;
      for (let s = 0; s < styles; s++) total += sums[x * styles + s];
      if (total === 0) continue;
      let y = y1, rest = 0;
      const part = height / Math.max(total, 1);
      for (let s = 0; s < styles; s++) {
        const time = sums[x * styles + s];
        if (time === 0) continue;
        sums[x * styles + s] = 0;
        // Whole pixels; what is left over goes to the next style, and the first one that is there gets one at least.
        rest += time * part;
        let high = Math.round(rest);
        rest -= high;
        if (y === y1 && high === 0) high = 1;
        const colour = palette.styles[s][0];
        for (const stop = Math.max(y - high, y0); y > stop; ) pixels[--y * width + x] = colour;
      }
    }
  }
  for (const i of rectangles) {
    const x0 = Math.ceil((start[i] - view.t0) * scale), x1 = Math.floor((end[i] - view.t0) * scale);
    fillStyle(image, palette, style[i], x0, x1, y0, y1);
    if (x1 - x0 > 34 * image.ratio) wide.push({ i, x0: Math.max(x0, 0), x1: Math.min(x1, width) });
  }
  return wide;
}

/// The shape of a mark, centred at x, y; `r` is its radius.
function drawMark(context, kind, argument, x, y, r) {
  context.beginPath();
  switch (kind) {
    case KICK: // a triangle
      context.moveTo(x, y - r); context.lineTo(x + r, y + r); context.lineTo(x - r, y + r); context.closePath();
      context.fill();
      break;
    case NOTICE: // a diamond
      context.moveTo(x, y - r); context.lineTo(x + r, y); context.lineTo(x, y + r); context.lineTo(x - r, y);
      context.closePath(); context.fill();
      break;
    case WINDOW_ENDS: // a square, open unless the window expired
      context.rect(x - r + 1, y - r + 1, 2 * r - 2, 2 * r - 2);
      if (argument === 1) context.fill(); else context.stroke();
      break;
    case EXIT: // a cross
      context.moveTo(x - r, y - r); context.lineTo(x + r, y + r);
      context.moveTo(x + r, y - r); context.lineTo(x - r, y + r); context.stroke();
      break;
    case YIELD_TO: // a circle
      context.arc(x, y, r - 0.5, 0, 7); context.stroke();
      break;
    default: // a flag
      context.moveTo(x, y + r); context.lineTo(x, y - r); context.lineTo(x + 1.5 * r, y - r / 2); context.lineTo(x, y);
      context.fill(); context.stroke();
  }
}

/// The marks of the legend: kind, argument, words.
const MARKS = [
  [KICK, 0, 'kick'], [NOTICE, 0, 'notice (a window opens)'], [WINDOW_ENDS, 0, 'window ends'],
  [WINDOW_ENDS, 1, 'window expires'], [EXIT, 0, 'pause-loop exit'], [YIELD_TO, 0, 'directed yield'],
  [CHANGE, 0, 'administrator'],
];

/// A step of 1, 2 or 5 times a power of ten that is at least `about`.
function niceStep(about) {
  const power = 10 ** Math.floor(Math.log10(about));
  return [1, 2, 5, 10].map((s) => s * power).find((s) => s >= about);
}

/// A time of `ns` nanoseconds, for an axis whose lines are `step` apart.
function axisLabel(ns, step) {
  const [unit, name] = step >= 1e8 ? [1e9, 's'] : step >= 1e5 ? [1e6, 'ms'] : step >= 100 ? [1e3, 'us'] : [1, 'ns'];
  const digits = Math.max(0, -Math.floor(Math.log10(step / unit)));
  return `${(ns / unit).toFixed(digits)} ${name}`;
}
