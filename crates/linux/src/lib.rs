//! Linux kernels whose only spinlock is a lock of Overspin, and the machines that run them.
//!
//! | File | What it holds |
//! |---|---|
//! | [`object`] | the locks as an object file: `locks/`, compiled without the standard library |
//! | [`source`] | the kernel's source: the distribution's package, or a folder |
//! | [`stock`] | kernels of the distribution's packages, and any other: without our locks |
//! | [`kernel`] | what is changed in the source, how it is configured and compiled |
//! | [`init`] | the first process of guests, `guest/`, in an initial file system |
//! | [`image`] | the disk of guests: a compiler, and a tree to build |
//! | [`machine`] | a machine of QEMU that boots a kernel |
//! | [`guest`] | a machine with our first process, which does what it is asked for |
//! | [`benchmark`] | benchmarks inside guests |
//! | [`inside`] | what the kernel of a guest counted during a run |
//! | [`world`] | the world `linux`: scenarios whose guests are such kernels |
//! | [`talk`] | what host and guest say to each other |
//! | [`needs`] | what a machine must have |
//! | [`torture`] | the kernel's own judges of its locks: `locktorture`, `rcutorture`, and its tests at boot |
//! | [`boots`] | boots, again and again, and where a kernel that hangs is |
//! | `monitor` | QEMU's monitor |
//! | `kernel/` | the kernel's side in C, under the licence of the kernel (GPL-2.0) |
#![forbid(unsafe_code)]

pub mod benchmark;
pub mod boots;
pub mod guest;
pub mod image;
pub mod init;
mod initramfs;
pub mod inside;
pub mod kernel;
pub mod machine;
mod monitor;
pub mod needs;
pub mod object;
mod program;
pub mod source;
pub mod stock;
pub mod talk;
pub mod torture;
pub mod world;

pub use initramfs::Initramfs;
pub use program::{Guard, LinuxError, alone, cache, guard_of};

/// The kernel's own lock, as the kernel chooses it: a queue that knows of vCPUs under KVM and Xen, test and set in emulation.
pub const STOCK: &str = "stock";
/// The kernel's own queue, which serves in order: what it takes on a machine that does not look like a guest.
pub const STOCK_FAIR: &str = "stock-fair";

/// Names of the locks that fit a kernel's word of 4 bytes, in the order of `locks/src/lib.rs`.
pub const LOCKS: [&str; 13] = [
    "lock-byte",
    "ttas",
    "ticket-small",
    "ticket",
    "ticket-backoff",
    "xen-pv",
    "pv-ticket-2012-small",
    "pv-ticket-2012",
    "pv-ticket",
    "qspinlock",
    "qspinlock-tas",
    "qspinlock-unfair",
    "pv-qspinlock",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_kernels_locks() {
        let code = include_str!("../locks/src/lib.rs");
        let list = code.split_once("kinds! { $").unwrap().1.split_once('}').unwrap().0;
        let types: Vec<&str> =
            list.split_whitespace().filter(|word| word.parse::<u32>().is_err()).collect();
        assert_eq!(types.len(), LOCKS.len(), "{types:?}");
        // Names are those of the types, in lower case and with hyphens.
        for (kind, name) in types.iter().zip(LOCKS) {
            assert_eq!(kind.to_lowercase(), name.replace('-', ""));
        }
    }
}
