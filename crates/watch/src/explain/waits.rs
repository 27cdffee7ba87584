//! The story of one long wait.

use super::{Names, shares};
use overspin_report::Block;
use overspin_scenario::{Cause, Decision, Link, LongWait, NS, Picos, Why};
use std::fmt::Write;

/// Milliseconds, to the microsecond.
fn millis(time: Picos) -> String {
    format!("{:.3}", time.millis())
}

/// The decision that took a vCPU off its pCPU, in words.
fn decision(d: &Decision, names: &Names<'_>) -> String {
    if d.why == Why::Guest {
        return format!("since {} ms: {}", millis(d.at), why(d.why));
    }
    let came = match d.by {
        Some(by) => format!("{} came on pCPU {}", names.vcpu(by), d.pcpu),
        None => format!("pCPU {} fell idle", d.pcpu),
    };
    format!("{came} at {} ms: {}", millis(d.at), why(d.why))
}

/// The reason of a decision, in words.
pub(crate) fn why(why: Why) -> &'static str {
    match why {
        Why::Slice => "end of slice",
        Why::Wake => "it had been woken",
        Why::Yield => "after a yield",
        Why::PauseLoop => "after a pause-loop exit",
        Why::Parked => "cap or budget used up",
        Why::Migration => "to another pCPU",
        Why::Paused => "paused by the administrator",
        Why::Scheduler => "the scheduler's choice",
        Why::Guest => "the guest runs another task",
    }
}

/// A part of the chain in words; `first` if no other vCPU has had the lock since the beginning of the wait.
fn link(link: &Link, first: bool, wait: &LongWait, names: &Names<'_>) -> String {
    let vcpu = |v: u32| names.waiter(wait, v);
    let Some((cause, who)) = link.cause.zip(link.vcpu) else {
        let text = match (link.acquisitions, wait.holder.filter(|_| first)) {
            (0, Some(holder)) => format!("{} holds the lock and runs", vcpu(holder)),
            (0, _) => "the lock is on its runner, or its holder runs".into(),
            (1, _) => "the lock goes on to the next vCPU, which runs".into(),
            (n, _) => format!("the lock goes through {n} vCPUs"),
        };
        return match link.unlisted {
            Picos::ZERO => text,
            away => format!("shorter absences of {} ms in all; otherwise, {text}", millis(away)),
        };
    };
    let own = who == wait.vcpu;
    let text = match cause {
        Cause::HolderPreempted => format!("{}, the holder, is off its pCPU", vcpu(who)),
        Cause::HolderThrottled => {
            format!("{}, the holder, is kept from running by its cap", vcpu(who))
        }
        Cause::NextThrottled => {
            format!("the lock is free and kept for {}, which its cap keeps from running", vcpu(who))
        }
        Cause::NextPreempted => {
            format!("the lock is free and kept for {}, which is off its pCPU", vcpu(who))
        }
        Cause::HolderPreemptedByGuest => format!("{}, the holder, is off its vCPU", vcpu(who)),
        Cause::NextPreemptedByGuest => {
            format!("the lock is free and kept for {}, which is off its vCPU", vcpu(who))
        }
        Cause::OwnPreemption if wait.of_tasks => {
            "is off its own vCPU, or that is off its pCPU".into()
        }
        Cause::OwnPreemption => "is off its own pCPU".into(),
        Cause::KickWake if own => {
            "sleeps although it could have the lock, or is woken and has no pCPU yet".into()
        }
        Cause::KickWake => format!("the lock is free, and {} is still asleep", vcpu(who)),
        Cause::HolderRunning | Cause::LineTransfer => cause.words().into(),
    };
    match &link.decision {
        Some(d) => format!("{text} ({})", decision(d, names)),
        None => text,
    }
}

/// Tells the story of a wait.
pub(super) fn story(number: usize, wait: &LongWait, names: &Names<'_>, blocks: &mut Vec<Block>) {
    let who = names.waiter(wait, wait.vcpu);
    let got = if wait.finished { "" } else { ", but had not got it when the run ended" };
    blocks.push(Block::Text(format!(
        "{number}. {who} waited {} ms for {}{got}: {}.",
        millis(wait.time),
        names.lock(wait.domain, wait.lock),
        shares(&wait.causes),
    )));
    let mut lines = String::new();
    let mut passed = 0;
    for part in &wait.chain {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            lines,
            "  +{:>11} ms {:>11} ms  {}",
            millis(part.since.saturating_sub(wait.since)),
            millis(part.time),
            link(part, passed == 0, wait, names),
        );
        passed += part.acquisitions;
    }
    if !wait.of_tasks {
        let (since, time) = (wait.since / NS, wait.time / NS);
        let _ = writeln!(lines, "  in the trace: ts {since}, dur {time}, thread {who}");
    }
    blocks.push(Block::Lines(lines));
}
