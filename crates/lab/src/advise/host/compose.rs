//! Compose files: each service is `deploy.replicas` containers.
//!
//! Keys: <https://docs.docker.com/reference/compose-file/>: `cpus` or `deploy.resources.limits.cpus` limit, `cpu_quota` in a
//! `cpu_period` too, `cpu_shares` weighs.

use super::{HostError, HostFound, MOST_GUESTS, container, number, of_shares, wrong};
use yaml_rust2::Yaml;

/// Period of quotas, if the file does not say it, in microseconds.
const PERIOD: f64 = 100_000.0;

pub(super) fn read(document: &Yaml, pcpus: u32, found: &mut HostFound) -> Result<(), HostError> {
    let services = &document["services"];
    let Some(all) = services.as_hash() else {
        return Err(wrong("services", services, "a table with a key for each service"));
    };
    for (service, keys) in all {
        let service = super::scalar(service).unwrap_or_default();
        let key = |key: &str| format!("services.{service}.{key}");
        let value = |of: &Yaml, name: &str| number(of, &key(name), "a number of at least 0");
        let deploy = &keys["deploy"];
        let limit = value(&deploy["resources"]["limits"]["cpus"], "deploy.resources.limits.cpus")?;
        let quota = value(&keys["cpu_quota"], "cpu_quota")?;
        let period = value(&keys["cpu_period"], "cpu_period")?.unwrap_or(PERIOD).max(1.0);
        let limit = limit.or(value(&keys["cpus"], "cpus")?).or(quota.map(|quota| quota / period));
        let weight = value(&keys["cpu_shares"], "cpu_shares")?.map_or(256, of_shares);
        let copies = value(&deploy["replicas"], "deploy.replicas")?;
        let copies = copies.or(value(&keys["scale"], "scale")?).unwrap_or(1.0) as usize;
        for _ in 0..copies.min(MOST_GUESTS + 1) {
            container(found, &service, limit, weight, pcpus);
        }
    }
    Ok(())
}
