//! Hypercalls that a fuzzer chooses: 16 bytes each, see `Hostile::call_of`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overspin_hv::fuzz::Hostile;

fuzz_target!(|data: &[u8]| {
    let mut hostile = Hostile::of_two_guests(1);
    for call in data.chunks_exact(16) {
        hostile.call_of(call.try_into().expect("a chunk has this size"));
    }
});
