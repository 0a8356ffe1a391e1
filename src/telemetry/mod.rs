//! Metrics and traces. Registries are passed by value: there is no global.
