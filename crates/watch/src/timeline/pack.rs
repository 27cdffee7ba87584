//! Packs a timeline for a page: few bytes for each slice, quick to unpack in a browser.
//!
//! Times are whole multiples of a *quantum*. Absolute times are rounded, and differences are written, so that no error
//! adds up: a time is at most half a quantum from the true one. The quantum is 1 ns if the result is small enough, and
//! otherwise the shortest that makes it so.
//!
//! The bytes, before they are compressed (raw deflate) and written as base64, are columns of 32-bit numbers:
//!
//! - for each slice, in the order of the rows (states of vCPU 0, locks of vCPU 0, states of vCPU 1, ...): `gap` since the
//!   end of the slice before it in its row, as a zigzag number; `length`; `what`, the kind and an argument;
//! - for each mark: `gap` since the mark before it; `what`, the kind; the `vcpu`; the argument.
//!
//! A column is written as four planes: the lowest bytes of all numbers, then the next ones, and so on. The upper planes
//! are nearly all zeros and shrink to nothing, and each plane gets a Huffman code of its own.

use super::{Doing, Event, Mark, Slice, Timeline};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use overspin_host::WindowEnd;
use overspin_scenario::{Picos, Why};
use serde::Serialize;
use std::io::Write;

/// Most bytes of a packed timeline, as base64: a page with a million slices then has less than 3 MB.
pub const MOST_BYTES: usize = 2_800_000;

/// Bits of `what` that hold the kind.
const KIND_BITS: u32 = 3;

/// A timeline as a page holds it.
#[derive(Clone, Debug)]
pub struct Packed {
    /// What the page needs besides the columns.
    pub head: Head,
    /// The columns, compressed, as base64.
    pub data: String,
}

/// What a page needs besides the columns. Times are in picoseconds as decimal text where they may exceed 2^53.
#[derive(Clone, Debug, Serialize)]
pub struct Head {
    /// The unit of times in the columns, in nanoseconds.
    pub quantum_ns: u64,
    /// The part begins here, in nanoseconds; times in the columns count from it.
    pub from_ns: u64,
    /// Its length in quanta.
    pub length: u64,
    /// The end of the run, in nanoseconds.
    pub end_ns: u64,
    /// Number of pCPUs.
    pub pcpus: u32,
    /// Names of the vCPUs, then those of the tasks.
    pub vcpus: Vec<String>,
    /// Number of tasks.
    pub tasks: usize,
    /// Slices in each row: states and locks of vCPU 0, then of vCPU 1, and so on, those of tasks last.
    pub rows: Vec<usize>,
    /// Names of the locks.
    pub locks: Vec<String>,
    /// What the administrator did.
    pub changes: Vec<String>,
    /// Number of marks.
    pub marks: usize,
    /// The words of `why` in slices of preempted vCPUs, by number.
    pub why: Vec<&'static str>,
}

/// Packs `timeline` into at most `most` bytes of base64, if some quantum achieves that.
#[must_use]
pub fn pack(timeline: &Timeline, most: usize) -> Packed {
    let length_ns = (timeline.until - timeline.from).0.div_ceil(1000);
    // Times in quanta must fit 32 bits.
    let mut quantum = (length_ns / u64::from(u32::MAX >> 1) + 1).next_power_of_two();
    let numbers = 2 * timeline.slices() + timeline.marks.len();
    loop {
        let data = data(timeline, quantum);
        let too_much = data.len().saturating_sub(most);
        // A quantum of the whole length would leave no times at all.
        if too_much == 0 || quantum.saturating_mul(1000) >= length_ns {
            return Packed { head: head(timeline, quantum, length_ns), data };
        }
        // Twice the quantum saves about one bit of each time that is not 0; base64 writes 6 bits to a byte.
        let bits = (6 * too_much / numbers.max(1)) as u32;
        quantum <<= bits.clamp(1, 8);
    }
}

