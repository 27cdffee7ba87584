//! Real Xen in an emulated machine, and the program that its guests run.
//!
//! [`emulated`] fetches Xen, a Linux and QEMU from Debian's packages, boots Xen with a dom0, and lets the dom0 make the
//! runs. The dom0 drives `xl` by `overspin-xl`, as a dom0 on real hardware does. [`worker_initramfs`] is what the guests
//! of both boot. [`guests`] are those whose kernel has our locks.
#![forbid(unsafe_code)]

pub mod emulated;
pub mod guests;
mod kernel_image;
mod pauses;
mod worker;

pub use worker::{NoWorker, module_of, program, worker_initramfs};
