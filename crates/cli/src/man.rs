//! `overspin man`: manual pages, from the same source as --help.

use crate::failure::{Failure, Verdict};
use crate::show;
use clap::Args;
use clap::Command;
use clap_mangen::Man;
use overspin_record::output::{Output, OutputError};
use std::fs;
use std::path::Path;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Show the page of this command instead of the overview; a command within a command is two words, for
    /// example `bench locks`
    command: Vec<String>,
    /// Write the pages of all commands into this folder, which is created if it is missing
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Writes pages of `root`, the whole command.
pub(crate) fn man(args: &ManArgs, mut root: Command) -> Result<Verdict, Failure> {
    // Each command gets its full name, as `overspin-bench-locks`.
    root.build();
    match &args.out {
        Some(folder) => {
            fs::create_dir_all(folder).map_err(|cause| {
                let path = folder.display().to_string();
                OutputError { action: "create", path, cause }
            })?;
            all(&root, folder)?;
        }
        None => show::bytes(&page(find(&root, &args.command)?)?)?,
    }
    Ok(Verdict::Fine)
}

/// The command of this name, which has several words if it is within another command.
fn find<'a>(root: &'a Command, words: &[String]) -> Result<&'a Command, Failure> {
    let mut command = root;
    for word in words.iter().flat_map(|words| words.split_whitespace()) {
        command = command.find_subcommand(word).ok_or_else(|| {
            let above = command.get_bin_name().unwrap_or("overspin");
            let names: Vec<&str> = commands(command).map(Command::get_name).collect();
            let remedy = match names.is_empty() {
                true => format!("`{above}` has no commands of its own"),
                false => format!("commands of `{above}` are: {}", names.join(", ")),
            };
            Failure::usage(format!("there is no command `{word}`"), remedy)
        })?;
    }
    Ok(command)
}

/// The commands within a command that do something.
fn commands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|c| c.get_name() != "help" && !c.is_hide_set())
}

/// Writes the page of a command and of the commands within it.
fn all(command: &Command, folder: &Path) -> Result<(), Failure> {
    let file = folder.join(Man::new(command.clone()).get_filename());
    let mut output = Output::create(&file)?;
    std::io::Write::write_all(&mut output, &page(command)?).map_err(|e| output.error(e))?;
    output.commit()?;
    commands(command).try_for_each(|command| all(command, folder))
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    Man::new(command.clone()).render(&mut text).map_err(|e| {
        let cause = format!("cannot write the manual page: {e}");
        Failure::environment(cause, "this is a fault in overspin")
    })?;
    Ok(text)
}
