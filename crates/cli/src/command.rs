//! The command line: every command, with its options and what runs it.

use crate::args::{EXIT_CODES, Global};
use crate::built::version;
use crate::catalog::Parts;
use crate::failure::{Failure, Verdict};
use crate::{
    advise, bench, calibrate, check, compare, doctor, exec, explain, fit, import, linux, list, man,
    measure, merge, named_output, report, reproduce, run, schedbench, serve, show, top, validate,
    watch, xen_emulated,
};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// What locks and CPU schedulers do to each other when there are more vCPUs than CPUs.
#[derive(Debug, Parser)]
#[command(name = "overspin", version = version(), after_long_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a published experiment and put its figures beside the published ones
    Reproduce(reproduce::ReproduceArgs),
    /// Run a scenario
    Run(run::RunArgs),
    /// Run a scenario along axes: every combination of its `[[vary]]` tables, -L and -P
    Sweep(run::SweepCommandArgs),
    /// Join the directories that the parts of a sweep or of many seeds wrote (`--shard`)
    Merge(merge::MergeArgs),
    /// Explain why a run is slow: which locks, which causes, whose vCPUs, and the longest waits
    Explain(explain::ExplainArgs),
    /// Plan, run and report schedbench's .bench files
    Schedbench(schedbench::SchedbenchArgs),
    /// Run a .bench file on real Xen in an emulated machine, from Debian's packages, without root (in builds with the
    /// feature `xen`)
    XenEmulated(xen_emulated::XenEmulatedArgs),
    /// Compile a Linux kernel whose spinlock is one of the locks, and let the kernel's own tests judge it
    Linux(linux::LinuxArgs),
    /// Convert another tool's workload to a scenario
    Import(import::ImportArgs),
    /// Write a page that shows results: an HTML file for a browser, with charts, tables and a timeline
    Report(report::ReportArgs),
    /// Serve a live page on this machine: turn locks, schedulers and sizes in a browser, and see what follows
    Serve(serve::ServeArgs),
    /// Compare results: files of samples, each with the first one
    Compare(compare::CompareArgs),
    /// Run a program with a lock in place of its pthread mutexes
    Exec(exec::ExecArgs),
    /// Say what other locks, and overcommit, would do to a program that `exec --record` recorded
    Fit(fit::FitArgs),
    /// Show the names that scenarios can use, and the experiments
    List(list::ListArgs),
    /// Check a lock: model checker, random schedules, threads, and bugs inserted on purpose (in builds with the feature
    /// `check`)
    Check(check::CheckArgs),
    /// Measure the speed of overspin itself
    Bench(bench::BenchArgs),
    /// Measure this machine: real benchmarks, and what interrupts its threads
    Measure(measure::MeasureArgs),
    /// Measure what operations of this machine cost, and write a machine profile that scenarios can name
    Calibrate(calibrate::CalibrateArgs),
    /// Say how far a host can be overcommitted with guests of one kind: where it breaks, and what moves it most
    Advise(advise::AdviseArgs),
    /// Compare the simulator with this machine: locks, sleepers, weights and caps, simulated and measured
    Validate(validate::ValidateArgs),
    /// Show a run as xentop shows a host: pCPUs, domains, vCPUs, locks, steal. Keys: q quits, space pauses, + and
    /// - or the arrows change the speed
    Top(top::TopArgs),
    /// Watch this machine, or a program on it, and name what slows it down: steal, quotas, too few CPUs, pause-loop exits of
    /// guests, waits for mutexes
    Watch(watch::WatchArgs),
    /// Look at this machine: what the commands lack here, what each missing thing costs, and the remedy
    Doctor(doctor::DoctorArgs),
    /// Write shell completions to standard output
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Write a manual page to standard output, or all of them to a folder
    Man(man::ManArgs),
}

/// The commands in groups, by what a reader wants. `help` is in none.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Ask a question",
        &["run", "sweep", "advise", "explain", "compare", "report", "serve", "reproduce", "top"],
    ),
    (
        "Real programs and machines",
        &[
            "exec",
            "watch",
            "fit",
            "import",
            "measure",
            "calibrate",
            "validate",
            "doctor",
            "schedbench",
            "xen-emulated",
            "linux",
        ],
    ),
    ("Parts", &["list", "check", "bench"]),
    ("Other", &["merge", "completions", "man"]),
];

