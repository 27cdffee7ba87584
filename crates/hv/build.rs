//! Builds the guest image, which the crate embeds.
//!
//! The guest is compiled for the host's own target, without an operating system: no other target has to be
//! installed.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What makes a program of the host's target a guest: no dynamic linking, no C library, no start-up code.
const FLAGS: [&str; 7] = [
    "-Crelocation-model=static",
    "-Clink-arg=-nostartfiles",
    "-Clink-arg=-nostdlib",
    "-Clink-arg=-static",
    "-Clink-arg=-no-pie",
    "-Clink-arg=-Wl,--build-id=none",
    "-Ctarget-cpu=x86-64",
];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    for crate_of_guest in ["guest", "../guest-abi", "../locks", "../scenario", "../workload"] {
        for part in ["src", "Cargo.toml"] {
            println!("cargo::rerun-if-changed={}", here.join(crate_of_guest).join(part).display());
        }
    }
    println!("cargo::rerun-if-changed={}", here.join("guest/Cargo.lock").display());
    println!("cargo::rerun-if-changed=build.rs");
    let target = env::var("TARGET").expect("cargo sets it");
    if target.starts_with("x86_64-") && target.contains("-linux-") {
        build(&here.join("guest/Cargo.toml"), &target);
    }
}

fn build(manifest: &Path, target: &str) {
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
    cargo
        .args(["build", "--release", "--quiet", "--target", target])
        .arg("--manifest-path")
        .arg(manifest)
        .arg("--target-dir")
        .arg(&target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    let status = cargo.status().expect("cargo, which runs this script, can be started");
    assert!(status.success(), "the guest image was not built: see the messages above");
    let image = target_dir.join(target).join("release/overspin-guest");
    println!("cargo::rustc-env=OVERSPIN_GUEST={}", image.display());
}
