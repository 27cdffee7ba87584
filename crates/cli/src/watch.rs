//! `overspin watch`: what slows this machine, or a program on it, down at the moment.

use crate::args::{EXIT_CODES, Global, some_time};
use crate::failure::{Failure, Verdict};
use crate::show::{self, Outputs};
use crate::terminal::{Terminal, error, size};
use crate::{screen, signals};
use clap::Args;
use crossterm::event::{Event, KeyCode, KeyModifiers, poll, read};
use overspin_lab::watch::{Interval, Target, Watcher, judge, prometheus, report};
use overspin_record::output::Output;
use overspin_report::{Block, Screen, WIDTH, text_on};
use overspin_serve::Scrape;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct WatchArgs {
    /// Watch this process and all that it starts
    #[arg(long, value_name = "PID", conflicts_with_all = ["cgroup", "command"])]
    pid: Option<u32>,
    /// Watch the processes of this control group: its folder, for example
    /// /sys/fs/cgroup/system.slice/postgresql.service
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    cgroup: Option<PathBuf>,
    /// Length of an interval, from 100ms on
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = some_time)]
    interval: Duration,
    /// Print one interval as plain text
    #[arg(long, conflicts_with = "command")]
    once: bool,
    /// Print N intervals as plain text
    #[arg(long, value_name = "N", conflicts_with_all = ["once", "command"],
          value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Write each interval in Prometheus' text format, over the last one, for node_exporter's textfile collector (`-`:
    /// standard output, one after the other)
    #[arg(long, value_name = "FILE")]
    prometheus: Option<PathBuf>,
    /// Answer scrapes of `http://127.0.0.1:PORT/metrics` with the last interval, from this machine only (0: any free port)
    #[arg(long, value_name = "PORT")]
    listen: Option<u16>,
    /// At the end, write all intervals and the whole time as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Start this program, watch it, and tell about the whole time on standard error when it ends
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The shortest interval: the kernel's ticks of 10 ms are its noise.
const SHORTEST: Duration = Duration::from_millis(100);
/// How soon a key, a signal or the end of the program is noticed.
const NOTICE: Duration = Duration::from_millis(100);

pub(crate) fn watch(args: &WatchArgs, global: &Global) -> Result<Verdict, Failure> {
    if args.interval < SHORTEST {
        return Err(Failure::usage(
            "an --interval below 100ms is too short: the kernel counts CPU time in ticks of 10 ms",
            "give 100ms or more",
        ));
    }
    let outputs = Outputs::new(global, &[args.json.as_ref(), args.prometheus.as_ref()])?;
    let json = outputs.open(args.json.as_ref())?;
    let scrape = args.listen.map(listen).transpose()?;
    let stop = signals::end();
    let mut child = started(&args.command)?;
    let watcher = Watcher::begin(Path::new("/"), target(args, child.as_ref())?);
    let mut session = Session::new(watcher, args.interval, stop);
    session.prometheus = args.prometheus.as_deref();
    session.scrape = scrape;
    session.kept = json.is_some().then(Vec::new);
    let is_live = outputs.prints()
        && child.is_none()
        && !args.once
        && args.count.is_none()
        && std::io::stdout().is_terminal()
        && std::io::stdin().is_terminal();
    match is_live {
        true => session.view()?,
        false => {
            let most = if args.once { Some(1) } else { args.count };
            session.plain(&outputs, most, child.is_some())?;
        }
    }
    if let Some(whole) = session.whole() {
        let blocks = report(whole, &judge(whole));
        if child.is_some() && !global.quiet {
            let screen = screen::of_stderr();
            let width = Some(screen.width.unwrap_or(WIDTH).min(WIDTH));
            eprint!("{}", text_on(&blocks, &Screen { width, ..screen }));
        } else if is_live {
            outputs.report_as_page(&blocks)?;
        }
    }
    if let Some(json) = json {
        let whole = session.whole().map(told);
        let record = json!({ "whole": whole, "intervals": session.kept });
        show::made_here(json, "overspin-watch/1", record)?;
    }
    ended(child.as_mut())
}

fn listen(port: u16) -> Result<Scrape, Failure> {
    let scrape = Scrape::open(port).map_err(|e| {
        Failure::environment(
            format!("cannot listen on port {port}: {e}"),
            "give another --listen port, or 0 for any that is free",
        )
    })?;
    eprintln!("scrape {}", scrape.address());
    Ok(scrape)
}

/// The program, as it has begun.
fn started(command: &[OsString]) -> Result<Option<Child>, Failure> {
    let [program, arguments @ ..] = command else { return Ok(None) };
    let child = Command::new(program).args(arguments).spawn().map_err(|e| {
        let cause = format!("cannot run {}: {e}", program.display());
        match e.kind() {
            ErrorKind::NotFound => {
                Failure::usage(cause, "give its path, or put its folder into PATH")
            }
            _ => Failure::usage(cause, "name a file that you may execute"),
        }
    })?;
    Ok(Some(child))
}

/// Waits for the program. If it failed, so did this command.
fn ended(child: Option<&mut Child>) -> Result<Verdict, Failure> {
    let Some(child) = child else { return Ok(Verdict::Fine) };
    let status = child.wait().map_err(|e| {
        Failure::environment(format!("cannot wait for the program: {e}"), "see whether it runs")
    })?;
    if status.success() {
        return Ok(Verdict::Fine);
    }
    eprintln!("the program ended with {status}");
    Ok(Verdict::Finding)
}

fn target(args: &WatchArgs, child: Option<&Child>) -> Result<Target, Failure> {
    if let Some(child) = child {
        return Ok(Target::Process(child.id()));
    }
    if let Some(process) = args.pid {
        if !Path::new("/proc").join(process.to_string()).is_dir() {
            return Err(Failure::usage(
                format!("there is no process {process}"),
                "`pgrep -a NAME` shows the numbers of processes",
            ));
        }
        return Ok(Target::Process(process));
    }
    let Some(folder) = &args.cgroup else { return Ok(Target::Machine) };
    if !folder.join("cgroup.procs").is_file() {
        return Err(Failure::usage(
            format!("`{}` is not the folder of a control group", folder.display()),
            "name one below /sys/fs/cgroup; `systemd-cgls` shows them",
        ));
    }
    Ok(Target::Group(folder.clone()))
}

/// An interval with its judgement.
fn told(interval: &Interval) -> Value {
    json!({ "judgement": judge(interval), "interval": interval })
}

/// Intervals, one after the other.
pub(crate) struct Session<'a> {
    watcher: Watcher,
    interval: Duration,
    stop: &'a AtomicBool,
    prometheus: Option<&'a Path>,
    scrape: Option<Scrape>,
    /// For JSON.
    kept: Option<Vec<Value>>,
}

