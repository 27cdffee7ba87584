//! A line of `perf script`, of `trace-cmd report` or of the kernel's own `trace` file.
//!
//! ```text
//! COMM PID [CPU] SECONDS: GROUP:EVENT: FIELDS             perf script, perf sched script
//! COMM PID/TID [CPU] MISC SECONDS: PERIOD EVENT: FIELDS   perf script -F ...
//! COMM PID [CPU] SECONDS: PERF_RECORD_FORK(2:3):(1:1)     perf script --show-task-events
//!     ADDRESS SYMBOL+OFFSET (FILE)                        a call chain of perf, up to an empty line
//! COMM-PID [CPU] FLAGS SECONDS: EVENT: FIELDS             trace-cmd report, /sys/kernel/tracing/trace
//! COMM-PID (PROCESS) [CPU] FLAGS SECONDS: EVENT: FIELDS   the same with the option record-tgid
//! COMM-PID CPU+FLAGS SECONDS: EVENT: FIELDS               trace-cmd report -l
//! ```
//!
//! Sources: `perf_sample__fprintf_start`, `process_event` and `sample__fprintf_callchain` of perf 4.12 to 6.12 (the
//! fields of a line, in their order), `tep_print_event` of libtraceevent, `trace_print_context` of the kernel.

use super::fields::{self, FARTHEST, LONGEST_NAME, likeliest};

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// An event.
    Event(Event<'a>),
    /// A thread belongs to a process.
    Thread { pid: u32, process: u32 },
    /// The control group of the task of the event before, which perf writes below a call chain.
    Group(&'a str),
    /// The recorder had to drop so many events, or more.
    Lost(u64),
    /// The CPUs of the machine.
    Cpus(u32),
    /// A line of a call chain.
    Chain,
    /// A comment, an empty line, or a record of perf that says nothing of scheduling.
    Chatter,
}

/// An event, and what ran where it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event<'a> {
    /// The task that ran there; `None` if the line does not say it, or if the task was about to vanish.
    pub current: Option<Who<'a>>,
    /// The process of that task.
    pub process: Option<u32>,
    /// The control group of that task.
    pub group: Option<&'a str>,
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
    /// The kernel's priority: 120 is nice 0, below 100 is real-time, -1 has a deadline.
    pub prio: Option<i32>,
}

/// What a task that leaves its CPU will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// It was preempted.
    Ready,
    Asleep,
    /// It has ended.
    Gone,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind<'a> {
    /// The CPU goes from one task to another.
    Switch { prev: Who<'a>, left: Left, next: Who<'a> },
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
    /// A process moved to a control group.
    Attached { pid: u32, path: &'a str },
    /// A task made another one, which is in the same control group.
    Forked { parent: u32, child: u32 },
    /// Nothing that changes who runs.
    Other { name: &'a str },
}

/// A line that cannot be read, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub message: String,
    pub help: &'static str,
}

impl Unreadable {
    fn new(message: impl Into<String>, help: &'static str) -> Self {
        Self { message: message.into(), help }
    }
}

/// The remedy for text of another origin.
pub(super) const WANTED: &str = "give the output of `perf sched script`, `perf script` or `trace-cmd report`, or the kernel's \
                                 file `trace`, and nothing else";
const FIELDS: &str = "write the text with `perf script -F comm,pid,tid,cpu,time,event,trace`";
const CLOCK: &str = "record with a clock that counts time: `trace-cmd record -C mono`, or `echo mono > /sys/kernel/tracing/trace_clock`";
const LATENCY: &str =
    "read the file again after `echo 0 > /sys/kernel/tracing/options/latency-format`";

