//! The protocol of `recent.rs` and `shards.rs`, step by step, in all orders in which two threads can take their steps.
//!
//! A step here is one access to a shadow, a hint or a mutex, in the order of the source; the lock of the shard is a lock.
//! The model is sequentially consistent: it shows that the *order* of the steps suffices. The releases and acquires in
//! `shadow.rs` keep that order. Both addresses are in one shard and share one place, which is the hardest case.
//!
//! A mutex that a thread has locked must point to a shadow with its address, which is not free and which no thread has
//! parked. Five bugs put in must break that.

use std::collections::HashSet;

const SHADOWS: usize = 4;
const NO_ADDRESS: u8 = 0;
const NOBODY: u8 = 0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    None,
    /// A shadow that becomes free loses its parker before its address.
    ParkerFirst,
    /// A hint is checked for its address before its parker.
    AddressFirst,
    /// A thread frees what was its own before it took the lock.
    NoSecondLook,
    /// A shadow that is found in the table stays parked.
    StaysParked,
    /// A hint is right whoever has parked the shadow.
    AnyParker,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Shadow {
    address: u8,
    parker: u8,
    free: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Mutex {
    /// Threads may use it.
    exists: bool,
    shadow: Option<usize>,
    /// Threads that use or destroy it.
    users: u8,
}

impl Act {
    fn address(self) -> u8 {
        let (Self::Make(address)
        | Self::Join(address)
        | Self::Destroy(address)
        | Self::Abandon(address)) = self;
        address
    }
}

/// What a thread does with the mutex at an address: 1 or 2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Act {
    /// Creates it where there is none, and locks it.
    Make(u8),
    /// Locks it while another thread uses it.
    Join(u8),
    /// Destroys it while nobody uses it.
    Destroy(u8),
    /// Uses its memory for something else while nobody uses it.
    Abandon(u8),
}

const ACTS: [Act; 8] = [
    Act::Make(1),
    Act::Make(2),
    Act::Join(1),
    Act::Join(2),
    Act::Destroy(1),
    Act::Destroy(2),
    Act::Abandon(1),
    Act::Abandon(2),
];

/// The next step of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    /// It may begin any act.
    Idle,
    /// `Place::again`, with the hint.
    First(usize),
    Second(usize, u8),
    Unpark(usize),
    Attach(usize),
    /// `Shard::create`: wants the lock, or has it.
    Lock,
    FreeMine,
    FreeMineRest(usize),
    Look,
    Find,
    /// Locks the mutex, and unlocks it.
    Use(usize),
    /// `Place::park` and `Place::fill`, with the shadow, and whether the thread then locks the mutex.
    Fill(usize, bool),
    LockToFree(usize, usize, bool),
    Free(usize, usize, bool),
    FreeRest(usize, usize, bool),
    End,
}