impl<'a> Session<'a> {
    /// Goes on until `stop`, or until the process that is watched ends.
    pub(crate) fn new(watcher: Watcher, interval: Duration, stop: &'a AtomicBool) -> Self {
        Self { watcher, interval, stop, prometheus: None, scrape: None, kept: None }
    }

    pub(crate) fn whole(&self) -> Option<&Interval> {
        self.watcher.whole()
    }

    /// The next interval, written where it is asked for.
    fn take(&mut self) -> Result<Interval, Failure> {
        let interval = self.watcher.interval();
        if let Some(kept) = &mut self.kept {
            kept.push(told(&interval));
        }
        let text = || prometheus(&interval, &judge(&interval));
        if let Some(file) = self.prometheus {
            Output::create(file)?.finish_with(&text())?;
        }
        if let Some(scrape) = &self.scrape {
            scrape.set(text());
        }
        Ok(interval)
    }

    fn is_over(&self) -> bool {
        // The flag stands alone: no other memory depends on it.
        self.stop.load(Ordering::Relaxed) || self.watcher.is_over()
    }

    /// Prints intervals one below the other; none while a program has the terminal.
    pub(crate) fn plain(
        &mut self,
        outputs: &Outputs,
        most: Option<u64>,
        is_silent: bool,
    ) -> Result<(), Failure> {
        let mut taken = 0;
        loop {
            let until = Instant::now() + self.interval;
            while !self.is_over() && Instant::now() < until {
                std::thread::sleep(NOTICE.min(until.saturating_duration_since(Instant::now())));
            }
            let is_over = self.is_over();
            let interval = self.take()?;
            taken += 1;
            if !is_silent {
                let text =
                    text_on(&report(&interval, &judge(&interval)), &screen::page_on_stdout());
                let space = if taken > 1 { "\n" } else { "" };
                outputs.print(&format!("{space}{text}"))?;
            }
            if is_over || most.is_some_and(|most| taken >= most) {
                return Ok(());
            }
        }
    }

    /// Shows the last interval until the user quits.
    pub(crate) fn view(&mut self) -> Result<(), Failure> {
        let terminal = Terminal::take()?;
        let mut last = None::<Interval>;
        while !self.is_over() {
            let size = size()?;
            terminal.show(&text(last.as_ref(), size), size)?;
            let until = Instant::now() + self.interval;
            while !self.is_over() && Instant::now() < until {
                let wait = NOTICE.min(until.saturating_duration_since(Instant::now()));
                if !poll(wait).map_err(|e| error(&e))? {
                    continue;
                }
                match read().map_err(|e| error(&e))? {
                    Event::Key(key) if is_quit(key.code, key.modifiers) => return Ok(()),
                    _ => {}
                }
            }
            last = Some(self.take()?);
        }
        Ok(())
    }
}

fn is_quit(code: KeyCode, modifiers: KeyModifiers) -> bool {
    // In this mode the terminal sends Ctrl-C as a key.
    let control = modifiers.contains(KeyModifiers::CONTROL);
    matches!(code, KeyCode::Char('q' | 'Q') | KeyCode::Esc)
        || (control && matches!(code, KeyCode::Char('c' | 'd')))
}

fn text(interval: Option<&Interval>, size: (u16, u16)) -> String {
    let screen = Screen { width: Some(usize::from(size.0).min(WIDTH)), ascii: screen::is_ascii() };
    let Some(interval) = interval else { return "watching; q quits\n".into() };
    let mut blocks = report(interval, &judge(interval));
    blocks.push(Block::Text("q quits.".into()));
    text_on(&blocks, &screen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_and_interrupts_quit() {
        let none = KeyModifiers::NONE;
        assert!(is_quit(KeyCode::Char('q'), none));
        assert!(is_quit(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(!is_quit(KeyCode::Char('c'), none));
    }

    #[test]
    fn a_small_terminal_still_shows_the_sentence_first() {
        let interval = Interval { length_s: 1.0, cpus: 1, ..Interval::default() };
        let shown = text(Some(&interval), (40, 10));
        assert!(shown.starts_with("cannot tell: "), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 40), "{shown}");
    }
}
