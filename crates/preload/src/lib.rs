//! `liboverspin_preload.so` gives unmodified programs a lock of `overspin-locks` for their pthread mutexes. `overspin
//! exec` loads it; `docs/preload.md` describes its use and its limits.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `OVERSPIN_LOCK` | name of the lock; without it the library does nothing |
//! | `OVERSPIN_STATS` | `1`: statistics on standard error when the program ends |
//! | `OVERSPIN_RECORD` | `PROCESS:FILE`: a recording of all mutexes, written when the program ends |
//! | `OVERSPIN_RUN` | `PROCESS:NUMBER`: what all processes of `overspin exec` share, see `tally.rs` |
//!
//! **Construction.** The C library's mutex stays in place, and the lock stands in front of it. An acquisition takes
//! the lock, then the mutex; a release releases the mutex, then the lock. A thread that comes through the lock finds
//! the mutex free, so threads wait in the lock, by the lock's rules. *Correctness rests on the mutex alone.* So a
//! thread may go past the lock whenever the lock cannot serve it, and only loses its place in the queue:
//!
//! - while no thread has had to wait for the mutex: most mutexes never get a lock, and cost what they cost without the library;
//! - with a time limit: most locks cannot give up waiting;
//! - back from a wait of the C library on a condition variable; most waits are ours, see `waiting.rs`;
//! - without a number ([`overspin_native::try_thread_id`]) or records in the lock;
//! - inside the C library itself, whose own calls do not come here;
//! - in code that calls the C library past this one. If such code *releases* a mutex, the lock stays held;
//!   `bypass.rs` handles this case.
//!
//! Such threads sleep on the mutex. Threads that come through the lock would always be faster, so every sixteenth
//! release that leaves a sleeper keeps the lock for a while.
//!
//! Types (recursive, error-checking), error codes and the state after a fork are also those of the C library. A
//! thread that already holds a mutex goes straight to it, because the mutex type decides what happens then.
//!
//! **Not touched**: mutexes that are robust, shared between processes, or inherit or protect priority.
//!
//! The idea of a library in front of pthread mutexes is LiTL's: Guiroux, Lachaize and Quéma, "Multicore Locks: The
//! Case Is Not Closed Yet", USENIX ATC 2016. LiTL keeps a table of mutexes by address, and holds a mutex of the C
//! library with each lock for the sake of condition variables.
//!
//! # Where to look
//! | File | Content |
//! |---|---|
//! | `startup.rs`, `fork.rs` | the requests of the environment, read once; the handling of forks |
//! | `abi.rs` | the C functions that programs call instead of the C library's |
//! | `loading.rs` | libraries that will call past this one |
//! | `policy.rs` | which mutexes are served, and which acquisitions go through the lock |
//! | `passage.rs` | the order in which lock and mutex are acquired and released |
//! | `bypass.rs` | mutexes that some code releases past this library |
//! | `waiting.rs`, `waiters.rs` | waits on condition variables, and the queues of threads that wait |
//! | `shadow.rs`, `placed.rs` | the record of each mutex, and the lock beside it |
//! | `shards.rs`, `by_address.rs` | which record belongs to which mutex |
//! | `slots.rs`, `pages.rs` | the memory of the records, which goes back to the kernel |
//! | `watched.rs` | the platform of the locks, whose waiters look around |
//! | `mutex.rs`, `condition.rs`, `real.rs` | the C library's mutex and condition variable, and its functions |
//! | `arena.rs`, `fork_lock.rs`, `system.rs` | other memory, a lock for own data, and system calls that the program does not notice |
//! | `ledger.rs`, `stats.rs`, `record.rs` | accounts of mutexes: statistics, and the recordings of `overspin exec --record` |
//! | `holding.rs` | whether holders have a CPU |
//! | `place.rs` | addresses of code, as users can look them up |
//! | `tally.rs`, `becoming.rs`, `ending.rs` | what all processes of a run tell the user; programs without this library; the end |

mod abi;
mod arena;
mod becoming;
mod by_address;
mod bypass;
mod condition;
mod ending;
mod fork;
mod fork_lock;
mod holding;
mod ledger;
mod loading;
mod mutex;
mod pages;
mod passage;
mod place;
mod placed;
mod policy;
mod real;
mod record;
mod shadow;
mod shards;
mod slots;
mod startup;
mod stats;
mod system;
mod tally;
mod waiters;
mod waiting;
mod watched;

#[global_allocator]
static ARENA: arena::Arena = arena::Arena;
