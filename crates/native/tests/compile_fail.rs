//! Programs that must not compile. The expected messages are rustc's own and change with it;
//! `TRYBUILD=overwrite` renews them.

#[test]
fn compile_fail() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
