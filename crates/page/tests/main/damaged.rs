//! Damaged inputs of all readers: see [`READERS`].

use crate::readers::READERS;
use std::thread;

#[test]
fn damaged_inputs_are_read_or_refused() {
    thread::scope(|scope| {
        let all = READERS.map(|reader| {
            // The name of a thread is all that the runtime tells of a stack that overflows.
            let named = thread::Builder::new().name(reader.name.to_owned());
            (reader.name, named.spawn_scoped(scope, move || reader.try_damaged()).unwrap())
        });
        let failed = all.map(|(name, thread)| thread.join().is_err().then_some(name));
        let failed: Vec<&str> = failed.into_iter().flatten().collect();
        assert!(failed.is_empty(), "readers that failed: {failed:?}");
    });
}
