//! The machine: its CPUs, their clocks, what runs below and beside this program.

use super::{Finding, Place, State};
use overspin_record::environment::Environment;
use overspin_report::two_digits;
use std::time::Duration;

/// How long the load is watched.
const WATCHED: Duration = Duration::from_millis(500);
/// A load of this part of the CPUs is noise, as `overspin measure noise` judges it.
const BUSY: f64 = 0.05;

pub(super) fn findings(place: &Place, environment: &Environment) -> Vec<Finding> {
    vec![
        build(environment),
        cpus(place, environment),
        quota(place),
        smt(place),
        governor(place),
        clock(place),
        hypervisor(place, environment),
        load(place),
        kvm(place),
        kvm_parameters(place),
        xen(place),
        costs(),
        perf(place),
    ]
}

fn build(environment: &Environment) -> Finding {
    match environment.debug_build {
        false => Finding::fine("build", environment.build.profile.as_deref().unwrap_or("release")),
        true => Finding::new(
            "build",
            State::Costs,
            "debug: without full optimisation",
            "every simulation takes several times longer, with the same results; figures of `bench` and \
             `measure` are those of unoptimised code and must not be published",
            "build with `cargo build --release`",
        ),
    }
}

fn cpus(place: &Place, environment: &Environment) -> Finding {
    let all = environment.cpus.or(place.usable_cpus);
    let (Some(usable), Some(all)) = (place.usable_cpus, all) else {
        return Finding::new("CPUs", State::Unknown, "the kernel does not tell", "", "");
    };
    let found = match usable == all {
        true => format!("{all}, all usable"),
        false => format!("{usable} of {all} are usable"),
    };
    if usable == 1 {
        let cost = "sweeps, `reproduce`, `advise` and `--seeds` run one simulation at a time; `bench locks` has \
                    no two threads at once, so it shows nothing about contention, and tests that need a second \
                    CPU skip";
        return Finding::new(
            "CPUs",
            State::Costs,
            found,
            cost,
            "use a machine with 2 CPUs or more",
        );
    }
    if usable < all {
        let cost = format!(
            "sweeps, `reproduce`, `advise` and `--seeds` run {usable} simulations at a time instead of {all}, so \
             they take up to {} times as long; `measure noise` measures only these CPUs",
            two_digits(all as f64 / usable as f64)
        );
        let remedy = "start it without taskset, or give its cpuset more CPUs";
        return Finding::new("CPUs", State::Costs, found, cost, remedy);
    }
    Finding::fine("CPUs", found)
}

/// The limit on CPU time of this process' group, in CPUs.
fn quota(place: &Place) -> Finding {
    match crate::watch::quota(&place.root.join("sys/fs/cgroup")) {
        None => Finding::fine("CPU limit", "none"),
        Some(cpus) => Finding::new(
            "CPU limit",
            State::Costs,
            format!("a control group allows {} CPUs", two_digits(cpus)),
            format!(
                "more than {} busy threads are stopped for the rest of each period, for tens of milliseconds: \
                 `bench locks` and `exec` see that as preempted holders, and `measure noise` as long gaps of \
                 kind `thread`",
                two_digits(cpus.floor().max(1.0))
            ),
            "measure outside the group (cgroup cpu.max)",
        ),
    }
}

fn smt(place: &Place) -> Finding {
    match place.read("sys/devices/system/cpu/smt/active").as_deref() {
        Some("0") => Finding::fine("SMT", "off: every CPU is a core"),
        Some(_) => Finding::new(
            "SMT",
            State::Costs,
            "on: two CPUs or more share a core",
            "`bench locks` depends on whether two threads share a core: a sibling runs at about 60 to 65 % of \
             full speed (`smt_permille` of the simulated machines), and hands a lock over several times faster \
             than another core",
            "choose one CPU of each core: `overspin bench locks --cpus` (see `lscpu --extended`)",
        ),
        None => Finding::new("SMT", State::Unknown, "the kernel does not tell", "", ""),
    }
}

