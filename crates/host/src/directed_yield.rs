//! Directed yields: which vCPU KVM runs instead of a spinning one (schedulers specification §9.3).
//!
//! KVM examines the siblings in turn, starting after the last one that it boosted. The rule which of them it
//! tries has changed over the years ([`DirectedYieldRules`](Rules)). KVM knows of a sibling only what [`Known`]
//! contains. It does not know which vCPU holds the lock, nor for which locks the others spin, so it often
//! boosts the wrong one.
//!
//! A proposal of 2025 ([`Rules::IpiAware`]) also tries the sibling to which the spinner sent an interrupt
//! ([`ipis`](crate::ipis)). Its description speaks of an order: that sibling, then those with an interrupt pending, then those
//! that were preempted in their kernel. But it examines the siblings in turn once, as ever, and tries the first of which any
//! of the three is true. Only if the scheduler took no yield does a second round try all that were preempted.

use overspin_scenario::DirectedYieldRules as Rules;
use overspin_sched::RunState;

/// What KVM knows of a sibling.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its runstate.
    pub state: RunState,
    /// Its thread is in the host, because of a pause-loop exit or an interrupt of the host.
    pub in_host: bool,
    /// It was runnable when it last left its pCPU.
    pub preempted: bool,
    /// Whether its guest was in kernel mode at that time.
    pub in_kernel: bool,
    /// An interrupt waits for it, and the host can see that.
    pub interrupt: bool,
    /// The spinner sent it an interprocessor interrupt of late, which it has not answered.
    pub asked: bool,
}

/// Whether KVM tries a sibling, if it is eligible. Rules are ordered by year.
fn may_be_tried(rules: Rules, spinner_in_kernel: bool, sibling: Known) -> bool {
    match sibling.state {
        // Before KVM recorded preemption, it could only see that a thread is not in guest mode.
        RunState::Running => return rules < Rules::Y2013 && sibling.in_host,
        RunState::Runnable => {}
        RunState::Blocked | RunState::Offline => return false,
    }
    if rules == Rules::IpiAware && (sibling.asked || sibling.interrupt) {
        return true;
    }
    if !sibling.preempted {
        // It was woken and has not run yet.
        return rules < Rules::Y2013 || matches!(rules, Rules::Y2019 | Rules::Y2021);
    }
    // A spinner in its kernel waits for kernel code.
    let useless = spinner_in_kernel && !sibling.in_kernel;
    rules < Rules::Y2017 || !useless || rules >= Rules::Y2021 && sibling.interrupt
}

/// The order in which `n` siblings are examined.
fn order(rules: Rules, n: usize, last: usize) -> impl Iterator<Item = usize> {
    // In 2011 the value 0 meant both "vCPU 0 was boosted last" and "none yet", so vCPU 0 came first again.
    let first = if rules == Rules::Y2011 && last == 0 { 0 } else { last + 1 };
    (first..n).chain(0..(last + 1).min(n))
}