/// Reads a line. Behind a line of a call chain (`in_chain`), the place of its source may follow.
pub(super) fn read(line: &str, in_chain: bool) -> Result<Line<'_>, Unreadable> {
    let trimmed = line.trim();
    if trimmed.is_empty() {
        return Ok(Line::Chatter);
    }
    // A name may begin with `#`, so a line is a comment only if it is no event.
    let event = head(trimmed).map(|head| event(&head));
    let comment = trimmed.strip_prefix('#');
    match (event, comment) {
        (Some(Ok(line)), _) => return Ok(line),
        (_, Some(comment)) => {
            return Ok(cpus_in_comment(comment).map_or(Line::Chatter, Line::Cpus));
        }
        (Some(Err(fault)), None) => return Err(fault),
        (None, None) => {}
    }
    if let Some(line) = header(trimmed).or_else(|| lost(trimmed).map(Line::Lost)) {
        return Ok(line);
    }
    if line.starts_with([' ', '\t']) {
        if trimmed.starts_with('/') {
            return Ok(Line::Group(trimmed));
        }
        if is_chain(trimmed) || in_chain && is_source(trimmed) || is_namespaces(line) {
            return Ok(Line::Chain);
        }
    }
    Err(fault(trimmed))
}

/// What is wrong with a line that has no head.
fn fault(line: &str) -> Unreadable {
    let mut words = line.split_whitespace();
    if let Some((_, after)) = brackets(line).next() {
        let next = after.split_whitespace().next().unwrap_or_default();
        return match next.strip_suffix(':') {
            Some(count) if is_digits(count) => {
                Unreadable::new(format!("the time `{count}` is a count, not seconds"), CLOCK)
            }
            _ => Unreadable::new("there is no time after the CPU, such as `1815.091893:`", FIELDS),
        };
    }
    let relative = |word: &str| word.split_once("us").is_some_and(|(n, _)| is_digits(n));
    if words.clone().skip(1).any(relative) {
        return Unreadable::new("the times of this line begin at 0: the latency format", LATENCY);
    }
    if words.any(|word| word.strip_suffix(':').and_then(nanoseconds).is_some()) {
        return Unreadable::new("there is no CPU in brackets before the time", FIELDS);
    }
    Unreadable::new("this is no line of `perf sched script`: there is no task with a CPU", WANTED)
}

/// The beginning of a line with an event.
struct Head<'a> {
    current: Option<Who<'a>>,
    process: Option<u32>,
    /// `None`: the recorder did not know it.
    cpu: Option<u32>,
    flags: &'a str,
    at: u64,
    rest: &'a str,
}

/// The words between the CPU and the time at most: flags, perf's `misc`, a date and a time of day.
const MOST_BETWEEN: usize = 4;

fn head(line: &str) -> Option<Head<'_>> {
    let all = brackets(line).filter_map(|(open, after)| {
        let cpu = line[open + 1..].split_once(']')?.0.parse().ok();
        let (flags, at, rest) = time(after)?;
        let (current, process) = task(line[..open].trim());
        Some(Head { current, process, cpu, flags, at, rest })
    });
    // A name may look like a task with its CPU and a time. With names that a task can have, the last reading is right.
    let known = |head: &Head<'_>| head.current.is_some();
    let mut all: Vec<Head<'_>> = all.collect();
    if all.iter().any(known) {
        all.retain(known);
    } else {
        all.truncate(1);
    }
    fn name<'a>(head: &Head<'a>) -> &'a str {
        head.current.map_or("", |who| who.comm)
    }
    let best = likeliest(all.into_iter(), name);
    match best {
        Some(head) if known(&head) && name(&head).len() <= LONGEST_NAME => Some(head),
        // The brackets may be those of a name in the fields.
        other => latency_head(line).or(other),
    }
}

/// `COMM-PID CPU+FLAGS SECONDS:`, of `trace-cmd report -l`.
fn latency_head(line: &str) -> Option<Head<'_>> {
    line.match_indices(": ").take_while(|(end, _)| *end < FARTHEST).find_map(|(end, _)| {
        let start = line[..end].rfind(' ')? + 1;
        let at = nanoseconds(&line[start..end])?;
        let before = line[..start].trim_end();
        let (task_text, place) = before.rsplit_once(' ')?;
        let digits = place.find(|c: char| !c.is_ascii_digit())?;
        let (current, process) = task(task_text.trim());
        let cpu = Some(place[..digits].parse().ok()?);
        current?;
        Some(Head { current, process, cpu, flags: &place[digits..], at, rest: &line[end + 1..] })
    })
}

