use super::*;
use overspin_scenario::{MS, NS, SEC, Setting, US, Workload};
use proptest::prelude::*;

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

fn good(sets: &[&str]) -> Result<Scenario, ScenarioError> {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    parse("good.toml", "good", GOOD, &sets)
}

#[test]
fn a_scenario_reads_as_written() {
    let s = good(&[]).unwrap();
    assert_eq!((s.name.as_str(), s.limit, s.seed), ("good", 5 * SEC, 1));
    assert_eq!(s.host.pcpus(), 2);
    assert_eq!(s.host.params["tslice"], Setting::Time(10 * MS));
    assert_eq!((s.host.costs.ipi, s.host.costs.fence), (3 * US, 8 * NS));
    assert_eq!(s.domains[0].affinity, vec![vec![0, 1]; 4]);
    assert_eq!(s.domains[0].kernel.hz, 250);
    let Workload::Kernbench(k) = &s.domains[0].workload else { panic!("kernbench") };
    assert_eq!((k.jobs, k.locks[0].hold), (3, 1_500 * NS));
    assert_eq!((s.domains[1].name.as_str(), s.domains[1].cap), ("domain1", 50));
    assert_eq!((s.domains[1].spin_budget, &s.domains[1].affinity), (Some(1024), &vec![vec![0, 1]]));
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
    assert_eq!(s.host.costs.hypercall, 2 * US);
    assert_eq!((s.domains[0].lock.as_str(), s.domains[0].spin_budget), ("xen-pv", Some(7)));
    let Workload::Kernbench(k) = &s.domains[0].workload else { panic!("kernbench") };
    assert_eq!(k.locks[0].every, 10 * US);
    assert_eq!(s.domains[1].affinity, vec![vec![0]]);
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
    assert_eq!((e.line, e.column, &*e.key), (13, 1, "domain.0.vcpu"));
    assert!(e.help.contains("did you mean `vcpus`"), "{}", e.help);
}

/// The published schema and the tables in the documentation are written from the key list. To
/// renew them after a change: `OVERSPIN_BLESS=1 cargo test -p overspin-lab published`.
#[test]
fn published_schema_and_tables_are_current() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let schema = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    let page = std::fs::read_to_string(docs.join("scenario.md")).unwrap();
    let (begin, end) = ("<!-- keys: begin -->\n", "<!-- keys: end -->");
    let start = page.find(begin).unwrap() + begin.len();
    let stop = page.find(end).unwrap();
    let fresh = format!("{}\n{}{}", &page[..start], key_tables(), &page[stop..]);
    if std::env::var_os("OVERSPIN_BLESS").is_some() {
        std::fs::write(docs.join("schema/scenario.json"), &schema).unwrap();
        std::fs::write(docs.join("scenario.md"), &fresh).unwrap();
    }
    let current = std::fs::read_to_string(docs.join("schema/scenario.json")).unwrap();
    assert_eq!(current, schema, "docs/schema/scenario.json is stale");
    assert_eq!(
        std::fs::read_to_string(docs.join("scenario.md")).unwrap(),
        fresh,
        "docs/scenario.md is stale"
    );
}

proptest! {
    /// Damaged files are complained about, with a place that exists; they never panic.
    #[test]
    fn damage_is_reported(at in 0..GOOD.len(), byte in 0u8..128, cut in proptest::bool::ANY) {
        let mut bytes = GOOD.as_bytes().to_vec();
        bytes[at] = byte;
        if cut { bytes.truncate(at); }
        let text = String::from_utf8(bytes).unwrap();
        if let Err(e) = parse("x.toml", "x", &text, &[]) {
            prop_assert!(e.line >= 1 && e.line <= text.lines().count() + 1);
            prop_assert!(text.get(e.span.clone()).is_some());
            prop_assert!(!e.message.is_empty() && !e.help.is_empty());
        }
    }

    #[test]
    fn any_override_is_survived(set in "\\PC{0,60}") {
        let _ = parse("x.toml", "x", GOOD, &[set]);
    }
}

#[test]
fn examples_are_legal_and_named_after_their_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let (name, description) = match load(&path, &[]).unwrap_or_else(|e| panic!("{e}")) {
            Loaded::One(scenario) => (scenario.name, scenario.description),
            Loaded::Map(map) => (map.name, map.description),
        };
        assert_eq!(path.file_stem().unwrap().to_str(), Some(name.as_str()));
        assert!(description.ends_with('?'), "an example answers a question");
        count += 1;
    }
    assert!(count >= 3);
}
