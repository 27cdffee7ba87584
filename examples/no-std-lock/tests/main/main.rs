//! Tests of the locks for kernels. They are one program, so that it is linked once.

/// The static library in a program in C that has nothing else.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod kernel;
/// The locks on a machine that is made of threads.
mod threads;
