//! For build scripts: compiles the program of guests that is in the folder `guest` of the crate at hand.
//!
//! It is compiled for the host's own target: no other target has to be installed.
#![forbid(unsafe_code)]

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn here() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
}

/// Builds again whenever one of these crates changes, which are named by their folders.
///
/// # Panics
/// Outside of a build script.
pub fn watch(crates: &[&str]) {
    for crate_of_guest in crates {
        for part in ["src", "Cargo.toml"] {
            println!(
                "cargo::rerun-if-changed={}",
                here().join(crate_of_guest).join(part).display()
            );
        }
    }
    println!("cargo::rerun-if-changed={}", here().join("guest/Cargo.lock").display());
    println!("cargo::rerun-if-changed=build.rs");
}

/// The target of the crate at hand, which is the guest's, too.
///
/// # Panics
/// Outside of a build script.
#[must_use]
pub fn target() -> String {
    env::var("TARGET").expect("cargo sets it")
}

/// Compiles the program `name` with these flags of the compiler, and returns its place.
///
/// # Panics
/// If it cannot be compiled.
#[must_use]
pub fn build(name: &str, flags: &[&str]) -> PathBuf {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let target_dir = out.join("guest");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    // What is set for the host's crates is not meant for the guest: flags, wrappers (clippy's, for one), profiles.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let of_host = ["CARGO_PROFILE_", "CARGO_BUILD_", "CARGO_ENCODED_", "CARGO_TARGET_"];
        if of_host.iter().any(|prefix| text.starts_with(prefix))
            || ["RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"].contains(&&*text)
        {
            cargo.env_remove(name);
        }
    }
    // A build with full optimisation has guests with full optimisation; any other is to be ready soon.
    let full = env::var("OPT_LEVEL").is_ok_and(|level| level == "3");
    let profile = if full { "release" } else { "quick" };
    cargo
        .args(["build", "--profile", profile, "--quiet", "--target", &target()])
        .arg("--manifest-path")
        .arg(here().join("guest/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    let status = cargo.status().expect("cargo, which runs this script, can be started");
    assert!(status.success(), "`{name}` was not built: see the messages above");
    target_dir.join(target()).join(profile).join(name)
}
