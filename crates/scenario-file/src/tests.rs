use super::built_in::{load, load_text, parse};
use super::*;
use overspin_scenario::{
    Change, Costs, CpuNoise, GuestType, MS, NS, NewProcess, PauseLoopExiting, Picos, Quantiles,
    SEC, Setting, US,
};
use overspin_testing::{expect_file, expect_section};
use overspin_workload::Kernbench;

const GOOD: &str = r#"
name = "good"
limit = "5s"
[host]
cores = 2
scheduler = "credit-2008"
[host.scheduler_params]
tslice = "10ms"
[host.costs]
ipi = "3us"
[[domain]]
name = "guest"
vcpus = 4
lock = "ticket"
affinity = "0-1"
[domain.kernel]
hz = 250
[domain.workload]
kind = "kernbench"
jobs = 3
[[domain.workload.locks]]
name = "dcache"
hold = "1.5us"
[[domain]]
vcpus = 1
lock = "xen-pv"
spin_budget = 1024
affinity = [[1, 0]]
cap = 50
[domain.workload]
kind = "burn-wait"
"#;

fn good(sets: &[&str]) -> Result<Scenario, LocatedError> {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    parse("good.toml", "good", GOOD, &sets)
}

#[test]
fn a_scenario_reads_as_written() {
    let s = good(&[]).unwrap();
    assert_eq!((s.name.as_str(), s.limit, s.seed), ("good", 5 * SEC, 1));
    assert_eq!(s.host.pcpus(), 2);
    assert_eq!(s.host.params["tslice"], Setting::Time(10 * MS));
    assert_eq!((s.host.costs.ipi, s.host.costs.fence), ((3 * US).into(), 8 * NS));
    assert_eq!(s.domains[0].affinity, vec![vec![0, 1]; 4]);
    assert_eq!(s.domains[0].kernel.hz, 250);
    let k = s.domains[0].workload.get::<Kernbench>().unwrap();
    assert_eq!((k.jobs, k.locks[0].hold), (3, 1_500 * NS));
    assert_eq!((s.domains[1].name.as_str(), s.domains[1].cap), ("domain1", 50));
    assert_eq!((s.domains[1].spin_budget, &s.domains[1].affinity), (Some(1024), &vec![vec![0, 1]]));
}

#[test]
fn an_alias_is_read_as_the_name_that_it_stands_for() {
    let text = GOOD
        .replace("credit-2008", "round-robin")
        .replace("tslice = \"10ms\"", "quantum = \"3ms\"")
        .replace("lock = \"ticket\"", "lock = \"byte\"");
    let s = parse("good.toml", "good", &text, &["domain.1.lock=mcscr".into()]).unwrap();
    let locks = s.domains.iter().map(|d| d.lock.as_str()).collect::<Vec<_>>();
    assert_eq!(locks, ["lock-byte", "malthusian"]);
    assert_eq!(s.host.scheduler, "rr");
    assert_eq!(s.host.params["quantum"], Setting::Time(3 * MS));
    let error = good(&["domain.guest.lock=byt"]).unwrap_err();
    assert!(error.help.contains("lock-byte"), "{error:?}");

    let sweep = |lines: &str| {
        let text = format!("{GOOD}\n[[vary]]\nname = \"what\"\n{lines}");
        match load_text(Path::new("good.toml"), &text, &[]) {
            Loaded::Sweep(sweep) => sweep,
            other => panic!("not a sweep: {other:?}"),
        }
    };
    let locks = sweep("set = \"domain.guest.lock\"\nto = [\"byte\", \"ticket\"]");
    assert_eq!(locks.axes[0].values, ["lock-byte", "ticket"]);
    assert_eq!(locks.points[0].sets, ["domain.guest.lock=lock-byte"]);
    let both = sweep(
        "set = \"domain.guest.lock / domain.guest.vcpus\"\nto = [\"byte / 2\", \"ticket / 2\"]",
    );
    assert_eq!(both.axes[0].values, ["lock-byte / 2", "ticket / 2"]);
    let labelled = sweep("set = \"domain.guest.lock\"\nto = [\"byte\"]\nlabels = [\"mine\"]");
    assert_eq!(labelled.axes[0].values, ["mine"]);
    assert_eq!(labelled.points[0].scenario.domains[0].lock, "lock-byte");
}

