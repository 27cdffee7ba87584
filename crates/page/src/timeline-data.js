// Timelines: unpacks the columns that `timeline/pack.rs` wrote, and makes the rows that are drawn.
//
// Times are whole quanta since the beginning of the timeline. A *slice* is a line of the columns. A *piece* is a part of
// a slice that is drawn in one style, and a *row* is a list of pieces in order of time.

// Kinds of slices and of marks, as in pack.rs.
const ON = 0, OFF = 1, ASLEEP = 2, WAITS = 3, STILL_WAITS = 4, HOLDS = 5;
const KICK = 0, NOTICE = 1, WINDOW_ENDS = 2, EXIT = 3, YIELD_TO = 4, CHANGE = 5;
const KIND_BITS = 3;

// Styles of pieces. The order is the order in which a pixel that holds many pieces stacks them, from below.
const STYLES = [
  { name: 'running', words: 'running' },
  { name: 'spinning', words: 'spinning: on a pCPU while it waits for a lock' },
  { name: 'preempted', words: 'preempted: wants a CPU and has none' },
  { name: 'asleep', words: 'asleep' },
  { name: 'hold', words: 'hold a lock' },
  { name: 'held-off', words: 'the holder is off its CPU' },
  { name: 'wait', words: 'wait for a lock' },
  { name: 'free', words: 'the lock is free, and vCPUs wait for it' },
];
const RUNNING = 0, SPINNING = 1, PREEMPTED = 2, SLEEPING = 3, HOLD = 4, HELD_OFF = 5, WAIT = 6, FREE = 7;

// Children of a node of a row's tree.
const FANOUT = 4;

/// Inflates base64 text of raw deflate data.
async function inflate(base64) {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/// A list of pieces that grows, and then becomes a row.
class Pieces {
  constructor() { this.start = []; this.end = []; this.style = []; this.slice = []; }
  add(start, end, style, slice) {
    this.start.push(start); this.end.push(end); this.style.push(style); this.slice.push(slice);
  }
}

/// Pieces in order of time, with a tree over them. A node of level k covers FANOUT^k pieces: its time span, and how much
/// of it each style takes. So a frame visits about as many nodes as it has pixels, however many pieces there are.
class Row {
  constructor(pieces, inOrder) {
    const n = pieces.start.length;
    let at = (i) => i;
    if (!inOrder) {
      // Typed arrays sort numbers without calling back: the key holds the time and the place.
      const keys = new Float64Array(n);
      for (let i = 0; i < n; i++) keys[i] = pieces.start[i] * 4194304 + i;
      keys.sort();
      at = (i) => keys[i] % 4194304;
    }
    this.start = new Uint32Array(n);
    this.end = new Uint32Array(n);
    this.style = new Uint8Array(n);
    this.slice = new Uint32Array(n);
    for (let i = 0; i < n; i++) {
      const from = at(i);
      this.start[i] = pieces.start[from];
      this.end[i] = pieces.end[from];
      this.style[i] = pieces.style[from];
      this.slice[i] = pieces.slice[from];
    }
    this.levels = [{ start: this.start, end: this.end }];
    const styles = STYLES.length;
    for (let below = n; below > FANOUT; ) {
      const last = this.levels[this.levels.length - 1];
      const count = Math.ceil(below / FANOUT);
      const level = {
        start: new Uint32Array(count), end: new Uint32Array(count), time: new Float32Array(count * styles),
      };
      for (let i = 0; i < below; i++) {
        const up = Math.floor(i / FANOUT);
        if (i % FANOUT === 0) level.start[up] = last.start[i];
        level.end[up] = Math.max(level.end[up], last.end[i]);
        if (last.time) {
          for (let s = 0; s < styles; s++) level.time[up * styles + s] += last.time[i * styles + s];
        } else {
          level.time[up * styles + this.style[i]] += this.end[i] - this.start[i];
        }
      }
      this.levels.push(level);
      below = count;
    }
  }

  get length() { return this.start.length; }

  /// Calls `piece(i)` for each piece that is at least `least` long, and `many(level, i)` for nodes that are shorter,
  /// among those that touch the time from `t0` to `t1`.
  visit(t0, t1, least, piece, many) {
    const down = (k, i) => {
      const level = this.levels[k];
      const start = level.start[i], end = level.end[i];
      if (end < t0 || start > t1) return;
      if (k === 0) { piece(i); return; }
      if (end - start < least) { many(level, i); return; }
      const below = this.levels[k - 1].start.length;
      const last = Math.min((i + 1) * FANOUT, below);
      for (let child = i * FANOUT; child < last; child++) down(k - 1, child);
    };
    const top = this.levels.length - 1;
    for (let i = 0; i < this.levels[top].start.length; i++) down(top, i);
  }

  /// The piece at `time`, or the nearest one within `reach`; the shortest if several overlap. -1 if there is none.
  at(time, reach) {
    let best = -1, distance = Infinity, length = Infinity;
    const look = (i) => {
      const away = Math.max(this.start[i] - time, time - this.end[i], 0);
      const long = this.end[i] - this.start[i];
      if (away <= reach && (away < distance || (away === distance && long < length))) {
        best = i; distance = away; length = long;
      }
    };
    this.visit(time - reach, time + reach, 0, look, () => {});
    return best;
  }
}

/// Index of the last of `array[from..to]` that is at most `value`; `from - 1` if there is none.
function lastAtMost(array, value, from, to) {
  let low = from, high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] <= value) low = middle + 1; else high = middle;
  }
  return low - 1;
}

