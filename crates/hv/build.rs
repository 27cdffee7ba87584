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
    println!("cargo::rustc-check-cfg=cfg(kvm)");
    let target = overspin_guest_build::target();
    let is_target = target.starts_with("x86_64-") && target.contains("-linux-");
    if is_target && std::env::var_os("CARGO_FEATURE_KVM").is_some() {
        println!("cargo::rustc-cfg=kvm");
        let image = overspin_guest_build::build("overspin-guest", &FLAGS);
        println!("cargo::rustc-env=OVERSPIN_GUEST={}", image.display());
    }
}
