//! How this program was built, for `--version`, for records, and for benchmarks.

use crate::args::Global;
use overspin_record::environment::Build;
use overspin_report::Block;
use std::sync::LazyLock;

/// The profile whose figures can be compared with those of the documents.
const DIST: &str = "dist";

/// How this program was built.
#[must_use]
pub fn build() -> Build {
    let features = [
        ("check", cfg!(feature = "check")),
        ("hv", cfg!(feature = "hv")),
        ("xen", cfg!(feature = "xen")),
    ];
    Build {
        revision: option_env!("OVERSPIN_REVISION").map(str::to_owned),
        profile: Some(env!("OVERSPIN_PROFILE").to_owned()),
        features: features.iter().filter(|(_, has)| *has).map(|(name, _)| (*name).into()).collect(),
    }
}

/// Says how this program was built, above the figures of a benchmark. Warns if these are not those of the documents.
pub(crate) fn above_figures(global: &Global) -> Block {
    let build = build();
    let profile = build.profile.as_deref().unwrap_or_default();
    if profile != DIST && !global.quiet {
        eprintln!(
            "warning: profile {profile} is built to be ready soon, and its figures are not those of the documents; \
             build with: cargo build --profile {DIST}"
        );
    }
    Block::Text(format!("Built from {}.", build.words()))
}

/// What `--version` prints after the program's name.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> =
        LazyLock::new(|| format!("{} ({})", env!("CARGO_PKG_VERSION"), build().words()));
    &VERSION
}
