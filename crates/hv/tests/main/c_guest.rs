//! A guest in C: the header says what Rust says, and the example runs.

use crate::common::{domain, run, scenario, with};
use overspin_guest_abi::{SharedInfo, VcpuPage};
use overspin_hv::Hv;
use overspin_scenario::{Ending, Picos};
use overspin_workload::BurnWait;
use std::fmt::Write;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/guest-in-c")
}

/// Compiles C; `false` if there is no compiler.
fn cc(args: &[&str], file: &Path, out: &Path) -> bool {
    let output = Command::new("cc")
        .args(args)
        .arg("-I")
        .arg(example())
        .arg("-o")
        .arg(out)
        .arg(file)
        .output();
    match output {
        Err(error) => {
            overspin_testing::skip(&format!("no C compiler: {error}"));
            false
        }
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            true
        }
    }
}

#[test]
fn the_header_has_the_layout_of_the_structures() {
    let mut text = String::from("#include <stddef.h>\n#include \"overspin_guest.h\"\n");
    let mut same = |what: &str, offset: usize| {
        let (kind, field) = what.split_once('.').unwrap();
        writeln!(
            text,
            "_Static_assert(offsetof(struct overspin_{kind}, {field}) == {offset}, \"{what}\");"
        )
        .unwrap();
    };
    macro_rules! fields {
        ($kind:literal, $type:ty: $($field:ident)*) => {
            $(same(concat!($kind, ".", stringify!($field)), offset_of!($type, $field));)*
        };
    }
    fields!("info", SharedInfo: magic vcpus locks tasks traces tsc_base tsc_scale burn_rate pages argument
        argument_len heap heap_len lock_stats task_stats rings ring_len all_up touch touch_len);
    fields!("page", VcpuPage: this id preempted notice state state_since times slice_end dispatches pending
        masked handler deadline held traced args waiting spinning own upcalls);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("layout.c");
    std::fs::write(&file, text).unwrap();
    cc(&["-c", "-Wall", "-Werror"], &file, &dir.path().join("layout.o"));
}

#[test]
fn the_example_counts() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("guest");
    let flags =
        ["-O2", "-static", "-nostdlib", "-no-pie", "-fno-stack-protector", "-Wall", "-Werror"];
    if !cc(&flags, &example().join("guest.c"), &out) {
        return;
    }
    let hv = Hv::default().with_guest(std::fs::read(out).unwrap()).unwrap();
    let c = domain("c", 2, "ticket", with::<BurnWait>(r#"{"count": 1}"#));
    let Some(outcome) = run(&hv, &scenario(1, "credit", Picos::ms(5_000), vec![c])) else { return };
    assert_eq!(outcome.ending, Ending::Finished);
    assert!(outcome.elapsed >= Picos::ms(200));
    let dispatches = outcome.domains[0].vcpus[1].dispatches;
    // Few: a vCPU that wakes may preempt the holder of the lock, and then spin for its whole slice. But the guest goes on
    // until it has slept three times.
    assert!(dispatches > 2, "vCPU 1 sleeps and wakes: {dispatches}");
}

#[test]
fn what_is_no_guest_is_refused_with_the_reason() {
    let reason = |bytes: &[u8]| Hv::default().with_guest(bytes.to_vec()).unwrap_err();
    assert!(reason(b"hello").contains("no 64-bit ELF"));
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let why = reason(&own);
    assert!(why.contains("-static"), "{why}");
    assert!(reason(&own[..200]).len() > 10);
}
