//! The fields of an event, as the kernel's own formats and the plugins of libtraceevent print them.
//!
//! ```text
//! prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120    the kernel, perf
//! prev_comm=a prev_pid=1 prev_prio=120 prev_state=1 next_comm=b next_pid=2 next_prio=120        trace-cmd report -R
//! a:1 [120] S ==> b:2 [120]                                                                     trace-cmd report
//! ```
//!
//! A name may contain any of these separators, and is not quoted. It has at most 15 bytes, so it cannot contain all
//! of what follows a name.

use super::line::{EventKind, Left, Who};

/// The longest name of a task in bytes (`TASK_COMM_LEN` without its NUL).
pub(super) const LONGEST_NAME: usize = 15;
/// Where a task at the begin of a text ends at the latest, in bytes: its name, of which a byte may have become three, and its
/// numbers. What comes later is no task, and a long line would take long to search for one.
pub(super) const FARTHEST: usize = 256;

/// The meaning of an event; `None` if its fields make no sense.
pub(super) fn meaning<'a>(name: &'a str, fields: &'a str) -> Option<EventKind<'a>> {
    // libtraceevent, where it does not understand a format.
    let fields = fields.strip_prefix("[FAILED TO PARSE]").map_or(fields, str::trim_start);
    let (group, event) = name.split_once(':').unwrap_or(("", name));
    // perf adds modifiers: `sched:sched_switch:H`.
    let event = event.split(':').next().unwrap_or(event);
    let interrupt = ["irq", "irq_vectors"].contains(&group)
        || ["irq_handler_", "softirq_", "hrtimer_expire_"].iter().any(|p| event.starts_with(p));
    Some(match event {
        "sched_switch" => switch(fields)?,
        "sched_waking" => EventKind::Waking(woken(fields)?),
        "sched_wakeup" => EventKind::Wakeup(woken(fields)?),
        "sched_wakeup_new" => EventKind::WakeupNew(woken(fields)?),
        "sched_stat_runtime" => runtime(fields)?,
        "contention_begin" => {
            let (lock, flags) = fields.split_once(" (flags=").filter(|(lock, _)| is_word(lock))?;
            EventKind::ContentionBegin { lock, flags: flags.split_once(')')?.0 }
        }
        "contention_end" => EventKind::ContentionEnd { lock: fields.split_once(" (ret=")?.0 },
        "cgroup_attach_task" => attached(fields)?,
        "sched_process_fork" => forked(fields)?,
        _ if interrupt && event.ends_with("_entry") => EventKind::Interrupt { begins: true },
        _ if interrupt && event.ends_with("_exit") => EventKind::Interrupt { begins: false },
        _ => EventKind::Other { name },
    })
}

/// The control group that perf prints behind the fields (`perf script -F +cgroup`).
pub(super) fn group_behind(fields: &str) -> Option<&str> {
    let word = fields.split(' ').rev().find(|word| !word.is_empty())?;
    word.starts_with('/').then_some(word)
}

fn switch(fields: &str) -> Option<EventKind<'_>> {
    if let Some((prev, rest)) = named(fields, "prev_") {
        let (state, rest) = word(rest.strip_prefix(" prev_state=")?);
        // Without the arrow it is the raw form, in which states are numbers.
        let rest = match rest.strip_prefix(" ==> ") {
            Some(rest) => rest,
            None if state.starts_with(|c: char| c.is_ascii_digit()) => rest.trim_start(),
            None => return None,
        };
        let (next, _) = named(rest, "next_")?;
        return Some(EventKind::Switch { prev, left: left(state)?, next });
    }
    // The arrow may be part of a name.
    let all = fields.match_indices(" ==> ").take_while(|(i, _)| *i < FARTHEST);
    all.map(|(i, arrow)| (&fields[..i], &fields[i + arrow.len()..])).find_map(|(prev, next)| {
        let (prev, state) = prev.rsplit_once(' ')?;
        let (prev, "") = short(prev)? else { return None };
        Some(EventKind::Switch { prev, left: left(state)?, next: short(next)?.0 })
    })
}

/// The task of a wake-up: `comm=a pid=1 prio=120 ...`, or `a:1 [120] ...`.
fn woken(fields: &str) -> Option<Who<'_>> {
    named(fields, "").or_else(|| short(fields)).map(|(who, _)| who)
}

