//! The `overspin` command with its built-in parts.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    overspin_cli::main_with(overspin_cli::Catalog::builtin())
}
