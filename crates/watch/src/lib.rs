//! What observers see of a run: traces for [Perfetto](perfetto), [timelines](timeline) for pages, the view of `overspin
//! top`, and [explanations](explain) of what waits were spent on.
#![forbid(unsafe_code)]

pub mod explain;
pub mod perfetto;
pub mod timeline;
pub mod top;