/// `comm=a pid=1 prio=120` with `prefix` before each key, and what follows.
fn named<'a>(text: &'a str, prefix: &str) -> Option<(Who<'a>, &'a str)> {
    let text = text.strip_prefix(prefix)?.strip_prefix("comm=")?;
    text.match_indices(' ').find_map(|(i, _)| {
        let rest = text[i + 1..].strip_prefix(prefix)?.strip_prefix("pid=")?;
        let (pid, rest) = word(rest);
        let rest = rest.strip_prefix(' ')?.strip_prefix(prefix)?.strip_prefix("prio=")?;
        let (prio, rest) = word(rest);
        let comm = text[..i].trim();
        Some((Who { comm, pid: pid.parse().ok()?, prio: Some(prio.parse().ok()?) }, rest))
    })
}

/// `a:1 [120]`, and what follows.
fn short(text: &str) -> Option<(Who<'_>, &str)> {
    let all = text.match_indices(" [").take_while(|(i, _)| *i < FARTHEST);
    let all = all.filter_map(|(i, open)| {
        let (comm, pid) = text[..i].rsplit_once(':')?;
        let (prio, rest) = text[i + open.len()..].split_once(']')?;
        let comm = comm.trim();
        Some((Who { comm, pid: pid.parse().ok()?, prio: Some(prio.parse().ok()?) }, rest))
    });
    likeliest(all, |(who, _)| who.comm)
}

/// Of several readings of a text that begins with a name, the one with the longest name that a task can have.
pub(super) fn likeliest<'a, T>(all: impl Iterator<Item = T>, name: fn(&T) -> &'a str) -> Option<T> {
    let mut best = None;
    for one in all {
        if best.is_none() || name(&one).len() <= LONGEST_NAME {
            best = Some(one);
        }
    }
    best
}

fn runtime(fields: &str) -> Option<EventKind<'_>> {
    let text = fields.strip_prefix("comm=")?;
    text.match_indices(" pid=").find_map(|(i, key)| {
        let (pid, rest) = word(&text[i + key.len()..]);
        let (ns, _) = word(rest.strip_prefix(" runtime=")?);
        Some(EventKind::Runtime { pid: pid.parse().ok()?, ns: ns.parse().ok()? })
    })
}

/// `dst_root=1 dst_id=2 dst_level=1 dst_path=/a pid=7 comm=b`.
fn attached(fields: &str) -> Option<EventKind<'_>> {
    let (_, rest) = fields.split_once("dst_path=")?;
    let (path, rest) = rest.split_once(" pid=")?;
    Some(EventKind::Attached { pid: word(rest).0.parse().ok()?, path })
}

/// `comm=a pid=7 child_comm=a child_pid=8`.
fn forked(fields: &str) -> Option<EventKind<'_>> {
    let (rest, child) = fields.rsplit_once(" child_pid=")?;
    let parent = rest.match_indices(" pid=").find_map(|(i, key)| {
        let (pid, rest) = word(&rest[i + key.len()..]);
        rest.starts_with(" child_comm=").then(|| pid.parse().ok())?
    })?;
    Some(EventKind::Forked { parent, child: word(child).0.parse().ok()? })
}

/// What a task that leaves its CPU will do, from letters (`R+`, `S`, `D|K`) or the kernel's number.
fn left(state: &str) -> Option<Left> {
    /// `EXIT_DEAD` and `EXIT_ZOMBIE`.
    const GONE: u64 = 0x30;
    /// The states below `TASK_REPORT_MAX`, which stands for a preemption.
    const REPORTED: u64 = 0xff;
    let number = match state.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => state.parse().ok(),
    };
    Some(match (number, state.as_bytes().first()?) {
        (Some(n), _) if n & GONE != 0 => Left::Gone,
        (Some(n), _) if n & REPORTED == 0 => Left::Ready,
        (Some(_), _) => Left::Asleep,
        (None, b'R') => Left::Ready,
        (None, b'X' | b'Z') => Left::Gone,
        (None, letter) if letter.is_ascii_alphabetic() => Left::Asleep,
        _ => return None,
    })
}

/// Whether the name of a lock can be one in a scenario.
fn is_word(lock: &str) -> bool {
    !lock.is_empty() && lock.chars().all(|c| c.is_ascii_graphic() && c != ',')
}

