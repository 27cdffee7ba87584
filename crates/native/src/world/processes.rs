//! The world `processes`: as `threads`, but each domain is a process with an address space of its own.
//!
//! A domain's process is a fork of this one, so that it has the scenario, the locks and the workloads without another
//! word. `domain_process.rs` is its life. Each process knows the switches of its own threads only, so that this world
//! has no moments.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use overspin_host::{Cancel, Observer, Refused, Unhonoured, World};
use overspin_locks::RawLock;
use overspin_scenario::{Ending, Outcome, Picos, Scenario};
use overspin_workload::Kinds;

use super::burn::Burn;
use super::domain_process::{ChildMessage, Inherited, ParentMessage, listen, say};
use super::picos;
use super::{LOOK, RunThreads, ThreadsWorld, cpus};
use crate::bench::warnings;

/// From the moment in which all processes are ready to their common begin: each must have read its line by then.
const LEAD: Duration = Duration::from_millis(5);

/// The world of processes: every domain is one process, and its vCPUs are its threads.
#[derive(Clone, Debug, Default)]
pub struct ProcessesWorld {
    threads: ThreadsWorld,
}

impl ProcessesWorld {
    /// Adds a lock of your own; it replaces one of the same name.
    #[must_use]
    pub fn with_lock<L>(self) -> Self
    where
        L: RawLock<RunThreads> + Send + Sync + 'static,
        L::Shared: Send + Sync,
    {
        Self { threads: self.threads.with_lock::<L>() }
    }

    /// Replaces the kinds of workloads by these.
    #[must_use]
    pub fn with_workloads(self, workloads: Kinds) -> Self {
        Self { threads: self.threads.with_workloads(workloads) }
    }
}

impl World for ProcessesWorld {
    fn name(&self) -> &'static str {
        "processes"
    }

    fn supports(&self, scenario: &Scenario) -> Result<Vec<Unhonoured>, Refused> {
        self.threads.supports(scenario)
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        _observer: &mut dyn Observer,
        cancel: &dyn Cancel,
    ) -> Result<Outcome, Refused> {
        self.supports(scenario)?;
        cpus(&scenario.host)?;
        let doubts = warnings().iter().map(ToString::to_string).collect();
        let (burn, zero) = (Burn::calibrated(), Instant::now());
        let mut family = Family { children: Vec::new() };
        for domain in 0..scenario.domains.len() {
            let child = Inherited { world: &self.threads, scenario, seed, burn, domain, zero };
            family.children.push(Child::start(&child).map_err(|e| no_process(&e))?);
        }
        let heard = family.listen().map_err(|e| no_process(&e))?;
        let outcomes = Parent { family: &family, heard, zero, cancel, told: None }.outcomes()?;
        together(outcomes, doubts).ok_or_else(|| Refused::Invalid("there is no domain".into()))
    }
}

fn no_process(error: &io::Error) -> Refused {
    Refused::Machine {
        cause: format!("a process for a domain cannot be started: {error}"),
        remedy: "look at the limit of processes (ulimit -u), or use the world `threads`".into(),
    }
}

fn no_run() -> Refused {
    Refused::Machine {
        cause: "the process of a domain ended before its run".into(),
        remedy: "look for the reason in the kernel's log: is there too little memory?".into(),
    }
}

/// A process of a domain.
#[derive(Debug)]
struct Child {
    pid: libc::pid_t,
    socket: UnixStream,
}

impl Child {
    /// Starts it. Ctrl-C is not for it: the parent says when to stop, and its handlers would run in the child, too.
    fn start(inherited: &Inherited<'_>) -> io::Result<Self> {
        let (socket, parent) = UnixStream::pair()?;
        // SAFETY: sets of signals, which the calls fill.
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
        // SAFETY: as above. The threads of the child inherit its mask.
        unsafe {
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        }
        // SAFETY: the child has only this thread. The C library keeps its allocator usable over a fork, and the child
        // touches no other lock that another thread of its parent may have held: it prints nothing, and has locks,
        // memory and threads of its own.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: numbers only.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let code = i32::from(inherited.live(parent).is_err());
            // SAFETY: it never returns. Nothing of the parent is flushed or dropped a second time.
            unsafe { libc::_exit(code) }
        }
        let error = io::Error::last_os_error();
        // SAFETY: the mask of before.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        }
        if pid > 0 { Ok(Self { pid, socket }) } else { Err(error) }
    }
}

