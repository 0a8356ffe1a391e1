//! Metrics of the process, the version and the certificate.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Unit;

use crate::env::Env;
use crate::env::Process;
use crate::frontend::Tls;
use crate::telemetry::Registry;
use crate::types::Timestamp;

/// The metrics of this program, with its prefix.
pub(super) fn of_roles(registry: &mut Registry) -> &mut Registry {
    registry.sub_registry_with_prefix("blockyard")
}

/// Registers the metrics that exist before the roles start: `process_*` under the usual names, and
/// the others with the prefix of this program. Returns the registry of the roles.
pub(super) fn register<'a>(
    registry: &'a mut Registry,
    env: &Env,
    tls: Option<&Tls>,
) -> &'a mut Registry {
    let now = env.clock.now();
    let started = now.minus(env.clock.monotonic()).unwrap_or(now);
    registry.register_collector(Box::new(ProcessMetrics { started }));
    let ours = of_roles(registry);
    let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    ours.register("build", "The running version", build);
    if let Some(tls) = tls {
        ours.register_collector(Box::new(CertificateMetrics(tls.clone())));
    }
    ours
}

/// The process, as the operating system reports it.
#[derive(Debug)]
struct ProcessMetrics {
    started: Timestamp,
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let now = Process::now();
        let (seconds, bytes) = (Unit::Seconds, Unit::Bytes);
        let help = "Processor time of all threads, user and system.";
        let cpu = ConstCounter::new(now.cpu.as_secs_f64());
        cpu.encode(encoder.encode_descriptor(
            "process_cpu",
            help,
            Some(&seconds),
            MetricType::Counter,
        )?)?;
        let help = "When the process started, Unix time.";
        encoder
            .encode_descriptor("process_start_time", help, Some(&seconds), MetricType::Gauge)?
            .encode_gauge(&self.started.since_unix().as_secs_f64())?;
        for (name, help, unit, value) in [
            ("process_resident_memory", "Memory in RAM.", Some(&bytes), now.resident_bytes),
            ("process_virtual_memory", "Address space.", Some(&bytes), now.virtual_bytes),
            ("process_open_fds", "Open file descriptors.", None, now.open_files),
            ("process_max_fds", "File descriptors it may open.", None, now.open_files_max),
            ("process_threads", "Threads.", None, now.threads),
        ] {
            let Some(value) = value else { continue };
            encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?.encode_gauge(&value)?;
        }
        Ok(())
    }
}

/// The current certificate, which may be replaced.
#[derive(Debug)]
struct CertificateMetrics(Tls);

impl Collector for CertificateMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(expires) = self.0.expires() else { return Ok(()) };
        let (name, help) =
            ("certificate_expiry_timestamp", "When the certificate ends, Unix time.");
        encoder
            .encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Gauge)?
            .encode_gauge(&expires.since_unix().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::env::OsClock;
    use crate::env::OsRand;
    use crate::env::Tasks;
    use crate::telemetry::Exposition;
    use crate::telemetry::render;

    #[test]
    fn process_and_build_are_shown_under_the_names_all_programs_use() {
        let (clock, rand) = (Arc::new(OsClock::new()), Arc::new(OsRand));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let mut registry = Registry::default();
        let _ours = register(&mut registry, &env, None);
        let text = render(&registry, Exposition::Classic).unwrap();
        let value = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("{name} is not in\n{text}")).parse().unwrap()
        };
        assert!(value("process_cpu_seconds_total") > 0.0);
        assert!(value("process_resident_memory_bytes") > f64::from(1 << 20));
        assert!(value("process_open_fds") >= 3.0 && value("process_threads") >= 1.0);
        let now = env.clock.now().since_unix().as_secs_f64();
        assert!((value("process_start_time_seconds") - now).abs() < 60.0);
        let build = format!("blockyard_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
        assert!((value(&build) - 1.0).abs() < f64::EPSILON);
    }
}
