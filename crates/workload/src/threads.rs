//! Equal threads that a workload begins with, dealt to the vCPUs in turn.

use crate::{Program, Start};
use alloc::format;
use alloc::vec::Vec;

/// The number of threads on `vcpus` vCPUs if `threads` are asked for; 0 means one on each.
pub(crate) fn number(threads: u32, vcpus: u32) -> u32 {
    if threads == 0 { vcpus } else { threads }
}

/// The threads `name0`, `name1`, and so on.
pub(crate) fn start(
    name: &str,
    threads: u32,
    vcpus: u32,
    program: impl Fn(u32) -> Program,
) -> Vec<Start> {
    let one = |i| Start { name: format!("{name}{i}"), vcpu: Some(i % vcpus), program: program(i) };
    (0..number(threads, vcpus)).map(one).collect()
}
