//! Acquisitions that threads of a guest's kernel noted one by one, by the clock of this machine.
//!
//! A guest's counter is this machine's plus a number, under KVM and in QEMU's emulation, where it grows by some microseconds a
//! second (QEMU adds to it when a CPU of this machine reads less than another has read before). Each answer to "what is your
//! counter?" bounds it: the guest read its counter after the host had asked, and before the host had the answer. The bounds of 200
//! answers together are some 90 us apart. Between them, for each [`PIECE`] of the run, that number is taken with which the fewest
//! noted times are times at which the vCPU had no CPU: with the right one there are none, and with one that is 5 us off some
//! hundreds of 40,000.

use std::collections::BTreeMap;
use std::time::Duration;

use overspin_native::bench::Clock;
use overspin_native::world::{Held, Switch, VcpuTrace};

use crate::LinuxError;
use crate::guest::{Guest, NoAnswer};
use crate::talk::{Ask, Say};

/// Acquisitions that all guests of a run note together: 40 bytes each, in a guest of 256 MiB.
pub(super) const MOST: u64 = 1_000_000;
/// Questions for the counter.
const QUESTIONS: u32 = 200;
/// Time for the answer to one of them, or for all notes.
const ANSWER: Duration = Duration::from_secs(30);
/// A part of a run, in ticks.
const PIECE: u64 = 1 << 30;
/// A counter that gains more than this while it is followed is no copy of ours, in ticks.
const MOST_GAIN: i64 = 1 << 24;
/// Size of `struct note` of `kernel/overspin_work.c`.
const NOTE: usize = 40;

/// What a guest's counter is ahead of this machine's: bounds in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    least: i64,
    most: i64,
}

impl Offset {
    /// Asks the guest.
    pub(super) fn of(guest: &mut Guest) -> Result<Self, NoAnswer> {
        let mut offset = Self { least: i64::MIN, most: i64::MAX };
        for _ in 0..QUESTIONS {
            let asked = Clock::ticks();
            let said = guest.ask(&Ask::Clock, ANSWER, &mut |_| {}, &|| false)?;
            let heard = Clock::ticks();
            let Say::Clock(ticks) = said else { return Err(strange(&said)) };
            offset = offset.and(Self::from(asked, ticks, heard));
        }
        Ok(offset)
    }

    /// What an answer tells.
    fn from(asked: u64, ticks: u64, heard: u64) -> Self {
        let ahead_of = |host: u64| ticks.wrapping_sub(host).cast_signed();
        Self { least: ahead_of(heard), most: ahead_of(asked) }
    }

    fn and(self, other: Self) -> Self {
        Self { least: self.least.max(other.least), most: self.most.min(other.most) }
    }

    /// What it may have been meanwhile; nothing if it changed too much for that.
    fn until(self, later: Self) -> Option<Self> {
        let least = self.least.min(later.least);
        let most = self.most.max(later.most);
        // A guest may say any number.
        most.checked_sub(least).filter(|gain| *gain <= MOST_GAIN).map(|_| Self { least, most })
    }

    /// This machine's counter when the guest's was `ticks`, as well as it is known.
    fn host(self, ticks: u64) -> u64 {
        ticks.wrapping_sub(i64::midpoint(self.least, self.most).cast_unsigned())
    }
}

/// What the threads of a guest's kernel noted.
#[derive(Debug)]
pub(super) struct Noted(Vec<Piece>);

/// What they noted in a part of the run.
#[derive(Debug)]
struct Piece {
    offset: Offset,
    /// Acquisitions with the vCPU of each.
    notes: Vec<(u16, Held)>,
}

impl Noted {
    /// Takes the notes of a guest whose threads have ended, and of which `before` was known before they began; nothing if its
    /// counter ran at another speed.
    pub(super) fn of(guest: &mut Guest, before: Offset) -> Result<Option<Self>, NoAnswer> {
        let after = Offset::of(guest)?;
        let notes = guest.bytes(&Ask::Notes, ANSWER)?;
        let notes = notes.chunks_exact(NOTE).filter_map(note);
        Ok(before.until(after).map(|offset| Self::new(offset, notes)))
    }

