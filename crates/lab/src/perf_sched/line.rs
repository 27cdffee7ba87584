//! A line of `perf script` or of the kernel's own `trace` file.
//!
//! ```text
//! COMM PID [CPU] SECONDS: GROUP:EVENT: FIELDS             perf script, perf sched script
//! COMM-PID [CPU] FLAGS SECONDS: EVENT: FIELDS             /sys/kernel/tracing/trace, trace-cmd report
//! ```
//!
//! The fields of scheduling events are either `prev_comm=a prev_pid=1 ...` or `a:1 [120] S ==> b:2 [120]`.

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// An event.
    Event(Event<'a>),
    /// The recorder had to drop so many events.
    Lost(u64),
    /// A comment, an empty line, or a line of a call chain.
    Chatter,
}

/// An event, and what ran where it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event<'a> {
    /// The task that ran there; `None` if the recorder did not know it, because the task was about to vanish.
    pub current: Option<Who<'a>>,
    pub cpu: u32,
    /// Nanoseconds of the recorder's clock.
    pub at: u64,
    /// Whether the flags of the line say that an interrupt was served.
    pub in_interrupt: bool,
    pub what: EventKind<'a>,
}

/// A task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Who<'a> {
    pub comm: &'a str,
    pub pid: u32,
    /// The kernel's priority: 120 is nice 0, below 100 is real-time.
    pub prio: Option<u32>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind<'a> {
    /// The CPU goes from one task to another; `state` is that of the first.
    Switch { prev: Who<'a>, state: &'a str, next: Who<'a> },
    /// Somebody is about to wake a task.
    Waking(Who<'a>),
    /// A task was woken.
    Wakeup(Who<'a>),
    /// A new task begins to be runnable.
    WakeupNew(Who<'a>),
    /// The kernel's own account of CPU time.
    Runtime { pid: u32, ns: u64 },
    /// A task begins to wait for a lock.
    ContentionBegin { lock: &'a str, flags: &'a str },
    /// It has the lock.
    ContentionEnd { lock: &'a str },
    /// The CPU begins to serve an interrupt, or has served it.
    Interrupt { begins: bool },
    /// Nothing that changes who runs.
    Other { name: &'a str },
}

/// Reads a line; the error says what is wrong with it.
pub(super) fn read(line: &str) -> Result<Line<'_>, String> {
    let trimmed = line.trim();
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return Ok(Line::Chatter);
    }
    if let Some(lost) = lost(trimmed) {
        return Ok(Line::Lost(lost));
    }
    let indented = line.starts_with([' ', '\t']);
    let Some((who, cpu, rest)) = head(trimmed) else {
        let first = trimmed.split_whitespace().next().unwrap_or_default();
        let is_address = first.len() >= 8 && first.bytes().all(|b| b.is_ascii_hexdigit());
        if indented && is_address {
            return Ok(Line::Chatter);
        }
        return Err("this is no line of `perf sched script`: there is no task with a CPU".into());
    };
    let mut words = rest.split_whitespace();
    let (mut flags, mut at) = ("", None);
    for word in words.by_ref() {
        at = word.strip_suffix(':').and_then(nanoseconds);
        if at.is_some() {
            break;
        }
        flags = word;
    }
    let at = at.ok_or("there is no time after the CPU, such as `1815.091893:`")?;
    // `perf script` may put the period of the sample before the event.
    let event = words.find(|w| w.parse::<u64>().is_err()).unwrap_or_default();
    let name = event.strip_suffix(':').ok_or("there is no event after the time")?;
    // The event's own text follows its name.
    let fields = rest.split_once(event).map_or("", |(_, fields)| fields.trim());
    let what = what(name, fields).ok_or_else(|| format!("the fields of `{name}` are unknown"))?;
    // The third flag: `h` and `H` are handlers of interrupts, `s` is a softirq.
    let in_interrupt = flags.chars().nth(2).is_some_and(|c| "hHszZ".contains(c));
    Ok(Line::Event(Event { current: who, cpu, at, in_interrupt, what }))
}

fn lost(line: &str) -> Option<u64> {
    let number = match line.split_once("[LOST ") {
        Some((_, rest)) => rest.split(' ').next()?,
        None => line.split_once("PERF_RECORD_LOST lost ")?.1.split(' ').next()?,
    };
    number.parse().ok()
}

/// Task and CPU of a line, and what follows.
fn head(line: &str) -> Option<(Option<Who<'_>>, u32, &str)> {
    let at = |(i, _): (usize, &str)| {
        let (inside, rest) = line[i + 1..].split_once(']')?;
        Some((line[..i].trim(), inside.parse::<u32>().ok()?, rest))
    };
    let (task, cpu, rest) = line.match_indices('[').find_map(at)?;
    // The kernel's `trace` may show the process after the thread: `cat-12 ( 10)`.
    let task = match task.strip_suffix(')').and_then(|task| task.rsplit_once('(')) {
        Some((task, _)) => task.trim(),
        None => task,
    };
    if task.ends_with(" -1") {
        return Some((None, cpu, rest));
    }
    let whole = |text: &str| text.rsplit('/').next().and_then(|tid| tid.parse::<u32>().ok());
    let (comm, pid) = match task.rsplit_once(char::is_whitespace) {
        Some((comm, pid)) if whole(pid).is_some() => (comm, whole(pid)?),
        _ => {
            let (comm, pid) = task.rsplit_once('-')?;
            (comm, whole(pid)?)
        }
    };
    Some((Some(Who { comm: comm.trim(), pid, prio: None }), cpu, rest))
}

/// `1815.091893` as nanoseconds; the fraction has up to nine digits.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = u32::try_from(fraction.len()).ok().filter(|n| (1..=9).contains(n))?;
    let parts = fraction.parse::<u64>().ok()?.checked_mul(10_u64.pow(9 - digits))?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(parts)
}

/// The meaning of an event; `None` if its fields make no sense.
fn what<'a>(name: &'a str, fields: &'a str) -> Option<EventKind<'a>> {
    let (group, event) = name.split_once(':').unwrap_or(("", name));
    let interrupt = ["irq", "irq_vectors"].contains(&group)
        || ["irq_handler_", "softirq_", "hrtimer_expire_"].iter().any(|p| event.starts_with(p));
    Some(match event {
        "sched_switch" => switch(fields)?,
        "sched_waking" => EventKind::Waking(woken(fields)?),
        "sched_wakeup" => EventKind::Wakeup(woken(fields)?),
        "sched_wakeup_new" => EventKind::WakeupNew(woken(fields)?),
        "sched_stat_runtime" => EventKind::Runtime {
            pid: after(fields, " pid=")?.parse().ok()?,
            ns: after(fields, " runtime=")?.parse().ok()?,
        },
        "contention_begin" => {
            let (lock, flags) = fields.split_once(" (flags=")?;
            EventKind::ContentionBegin { lock, flags: flags.strip_suffix(')')? }
        }
        "contention_end" => EventKind::ContentionEnd { lock: fields.split_once(" (ret=")?.0 },
        _ if interrupt && event.ends_with("_entry") => EventKind::Interrupt { begins: true },
        _ if interrupt && event.ends_with("_exit") => EventKind::Interrupt { begins: false },
        _ => EventKind::Other { name },
    })
}

fn switch(fields: &str) -> Option<EventKind<'_>> {
    let (prev, next) = fields.split_once(" ==> ")?;
    if let Some(named) = prev.strip_prefix("prev_comm=") {
        let (comm, rest) = named.rsplit_once(" prev_pid=")?;
        let mut words = rest.split(' ');
        let pid = words.next()?.parse().ok()?;
        let prio = after(rest, " prev_prio=")?.parse().ok();
        let state = after(rest, " prev_state=")?;
        let (to, rest) = next.strip_prefix("next_comm=")?.rsplit_once(" next_pid=")?;
        let next = Who {
            comm: to,
            pid: rest.split(' ').next()?.parse().ok()?,
            prio: after(rest, " next_prio=")?.parse().ok(),
        };
        return Some(EventKind::Switch { prev: Who { comm, pid, prio }, state, next });
    }
    // `a:1 [120] S`
    let (prev, state) = prev.rsplit_once(' ')?;
    Some(EventKind::Switch { prev: short(prev)?, state, next: short(next)? })
}

/// The task of a wake-up: `comm=a pid=1 prio=120 ...`, or `a:1 [120] ...`.
fn woken(fields: &str) -> Option<Who<'_>> {
    let Some(named) = fields.strip_prefix("comm=") else { return short(fields) };
    let (comm, rest) = named.rsplit_once(" pid=")?;
    let pid = rest.split(' ').next()?.parse().ok()?;
    Some(Who { comm, pid, prio: after(rest, " prio=").and_then(|p| p.parse().ok()) })
}

