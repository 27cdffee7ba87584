//! The consoles of guests, read by a thread each.
//!
//! `xl console` takes input only from a terminal, so each of them gets one.

use crate::{Line, Start, Xl, XlError};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;
use std::sync::mpsc::Sender;
use std::thread;

/// Bytes of a line that are kept. Of a guest that never ends its line, each part of so many counts as a line.
const LONGEST: u64 = 64 << 10;

/// What a console said.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A line for the host.
    Line(Line),
    /// Another line: the kernel's.
    Other(String),
    /// The console is closed; the last line that was not for the host, which may name the reason.
    Closed(String),
}

/// `xl console` of a guest. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Console {
    child: Child,
    terminal: File,
}

impl Console {
    /// Attaches to the guest `name`, number `number` of its run, and sends what it says.
    pub(crate) fn attach(
        xl: &Xl,
        name: &str,
        number: usize,
        to: Sender<(usize, Heard)>,
    ) -> Result<Self, XlError> {
        let failed = |cause| XlError::Terminal { cause };
        let (terminal, end) = terminal().map_err(failed)?;
        let output = terminal.try_clone().map_err(failed)?;
        let child = xl.start(&["console", name], end)?;
        // The thread ends with the console. Nobody hears it after the run, which is no error.
        thread::spawn(move || {
            let (mut last, mut line) = (String::new(), Vec::new());
            let mut from = BufReader::new(output);
            while from.by_ref().take(LONGEST).read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let text = String::from_utf8_lossy(&line);
                match Line::of_text(&text) {
                    Some(line) => _ = to.send((number, Heard::Line(line))),
                    None if text.trim().is_empty() => {}
                    None => {
                        text.trim().clone_into(&mut last);
                        let _ = to.send((number, Heard::Other(last.clone())));
                    }
                }
                line.clear();
            }
            let _ = to.send((number, Heard::Closed(last)));
        });
        Ok(Self { child, terminal })
    }

    /// Tells the guest when to begin.
    pub(crate) fn tell(&mut self, start: Start) -> std::io::Result<()> {
        self.terminal.write_all(format!("{}\n", start.to_text()).as_bytes())
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // It may have ended with its guest.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A new terminal: the side that acts as its user, and the side for a program.
fn terminal() -> std::io::Result<(File, File)> {
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&user)?;
    unlockpt(&user)?;
    let name = ptsname(&user, Vec::new())?;
    let name = name.to_str().map_err(std::io::Error::other)?;
    Ok((user.into(), File::options().read(true).write(true).open(name)?))
}
