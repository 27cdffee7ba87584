//! Tests of the C library and of its installation. They are one program, so that it is linked once.

/// The header and the library, with programs in C and C++.
mod c;
/// Installing as docs/c-interface.md says.
mod install;
