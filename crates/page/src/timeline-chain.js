// The chain of a wait: what it was spent on, piece by piece, in the words of `overspin explain`. The rules are those of
// docs/attribution.md. The waiter's own absence comes first, then the state of the lock and of its next holder.

const CAUSES = ['holder running', 'holder preempted (LHP)', 'next waiter preempted (LWP)', 'kick and wake-up',
  'own preemption', 'line transfer', 'holder preempted by its guest', 'next waiter preempted by its guest',
  'holder throttled', 'next waiter throttled'];
const HOLDER_RUNNING = 0, HOLDER_PREEMPTED = 1, NEXT_PREEMPTED = 2, KICK_WAKE = 3, OWN_PREEMPTION = 4,
  LINE_TRANSFER = 5, HOLDER_BY_GUEST = 6, NEXT_BY_GUEST = 7, HOLDER_THROTTLED = 8, NEXT_THROTTLED = 9;

// An absence that is shorter than this part of the wait gets no line of its own.
const WORTH_A_LINE = 0.01;

/// The vCPU for which a free lock is kept at `time`: the next holder if it waits already, or else the vCPU that has waited
/// longest. -1 if nobody waits.
function keptFor(data, lock, time, next) {
  if (next >= 0 && data.waitAt(next, lock, time) >= 0) return next;
  let first = -1, since = Infinity;
  for (let v = 0; v < data.head.vcpus.length; v++) {
    const wait = data.waitAt(v, lock, time);
    if (wait >= 0 && data.start[wait] < since) { first = v; since = data.start[wait]; }
  }
  return first;
}

/// The pieces of a wait: `{start, end, cause, who, slice}` with the vCPU that is absent and its runstate.
function pieces(data, wait) {
  const v = data.vcpu[wait];
  const { holds } = data.byLock[data.argument[wait]];
  const all = [];
  const until = data.end[wait];
  // The first hold that ends after the wait begins; holds do not overlap.
  let h = 0;
  for (let high = holds.length; h < high; ) {
    const middle = (h + high) >> 1;
    if (data.end[holds[middle]] <= data.start[wait]) h = middle + 1; else high = middle;
  }
  const absent = (who, slice, cause) => ({
    who, slice, cause: cause === NEXT_PREEMPTED && data.isThrottled(slice) ? NEXT_THROTTLED
      : data.kind[slice] === ASLEEP || data.wasWoken(who, slice) ? KICK_WAKE
      : cause === NEXT_PREEMPTED && data.isOffByGuest(slice) ? NEXT_BY_GUEST : cause,
  });
  for (let time = data.start[wait]; time < until; ) {
    while (h < holds.length && data.end[holds[h]] <= time) h++;
    const own = data.stateAt(v, time);
    const holder = h < holds.length && data.start[holds[h]] <= time ? data.vcpu[holds[h]] : -1;
    const next = holder < 0 ? keptFor(data, data.argument[wait], time, h < holds.length ? data.vcpu[holds[h]] : -1) : -1;
    let end = until, piece;
    const within = (slice) => { if (slice >= 0) end = Math.min(end, data.end[slice]); };
    within(own);
    if (own >= 0 && data.kind[own] !== ON) {
      piece = absent(v, own, OWN_PREEMPTION);
    } else if (holder >= 0) {
      const state = data.stateAt(holder, time);
      within(state);
      within(holds[h]);
      piece = state >= 0 && data.kind[state] === OFF
        ? { who: holder, slice: state, cause: data.isOffByGuest(state) ? HOLDER_BY_GUEST
          : data.isThrottled(state) ? HOLDER_THROTTLED : HOLDER_PREEMPTED }
        : { who: holder, slice: -1, cause: HOLDER_RUNNING };
    } else {
      if (h < holds.length) end = Math.min(end, data.start[holds[h]]);
      const state = next >= 0 ? data.stateAt(next, time) : -1;
      within(state);
      piece = state >= 0 && data.kind[state] !== ON
        ? absent(next, state, NEXT_PREEMPTED)
        : { who: next, slice: -1, cause: LINE_TRANSFER };
    }
    // A hold of no length, or rounded times: go on all the same.
    end = Math.max(end, time + 1);
    all.push({ start: time, end: Math.min(end, until), hold: holder >= 0 ? holds[h] : -1, ...piece });
    time = end;
  }
  return all;
}