/// The columns of a timeline, and its lanes.
class TimelineData {
  constructor(head, bytes) {
    this.head = head;
    let offset = 0;
    const column = (n) => {
      const values = new Uint32Array(n);
      for (let plane = 0; plane < 4; plane++) {
        for (let i = 0; i < n; i++) values[i] |= bytes[offset + i] << (8 * plane);
        offset += n;
      }
      return values;
    };
    const n = head.rows.reduce((sum, count) => sum + count, 0);
    this.count = n;
    const gap = column(n), length = column(n), what = column(n);
    this.start = new Uint32Array(n);
    this.end = new Uint32Array(n);
    this.kind = new Uint8Array(n);
    this.argument = new Uint32Array(n);
    this.vcpu = new Uint32Array(n);
    // Where the rows of each vCPU begin among the slices: states, then locks.
    this.states = []; this.locks = [];
    let i = 0;
    head.rows.forEach((count, row) => {
      (row % 2 ? this.locks : this.states).push([i, i + count]);
      let last = 0;
      for (const to = i + count; i < to; i++) {
        last += (gap[i] >>> 1) ^ -(gap[i] & 1);
        this.start[i] = last;
        last += length[i];
        this.end[i] = last;
        this.kind[i] = what[i] & ((1 << KIND_BITS) - 1);
        this.argument[i] = what[i] >>> KIND_BITS;
        this.vcpu[i] = row >> 1;
      }
    });
    const m = head.marks;
    const marks = { at: column(m), kind: column(m), vcpu: column(m), argument: column(m) };
    for (let k = 1; k < m; k++) marks.at[k] += marks.at[k - 1];
    this.marksOf = head.vcpus.map(() => []);
    this.changes = [];
    for (let k = 0; k < m; k++) {
      const mark = { at: marks.at[k], kind: marks.kind[k], vcpu: marks.vcpu[k], argument: marks.argument[k] };
      if (mark.kind === CHANGE) this.changes.push(mark); else this.marksOf[mark.vcpu].push(mark);
    }
    this.makeLanes();
  }

  isWait(slice) { return this.kind[slice] === WAITS || this.kind[slice] === STILL_WAITS; }

