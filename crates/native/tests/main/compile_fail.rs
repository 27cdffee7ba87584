//! Programs that must not compile. The expected messages are rustc's own and change with it;
//! `TRYBUILD=overwrite` renews them.

use crate::alone::turn;
use overspin_testing::{deep, skip};

#[test]
fn compile_fail() {
    if !deep() {
        return skip(
            "programs that must not compile, which takes another build of the crate: OVERSPIN_DEEP=1",
        );
    }
    let _turn = turn();
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