/// The scenario overrides the machine that it names, and the machine overrides the default.
#[test]
fn a_machine_sets_the_costs_that_are_not_stated() {
    let skylake = crate::machine::machine("skylake-sp").unwrap();
    let s = good(&["host.machine=skylake-sp"]).unwrap();
    assert_eq!(s.host.machine, "skylake-sp");
    assert_eq!(s.host.costs, Costs { ipi: (3 * US).into(), ..skylake.costs() });
    assert_ne!(skylake.cost("ipi"), 3 * US);
    let s = good(&["host.machine=pentium-3", "host.smt_permille=700"]).unwrap();
    assert_eq!((s.host.smt_permille, s.host.costs.hypercall), (700, (600 * NS).into()));
    // Without [host.costs], all costs are the machine's.
    let text = GOOD.replace("[host.costs]\nipi = \"3us\"\n", "");
    let sets = ["host.machine=skylake-sp".to_owned()];
    assert_eq!(parse("good.toml", "good", &text, &sets).unwrap().host.costs, skylake.costs());
    let s = good(&[]).unwrap();
    assert_eq!(
        (s.host.machine.as_str(), s.host.costs.hypercall),
        ("generic-2008", (500 * NS).into())
    );

    let e = good(&["host.machine=skylake"]).unwrap_err();
    assert_eq!(&*e.key, "host.machine");
    assert!(e.message.contains("no machine `skylake`"), "{}", e.message);
    assert!(e.help.contains("did you mean `skylake-sp`"), "{}", e.help);
}

#[test]
fn a_cost_may_be_quantiles() {
    let us = Picos::us;
    let bare = Quantiles::new(us(2), us(20));
    let whole = Quantiles {
        min: Some(us(1)),
        p90: Some(us(3)),
        p95: Some(us(4)),
        p995: Some(us(90)),
        p999: Some(us(700)),
        max: Some(us(900)),
        ..bare
    };
    let keys = "{ min = \"1us\", p50 = \"2us\", p90 = \"3us\", p95 = \"4us\", p99 = \"20us\", p995 = \"90us\", p999 = \"700us\", max = \"900us\" }";
    let s = good(&[
        &format!("host.costs.ipi={keys}"),
        "host.costs.host_timer={ p50 = \"2us\", p99 = \"20us\" }",
    ])
    .unwrap();
    assert_eq!((s.host.costs.ipi, s.host.costs.host_timer), (whole.into(), bare.into()));
    // A time in place of a machine's or a file's quantiles is all there is then.
    let text = GOOD.replace("ipi = \"3us\"", &format!("ipi = {keys}"));
    let sets = ["host.costs.ipi=5us".to_owned()];
    let ipi = |sets: &[String]| parse("x.toml", "x", &text, sets).unwrap().host.costs.ipi;
    assert_eq!((ipi(&[]), ipi(&sets)), (whole.into(), us(5).into()));
}

#[test]
fn wrong_quantiles_are_errors_that_name_them() {
    for (value, key, message) in [
        (
            "{ p50 = \"30us\", p99 = \"20us\" }",
            "ipi.p50",
            "30us is longer than `p99`, which is 20us",
        ),
        ("{ p50 = \"3us\", p99 = \"0\" }", "ipi.p99", "0 is out of range"),
        ("{ p50 = \"-3us\", p99 = \"1us\" }", "ipi.p50", "negative"),
        ("{ p50 = \"3us\", p99 = \"2s\" }", "ipi.p99", "2s is out of range"),
        ("{ p50 = \"3us\", p99 = \"4us\", max = \"1us\" }", "ipi.p99", "longer than `max`"),
        ("{ p50 = \"3us\" }", "ipi.p99", "`p99` is missing"),
        ("{ median = \"3us\", p99 = \"4us\" }", "ipi.median", "not a key"),
        ("{ p50 = 3, p99 = \"4us\" }", "ipi.p50", "unit is missing"),
        ("[\"3us\"]", "ipi", "must be a time in quotes or a table of quantiles"),
    ] {
        let e = good(&[&format!("host.costs.ipi={value}")]).expect_err(value);
        assert_eq!(
            (&*e.path, &*e.key),
            ("--set", format!("host.costs.{key}").as_str()),
            "{value}: {e}"
        );
        assert!(e.message.contains(message), "{value}: {}", e.message);
        assert!(!e.help.is_empty());
    }
    let e = good(&["host.costs.atomic={ p50 = \"3us\", p99 = \"4us\" }"]).unwrap_err();
    assert!(e.message.contains("must be a time"), "{e}");
}

