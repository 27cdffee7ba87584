//! As much of HTTP as the page needs: one request without a body on each connection, and one reply. `httparse` reads the head.

mod answer;
mod gate;
mod head;
mod reply;

pub(crate) use answer::answer_all;
pub(crate) use gate::Gate;
#[cfg(test)]
pub(crate) use head::parse;
use head::read;
pub(crate) use head::{Request, is_local};
use reply::write;
pub(crate) use reply::{Reply, Status};
