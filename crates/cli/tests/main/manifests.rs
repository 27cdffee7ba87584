//! Crates as a registry shows them: what their manifests say, what their packages contain, and for which Rust they are.

use overspin_testing::root;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Categories of crates.io, as far as they are ours. A registry refuses others.
const CATEGORIES: [&str; 9] = [
    "algorithms",
    "concurrency",
    "development-tools::testing",
    "hardware-support",
    "no-std",
    "no-std::no-alloc",
    "os::linux-apis",
    "simulation",
    "virtualization",
];

/// Packages outside of the workspace, which name their Rust themselves.
const OUTSIDE: [&str; 4] =
    ["crates/hv/guest", "crates/xen/guest", "crates/linux/locks", "examples/no-std-lock/kernel"];

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// All packages of the workspace.
fn packages() -> Vec<Value> {
    let text = cargo(&["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&text).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Whether registries may have it: `publish` is null then, and a list of the allowed registries otherwise.
fn is_published(package: &Value) -> bool {
    package["publish"].is_null()
}

fn texts<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    value[key].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap()
}

/// The folder of a package.
fn folder(package: &Value) -> &Path {
    Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap()
}

#[test]
fn a_published_crate_has_what_a_registry_shows() {
    let packages = packages();
    let published: Vec<&Value> = packages.iter().filter(|p| is_published(p)).collect();
    let names: Vec<&str> = published.iter().map(|p| name(p)).collect();
    for library in ["overspin-locks", "overspin-native", "overspin-sched", "overspin-check"] {
        assert!(names.contains(&library), "{library} is not published");
    }
    for package in published {
        let name = name(package);
        assert!(package["description"].as_str().is_some_and(|d| d.len() > 30), "{name}");
        assert_eq!(package["license"], "MIT OR Apache-2.0", "{name}");
        let keywords = texts(package, "keywords");
        assert!((1..=5).contains(&keywords.len()), "{name}: 5 keywords at most: {keywords:?}");
        for keyword in keywords {
            let legal = |c: char| c.is_ascii_alphanumeric() || "_-+".contains(c);
            let starts = keyword.starts_with(|c: char| c.is_ascii_alphanumeric());
            assert!(keyword.len() <= 20 && starts && keyword.chars().all(legal), "{keyword}");
        }
        let categories = texts(package, "categories");
        assert!((1..=5).contains(&categories.len()), "{name}: {categories:?}");
        for category in categories {
            assert!(CATEGORIES.contains(&category), "{name}: is {category} on crates.io?");
        }
        // Others can only have what is published, in the version that is named.
        for dependency in package["dependencies"].as_array().unwrap() {
            // cargo leaves out of a package those of tests that have a path and no version.
            let of_tests = dependency["kind"] == "dev" && dependency["req"] == "*";
            if dependency["path"].is_null() || of_tests {
                continue;
            }
            let needed = dependency["name"].as_str().unwrap();
            assert!(names.contains(&needed), "{name} needs {needed}, which is not published");
            let version = format!("^{}", env!("CARGO_PKG_VERSION"));
            assert_eq!(dependency["req"], version.as_str(), "{name} needs {needed}");
        }
    }
}

#[test]
fn a_crate_that_is_not_published_says_why() {
    let mut unpublished = 0;
    for package in packages().iter().filter(|p| !is_published(p)) {
        let manifest = package["manifest_path"].as_str().unwrap();
        if !manifest.contains("/crates/") {
            continue;
        }
        let text = fs::read_to_string(manifest).unwrap();
        let (before, _) = text.split_once("\npublish = false\n").expect(manifest);
        let reason = before.lines().last().unwrap();
        assert!(reason.starts_with("# ") && reason.len() > 30, "{manifest}: {reason}");
        unpublished += 1;
    }
    assert!(unpublished > 8, "{unpublished}");
}

/// One text: the README is the front page of the documentation, so its example is compiled and run.
#[test]
fn the_readme_of_a_library_is_the_front_page_of_its_documentation() {
    let mut libraries = 0;
    for package in packages().iter().filter(|p| folder(p).join("src/lib.rs").exists()) {
        let readme = folder(package).join("README.md");
        if !is_published(package) && !readme.exists() || name(package) == "overspin-python" {
            continue;
        }
        let text = fs::read_to_string(&readme).unwrap_or_else(|e| panic!("{}: {e}", name(package)));
        assert!(text.starts_with(&format!("# {}\n", name(package))), "{}", name(package));
        for part in ["```rust\n", "\n## What it does not do\n"] {
            assert!(text.contains(part), "{}: the README lacks {part:?}", name(package));
        }
        let library = fs::read_to_string(folder(package).join("src/lib.rs")).unwrap();
        let first = "#![doc = include_str!(\"../README.md\")]\n";
        assert!(library.starts_with(first), "{}: {first}", name(package));
        libraries += 1;
    }
    assert!(libraries >= 9, "{libraries}");
}

#[test]
fn a_package_contains_its_readme_and_both_licences() {
    for package in packages().iter().filter(|p| is_published(p)) {
        let listed =
            cargo(&["package", "--list", "--allow-dirty", "--offline", "-p", name(package)]);
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"] {
            assert!(listed.lines().any(|line| line == file), "{}: {file}", name(package));
        }
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let own = fs::read_to_string(folder(package).join(licence)).unwrap();
            assert_eq!(own, read(licence), "{}: {licence}", name(package));
        }
    }
}

/// `.ci/run` reads the version from the manifest of the workspace and checks everything with that toolchain. So all
/// other places have to name the same.
#[test]
fn every_place_names_the_minimum_rust_that_ci_checks() {
    let workspace = read("Cargo.toml");
    let (_, rest) = workspace.split_once("\nrust-version = \"").unwrap();
    let (minimum, _) = rest.split_once('"').unwrap();
    for package in packages() {
        assert_eq!(package["rust_version"], minimum, "{}", name(&package));
    }
    for outside in OUTSIDE {
        let manifest = read(&format!("{outside}/Cargo.toml"));
        assert!(manifest.contains(&format!("\nrust-version = \"{minimum}\"\n")), "{outside}");
    }
    for page in ["README.md", "docs/python.md"] {
        let text = read(page);
        let stated: Vec<&str> =
            text.lines().filter(|l| l.contains("Rust") && l.contains(" or later")).collect();
        assert!(!stated.is_empty(), "{page} states no Rust");
        for line in stated {
            assert!(line.contains(&format!("{minimum} or later")), "{page}: {line}");
        }
    }
    assert!(read(".ci/run").contains("cargo \"+$minimum\" check --workspace --all-targets"));
}
