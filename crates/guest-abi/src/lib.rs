//! The memory and the hypercalls that the micro-hypervisor shares with its guests.
//!
//! A guest is a static x86-64 program that runs in ring 3 of a virtual machine. Its virtual addresses are its
//! physical addresses. It owns everything from [`LOWEST`] to the end of its memory.
//!
//! # Start
//! A vCPU starts at the entry point of the program, with the address of [`SharedInfo`] in `rdi`, the address of
//! its own [`VcpuPage`] in `fs:0`, and a stack. vCPU 0 starts by itself. It starts the others with
//! [`port::VCPU_UP`].
//!
//! # Hypercalls
//! A hypercall is a write of 32 bits to an I/O port (`out dx, eax`); see [`port`]. Arguments that are longer are
//! in the calling vCPU's page. A result, if there is one, is in [`VcpuPage::args`]`[0]` when the write returns.
//!
//! # Events
//! An event is a bit of [`VcpuPage::pending`]; see [`event`]. The host sets bits and the guest clears them. While
//! [`VcpuPage::masked`] is 0, the host makes a vCPU with a pending event call its handler
//! ([`VcpuPage::handler`]) before it goes on: it pushes a frame below the red zone, sets `masked`, and lets the
//! vCPU continue in the handler. [`VcpuPage::upcalls`] says which events lead to an upcall. [`event::KICK`] never
//! does: it is a latch to poll for.
//!
//! ```text
//!   rsp of the interrupted code
//!   - 128 bytes of red zone
//!   -   8   rip of the interrupted code
//!   -   8   its flags                        <- rsp in the handler
//! ```
//!
//! A handler saves all registers that it uses, clears `masked` and returns by `popfq; ret 128`.
//!
//! Every field is an atomic, because both sides may write at any time. The host believes nothing that it reads
//! here: a guest that writes nonsense harms itself.
#![no_std]

mod burn;
mod stats;

pub use burn::burn;
pub use stats::{LockStats, TaskStats, Traced, Unmaps, Waits, kind};

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The first address that a guest may use. Its page tables are below.
pub const LOWEST: u64 = 2 << 20;

/// The first word of [`SharedInfo`].
pub const MAGIC: u64 = 0x7370_696e_6f76_6572;

/// No time: of a timer that is not set, and of a slice without an end.
pub const NEVER: u64 = u64::MAX;

/// The shortest time between two ticks, in nanoseconds.
pub const SHORTEST_TICK: u32 = 100_000;

/// I/O ports: the hypercalls. `value` is what the guest writes.
pub mod port {
    /// Prints `value` bytes (at most 256) at the address `args[0]`.
    pub const CONSOLE: u16 = 0x510;
    /// Gives the pCPU up; the vCPU stays runnable.
    pub const YIELD: u16 = 0x511;
    /// Sleeps until an event is pending; arms the timer as [`TIMER`] does.
    pub const BLOCK: u16 = 0x512;
    /// Sleeps until [`KICK`](super::event::KICK) is pending, or another event if events are not masked; arms the
    /// timer as [`TIMER`] does.
    pub const POLL: u16 = 0x513;
    /// Sends an event of vCPU `value & 0xff_ffff` of this domain: bit number `value >> 24`.
    pub const SEND: u16 = 0x514;
    /// Arms the one-shot timer: [`TIMER`](super::event::TIMER) becomes pending at the time in
    /// [`deadline`](super::VcpuPage::deadline).
    pub const TIMER: u16 = 0x515;
    /// Starts vCPU `value`.
    pub const VCPU_UP: u16 = 0x516;
    /// Stops this vCPU for good.
    pub const VCPU_DOWN: u16 = 0x517;
    /// 0: the domain has done its work. Anything else: it has failed, and the host stops it.
    pub const SHUTDOWN: u16 = 0x518;
    /// Reports the work of a task: `value` is its number, `args` are `kops`, the greatest delay, the CPU time,
    /// deadlines, and missed deadlines. Times are in picoseconds.
    pub const REPORT: u16 = 0x519;
    /// Says that this vCPU, which was given notice of its preemption, holds no lock.
    pub const GIVE_UP: u16 = 0x51a;
    /// Asks the host to take the traced moments away: the ring is full.
    pub const FLUSH: u16 = 0x51b;
    /// Does nothing: to measure a hypercall.
    pub const NOTHING: u16 = 0x51c;
    /// Takes this vCPU's part of the pages to touch away: they are absent until it touches them again.
    pub const FRESH: u16 = 0x51d;
    /// Starts the ticks of this vCPU: while it runs, [`TICK`](super::event::TICK) becomes pending every `value`
    /// nanoseconds (at least [`SHORTEST_TICK`](super::SHORTEST_TICK)), counted from `args[0]`. If several were due while it
    /// did not run, one comes. 0 stops them.
    pub const TICKS: u16 = 0x51e;
}