/// Where there is a number in brackets, and what follows it.
fn brackets(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.match_indices('[').take_while(|(open, _)| *open < FARTHEST).filter_map(|(open, _)| {
        let (inside, after) = line[open + 1..].split_once(']')?;
        // `[-01]`: an event that perf made itself.
        is_digits(inside.trim_start_matches('-')).then_some((open, after))
    })
}

/// The flags before a time, the time, and what follows.
fn time(text: &str) -> Option<(&str, u64, &str)> {
    let mut flags = "";
    let mut rest = text;
    for between in 0..=MOST_BETWEEN {
        rest = rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let word = &rest[..end];
        rest = &rest[end..];
        if let Some(at) = word.strip_suffix(':').and_then(nanoseconds) {
            return Some((flags, at, rest));
        }
        if between == 0 {
            flags = word;
        }
    }
    None
}

/// The task before the CPU of a line, and its process.
fn task(text: &str) -> (Option<Who<'_>>, Option<u32>) {
    // The kernel's `trace` may show the process after the thread: `cat-12 ( 10)`, or `(-------)`.
    let (text, in_parentheses) = match text.strip_suffix(')').and_then(|text| text.rsplit_once('('))
    {
        Some((text, process)) => (text.trim(), process.trim().parse().ok()),
        None => (text, None),
    };
    // perf did not know the task.
    if ["-1", "-1/-1"].iter().any(|unknown| text.strip_suffix(unknown).is_some_and(is_blank_end)) {
        return (None, None);
    }
    let (comm, numbers) = match text.rsplit_once(char::is_whitespace).unwrap_or(("", text)) {
        (comm, numbers) if numbers.split('/').all(is_digits) => (comm, numbers),
        _ => match text.rsplit_once('-') {
            Some((comm, pid)) => (comm, pid),
            None => return (None, None),
        },
    };
    // `PROCESS/THREAD`
    let (process, pid) = match numbers.split_once('/') {
        Some((process, pid)) => (process.parse().ok(), pid),
        None => (in_parentheses, numbers),
    };
    // trace-cmd and the kernel do not know the names of all tasks.
    let comm = Some(comm.trim()).filter(|comm| *comm != "<...>").unwrap_or_default();
    (pid.parse().ok().map(|pid| Who { comm, pid, prio: None }), process)
}

fn event<'a>(head: &Head<'a>) -> Result<Line<'a>, Unreadable> {
    // `perf script` may put the period of the sample before the event.
    let rest = head.rest.trim_start();
    let rest = match rest.split_once(char::is_whitespace) {
        Some((period, rest)) if is_digits(period) => rest.trim_start(),
        _ => rest,
    };
    if let Some(record) = rest.strip_prefix("PERF_RECORD_") {
        return Ok(of_record(record));
    }
    let (name, behind) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
    let is_function = behind.trim_start().starts_with("<-") || rest.ends_with("stack trace>");
    let (name, fields) = match name.strip_suffix(':') {
        Some(name) => (name, behind.trim()),
        None if is_function => ("function", ""),
        None => return Err(Unreadable::new("there is no event after the time", FIELDS)),
    };
    let Some(what) = fields::meaning(name, fields) else {
        return Err(if fields.is_empty() {
            Unreadable::new(format!("`{name}` has no fields"), FIELDS)
        } else {
            Unreadable::new(
                format!("the fields of `{name}` are unknown"),
                "write the text without options for other formats, and check that the line is whole",
            )
        });
    };
    let Some(cpu) = head.cpu else { return Ok(Line::Chatter) };
    // The third flag: `h` and `H` are handlers of interrupts, `s` is a softirq.
    let in_interrupt = head.flags.chars().nth(2).is_some_and(|c| "hHszZ".contains(c));
    let group = match what {
        EventKind::Switch { .. } | EventKind::Waking(_) | EventKind::Wakeup(_) => {
            fields::group_behind(behind)
        }
        _ => None,
    };
    let (current, process) = (head.current, head.process);
    Ok(Line::Event(Event { current, process, group, cpu, at: head.at, in_interrupt, what }))
}