#[test]
fn noise_may_differ_by_pcpu() {
    let each = |value: &str| good(&[&format!("host.noise.cpu={value}")]);
    let s = each(
        "[{ cpus = \"1\", every = \"7ms\", length = { p50 = \"20us\", p99 = \"3ms\" } }, { cpus = [0] }]",
    )
    .unwrap();
    let noise = s.host.noise.unwrap();
    let length = Quantiles::new(20 * US, 3 * MS).into();
    let as_default = CpuNoise { cpus: vec![0], every: noise.every, length: noise.length };
    assert_eq!(noise.each, [CpuNoise { cpus: vec![1], every: 7 * MS, length }, as_default]);
    for (value, key, message) in [
        ("[{ cpus = \"2\" }]", "cpu.0.cpus", "2"),
        ("[{ every = \"7ms\" }]", "cpu.0.cpus", "missing"),
        ("[{ cpus = \"1\" }, { cpus = \"0-1\" }]", "cpu.1.cpus", "earlier"),
        (
            "[{ cpus = \"1\", length = { p50 = \"2ms\", p99 = \"1ms\" } }]",
            "cpu.0.length.p50",
            "longer than",
        ),
        ("[{ cpus = \"1\", length = \"0\" }]", "cpu.0.length", "out of range"),
    ] {
        let e = each(value).expect_err(value);
        assert_eq!(&*e.key, format!("host.noise.{key}"), "{e}");
        assert!(e.message.contains(message), "{e}");
    }
    let e =
        good(&["host.noise.cpu=[{ cpus = \"1\" }]", "host.noise.placement=anywhere"]).unwrap_err();
    assert!(e.help.contains("per-cpu"), "{e}");
}

#[test]
fn overrides_reach_every_place() {
    let s = good(&[
        "limit=30s",
        "host.scheduler=credit",
        "host.costs.hypercall=\"2us\"",
        "domain.guest.lock=xen-pv",
        "domain.0.workload.locks.dcache.every=10us",
        "domain.1.affinity=[\"0\"]",
        "seed=18446744073709551615",
        "domain.0.spin_budget=7",
    ])
    .unwrap();
    assert_eq!((s.limit, s.seed), (30 * SEC, u64::MAX));
    assert_eq!(s.host.scheduler, "credit");
    assert_eq!(s.host.costs.hypercall, (2 * US).into());
    assert_eq!((s.domains[0].lock.as_str(), s.domains[0].spin_budget), ("xen-pv", Some(7)));
    let k = s.domains[0].workload.get::<Kernbench>().unwrap();
    assert_eq!(k.locks[0].every, 10 * US);
    assert_eq!(s.domains[1].affinity, vec![vec![0]]);
}

#[test]
fn each_vcpu_may_have_a_weight() {
    let vcpus = good(&[]).unwrap().domains[1].vcpus as usize;
    let of = |weights: &[u32]| good(&[&format!("domain.1.weights={weights:?}")]);
    let all = vec![84; vcpus];
    assert_eq!(of(&all).unwrap().domains[1].weights, all);
    let e = of(&vec![84; vcpus + 1]).unwrap_err();
    assert!(e.message.contains("weights for"), "{e}");
    let e = of(&vec![0; vcpus]).unwrap_err();
    assert!(e.message.contains("0 is no weight") && e.help.contains("65535"), "{e}");
}

