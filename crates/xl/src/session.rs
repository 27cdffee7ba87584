//! A run: pool, guests, start, reports, and the host as it was.

use crate::console::{Console, Heard};
use crate::pool::TakenPool;
use crate::{Images, Job, Line, Sample, Start, Xl, XlError, guest};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What a guest reported, in the order of its lines.
pub type Reports = Vec<Sample>;

/// How often a waiting run looks whether it shall stop.
const LOOK: Duration = Duration::from_millis(100);
/// From the moment in which all guests are up to their start: all of them must read the line by then.
const LEAD: Duration = Duration::from_secs(1);
/// Time ahead for each guest: the line takes its way through xenconsoled.
const LEAD_EACH: Duration = Duration::from_millis(100);
/// Time for all guests to boot, and for each vCPU on a pCPU. An emulated Linux takes some 3 s of CPU time, and more if its
/// vCPUs spin for each other.
const BOOT: (u64, u64) = (60, 30);
/// Time from the end of a run to all reports, and for each vCPU on a pCPU.
const REPORT: (u64, u64) = (30, 10);

/// Makes a run, and returns what each guest reported. `folder` is for configuration files. `step` hears what happens,
/// `stop` says whether to give up. The host is as before, whatever happens.
///
/// # Errors
/// If anything fails, or `stop` says so.
pub fn run(
    xl: &Xl,
    job: &Job,
    images: &Images,
    folder: &Path,
    step: &mut dyn FnMut(String),
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Reports>, XlError> {
    step(format!("pool {} of {} pCPUs", job.pool.name, job.pool.cpus.len()));
    let pool = TakenPool::make(xl, &job.pool, folder)?;
    let result = {
        let mut guests = Guests { xl, names: Vec::new(), consoles: Vec::new() };
        let done = guests.work(job, images, folder, step, stop);
        let destroyed = guests.destroy();
        done.and_then(|reports| destroyed.map(|()| reports))
    };
    let restored = pool.restore();
    result.and_then(|reports| restored.map(|()| reports))
}

/// Starts the guests of a run, and returns what their kernels say on their consoles until all have switched themselves off, or
/// until `seconds` have passed. Nobody tells a worker to begin. The rest is as in [`run`].
///
/// # Errors
/// If anything fails, or `stop` says so.
pub fn watch(
    xl: &Xl,
    job: &Job,
    images: &Images,
    folder: &Path,
    step: &mut dyn FnMut(String),
    stop: &dyn Fn() -> bool,
) -> Result<Vec<String>, XlError> {
    let pool = TakenPool::make(xl, &job.pool, folder)?;
    let result = {
        let mut guests = Guests { xl, names: Vec::new(), consoles: Vec::new() };
        let watched = guests.watch(job, images, folder, step, stop);
        // Those that switched themselves off are gone, or will soon be, which is no failure.
        let _ = guests.destroy();
        watched
    };
    let restored = pool.restore();
    result.and_then(|consoles| restored.map(|()| consoles))
}

/// What a Linux says when it has switched itself off. A PVH guest, which has no ACPI to do so, only halts then.
const LAST_WORDS: [&str; 2] = ["reboot: Power down", "reboot: System halted"];

/// Guests that exist. Dropping destroys them as far as that works.
struct Guests<'a> {
    xl: &'a Xl,
    names: Vec<String>,
    consoles: Vec<Console>,
}

