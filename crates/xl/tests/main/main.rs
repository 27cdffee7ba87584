//! Tests of runs through `xl`.

/// A script that stands for `xl`.
mod fake_xl;
