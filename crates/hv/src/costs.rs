//! What this micro-hypervisor costs on this machine: the values that the simulator has to be told to model it.
//!
//! Guest programs of a few instructions are timed. None of them is a workload, so no figure that a workload gives
//! can be fitted by them.
//!
//! ```text
//!   calls       a vCPU that runs kicks itself                 h = exit, hypervisor, entry
//!   ping-pong   two vCPUs kick each other and poll in turn
//!     one pCPU    half a round: SEND (h), POLL (h), the other enters
//!     two pCPUs   half a round: SEND (h), the idle pCPU of the other wakes, the other enters
//!   sleeps      one vCPU sleeps: its timer ends, its idle pCPU wakes, it enters
//!   turns       two vCPUs spin on one pCPU: the timer of its scheduler ends each slice, and the vCPU exits
//! ```
//!
//! Each occurrence is timed by itself, by an observer, which takes some tens of nanoseconds. The median counts; how single
//! ones differ from it is a result, too.

use crate::{Hv, alone};
use overspin_guest_abi::{LOWEST, SharedInfo, event, port};
use overspin_host::{Interest, Moment, Observer, Refused, Timed, World};
use overspin_scenario::{Host, Picos, Scenario, Setting, Settings, Workloads};
use overspin_workload::BurnWait;

/// Costs of one measurement, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct HvCosts {
    /// A guest enters the hypervisor and returns: `hypercall`.
    pub hypercall_ns: f64,
    /// A vCPU leaves its pCPU and another one enters, beyond an exit and an entry: `context_switch`.
    pub context_switch_ns: f64,
    /// From a kick to the moment in which the idle pCPU of the other vCPU begins to switch to it: `ipi`; `None` with a
    /// single CPU.
    pub ipi_ns: Option<f64>,
    /// What the end of a sleep on an idle pCPU takes beyond a kick of that pCPU and a switch to the vCPU: `timer`;
    /// `None` with a single CPU.
    pub timer_ns: Option<f64>,
    /// How late the timer of a busy pCPU is noticed, without the exit that follows from it: `host_timer`.
    pub host_timer_ns: f64,
    /// Single occurrences.
    pub singles: Singles,
}

/// Times of single occurrences, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Singles {
    /// Hypercalls.
    pub calls: Vec<f64>,
    /// Rounds of two vCPUs that kick each other on one pCPU: four hypercalls and two switches.
    pub rounds_here: Vec<f64>,
    /// The same on two pCPUs: four hypercalls, two kicks of an idle pCPU and two switches.
    pub rounds_there: Vec<f64>,
    /// Sleeps, by how much they are too long.
    pub sleeps: Vec<f64>,
    /// Slices that a timer ends, by how much they are too long.
    pub slices: Vec<f64>,
}

/// Rounds of a program: few for the processors' caches, and those that are timed.
const ROUNDS: [u32; 2] = [20, 200];
/// No program takes as long as this.
const LIMIT: Picos = Picos::ms(2000);
/// Length of a sleep: the CPU is asleep by then.
const SLEEP: Picos = Picos::ms(1);
/// Length of a slice, and of the run that has some 200 of them.
const SLICE: Picos = Picos::us(500);
const SLICES: Picos = Picos::ms(100);

impl HvCosts {
    /// Measures once, in some 0.5 s.
    ///
    /// # Errors
    /// If this machine cannot run guests.
    pub fn measure(cpus: u32) -> Result<Self, Refused> {
        let singles = Singles::measure(cpus)?;
        let call = median(&singles.calls);
        let here = median(&singles.rounds_here) / 2.0;
        // The vCPU that leaves exits by a hypercall, which the simulator charges besides.
        let context_switch_ns = (here - 2.0 * call).max(0.0);
        let idle = (cpus > 1).then(|| {
            let there = median(&singles.rounds_there) / 2.0;
            let ipi = (there - call - context_switch_ns).max(0.0);
            (ipi, (median(&singles.sleeps) - ipi - context_switch_ns).max(0.0))
        });
        // The exit, half of a hypercall, is charged as the preemption that follows.
        let host_timer_ns = (median(&singles.slices) - call / 2.0).max(0.0);
        let (ipi_ns, timer_ns) = (idle.map(|(ipi, _)| ipi), idle.map(|(_, timer)| timer));
        Ok(Self { hypercall_ns: call, context_switch_ns, ipi_ns, timer_ns, host_timer_ns, singles })
    }
}

