//! Programs, and what they use.

use std::io::{self, BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Host;
use crate::talk::{Ran, Say};

/// Runs a program to its end, and hands each line that it prints to the host.
pub(crate) fn run(command: &[String], folder: &str, host: &mut Host) -> Result<Ran, String> {
    let [name, arguments @ ..] = command else { return Err("no program is named".into()) };
    let (output, input) = io::pipe().map_err(|e| e.to_string())?;
    let began = Instant::now();
    let child = {
        let errors = input.try_clone().map_err(|e| e.to_string())?;
        Command::new(name)
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root")
            .env("LANG", "C")
            .stdin(Stdio::null())
            .stdout(input)
            .stderr(errors)
            .spawn()
            .map_err(|e| format!("`{name}` in {folder}: {e}"))?
    };
    for line in BufReader::new(output).split(b'\n') {
        let line = line.map_err(|e| e.to_string())?;
        host.say(&Say::Line(String::from_utf8_lossy(&line).into_owned()))?;
    }
    let (status, usage) = wait(child.id())?;
    let elapsed_s = began.elapsed().as_secs_f64();
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Ran {
        status,
        elapsed_s,
        user_s: seconds(usage.ru_utime),
        system_s: seconds(usage.ru_stime),
        preempted: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
        slept: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
    })
}

/// Waits for the end of the child `id`: its exit status, and what it and its children used.
fn wait(id: u32) -> Result<(i32, libc::rusage), String> {
    let mut status = 0;
    // SAFETY: `rusage` is numbers, for which zeros are values.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to variables of ours.
    let ended = unsafe { libc::wait4(id.cast_signed(), &raw mut status, 0, &raw mut usage) };
    if ended < 0 {
        return Err(io::Error::last_os_error().to_string());
    }
    let code = if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    };
    Ok((code, usage))
}
