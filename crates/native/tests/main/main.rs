//! Tests of locks, threads and worlds on this machine. They are one program, so that it is linked once.

/// Tests that need a process of their own, or no other children of it.
mod alone;
/// Programs that must not compile.
mod compile_fail;
/// The condition variable on threads.
mod condvar;
/// The names of threads across a thread's end and a fork.
mod identity;
/// Locks that a thread has left locked, and sleeps with a limit.
mod left_behind;
/// Every lock of the registry as a mutex over real threads.
mod locks;
/// The world of processes.
#[cfg(feature = "world")]
mod processes;
/// Readers of the reader-writer lock at their limit.
mod readers_limit;
/// The reader-writer lock on threads.
mod rwlock;
/// Scenarios for the tests of worlds.
#[cfg(feature = "world")]
mod scenarios;
/// Numbers of threads.
mod thread_ids;
/// Locks with time limits on threads.
mod time_limits;
/// Locks that are one word, as a kernel uses them.
mod word;
/// The world of threads.
#[cfg(feature = "world")]
mod world;
