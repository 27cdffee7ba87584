//! Directed yields: which vCPU KVM runs instead of one that spins (schedulers specification §9.3).
//!
//! Siblings are looked at in turn, from the one after the last that was boosted. Which of them are
//! tried has changed over the years ([`DirectedYieldRules`](Rules)). KVM knows no more of a sibling than is in
//! [`Known`]: not which vCPU holds the lock, nor what the others spin for. So it often boosts the wrong one.

use overspin_scenario::DirectedYieldRules as Rules;
use overspin_sched::RunState;

/// Refused directed yields after which KVM gives up, since [`Rules::Y2013`].
const REFUSALS: u32 = 3;

/// What KVM knows of a sibling.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its runstate.
    pub state: RunState,
    /// Its thread is in a pause-loop exit, or was when it was descheduled.
    pub in_exit: bool,
    /// It was runnable when it last left its pCPU.
    pub preempted: bool,
    /// Mode of the guest at that time.
    pub in_kernel: bool,
    /// An interrupt waits for it.
    pub interrupt: bool,
}

/// Whether a sibling is tried, if it is eligible. The order of years decides.
fn may_be_tried(rules: Rules, spinner_in_kernel: bool, sibling: Known) -> bool {
    match sibling.state {
        // Only that a thread is not in guest mode can be seen, before preemption was recorded.
        RunState::Running => return rules < Rules::Y2013 && sibling.in_exit,
        RunState::Runnable => {}
        RunState::Blocked | RunState::Offline => return false,
    }
    if !sibling.preempted {
        // It was woken and has not run yet.
        return rules < Rules::Y2013 || rules >= Rules::Y2019;
    }
    // A spinner in its kernel waits for kernel code.
    let useless = spinner_in_kernel && !sibling.in_kernel;
    rules < Rules::Y2017 || !useless || rules >= Rules::Y2021 && sibling.interrupt
}

/// In which order `n` siblings are looked at.
fn order(rules: Rules, n: usize, last: usize) -> impl Iterator<Item = usize> {
    // In 2011 vCPU 0 was taken for the last that was boosted and for none: it came first again.
    let first = if rules == Rules::Y2011 && last == 0 { 0 } else { last + 1 };
    (first..n).chain(0..(last + 1).min(n))
}

/// Looks for a sibling of a spinner that may run instead, and yields to it with `yield_to`, which says whether
/// that was taken. `(n, me, last)`: number of vCPUs of the domain, which of them spins, which was boosted last.
/// Returns which one took it. O(n).
pub fn boost(
    rules: Rules,
    spinner_in_kernel: bool,
    (n, me, last): (usize, usize, usize),
    known: impl Fn(usize) -> Known,
    eligible: impl Fn(usize) -> bool,
    mut yield_to: impl FnMut(usize) -> bool,
) -> Option<usize> {
    let mut refusals = 0;
    for i in order(rules, n, last) {
        if i == me
            || !may_be_tried(rules, spinner_in_kernel, known(i))
            || rules >= Rules::Y2012 && !eligible(i)
        {
            continue;
        }
        if yield_to(i) {
            return Some(i);
        }
        refusals += 1;
        if rules >= Rules::Y2013 && refusals == REFUSALS {
            break;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pause_loop::Pauses;
    use alloc::vec::Vec;
    use overspin_scenario::PauseLoopExiting;

    const PREEMPTED: Known = Known {
        state: RunState::Runnable,
        in_exit: false,
        preempted: true,
        in_kernel: true,
        interrupt: false,
    };

    /// The years in which a sibling is tried for a spinner that is in its kernel.
    fn years(sibling: Known) -> Vec<&'static str> {
        let tried = |rules: &Rules| may_be_tried(*rules, true, sibling);
        Rules::ALL.into_iter().filter(tried).map(Rules::name).collect()
    }

    #[test]
    fn each_year_adds_to_the_one_before() {
        let all = ["2011", "2012", "2013", "2017", "2019", "2021"];
        assert_eq!(years(PREEMPTED), all);
        let asleep = Known { state: RunState::Blocked, ..PREEMPTED };
        assert!(years(asleep).is_empty());
        // Preempted in user mode: it holds no lock of the kernel.
        let user = Known { in_kernel: false, ..PREEMPTED };
        assert_eq!(years(user), ["2011", "2012", "2013"]);
        // But it may be waited for, to answer an interrupt.
        let asked = Known { interrupt: true, ..user };
        assert_eq!(years(asked), ["2011", "2012", "2013", "2021"]);
        // Woken: not recorded as preempted, and its mode was not either.
        let woken = Known { preempted: false, in_kernel: false, ..PREEMPTED };
        assert_eq!(years(woken), ["2011", "2012", "2019", "2021"]);
        // In guest mode; in the host, for an exit of its own.
        let running = Known { state: RunState::Running, ..PREEMPTED };
        assert!(years(running).is_empty());
        assert_eq!(years(Known { in_exit: true, ..running }), ["2011", "2012"]);
    }

    #[test]
    fn a_spinner_in_user_mode_may_wait_for_anybody() {
        let user = Known { in_kernel: false, ..PREEMPTED };
        assert!(Rules::ALL.into_iter().all(|rules| may_be_tried(rules, false, user)));
    }

    #[test]
    fn siblings_come_in_turn_after_the_last() {
        let of = |rules, last| order(rules, 4, last).collect::<Vec<_>>();
        assert_eq!(of(Rules::Y2012, 1), [2, 3, 0, 1]);
        assert_eq!(of(Rules::Y2012, 0), [1, 2, 3, 0]);
        assert_eq!(of(Rules::Y2021, 3), [0, 1, 2, 3]);
        assert_eq!(of(Rules::Y2011, 1), [2, 3, 0, 1]);
        assert_eq!(of(Rules::Y2011, 0), [0, 1, 2, 3, 0], "0 first, and again");
    }

    /// Example L6 of the schedulers specification: vCPUs 0 to 3, last boosted 1, 0 spins; 1 is ready,
    /// 2 runs, 3 is ready and spins.
    #[test]
    fn spinners_are_passed_over_every_other_time() {
        let vcpus: [Pauses; 4] = core::array::from_fn(|_| Pauses::new());
        vcpus[3].exit_begins(&PauseLoopExiting::default());
        let known = |i: usize| match i {
            1 | 3 => PREEMPTED,
            _ => Known { state: RunState::Running, ..PREEMPTED },
        };
        let first = |last| {
            boost(Rules::Y2012, true, (4, 0, last), known, |i| vcpus[i].eligible(), |_| true)
                .unwrap()
        };
        // 3 comes before 1, but is passed over.
        assert_eq!(first(1), 1);
        assert_eq!(first(1), 3);
        assert_eq!(first(3), 1, "after the last boosted it goes on from the beginning");
    }
}
