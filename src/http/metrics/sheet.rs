//! How figures are written: one metric after the other.

use std::fmt;

use prometheus_client::{
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
    registry::Unit,
};

use crate::actor::{Count, Depths, ProviderState, Timing};

type Written = Result<(), fmt::Error>;

/// Where metrics are written to.
pub(super) struct Sheet<'a>(DescriptorEncoder<'a>);

impl<'a> Sheet<'a> {
    pub(super) const fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    /// A count that only grows.
    pub(super) fn count(&mut self, name: &str, help: &str, count: u64) -> Written {
        let encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter);
        encoder?.encode_counter::<NoLabelSet, u64, f64>(&count, None)
    }

    /// Counts that only grow, told apart by a label.
    pub(super) fn tally(&mut self, name: &str, help: &str, label: &str, all: &[Count]) -> Written {
        let encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter);
        let mut encoder = encoder?;
        for Count { name, count } in all {
            encoder
                .encode_family(&[(label, *name)])?
                .encode_counter::<NoLabelSet, u64, f64>(count, None)?;
        }
        Ok(())
    }

    /// A number as it is now.
    pub(super) fn gauge(&mut self, name: &str, help: &str, now: usize) -> Written {
        let encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge);
        encoder?.encode_gauge(&now)
    }

    /// Numbers as they are now, told apart by a label.
    pub(super) fn gauges(&mut self, name: &str, help: &str, label: &str, all: &[Count]) -> Written {
        let encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge);
        let mut encoder = encoder?;
        for Count { name, count } in all {
            encoder
                .encode_family(&[(label, *name)])?
                .encode_gauge(count)?;
        }
        Ok(())
    }

    /// How long something took.
    pub(super) fn times(&mut self, name: &str, help: &str, timing: &Timing) -> Written {
        let buckets = timing.buckets.iter();
        let mut buckets: Vec<_> = buckets
            .map(|(bound, count)| (bound.as_secs_f64(), *count))
            .collect();
        // What is above all bounds; the numbers are not of the very same moment.
        let within: u64 = buckets.iter().map(|(_, count)| count).sum();
        buckets.push((f64::INFINITY, timing.count.saturating_sub(within)));
        let count = timing.count.max(within);
        let unit = Unit::Seconds;
        let encoder = self
            .0
            .encode_descriptor(name, help, Some(&unit), MetricType::Histogram);
        encoder?.encode_histogram::<NoLabelSet>(timing.sum.as_secs_f64(), count, &buckets, None)
    }

    /// What waits for the actors that all share.
    pub(super) fn depths(&mut self, depths: &Depths) -> Written {
        let help = "Messages that wait for actors that all sessions share";
        let encoder = self
            .0
            .encode_descriptor("mailbox_waiting", help, None, MetricType::Gauge);
        let mut encoder = encoder?;
        let kinds = [
            ("shard", &depths.shards),
            ("classifier", &depths.classifiers),
            ("composer", &depths.composers),
            ("bus", &depths.buses),
        ];
        for (actor, waiting) in kinds {
            for (number, waiting) in waiting.iter().enumerate() {
                let labels = [("actor", actor.to_owned()), ("number", number.to_string())];
                encoder.encode_family(&labels)?.encode_gauge(waiting)?;
            }
        }
        let help = "Messages that wait for the gateway of a provider";
        let mut encoder =
            self.0
                .encode_descriptor("gateway_mailbox_waiting", help, None, MetricType::Gauge)?;
        for (provider, waiting) in &depths.gateways {
            let labels = [("provider", provider.as_str())];
            encoder.encode_family(&labels)?.encode_gauge(waiting)?;
        }
        Ok(())
    }

    /// What 429s have led to, of the models that are limited.
    fn rate_limited(&mut self, providers: &[ProviderState]) -> Written {
        let models = || providers.iter().flat_map(|provider| &provider.models);
        let help = "Whether a 429 holds back all calls of a model";
        let mut held = self
            .0
            .encode_descriptor("gateway_held", help, None, MetricType::Gauge)?;
        for model in models() {
            let labels = [("model", model.model.as_str())];
            let now = u32::from(model.held_until.is_some());
            held.encode_family(&labels)?.encode_gauge(&now)?;
        }
        let help = "Calls of a model that may run at a time, where 429s have shown a limit";
        let mut most =
            self.0
                .encode_descriptor("gateway_concurrency_limit", help, None, MetricType::Gauge)?;
        for model in models() {
            if let Some(limit) = model.concurrency {
                let labels = [("model", model.model.as_str())];
                most.encode_family(&labels)?.encode_gauge(&limit)?;
            }
        }
        Ok(())
    }

    /// How the gateways stand.
    pub(super) fn providers(&mut self, providers: &[ProviderState]) -> Written {
        let help = "Calls at a provider's gateway";
        let mut calls = self
            .0
            .encode_descriptor("gateway_calls", help, None, MetricType::Gauge)?;
        for provider in providers {
            for (state, now) in [("running", provider.running), ("waiting", provider.waiting)] {
                let labels = [("provider", provider.provider.as_str()), ("state", state)];
                calls.encode_family(&labels)?.encode_gauge(&now)?;
            }
        }
        let help = "Calls that may run and wait at a provider's gateway";
        let mut capacity =
            self.0
                .encode_descriptor("gateway_capacity", help, None, MetricType::Gauge)?;
        for provider in providers {
            for (state, most) in [
                ("running", provider.concurrency),
                ("waiting", provider.queue),
            ] {
                let labels = [("provider", provider.provider.as_str()), ("state", state)];
                capacity.encode_family(&labels)?.encode_gauge(&most)?;
            }
        }
        let help = "Whether calls are let through: 1 for the state that the circuit is in; without a model, that of the provider as a whole";
        let mut circuits =
            self.0
                .encode_descriptor("gateway_circuit", help, None, MetricType::Gauge)?;
        for provider in providers {
            let of_models = provider.models.iter();
            let of_models = of_models.map(|model| (model.model.as_str(), model.circuit));
            for (model, circuit) in [("", provider.circuit)].into_iter().chain(of_models) {
                for state in ["closed", "open", "half_open"] {
                    let labels = [
                        ("provider", provider.provider.as_str()),
                        ("model", model),
                        ("state", state),
                    ];
                    let now = u32::from(state == circuit.as_str());
                    circuits.encode_family(&labels)?.encode_gauge(&now)?;
                }
            }
        }
        self.rate_limited(providers)?;
        let help =
            "Limits of a provider: by the configuration, and of a model by the provider's own word";
        let mut limits =
            self.0
                .encode_descriptor("gateway_limit_per_minute", help, None, MetricType::Gauge)?;
        for provider in providers {
            let own = ("", provider.requests_per_minute, provider.tokens_per_minute);
            let of_models = provider.models.iter().map(|model| {
                let name = model.model.as_str();
                (name, model.requests_per_minute, model.tokens_per_minute)
            });
            for (model, requests, tokens) in [own].into_iter().chain(of_models) {
                let known = [("requests", requests), ("tokens", tokens)];
                for (of, limit) in known
                    .into_iter()
                    .filter_map(|(of, limit)| Some((of, limit?)))
                {
                    let labels = [
                        ("provider", provider.provider.as_str()),
                        ("model", model),
                        ("of", of),
                    ];
                    limits.encode_family(&labels)?.encode_gauge(&limit)?;
                }
            }
        }
        Ok(())
    }
}