impl Singles {
    fn measure(cpus: u32) -> Result<Self, Refused> {
        let of = |program: fn(u32) -> Vec<u8>, scenario: &Scenario, seen: Seen| {
            let hv = Hv::default()
                .with_guest(elf(&program(ROUNDS.iter().sum())))
                .map_err(Refused::Invalid)?;
            let mut times = Times { seen, at: Vec::new() };
            hv.run(scenario, 1, &mut times, &())?;
            let gaps = times.at.windows(2).skip(ROUNDS[0] as usize);
            Ok(gaps.map(|two| (two[1] - two[0]).nanos()).collect::<Vec<f64>>())
        };
        let less =
            |times: Vec<f64>, what: Picos| times.iter().map(|ns| ns - what.nanos()).collect();
        let two = scenario(2, 1, LIMIT);
        let params = Settings::from([("quantum".to_owned(), Setting::Time(SLICE))]);
        let in_turns =
            Scenario { host: Host { params, ..two.host.clone() }, ..scenario(2, 1, SLICES) };
        Ok(Self {
            calls: of(calls, &scenario(1, 1, LIMIT), Seen::Kick)?,
            rounds_here: of(ping_pong, &two, Seen::RunsFirst)?,
            rounds_there: match cpus {
                0 | 1 => Vec::new(),
                _ => of(ping_pong, &scenario(2, 2, LIMIT), Seen::RunsFirst)?,
            },
            sleeps: less(of(sleeps, &scenario(1, 1, LIMIT), Seen::RunsFirst)?, SLEEP),
            slices: less(of(turns, &in_turns, Seen::Switch)?, SLICE),
        })
    }
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// A moment that comes once in each round of a program.
#[derive(Clone, Copy, PartialEq)]
enum Seen {
    Kick,
    /// The first vCPU begins to run.
    RunsFirst,
    Switch,
}

/// When it came.
struct Times {
    seen: Seen,
    at: Vec<Picos>,
}

impl Observer for Times {
    fn interest(&self) -> Interest {
        Interest::SCHEDULING.and(Interest::DETAILS)
    }