/// The decision that took a vCPU off its pCPU, in words; empty if there was none.
function decision(data, who, slice) {
  const why = data.argument[slice];
  if (data.isOffByGuest(slice)) return ` (at ${data.at(data.start[slice])} ms: ${data.head.why[why - 1]})`;
  if (data.kind[slice] !== OFF || why === 0 || slice === data.states[who][0]) return '';
  const before = slice - 1;
  if (data.kind[before] !== ON) return '';
  const pcpu = data.argument[before];
  const row = data.pcpuLanes[pcpu].rows[0];
  const i = lastAtMost(row.start, data.start[slice], 0, row.length);
  const came = i >= 0 && row.start[i] === data.start[slice] && data.vcpu[row.slice[i]] !== who
    ? `${data.head.vcpus[data.vcpu[row.slice[i]]]} came on pCPU ${pcpu}`
    : `pCPU ${pcpu} fell idle`;
  return ` (${came} at ${data.at(data.start[slice])} ms: ${data.head.why[why - 1]})`;
}

/// The chain of a wait: its head line, the time by cause in quanta, and its lines.
function chain(data, wait) {
  const name = (v) => data.head.vcpus[v];
  const all = pieces(data, wait);
  const length = data.end[wait] - data.start[wait];
  const causes = CAUSES.map(() => 0);
  for (const p of all) causes[p.cause] += p.end - p.start;
  const shares = causes.map((time, cause) => ({ time, cause })).filter(({ time }) => time > 0 && time >= length / 100)
    .sort((a, b) => b.time - a.time || a.cause - b.cause)
    .map(({ time, cause }) => `${(100 * time / length).toFixed(1)} % ${CAUSES[cause]}`).join(', ');
  const got = data.kind[wait] === STILL_WAITS ? ', and had not got it when the timeline ended' : '';
  const v = data.vcpu[wait];
  const title = `${name(v)} waited ${data.ms(length)} ms for ${data.head.locks[data.argument[wait]]}${got}: ${shares}.`;

  const lines = [];
  const line = (start, end, text) => lines.push({ start, end, text });
  // Pieces without a long absence become one line.
  let quiet = null;
  const flush = () => {
    if (!quiet) return;
    const n = quiet.holds.size;
    const [first] = quiet.holds;
    let text = n > 1 ? `the lock goes through ${n} vCPUs`
      : n === 1 ? `${name(data.vcpu[first])} holds the lock and runs`
        : 'the lock is on its way';
    if (quiet.away > 0) text = `shorter absences of ${data.ms(quiet.away)} ms in all; otherwise, ${text}`;
    line(quiet.start, quiet.end, text);
    quiet = null;
  };
  // One absence may span several pieces: the lock passes on meanwhile, or the waiter is away itself.
  for (let i = 0; i < all.length; i++) {
    const p = all[i];
    let end = p.end;
    while (p.slice >= 0 && i + 1 < all.length && all[i + 1].slice === p.slice && all[i + 1].cause === p.cause) {
      end = all[++i].end;
    }
    if (p.slice < 0 || end - p.start < length * WORTH_A_LINE) {
      quiet ??= { start: p.start, end, holds: new Set(), away: 0 };
      quiet.end = end;
      if (p.hold >= 0) quiet.holds.add(p.hold);
      if (p.slice >= 0) quiet.away += end - p.start;
      continue;
    }
    flush();
    const asleep = data.kind[p.slice] === ASLEEP;
    const text = {
      [HOLDER_PREEMPTED]: `${name(p.who)}, the holder, is off its pCPU`,
      [HOLDER_THROTTLED]: `${name(p.who)}, the holder, is kept from running by its cap`,
      [NEXT_THROTTLED]: `the lock is free and kept for ${name(p.who)}, which its cap keeps from running`,
      [NEXT_PREEMPTED]: `the lock is free and kept for ${name(p.who)}, which is off its pCPU`,
      [HOLDER_BY_GUEST]: `${name(p.who)}, the holder, is off its vCPU`,
      [NEXT_BY_GUEST]: `the lock is free and kept for ${name(p.who)}, which is off its vCPU`,
      [OWN_PREEMPTION]: `is off its own ${data.isOffByGuest(p.slice) ? 'vCPU' : 'pCPU'}`,
      [KICK_WAKE]: p.who === v
        ? (asleep ? 'sleeps' : 'is woken and has no pCPU yet')
        : `the lock is free, and ${name(p.who)} ${asleep ? 'is still asleep' : 'is woken and has no pCPU yet'}`,
    }[p.cause];
    line(p.start, end, text + decision(data, p.who, p.slice));
  }
  flush();
  return { title, causes, lines };
}
