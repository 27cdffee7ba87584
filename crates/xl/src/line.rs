//! What a guest and its host say to each other on the guest's console, a line at a time.
//!
//! The guest says [`Line::Ready`] once it is up. The host answers with a [`Start`]. When the run is over, the guest
//! sends a [`Line::Sample`] for each report, and [`Line::End`]. It keeps the reports until then, because a line on the
//! console takes CPU time of the guest.

use serde::{Deserialize, Serialize};

/// Key of the kernel's command line that says what a guest does: words joined by commas.
pub const WORK: &str = "overspin.work";

/// Begins a line for the host. Whatever else is on the console is the kernel's.
const MARK: &str = "overspin: ";

/// A line that a guest sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The guest is up.
    Ready {
        /// Time by the guest's clock, in nanoseconds since 1970.
        now: u64,
    },
    /// A report of a thread.
    Sample(Sample),
    /// There are no more lines.
    End {
        /// Number of samples that the guest sent.
        samples: u64,
    },
    /// The guest cannot work.
    Error {
        /// The reason.
        message: String,
    },
}

/// A report of a thread, in totals since the start. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The vCPU of the thread.
    pub vcpu: u32,
    /// Time since the start of the run.
    pub at: u64,
    /// Operations.
    pub operations: u64,
    /// Largest lateness of an item since the last report.
    pub max_delta: u64,
    /// CPU time of the vCPU, by Xen's account.
    pub cpu_time: u64,
    /// Time in which the vCPU was ready and had no pCPU, by Xen's account.
    #[serde(default)]
    pub ready: u64,
    /// Time in which the vCPU waited for an event, by Xen's account.
    #[serde(default)]
    pub blocked: u64,
    /// Items with a deadline.
    pub deadlines: u64,
    /// Items that finished after their deadline.
    pub missed: u64,
}

impl Line {
    /// The line without its end.
    #[must_use]
    pub fn to_text(&self) -> String {
        // Numbers and texts can always be written as JSON.
        format!("{MARK}{}", serde_json::to_string(self).unwrap_or_default())
    }

    /// Reads a line of a console; `None` if it is not for the host or is damaged.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let (_, line) = text.split_once(MARK)?;
        serde_json::from_str(line.trim()).ok()
    }
}

/// The line that the host sends: when to begin, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Time of the guest's clock, in nanoseconds since 1970.
    pub at: u64,
    /// Length in seconds.
    pub seconds: u64,
}

impl Start {
    /// The line without its end.
    #[must_use]
    pub fn to_text(self) -> String {
        format!("go {} {}", self.at, self.seconds)
    }

    /// Reads the line; `None` if it is another one.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let mut words = text.trim().strip_prefix("go ")?.split(' ');
        let (at, seconds) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().is_none().then_some(Self { at, seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive_a_console() {
        let sample = Sample { vcpu: 1, at: 1_000_000_000, operations: 7, ..Sample::default() };
        for line in [
            Line::Ready { now: 1 },
            Line::Sample(sample),
            Line::End { samples: 2 },
            Line::Error { message: "no \"privcmd\"\nhere".into() },
        ] {
            // A terminal ends lines with a carriage return, and the kernel may have begun the line.
            let seen = format!("[    3.2] xen{}\r\n", line.to_text());
            assert_eq!(Line::of_text(&seen), Some(line));
        }
    }

    #[test]
    fn other_lines_are_ignored() {
        for text in
            ["", "overspin: ", "overspin: {\"ready\":{", "[ 0.1] reboot: Power down", "go 1 2"]
        {
            assert_eq!(Line::of_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_start_has_two_numbers() {
        let start = Start { at: 17, seconds: 3 };
        assert_eq!(Start::of_text(&format!("{}\r\n", start.to_text())), Some(start));
        for text in ["go", "go 1", "go 1 2 3", "go x 2", "stop 1 2", ""] {
            assert_eq!(Start::of_text(text), None, "{text}");
        }
    }
}