impl At {
    /// The shadow by which the thread is going to use the mutex.
    fn relies_on(self) -> Option<usize> {
        match self {
            Self::Use(shadow)
            | Self::Fill(shadow, true)
            | Self::LockToFree(_, shadow, true)
            | Self::Free(_, shadow, true)
            | Self::FreeRest(_, shadow, true) => Some(shadow),
            _ => None,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    shadows: [Shadow; SHADOWS],
    mutexes: [Mutex; 3],
    hints: [Option<usize>; 2],
    locked: bool,
    at: [At; 2],
    act: [Act; 2],
    /// How many acts each thread has begun.
    begun: [usize; 2],
}

impl World {
    fn new() -> Self {
        Self {
            shadows: [Shadow { free: true, ..Shadow::default() }; SHADOWS],
            mutexes: [Mutex::default(); 3],
            hints: [None; 2],
            locked: false,
            at: [At::Idle; 2],
            act: [ACTS[0]; 2],
            begun: [0; 2],
        }
    }

    /// What threads rely on is right.
    fn is_right(&self) -> bool {
        self.at.iter().zip(self.act).all(|(at, act)| {
            let right = Shadow { address: act.address(), parker: NOBODY, free: false };
            at.relies_on().is_none_or(|shadow| {
                self.mutexes[usize::from(act.address())].shadow == Some(shadow)
                    && self.shadows[shadow] == right
            })
        })
    }

    /// Lets an idle thread begin an act, if it can.
    fn begin(&self, thread: usize, act: Act) -> Option<Self> {
        let mut next = self.clone();
        let mutex = &mut next.mutexes[usize::from(act.address())];
        let is_possible = match act {
            Act::Make(_) => !mutex.exists && mutex.users == 0,
            Act::Join(_) => mutex.exists && mutex.users != 0,
            Act::Destroy(_) | Act::Abandon(_) => mutex.exists && mutex.users == 0,
        };
        if !is_possible {
            return None;
        }
        mutex.users += 1;
        mutex.exists = matches!(act, Act::Make(_) | Act::Join(_));
        next.at[thread] = match act {
            Act::Make(_) | Act::Join(_) => match (mutex.shadow, self.hints[thread]) {
                (Some(shadow), _) => At::Use(shadow),
                (None, Some(hint)) => At::First(hint),
                (None, None) => At::Lock,
            },
            Act::Destroy(_) => {
                let shadow = mutex.shadow.expect("it was locked");
                next.shadows[shadow].parker = thread as u8 + 1;
                At::Fill(shadow, false)
            }
            Act::Abandon(_) => At::End,
        };
        next.act[thread] = act;
        next.begun[thread] += 1;
        Some(next)
    }

    fn free_first(&mut self, shadow: usize, bug: Bug) {
        if bug == Bug::ParkerFirst {
            self.shadows[shadow].parker = NOBODY;
        } else {
            self.shadows[shadow].address = NO_ADDRESS;
        }
    }

    fn free_rest(&mut self, shadow: usize) {
        self.shadows[shadow] = Shadow { free: true, ..Shadow::default() };
    }

    /// Takes the next step of a busy thread. `None` if it waits.
    fn step(&self, thread: usize, bug: Bug) -> Option<Self> {
        let mut next = self.clone();
        let act = self.act[thread];
        let (address, me) = (act.address(), thread as u8 + 1);
        let mutex = &mut next.mutexes[usize::from(address)];
        let at = match self.at[thread] {
            At::Idle => return None,
            At::First(hint) => {
                let parker = self.shadows[hint].parker;
                let mine = [NOBODY, me].contains(&parker) || bug == Bug::AnyParker;
                let right = self.shadows[hint].address == address;
                match bug {
                    Bug::AddressFirst if right => At::Second(hint, 0),
                    Bug::AddressFirst => At::Lock,
                    _ if mine => At::Second(hint, parker),
                    _ => At::Lock,
                }
            }
            At::Second(hint, parker) => {
                let shadow = self.shadows[hint];
                match bug {
                    Bug::AddressFirst if shadow.parker == NOBODY => At::Attach(hint),
                    Bug::AddressFirst if shadow.parker == me => At::Unpark(hint),
                    Bug::AddressFirst => At::Lock,
                    _ if shadow.address != address => At::Lock,
                    _ if parker == NOBODY => At::Attach(hint),
                    _ => At::Unpark(hint),
                }
            }
            At::Unpark(hint) => {
                next.shadows[hint].parker = NOBODY;
                At::Attach(hint)
            }
            At::Attach(shadow) => {
                mutex.shadow = Some(shadow);
                At::Use(shadow)
            }
            At::Lock if self.locked => return None,
            At::Lock => {
                next.locked = true;
                At::FreeMine
            }
            At::FreeMine => match self.hints[thread] {
                Some(hint) if self.shadows[hint].parker == me => {
                    next.free_first(hint, bug);
                    At::FreeMineRest(hint)
                }
                _ => At::Look,
            },
            At::FreeMineRest(hint) => {
                next.free_rest(hint);
                At::Look
            }
            At::Look => match mutex.shadow {
                Some(shadow) if self.shadows[shadow].address == address => {
                    next.locked = false;
                    At::Fill(shadow, true)
                }
                _ => At::Find,
            },
            At::Find => {
                let found = self.shadows.iter().position(|shadow| shadow.address == address);
                let shadow = found.or_else(|| self.shadows.iter().position(|shadow| shadow.free));
                let shadow = shadow.expect("there are more shadows than can be in use");
                if found.is_none() || bug != Bug::StaysParked {
                    next.shadows[shadow] = Shadow { address, parker: NOBODY, free: false };
                }
                next.mutexes[usize::from(address)].shadow = Some(shadow);
                next.locked = false;
                At::Fill(shadow, true)
            }
            At::Fill(shadow, locks) => {
                let before = self.hints[thread].filter(|&before| before != shadow);
                next.hints[thread] = Some(shadow);
                match before {
                    Some(before) if self.shadows[before].parker == me => {
                        At::LockToFree(before, shadow, locks)
                    }
                    _ if locks => At::Use(shadow),
                    _ => At::End,
                }
            }
            At::LockToFree(..) if self.locked => return None,
            At::LockToFree(before, shadow, locks) => {
                next.locked = true;
                At::Free(before, shadow, locks)
            }
            At::Free(before, shadow, locks) => {
                if self.shadows[before].parker == me || bug == Bug::NoSecondLook {
                    next.free_first(before, bug);
                    At::FreeRest(before, shadow, locks)
                } else {
                    next.locked = false;
                    if locks { At::Use(shadow) } else { At::End }
                }
            }
            At::FreeRest(before, shadow, locks) => {
                next.free_rest(before);
                next.locked = false;
                if locks { At::Use(shadow) } else { At::End }
            }
            At::Use(_) => At::End,
            At::End => {
                match act {
                    Act::Make(_) | Act::Join(_) => mutex.users -= 1,
                    Act::Destroy(_) | Act::Abandon(_) => *mutex = Mutex::default(),
                }
                At::Idle
            }
        };
        next.at[thread] = at;
        Some(next)
    }
}

/// Explores all orders of all acts. The number of states, or the first wrong one.
fn explore(bug: Bug) -> Result<usize, Box<World>> {
    /// Acts of a thread.
    const MOST: usize = 4;
    let mut seen = HashSet::from([World::new()]);
    let mut open = vec![World::new()];
    while let Some(world) = open.pop() {
        if !world.is_right() {
            return Err(Box::new(world));
        }
        let mut visit = |next: World| {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        };
        for thread in 0..2 {
            if world.at[thread] != At::Idle {
                world.step(thread, bug).into_iter().for_each(&mut visit);
            } else if world.begun[thread] < MOST {
                ACTS.into_iter().filter_map(|act| world.begin(thread, act)).for_each(&mut visit);
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn a_mutex_in_use_has_a_shadow_of_its_own() {
    let states = explore(Bug::None).unwrap();
    assert!(states > 10_000, "{states} states are not all orders");
}

#[test]
fn each_bug_that_is_put_in_breaks_that() {
    for bug in
        [Bug::ParkerFirst, Bug::AddressFirst, Bug::NoSecondLook, Bug::StaysParked, Bug::AnyParker]
    {
        assert!(explore(bug).is_err(), "{bug:?}");
    }
}
