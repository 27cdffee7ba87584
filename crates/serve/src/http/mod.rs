//! As much of HTTP as the page needs: one request without a body on each connection, and one reply. `httparse` reads the head.

mod gate;
mod head;
mod reply;

pub(crate) use gate::Gate;
#[cfg(test)]
pub(crate) use head::parse;
pub(crate) use head::{Request, is_local, read};
pub(crate) use reply::{Reply, Status, write};
