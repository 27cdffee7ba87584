//! Tells the program how it is built: from which revision of its sources, if these are in a git repository, and with which
//! profile. Results carry both. And where the library of `overspin exec` was built.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rustc-env=OVERSPIN_PROFILE={}", profile());
    println!("cargo::rustc-env=OVERSPIN_LIBRARIES={}", folder().join("deps").display());
    // A third of the program would be names of functions. The profiles say `strip`, but cargo forgets that for a package whose
    // level of optimisation they change.
    let is = |name, value: &str| std::env::var(name).is_ok_and(|it| it == value);
    if is("PROFILE", "release") && is("DEBUG", "false") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
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

/// The profile's own folder, which holds this script's output as `build/PACKAGE/out`, and in `deps` the shared libraries of
/// the crates that are compiled.
fn folder() -> PathBuf {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    out.ancestors().nth(3).map(Path::to_owned).unwrap_or_default()
}

/// The name of the profile. Cargo's `PROFILE` says only whether it is one for debugging; the folder has its name.
fn profile() -> String {
    match folder().file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev".into(),
        Some(name) => name.into(),
        None => "unknown".into(),
    }
}