#[test]
fn processes_of_2008_are_for_the_scheduler_of_2008() {
    let kernel = |sets: &[&str]| good(sets).map(|s| s.domains[1].kernel.new_process);
    let old = "domain.1.kernel.new_process=2.6.26";
    assert_eq!(kernel(&[]).unwrap(), NewProcess::Balanced);
    assert_eq!(kernel(&[old]).unwrap(), NewProcess::Linux2626);
    let e = kernel(&[old, "domain.1.kernel.scheduler=eevdf"]).unwrap_err();
    assert!(e.message.contains("cfs-2.6.26") && e.help.contains("new_process"), "{e}");
}

#[test]
fn a_guest_says_how_it_is_virtualised() {
    let types = |sets: &[&str]| {
        good(sets).map(|s| s.domains.iter().map(|d| d.guest_type).collect::<Vec<_>>())
    };
    let both = ["domain.0.type=pv", "domain.1.type=hvm"];
    let exits = "host.pause_loop_exiting={}";
    assert_eq!(types(&both).unwrap(), [Some(GuestType::Pv), Some(GuestType::Hvm)]);
    assert_eq!(types(&[]).unwrap(), [None, None], "as its host has it");
    assert!(types(&[&both[..], &[exits]].concat()).is_ok(), "only the second exits");

    let shown = |sets: &[&str]| {
        let e = good(sets).unwrap_err();
        format!("{e} / {}", e.help)
    };
    let unknown = shown(&["domain.0.type=pvh"]);
    assert!(
        unknown.contains("pvh") && unknown.contains("pv") && unknown.contains("hvm"),
        "{unknown}"
    );
    let no_exits = shown(&["domain.0.type=pv", "domain.1.type=pv", exits]);
    for part in ["`domain.guest.type`", "pause_loop_exiting", "\"hvm\"", "leave out"] {
        assert!(no_exits.contains(part), "{part} in {no_exits}");
    }
}

