//! What KVM would remember of interprocessor interrupts, to find the vCPU that a spinner waits for (Wanpeng Li,
//! "Semantics-aware vCPU scheduling", version 2 of December 2025; not merged).
//!
//! A vCPU that sends another an interrupt often spins until it is answered. The host carries the interrupt, so it can note
//! the pair:
//!
//! | when | the host notes |
//! |---|---|
//! | a vCPU sends to one other vCPU | of the sender: the receiver, and when; of the receiver: the sender |
//! | a vCPU ends an interrupt, whichever | of that vCPU: nothing any more; of its sender: the pair is answered, if it was the last receiver |
//!
//! Each vCPU has room for one pair: a second interrupt to another vCPU replaces the first. So a shootdown of many TLBs leaves
//! the last receiver only. And *any* interrupt that the sender itself ends, such as its own tick, forgets what it sent. Both
//! are the patch's.
//!
//! A pair counts for a window (50 ms) after it was sent. Where the processor ends interrupts without an exit (APICv), the
//! host does not see the end, and pairs count until the window is over.
//!
//! Written from the description of that series (lkml 20251219035334.39790-7 and -8-kernellwp@gmail.com).

use core::cell::Cell;
use overspin_scenario::Picos;

/// What the host remembers of one vCPU. vCPUs are numbered within their guest.
#[derive(Clone, Debug, Default)]
pub struct Ipis {
    /// The last receiver, and when it was sent to, until it answers.
    receiver: Cell<Option<(u32, Picos)>>,
    /// The vCPU that sent to this one last.
    sender: Cell<Option<u32>>,
}

impl Ipis {
    /// Vcpu `me`, which has these notes, sends to `to`, which has `theirs`, at `now`.
    pub fn sent(&self, me: u32, (to, theirs): (u32, &Self), now: Picos) {
        if me != to {
            self.receiver.set(Some((to, now)));
            theirs.sender.set(Some(me));
        }
    }

    /// Whether `other` has been sent to last, no longer than `window` before `now`, and has not answered.
    #[must_use]
    pub fn waits_for(&self, other: u32, now: Picos, window: Picos) -> bool {
        self.receiver.get().is_some_and(|(to, at)| to == other && now.saturating_sub(at) <= window)
    }

    /// The host sees that vCPU `me`, which has these notes, ends an interrupt at `now`. `of` has the notes of each.
    pub fn ended<'a>(&self, me: u32, of: impl FnOnce(u32) -> &'a Self, now: Picos, window: Picos) {
        self.receiver.set(None);
        let Some(sender) = self.sender.take() else { return };
        let theirs = of(sender);
        if theirs.waits_for(me, now, window) {
            theirs.receiver.set(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Picos = Picos::ms(50);

    fn three() -> [Ipis; 3] {
        core::array::from_fn(|_| Ipis::default())
    }

    fn send(v: &[Ipis; 3], from: u32, to: u32, at: Picos) {
        v[from as usize].sent(from, (to, &v[to as usize]), at);
    }

    fn end(v: &[Ipis; 3], me: u32, at: Picos) {
        v[me as usize].ended(me, |sender| &v[sender as usize], at, WINDOW);
    }

    #[test]
    fn a_pair_lasts_until_the_receiver_ends_an_interrupt() {
        let v = three();
        send(&v, 0, 1, Picos::ms(1));
        assert!(v[0].waits_for(1, Picos::ms(1), WINDOW));
        assert!(!v[0].waits_for(2, Picos::ms(1), WINDOW), "another vCPU");
        assert!(!v[1].waits_for(0, Picos::ms(1), WINDOW), "the other direction");
        end(&v, 1, Picos::ms(2));
        assert!(!v[0].waits_for(1, Picos::ms(2), WINDOW));
    }

    #[test]
    fn a_pair_counts_for_the_window() {
        let v = three();
        send(&v, 0, 1, Picos::ms(10));
        assert!(v[0].waits_for(1, Picos::ms(60), WINDOW));
        assert!(!v[0].waits_for(1, Picos(Picos::ms(60).0 + 1), WINDOW));
    }

    /// 0 sends to 1, then to 2: it has room for one. The end in 1 leaves the newer pair.
    #[test]
    fn the_last_receiver_replaces_the_one_before() {
        let v = three();
        send(&v, 0, 1, Picos::ms(1));
        send(&v, 0, 2, Picos::ms(2));
        assert!(!v[0].waits_for(1, Picos::ms(2), WINDOW));
        end(&v, 1, Picos::ms(3));
        assert!(v[0].waits_for(2, Picos::ms(3), WINDOW));
    }

    #[test]
    fn a_tick_of_the_sender_forgets_what_it_sent() {
        let v = three();
        send(&v, 0, 1, Picos::ms(1));
        end(&v, 0, Picos::ms(2));
        assert!(!v[0].waits_for(1, Picos::ms(2), WINDOW));
        send(&v, 2, 2, Picos::ms(3));
        assert!(!v[2].waits_for(2, Picos::ms(3), WINDOW), "nobody waits for itself");
    }
}
