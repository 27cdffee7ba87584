//! Every command and option as Markdown, for `docs/commands.md`, from the definitions by which arguments are
//! read.

use crate::args::EXIT_CODES;
use crate::command::command;
use clap::{Arg, ArgAction, Command};
use std::fmt::Write;

/// An option of as many commands has one row for all of them.
const SEVERAL: usize = 2;

/// A chapter for each command, with its usage and a list of its arguments and options; and before them those that several
/// commands have.
pub(crate) fn commands() -> String {
    let mut root = command();
    root.build();
    let mut rows = Vec::new();
    own_rows(&root, &mut rows);
    let count = |row: &String| rows.iter().filter(|other| *other == row).count();
    let option = |row: &str| row.split("`: ").next().unwrap_or_default().to_owned();
    let mut common: Vec<String> = Vec::new();
    for row in &rows {
        // An option that means something else elsewhere is common in the sense that more commands give it.
        let other = |known: &String| option(known) == option(row);
        match common.iter().position(other) {
            _ if count(row) < SEVERAL => {}
            None => common.push(row.clone()),
            Some(at) if count(row) > count(&common[at]) => common[at] = row.clone(),
            Some(_) => {}
        }
    }
    let mut text = String::new();
    text.push_str("## Options of all commands\n\n");
    let global = |arg: &&Arg| (arg.is_global_set() || arg.get_id() == "help") && !arg.is_hide_set();
    list(&mut text, root.get_arguments().filter(global).map(row));
    text.push_str("## Options of several commands\n\n");
    list(&mut text, common.iter().cloned());
    for command in root.get_subcommands_mut().filter(|c| c.get_name() != "help") {
        chapter(&mut text, command, &common);
    }
    text
}

/// The rows of the options of all commands from `command` on.
fn own_rows(command: &Command, rows: &mut Vec<String>) {
    if command.has_subcommands() {
        let below = command.get_subcommands().filter(|c| c.get_name() != "help");
        below.for_each(|below| own_rows(below, rows));
    } else {
        rows.extend(own(command).filter(|arg| !arg.is_positional()).map(row));
    }
}

/// The arguments and options of a command that not all commands have.
fn own(command: &Command) -> impl Iterator<Item = &Arg> {
    let own = |arg: &&Arg| !arg.is_global_set() && arg.get_id() != "help" && !arg.is_hide_set();
    command.get_arguments().filter(own)
}

/// The chapter of a command, or those of the commands below it.
fn chapter(text: &mut String, command: &mut Command, common: &[String]) {
    // Writing to a String cannot fail.
    let name = command.get_bin_name().unwrap_or_default().to_owned();
    let _ = writeln!(text, "## {name}\n");
    if let Some(about) = command.get_about() {
        let _ = writeln!(text, "{about}.\n");
    }
    if command.has_subcommands() {
        for below in command.get_subcommands_mut().filter(|c| c.get_name() != "help") {
            chapter(text, below, common);
        }
        return;
    }
    let usage = command.render_usage().to_string();
    let _ = writeln!(text, "```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
    let (shared, alone): (Vec<&Arg>, Vec<&Arg>) =
        own(command).partition(|arg| common.contains(&row(arg)));
    list(text, alone.into_iter().map(row));
    if !shared.is_empty() {
        let long = shared.iter().filter_map(|arg| arg.get_long());
        let names: Vec<String> = long.map(|name| format!("`--{name}`")).collect();
        let _ = writeln!(text, "[Also](#options-of-several-commands) {}.\n", names.join(", "));
    }
    match command.get_after_long_help().map(ToString::to_string) {
        Some(more) if more != EXIT_CODES => _ = writeln!(text, "```text\n{more}\n```\n"),
        _ => {}
    }
}

/// A list of arguments and options; nothing if there are none.
fn list(text: &mut String, rows: impl Iterator<Item = String>) {
    let before = text.len();
    text.extend(rows);
    if text.len() > before {
        text.push('\n');
    }
}

/// How an argument is written, with its values: `-o`, `--output DIR`.
fn name_of(arg: &Arg) -> String {
    let mut names: Vec<String> = Vec::new();
    names.extend(arg.get_short().map(|c| format!("-{c}")));
    names.extend(arg.get_long().map(|long| format!("--{long}")));
    let name = names.join("`, `");
    if !takes_values(arg) {
        return name;
    }
    let values = arg.get_value_names().unwrap_or_default();
    let values: Vec<&str> = values.iter().map(|v| v.as_str()).collect();
    let values = values.join(" ");
    if arg.is_positional() { values } else { format!("{name} {values}") }
}

fn row(arg: &Arg) -> String {
    let name = name_of(arg);
    let mut meaning = arg.get_help().map(ToString::to_string).unwrap_or_default();
    if matches!(arg.get_action(), ArgAction::Append) && !meaning.contains("repeat") {
        meaning += "; several are possible";
    }
    let words: Vec<String> = words(arg).collect();
    if !words.is_empty() {
        let _ = write!(meaning, ": {}", words.join(", "));
    }
    // The usage above the list says what is required.
    let default: Vec<String> =
        arg.get_default_values().iter().map(|v| format!("`{}`", v.to_string_lossy())).collect();
    if takes_values(arg) && !default.is_empty() {
        let _ = write!(meaning, "; default: {}", default.join(", "));
    }
    format!("- `{name}`: {meaning}\n")
}

/// The words that an argument can be, with their meanings.
fn words(arg: &Arg) -> impl Iterator<Item = String> {
    let all = if takes_values(arg) { arg.get_possible_values() } else { Vec::new() };
    all.into_iter().filter(|word| !word.is_hide_set()).map(|word| match word.get_help() {
        Some(help) => format!("`{}` ({help})", word.get_name()),
        None => format!("`{}`", word.get_name()),
    })
}

fn takes_values(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_testing::expect_section;

    /// To renew the page after a change: `UPDATE_EXPECT=1 cargo test -p overspin --lib published_commands`.
    #[test]
    fn published_commands_are_current() {
        let (begin, end) = ("<!-- commands: begin -->\n", "<!-- commands: end -->");
        expect_section("docs/commands.md", begin, end, &format!("\n{}", commands()));
    }

    #[test]
    fn every_command_and_option_is_there_with_a_meaning() {
        let text = commands();
        fn check(text: &str, command: &Command) {
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let at = format!("{}: {}", command.get_name(), arg.get_id());
                assert!(arg.get_help().is_some(), "{at}");
                let long = arg.get_long().filter(|long| !["help", "version"].contains(long));
                assert!(long.is_none_or(|long| text.contains(&format!("`--{long}"))), "{at}");
            }
            command.get_subcommands().for_each(|below| check(text, below));
        }
        check(&text, &command());
        for heading in
            ["## overspin run\n", "## overspin schedbench plan\n", "## overspin bench locks\n"]
        {
            assert!(text.contains(heading), "{heading}");
        }
        assert!(!text.contains("overspin help"));
    }
}
