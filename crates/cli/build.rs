//! Tells the program how it is built: from which revision of its sources, if these are in a git repository, and with which
//! profile. Results carry both.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rustc-env=OVERSPIN_PROFILE={}", profile());
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

/// The name of the profile. Cargo's `PROFILE` says only whether it is one for debugging; the profile's own folder has its
/// name, and holds this script's output as `build/PACKAGE/out`.
fn profile() -> String {
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let folder = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    match folder.and_then(|name| name.to_str()) {
        Some("debug") => "dev".into(),
        Some(name) => name.into(),
        None => "unknown".into(),
    }
}
