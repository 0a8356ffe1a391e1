//! Ports of services that Blockyard does not serve. They are open for programs that wait for them.

use std::net::SocketAddr;

/// A service of Azure Storage that is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnservedService {
    /// Queue Storage.
    Queue,
    /// Table Storage.
    Table,
}

impl UnservedService {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "Queue",
            Self::Table => "Table",
        }
    }

    /// The flag of `blockyard azurite` that moves its port.
    #[must_use]
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Queue => "--queuePort",
            Self::Table => "--tablePort",
        }
    }
}

/// A port where a service that is not served would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnservedPort {
    /// The service.
    pub service: UnservedService,
    /// The address.
    pub address: SocketAddr,
}