impl Drop for Child {
    /// It has said its last word, or nobody wants to hear it.
    fn drop(&mut self) {
        // SAFETY: a child of ours that has not been waited for.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}

/// All children.
#[derive(Debug)]
struct Family {
    children: Vec<Child>,
}

/// What a child said; `None`: no more.
type Heard = (usize, Option<ChildMessage>);

impl Family {
    /// Listens to all of them. The threads that do end with the children.
    fn listen(&self) -> io::Result<Receiver<Heard>> {
        let (to, heard) = channel();
        for (number, child) in self.children.iter().enumerate() {
            let (to, socket) = (to.clone(), child.socket.try_clone()?);
            thread::Builder::new().spawn(move || {
                listen(socket, |said| to.send((number, Some(said))).is_ok());
                to.send((number, None)).ok();
            })?;
        }
        Ok(heard)
    }

    fn tell(&self, what: ParentMessage) {
        // A child that hears nothing has ended, which the parent learns elsewhere.
        self.children.iter().for_each(|child| _ = say(&child.socket, &what));
    }
}

/// Leads the children through the run.
struct Parent<'a> {
    family: &'a Family,
    heard: Receiver<Heard>,
    zero: Instant,
    cancel: &'a dyn Cancel,
    /// The last word to them.
    told: Option<ParentMessage>,
}

impl Parent<'_> {
    /// What came of each domain's process, in their order.
    fn outcomes(mut self) -> Result<Vec<Outcome>, Refused> {
        let all = self.family.children.len();
        let mut outcomes: Vec<Option<Outcome>> = vec![None; all];
        let (mut ready, mut finished, mut begin) = (0, 0, None);
        while outcomes.iter().any(Option::is_none) {
            match self.heard.recv_timeout(LOOK) {
                Ok((_, Some(ChildMessage::Ready))) => ready += 1,
                Ok((_, Some(ChildMessage::Finished))) => finished += 1,
                Ok((number, Some(ChildMessage::Done(outcome)))) => {
                    outcomes[number] = Some(Outcome::from_json(&outcome).map_err(|_| no_run())?);
                }
                Ok((_, Some(ChildMessage::Refused { cause, remedy }))) => {
                    return Err(Refused::Machine { cause, remedy });
                }
                Ok((number, None)) if outcomes[number].is_none() => {
                    return Err(no_run());
                }
                Ok((_, None)) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                }
            }
            // A run of length 0 is over before anybody is ready.
            if ready == all && begin.is_none() {
                let at = Instant::now() + LEAD;
                begin = Some(at);
                let after = at.saturating_duration_since(self.zero).as_nanos() as u64;
                self.tell(ParentMessage::Begin { after });
            }
            if finished == all {
                self.tell(ParentMessage::End);
            }
            let now = begin.map_or(Duration::ZERO, |at| at.elapsed());
            if let Some(by) = self.cancel.asked(picos(now.as_nanos() as u64)) {
                self.tell(ParentMessage::Stop { by });
            }
        }
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// Says it once; after an end or a stop there is nothing to say.
    fn tell(&mut self, what: ParentMessage) {
        if matches!(self.told, None | Some(ParentMessage::Begin { .. })) && self.told != Some(what)
        {
            self.family.tell(what);
            self.told = Some(what);
        }
    }
}

/// Makes the steps of a domain's curve those of the others. One of two processes may just have begun to take steps twice as
/// long.
fn same_steps(whole: &mut Outcome, number: usize, step: Picos) {
    let coarser =
        |values: &mut Vec<u64>| *values = values.chunks_exact(2).map(|two| two[1]).collect();
    if step < whole.progress_step {
        coarser(&mut whole.domains[number].progress);
    } else if step > whole.progress_step {
        whole.domains[..number].iter_mut().for_each(|d| coarser(&mut d.progress));
        whole.progress_step = step;
    }
}

/// The outcome of the run from those of its processes, each of which knows its own domain.
fn together(outcomes: Vec<Outcome>, doubts: Vec<String>) -> Option<Outcome> {
    let mut outcomes = outcomes.into_iter().enumerate();
    let (_, mut whole) = outcomes.next()?;
    for (number, other) in outcomes {
        // The processes end within some milliseconds of each other.
        whole.elapsed = whole.elapsed.max(other.elapsed);
        if other.ending != Ending::Finished {
            whole.ending = other.ending;
        }
        let step = other.progress_step;
        if let Some(own) = other.domains.into_iter().nth(number) {
            whole.domains[number] = own;
        }
        same_steps(&mut whole, number, step);
    }
    if let Some(measurement) = &mut whole.measurement {
        measurement.world = "processes".into();
        measurement.doubts = doubts;
    }
    Some(whole)
}
