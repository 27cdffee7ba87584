//! Builds the program of guests, which the crate embeds. It is linked statically: a guest has no library.

/// Makes a static program that any CPU of the architecture runs: an emulated one has no extensions.
const FLAGS: [&str; 2] = ["-Ctarget-feature=+crt-static", "-Ctarget-cpu=x86-64"];

fn main() {
    overspin_guest_build::watch(&["guest", "../xl", "../scenario", "../workload"]);
    let target = overspin_guest_build::target();
    // Guests are x86-64 Linux. A host with another C library might link the program dynamically all the same.
    if target == "x86_64-unknown-linux-gnu" || target == "x86_64-unknown-linux-musl" {
        let program = overspin_guest_build::build("overspin-xen-guest", &FLAGS);
        println!("cargo::rustc-env=OVERSPIN_XEN_GUEST={}", program.display());
    }
}
