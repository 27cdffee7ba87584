//! Gives the shared library its soname, as every installed library has one. The loader looks for the name that a
//! program was linked with, and must not find another major version under it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liboverspin.so.{major}");
}
