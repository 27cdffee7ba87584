//! Installs as docs/c-interface.md says, into a prefix that did not exist before.

use overspin_testing::skip;
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const MAJOR: &str = env!("CARGO_PKG_VERSION_MAJOR");

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Whether a tool is here; says so if it is not.
fn has(tool: &str) -> bool {
    let has = Command::new(tool).arg("--version").output().is_ok();
    if !has {
        skip(&format!("{tool} is not installed"));
    }
    has
}

/// Whether whole programs can be linked statically here.
fn has_static_libc(place: &Path) -> bool {
    fs::write(place.join("empty.c"), "int main(void) { return 0; }\n").unwrap();
    let mut command = Command::new("cc");
    command.current_dir(place).args(["-static", "empty.c", "-o", "empty"]);
    let has = command.status().is_ok_and(|status| status.success());
    if !has {
        skip("there is no static C library");
    }
    has
}

/// The scripts of the document, in order.
fn scripts() -> Vec<String> {
    let text = fs::read_to_string(workspace().join("docs/c-interface.md")).unwrap();
    let scripts = text.split("```bash\n").skip(1);
    scripts.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// A folder like a checkout after `cargo build --profile dist`. It has what was built with the tests in place of
/// the build.
fn checkout() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["crates", "Cargo.toml"] {
        symlink(workspace().join(name), folder.path().join(name)).unwrap();
    }
    fs::create_dir(folder.path().join("target")).unwrap();
    let built = env::current_exe().unwrap().parent().unwrap().to_owned();
    symlink(built, folder.path().join("target/dist")).unwrap();
    folder
}

fn sh(place: &Path, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.arg("-euc").arg(script).current_dir(place);
    // The folder `target/dist` is in the checkout.
    command.env("CARGO_TARGET_DIR", place.join("target"));
    command.env_remove("PKG_CONFIG_PATH").env_remove("LD_LIBRARY_PATH").env_remove("DESTDIR");
    command.output().unwrap()
}

#[track_caller]
fn succeeds(place: &Path, script: &str) -> String {
    let output = sh(place, script);
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(place: &Path, script: &str, cause: &str, remedy: &str) {
    let output = sh(place, script);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{script}: {told}");
    assert!(told.contains(cause) && told.contains(remedy), "{script}: {told}");
}

#[test]
fn the_documented_lines_install_the_library_and_programs_run_with_it() {
    if !has("cc") || !has("pkg-config") {
        return;
    }
    let [install, statically, cpp] = &scripts()[..] else { panic!("three scripts") };
    let install = install.replace("cargo build --profile dist -p overspin-capi\n", "");
    let install = install.replace("prefix=/usr/local\n", "prefix=$PWD/prefix\n");
    assert!(install.contains("prefix=$PWD/prefix\n") && !install.contains("cargo"), "{install}");
    let folder = checkout();
    let place = folder.path();
    let said = succeeds(place, &install);
    assert!(said.ends_with("malthusian: 400\n"), "{said}");

    let lib = place.join("prefix/lib");
    let link = |name: &str| fs::read_link(lib.join(name)).unwrap();
    let soname = format!("liboverspin.so.{MAJOR}");
    assert_eq!(link("liboverspin.so"), Path::new(&soname));
    assert_eq!(link(&soname), Path::new(&format!("liboverspin.so.{VERSION}")));
    let document = fs::read_to_string(workspace().join("docs/c-interface.md")).unwrap();
    for name in [&soname, &format!("liboverspin.so.{VERSION}")] {
        assert!(document.contains(&format!("| `lib/{name}` |")), "{name} in the document");
    }
    if has("readelf") {
        let needed = succeeds(place, "readelf -d counter");
        assert!(needed.contains(&format!("Shared library: [{soname}]")), "{needed}");
        let library = succeeds(place, "readelf -d prefix/lib/liboverspin.so");
        assert!(library.contains(&format!("Library soname: [{soname}]")), "{library}");
    }
    // A new version replaces the old one: the program runs with the file that the link names.
    fs::rename(lib.join(format!("liboverspin.so.{VERSION}")), lib.join("moved")).unwrap();
    assert!(!sh(place, "./counter mcs").status.success(), "it was loaded from elsewhere");
    let again = format!(
        "sh crates/capi/install.sh --prefix \"$PWD/prefix\"; ./counter mcs; rm {}",
        lib.join("moved").display()
    );
    assert!(succeeds(place, &again).ends_with("mcs: 400\n"));

    let pkg_config = "export PKG_CONFIG_PATH=$PWD/prefix/lib/pkgconfig\n";
    let version = succeeds(place, &format!("{pkg_config} pkg-config --modversion overspin"));
    assert_eq!(version.trim(), VERSION);
    if has("c++") {
        let said = succeeds(place, &format!("{pkg_config}{cpp}"));
        assert_eq!(said, "malthusian: 1000 items, the accounts balance to 0\n");
    }
    if has_static_libc(place) {
        let said = succeeds(place, &format!("{pkg_config}{statically}"));
        assert_eq!(said, "mutex: 400\nmutex: 400\n");
        // Neither needs the shared library, and the second needs none at all.
        fs::remove_dir_all(&lib).unwrap();
        assert_eq!(succeeds(place, "./counter-static-library futex"), "futex: 400\n");
        assert_eq!(succeeds(place, "./counter-static ticket"), "ticket: 400\n");
        if has("readelf") {
            let needed = succeeds(place, "readelf -d counter-static");
            assert!(!needed.contains("NEEDED"), "{needed}");
        }
    }
}

#[test]
fn packagers_and_others_choose_the_folders() {
    if !has("pkg-config") {
        return;
    }
    let folder = checkout();
    let place = folder.path();
    succeeds(
        place,
        "DESTDIR=$PWD/stage sh crates/capi/install.sh --prefix /opt/a\\&b --libdir /opt/lib64",
    );
    let told = succeeds(
        place,
        "PKG_CONFIG_PATH=$PWD/stage/opt/lib64/pkgconfig pkg-config --cflags --libs overspin",
    );
    assert_eq!(told.trim().replace('\\', ""), "-I/opt/a&b/include -L/opt/lib64 -loverspin");
    for name in ["overspin.h", "overspin.hpp"] {
        assert!(place.join("stage/opt/a&b/include").join(name).is_file(), "{name}");
    }
    for name in ["liboverspin.so", "liboverspin.a"] {
        assert!(place.join("stage/opt/lib64").join(name).is_file(), "{name}");
    }
}

#[test]
fn what_is_wrong_is_told_before_anything_is_installed() {
    let folder = checkout();
    let place = folder.path();
    let script = "sh crates/capi/install.sh";
    refused(place, &format!("{script} --prefx /a"), "unknown option --prefx", "--prefix");
    refused(place, &format!("{script} --prefix"), "--prefix lacks its folder", "--prefix DIR");
    refused(place, &format!("{script} --prefix here"), "not an absolute path", "$PWD/here");
    refused(place, &format!("{script} --prefix '/a b'"), "has a space", "choose another");
    refused(
        place,
        &format!("{script} --prefix $PWD/prefix --from $PWD"),
        "there is no",
        "cargo build --profile dist -p overspin-capi",
    );
    assert!(!place.join("prefix").exists());
}
