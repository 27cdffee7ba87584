//! One run of one point: the threads, their loop and what each of them counts.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::PlanError;
use super::case::{BURST, Case, Lengths, SHARED_LINES, Zipf};
use super::contestants::{Contestant, Maker, ReadWrite};
use super::queue::Queue;
use super::result::{Sample, Waits};
use super::spread::Spread;
use super::thread::{Usage, pin, precise_sleeps};
use super::work::{Clock, Lots, work};

const WARM_UP: u32 = 0;
const MEASURE: u32 = 1;
const STOP: u32 = 2;

/// Steps of a computing thread between two looks at the phase: some microseconds, so that the look costs nothing.
const HOG_STEPS: u32 = 10_000;

/// Pairs of lock and unlock between two looks at the phase where nothing else is measured: a look costs a hundredth
/// of a pair.
const UNCONTENDED_PAIRS: u64 = 256;

/// One run of one point.
pub(super) struct Run<'a> {
    pub clock: Clock,
    pub case: Case,
    pub threads: usize,
    pub lengths: Lengths,
    pub time: Duration,
    pub cpus: &'a [usize],
    pub seed: u64,
    pub place: usize,
}

/// A cache line that sections share.
#[repr(align(64))]
#[derive(Default)]
struct Line(AtomicU64);

