use super::*;
use overspin_scenario::Scenario;
use overspin_workload::Kernbench;

#[test]
fn the_experiments_that_come_along_are_legal() {
    for name in names() {
        let e = built_in(name).unwrap().unwrap_or_else(|e| panic!("{e}"));
        let head = &e.head;
        assert_eq!(head.id, name);
        let fit = head.figures.iter().filter(|f| f.role == Role::Fit).count();
        let parameters = &head.parameters;
        assert!(
            parameters.len() < fit || fit + parameters.len() == 0,
            "{name}: fewer parameters than figures to fit"
        );
        assert!(parameters.iter().all(|p| !p.value.is_empty()));
    }
    assert!(built_in("2009-spinlocks").is_none());
}

#[test]
fn all_published_rows_of_2008_are_there() {
    let figures = kernbench_2008().unwrap().0.figures;
    assert_eq!(figures.len(), 31 + 8);
    assert_eq!(figures.iter().filter(|f| f.never).count(), 1);
    let is = |f: &&Figure| f.place == "lock-byte, half load" && f.metric == "elapsed_s";
    let byte = figures.iter().find(is).unwrap();
    assert_eq!((byte.mean, byte.stddev, byte.role), (Some(410.686), Some(2.49314), Role::Fit));
}

#[test]
fn a_point_is_scaled() {
    let (head, e) = kernbench_2008().unwrap();
    let part = e.scenario(&["ticket", "optimal"], 20).unwrap().unwrap();
    assert_eq!((part.domains[0].lock.as_str(), part.limit), ("ticket", head.scenario.limit / 20));
    let bench = |s: &Scenario| s.domains[0].workload.get::<Kernbench>().unwrap();
    let (full, part) = (bench(&head.scenario), bench(&part));
    assert_eq!((part.jobs, part.units), (16, full.units / 20));
    assert!(e.scenario(&["ticket", "none"], 20).is_none());
}

/// `docs/metrics.md` is written from the tables of the kinds.
#[test]
fn metrics_are_documented_and_have_units() {
    let tables = metrics().flat_map(|(_, tables)| tables);
    let documented: Vec<_> = tables.flat_map(|table| (table.metrics)()).collect();
    for name in names() {
        let e = built_in(name).unwrap().unwrap();
        for (_, m) in e.kind.vocabulary().metrics() {
            assert!(overspin_claims::has_unit(m), "{}", m.unit);
            assert!(documented.iter().any(|d| std::ptr::eq(*d, m)), "{name}: {}", m.name);
        }
    }
}

#[test]
fn claims_and_figures_of_built_in_experiments_have_expressions() {
    for name in names() {
        let e = built_in(name).unwrap().unwrap();
        for claim in &e.head.claims {
            assert!(claim.condition.is_some(), "{name} ({})", claim.id);
        }
        for figure in &e.head.figures {
            assert!(figure.formula.is_some(), "{name}: {}, {}", figure.place, figure.metric);
        }
    }
}

#[test]
fn faults_have_a_place() {
    let text = text("2008-spinlocks").unwrap();
    for (from, to, message) in [
        ("scale = 1\n", "scale = 0\n", "`scale` is 0"),
        ("role = \"fit\"", "role = \"guess\"", "guess"),
        ("low = \"1000\"", "low = \"9999\"", "not between"),
        ("seeds = 5", "seed = 5", "seed"),
        ("kind = \"sweep\"", "kind = \"swep\"", "no kind of experiment `swep`"),
        ("vcpus = 4", "vcpu = 4", "not a key"),
        ("\"ticket\", \"lock-byte\"", "\"tiket\", \"lock-byte\"", "no lock `tiket`"),
        ("max(ticket.optimal", "max(ticket.best", "no `best` at `ticket`"),
        ("\"ticket.half.user\"", "\"ticket.haf.user\"", "no `haf` at `ticket`"),
        ("never = true", "never = false", "needs either `mean` or"),
        ("never = true", "never = true, mean = 1.0", "needs either `mean` or"),
        ("never = true", "printed = \"1.0\"", "needs either `mean` or"),
        (
            "never = true, role = \"predict\"",
            "role = \"recompute\"",
            "to recompute needs `printed`",
        ),
    ] {
        let e = parse("e.toml", &text.replacen(from, to, 1)).expect_err(to);
        assert!(e.message.contains(message) && e.line > 1, "{to}: {e}");
    }
}

#[test]
fn the_scenario_of_every_experiment_is_read_again_as_it_was_written() {
    for name in names() {
        let scenario = built_in(name).unwrap().unwrap().head.scenario.clone();
        let text = overspin_runs::scenario_file::toml(&scenario);
        let again = overspin_runs::scenario_file::parse("again", "again", &text, &[]);
        assert_eq!(&again.unwrap_or_else(|e| panic!("{e}\n{text}")), &scenario, "{text}");
    }
}