#[test]
fn kvm_has_no_paravirtual_guests() {
    let text = "limit = \"1s\"\n[host]\ncores = 1\nscheduler = \"eevdf\"\n[[domain]]\nvcpus = 1\nlock = \"ticket\"\n\
                type = \"pv\"\nworkload = { kind = \"lock-loop\" }\n";
    let e = super::load_text(&Names::default(), Path::new("x.toml"), text, &[], &[]).unwrap_err();
    let shown = format!("{e} / {}", e.help);
    for part in ["x.toml:8:", "`domain.0.type`", "eevdf", "\"hvm\"", "scheduler of Xen"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn rules_of_directed_yields_are_years() {
    let exits = |more: &[&str]| {
        let sets: Vec<&str> = ["host.pause_loop_exiting={}"].iter().chain(more).copied().collect();
        good(&sets).map(|s| s.host.pause_loop_exiting.unwrap())
    };
    let years = |ple: PauseLoopExiting| (ple.rules.name(), ple.grow);
    assert_eq!(years(exits(&[]).unwrap()), ("2021", 2));
    // Windows do not grow before Linux 3.18, unless the scenario says so.
    let key = |value: &str| format!("host.pause_loop_exiting.{value}");
    assert_eq!(years(exits(&[&key("rules=\"2013\"")]).unwrap()), ("2013", 1));
    assert_eq!(years(exits(&[&key("rules=2013")]).unwrap()), ("2013", 1), "a number will do");
    assert_eq!(years(exits(&[&key("rules=2012"), &key("grow=3")]).unwrap()), ("2012", 3));
    assert_eq!(years(exits(&[&key("rules=2017")]).unwrap()), ("2017", 2));
    let e = exits(&[&key("rules=\"2014\"")]).unwrap_err();
    assert!(e.help.contains("2011, 2012, 2013, 2017, 2019, 2021"), "{}", e.help);
}

#[test]
fn bad_overrides_point_into_the_argument() {
    for (set, column, message, help) in [
        ("nonsense", 1, "no `=`", "--set domain.0.lock"),
        ("limit=5 parsecs", 7, "not a unit", "quotes"),
        ("host..x=1", 6, "is empty", "--set"),
        ("domain.2.lock=ticket", 8, "no element `2`", "0 to 1 or guest"),
        ("domain.gast.lock=ticket", 8, "no element `gast`", "guest"),
        ("limit.x=1", 7, "has no keys", "shorten"),
        ("host.shceduler=credit", 6, "not a key", "did you mean `scheduler`"),
        ("domain.0.lock=tiket", 15, "no lock `tiket`", "did you mean `ticket`"),
        ("seed=-1", 6, "out of range", "from 0"),
        ("domain.0=3", 10, "must be a table", "[[domain]]"),
    ] {
        let e = good(&[set]).expect_err(set);
        assert_eq!((&*e.path, e.line, e.column), ("--set", 1, column), "{set}: {e}");
        assert!(e.message.contains(message), "{set}: {}", e.message);
        assert!(e.help.contains(help), "{set}: {}", e.help);
    }
}

#[test]
fn the_cause_is_named_before_its_effect() {
    let text = GOOD.replace("vcpus = 4", "vcpu = 4");
    let e = parse("x.toml", "x", &text, &[]).unwrap_err();
    assert_eq!((e.line, e.column, &*e.key), (13, 1, "domain.guest.vcpu"));
    assert!(e.help.contains("did you mean `vcpus`"), "{}", e.help);
}

/// A host of four pCPUs, two of them in a pool, followed by the lines of `rest`.
fn pooled(rest: &str) -> Result<Scenario, LocatedError> {
    let text = format!(
        r#"[host]
cores = 4
[[host.pool]]
name = "batch"
cpus = "2-3"
scheduler = "rr"
scheduler_params = {{ quantum = "5ms" }}
[[domain]]
name = "web"
vcpus = 2
lock = "ticket"
workload = {{ kind = "burn-wait" }}
[[domain]]
name = "job"
vcpus = 1
lock = "ticket"
pool = "batch"
workload = {{ kind = "burn-wait" }}
{rest}"#
    );
    parse("x.toml", "x", &text, &[])
}

#[test]
fn events_and_pools_read_as_written() {
    let event = |body: &str| {
        let s = pooled(&format!("[[event]]\nat = \"2s\"\n{body}")).unwrap();
        assert_eq!((s.events.len(), s.events[0].at), (1, 2 * SEC));
        s.events[0].change.clone()
    };
    let s = pooled("").unwrap();
    assert_eq!((s.domains[0].pool, s.domains[1].pool), (0, 1));
    let pool = &s.host.pools[0];
    assert_eq!((&*pool.cpus, pool.scheduler.as_str()), (&[2, 3][..], "rr"));
    assert_eq!(pool.params["quantum"], Setting::Time(5 * MS));

    let (web, job) = (0, 1);
    assert_eq!(
        event("domain = \"web\"\nweight = 512"),
        Change::Weight { domain: web, weight: 512 }
    );
    assert_eq!(event("domain = \"web\"\ncap = 150"), Change::Cap { domain: web, cap: 150 });
    assert_eq!(
        event("domain = \"web\"\nvcpu = 1\naffinity = \"0\""),
        Change::Affinity { domain: web, vcpu: Some(1), affinity: vec![vec![0]] }
    );
    assert_eq!(
        event("domain = \"web\"\naffinity = [\"0\", \"1\"]"),
        Change::Affinity { domain: web, vcpu: None, affinity: vec![vec![0], vec![1]] }
    );
    assert_eq!(event("domain = \"job\"\npause = true"), Change::Pause { domain: job, vcpu: None });
    assert_eq!(
        event("domain = \"job\"\npool = \"host\""),
        Change::MoveDomain { domain: job, pool: 0 }
    );
    assert_eq!(event("pcpu = 1\npool = \"batch\""), Change::MovePcpu { pcpu: 1, pool: 1 });
}

#[test]
fn impossible_events_and_pools_are_errors_with_a_place() {
    for (rest, line, message) in [
        ("domain = \"web\"\ncap = 201", 4, "web: cap 201 %: cap = 201 is not legal"),
        ("domain = \"web\"\naffinity = \"2\"", 4, "at least one pCPU of the pool"),
        ("domain = \"web\"\naffinity = \"4\"", 4, "there is no pCPU 4"),
        ("domain = \"web\"\naffinity = \"\"", 4, "neither a CPU nor a range"),
        ("domain = \"web\"\nvcpu = 2\npause = true", 4, "there is no vCPU 2"),
        ("domain = \"web\"\nvcpu = 1\ncap = 20", 4, "applies to a whole domain"),
        ("domain = \"wep\"\ncap = 20", 3, "there is no domain `wep`"),
        ("cap = 20", 1, "`domain` is missing"),
        ("domain = \"web\"", 1, "does nothing"),
        ("domain = \"web\"\npause = false", 4, "does nothing"),
        ("domain = \"web\"\nunpause = true", 4, "it is not paused at that time"),
        ("domain = \"web\"\ncap = 20\nweight = 9", 4, "are two changes"),
        ("pcpu = 1\ndomain = \"web\"\npool = \"batch\"", 4, "do not go together"),
        ("pcpu = 1\ncap = 3", 4, "do not go together"),
        ("pcpu = 0\npool = \"batch\"", 4, "the boot pCPU"),
        ("pcpu = 9\npool = \"batch\"", 4, "legal values: 0..4"),
        ("domain = \"web\"\npool = \"bach\"", 4, "there is no pool `bach`"),
    ] {
        let e = pooled(&format!("[[event]]\nat = \"1s\"\n{rest}")).expect_err(rest);
        // The event begins in line 19; `line` counts from there, from 1.
        assert_eq!(e.line, 18 + line, "{rest}");
        assert!(e.message.contains(message), "{rest}: {}", e.message);
    }
    // The last pCPU of a pool with a domain: the second move is refused.
    let both = "[[event]]\nat = \"1s\"\npcpu = 2\npool = \"host\"\n\
                [[event]]\nat = \"2s\"\npcpu = 3\npool = \"host\"";
    let e = pooled(both).unwrap_err();
    assert_eq!((e.line, &*e.key), (26, "event.1.pool"));
    assert!(e.message.contains("the last pCPU of a pool with domains"), "{}", e.message);

    let more = |rest: &str| pooled(rest).unwrap_err();
    let pool = "[[host.pool]]\nname = \"more\"\n";
    assert!(
        more(&format!("{pool}cpus = \"3\""))
            .message
            .contains("pCPU 3 is already in an earlier pool")
    );
    assert!(more(&format!("{pool}cpus = \"0-1\"")).message.contains("the boot pCPU"));
    let e = more("[[host.pool]]\nname = \"batch\"");
    assert!(e.message.contains("already a pool called `batch`"), "{}", e.message);
    let domain = "[[domain]]\nvcpus = 1\nlock = \"ticket\"\nworkload = { kind = \"burn-wait\" }\n";
    let e = more(&format!("{pool}{domain}pool = \"more\""));
    assert!(e.message.contains("has no pCPU at the start"), "{}", e.message);
    let e = more(&format!("{domain}pool = \"batch\"\naffinity = \"0-1\""));
    assert!(e.message.contains("on no pCPU of its pool"), "{}", e.message);
    let e = more(&format!("{domain}pool = \"host\"\nscheduler_params = {{ quantum = \"1ms\" }}"));
    assert!(e.message.contains("not a key"), "{}", e.message);
}

/// A domain of four vCPUs with these workloads.
fn doing(workloads: &str) -> Result<Scenario, LocatedError> {
    let text = format!("[host]\ncores = 2\n[[domain]]\nvcpus = 4\nlock = \"ticket\"\n{workloads}");
    parse("x.toml", "x", &text, &[])
}

#[test]
fn a_domain_does_one_thing_or_several() {
    let one = "[domain.workload]\nkind = \"lock-loop\"\nvcpus = [1, 2]\n";
    let s = doing(one).unwrap();
    let w = &s.domains[0].workload.0;
    assert_eq!((w.len(), w[0].kind.as_str(), &*w[0].vcpus), (1, "lock-loop", &[1, 2][..]));
    let several = "[[domain.workload]]\nkind = \"pft\"\n[[domain.workload.locks]]\nname = \"zone\"\n\
                   [[domain.workload]]\nkind = \"burn-wait\"\nname = \"hog\"\nvcpus = [3]\n";
    let s = doing(several).unwrap();
    assert_eq!(Names::default().locks_of(&s.domains[0]), ["pft/zone"]);
    let hog = &s.domains[0].workload.0[1];
    assert_eq!((hog.name.as_deref(), &*hog.vcpus), (Some("hog"), &[3][..]));
    // A record has the scenario that was run.
    let text = serde_json::to_string(&s).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), s);
    // `--set` reaches each by its number or its name.
    let text = format!("[host]\ncores = 2\n[[domain]]\nvcpus = 4\nlock = \"ticket\"\n{several}");
    let set = |set: &str| parse("x.toml", "x", &text, &[set.to_owned()]).unwrap();
    assert_eq!(set("domain.0.workload.hog.vcpus=[0]").domains[0].workload.0[1].vcpus, [0]);
    let changed = set("domain.0.workload.0.processes=7");
    let pft = changed.domains[0].workload.get::<overspin_workload::Pft>().unwrap();
    assert_eq!(pft.processes, 7);
}