/// A record of perf. Its time may be 0, so it is no event.
fn of_record(record: &str) -> Line<'_> {
    let thread = |pid: &str, process: &str| {
        Some(Line::Thread { pid: pid.parse().ok()?, process: process.parse().ok()? })
    };
    let of = || {
        if let Some(fork) = record.strip_prefix("FORK(") {
            // `(PROCESS:THREAD):(PARENT:ITS THREAD)`
            let (process, pid) = fork.split_once(')')?.0.split_once(':')?;
            return thread(pid, process);
        }
        if record.starts_with("COMM") {
            // `COMM: NAME:PROCESS/THREAD`
            let (process, pid) = record.rsplit_once(':')?.1.split_once('/')?;
            return thread(pid.trim(), process);
        }
        let lost = record.strip_prefix("LOST")?.split_once("lost ")?.1;
        Some(Line::Lost(lost.split_whitespace().next()?.parse().ok()?))
    };
    of().unwrap_or(Line::Chatter)
}

/// Lines that the recorders write before and between events.
fn header(line: &str) -> Option<Line<'static>> {
    if let Some(cpus) = line.strip_prefix("cpus=") {
        return Some(Line::Cpus(cpus.parse().ok()?));
    }
    let is_empty = || line.strip_prefix("CPU ")?.strip_suffix(" is empty").filter(|n| is_digits(n));
    // perf's warnings, which come into the text by `2>&1`.
    let known = is_empty().is_some()
        || line.starts_with("version = ")
        || ["Warning:", "Check IO/CPU overload!"].contains(&line)
        || line.starts_with("[ perf record: ");
    known.then_some(Line::Chatter)
}

fn lost(line: &str) -> Option<u64> {
    if let Some(record) = line.strip_prefix("PERF_RECORD_") {
        return match of_record(record) {
            Line::Lost(lost) => Some(lost),
            _ => Some(0),
        };
    }
    if let Some(processed) = line.strip_prefix("Processed ") {
        let (_, chunks) = processed.split_once(" events and lost ")?;
        return chunks.split(' ').next()?.parse().ok();
    }
    // `CPU:1 [LOST 27 EVENTS]` of the kernel, `CPU:1 [27 EVENTS DROPPED]` and `CPU:1 [EVENTS DROPPED]` of trace-cmd.
    let (_, inside) = line.strip_prefix("CPU:")?.split_once('[')?;
    let inside = inside.strip_suffix(']')?;
    match inside.strip_suffix("EVENTS DROPPED") {
        Some("") => Some(1),
        Some(number) => number.trim().parse().ok(),
        None => inside.strip_prefix("LOST ")?.strip_suffix(" EVENTS")?.parse().ok(),
    }
}

/// `#P:4` of the kernel, `nrcpus online : 4` of `perf script --header`.
fn cpus_in_comment(comment: &str) -> Option<u32> {
    let perf = comment.trim().strip_prefix("nrcpus online : ");
    let kernel = || comment.split_once("#P:").map(|(_, cpus)| cpus);
    perf.or_else(kernel)?.trim().parse().ok()
}

/// A line of a call chain: an address in perf, an arrow in ftrace.
fn is_chain(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    let is_address = first.len() <= 16 && first.bytes().all(|b| b.is_ascii_hexdigit());
    first == "=>" || is_address && brackets(line).next().is_none()
}

