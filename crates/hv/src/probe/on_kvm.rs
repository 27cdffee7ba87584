//! The measurements.

use super::Round;
use crate::clock::Clock;
use crate::image::{Image, Sizes};
use crate::kvm_run::{self, Exit};
use crate::program::Program;
use crate::run::run_made;
use crate::vcpu::{KvmVcpu, machine};
use crate::{Hv, alone, boot};
use overspin_guest_abi::VcpuPage;
use overspin_host::{Interest, Moment, Observer, Refused, Timed, picos};
use overspin_scenario::{Domain, Picos, Scenario};
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};

// Two small guests. Their code does not depend on its address.
std::arch::global_asm!(
    ".pushsection .rodata",
    ".balign 16",
    // It calls the hypercall that does nothing, for ever.
    "overspin_probe_calls:",
    "mov edx, 0x51c",
    "2: out dx, eax",
    "jmp 2b",
    "overspin_probe_calls_end:",
    // It yields for ever.
    "overspin_probe_yields:",
    "mov edx, 0x511",
    "2: out dx, eax",
    "jmp 2b",
    "overspin_probe_yields_end:",
    // vCPU 0 starts vCPU 1, and wakes it now and then; vCPU 1 sleeps until it is woken.
    "overspin_probe_wakes:",
    "mov rbx, fs:0",
    "mov eax, [rbx + {id}]",
    "test eax, eax",
    "jnz 4f",
    "mov eax, 1",
    "mov edx, 0x516",
    "out dx, eax",
    "2: mov ecx, 500000",
    "3: dec ecx",
    "jnz 3b",
    "mov eax, 0x3000001",
    "mov edx, 0x514",
    "out dx, eax",
    "jmp 2b",
    "4: mov edx, 0x512",
    "5: mov dword ptr [rbx + {pending}], 0",
    "out dx, eax",
    "jmp 5b",
    "overspin_probe_wakes_end:",
    ".popsection",
    id = const offset_of!(VcpuPage, id),
    pending = const offset_of!(VcpuPage, pending),
);

unsafe extern "C" {
    static overspin_probe_calls: u8;
    static overspin_probe_calls_end: u8;
    static overspin_probe_yields: u8;
    static overspin_probe_yields_end: u8;
    static overspin_probe_wakes: u8;
    static overspin_probe_wakes_end: u8;
}

fn code(from: *const u8, to: *const u8) -> &'static [u8] {
    // SAFETY: both labels are in one section above, the second after the first.
    unsafe { std::slice::from_raw_parts(from, to.offset_from_unsigned(from)) }
}

/// How long each part of a round runs.
const PART: Picos = Picos::ms(150);
/// Round trips of a part of a round.
const TRIPS: usize = 1_500;
/// Wake-ups of a thread in a round.
const WAKES: u64 = 300;