/// Adds 1 in each line, for the holder of the lock. Never inlined: see [`work`].
#[inline(never)]
fn add(lines: &[Line]) {
    for Line(line) in lines {
        line.store(line.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// The result of one thread of a run.
struct Worked {
    acquisitions: u64,
    waits: Spread,
    usage: Usage,
}

/// What the threads of a run share beside the locks of [`Contestant`], if their case has it.
#[derive(Clone, Copy)]
struct Meeting<'a> {
    queue: Option<&'a dyn Queue>,
    rwlock: Option<&'a dyn ReadWrite>,
    lines: &'a [Line],
}

/// An acquisition: ticks when it was asked for and when it was there. Both are 0 if its wait does not count.
struct Asked {
    from: u64,
    until: u64,
}

impl Run<'_> {
    /// Runs with locks of `maker`.
    pub(super) fn with(self, maker: Maker) -> Result<Sample, PlanError> {
        let locks: Vec<_> = (0..self.case.locks(self.threads)).map(|_| (maker.lock)()).collect();
        let hogs = match self.case {
            Case::Hogs if self.cpus.is_empty() => {
                thread::available_parallelism().map_or(1, usize::from)
            }
            Case::Hogs => self.cpus.len(),
            _ => 0,
        };
        let phase = AtomicU32::new(WARM_UP);
        // `check` has left out the locks without one.
        let meets = self.case.has_conditions();
        let queue = if meets { (maker.queue)(self.case, self.threads) } else { None };
        let reads = matches!(self.case, Case::WriteIn(_));
        let rwlock = if reads { (maker.rwlock)() } else { None };
        let lines = if self.case == Case::Shared { SHARED_LINES } else { 0 };
        let lines: Vec<Line> = (0..lines).map(|_| Line::default()).collect();
        let all_in = Barrier::new(self.threads + hogs + 1);
        let (time, worked, hogs) = thread::scope(|scope| {
            let (run, locks, phase, all_in) = (&self, &*locks, &phase, &all_in);
            let shared =
                Meeting { queue: queue.as_deref(), rwlock: rwlock.as_deref(), lines: &lines };
            let start = |thread: usize| {
                scope.spawn(move || {
                    let pinned = pin(run.cpus);
                    let lots = Lots::new(run.seed.wrapping_add(thread as u64));
                    all_in.wait();
                    pinned.map(|()| run.thread(thread, locks, phase, shared, lots))
                })
            };
            let hog = |_| {
                scope.spawn(move || {
                    // If it fails, it fails for the threads that lock, too.
                    let _ = pin(run.cpus);
                    all_in.wait();
                    compute(phase)
                })
            };
            let threads: Vec<_> = (0..self.threads).map(start).collect();
            let hogs: Vec<_> = (0..hogs).map(hog).collect();
            all_in.wait();
            thread::sleep(self.time / 10);
            phase.store(MEASURE, Relaxed);
            let start = Instant::now();
            thread::sleep(self.time);
            phase.store(STOP, Relaxed);
            let time = start.elapsed();
            if let Some(queue) = shared.queue {
                queue.end();
            }
            let worked = threads.into_iter().map(join).collect::<io::Result<Vec<_>>>();
            (time, worked, hogs.into_iter().map(join).map(Usage::cpu_ns).sum())
        });
        let worked =
            worked.map_err(|source| PlanError::Cpus { cpus: self.cpus.to_vec(), source })?;
        let mut waits = Spread::default();
        worked.iter().for_each(|thread| waits.add(&thread.waits));
        let sum = |of: &dyn Fn(&Usage) -> u64| worked.iter().map(|thread| of(&thread.usage)).sum();
        let sample = Sample {
            place: self.place,
            time_ns: time.as_nanos() as u64,
            acquisitions: worked.iter().map(|thread| thread.acquisitions).collect(),
            wait: Waits::of(&waits),
            cpu_ns: sum(&|usage| usage.cpu_ns()),
            hogs_ns: hogs,
            involuntary_switches: sum(&|usage| usage.involuntary_switches),
            voluntary_switches: sum(&|usage| usage.voluntary_switches()),
        };
        Ok(sample)
    }
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What a computing thread does; returns what it has used while the others were measured.
fn compute(phase: &AtomicU32) -> Usage {
    let mut usage = None;
    loop {
        work(HOG_STEPS);
        match phase.load(Relaxed) {
            WARM_UP => {}
            MEASURE => _ = usage.get_or_insert_with(Usage::now),
            _ => {
                let now = Usage::now();
                return now.since(usage.unwrap_or(now));
            }
        }
    }
}

impl Run<'_> {
    /// What the thread of this number does.
    fn thread(
        &self,
        number: usize,
        locks: &[Box<dyn Contestant>],
        phase: &AtomicU32,
        shared: Meeting<'_>,
        lots: Lots,
    ) -> Worked {
        let lengths = self.lengths;
        let first = number == 0;
        let lock = &*locks[0];
        let lots = RefCell::new(lots);
        let outside = || work(lots.borrow_mut().up_to(lengths.outside * 2));
        match self.case {
            Case::LongHolder if first => self.repeat(phase, || {
                outside();
                timed(lock, || work(lengths.long))
            }),
            Case::Sleeping if first => {
                precise_sleeps();
                self.repeat(phase, || {
                    outside();
                    timed(lock, || thread::sleep(lengths.sleep))
                })
            }
            Case::Plain | Case::Hogs | Case::LongHolder | Case::Sleeping => {
                self.repeat(phase, || {
                    outside();
                    timed(lock, || work(lengths.section))
                })
            }
            Case::Shared => self.repeat(phase, || {
                outside();
                timed(lock, || {
                    work(lengths.section);
                    add(shared.lines);
                })
            }),
            Case::Bursts => {
                let left = Cell::new(0);
                self.repeat(phase, || {
                    if left.get() == 0 {
                        left.set(BURST);
                        work(lots.borrow_mut().up_to(lengths.burst * 2));
                    }
                    left.set(left.get() - 1);
                    timed(lock, || work(lengths.section))
                })
            }
            Case::Nested => {
                let inner = &*locks[1];
                self.repeat(phase, || {
                    outside();
                    let from = Clock::ticks();
                    let mut until = 0;
                    lock.section(&mut || {
                        inner.section(&mut || {
                            until = Clock::ticks();
                            work(lengths.section);
                        });
                    });
                    Asked { from, until }
                })
            }
            Case::Zipf => {
                let zipf = Zipf::new();
                self.repeat(phase, || {
                    outside();
                    let lock = &*locks[zipf.draw(&mut lots.borrow_mut())];
                    timed(lock, || work(lengths.section))
                })
            }
            Case::Condvar | Case::CondvarHeld | Case::Ring => {
                let over = || phase.load(Relaxed) == STOP;
                self.repeat(phase, || {
                    outside();
                    let from = Clock::ticks();
                    let mut until = 0;
                    if let Some(queue) = shared.queue {
                        queue.pass(number, &over, &mut || {
                            until = Clock::ticks();
                            work(lengths.section);
                        });
                    }
                    Asked { from, until }
                })
            }
            Case::WriteIn(one_in) => self.repeat(phase, || {
                outside();
                let writes = lots.borrow_mut().up_to(one_in - 1) == 0;
                let from = if writes { Clock::ticks() } else { 0 };
                let mut until = 0;
                if let Some(lock) = shared.rwlock {
                    lock.section(writes, &mut || {
                        if writes {
                            until = Clock::ticks();
                        }
                        work(lengths.section);
                    });
                }
                Asked { from, until }
            }),
            Case::Uncontended => uncontended(&*locks[number], phase),
        }
    }

    /// Repeats an acquisition until the run is over.
    fn repeat(&self, phase: &AtomicU32, acquire: impl Fn() -> Asked) -> Worked {
        let mut waits = Spread::default();
        let mut acquisitions = 0;
        let mut usage = None;
        loop {
            let asked = acquire();
            let phase = phase.load(Relaxed);
            if phase == WARM_UP {
                continue;
            }
            let usage = usage.get_or_insert_with(Usage::now);
            // A wait that outlasts the run counts as a wait, but not as an acquisition within its time.
            if asked.until != 0 {
                waits.record(self.clock.ns(asked.from, asked.until));
            }
            if phase == STOP {
                return Worked { acquisitions, waits, usage: Usage::now().since(*usage) };
            }
            acquisitions += 1;
        }
    }
}

/// Acquires, and works in the section.
#[inline]
fn timed(lock: &dyn Contestant, section: impl Fn()) -> Asked {
    let from = Clock::ticks();
    let mut until = 0;
    lock.section(&mut || {
        until = Clock::ticks();
        section();
    });
    Asked { from, until }
}

/// Locks and unlocks, and reads no clock.
fn uncontended(lock: &dyn Contestant, phase: &AtomicU32) -> Worked {
    let mut acquisitions = 0;
    let mut usage = None;
    loop {
        lock.pairs(UNCONTENDED_PAIRS);
        match phase.load(Relaxed) {
            WARM_UP => {}
            MEASURE => {
                usage.get_or_insert_with(Usage::now);
                acquisitions += UNCONTENDED_PAIRS;
            }
            _ => {
                let now = Usage::now();
                let usage = now.since(usage.unwrap_or(now));
                return Worked { acquisitions, waits: Spread::default(), usage };
            }
        }
    }
}
