//! Threads of the kernel that take its spinlocks: `kernel/overspin_work.c`.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::thread;

use crate::Host;
use crate::talk::Say;

const FILE: &str = "/proc/overspin_work";
const NOTES: &str = "/proc/overspin_notes";

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

/// The counter by which the threads tell times.
pub(crate) fn clock() -> u64 {
    // SAFETY: every x86-64 has the instruction, and Linux allows it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// What the threads noted; they have ended.
pub(crate) fn notes() -> Result<Vec<u8>, String> {
    fs::read(NOTES).map_err(|e| format!("{NOTES}: {e}"))
}