/// `a:1 [120]`, whatever follows.
fn short(text: &str) -> Option<Who<'_>> {
    let (task, rest) = text.split_once(" [")?;
    let (comm, pid) = task.rsplit_once(':')?;
    let prio = rest.split_once(']')?.0.parse().ok();
    Some(Who { comm, pid: pid.parse().ok()?, prio })
}

/// The word after `key`.
fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_once(key)?.1.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str) -> Event<'_> {
        match read(line) {
            Ok(Line::Event(event)) => event,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn both_formats_and_both_forms_say_the_same() {
        let by_perf = "      my task     12 [003]  1815.091901:       sched:sched_switch: prev_comm=my task \
                       prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=swapper/3 next_pid=0 next_prio=120";
        let by_kernel = "  my task-12    [003] d..2.  1815.091901: sched_switch: prev_comm=my task prev_pid=12 \
                         prev_prio=120 prev_state=S ==> next_comm=swapper/3 next_pid=0 next_prio=120";
        let compact = "my task 12/12 [003] 1815.091901000: sched:sched_switch: my task:12 [120] S ==> \
                       swapper/3:0 [120]";
        let all = [event(by_perf), event(by_kernel), event(compact)];
        assert_eq!(all[0], all[1]);
        assert_eq!(all[0], all[2]);
        assert_eq!((all[0].at, all[0].cpu), (1_815_091_901_000, 3));
        let task = Who { comm: "my task", pid: 12, prio: Some(120) };
        let idle = Who { comm: "swapper/3", pid: 0, prio: Some(120) };
        assert_eq!(all[0].current, Some(Who { prio: None, ..task }));
        let gone =
            event(":-1    -1 [001] 3002.771580: sched:sched_process_free: comm=a pid=1 prio=120");
        assert_eq!(gone.current, None);
        assert_eq!(all[0].what, EventKind::Switch { prev: task, state: "S", next: idle });
    }

    #[test]
    fn other_events() {
        let head = "cat 7 [000] 1.5: ";
        let of = |rest: &str| event(&(head.to_owned() + rest)).what_owned();
        assert_eq!(
            of("sched:sched_waking: comm=dd pid=8 prio=98 target_cpu=001"),
            "Waking(dd 8 Some(98))"
        );
        assert_eq!(of("sched_wakeup: dd:8 [120] success=1 CPU:001"), "Wakeup(dd 8 Some(120))");
        assert_eq!(
            of("sched:sched_stat_runtime: comm=cat pid=7 runtime=71283 [ns]"),
            "7 ran 71283"
        );
        assert_eq!(of("lock:contention_begin: 0xff80 (flags=SPIN|READ)"), "0xff80 SPIN|READ");
        assert_eq!(of("lock:contention_end: 0xff80 (ret=0)"), "0xff80");
        assert_eq!(of("irq:softirq_entry: vec=1 [action=TIMER]"), "interrupt true");
        assert_eq!(of("sched:sched_process_exit: comm=cat pid=7 prio=120"), "-");
    }

    impl Event<'_> {
        fn what_owned(&self) -> String {
            let who = |w: &Who<'_>| format!("{} {} {:?}", w.comm, w.pid, w.prio);
            match &self.what {
                EventKind::Waking(w) => format!("Waking({})", who(w)),
                EventKind::Wakeup(w) => format!("Wakeup({})", who(w)),
                EventKind::Runtime { pid, ns } => format!("{pid} ran {ns}"),
                EventKind::ContentionBegin { lock, flags } => format!("{lock} {flags}"),
                EventKind::ContentionEnd { lock } => (*lock).to_owned(),
                EventKind::Interrupt { begins } => format!("interrupt {begins}"),
                _ => "-".to_owned(),
            }
        }
    }

    #[test]
    fn chatter_losses_and_faults() {
        assert_eq!(read("# tracer: nop"), Ok(Line::Chatter));
        assert_eq!(read("\tffffffff8109c1b5 __schedule+0x5 ([kernel])"), Ok(Line::Chatter));
        assert_eq!(read("CPU:1 [LOST 27 EVENTS]"), Ok(Line::Lost(27)));
        assert!(
            event("<idle>-0 [001] dNh3. 2.5: sched_waking: comm=a pid=1 prio=120 target_cpu=1")
                .in_interrupt
        );
        for (line, message) in [
            ("hello world", "no task with a CPU"),
            ("cat 7 [000] sched:sched_switch: x", "no time"),
            ("cat 7 [000] 1.5: ", "no event"),
            (
                "cat 7 [000] 1.5: sched:sched_switch: prev_comm=a",
                "the fields of `sched:sched_switch`",
            ),
        ] {
            let fault = read(line).unwrap_err();
            assert!(fault.contains(message), "{line}: {fault}");
        }
    }
}
