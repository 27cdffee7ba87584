use super::*;
use overspin_scenario::Scenario;
use overspin_workload::Kernbench;

#[test]
fn the_experiments_that_come_along_are_legal() {
    for name in names() {
        let e = built_in(name).unwrap().unwrap_or_else(|e| panic!("{e}"));
        let (head, roles) = (e.head(), e.roles());
        assert_eq!(head.id, name);
        let fit = roles.iter().filter(|r| **r == Role::Fit).count();
        let parameters = &head.parameters;
        assert!(
            parameters.len() < fit || fit + parameters.len() == 0,
            "{name}: fewer parameters than figures to fit"
        );
        assert!(parameters.iter().all(|p| !p.value.is_empty()));
    }
    assert!(built_in("2009-spinlocks").is_none());
    assert_eq!(nearest_name("2008-spinlock"), Some("2008-spinlocks"));
}

#[test]
fn all_published_rows_of_2008_are_there() {
    let e = kernbench_2008().unwrap();
    assert_eq!(e.figures.len(), 31 + 8);
    assert!(e.figures.iter().all(|f| f.never != f.mean.is_some()));
    let byte = e.figures.iter().find(|f| f.lock == "lock-byte" && f.metric == "elapsed_s").unwrap();
    assert_eq!((byte.mean, byte.stddev, byte.role), (Some(410.686), Some(2.49314), Role::Fit));
}

#[test]
fn variants_are_scaled() {
    let e = kernbench_2008().unwrap();
    let v = e.variant("ticket", &e.loads[1], 20);
    assert_eq!((v.domains[0].lock.as_str(), v.limit), ("ticket", e.head.scenario.limit / 20));
    let bench = |s: &Scenario| s.domains[0].workload.get::<Kernbench>().unwrap();
    let (full, part) = (bench(&e.head.scenario), bench(&v));
    assert_eq!((part.jobs, part.units), (16, full.units / 20));
}

/// docs/claims.md lists what each kind measures.
#[test]
fn metrics_are_documented_and_have_units() {
    let page = include_str!("../../../../docs/claims.md");
    for name in names() {
        let e = built_in(name).unwrap().unwrap();
        for (_, m) in e.vocabulary().metrics() {
            assert!(crate::claims::has_unit(m), "{}", m.unit);
            let line = format!("| `{}` | {} | {} |", m.name, m.unit, m.meaning);
            assert!(page.contains(&line.replace("|  |", "| |")), "{name}: {line}");
        }
    }
}

#[test]
fn claims_of_built_in_experiments_have_conditions() {
    for name in names() {
        let e = built_in(name).unwrap().unwrap();
        for claim in &e.head().claims {
            assert!(claim.condition.is_some(), "{name} ({})", claim.id);
        }
    }
}

#[test]
fn faults_have_a_place() {
    let (_, text) = BUILT_IN.iter().find(|(name, _)| *name == "2008-spinlocks").unwrap();
    for (from, to, message) in [
        ("scale = 1\n", "scale = 0\n", "`scale` is 0"),
        ("role = \"fit\"", "role = \"guess\"", "guess"),
        ("low = \"1000\"", "low = \"9999\"", "not between"),
        ("seeds = 5", "seed = 5", "seed"),
        ("kind = \"kernbench\"", "kind = \"kernbend\"", "no kind of experiment `kernbend`"),
        ("vcpus = 4", "vcpu = 4", "not a key"),
        ("\"ticket\", \"lock-byte\"", "\"tiket\", \"lock-byte\"", "no lock `tiket`"),
        ("max(ticket.optimal", "max(ticket.best", "no `best` at `ticket`"),
    ] {
        let e = parse("e.toml", &text.replacen(from, to, 1)).expect_err(to);
        assert!(e.message.contains(message) && e.line > 1, "{to}: {e}");
    }
}
