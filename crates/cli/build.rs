//! Tells the program from which revision of its sources it is built, if these are in a git repository. Results
//! carry it.

use std::path::Path;
use std::process::Command;

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    println!("cargo::rerun-if-changed=build.rs");
    let Some(revision) = git(&["rev-parse", "--short=12", "HEAD"]) else { return };
    // HEAD names a branch, and the log of HEAD changes with each commit.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file])
            && Path::new(&path).exists()
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
    let mark = if changed.is_none_or(|files| !files.is_empty()) { "+" } else { "" };
    println!("cargo::rustc-env=OVERSPIN_REVISION={revision}{mark}");
}
