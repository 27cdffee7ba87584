//! Does a bell always stop a vCPU? A thread rings at random moments, most of them around the entry of the guest,
//! and waits each time until the pCPU has looked. The guest never stops by itself, so a lost bell is a hang.

use crate::boot::kvm;
use crate::doorbell::Doorbell;
use crate::image::{Image, Sizes};
use crate::kvm_run::{self, Exit};
use crate::program::Program;
use crate::vcpu::{KvmVcpu, machine};
use overspin_guest_abi::burn;
use overspin_workload::Random;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// `jmp` to itself.
const ENDLESS: [u8; 2] = [0xeb, 0xfe];
/// `mov edx, 0x51c; out dx, eax; jmp` to the `out`: it leaves its guest all the time.
const CALLS: [u8; 8] = [0xba, 0x1c, 0x05, 0, 0, 0xef, 0xeb, 0xfd];
/// No noise of a machine takes so long.
const HANGS: Duration = Duration::from_secs(20);

fn rings(count: u64, code: &[u8]) {
    let Ok(kvm) = kvm() else {
        overspin_testing::skip("there is no KVM");
        return;
    };
    kvm_run::install_handler();
    let image = Image::new(&Program::of(code), Sizes::bare(1), b"").unwrap();
    let vm = machine(&kvm, &image).unwrap();
    let mut vcpu = KvmVcpu::new(&kvm, &vm, &image, 0).unwrap();
    let (bell, asked, seen) = (Doorbell::default(), AtomicU64::new(0), AtomicU64::new(0));
    let ended = AtomicBool::new(false);
    let (mut stopped, mut left_out) = (0_u64, 0_u64);
    std::thread::scope(|scope| {
        let ringer = scope.spawn(|| {
            let mut random = Random::new(1);
            for i in 1..=count {
                // From at once to 100 us: an entry takes some tens here.
                let most = 1 << random.below(18);
                burn(random.below(most));
                asked.store(i, Ordering::SeqCst);
                bell.ring();
                let since = Instant::now();
                while seen.load(Ordering::SeqCst) != i {
                    if since.elapsed() > HANGS {
                        // Ring again, so that the test ends, and fails.
                        ended.store(true, Ordering::SeqCst);
                        bell.ring();
                        panic!("bell {i} was not heard");
                    }
                    std::thread::yield_now();
                }
            }
            ended.store(true, Ordering::SeqCst);
            bell.ring();
        });
        bell.own();
        while !ended.load(Ordering::SeqCst) {
            kvm_run::prepare();
            seen.store(asked.load(Ordering::SeqCst), Ordering::SeqCst);
            match bell.in_guest(|| vcpu.run()) {
                Some(Exit::Interrupted) => stopped += 1,
                Some(Exit::Out { .. }) => {}
                Some(Exit::Fault(what)) => panic!("{what}"),
                None => left_out += 1,
            }
        }
        ringer.join().unwrap();
    });
    println!("{count} bells: {stopped} stopped the guest, {left_out} kept it from its entry");
    drop((vcpu, vm, image));
}

#[test]
fn no_bell_is_lost() {
    rings(2_000, &ENDLESS);
    rings(2_000, &CALLS);
}

#[test]
#[ignore = "a hundred thousand bells take half a minute: run it after a change of `kvm_run` or `doorbell`"]
fn none_of_a_hundred_thousand_bells_is_lost() {
    rings(100_000, &ENDLESS);
    rings(100_000, &CALLS);
}