    fn new(offset: Offset, notes: impl Iterator<Item = (u16, Held)>) -> Self {
        let mut pieces: BTreeMap<u64, Vec<(u16, Held)>> = BTreeMap::new();
        for note in notes {
            pieces.entry(note.1.got / PIECE).or_default().push(note);
        }
        Self(pieces.into_values().map(|notes| Piece { offset, notes }).collect())
    }

    /// Takes those offsets within the bounds with which the fewest times are impossible. `is_impossible` tells whether a vCPU did
    /// not run when this machine's counter was so.
    pub(super) fn settle(&mut self, is_impossible: impl Fn(usize, u64) -> bool) {
        self.0.iter_mut().for_each(|piece| piece.settle(&is_impossible));
    }

    /// This machine's counter when the guest's was `ticks`, at the begin; nothing if nothing was noted.
    pub(super) fn host(&self, ticks: u64) -> Option<u64> {
        self.0.first().map(|piece| piece.offset.host(ticks))
    }
}

impl Piece {
    fn settle(&mut self, is_impossible: impl Fn(usize, u64) -> bool) {
        /// Notes that are looked at, offsets that are tried, and how often, each time nearer to the best.
        const LOOKED_AT: usize = 2_000;
        const TRIED: i64 = 32;
        const ROUNDS: u32 = 4;
        let notes = self.notes.iter().step_by(self.notes.len() / LOOKED_AT + 1);
        let impossible = |offset: &Offset| {
            let of = |(vcpu, held): &(u16, Held)| {
                let times = [held.asked, held.got, held.released, held.freed];
                let vcpu = usize::from(*vcpu);
                times.into_iter().filter(|at| is_impossible(vcpu, offset.host(*at))).count()
            };
            notes.clone().map(of).sum::<usize>()
        };
        let mut offset = self.offset;
        for _ in 0..ROUNDS {
            let step = (offset.most - offset.least) / TRIED + 1;
            let tried = (0..=TRIED).map(|i| offset.least + i * step);
            let tried = tried.map(|at| (at, impossible(&Offset { least: at, most: at })));
            let tried: Vec<(i64, usize)> = tried.collect();
            let fewest = tried.iter().map(|(_, number)| *number).min();
            let best =
                || tried.iter().filter(|(_, number)| Some(*number) == fewest).map(|(at, _)| *at);
            let (first, last) = (best().min().unwrap_or(0), best().max().unwrap_or(0));
            offset = Offset { least: first - step, most: last + step };
        }
        self.offset = offset;
    }
}

/// The traces of a domain's vCPUs with these switches of their threads; of programs nothing was noted. `ns` tells a time of this
/// machine's counter in nanoseconds since the begin of the run.
pub(super) fn traces(
    domain: usize,
    switches: Vec<Vec<Switch>>,
    noted: Option<&Noted>,
    ns: impl Fn(u64) -> u64,
) -> Vec<VcpuTrace> {
    let trace = |(vcpu, switches)| VcpuTrace { domain, vcpu, held: Vec::new(), switches };
    let mut traces: Vec<VcpuTrace> = (0..).zip(switches).map(trace).collect();
    for Piece { offset, notes } in noted.into_iter().flat_map(|noted| &noted.0) {
        for (vcpu, held) in notes {
            if let Some(trace) = traces.get_mut(usize::from(*vcpu)) {
                trace.held.push(held.by(|ticks| ns(offset.host(ticks))));
            }
        }
    }
    // A vCPU may have had several threads.
    traces.iter_mut().for_each(|trace| trace.held.sort_by_key(|held| held.got));
    traces
}