/// A record has all parameters, those that the file leaves out too, in the order of their keys.
#[test]
fn parameters_are_complete_wherever_they_stand() {
    let text =
        "[domain.workload]\nkind = \"dbench\"\nclients = 3\n[domain.workload.disk]\npage = \"7us\"";
    let given = &doing(text).unwrap().domains[0].workload.0[0].parameters;
    let disk = overspin_workload::Disk { page: 7 * US, ..Default::default() };
    let whole = overspin_scenario::tree(&overspin_workload::Dbench { disk, ..dbench(given) });
    assert_eq!(serde_json::to_string(given).unwrap(), serde_json::to_string(&whole).unwrap());
    let text = "[domain.workload]\nkind = \"pft\"\nlocks = [{ name = \"a\" }]";
    let given = &doing(text).unwrap().domains[0].workload.0[0].parameters;
    let lock = given["locks"][0].as_object().unwrap();
    assert_eq!(lock.keys().collect::<Vec<_>>(), ["name", "hold", "every", "irqs_off"]);
}

fn dbench(tree: &overspin_scenario::Tree) -> overspin_workload::Dbench {
    serde_json::from_value(tree.clone().into()).unwrap()
}

/// The workloads begin in line 6.
#[test]
fn what_is_wrong_with_a_workload_has_a_place() {
    let pair = "[[domain.workload]]\nkind = \"count\"\n[[domain.workload]]\nkind = \"count\"\n";
    for (text, line, key, message) in [
        ("workload = 3", 6, "domain.0.workload", "must be a table or an array of tables"),
        ("workload = []", 6, "domain.0.workload", "is empty"),
        ("workload = [7]", 6, "domain.0.workload.0", "must be a table"),
        ("[domain.workload]\nkind = \"cuont\"", 7, "domain.0.workload.kind", "no workload `cuont`"),
        ("[domain.workload]\nkind = \"count\"\ntoo = 7", 8, "domain.0.workload.too", "not a key"),
        (
            "[domain.workload]\nkind = \"count\"\nvcpus = [4]",
            8,
            "domain.0.workload.vcpus",
            "no vCPU 4",
        ),
        (
            "[domain.workload]\nkind = \"count\"\nvcpus = []",
            8,
            "domain.0.workload.vcpus",
            "is empty",
        ),
        (&format!("{pair}name = \"count\""), 10, "domain.0.workload.1.name", "also called `count`"),
        (&format!("{pair}vcpus = [1, 1]"), 10, "domain.0.workload.1.vcpus", "twice"),
        (&format!("{pair}to = 0"), 10, "domain.0.workload.1.to", "0 is out of range"),
        (
            "[domain.workload]\nkind = \"pft\"\nlocks = [{ name = \"a\" }, { name = \"a\" }]",
            8,
            "domain.0.workload.locks.1.name",
            "also called `a`",
        ),
        (
            "[domain.workload]\nkind = \"phases\"\nphases = [\"yield\"]",
            8,
            "domain.0.workload.phases",
            "time would stand still",
        ),
    ] {
        let e = doing(text).expect_err(text);
        assert_eq!((e.line, &*e.key), (line, key), "{text}: {e}");
        assert!(e.message.contains(message), "{text}: {}", e.message);
        assert!(!e.help.is_empty());
    }
}

