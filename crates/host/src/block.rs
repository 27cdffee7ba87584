//! When a blocked vCPU continues: latches, pending interrupts, and the effects of kicks and interrupts.
//!
//! A vCPU blocks in one of two ways. It *halts* until an interrupt is pending (the idle loop does this), or it
//! *polls* until its latch is set or an enabled interrupt is pending (a waiter for a lock does this). The latch
//! is the pending bit of the event channel through which kicks are sent. It stays set until the guest clears
//! it, so a kick that arrives before the poll makes the poll return at once.
//!
//! ```text
//!   guest code --block, unless must_return--> blocked  --interrupt or kick--> woken, dispatched --> guest code
//!        ^                                      ^
//!        |            halt polling              | the window is over
//!        +---- interrupt or kick ---- polls on its pCPU
//! ```

/// How a vCPU blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Until an interrupt is pending.
    Halt,
    /// Until its latch is set, or an interrupt is pending and interrupts are on.
    Poll,
}

/// The place of a vCPU, as far as it matters to a kick or an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In its guest, or on its way there.
    Guest,
    /// Blocked.
    Blocked(Block),
    /// Polling on its pCPU before it blocks (see [`halt_polling`](crate::halt_polling)).
    HaltPolls(Block),
}

/// What the host does with a vCPU that receives a kick or an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing.
    None,
    /// Interrupt its current activity, if that can be interrupted.
    Interrupt,
    /// Wake it.
    Unblock,
    /// End its halt polling: it continues at once.
    EndPolling,
}

/// Whether a block returns at once.
///
/// No wake-up is lost: the guest sets its "I block" flag before this check, and a sender sets the event before
/// it reads the flag.
#[must_use]
pub fn must_return(block: Block, latch: bool, pending: u32, irqs_on: bool) -> bool {
    match block {
        Block::Poll => latch || irqs_on && pending != 0,
        Block::Halt => pending != 0,
    }
}

/// What the host does when an interrupt has come.
#[inline]
#[must_use]
pub fn on_interrupt(place: Place, irqs_on: bool) -> Reaction {
    // An idle vCPU halts with interrupts on.
    let ends = |block| block == Block::Halt || irqs_on;
    match place {
        Place::Blocked(block) if ends(block) => Reaction::Unblock,
        Place::HaltPolls(block) if ends(block) => Reaction::EndPolling,
        Place::Guest | Place::Blocked(_) | Place::HaltPolls(_) => Reaction::Interrupt,
    }
}

/// What the host does when a kick has set the latch.
#[inline]
#[must_use]
pub fn on_kick(place: Place) -> Reaction {
    match place {
        Place::Blocked(Block::Poll) => Reaction::Unblock,
        Place::HaltPolls(Block::Poll) => Reaction::EndPolling,
        Place::Guest | Place::Blocked(Block::Halt) | Place::HaltPolls(Block::Halt) => {
            Reaction::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kick_or_an_interrupt_before_the_block_makes_it_return() {
        assert!(!must_return(Block::Poll, false, 0, true));
        assert!(must_return(Block::Poll, true, 0, false), "a kick came before");
        assert!(must_return(Block::Poll, false, 1, true));
        assert!(!must_return(Block::Poll, false, 1, false), "interrupts are off");
        assert!(must_return(Block::Halt, false, 1, false));
        assert!(!must_return(Block::Halt, true, 0, true), "a latch is nothing to a halt");
    }

    #[test]
    fn kicks_are_for_those_that_poll_and_interrupts_for_all() {
        use Place::{Blocked, Guest, HaltPolls};
        assert_eq!(on_kick(Blocked(Block::Poll)), Reaction::Unblock);
        assert_eq!(on_kick(HaltPolls(Block::Poll)), Reaction::EndPolling);
        for place in [Guest, Blocked(Block::Halt), HaltPolls(Block::Halt)] {
            assert_eq!(on_kick(place), Reaction::None);
        }
        for irqs_on in [false, true] {
            assert_eq!(on_interrupt(Guest, irqs_on), Reaction::Interrupt);
            assert_eq!(on_interrupt(Blocked(Block::Halt), irqs_on), Reaction::Unblock);
            assert_eq!(on_interrupt(HaltPolls(Block::Halt), irqs_on), Reaction::EndPolling);
        }
        assert_eq!(on_interrupt(Blocked(Block::Poll), true), Reaction::Unblock);
        assert_eq!(on_interrupt(HaltPolls(Block::Poll), true), Reaction::EndPolling);
        assert_eq!(on_interrupt(Blocked(Block::Poll), false), Reaction::Interrupt);
    }
}
