//! Gives a reader of `crates/page/tests/main/readers` the inputs that a fuzzer chooses. `READER` names it. Its real inputs
//! are copied into the first folder of the command line, where the fuzzer keeps those that reach more.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overspin_testing::Reader;
use std::path::Path;
use std::sync::OnceLock;

#[path = "../../tests/main/readers/mod.rs"]
mod readers;

static CHOSEN: OnceLock<Reader> = OnceLock::new();

fn choose() {
    let name = std::env::var("READER").unwrap_or_default();
    let Some(reader) = readers::READERS.into_iter().find(|reader| reader.name == name) else {
        let names: Vec<&str> = readers::READERS.iter().map(|reader| reader.name).collect();
        panic!("READER is `{name}`; readers are: {}", names.join(", "));
    };
    if let Some(folder) = std::env::args().skip(1).find(|argument| Path::new(argument).is_dir()) {
        for (number, seed) in reader.seeds().into_iter().enumerate() {
            std::fs::write(Path::new(&folder).join(format!("seed-{number}")), seed)
                .expect("the folder of inputs");
        }
    }
    let _ = CHOSEN.set(reader);
}

fuzz_target!(init: choose(), |data: &[u8]| {
    (CHOSEN.get().expect("it was chosen").read)(data);
});
