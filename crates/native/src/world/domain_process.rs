//! The life of a process that runs one domain, and what it and its parent say to each other.
//!
//! | The child says | when | The parent says | when |
//! |---|---|---|---|
//! | `Ready` | its tasks wait for their begin | `Begin` | all children are ready |
//! | `Finished` | everything awaited of its domain has ended | `End` | all children have finished |
//! | `Done`, `Refused` | its run is over: the last word | `Stop` | the user wants no more |
//!
//! Messages are lines of JSON over a pair of sockets. A child whose parent dies is killed by the kernel.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use overspin_host::{Cancel, Refused};
use overspin_scenario::{Picos, Scenario, Stopped};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::burn::Burn;
use super::{Company, ThreadsWorld};
use crate::forget_other_threads;

/// What a child says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ChildMessage {
    Ready,
    Finished,
    /// The outcome, as `Outcome::to_json` writes it.
    Done(String),
    Refused {
        cause: String,
        remedy: String,
    },
}

/// What its parent says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ParentMessage {
    /// Begin this long after the moment that both know, in nanoseconds.
    Begin {
        after: u64,
    },
    End,
    Stop {
        by: Stopped,
    },
}

/// Says something to the process at the other end.
pub(super) fn say<T: Serialize>(mut to: &UnixStream, what: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Hears all that the other end says, until it ends or `hears` returns false.
pub(super) fn listen<T: DeserializeOwned>(from: UnixStream, mut hears: impl FnMut(T) -> bool) {
    for line in BufReader::new(from).lines() {
        let said = line.ok().and_then(|line| serde_json::from_str(&line).ok());
        if !said.is_some_and(&mut hears) {
            return;
        }
    }
}

/// What a child takes over from its parent.
#[derive(Debug)]
pub(super) struct Inherited<'a> {
    pub world: &'a ThreadsWorld,
    pub scenario: &'a Scenario,
    pub seed: u64,
    pub burn: Burn,
    /// The domain that it runs.
    pub domain: usize,
    /// The moment from which both count.
    pub zero: Instant,
}

impl Inherited<'_> {
    /// Makes the run, in a process that has only this thread, and says what came of it.
    ///
    /// # Errors
    /// If the parent cannot be reached, which then does not need the outcome.
    pub(super) fn live(&self, parent: UnixStream) -> io::Result<()> {
        forget_other_threads();
        let (to, told) = channel();
        let ear = parent.try_clone()?;
        thread::Builder::new().spawn(move || listen(ear, |told| to.send(told).is_ok()))?;
        let Self { world, scenario, seed, burn, domain, zero } = *self;
        let link =
            Link { domain, zero, parent, told, finished: Cell::default(), last: Cell::default() };
        let machine = (burn, Vec::new());
        let made = catch_unwind(AssertUnwindSafe(|| {
            world.run_beside(scenario, seed, machine, &mut (), (&link, &link))
        }));
        say(
            &link.parent,
            &match made {
                Ok(Ok(outcome)) => ChildMessage::Done(outcome.to_json()),
                Ok(Err(Refused::Machine { cause, remedy })) => {
                    ChildMessage::Refused { cause, remedy }
                }
                // The parent has looked for all other reasons.
                Ok(Err(other)) => ChildMessage::Refused {
                    cause: other.to_string(),
                    remedy: "change the scenario".into(),
                },
                Err(_) => ChildMessage::Refused {
                    cause: format!(
                        "the process of domain `{}` panicked",
                        scenario.domains[domain].name
                    ),
                    remedy: "run it in the world `threads`".into(),
                },
            },
        )
    }
}

/// A child's way to its parent.
struct Link {
    domain: usize,
    zero: Instant,
    parent: UnixStream,
    told: Receiver<ParentMessage>,
    /// Whether it has said that it has finished.
    finished: Cell<bool>,
    /// What it was told last.
    last: Cell<Option<ParentMessage>>,
}

impl Link {
    fn last(&self) -> Option<ParentMessage> {
        if let Some(told) = self.told.try_iter().last() {
            self.last.set(Some(told));
        }
        self.last.get()
    }
}

impl Company for Link {
    fn is_ours(&self, domain: usize) -> bool {
        domain == self.domain
    }

    fn begin(&self) {
        // If the parent is gone, so is this process soon.
        let _ = say(&self.parent, &ChildMessage::Ready);
        let told = self.told.recv().ok();
        self.last.set(told);
        if let Some(ParentMessage::Begin { after }) = told {
            let at = self.zero + Duration::from_nanos(after);
            thread::sleep(at.saturating_duration_since(Instant::now()));
        }
    }

    fn ends_with_us(&self) -> bool {
        if !self.finished.replace(true) {
            let _ = say(&self.parent, &ChildMessage::Finished);
        }
        matches!(self.last(), Some(ParentMessage::End))
    }
}

impl Cancel for Link {
    fn asked(&self, _: Picos) -> Option<Stopped> {
        match self.last() {
            Some(ParentMessage::Stop { by }) => Some(by),
            _ => None,
        }
    }
}