/// The first word of a text, and what follows it.
fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(comm: &str, pid: u32) -> Who<'_> {
        Who { comm, pid, prio: Some(120) }
    }

    /// Names from a recording of this kernel, which takes any of them.
    const NAMES: [&str; 9] = [
        "a ==> b",
        "x [001] 1.5: y",
        "my task",
        "c:1 [120] S",
        "d] 7 [000",
        "e/5-3",
        "1234",
        " prev_pid=1",
        "f:2 [120] ==> g",
    ];

    #[test]
    fn names_may_hold_the_separators() {
        for name in NAMES {
            let task = who(name.trim(), 12);
            for fields in [
                format!(
                    "prev_comm={name} prev_pid=12 prev_prio=120 prev_state=S ==> next_comm={name} next_pid=12 \
                     next_prio=120"
                ),
                format!("{name}:12 [120] S ==> {name}:12 [120]"),
            ] {
                let wanted = EventKind::Switch { prev: task, left: Left::Asleep, next: task };
                assert_eq!(meaning("sched_switch", &fields), Some(wanted), "{fields}");
            }
            for fields in [
                format!("comm={name} pid=12 prio=120 target_cpu=001"),
                format!("comm={name} pid=12 prio=120 success=1 target_cpu=001"),
                format!("{name}:12 [120] success=1 CPU:001"),
                format!("{name}:12 [120]<CANT FIND FIELD success> CPU:001"),
            ] {
                let wanted = EventKind::Wakeup(task);
                assert_eq!(meaning("sched:sched_wakeup", &fields), Some(wanted), "{fields}");
            }
            let fields = format!("comm={name} pid=7 runtime=71283 [ns] vruntime=8 [ns]");
            let wanted = EventKind::Runtime { pid: 7, ns: 71_283 };
            assert_eq!(meaning("sched:sched_stat_runtime", &fields), Some(wanted), "{fields}");
        }
    }

    #[test]
    fn states_are_letters_or_numbers() {
        for (state, wanted) in [
            ("R", Left::Ready),
            ("R+", Left::Ready),
            ("0", Left::Ready),
            ("256", Left::Ready),
            ("S", Left::Asleep),
            ("I", Left::Asleep),
            ("D|K", Left::Asleep),
            ("1", Left::Asleep),
            ("0x80", Left::Asleep),
            ("X", Left::Gone),
            ("Z", Left::Gone),
            ("16", Left::Gone),
            ("0x20", Left::Gone),
        ] {
            let is_number = state.starts_with(|c: char| c.is_ascii_digit());
            let (note, arrow) = if is_number { ("[FAILED TO PARSE] ", "") } else { ("", " ==>") };
            let fields = format!(
                "{note}prev_comm=a prev_pid=1 prev_prio=120 prev_state={state}{arrow} next_comm=b next_pid=2 next_prio=120"
            );
            let wanted = EventKind::Switch { prev: who("a", 1), left: wanted, next: who("b", 2) };
            assert_eq!(meaning("sched:sched_switch", &fields), Some(wanted), "{state}");
        }
        assert_eq!(meaning("sched_switch", "a:1 [120] ? ==> b:2 [120]"), None);
        assert_eq!(meaning("sched_switch", ""), None);
    }

    #[test]
    fn other_events() {
        let real_time = Who { comm: "dd", pid: 8, prio: Some(-1) };
        let of = meaning("sched:sched_waking", "comm=dd pid=8 prio=-1 target_cpu=001");
        assert_eq!(of, Some(EventKind::Waking(real_time)));
        let of = meaning("lock:contention_begin", "0xff80 (flags=SPIN|READ)");
        assert_eq!(of, Some(EventKind::ContentionBegin { lock: "0xff80", flags: "SPIN|READ" }));
        let of = meaning("lock:contention_end", "0xff80 (ret=0)");
        assert_eq!(of, Some(EventKind::ContentionEnd { lock: "0xff80" }));
        let of = meaning("irq:softirq_entry", "vec=1 [action=TIMER]");
        assert_eq!(of, Some(EventKind::Interrupt { begins: true }));
        let fields = "dst_root=0 dst_id=9 dst_level=1 dst_path=/a b pid=7 comm=sh";
        let of = meaning("cgroup:cgroup_attach_task", fields);
        assert_eq!(of, Some(EventKind::Attached { pid: 7, path: "/a b" }));
        let fields = "comm=a pid=x pid=7 child_comm=b child_pid=x child_pid=8";
        let of = meaning("sched:sched_process_fork", fields);
        assert_eq!(of, Some(EventKind::Forked { parent: 7, child: 8 }));
        let of = meaning("sched:sched_process_exit", "comm=cat pid=7 prio=120");
        assert_eq!(of, Some(EventKind::Other { name: "sched:sched_process_exit" }));
        assert_eq!(
            group_behind("next_comm=b next_prio=120 /system.slice/x"),
            Some("/system.slice/x")
        );
        assert_eq!(group_behind("next_comm=/b next_prio=120"), None);
    }
}