fn governor(place: &Place) -> Finding {
    let cpu = "sys/devices/system/cpu";
    let turbo = match (
        place.read(&format!("{cpu}/intel_pstate/no_turbo")).as_deref(),
        place.read(&format!("{cpu}/cpufreq/boost")).as_deref(),
    ) {
        (Some("0"), _) | (None, Some("1")) => ", with turbo",
        (Some(_), _) | (None, Some(_)) => ", without turbo",
        (None, None) => "",
    };
    match place.read(&format!("{cpu}/cpu0/cpufreq/scaling_governor")) {
        None => Finding::new(
            "clock speed",
            State::Unknown,
            "not visible, as in most virtual machines",
            "the host may change the clock while `bench` measures; both sides of a comparison run in turn, so \
             ratios suffer less than absolute figures",
            "trust ratios within one run of `bench`, not absolute figures of two days",
        ),
        Some(governor) if governor == "performance" && turbo != ", with turbo" => {
            Finding::fine("clock speed", format!("governor {governor}{turbo}"))
        }
        Some(governor) => Finding::new(
            "clock speed",
            State::Costs,
            format!("governor {governor}{turbo}"),
            "the clock follows load and temperature: absolute figures of `bench` differ from run to run by as \
             much as the clock does; ratios suffer less",
            "`cpupower frequency-set --governor performance`, and turbo off, while you measure",
        ),
    }
}

fn clock(place: &Place) -> Finding {
    let source = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    match place.read(source) {
        None => Finding::new("clock source", State::Unknown, "the kernel does not tell", "", ""),
        Some(name) if matches!(name.as_str(), "tsc" | "arch_sys_counter" | "kvm-clock") => {
            Finding::fine("clock source", name)
        }
        Some(name) => Finding::new(
            "clock source",
            State::Costs,
            format!("{name}: read by a system call"),
            "reading the time may take a microsecond instead of some 25 ns: `measure noise` cannot see short \
             gaps, and time slots of `bench locks` are coarser. `overspin measure noise` prints the clock's cost",
            "use the clock source tsc, if the kernel trusts it (`dmesg | grep -i tsc`)",
        ),
    }
}

fn hypervisor(place: &Place, environment: &Environment) -> Finding {
    let Some(name) = &environment.hypervisor else {
        return Finding::fine("virtualisation", "none visible");
    };
    let stolen = place.read("proc/stat").as_deref().and_then(Ticks::read).and_then(Ticks::stolen);
    let share = stolen.map_or_else(String::new, |s| {
        format!("; {} % of the CPU time was stolen since the start", two_digits(100.0 * s))
    });
    Finding::new(
        "virtualisation",
        State::Costs,
        match name.as_str() {
            "unknown" => format!("a virtual machine{share}"),
            name => format!("a virtual machine ({name}){share}"),
        },
        "its host may take a CPU away from `bench`, `measure` and `exec` at any time, which looks like a \
         preempted lock holder. The worst figures suffer most; medians by about the stolen share",
        "measure on bare hardware, or repeat and compare medians (`overspin bench locks --runs 20`, then \
         `overspin compare`)",
    )
}

/// Clock ticks since the start, summed over all CPUs.
#[derive(Clone, Copy)]
struct Ticks {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl Ticks {
    /// The first line of `/proc/stat`: user nice system idle iowait irq softirq steal.
    fn read(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> =
            line.split_whitespace().take(8).map_while(|n| n.parse().ok()).collect();
        let [.., idle, wait, _, _, stolen] = ticks[..] else { return None };
        Some(Self { all: ticks.iter().sum(), idle: idle + wait, stolen })
    }

    fn stolen(self) -> Option<f64> {
        (self.all > 0).then(|| self.stolen as f64 / self.all as f64)
    }

    /// The part of the CPU time that was used between two readings, by this machine or others.
    fn busy_until(self, later: Self) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|all| *all > 0)?;
        let idle = later.idle.saturating_sub(self.idle).min(all);
        Some((all - idle) as f64 / all as f64)
    }
}

