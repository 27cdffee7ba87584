//! When a vCPU that blocks goes on: latches, pending interrupts, and what a kick or an interrupt does.
//!
//! A guest blocks in one of two ways. It *halts* until an interrupt is pending (its idle loop does), or it
//! *polls* until its latch is set or an interrupt that is on is pending (a waiter for a lock does). The
//! latch is the pending bit of the event channel that a kick sends on: it stays set until the guest clears
//! it, so that a kick that comes before the poll makes the poll return at once.
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
    /// Until its latch is set, or an interrupt is pending and on.
    Poll,
}

/// Where a vCPU is, as far as a kick or an interrupt cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In its guest, or on its way there.
    Guest,
    /// Blocked.
    Blocked(Block),
    /// On its pCPU, where it polls before it blocks (see [`halt_polling`](crate::halt_polling)).
    HaltPolls(Block),
}

/// What a host does with a vCPU for which something came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing.
    None,
    /// Interrupt what it does, if that can be interrupted.
    Interrupt,
    /// Wake it.
    Unblock,
    /// End its halt polling: it goes on at once.
    EndPolling,
}

/// Whether a block returns at once.
///
/// The guest sets the flag that says that it blocks before this is asked, and a sender sets the event
/// before it looks at the flag: so no wake-up is lost.
#[must_use]
pub fn must_return(block: Block, latch: bool, pending: u32, irqs_on: bool) -> bool {
    match block {
        Block::Poll => latch || irqs_on && pending != 0,
        Block::Halt => pending != 0,
    }
}

/// An interrupt has come.
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

/// A kick has set the latch.
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
