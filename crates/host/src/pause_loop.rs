//! Pause-loop exits: when a spinning guest exits to the hypervisor (schedulers specification §9.3).
//!
//! The processor detects PAUSE instructions in close succession, and exits to the hypervisor when they
//! have gone on for longer than the vCPU's window. An interrupt or a new dispatch ends a loop, since it
//! takes far longer than the gap.
//!
//! The host then lets other vCPUs run: by a plain yield, as Xen does, or by a directed yield, as KVM does
//! ([`directed_yield`](crate::directed_yield)). If KVM finds no vCPU to run, the guest spins on.

use core::cell::Cell;
use overspin_scenario::{PauseLoopExiting, Picos};

/// The state that the processor and the host keep for a spinning vCPU.
#[derive(Clone, Debug)]
pub struct Pauses {
    /// The start of the current PAUSE loop, and the end of its last PAUSE; 0 if there was none.
    since: Cell<Picos>,
    last: Cell<Picos>,
    window: Cell<Picos>,
    /// When the current spin exits; `Picos::MAX` if it does not.
    exit_at: Cell<Picos>,
    /// The vCPU is in an exit: the host looks for another vCPU to run, or has found one and not returned
    /// yet.
    in_exit: Cell<bool>,
    /// It was passed over as a spinner, and is eligible the next time.
    passed_over: Cell<bool>,
}

impl Default for Pauses {
    fn default() -> Self {
        Self::new()
    }
}

impl Pauses {
    /// The state of a vCPU that has not spun yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            since: Cell::new(Picos::ZERO),
            last: Cell::new(Picos::ZERO),
            window: Cell::new(Picos::ZERO),
            exit_at: Cell::new(Picos::MAX),
            in_exit: Cell::new(false),
            passed_over: Cell::new(false),
        }
    }

    /// Begins a PAUSE at `now`; returns the start of its loop.
    fn begin(&self, now: Picos, gap: Picos) -> Picos {
        if self.last.get() == Picos::ZERO || now > self.last.get().saturating_add(gap) {
            self.since.set(now);
        }
        self.since.get()
    }

    /// Whether the current spin exits at `now`.
    #[must_use]
    pub fn exit_due(&self, now: Picos) -> bool {
        now >= self.exit_at.get()
    }

    /// Ends the loop, which was left or interrupted at `now`.
    pub fn end(&self, now: Picos) {
        self.last.set(now);
        self.exit_at.set(Picos::MAX);
    }

    /// Whether the vCPU may be boosted: it is not in an exit, or was passed over the last time. Calls
    /// alternate while it is in an exit.
    #[must_use]
    pub fn eligible(&self) -> bool {
        !self.in_exit.get() || self.passed_over.replace(!self.passed_over.get())
    }

    /// Computes when the current spin, with a PAUSE that begins at `now`, exits.
    pub fn arm(&self, now: Picos, ple: &PauseLoopExiting) -> Picos {
        let at = self.begin(now, ple.gap).saturating_add(self.window.get()).max(now);
        self.exit_at.set(at);
        at
    }

    /// Records a PAUSE from `began` to `now`. Returns whether the vCPU exits.
    pub fn paused(&self, began: Picos, now: Picos, ple: &PauseLoopExiting) -> bool {
        let since = self.begin(began, ple.gap);
        self.end(now);
        now.saturating_sub(since) > self.window.get()
    }

    /// The vCPU was put on a pCPU: its window shrinks or is reset, and it is in no loop.
    pub fn dispatched(&self, ple: &PauseLoopExiting) {
        self.window.set(shrunk(self.window.get(), ple));
        self.last.set(Picos::ZERO);
    }

    /// The vCPU enters its guest again after an interrupt of the host: it is in no loop.
    pub fn entered(&self) {
        self.last.set(Picos::ZERO);
    }

    /// The vCPU exits: its window grows.
    pub fn exit_begins(&self, ple: &PauseLoopExiting) {
        self.window.set(grown(self.window.get(), ple));
        self.in_exit.set(true);
    }

    /// The vCPU is back in its guest, and in no loop.
    pub fn exit_ends(&self) {
        self.last.set(Picos::ZERO);
        self.in_exit.set(false);
        self.passed_over.set(false);
    }

    /// Whether the vCPU is in an exit, or was when it was descheduled.
    #[must_use]
    pub fn in_exit(&self) -> bool {
        self.in_exit.get()
    }
}

fn grown(window: Picos, ple: &PauseLoopExiting) -> Picos {
    window.saturating_mul(ple.grow.into()).clamp(ple.window, ple.max)
}

fn shrunk(window: Picos, ple: &PauseLoopExiting) -> Picos {
    window.checked_div(ple.shrink.into()).unwrap_or_default().max(ple.window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_by_a_factor_up_to_the_longest_and_start_anew() {
        let ple =
            PauseLoopExiting { window: Picos(100), max: Picos(350), ..PauseLoopExiting::default() };
        assert_eq!([100, 200, 350].map(|w| grown(Picos(w), &ple).0), [200, 350, 350]);
        assert_eq!(shrunk(Picos(350), &ple), Picos(100));
        let ple = PauseLoopExiting { grow: 1, shrink: 3, ..ple };
        assert_eq!(grown(Picos(100), &ple), Picos(100));
        assert_eq!([350, 200].map(|w| shrunk(Picos(w), &ple).0), [116, 100]);
    }

    #[test]
    fn a_loop_lasts_as_long_as_its_pauses_are_close() {
        let p = Pauses::new();
        assert_eq!(p.begin(Picos(1000), Picos(64)), Picos(1000));
        p.end(Picos(1020));
        assert_eq!(p.begin(Picos(1084), Picos(64)), Picos(1000), "just close enough");
        p.end(Picos(1104));
        assert_eq!(p.begin(Picos(1169), Picos(64)), Picos(1169), "one too far");
    }
}
