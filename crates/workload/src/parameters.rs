//! The parameters of a workload are declared once, in the workload's file: see [`overspin_scenario::parameters!`].

/// Parameters of a workload: a field that the table does not have is refused, since a workload would run without it.
macro_rules! parameters {
    ($($declaration:tt)*) => {
        overspin_scenario::parameters! { @refuse_others $($declaration)* }
    };
}

pub(crate) use parameters;