/// The key list generates the published schema and the tables in the documentation. To renew them after a
/// change: `UPDATE_EXPECT=1 cargo test -p overspin-scenario-file published`.
#[test]
fn published_schema_and_tables_are_current() {
    let schema = serde_json::to_string_pretty(&schema(&Names::default())).unwrap() + "\n";
    expect_file("docs/schema/scenario.json", &schema);
    let tables = format!("\n{}", key_tables(&Names::default()));
    expect_section("docs/scenario.md", "<!-- keys: begin -->\n", "<!-- keys: end -->", &tables);
}

/// What reads the path of an override calls itself for each key.
#[test]
fn a_path_is_short() {
    let deep = "a.".repeat(100_000) + "a=1";
    let e = good(&[&deep]).unwrap_err();
    assert!(e.message.contains("more than 16 keys") && !e.help.is_empty(), "{}", e.message);
    let vary = format!(
        "{GOOD}[[vary]]\nname = \"a\"\nset = \"{}a\"\nto = [\"1\"]\n",
        "a.".repeat(100_000)
    );
    let e = super::load_text(&Names::default(), Path::new("x.toml"), &vary, &[], &[]).unwrap_err();
    assert!(e.message.contains("more than 16 keys"), "{}", e.message);
}

/// Before version 1.1.6 the parser of TOML called itself for each line of the first text.
#[test]
fn nested_text_is_refused_whatever_its_length() {
    for part in [
        "a = { b = \"5u\n[c]\n",
        "a = {",
        "a = {\n",
        "a = [",
        "[",
        "{",
        "a.",
        "a = ]\n",
        "a = { b = ]\n",
    ] {
        let e = parse("x.toml", "x", &part.repeat(100_000), &[]).unwrap_err();
        assert!(e.message.starts_with("this is not TOML"), "{part}: {}", e.message);
    }
}