/// Reads a `struct note`; nothing if the place is empty.
fn note(bytes: &[u8]) -> Option<(u16, Held)> {
    let word =
        |at: usize| bytes[at..at + 8].iter().rev().fold(0, |sum, b| sum << 8 | u64::from(*b));
    let (low, rest) = (|at: usize| word(at) as u32, word(32) >> 32);
    let held = Held {
        asked: word(0),
        got: word(8),
        released: word(16),
        freed: word(24),
        lock: low(32),
        waited: rest >> 16 != 0,
    };
    (held.got > 0).then_some((rest as u16, held))
}

fn strange(said: &Say) -> NoAnswer {
    LinuxError::Guest(format!("it was asked for its counter, and says {said:?}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_bound_the_offset() {
        // The guest is 1000 ahead, and reads its counter soon after the question, or shortly before the answer.
        let early = Offset::from(50, 1052, 90);
        let late = Offset::from(100, 1138, 140);
        assert_eq!(early, Offset { least: 962, most: 1002 });
        let both = early.and(late);
        assert_eq!(both, Offset { least: 998, most: 1002 });
        assert_eq!(both.host(1077), 77);
        // It changed by little, or by too much.
        assert_eq!(early.until(late), Some(Offset { least: 962, most: 1038 }));
        assert_eq!(early.until(Offset { least: MOST_GAIN, most: MOST_GAIN + 2000 }), None);
        let strange = Offset { least: i64::MIN, most: i64::MAX };
        assert_eq!(strange.until(early), None);
        // The guest may have begun after this machine.
        let behind = Offset::from(5_000, 1_000, 5_000);
        assert_eq!(behind.host(1_001), 5_001);
    }

    #[test]
    fn an_offset_is_that_with_which_nothing_is_impossible() {
        // The vCPU runs for the first 100 of each 1000 ticks, and notes times only then, 2 to 97 of them. The guest is 4321 ahead.
        let held = |at: u64| {
            let [asked, got, released, freed] =
                [2, 30, 60, 97].map(|after| 4321 + at * 1000 + after);
            Held { asked, got, released, freed, lock: 0, waited: true }
        };
        let notes = (0..50).map(|at| (0, held(at)));
        // After a piece it is two more.
        let later = (0..50).map(|at| (0, held(at).by(|at| at + PIECE / 1000 * 1000 + 1002)));
        let mut noted = Noted::new(Offset { least: 4000, most: 4700 }, notes.chain(later));
        noted.settle(|_, ticks| ticks % 1000 >= 100);
        let found: Vec<u64> = noted.0.iter().map(|piece| piece.offset.host(5000)).collect();
        assert!(
            found.len() == 2 && found[0].abs_diff(679) <= 3 && found[1].abs_diff(677) <= 3,
            "{found:?}"
        );
    }

    #[test]
    fn notes_go_to_the_vcpu_on_which_they_were_made() {
        let mut bytes = Vec::new();
        for (times, lock, cpu, waited) in [
            ([30_u64, 40, 50, 60], 1_u32, 1_u16, 1_u16),
            ([0; 4], 0, 0, 0),
            ([10, 10, 20, 25], 0, 1, 0),
        ] {
            times.iter().for_each(|time| bytes.extend(time.to_le_bytes()));
            bytes.extend(lock.to_le_bytes());
            bytes.extend(cpu.to_le_bytes());
            bytes.extend(waited.to_le_bytes());
        }
        let notes = bytes.chunks_exact(NOTE).filter_map(note);
        let noted = Noted::new(Offset { least: 4, most: 6 }, notes);
        // Two nanoseconds a tick.
        let traces = traces(3, vec![Vec::new(); 2], Some(&noted), |ticks| ticks * 2);
        assert_eq!(traces.iter().map(|t| (t.domain, t.vcpu)).collect::<Vec<_>>(), [(3, 0), (3, 1)]);
        assert!(traces[0].held.is_empty());
        let held = |[asked, got, released, freed]: [u64; 4], lock, waited| Held {
            asked,
            got,
            released,
            freed,
            lock,
            waited,
        };
        let expected = [held([10, 10, 30, 40], 0, false), held([50, 70, 90, 110], 1, true)];
        assert_eq!(traces[1].held, expected, "in the order of time");
    }
}