/// Events, as bits of [`VcpuPage::pending`].
pub mod event {
    /// A kick: what a waiter for a lock polls for.
    pub const KICK: u32 = 1;
    /// The one-shot timer has expired.
    pub const TIMER: u32 = 1 << 1;
    /// The host is about to preempt this vCPU, and waits a moment.
    pub const NOTICE: u32 = 1 << 2;
    /// A wake-up of a sleeper on a word of memory.
    pub const WAKE: u32 = 1 << 3;
    /// A tick.
    pub const TICK: u32 = 1 << 4;
    /// Free for the guest: events from here on.
    pub const FIRST_FREE: u32 = 1 << 5;
    /// The events that a guest may send.
    pub const SENDABLE: u32 = !(TIMER | NOTICE | TICK);
}

/// What a domain is told, once.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct SharedInfo {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// Number of vCPUs.
    pub vcpus: AtomicU32,
    /// Number of locks.
    pub locks: AtomicU32,
    /// Number of tasks that the workload begins with.
    pub tasks: AtomicU32,
    /// Nonzero: trace contended locks.
    pub traces: AtomicU32,
    /// The time in nanoseconds is `(rdtsc - tsc_base) * tsc_scale >> 32`.
    pub tsc_base: AtomicU64,
    /// See `tsc_base`.
    pub tsc_scale: AtomicU64,
    /// Iterations of [`burn()`] in 2^20 ns on an undisturbed CPU.
    pub burn_rate: AtomicU64,
    /// Address of the [`VcpuPage`]s.
    pub pages: AtomicU64,
    /// Address of the argument: for our own image, a `Job` in JSON.
    pub argument: AtomicU64,
    /// Its length in bytes.
    pub argument_len: AtomicU64,
    /// Address of free memory.
    pub heap: AtomicU64,
    /// Its length in bytes.
    pub heap_len: AtomicU64,
    /// Address of the [`LockStats`]: those of vCPU 0 first. In a domain with locks of user mode, those of its first tasks
    /// follow the vCPUs'.
    pub lock_stats: AtomicU64,
    /// Address of the [`TaskStats`].
    pub task_stats: AtomicU64,
    /// Address of the rings of [`Traced`] moments: that of vCPU 0 first.
    pub rings: AtomicU64,
    /// Moments in a ring.
    pub ring_len: AtomicU64,
    /// When the last vCPU of all initial domains comes up, in nanoseconds.
    pub all_up: AtomicU64,
    /// Address of the pages to touch: those of vCPU 0 first.
    pub touch: AtomicU64,
    /// Bytes of them for each vCPU.
    pub touch_len: AtomicU64,
}

/// What one vCPU shares with the host. Times are in nanoseconds since the start of the run.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct VcpuPage {
    /// The address of this page.
    pub this: AtomicU64,
    /// The number of the vCPU in its domain.
    pub id: AtomicU32,
    /// 1: it wants to run and does not.
    pub preempted: AtomicU32,
    /// 1: the host is about to preempt it, and waits for [`port::GIVE_UP`].
    pub notice: AtomicU32,
    /// Runstate: 0 running, 1 runnable, 2 blocked, 3 offline.
    pub state: AtomicU32,
    /// Since when.
    pub state_since: AtomicU64,
    /// Time in each runstate before that. The second is steal.
    pub times: [AtomicU64; 4],
    /// When its slice ends; [`NEVER`] if it has no end.
    pub slice_end: AtomicU64,
    /// Dispatches so far.
    pub dispatches: AtomicU64,
    /// Pending events.
    pub pending: AtomicU32,
    /// 1: no upcalls.
    pub masked: AtomicU32,
    /// Address of the upcall handler; 0: none.
    pub handler: AtomicU64,
    /// Time of the one-shot timer; [`NEVER`] stops it.
    pub deadline: AtomicU64,
    /// Number of locks that it holds.
    pub held: AtomicU32,
    /// Moments in its ring.
    pub traced: AtomicU32,
    /// Arguments of hypercalls.
    pub args: [AtomicU64; 8],
    /// CPU time in which it waited for locks.
    pub waiting: AtomicU64,
    /// Part of it in which it spun.
    pub spinning: AtomicU64,
    /// Free for the guest.
    pub own: [AtomicU64; 16],
    /// Events that lead to an upcall: all but [`event::KICK`], unless the guest writes something else here.
    pub upcalls: AtomicU32,
    /// What it did to unmap memory.
    pub unmaps: Unmaps,
}
