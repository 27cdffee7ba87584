//! Drivers of a kernel that has them as modules.

use std::fs::{self, File};

/// Loads the modules of the initial file system in the order of their names. A kernel with all built in has none.
pub(crate) fn load() {
    let mut paths: Vec<_> = fs::read_dir("/modules")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    for path in paths {
        let loaded =
            File::open(&path).and_then(|file| Ok(rustix::system::finit_module(&file, c"", 0)?));
        // What is missing for it is said by whoever needs it; this says why.
        if let Err(error) = loaded {
            println!("overspin: {}: {error}", path.display());
        }
    }
}