fn head(timeline: &Timeline, quantum: u64, length_ns: u64) -> Head {
    let ns = |time: Picos| time.0 / 1000;
    Head {
        quantum_ns: quantum,
        from_ns: ns(timeline.from),
        length: length_ns.div_ceil(quantum),
        end_ns: ns(timeline.end),
        pcpus: timeline.pcpus,
        vcpus: timeline.lanes().map(|v| v.name.clone()).collect(),
        tasks: timeline.tasks.len(),
        rows: timeline.lanes().flat_map(|v| [v.states.len(), v.locks.len()]).collect(),
        locks: timeline.locks.clone(),
        changes: timeline.changes.clone(),
        marks: timeline.marks.len(),
        why: WHY.map(crate::explain::why).into(),
    }
}

/// The columns with this quantum, in nanoseconds.
fn data(timeline: &Timeline, quantum: u64) -> String {
    let picos = quantum * 1000;
    let round = |time: Picos| {
        let time = (time - timeline.from).0.saturating_add(picos / 2) / picos;
        u32::try_from(time).unwrap_or(u32::MAX)
    };
    let mut slices: [Vec<u32>; 3] = Default::default();
    for row in timeline.lanes().flat_map(|v| [&v.states, &v.locks]) {
        let mut last = 0;
        for slice in row {
            let (start, end) = (round(slice.start), round(slice.end));
            let gap = i64::from(start) - i64::from(last);
            slices[0].push(zigzag(gap));
            slices[1].push(end - start);
            slices[2].push(what(slice));
            last = end;
        }
    }
    let mut marks: [Vec<u32>; 4] = Default::default();
    let mut last = 0;
    for mark in &timeline.marks {
        let at = round(mark.at);
        let (kind, argument) = kind(mark);
        for (column, value) in marks.iter_mut().zip([at - last, kind, mark.vcpu, argument]) {
            column.push(value);
        }
        last = at;
    }
    let mut bytes = Vec::new();
    for column in slices.iter().chain(&marks) {
        for plane in 0..4 {
            bytes.extend(column.iter().map(|value| value.to_le_bytes()[plane]));
        }
    }
    deflate(&bytes)
}

/// Bytes as base64 of raw deflate data, which the script of a page inflates.
pub fn deflate(bytes: &[u8]) -> String {
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
    // Writing to a Vec cannot fail.
    let _ = deflate.write_all(bytes);
    STANDARD.encode(deflate.finish().unwrap_or_default())
}

/// A signed number with its sign in the lowest bit, so that small ones have zeros in their upper bytes. A gap is less
/// than 2^31, because no time is more.
fn zigzag(gap: i64) -> u32 {
    ((gap << 1) ^ (gap >> 63)) as u32
}

/// The guest is the last: `timeline-data.js` knows it by that.
const WHY: [Why; 9] = [
    Why::Slice,
    Why::Wake,
    Why::Yield,
    Why::PauseLoop,
    Why::Parked,
    Why::Migration,
    Why::Paused,
    Why::Scheduler,
    Why::Guest,
];

/// The kind of a slice and its argument; `timeline.js` has the same numbers.
fn what(slice: &Slice) -> u32 {
    let (kind, argument) = match slice.doing {
        Doing::On(pcpu) => (0, pcpu),
        Doing::Off(None) => (1, 0),
        Doing::Off(Some(why)) => {
            (1, WHY.iter().position(|w| *w == why).map_or(0, |i| i as u32 + 1))
        }
        Doing::Asleep => (2, 0),
        Doing::Waits(lock) => (3, lock),
        Doing::StillWaits(lock) => (4, lock),
        Doing::Holds(lock) => (5, lock),
    };
    argument << KIND_BITS | kind
}

/// The kind of a mark and its argument; `timeline.js` has the same numbers.
fn kind(mark: &Mark) -> (u32, u32) {
    match mark.event {
        Event::Kick(to) => (0, to),
        Event::Notice => (1, 0),
        Event::WindowEnds(end) => (
            2,
            match end {
                WindowEnd::Used => 0,
                WindowEnd::Expired => 1,
                WindowEnd::Left => 2,
            },
        ),
        Event::Exit => (3, 0),
        Event::DirectedYield(to) => (4, to),
        Event::Change(event) => (5, event),
    }
}
