//! Processes that a program leaves behind when it ends. They would disturb the runs that follow, and outlive us.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the last processes of a program may take to end by themselves: those of a pipeline do.
const GRACE: Duration = Duration::from_millis(200);
/// How long a process may take to end after SIGTERM, and again after SIGKILL.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often to look whether they have ended.
const LOOK: Duration = Duration::from_millis(1);
/// How often to look for processes, which takes some milliseconds where there are many.
const SEARCH: Duration = Duration::from_millis(50);
/// The most that a message names.
const NAMED: usize = 3;

/// A process that a program left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftBehind {
    /// The program.
    pub by: String,
    /// The name of the process, as `ps` shows it.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// Whether it was ended.
    pub ended: bool,
}

/// What was left behind in measurements that have ended.
static TOLD: Mutex<Vec<LeftBehind>> = Mutex::new(Vec::new());

/// Keeps this for [`words`].
pub(crate) fn tell_at_end(left: Vec<LeftBehind>) {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).extend(left);
}

/// A sentence for each program of this process that left something behind: what was ended.
#[must_use]
pub fn words() -> Vec<String> {
    words_of(&TOLD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// How many processes, in words.
pub(crate) fn processes(number: usize) -> String {
    if number == 1 { "1 process".into() } else { format!("{number} processes") }
}

fn words_of(all: &[LeftBehind]) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut groups: Vec<(&str, bool)> = all.iter().map(|one| (&*one.by, one.ended)).collect();
    groups.sort_unstable();
    groups.dedup();
    for (by, ended) in groups {
        let these: Vec<&LeftBehind> =
            all.iter().filter(|one| (&*one.by, one.ended) == (by, ended)).collect();
        let number = processes(these.len());
        let mut sentence = if ended {
            format!("ended {number} that `{by}` left behind: ")
        } else {
            format!("{number} that `{by}` left behind would not end: ")
        };
        for (i, one) in these.iter().take(NAMED).enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            // Writing to a String cannot fail.
            let _ = write!(sentence, "{comma}{} (pid {})", one.name, one.pid);
        }
        if let more @ 1.. = these.len().saturating_sub(NAMED) {
            let _ = write!(sentence, " and {more} more");
        }
        sentences.push(sentence);
    }
    sentences
}

/// A process as `/proc` shows it.
struct Process {
    pid: u32,
    parent: u32,
    name: String,
}

/// A line of `/proc/PID/stat`: `12 (name) S 1 ...`. Names have any characters. `None` for a zombie: it has ended, and has
/// nothing below it.
fn parsed(stat: &str) -> Option<Process> {
    let (pid, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut words = rest.split_ascii_whitespace();
    let state = words.next()?;
    let parent = words.next()?.parse().ok()?;
    let printable = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    (state != "Z").then_some(Process { pid: pid.parse().ok()?, parent, name: printable })
}

/// The processes below this one.
fn below(top: u32) -> Vec<Process> {
    let mut of_parent: HashMap<u32, Vec<Process>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if !entry.file_name().as_encoded_bytes()[0].is_ascii_digit() {
            continue;
        }
        // It may have ended since, or have a name that is no text.
        let stat = fs::read(entry.path().join("stat")).unwrap_or_default();
        if let Some(process) = parsed(&String::from_utf8_lossy(&stat)) {
            of_parent.entry(process.parent).or_default().push(process);
        }
    }
    let mut found = of_parent.remove(&top).unwrap_or_default();
    let mut next = 0;
    while next < found.len() {
        let more = of_parent.remove(&found[next].pid);
        found.extend(more.into_iter().flatten());
        next += 1;
    }
    found
}

/// Ends what is below the keeper of `program`, until the keeper is `gone`; what was there.
pub(crate) fn end(program: &str, keeper: u32, gone: impl Fn() -> bool) -> Vec<LeftBehind> {
    let within = |time: Duration, look: Duration, work: &mut dyn FnMut()| {
        let began = Instant::now();
        loop {
            if gone() {
                return true;
            }
            if began.elapsed() >= time {
                return false;
            }
            work();
            sleep(look);
        }
    };
    if within(GRACE, LOOK, &mut || {}) {
        return Vec::new();
    }
    let mut left: Vec<LeftBehind> = Vec::new();
    let mut all_gone = false;
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let mut asked = Vec::new();
        all_gone = within(PATIENCE, SEARCH, &mut || {
            for Process { pid, name, .. } in below(keeper) {
                if asked.contains(&pid) {
                    continue;
                }
                asked.push(pid);
                // SAFETY: no memory is involved. It was below the keeper a moment ago; numbers are not given again so
                // soon.
                unsafe { libc::kill(pid.cast_signed(), signal) };
                if left.iter().all(|one| one.pid != pid) {
                    left.push(LeftBehind { by: program.into(), name, pid, ended: true });
                }
            }
        });
        if all_gone {
            break;
        }
    }
    if !all_gone {
        let still = below(keeper);
        for one in &mut left {
            one.ended = still.iter().all(|process| process.pid != one.pid);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_characters_are_read() {
        let Process { pid, parent, name } = parsed("12 (a) S (b\n) R 7 12 12 0").unwrap();
        assert_eq!((pid, parent, name.as_str()), (12, 7, "a) S (b?"));
        assert!(parsed("12 (sh) Z 7 12 12 0").is_none(), "it has ended");
        assert!(parsed("").is_none() && parsed("12 (sh").is_none());
    }

    #[test]
    fn what_was_left_behind_is_told_in_a_sentence_of_each_program() {
        let one = |by: &str, pid: u32, ended: bool| LeftBehind {
            by: by.into(),
            name: "sleep".into(),
            pid,
            ended,
        };
        assert!(words_of(&[]).is_empty());
        let said = words_of(&[one("sh", 123, true)]);
        assert_eq!(said, ["ended 1 process that `sh` left behind: sleep (pid 123)"]);
        let mut many: Vec<LeftBehind> = (1..=5).map(|pid| one("sh", pid, true)).collect();
        many.push(one("sh", 6, false));
        assert_eq!(
            words_of(&many),
            [
                "1 process that `sh` left behind would not end: sleep (pid 6)",
                "ended 5 processes that `sh` left behind: \
                 sleep (pid 1), sleep (pid 2), sleep (pid 3) and 2 more",
            ]
        );
    }

    #[test]
    fn this_process_is_below_its_parent() {
        let is_here = |top: u32| below(top).iter().any(|p| p.pid == std::process::id());
        assert!(is_here(std::os::unix::process::parent_id()) && !is_here(std::process::id()));
    }
}
