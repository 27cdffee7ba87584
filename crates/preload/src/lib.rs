//! `liboverspin_preload.so`: unmodified programs get a lock of `overspin-locks` for their pthread mutexes.
//! `overspin exec` loads it; `docs/preload.md` describes its use and its limits.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `OVERSPIN_LOCK` | name of the lock; without it the library does nothing |
//! | `OVERSPIN_STATS` | `1`: statistics on standard error when the program ends |
//!
//! **Construction.** The C library's mutex stays in place, and the lock stands before it: to acquire is to
//! acquire the lock, then the mutex; to release is to release the mutex, then the lock. Whoever comes through
//! the lock finds the mutex free, so that waiting is done in the lock, by the lock's rules. *Correctness
//! rests on the mutex alone.* Therefore a thread may go past the lock whenever the lock cannot serve it, and
//! only its place in the queue is lost:
//!
//! - with a time limit: most locks cannot give up waiting;
//! - back from a condition variable, whose functions release and acquire the mutex inside the C library;
//!   cancellation during such a wait is thereby the C library's, too;
//! - without a number ([`overspin_native::try_thread_id`]) or records in the lock;
//! - inside the C library itself, whose own calls do not come here;
//! - in code that calls the C library past this one. If it *releases* a mutex so, the lock stays held: what is done
//!   then, `bypass.rs` describes.
//!
//! Such threads sleep on the mutex. Those that come through the lock would always be faster, so every
//! sixteenth release that leaves a sleeper keeps the lock for a while.
//!
//! Types (recursive, error-checking), error codes and the state after a fork are the C library's as well.
//! A thread that already holds a mutex goes straight to it, for what happens then is a matter of the type.
//!
//! **Not touched**: mutexes that are robust, shared between processes, or inherit or protect priority.
//!
//! The general idea of a library that stands before pthread mutexes is LiTL's: Guiroux, Lachaize and Quéma,
//! "Multicore Locks: The Case Is Not Closed Yet", USENIX ATC 2016. It keeps a table of mutexes by address and
//! holds a mutex of the C library with each lock for the sake of condition variables.
//!
//! # Where to look
//! | File | What is in it |
//! |---|---|
//! | `startup.rs`, `fork.rs` | what the environment asks for, once; what a fork needs |
//! | `abi.rs` | the C functions that programs call instead of the C library's |
//! | `policy.rs` | which mutexes are served, and which acquisitions go through the lock |
//! | `passage.rs` | the order in which lock and mutex are acquired and released |
//! | `bypass.rs` | mutexes that some code releases past this library |
//! | `shadow.rs` | what is kept for each mutex, and the table of it |
//! | `watched.rs` | the platform of the locks: waiters that look around |
//! | `mutex.rs`, `real.rs` | the C library's mutex, and its functions |
//! | `arena.rs`, `gate.rs`, `system.rs` | memory, a lock for own data, and system calls that the program does not notice |
//! | `stats.rs` | statistics |

mod abi;
mod arena;
mod bypass;
mod fork;
mod gate;
mod mutex;
mod passage;
mod policy;
mod real;
mod shadow;
mod startup;
mod stats;
mod system;
mod watched;

#[global_allocator]
static ARENA: arena::Arena = arena::Arena;