impl Guests<'_> {
    /// Starts all guests, and returns what their consoles say.
    fn start(
        &mut self,
        job: &Job,
        images: &Images,
        folder: &Path,
        step: &mut dyn FnMut(String),
        stop: &dyn Fn() -> bool,
    ) -> Result<Receiver<(usize, Heard)>, XlError> {
        let (to, heard) = channel();
        for (number, guest) in job.guests.iter().enumerate() {
            if stop() {
                return Err(XlError::Stopped);
            }
            step(format!("guest {} of {}", number + 1, job.guests.len()));
            let file = folder.join(format!("{}.cfg", guest.name));
            let path = file.display().to_string();
            std::fs::write(&file, guest::config(guest, &job.pool.name, images))
                .map_err(|cause| XlError::File { path: path.clone(), cause })?;
            // Paused, so that its console is open before it says anything. If `xl` fails half-way, the guest may exist.
            self.names.push(guest.name.clone());
            self.xl.run(&["create", "-p", &path])?;
            self.consoles.push(Console::attach(self.xl, &guest.name, number, to.clone())?);
        }
        for name in &self.names {
            self.xl.run(&["unpause", name])?;
        }
        step("guests boot".into());
        Ok(heard)
    }

    fn watch(
        &mut self,
        job: &Job,
        images: &Images,
        folder: &Path,
        step: &mut dyn FnMut(String),
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<String>, XlError> {
        let heard = self.start(job, images, folder, step, stop)?;
        let began = Instant::now();
        let mut consoles = vec![String::new(); job.guests.len()];
        let mut off = vec![false; job.guests.len()];
        while began.elapsed() < Duration::from_secs(job.seconds) && off.contains(&false) {
            if stop() {
                return Err(XlError::Stopped);
            }
            match heard.recv_timeout(LOOK) {
                Ok((number, Heard::Other(line))) => {
                    off[number] |= LAST_WORDS.iter().any(|words| line.contains(words));
                    consoles[number] += &line;
                    consoles[number].push('\n');
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(consoles)
    }

    fn work(
        &mut self,
        job: &Job,
        images: &Images,
        folder: &Path,
        step: &mut dyn FnMut(String),
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Reports>, XlError> {
        let heard = self.start(job, images, folder, step, stop)?;
        let hearing = Hearing { job, heard, stop };
        let vcpus: u64 = job.guests.iter().map(|guest| u64::from(guest.vcpus)).sum();
        let per_cpu = vcpus.div_ceil(job.pool.cpus.len().max(1) as u64);
        let mut begin = Start { at: 0, seconds: job.seconds };
        let mut ready = vec![false; job.guests.len()];
        let booting = Instant::now();
        let mut times = vec![(0, booting); job.guests.len()];
        hearing.until(
            &mut ready,
            "boot",
            BOOT.0 + BOOT.1 * per_cpu,
            |number, line| match line {
                Line::Ready { now } => {
                    times[number] = (now, Instant::now());
                    true
                }
                _ => false,
            },
        )?;
        // The guests' clocks agree, because Xen keeps them; this program's own clock may be another one.
        for (now, seen) in times {
            begin.at = begin.at.max(now.saturating_add(nanos(seen.elapsed())));
        }
        let lead = LEAD + LEAD_EACH * u32::try_from(job.guests.len()).unwrap_or(u32::MAX);
        begin.at = begin.at.saturating_add(nanos(lead));
        for (console, guest) in self.consoles.iter_mut().zip(&job.guests) {
            console.tell(begin).map_err(|cause| XlError::Guest {
                guest: guest.name.clone(),
                said: format!("its console is closed: {cause}"),
            })?;
        }
        step(format!("guests work for {} s", job.seconds));
        let mut reports = vec![Reports::new(); job.guests.len()];
        let mut ended = vec![false; job.guests.len()];
        let mut lost = None;
        let limit = job.seconds + REPORT.0 + REPORT.1 * per_cpu;
        hearing.until(&mut ended, "report", limit, |number, line| match line {
            Line::Sample(sample) => {
                reports[number].push(sample);
                false
            }
            Line::End { samples } => {
                if reports[number].len() as u64 != samples {
                    lost = Some((number, samples));
                }
                true
            }
            _ => false,
        })?;
        match lost {
            None => Ok(reports),
            Some((number, samples)) => Err(XlError::Guest {
                guest: job.guests[number].name.clone(),
                said: format!(
                    "{} of its {samples} reports came over the console",
                    reports[number].len()
                ),
            }),
        }
    }

    /// Destroys all guests; returns the first failure.
    fn destroy(&mut self) -> Result<(), XlError> {
        self.consoles.clear();
        let mut result = Ok(());
        for name in std::mem::take(&mut self.names) {
            result = result.and(self.xl.run(&["destroy", &name]).map(|_| ()));
        }
        result
    }
}

impl Drop for Guests<'_> {
    fn drop(&mut self) {
        let _ = self.destroy();
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Waits for lines of all guests of a run.
struct Hearing<'a> {
    job: &'a Job,
    heard: Receiver<(usize, Heard)>,
    stop: &'a dyn Fn() -> bool,
}

impl Hearing<'_> {
    /// Hears lines until `done` holds for each guest, at most for some seconds; `line` says whether its guest is done.
    fn until(
        &self,
        done: &mut [bool],
        what: &'static str,
        seconds: u64,
        mut line: impl FnMut(usize, Line) -> bool,
    ) -> Result<(), XlError> {
        let began = Instant::now();
        while !done.iter().all(|done| *done) {
            if (self.stop)() {
                return Err(XlError::Stopped);
            }
            if began.elapsed() > Duration::from_secs(seconds) {
                let late = self.job.guests.iter().zip(done.iter()).filter(|(_, done)| !**done);
                let names: Vec<&str> = late.map(|(guest, _)| &*guest.name).collect();
                return Err(XlError::Late { guests: names.join(", "), what, seconds });
            }
            let failed = |number: usize, said: String| XlError::Guest {
                guest: self.job.guests[number].name.clone(),
                said,
            };
            match self.heard.recv_timeout(LOOK) {
                Ok((number, Heard::Line(Line::Error { message }))) => {
                    return Err(failed(number, message));
                }
                Ok((number, Heard::Line(Line::Sample(Sample { vcpu, .. }))))
                    if vcpu >= self.job.guests[number].vcpus =>
                {
                    let vcpus = self.job.guests[number].vcpus;
                    let said = format!(
                        "it reports of vCPU {vcpu}, and has vCPUs 0 to {}",
                        vcpus.max(1) - 1
                    );
                    return Err(failed(number, said));
                }
                Ok((number, Heard::Line(heard))) => done[number] |= line(number, heard),
                Ok((number, Heard::Closed(last))) if !done[number] => {
                    let said = format!("it ended before it could {what}; its last words: {last}");
                    return Err(failed(number, said));
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                // Every console said that it is closed, which was an error if its guest was not done.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
            }
        }
        Ok(())
    }
}