/// The place in the source of a line of a call chain: `sched.c:12`, `perf[146f7c]`.
fn is_source(line: &str) -> bool {
    let number = line.rsplit_once(':').is_some_and(|(_, number)| is_digits(number));
    let address = line.strip_suffix(']').and_then(|line| line.rsplit_once('['));
    number || address.is_some_and(|(_, hex)| hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The lines behind `PERF_RECORD_NAMESPACES`, with two tabs: `[0/net: 4/0xf0000075, 1/uts: ...`.
fn is_namespaces(line: &str) -> bool {
    let is_entry = |text: &str| {
        text.split_once('/').is_some_and(|(n, rest)| is_digits(n) && rest.contains(": "))
    };
    line.strip_prefix("\t\t").is_some_and(|line| is_entry(line.trim_start_matches(['[', ' '])))
}

fn is_blank_end(text: &str) -> bool {
    text.is_empty() || text.ends_with(' ')
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// `1815.091893` as nanoseconds; the fraction has up to nine digits.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = u32::try_from(fraction.len()).ok().filter(|n| (1..=9).contains(n))?;
    if !is_digits(seconds) || !is_digits(fraction) {
        return None;
    }
    let parts = fraction.parse::<u64>().ok()?.checked_mul(10_u64.pow(9 - digits))?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str) -> Event<'_> {
        match read(line, false) {
            Ok(Line::Event(event)) => event,
            other => panic!("{line}: {other:?}"),
        }
    }

    const SWITCH: &str = "prev_comm=my task prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=swapper/3 next_pid=0 next_prio=120";

    #[test]
    fn all_forms_say_the_same() {
        let task = Who { comm: "my task", pid: 12, prio: Some(120) };
        let idle = Who { comm: "swapper/3", pid: 0, prio: Some(120) };
        let heads = [
            // perf 3.x to 6.x; -F +misc,+period,+tod,+flags; with call chains names are not padded.
            "      my task     12 [003]  1815.091901:       sched:sched_switch: ",
            "my task 12 [003] 1815.091901: sched:sched_switch: ",
            "      my task     9/12    [003]  1815.091901000:       sched:sched_switch: ",
            "      my task     12 [003] K     1815.091901:          1       sched:sched_switch:      ",
            "my task 12 [003] 2026-11-28 09:53:00.123456 1815.091901: sched:sched_switch: ",
            // The kernel, trace-cmd 2.x and 3.x, and -l.
            "  my task-12    [003] d..2.  1815.091901: sched_switch: ",
            "  my task-12    [003] 1815.091901: sched_switch:         ",
            "  my task-12    (   9) [003] d..2.  1815.091901: sched_switch: ",
            "my task-12    3d..2. 1815.091901: sched_switch:         ",
        ];
        for head in heads {
            for fields in [SWITCH, "my task:12 [120] S ==> swapper/3:0 [120]"] {
                let line = format!("{head}{fields}\n");
                let event = event(&line);
                assert_eq!((event.at, event.cpu), (1_815_091_901_000, 3), "{line}");
                assert_eq!(event.current, Some(Who { prio: None, ..task }), "{line}");
                assert!(event.process.is_none_or(|pid| pid == 9), "{line}");
                let wanted = EventKind::Switch { prev: task, left: Left::Asleep, next: idle };
                assert_eq!(event.what, wanted, "{line}");
            }
        }
        // -F without comm, and without pid.
        let line = format!("12 [003] 1815.091901: sched:sched_switch: {SWITCH}");
        assert_eq!(event(&line).current, Some(Who { comm: "", pid: 12, prio: None }));
        let line = format!("my task [003] 1815.091901: sched:sched_switch: {SWITCH}");
        assert_eq!((event(&line).current, event(&line).cpu), (None, 3));
        let line = format!("[003] 1815.091901: sched:sched_switch: {SWITCH}");
        assert_eq!((event(&line).current, event(&line).cpu), (None, 3));
    }

    #[test]
    fn names_may_look_like_heads() {
        let names = [
            "a [1] b",
            "x [001] 1.5: y",
            "a 1 [0] 1.5: b",
            "d] 7 [000",
            "e/5-3",
            "1234",
            "a-1 [0] 1.5: b",
        ];
        for name in names {
            for (pid, flags) in [(" 77 ", ""), ("-77 ", "d..2. ")] {
                let line = format!(
                    " {name}{pid}[001] {flags}28.5: sched_switch: prev_comm={name} prev_pid=77 prev_prio=120 \
                     prev_state=S ==> next_comm={name} next_pid=78 next_prio=120"
                );
                let event = event(&line);
                assert_eq!(event.current, Some(Who { comm: name, pid: 77, prio: None }), "{line}");
                assert_eq!((event.cpu, event.at), (1, 28_500_000_000), "{line}");
            }
        }
        let short = "c:1 [120-77   0d.h2. 28.5: sched_waking: comm=x [001] 1.5: y pid=78 prio=120 target_cpu=000";
        assert_eq!(event(short).current, Some(Who { comm: "c:1 [120", pid: 77, prio: None }));
        assert_eq!(event(short).at, 28_500_000_000);
        let gone =
            event(":-1    -1 [001] 3002.771580: sched:sched_process_free: comm=a pid=1 prio=120");
        assert_eq!(gone.current, None);
        let gone = event(":-1    -1/-1    [001] 3002.771580: sched:sched_process_free: comm=a");
        assert_eq!(gone.current, None);
        let unknown = event("  <...>-77 [001] d..2. 28.5: sched_waking: comm=a pid=1 prio=120");
        assert_eq!(unknown.current, Some(Who { comm: "", pid: 77, prio: None }));
    }

    /// To look for a task at each place of such a line would take minutes.
    #[test]
    fn a_long_line_is_read_as_soon_as_a_short_one() {
        for part in
            ["[120]", "[1] 1.5: ", " ==> ", " a:1 [2]", ": ", " a-1 0d 1.5: ", " pid=", "(", "::"]
        {
            let long = part.repeat(100_000);
            for line in [
                long.clone(),
                format!(" a{long} 1 [001] 1.5: sched:sched_switch: {SWITCH}"),
                format!(" a 1 [001] 1.5: sched:sched_switch: {long}"),
                format!(" a 1 [001] 1.5: sched:sched_waking: comm=a{long}"),
                format!("\t    7f12ab004140 {long}"),
            ] {
                let _ = read(&line, true);
            }
        }
    }

    #[test]
    fn call_chains_of_any_address_and_symbol() {
        for line in [
            "\tffffffff8109c1b5 __schedule+0x5 ([kernel])",
            "\t           ee137 sched_setaffinity@@GLIBC_2.3.4+0x7 (/usr/lib/x86_64-linux-gnu/libc.so.6)",
            "\t          401136 main+0x10 (/tmp/a b (deleted))",
            "\t               0 [unknown] ([unknown])",
            "\t    7f12ab004140 std::vector<int, std::allocator<int> >::operator[](unsigned long)+0x1 (/bin/x)",
            "\t    7f12ab004140 core::ops::function::FnOnce::call_once{{vtable.shim}} (inlined)",
            "\tffffffff8109c1b5",
            " => __schedule",
            "=> schedule (ffffffff8109c1b5)",
        ] {
            let line = if line.starts_with('=') { format!(" {line}") } else { line.to_owned() };
            assert_eq!(read(&line, false), Ok(Line::Chain), "{line}");
        }
        for line in [
            "  sched_setaffinity.c:33",
            "  [kernel.kallsyms][ffffffff813a89c4]",
            "  perf[146f7c]",
            "  ??:0",
        ] {
            assert_eq!(read(line, true), Ok(Line::Chain), "{line}");
            read(line, false).unwrap_err();
        }
        // The beginning of an event is none, even if its name is a number.
        read("            1234  8131 [001] 280", false).unwrap_err();
    }

    #[test]
    fn records_of_perf() {
        let of = |record: &str| {
            let line = format!("swapper     0 [000]     0.000000: PERF_RECORD_{record}");
            match read(&line, false) {
                Ok(Line::Thread { pid, process }) => format!("{pid} of {process}"),
                Ok(Line::Lost(lost)) => format!("lost {lost}"),
                Ok(Line::Chatter) => "-".to_owned(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(of("FORK(8:9):(1:1)"), "9 of 8");
        assert_eq!(of("COMM: a:b/c:8/9"), "9 of 8");
        assert_eq!(of("COMM exec: ls:8/8"), "8 of 8");
        assert_eq!(of("EXIT(8:9):(1:1)"), "-");
        assert_eq!(of("MMAP2 5/5: [0x400000(0x1000) @ 0 08:01 3 4]: r-xp /bin/a b"), "-");
        assert_eq!(of("SWITCH_CPU_WIDE OUT preempt  next pid/tid:     5/5    "), "-");
        assert_eq!(of("LOST lost 27"), "lost 27");
        assert_eq!(of("NAMESPACES 5/5 - nr_namespaces: 7"), "-");
        assert_eq!(read("\t\t[0/net: 4/0xf0000075, 1/uts: 4/0xeffffffe,", false), Ok(Line::Chain));
        assert_eq!(read("\t\t 4/mnt: 4/0xf0000000]", false), Ok(Line::Chain));
        let made = "a 5 [-01] 0.000000: dummy:HG: x";
        assert_eq!(read(made, false), Ok(Line::Chatter));
    }

    #[test]
    fn headers_and_losses() {
        let of = |line: &'static str| read(line, false).unwrap();
        assert_eq!(of("# tracer: nop"), Line::Chatter);
        assert_eq!(of("# entries-in-buffer/entries-written: 1676/1676   #P:2"), Line::Cpus(2));
        assert_eq!(of("# nrcpus online : 4"), Line::Cpus(4));
        assert_eq!(of("cpus=8"), Line::Cpus(8));
        assert_eq!(of("CPU 3 is empty"), Line::Chatter);
        assert_eq!(of("version = 6"), Line::Chatter);
        assert_eq!(of("##### CPU 1 buffer started ####"), Line::Chatter);
        assert_eq!(of("CPU:1 [LOST 27 EVENTS]"), Line::Lost(27));
        assert_eq!(of("CPU:7 [204600 EVENTS DROPPED]"), Line::Lost(204_600));
        assert_eq!(of("CPU:7 [EVENTS DROPPED]"), Line::Lost(1));
        assert_eq!(of("PERF_RECORD_LOST lost 3"), Line::Lost(3));
        assert_eq!(of("Processed 1234 events and lost 5 chunks!"), Line::Lost(5));
        assert!(
            event("<idle>-0 [001] dNh3. 2.5: sched_waking: comm=a pid=1 prio=120 target_cpu=1")
                .in_interrupt
        );
        let function = event("bash-1 [000] d..2. 2.5: do_sys_open <-sys_open");
        assert_eq!(function.what, EventKind::Other { name: "function" });
        let stack = event("bash-1 [000] d..2. 2.5: <stack trace>");
        assert_eq!(stack.what, EventKind::Other { name: "function" });
        assert_eq!(of("\t /system.slice/a.service"), Line::Group("/system.slice/a.service"));
        let grouped = format!("a 1 [000] 1.5: sched:sched_switch: {SWITCH} /a/b");
        assert_eq!(event(&grouped).group, Some("/a/b"));
    }

    #[test]
    fn faults_say_what_to_do() {
        let switch = |head: &str| format!("{head} sched_switch: {SWITCH}");
        for (line, message, help) in [
            ("hello world".to_owned(), "no task with a CPU", "perf sched script"),
            ("cat 7 [000] sched:sched_switch: x".to_owned(), "no time", "perf script -F"),
            ("cat 7 [000] 1.5: ".to_owned(), "no event", "perf script -F"),
            (format!("cat 7 [000] 1.5: {SWITCH}"), "no event", "perf script -F"),
            ("cat 7 [000] 1.5: sched:sched_switch: ".to_owned(), "has no fields", "perf script -F"),
            (
                "cat 7 [000] 1.5: sched:sched_switch: prev_comm=a".to_owned(),
                "the fields of `sched:sched_switch`",
                "whole",
            ),
            (switch("cat 7 1.5:"), "no CPU in brackets", "perf script -F"),
            (switch("cat 7   0 1.5:"), "no CPU in brackets", "perf script -F"),
            (switch("cat-7 [000]73194083585987:"), "is a count, not seconds", "mono"),
            (switch("cat-7     0d..2. 12651us#:"), "begin at 0", "latency-format"),
            (switch("cat-7     0d..2. 12651us :"), "begin at 0", "latency-format"),
        ] {
            let fault = read(&line, false).unwrap_err();
            assert!(fault.message.contains(message), "{line}: {fault:?}");
            assert!(fault.help.contains(help), "{line}: {fault:?}");
        }
    }
}
