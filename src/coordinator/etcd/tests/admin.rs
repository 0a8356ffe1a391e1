//! What an operator does to an etcd, as far as tests need it.

use bytes::Bytes;
use prost::Message;

use crate::coordinator::etcd::EtcdCoordinator;
use crate::coordinator::etcd::client::Repeat;
use crate::coordinator::etcd::keys::end_of;
use crate::coordinator::etcd::wire::Empty;
use crate::coordinator::etcd::wire::Rpc;

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct Compact {
    #[prost(int64, tag = "1")]
    revision: i64,
    /// Whether the answer waits until the old data are gone.
    #[prost(bool, tag = "2")]
    physical: bool,
}

impl Rpc for Compact {
    const PATH: &'static str = "/etcdserverpb.KV/Compact";
    type Answer = Empty;
}

#[derive(Clone, PartialEq, Eq, Message)]
struct UserAdd {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    password: String,
}

impl Rpc for UserAdd {
    const PATH: &'static str = "/etcdserverpb.Auth/UserAdd";
    type Answer = Empty;
}

#[derive(Clone, PartialEq, Eq, Message)]
struct RoleAdd {
    #[prost(string, tag = "1")]
    name: String,
}

impl Rpc for RoleAdd {
    const PATH: &'static str = "/etcdserverpb.Auth/RoleAdd";
    type Answer = Empty;
}

#[derive(Clone, PartialEq, Eq, Message)]
struct UserGrantRole {
    #[prost(string, tag = "1")]
    user: String,
    #[prost(string, tag = "2")]
    role: String,
}

impl Rpc for UserGrantRole {
    const PATH: &'static str = "/etcdserverpb.Auth/UserGrantRole";
    type Answer = Empty;
}

#[derive(Clone, PartialEq, Eq, Message)]
struct RoleGrantPermission {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    permission: Option<Permission>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct Permission {
    /// 2: to read and to write.
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(bytes = "bytes", tag = "2")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    range_end: Bytes,
}

impl Rpc for RoleGrantPermission {
    const PATH: &'static str = "/etcdserverpb.Auth/RoleGrantPermission";
    type Answer = Empty;
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct AuthEnable {}

impl Rpc for AuthEnable {
    const PATH: &'static str = "/etcdserverpb.Auth/AuthEnable";
    type Answer = Empty;
}

impl EtcdCoordinator {
    async fn admin<R: Rpc<Answer = Empty>>(&self, request: R) {
        self.client.call(&request, Repeat::NotDone).await.unwrap();
    }

    /// Compacts the store up to a revision.
    pub(super) async fn compact(&self, revision: u64) {
        self.admin(Compact { revision: i64::try_from(revision).unwrap(), physical: true }).await;
    }

    /// Enables authentication, with a user who has all rights to the keys of a prefix.
    pub(super) async fn enable_users(&self, name: &str, password: &str, prefix: &str) {
        let password = password.to_owned();
        self.admin(UserAdd { name: "root".to_owned(), password: password.clone() }).await;
        self.admin(RoleAdd { name: "root".to_owned() }).await;
        self.admin(UserGrantRole { user: "root".to_owned(), role: "root".to_owned() }).await;
        self.admin(UserAdd { name: name.to_owned(), password }).await;
        self.admin(RoleAdd { name: "cluster".to_owned() }).await;
        self.admin(UserGrantRole { user: name.to_owned(), role: "cluster".to_owned() }).await;
        let (key, range_end) =
            (Bytes::copy_from_slice(prefix.as_bytes()), end_of(prefix.as_bytes()));
        let permission = Some(Permission { kind: 2, key, range_end });
        self.admin(RoleGrantPermission { name: "cluster".to_owned(), permission }).await;
        self.admin(AuthEnable {}).await;
    }
}
