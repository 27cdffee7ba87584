//! What must not compile. The expected messages are rustc's own and change with it: set
//! `TRYBUILD=overwrite` to renew them.

#[test]
fn compile_fail() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
