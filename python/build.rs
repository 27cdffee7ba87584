//! Puts the preload library of `overspin exec` beside the package's files, for wheels (the feature `preload`): a wheel
//! has the shared library of one crate only.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const LIBRARY: &str = "liboverspin_preload.so";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if env::var_os("CARGO_FEATURE_PRELOAD").is_some() && is_linux {
        build();
    }
}

fn build() {
    let variable = |name| env::var_os(name).expect("cargo sets it");
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    for of_preload in ["preload", "native", "locks"] {
        let folder = here.join("../crates").join(of_preload);
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    let package = here.join("overspin").join(LIBRARY);
    println!("cargo::rerun-if-changed={}", package.display());
    // A folder of its own: the build that runs this script has locked the other one.
    let target_dir = PathBuf::from(variable("OUT_DIR")).join("preload");
    // Threads wait in this library, so it has full optimisation in every build but one for debugging. It is small.
    let (profile, folder) = match env::var("PROFILE").as_deref() {
        Ok("release") => ("dist", "dist"),
        _ => ("dev", "debug"),
    };
    let mut cargo = Command::new(variable("CARGO"));
    // Wrappers of the outer build, clippy's for one, compile nothing.
    cargo.env_remove("RUSTC_WRAPPER").env_remove("RUSTC_WORKSPACE_WRAPPER");
    cargo
        .args(["build", "--quiet", "--package", "overspin-preload", "--profile", profile])
        .arg("--manifest-path")
        .arg(here.join("../Cargo.toml"))
        .arg("--target-dir")
        .arg(&target_dir);
    let status = cargo.status().expect("cargo, which runs this script, can be started");
    assert!(status.success(), "the preload library was not built: see the messages above");
    let built = target_dir.join(folder).join(LIBRARY);
    std::fs::copy(&built, &package).expect("the folder of the package can be written to");
}
