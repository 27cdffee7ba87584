//! `-o FILE`, in every command that writes files: the name says which of them is meant.
//!
//! `-o result.json` is `--json result.json`, `-o page.html` the page, `-o results/` the directory of `--out`. A command whose
//! one product has an `-o` of its own keeps it.

use crate::failure::Failure;
use clap::{Arg, ArgAction, Command};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Endings of names, and the option of each. A name without an ending is a directory.
const ENDINGS: [(&str, &str); 7] = [
    ("json", "json"),
    ("csv", "csv"),
    ("md", "markdown"),
    ("svg", "svg"),
    ("html", "report"),
    ("pftrace", "trace"),
    ("toml", "scenario"),
];
const DIRECTORY: &str = "out";
/// The same for all commands: a wrong name gets an error that lists the command's own.
const HELP: &str = "Write a file whose name says which: .json, .csv, .md, .svg, .html, .pftrace, .toml, or a directory";

/// Adds the option to the commands in which it has a meaning.
pub(crate) fn add(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let command = names.iter().fold(command, |command, name| command.mut_subcommand(name, add));
    if endings(&command).is_empty() {
        return command;
    }
    command.arg(
        Arg::new("named-output")
            .long("output")
            .short('o')
            .value_name("FILE")
            .action(ArgAction::Append)
            .value_hint(clap::ValueHint::AnyPath)
            .help(HELP),
    )
}

/// The names that a command takes after `-o`; none if it has an `-o` of its own, or writes no files.
fn endings(command: &Command) -> Vec<String> {
    let own =
        command.get_arguments().any(|a| a.get_id() != "named-output" && a.get_short() == Some('o'));
    if own {
        return Vec::new();
    }
    let has = |option: &str| command.get_arguments().any(|a| a.get_long() == Some(option));
    let files =
        ENDINGS.iter().filter(|(_, option)| has(option)).map(|(ending, _)| format!(".{ending}"));
    files.chain(has(DIRECTORY).then(|| "a directory".to_owned())).collect()
}

/// The arguments with the options that each `-o` means.
pub(crate) fn meant(whole: &Command, arguments: &[OsString]) -> Result<Vec<OsString>, Failure> {
    let mut command = whole;
    let mut rest = arguments.iter();
    let mut out: Vec<OsString> = rest.next().into_iter().cloned().collect();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        if text == "--" {
            out.push(argument.clone());
            break;
        }
        if let Some(inner) = command.find_subcommand(text.as_ref()) {
            command = inner;
        }
        let attached = text.strip_prefix("--output=").or_else(|| text.strip_prefix("-o"));
        let is_option = text == "--output" || attached.is_some();
        let endings = if is_option { endings(command) } else { Vec::new() };
        if endings.is_empty() {
            out.push(argument.clone());
            continue;
        }
        let attached = attached.filter(|name| !name.is_empty()).map(OsString::from);
        // Without a name, clap says what is missing.
        let Some(name) = attached.or_else(|| rest.next().cloned()) else {
            out.push(argument.clone());
            break;
        };
        let option = option(command, &name).ok_or_else(|| {
            Failure::usage(
                format!("`{}` does not say what to write", name.to_string_lossy()),
                format!("`{}` writes {}", command.get_name(), endings.join(", ")),
            )
        })?;
        out.extend([format!("--{option}").into(), name]);
    }
    out.extend(rest.cloned());
    Ok(out)
}

/// The option that a name means in a command.
fn option(command: &Command, name: &OsStr) -> Option<&'static str> {
    let has = |option: &str| command.get_arguments().any(|a| a.get_long() == Some(option));
    let path = Path::new(name);
    if path == Path::new("-") {
        return None;
    }
    let ending = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    let found = match ending {
        Some(ending) if !path.is_dir() => {
            ENDINGS.iter().find(|(e, _)| *e == ending).map(|(_, o)| *o)
        }
        _ => Some(DIRECTORY),
    };
    found.filter(|option| has(option))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::command;

    fn meant_by(arguments: &[&str]) -> Result<Vec<String>, String> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let all = meant(&command(), &arguments).map_err(|failure| failure.cause())?;
        Ok(all.into_iter().map(|a| a.into_string().unwrap()).collect())
    }

    #[test]
    fn the_name_says_what_it_is() {
        let run = [
            "overspin",
            "-q",
            "run",
            "a.toml",
            "-o",
            "r.json",
            "-oR.CSV",
            "--output=t.pftrace",
            "--output",
            "dir",
        ];
        let expected = [
            "overspin",
            "-q",
            "run",
            "a.toml",
            "--json",
            "r.json",
            "--csv",
            "R.CSV",
            "--trace",
            "t.pftrace",
            "--out",
            "dir",
        ];
        assert_eq!(meant_by(&run).unwrap(), expected);
        let sweep = ["overspin", "sweep", "a.toml", "-o", "page.html"];
        assert_eq!(meant_by(&sweep).unwrap()[3..], ["--report", "page.html"]);
    }

    #[test]
    fn an_own_option_stays_and_so_do_programs_arguments() {
        for own in [
            &["overspin", "report", "a.json", "-o", "b.html"][..],
            &["overspin", "calibrate", "-o", "here.toml"],
            &["overspin", "measure", "command", "--", "cc", "-o", "a.json"],
            &["overspin", "exec", "--lock", "mcs", "--", "cc", "-o", "a.json"],
        ] {
            assert_eq!(meant_by(own).unwrap(), own, "{own:?}");
        }
    }

    #[test]
    fn a_name_that_says_nothing_is_refused_with_those_that_do() {
        let error = meant_by(&["overspin", "run", "a.toml", "-o", "a.xlsx"]).unwrap_err();
        assert!(error.contains("`a.xlsx` does not say what to write"), "{error}");
        assert!(meant_by(&["overspin", "doctor", "-o", "a.csv"]).is_err(), "it has no samples");
    }
}