/// The command line, whose help lists the commands in groups.
pub(crate) fn command() -> clap::Command {
    let command = Args::command();
    let about = |name: &str| {
        let all = command.get_subcommands().find(|c| c.get_name() == name);
        let about = all.and_then(clap::Command::get_about).map(ToString::to_string);
        let about = about.unwrap_or_default();
        // The first part of the sentence is enough in a list.
        about.split(": ").next().unwrap_or_default().to_owned()
    };
    let mut groups = String::new();
    for (heading, names) in GROUPS {
        groups += &format!("\n{heading}:\n");
        for name in names {
            let about =
                overspin_report::wrap_to(&about(name), 64).replace('\n', "\n                ");
            groups += &format!("  {name:<13} {about}\n");
        }
    }
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n{groups}\n`overspin COMMAND --help` tells more about a command.\n\n\
         Options:\n{{options}}{{after-help}}"
    );
    named_output::add(command.help_template(template))
}

/// What these arguments mean, the first of which is the name of the program. An error is also the path of --help and --version.
pub(crate) fn understood(arguments: &[std::ffi::OsString]) -> Result<Args, Failure> {
    let mut command = command();
    let meant = named_output::meant(&command, arguments)?;
    let matches = command.try_get_matches_from_mut(meant);
    let args = matches
        .and_then(|matches| Args::from_arg_matches(&matches).map_err(|e| e.format(&mut command)));
    args.map_err(|mut error| {
        keep_near_suggestion(&mut error);
        Failure::Arguments(Box::new(error))
    })
}

/// Keeps only the nearest suggestion of another command in an error, and none that is not near: `nope` is not `top`.
fn keep_near_suggestion(error: &mut clap::Error) {
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => return,
    };
    let names = match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names,
        Some(ContextValue::String(name)) => vec![name],
        _ => return,
    };
    if let Some(near) = overspin_sched::nearest(&typed, names.iter().map(String::as_str)) {
        let near = ContextValue::Strings(vec![near.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, near);
    }
}

/// Runs the command of these arguments.
pub(crate) fn run(args: &Args, parts: &Parts) -> Result<Verdict, Failure> {
    match &args.command {
        Command::Reproduce(command) => reproduce::reproduce(command, &args.global),
        Command::Run(command) => run::run(command, &args.global),
        Command::Sweep(command) => run::sweep(command, &args.global),
        Command::Merge(command) => merge::merge(command, &args.global),
        Command::Explain(command) => explain::explain(command, &args.global),
        Command::Schedbench(command) => schedbench::schedbench(command, &args.global),
        Command::Linux(command) => linux::linux(command, &args.global),
        Command::XenEmulated(command) => xen_emulated::xen_emulated(command, &args.global),
        Command::Import(command) => import::import(command, &args.global),
        Command::Report(command) => report::report(command, &args.global),
        Command::Serve(command) => serve::serve(command, &args.global),
        Command::Compare(command) => compare::compare(command, &args.global),
        Command::Exec(command) => exec::exec(command),
        Command::Fit(command) => fit::fit(command, &args.global),
        Command::List(command) => list::list(command, &args.global),
        Command::Check(command) => check::check(command, &args.global, parts),
        Command::Bench(command) => bench::bench(command, &args.global, parts),
        Command::Measure(command) => measure::measure(command, &args.global),
        Command::Calibrate(command) => calibrate::calibrate(command, &args.global),
        Command::Advise(command) => advise::advise(command, &args.global),
        Command::Validate(command) => validate::validate(command, &args.global),
        Command::Top(command) => top::top(command, &args.global),
        Command::Watch(command) => watch::watch(command, &args.global),
        Command::Doctor(command) => doctor::doctor(command, &args.global),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut self::command(), "overspin", &mut text);
            show::bytes(&text).map(|()| Verdict::Fine)
        }
        Command::Man(command) => man::man(command, self::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        grouped.sort_unstable();
        let all = Args::command();
        let mut names: Vec<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
        names.sort_unstable();
        assert_eq!(grouped, names);
    }

    #[test]
    fn only_near_commands_are_suggested() {
        let said =
            |typed: &str| understood(&["overspin".into(), typed.into()]).unwrap_err().cause();
        assert!(!said("nope").contains("similar"), "{}", said("nope"));
        assert!(
            said("repport").contains("a similar subcommand exists: 'report'"),
            "{}",
            said("repport")
        );
    }
}