  /// The lanes: pCPUs, vCPUs, locks. Each has a name and one or two rows.
  makeLanes() {
    const { head } = this;
    const pcpus = Array.from({ length: head.pcpus }, () => new Pieces());
    const locks = head.locks.map(() => ({ holds: [], waits: [], waited: 0 }));
    const vcpuLanes = head.vcpus.map((name, v) => {
      const [from, to] = this.locks[v];
      const taken = new Pieces();
      for (let i = from; i < to; i++) {
        const lock = locks[this.argument[i]];
        if (this.kind[i] === HOLDS) {
          lock.holds.push(i);
        } else {
          lock.waits.push(i);
          lock.waited += this.end[i] - this.start[i];
        }
        taken.add(this.start[i], this.end[i], this.kind[i] === HOLDS ? HOLD : WAIT, i);
      }
      // A task is on the pCPU of its vCPU, which stands in that pCPU's lane already.
      const isTask = v >= head.vcpus.length - head.tasks;
      const states = this.stateRow(v, isTask ? null : pcpus);
      return { group: isTask ? 'tasks' : 'vCPUs', name, vcpu: v, rows: [states, new Row(taken, true)] };
    });
    this.vcpuLanes = vcpuLanes;
    this.pcpuLanes = pcpus.map((pieces, p) => (
      { group: 'pCPUs', name: `pCPU ${p}`, pcpu: p, rows: [new Row(pieces, false)] }));
    this.lockLanes = locks.map((lock, l) => this.lockLane(lock, l));
    this.byLock = this.lockLanes.slice();
    this.lockLanes.sort((a, b) => b.waited - a.waited || a.lock - b.lock);
    this.lanes = [...this.pcpuLanes, ...vcpuLanes, ...this.lockLanes];
  }

  /// The runstates of a vCPU. Its time on a pCPU is cut where it waits for a lock: there it spins.
  stateRow(v, pcpus) {
    const pieces = new Pieces();
    const [from, to] = this.locks[v];
    let wait = from;
    for (let i = this.states[v][0]; i < this.states[v][1]; i++) {
      if (this.kind[i] !== ON) {
        pieces.add(this.start[i], this.end[i], this.kind[i] === OFF ? PREEMPTED : SLEEPING, i);
        continue;
      }
      const on = (start, end, style) => {
        if (end <= start) return;
        pieces.add(start, end, style, i);
        pcpus?.[this.argument[i]].add(start, end, style, i);
      };
      let time = this.start[i];
      const end = this.end[i];
      while (wait < to && (!this.isWait(wait) || this.end[wait] <= time)) wait++;
      for (let w = wait; w < to && this.start[w] < end; w++) {
        if (!this.isWait(w) || this.end[w] <= time) continue;
        on(time, Math.max(this.start[w], time), RUNNING);
        const until = Math.min(this.end[w], end);
        on(Math.max(this.start[w], time), until, SPINNING);
        time = until;
      }
      on(time, end, RUNNING);
    }
    return new Row(pieces, true);
  }

  /// A lock: its holds, cut where the holder is off its pCPU, and the times in which it is free although vCPUs wait.
  lockLane({ holds, waits, waited }, lock) {
    const inOrder = (slices) => slices.sort((a, b) => this.start[a] - this.start[b]);
    inOrder(holds);
    inOrder(waits);
    const pieces = new Pieces();
    let wait = 0, waitedUntil = 0;
    const free = (from, to) => {
      // The part of from..to in which somebody waits.
      while (from < to) {
        while (wait < waits.length && this.start[waits[wait]] <= from) {
          waitedUntil = Math.max(waitedUntil, this.end[waits[wait++]]);
        }
        if (waitedUntil > from) {
          const until = Math.min(waitedUntil, to);
          pieces.add(from, until, FREE, waits[Math.max(wait - 1, 0)]);
          from = until;
        } else if (wait < waits.length) {
          from = this.start[waits[wait]];
        } else {
          return;
        }
      }
    };
    let last = 0;
    for (const hold of holds) {
      free(last, this.start[hold]);
      let time = this.start[hold];
      const end = this.end[hold];
      for (let s = this.stateAt(this.vcpu[hold], time); time < end; ) {
        const until = s < 0 ? end : Math.min(this.end[s], end);
        const off = s >= 0 && this.kind[s] === OFF;
        if (until > time) pieces.add(time, until, off ? HELD_OFF : HOLD, hold);
        time = until;
        if (s >= 0) s = s + 1 < this.states[this.vcpu[hold]][1] ? s + 1 : -1;
        // The next runstate may begin later: the vCPU was offline.
        if (s >= 0 && this.start[s] > time) time = Math.min(this.start[s], end);
      }
      last = Math.max(last, end);
    }
    free(last, this.head.length);
    return { group: 'locks', name: this.head.locks[lock], lock, waited, holds, waits, rows: [new Row(pieces, true)] };
  }

