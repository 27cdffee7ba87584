//! A copy of the workspace, with faults in it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use overspin_check::threads::StdPlatform;
use overspin_locks::{RawLock, for_each_lock};
use overspin_testing::root;
use serde::Deserialize;

use super::Result;
use super::fault::Fault;

/// Folders of what is built or fetched.
const NOT_COPIED: [&str; 2] = ["target", "node_modules"];

/// Makes `dir` a copy of the workspace with the faults of a batch.
pub(crate) fn copy_with(dir: &Path, batch: &[Fault]) -> Result<()> {
    let mut changed = HashMap::new();
    // A batch has faults of one kind.
    if let Some(locks) = batch[0].kind.locks {
        let of_faults = batch.iter().map(|fault| &*fault.lock);
        changed.extend([registry(&of_faults.chain(locks.iter().copied()).collect::<Vec<_>>())?]);
    }
    for fault in batch.iter().filter(|fault| !fault.file.is_empty()) {
        let source = fault.source();
        let text = match changed.get(&source) {
            Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            None => fs::read_to_string(&source)?,
        };
        changed.insert(source, fault.put_into(&text)?.into_bytes());
    }
    fs::create_dir_all(dir)?;
    for part in parts()? {
        copy(&root().join(&part), &dir.join(&part), &changed)?;
    }
    Ok(())
}

/// What the workspace is made of: its manifest with the lock file, the folders of its members, and what they include.
fn parts() -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Manifest {
        workspace: Workspace,
    }
    #[derive(Deserialize)]
    struct Workspace {
        members: Vec<String>,
    }
    let Manifest { workspace } = toml::from_str(&fs::read_to_string(root().join("Cargo.toml"))?)?;
    let folder = |member: String| member.trim_end_matches("/*").to_owned();
    let files = ["Cargo.toml", "Cargo.lock", "README.md", "docs", "examples", "experiments"];
    let files = files.map(str::to_owned).into_iter();
    Ok(files.chain(workspace.members.into_iter().map(folder)).collect())
}

/// Copies only files that differ, so that cargo rebuilds as little as possible. Files in `changed` get their new text.
fn copy(from: &Path, to: &Path, changed: &HashMap<PathBuf, Vec<u8>>) -> Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            if !NOT_COPIED.iter().any(|it| name == **it) {
                copy(&from.join(&name), &to.join(&name), changed)?;
            }
        }
        // Remove files that are gone from the source, or moved files would exist twice.
        for entry in fs::read_dir(to)? {
            let old = entry?;
            match from.join(old.file_name()).exists() {
                true => {}
                false if old.path().is_dir() => fs::remove_dir_all(old.path())?,
                false => fs::remove_file(old.path())?,
            }
        }
        return Ok(());
    }
    let new = match changed.get(from) {
        Some(text) => text.clone(),
        None => fs::read(from)?,
    };
    if !fs::read(to).is_ok_and(|old| old == new) {
        fs::write(to, new)?;
    }
    Ok(())
}

/// The registry with only these locks, because build time grows with the number of locks.
fn registry(locks: &[&str]) -> Result<(PathBuf, Vec<u8>)> {
    macro_rules! names {
        ($($lock:ident)+) => {
            [$((stringify!($lock), <overspin_locks::$lock<StdPlatform> as RawLock<_>>::INFO.name)),+]
        };
    }
    let left_out = for_each_lock!(names).into_iter().filter(|(_, name)| !locks.contains(name));
    let left_out: Vec<_> = left_out.map(|(lock, _)| format!("    {lock}: ")).collect();
    let path = root().join("crates/locks/src/registry.rs");
    let text = fs::read_to_string(&path)?;
    let stays = |line: &&str| !left_out.iter().any(|start| line.starts_with(start));
    let lines: Vec<_> = text.lines().filter(stays).collect();
    Ok((path, lines.join("\n").into_bytes()))
}