/// A file of 12 KB would become scenarios of a gigabyte.
#[test]
fn many_points_of_a_long_scenario_are_refused() {
    let long = format!("description = \"{}\"\n{GOOD}", "x".repeat(12_000))
        .replace("name = \"good\"", "name = \"good\"");
    let axis = |name: &str, key: &str| {
        let values: Vec<String> = (1..=300).map(|n| format!("\"{n}\"")).collect();
        format!("[[vary]]\nname = \"{name}\"\nset = \"{key}\"\nto = [{}]\n", values.join(", "))
    };
    let text = long + &axis("a", "domain.guest.vcpus") + &axis("b", "domain.other.vcpus");
    let e = super::load_text(&Names::default(), Path::new("x.toml"), &text, &[], &[]).unwrap_err();
    assert!(e.message.contains("90000 combinations") && e.help.contains("less"), "{}", e.message);
}

#[test]
fn examples_are_legal_and_named_after_their_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // Plans of schedbench are also examples, but not scenarios.
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let (name, description) = match load(&path, &[]).unwrap_or_else(|e| panic!("{e}")) {
            Loaded::One(scenario) | Loaded::Seeds(scenario, _) => {
                (scenario.name, scenario.description)
            }
            Loaded::Sweep(sweep) => (sweep.name, sweep.description),
        };
        assert_eq!(path.file_stem().unwrap().to_str(), Some(name.as_str()));
        assert!(description.ends_with('?'), "an example answers a question");
        count += 1;
    }
    assert!(count >= 3);
}