/// Looks for a sibling that may run instead of a spinner, and yields to it with `yield_to`, which returns
/// whether the scheduler took the yield. `relaxed`: [`Rules::IpiAware`] has a second round. `(n, me, last)`: the number of vCPUs of the domain, the spinner, and
/// the vCPU that was boosted last. Returns the vCPU that the scheduler boosted. O(n).
///
/// Since Linux 3.9 KVM gives up after three answers of `-ESRCH`. `yield_to` gives that answer if both run queues have one
/// thread, and never for a preempted sibling, which shares its queue with the thread that runs: other refusals do not
/// count. The rules from [`Rules::Y2013`] on try preempted and woken siblings only, so there is no such limit here.
pub fn boost(
    (rules, relaxed): (Rules, bool),
    spinner_in_kernel: bool,
    (n, me, last): (usize, usize, usize),
    known: impl Fn(usize) -> Known,
    eligible: impl Fn(usize) -> bool,
    mut yield_to: impl FnMut(usize) -> bool,
) -> Option<usize> {
    let rounds = if rules == Rules::IpiAware && relaxed { 2 } else { 1 };
    for round in 0..rounds {
        let tries = |sibling: Known| match round {
            0 => may_be_tried(rules, spinner_in_kernel, sibling),
            _ => sibling.state == RunState::Runnable && sibling.preempted,
        };
        for i in order(rules, n, last) {
            if i == me || !tries(known(i)) || rules >= Rules::Y2012 && !eligible(i) {
                continue;
            }
            if yield_to(i) {
                return Some(i);
            }
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
        in_host: false,
        preempted: true,
        in_kernel: true,
        interrupt: false,
        asked: false,
    };

    /// The years in which a sibling is tried for a spinner that is in its kernel.
    fn years(sibling: Known) -> Vec<&'static str> {
        let tried = |rules: &Rules| may_be_tried(*rules, true, sibling);
        Rules::ALL.into_iter().filter(tried).map(Rules::name).collect()
    }

    #[test]
    fn each_year_adds_to_the_one_before() {
        let all = ["2011", "2012", "2013", "2017", "2019", "2021", "ipi-aware"];
        assert_eq!(years(PREEMPTED), all);
        let asleep = Known { state: RunState::Blocked, ..PREEMPTED };
        assert!(years(asleep).is_empty());
        // A vCPU preempted in user mode holds no lock of the kernel.
        let user = Known { in_kernel: false, ..PREEMPTED };
        assert_eq!(years(user), ["2011", "2012", "2013"]);
        // But a sibling may wait for it to answer an interrupt.
        let asked = Known { interrupt: true, ..user };
        assert_eq!(years(asked), ["2011", "2012", "2013", "2021", "ipi-aware"]);
        // A woken vCPU is not recorded as preempted, and neither is its mode.
        let woken = Known { preempted: false, in_kernel: false, ..PREEMPTED };
        assert_eq!(years(woken), ["2011", "2012", "2019", "2021"]);
        let woken_by_interrupt = Known { interrupt: true, ..woken };
        assert_eq!(years(woken_by_interrupt), ["2011", "2012", "2019", "2021", "ipi-aware"]);
        // The spinner itself sent it an interrupt, and the host does not see that it is pending.
        assert_eq!(years(Known { asked: true, ..user }), ["2011", "2012", "2013", "ipi-aware"]);
        assert_eq!(years(Known { asked: true, ..asleep }), [""; 0], "nobody yields to a sleeper");
        // A running vCPU in guest mode, and one in the host because of its own exit.
        let running = Known { state: RunState::Running, ..PREEMPTED };
        assert!(years(running).is_empty());
        assert_eq!(years(Known { in_host: true, ..running }), ["2011", "2012"]);
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
            let eligible = |i: usize| vcpus[i].eligible();
            boost((Rules::Y2012, true), true, (4, 0, last), known, eligible, |_| true).unwrap()
        };
        // 3 comes before 1, but is passed over.
        assert_eq!(first(1), 1);
        assert_eq!(first(1), 3);
        assert_eq!(first(3), 1, "after the last boosted it goes on from the beginning");
    }

    /// vCPUs 0 to 3, last boosted 0; 0 spins in its kernel. 1 was preempted in user mode, 2 too and 0 sent it an
    /// interrupt, 3 in its kernel. The first round passes over 1 and tries 2, then 3; the second tries 1, 2 and 3.
    #[test]
    fn the_receiver_of_an_interrupt_comes_in_turn_and_user_mode_last() {
        let user = Known { in_kernel: false, ..PREEMPTED };
        let known = |i: usize| match i {
            1 => user,
            2 => Known { asked: true, ..user },
            _ => PREEMPTED,
        };
        let tried = |relaxed, takes: fn(usize) -> bool| {
            let mut tried = Vec::new();
            let yield_to = |i: usize| {
                tried.push(i);
                takes(i)
            };
            let rules = (Rules::IpiAware, relaxed);
            boost(rules, true, (4, 0, 0), known, |_| true, yield_to);
            tried
        };
        assert_eq!(tried(true, |_| true), [2]);
        assert_eq!(tried(true, |_| false), [2, 3, 1, 2, 3]);
        assert_eq!(tried(false, |_| false), [2, 3]);
    }
}