  /// The slice with the runstate of a vCPU at `time`; -1 if there is none.
  stateAt(v, time) {
    const [from, to] = this.states[v];
    const i = lastAtMost(this.start, time, from, to);
    return i >= from && time < this.end[i] ? i : -1;
  }

  /// The wait of a vCPU for a lock at `time`; for any lock if `lock` is undefined. -1 if there is none.
  waitAt(v, lock, time) {
    const [from, to] = this.locks[v];
    // A wait in an interrupt handler may be inside another one, and holds may overlap it: a few slices back is enough.
    const last = lastAtMost(this.start, time, from, to);
    for (let i = last; i >= from && i > last - 8; i--) {
      if (this.isWait(i) && this.end[i] > time && (lock === undefined || this.argument[i] === lock)) return i;
    }
    return -1;
  }

  /// Whether a vCPU that is off its pCPU was woken for it, so that it did not lose a pCPU.
  wasWoken(v, slice) {
    // A cap that begins or ceases to hold it divides its absence into slices.
    while (slice > this.states[v][0] && this.kind[slice] === OFF && this.kind[slice - 1] === OFF) slice--;
    return slice > this.states[v][0] && this.kind[slice - 1] === ASLEEP && this.kind[slice] === OFF;
  }

  /// Whether a slice is of a task that is off because its guest runs another one.
  isOffByGuest(slice) {
    return this.kind[slice] === OFF && this.argument[slice] === this.head.why.length;
  }

  /// Whether a slice is of a vCPU that its cap keeps from running.
  isThrottled(slice) {
    return this.kind[slice] === OFF && this.head.why[this.argument[slice] - 1] === 'cap or budget used up';
  }

  /// All waits, the longest first.
  worstWaits() {
    const waits = this.byLock.flatMap((lane) => lane.waits);
    return waits.sort((a, b) => (this.end[b] - this.start[b]) - (this.end[a] - this.start[a]) || a - b);
  }

  ns(quanta) { return quanta * this.head.quantum_ns; }
  /// Milliseconds since the beginning of the run, to the microsecond.
  at(quanta) { return ((this.head.from_ns + this.ns(quanta)) / 1e6).toFixed(3); }
  /// The length in milliseconds, to the microsecond.
  ms(quanta) { return (this.ns(quanta) / 1e6).toFixed(3); }

  /// A slice in words.
  words(slice) {
    const { head } = this;
    switch (this.kind[slice]) {
      case ON: return `on pCPU ${this.argument[slice]}`;
      case OFF: return this.isOffByGuest(slice) ? 'preempted by its guest' : 'preempted';
      case ASLEEP: return 'asleep';
      case HOLDS: return `hold ${head.locks[this.argument[slice]]}`;
      default: return `wait ${head.locks[this.argument[slice]]}`;
    }
  }

  /// A mark in words.
  markWords(mark) {
    const to = this.head.vcpus[mark.argument];
    switch (mark.kind) {
      case KICK: return `kick to ${to}`;
      case NOTICE: return 'notice: a window opens before a preemption';
      case WINDOW_ENDS:
        return ['window used: the guest gives up its pCPU', 'window expired: the host preempts the vCPU by force',
          'window left: no preemption any more'][mark.argument];
      case EXIT: return 'pause-loop exit';
      case YIELD_TO: return `directed yield to ${to}`;
      default: return this.head.changes[mark.argument] ?? 'change';
    }
  }
}