fn load(place: &Place) -> Finding {
    let read = || place.read("proc/stat").as_deref().and_then(Ticks::read);
    let before = read();
    std::thread::sleep(WATCHED);
    let busy = before.zip(read()).and_then(|(before, after)| before.busy_until(after));
    judge_load(busy)
}

fn judge_load(busy: Option<f64>) -> Finding {
    let Some(busy) = busy else {
        return Finding::new("other load", State::Unknown, "the kernel does not tell", "", "");
    };
    let found = format!("{} % of the CPU time is in use", two_digits(100.0 * busy));
    if busy <= BUSY {
        return Finding::fine("other load", found);
    }
    let longer = match busy < 0.95 {
        true => format!("up to {} times as long", two_digits(1.0 / (1.0 - busy))),
        false => "many times as long".into(),
    };
    Finding::new(
        "other load",
        State::Costs,
        found,
        format!(
            "simulations that use all CPUs take {longer}, with the same results; `bench` measures preempted \
             threads, so locks whose waiters spin look worse than they are; `measure noise` measures the load"
        ),
        "stop what runs (`top`), or raise the priority of this terminal (`echo -10 > /proc/self/autogroup`)",
    )
}

fn kvm(place: &Place) -> Finding {
    let cost = "`--world hv`, `bench hv` and the part of `validate` with real vCPUs end with exit code 3; \
                `--world threads` works everywhere";
    match place.device("dev/kvm") {
        Some(true) => kvm_that_opens(place),
        Some(false) => Finding::new(
            "KVM",
            State::Missing,
            "/dev/kvm exists, but this user may not open it",
            cost,
            "join the group of /dev/kvm (`sudo usermod -aG kvm $USER`, then log in again)",
        ),
        None => Finding::new(
            "KVM",
            State::Missing,
            "there is no /dev/kvm",
            cost,
            "load the module (`modprobe kvm_amd` or `kvm_intel`); in a virtual machine, its host has to allow \
             nested virtualisation",
        ),
    }
}

fn kvm_that_opens(place: &Place) -> Finding {
    let info = place.read("proc/cpuinfo").unwrap_or_default();
    let has = |flag: &str| {
        info.lines().filter(|l| l.starts_with("flags")).any(|l| l.split(' ').any(|f| f == flag))
    };
    let x86 = info.contains("vendor_id");
    let slow = "exits of `--world hv` and `bench hv` take tens of microseconds instead of one or two, so locks whose waiters \
                sleep look worse than on bare hardware; code of guests runs at full speed";
    match (x86 && !has("vmx") && !has("svm"), has("hypervisor")) {
        (true, _) => Finding::new(
            "KVM",
            State::Costs,
            "/dev/kvm can be opened, without virtualisation by the CPU: guests are run by software",
            slow,
            "use a machine whose CPU shows vmx or svm to this kernel",
        ),
        (false, true) => Finding::new(
            "KVM",
            State::Costs,
            "/dev/kvm can be opened; it is nested",
            slow,
            "measure on bare hardware; `overspin calibrate` says what an exit takes here",
        ),
        (false, false) => Finding::fine("KVM", "/dev/kvm can be opened"),
    }
}