/// Measures once.
pub(super) fn round(seed: u64) -> Result<Round, Refused> {
    let two = crate::pcpu::allowed_cpus().len() >= 2;
    // Before and after: this machine's speed may change meanwhile.
    let before = [bare(1)?, bare(2)?];
    let (switch, outside, decision) = switch(seed)?;
    let after = [bare(1)?, bare(2)?];
    let [round_trip, alternating] = [0, 1].map(|i| f64::midpoint(before[i], after[i]));
    let mut round =
        Round { round_trip, alternating, switch, outside, decision, ..Round::default() };
    if two {
        round.thread_wake = Some(thread_wake());
        round.wake = wake(seed)?;
    }
    Ok(round)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// An exit and the next entry of a vCPU, without the hypervisor: the mean over so many vCPUs that are entered in
/// turn, each of a virtual machine of its own.
fn bare(vcpus: usize) -> Result<f64, Refused> {
    let kvm = boot::kvm()?;
    kvm_run::install_handler();
    let lacks = |what| Refused::Machine { cause: what, remedy: "see `overspin doctor`".into() };
    let program =
        Program::of(code(&raw const overspin_probe_calls, &raw const overspin_probe_calls_end));
    let sizes = Sizes::bare(1);
    let mut guests = Vec::new();
    for _ in 0..vcpus {
        let image = Image::new(&program, sizes, b"").map_err(lacks)?;
        let vm = machine(&kvm, &image).map_err(lacks)?;
        let vcpu = KvmVcpu::new(&kvm, &vm, &image, 0).map_err(lacks)?;
        // Fields are dropped in this order: the vCPU, its virtual machine, the memory.
        guests.push((vcpu, vm, image));
    }
    let clock = Clock::start(guests[0].0.khz());
    // A thread of its own, which is pinned as a pCPU is.
    let mean = std::thread::scope(|scope| {
        let measure = || {
            crate::pcpu::pin(crate::pcpu::allowed_cpus()[0]).ok();
            let began = clock.now();
            for trip in 0..TRIPS {
                kvm_run::prepare();
                if let Exit::Fault(what) = guests[trip % vcpus].0.run() {
                    return Err(what);
                }
            }
            Ok((clock.now().0 - began.0) as f64 / TRIPS as f64)
        };
        scope.spawn(measure).join().unwrap_or_else(|_| Err("the probe has panicked".into()))
    });
    mean.map_err(lacks)
}

/// A scenario with one domain whose guest ignores its workload.
fn scenario(pcpus: u32, vcpus: u32) -> Scenario {
    let mut guest = alone::guest("probe", vcpus, alone::workload("burn-wait"));
    if pcpus == vcpus {
        guest.affinity = (0..vcpus).map(|v| vec![v]).collect();
    }
    alone::scenario(pcpus, vec![guest], PART)
}

/// Time of a switch between two vCPUs that yield to each other, the part of it outside guests, and that of the pass.
fn switch(seed: u64) -> Result<(f64, f64, f64), Refused> {
    let program =
        Program::of(code(&raw const overspin_probe_yields, &raw const overspin_probe_yields_end));
    // Two domains of one vCPU each, so that nobody has to start the second.
    let mut two = scenario(1, 1);
    two.domains.push(Domain { name: "other".into(), ..two.domains[0].clone() });
    let made = boot::make_with(&Hv::default(), &program, &two, seed, Interest::NOTHING)?;
    let (outcome, core) = run_made(made, &two, seed, &mut (), &())?;
    let pcpu = &outcome.pcpus[0];
    let ns = |time: Picos| time.0 as f64 / 1e3 / pcpu.switches.max(1) as f64;
    let passing = picos(core.pcpus[0].passing);
    Ok((ns(pcpu.busy + pcpu.switching), ns(pcpu.switching), ns(passing)))
}

/// Times from a wake-up by another pCPU to the entry of the vCPU.
#[derive(Default)]
struct Woken {
    at: Option<Picos>,
    times: Vec<f64>,
}

impl Observer for Woken {
    fn interest(&self) -> Interest {
        Interest::SCHEDULING
    }

    fn observe(&mut self, moments: &[Timed]) {
        for Timed { at, moment } in moments {
            match moment {
                Moment::Wake { vcpu: 1, runnable: true, .. } => self.at = Some(*at),
                Moment::Runs { vcpu: 1, .. } => {
                    let since = self.at.take().map(|woken| (*at - woken).0 as f64 / 1e3);
                    self.times.extend(since);
                }
                _ => {}
            }
        }
    }
}

fn wake(seed: u64) -> Result<Option<f64>, Refused> {
    let program =
        Program::of(code(&raw const overspin_probe_wakes, &raw const overspin_probe_wakes_end));
    let pair = scenario(2, 2);
    let mut woken = Woken::default();
    let made = boot::make_with(&Hv::default(), &program, &pair, seed, Interest::SCHEDULING)?;
    run_made(made, &pair, seed, &mut woken, &())?;
    Ok((!woken.times.is_empty()).then(|| median(woken.times)))
}

/// A thread wakes another, which is pinned to another CPU: from the call to the return there.
fn thread_wake() -> f64 {
    let cpus = crate::pcpu::allowed_cpus();
    let clock = Clock::start(None);
    let (asked, heard) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            crate::pcpu::pin(cpus[1]).ok();
            let mut times = Vec::new();
            for i in 1..=WAKES {
                while asked.load(Ordering::SeqCst) == 0 {
                    std::thread::park();
                }
                let now = clock.now().0.unsigned_abs();
                times.push(now.saturating_sub(asked.swap(0, Ordering::SeqCst)) as f64);
                heard.store(i, Ordering::SeqCst);
            }
            times
        });
        let waker = scope.spawn({
            let sleeper = sleeper.thread().clone();
            let (asked, heard, cpus) = (&asked, &heard, &cpus);
            move || {
                crate::pcpu::pin(cpus[0]).ok();
                for i in 0..WAKES {
                    while heard.load(Ordering::SeqCst) != i {
                        std::hint::spin_loop();
                    }
                    // Long enough that it sleeps again.
                    overspin_guest_abi::burn(500_000);
                    asked.store(clock.now().0.unsigned_abs(), Ordering::SeqCst);
                    sleeper.unpark();
                }
            }
        });
        let times = sleeper.join().unwrap_or_default();
        let _ = waker.join();
        median(times)
    })
}
