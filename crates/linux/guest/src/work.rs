//! Threads of the kernel that take its spinlocks: `kernel/overspin_work.c`.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::thread;

use crate::Host;
use crate::talk::Say;

const FILE: &str = "/proc/overspin_work";

/// Tells the kernel.
pub(crate) fn tell(line: &str) -> Result<(), String> {
    let told = File::options().write(true).open(FILE);
    let told = told.and_then(|mut file| file.write_all(line.as_bytes()));
    told.map_err(|e| match e.kind() {
        ErrorKind::NotFound => "the kernel is of an earlier version: overspin linux build".into(),
        _ => format!("{FILE}: {e}"),
    })
}

/// The threads begin; what they did is said when all have ended. The host may ask for something else meanwhile.
pub(crate) fn go(host: &Host) -> Result<(), String> {
    tell("go")?;
    let mut host = host.clone()?;
    thread::spawn(move || {
        let said = fs::read_to_string(FILE);
        let said = said.map_or_else(|e| Say::Failed(format!("{FILE}: {e}")), Say::Worked);
        // A host that does not listen has ended the machine.
        let _ = host.say(&said);
    });
    Ok(())
}
