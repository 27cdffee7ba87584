//! Builds the guest image, which the crate embeds. It is compiled for the host's own target, without an operating system.

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
    overspin_guest_build::watch(&[
        "guest",
        "../guest-abi",
        "../histogram",
        "../locks",
        "../scenario",
        "../sched",
        "../workload",
    ]);
    if std::env::var_os("CARGO_FEATURE_GUEST").is_none() {
        return;
    }
    let target = overspin_guest_build::target();
    if target.starts_with("x86_64-") && target.contains("-linux-") {
        let image = overspin_guest_build::build("overspin-guest", &FLAGS);
        println!("cargo::rustc-env=OVERSPIN_GUEST={}", image.display());
    }
}
