//! `overspin linux exec`: a program of this host in a guest whose kernel has one lock or another.

use super::measure::machine_of;
use super::{KernelArgs, Teller, failure, in_scratch, kernel_of};
use crate::args::{EXIT_CODES, Global};
use crate::failure::{Failure, Verdict};
use crate::show;
use crate::signals;
use clap::Args;
use overspin_linux::guest::{Guest, NoAnswer};
use overspin_linux::machine::Files;
use overspin_linux::talk::{Ask, Ran, Root, Say};
use overspin_linux::{STOCK, guard_of, needs};
use std::cell::RefCell;
use std::time::Duration;

/// The limit of what only gets ready.
const READY: Duration = Duration::from_secs(60);
/// A program without a limit of its own.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(super) struct ExecArgs {
    /// Lock of the guest's kernel: one of `overspin linux torture`, stock or stock-fair
    #[arg(long, value_name = "NAME", default_value = STOCK)]
    lock: String,
    #[command(flatten)]
    size: super::measure::SizeArgs,
    #[command(flatten)]
    kernel: KernelArgs,
    /// The program and its arguments; it sees this machine's files, and what it writes is gone at the end
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<String>,
}

pub(super) fn exec(args: &ExecArgs, global: &Global) -> Result<Verdict, Failure> {
    args.kernel.locks(std::slice::from_ref(&args.lock), &[])?;
    needs::programs(&needs::TO_RUN).map_err(failure)?;
    in_scratch(|scratch| {
        let guard = &guard_of(scratch);
        let teller = Teller::new(global);
        let built = kernel_of(&args.kernel, &teller, guard)?;
        let (machine, init, _) = machine_of(&built, &args.size, &teller, guard)?;
        // From here on others may go on.
        drop(built);
        let machine = machine.with_lock(&args.lock);
        let stop = signals::interrupted();
        let answer = |no: NoAnswer| match no {
            NoAnswer::Error(error) => failure(error),
            NoAnswer::Stopped | NoAnswer::TooLong => {
                Failure::environment("the guest was stopped", "run the same command again")
            }
        };
        let files = Files::OfHost;
        let mut guest =
            Guest::boot(&machine, &init, files, scratch.path(), scratch, &stop).map_err(answer)?;
        guest.ask(&Ask::Root(Root::Host), READY, &mut |_| {}, &stop).map_err(answer)?;
        let here = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let folder = here.to_string_lossy().into_owned();
        let ask = Ask::Run { command: args.command.clone(), folder };
        // It is the program's output, which --quiet does not silence. Without a reader the program need not go on.
        let lost = RefCell::new(None);
        let mut line = |text: &str| {
            if lost.borrow().is_none() {
                *lost.borrow_mut() = show::bytes(format!("{text}\n").as_bytes()).err();
            }
        };
        let no_reader = || lost.borrow().is_some();
        let said = guest.ask(&ask, FOREVER, &mut line, &|| no_reader() || stop());
        if let Some(failure) = lost.take() {
            return Err(failure);
        }
        match said.map_err(answer)? {
            Say::Ran(ran) => {
                if !global.quiet {
                    eprintln!("{}", words(&args.lock, &ran));
                }
                Ok(if ran.status == 0 { Verdict::Fine } else { Verdict::Finding })
            }
            other => {
                let cause = format!("the guest says {other:?}");
                Err(Failure::environment(cause, "this is a fault in overspin"))
            }
        }
    })
}

/// What the program used.
fn words(lock: &str, ran: &Ran) -> String {
    let Ran { status, elapsed_s, user_s, system_s, preempted, slept, .. } = ran;
    format!(
        "in a guest with {lock}: exit status {status}, {elapsed_s:.2} s, {user_s:.2} s user, {system_s:.2} s system, \
         {preempted} switches, {slept} sleeps"
    )
}
