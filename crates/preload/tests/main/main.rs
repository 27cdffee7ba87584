//! Tests of the preload library, with programs in C and with real programs. They are one program, so that it is linked once.

/// Programs in C under the library.
mod common;
/// Programs that use mutexes in all ways.
mod preload;
/// Real programs with and without the library.
mod programs;
/// Mutexes that come and go.
mod short_lived;