/// What decides how KVM treats vCPUs that spin and vCPUs that sleep. The scenario's keys for it are
/// `host.pause_loop_exiting` and `host.halt_polling`.
fn kvm_parameters(place: &Place) -> Finding {
    const PARAMETERS: [&str; 7] = [
        "kvm/parameters/halt_poll_ns",
        "kvm_intel/parameters/ple_gap",
        "kvm_intel/parameters/ple_window",
        "kvm_intel/parameters/nested",
        "kvm_amd/parameters/pause_filter_count",
        "kvm_amd/parameters/pause_filter_thresh",
        "kvm_amd/parameters/nested",
    ];
    let read = |of: &str| place.read(&format!("sys/module/{of}"));
    let shown: Vec<String> = PARAMETERS
        .iter()
        .filter_map(|of| Some(format!("{} {}", of.rsplit('/').next()?, read(of)?)))
        .collect();
    let off = ["kvm_intel/parameters/ple_gap", "kvm_amd/parameters/pause_filter_count"];
    let off = off.iter().any(|of| read(of).as_deref() == Some("0"));
    match (shown.is_empty(), off) {
        (true, _) => Finding::new("KVM's parameters", State::Unknown, "not visible", "", ""),
        (false, false) => Finding::fine("KVM's parameters", shown.join(", ")),
        (false, true) => Finding::new(
            "KVM's parameters",
            State::Costs,
            shown.join(", "),
            "pause-loop exits are off: a vCPU that spins for a preempted holder spins until its slice ends. In a scenario: no \
             `host.pause_loop_exiting`",
            "give guests paravirtual locks, or load the module with ple_gap=128 (kvm_intel) or pause_filter_count=3000 (kvm_amd)",
        ),
    }
}

/// Whether Xen is below this kernel.
fn xen(place: &Place) -> Finding {
    if place.read("sys/hypervisor/type").as_deref() != Some("xen") {
        return Finding::fine(
            "Xen",
            "not below this kernel; `overspin xen-emulated` boots it in QEMU",
        );
    }
    let control =
        place.read("proc/xen/capabilities").is_some_and(|text| text.contains("control_d"));
    match (control, place.program("xl")) {
        (true, Some(xl)) => {
            Finding::fine("Xen", format!("this is domain 0, with {}", xl.display()))
        }
        (true, None) => Finding::new(
            "Xen",
            State::Missing,
            "this is domain 0, without `xl`",
            "`overspin schedbench` cannot make guests here",
            "install xen-utils",
        ),
        (false, _) => Finding::new(
            "Xen",
            State::Costs,
            "this is a guest of Xen",
            "only its host can make guests for `overspin schedbench`",
            "run it in domain 0",
        ),
    }
}

/// What a simulated host of this machine's kind costs is measured on demand only.
fn costs() -> Finding {
    Finding::fine(
        "machine profile",
        "`overspin calibrate -o here.toml` measures this machine's costs; a scenario names the file as host.machine",
    )
}

fn perf(place: &Place) -> Finding {
    let level = place.read("proc/sys/kernel/perf_event_paranoid");
    let level: Option<i32> = level.and_then(|text| text.parse().ok());
    match level {
        Some(level) if level <= 1 => Finding::fine(
            "perf",
            format!("allowed (perf_event_paranoid {level}); no command needs it"),
        ),
        Some(level) => Finding::fine(
            "perf",
            format!(
                "restricted (perf_event_paranoid {level}); no command needs it, only you, to profile a \
                 program under `overspin exec`"
            ),
        ),
        None => Finding::fine("perf", "not available; no command needs it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_and_stolen_time_are_computed_from_the_kernels_counts() {
        // proc_stat(5): user nice system idle iowait irq softirq steal guest guest_nice.
        let before = Ticks::read("cpu  10 0 10 70 0 0 0 10 5 5\ncpu0 1 2").unwrap();
        assert_eq!(before.stolen(), Some(0.1));
        let after = Ticks::read("cpu  10 0 40 130 10 0 0 10 5 5\n").unwrap();
        // 100 more ticks, of which 60 idle and 10 waiting for a disk.
        assert_eq!(before.busy_until(after), Some(0.3));
        assert!(Ticks::read("cpu 1 2 3").is_none() && Ticks::read("").is_none());
    }

    #[test]
    fn load_has_a_price() {
        assert_eq!(judge_load(Some(0.01)).state, State::Fine);
        let half = judge_load(Some(0.5));
        assert!(half.state == State::Costs && half.cost.contains("up to 2.0 times"), "{half:?}");
        assert!(judge_load(Some(1.0)).cost.contains("many times"));
        assert_eq!(judge_load(None).state, State::Unknown);
    }
}
