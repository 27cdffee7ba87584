//! Commands that this build leaves out, because they would have made it longer and serve few.

use crate::failure::Failure;
use crate::show;

/// Says that the command at hand is left out, and gives the line that builds it and runs the same.
pub(crate) fn left_out(what: &str, feature: &str) -> Failure {
    let command = show::command();
    let arguments = command.strip_prefix("overspin ").unwrap_or_default();
    Failure::usage(
        format!("this build of overspin is without {what}, so that it takes less time to build"),
        format!(
            "in the folder of its sources: cargo run --release --features {feature} -- {arguments}"
        ),
    )
}

/// The same for what needs Xen's guests.
#[cfg(not(feature = "xen"))]
pub(crate) fn without_xen() -> Failure {
    left_out("Xen's guests and its emulated host", "xen")
}