    fn observe(&mut self, moments: &[Timed]) {
        let seen = |moment: &Moment| match moment {
            Moment::Kick { .. } => self.seen == Seen::Kick,
            Moment::Runs { vcpu: 0, .. } => self.seen == Seen::RunsFirst,
            Moment::Switch { .. } => self.seen == Seen::Switch,
            _ => false,
        };
        self.at.extend(moments.iter().filter(|m| seen(&m.moment)).map(|m| m.at));
    }
}

/// One domain. Its workload has an end, so that the run ends when the domain does.
fn scenario(vcpus: u32, pcpus: u32, limit: Picos) -> Scenario {
    let work = BurnWait { count: 1, ..BurnWait::default() };
    let workload = Workloads::from(work).0.remove(0);
    alone::scenario(pcpus, vec![alone::guest("guest", vcpus, workload)], limit)
}

/// Machine code: `mov eax, value; mov edx, port; out dx, eax`.
fn call(port: u16, value: u32) -> Vec<u8> {
    let mut code = vec![0xb8];
    code.extend(value.to_le_bytes());
    code.push(0xba);
    code.extend(u32::from(port).to_le_bytes());
    code.push(0xef);
    code
}

/// `dec ecx; jnz` back over the last `over` bytes, which the two instructions follow.
fn again(over: usize) -> Vec<u8> {
    let mut code = vec![0xff, 0xc9, 0x0f, 0x85];
    code.extend(back(over + 8));
    code
}

/// A jump back by `bytes`, as the 32 bits in which it ends.
fn back(bytes: usize) -> [u8; 4] {
    i32::try_from(bytes).map_or([0; 4], |bytes| (-bytes).to_le_bytes())
}

/// `mov ecx, rounds`.
fn count(rounds: u32) -> Vec<u8> {
    [vec![0xb9], rounds.to_le_bytes().to_vec()].concat()
}

/// Ends the domain: `SHUTDOWN`, and a jump to itself.
fn end() -> Vec<u8> {
    [call(port::SHUTDOWN, 0), vec![0xeb, 0xfe]].concat()
}

/// The kick finds the first vCPU running, and only sets its latch.
fn calls(rounds: u32) -> Vec<u8> {
    let body = call(port::SEND, 0);
    [count(rounds), body.clone(), again(body.len()), end()].concat()
}

/// Both vCPUs spin for as long as the run takes.
fn turns(_: u32) -> Vec<u8> {
    // A second call to bring up the second vCPU does nothing.
    [call(port::VCPU_UP, 1), vec![0xeb, 0xfe]].concat()
}

/// The latch of kicks in the page of the vCPU at `rbx`: the offset of `pending`.
const PENDING: u8 = std::mem::offset_of!(overspin_guest_abi::VcpuPage, pending) as u8;
const DEADLINE: u8 = std::mem::offset_of!(overspin_guest_abi::VcpuPage, deadline) as u8;
const BASE: u8 = std::mem::offset_of!(SharedInfo, tsc_base) as u8;
const SCALE: u8 = std::mem::offset_of!(SharedInfo, tsc_scale) as u8;
const ID: u8 = std::mem::offset_of!(overspin_guest_abi::VcpuPage, id) as u8;

/// Sleeps `rounds` times for [`SLEEP`] from when it looks at the clock. The clock is that of the [`SharedInfo`] at
/// `rdi`: `(rdtsc - tsc_base) * tsc_scale >> 32`.
fn sleeps(rounds: u32) -> Vec<u8> {
    let body = [
        // rdtsc; shl rdx, 32; or rax, rdx
        vec![0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0],
        // sub rax, [rdi + BASE]; mul qword [rdi + SCALE]; shrd rax, rdx, 32
        vec![0x48, 0x2b, 0x47, BASE, 0x48, 0xf7, 0x67, SCALE, 0x48, 0x0f, 0xac, 0xd0, 0x20],
        // add rax, SLEEP; mov [rbx + DEADLINE], rax
        vec![0x48, 0x05],
        ((SLEEP.0 / 1000) as u32).to_le_bytes().to_vec(),
        vec![0x48, 0x89, 0x43, DEADLINE],
        call(port::BLOCK, 0),
        // mov dword [rbx + PENDING], 0
        vec![0xc7, 0x43, PENDING, 0, 0, 0, 0],
    ]
    .concat();
    // mov rbx, fs:[0]
    let begin = [vec![0x64, 0x48, 0x8b, 0x1c, 0x25, 0, 0, 0, 0], count(rounds)].concat();
    [begin, body.clone(), again(body.len()), end()].concat()
}

/// Polls until a kick has come, and takes it.
fn take_kick() -> Vec<u8> {
    let poll = call(port::POLL, 0);
    let kick = event::KICK as u8;
    // test byte [rbx + PENDING], KICK
    let test = [0xf6, 0x43, PENDING, kick];
    let mut code = [poll.clone(), test.to_vec()].concat();
    // jz to the poll
    code.extend([0x0f, 0x84]);
    code.extend(back(poll.len() + test.len() + 6));
    // lock and byte [rbx + PENDING], !KICK
    code.extend([0xf0, 0x80, 0x63, PENDING, !kick]);
    code
}

fn ping_pong(rounds: u32) -> Vec<u8> {
    let kick = |vcpu: u32| call(port::SEND, vcpu);
    let first_body = [kick(1), take_kick()].concat();
    let first =
        [call(port::VCPU_UP, 1), count(rounds), first_body.clone(), again(first_body.len()), end()]
            .concat();
    let second_body = [take_kick(), kick(0)].concat();
    // jmp back to its beginning
    let second = [second_body.clone(), vec![0xe9], back(second_body.len() + 5).to_vec()].concat();
    // mov rbx, fs:[0]; cmp dword [rbx + ID], 0; jne over the first vCPU's part
    let mut code = vec![0x64, 0x48, 0x8b, 0x1c, 0x25, 0, 0, 0, 0, 0x83, 0x7b, ID, 0, 0x0f, 0x85];
    code.extend(i32::try_from(first.len()).unwrap_or(0).to_le_bytes());
    [code, first, second].concat()
}

/// An ELF file with this code alone, which begins at its first byte.
fn elf(code: &[u8]) -> Vec<u8> {
    const HEADERS: u64 = 64 + 56;
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let size = HEADERS + code.len() as u64;
    // Executable, x86-64, version 1.
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    file.extend((LOWEST + HEADERS).to_le_bytes());
    // Program headers behind this header; no sections; no flags.
    file.extend(64_u64.to_le_bytes());
    file.extend(0_u64.to_le_bytes());
    file.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    // One segment: loaded, readable and executable, the whole file at the lowest address.
    file.extend(1_u32.to_le_bytes());
    file.extend(5_u32.to_le_bytes());
    for word in [0, LOWEST, LOWEST, size, size, 4096] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_loadable_and_jump_within_themselves() {
        for code in [calls(5), ping_pong(5), sleeps(5), turns(5)] {
            assert!(Hv::default().with_guest(elf(&code)).is_ok());
        }
        // mov ecx; then mov eax, mov edx, out: 11 bytes; dec and jnz: 8 bytes, back over both.
        assert_eq!(calls(1)[5 + 11..5 + 11 + 8], [0xff, 0xc9, 0x0f, 0x85, 0xed, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn costs_are_plausible() {
        let costs = match HvCosts::measure(1) {
            Ok(costs) => costs,
            Err(Refused::Machine { cause, .. }) => {
                return overspin_testing::skip(&cause.to_string());
            }
            Err(other) => panic!("{other}"),
        };
        // No processor leaves a guest and returns in 100 ns, and none takes 10 ms.
        assert!((100.0..1e7).contains(&costs.hypercall_ns), "{costs:?}");
        assert!(costs.context_switch_ns < 1e7 && costs.ipi_ns.is_none(), "{costs:?}");
        let Singles { calls, rounds_here, rounds_there, sleeps, slices } = costs.singles;
        for all in [&calls, &rounds_here, &sleeps] {
            assert!(all.len().abs_diff(ROUNDS[1] as usize) < 3, "{}", all.len());
            assert!(all.iter().all(|ns| *ns > 0.0), "{all:?}");
        }
        assert!(slices.len() > 50 && slices.iter().all(|ns| *ns > -1e3), "{slices:?}");
        assert!(rounds_there.is_empty());
    }
}
