use super::*;
use crate::auth::DEVELOPMENT_KEY;
use crate::coordinator::Coordinator;
use crate::coordinator::SimulatedStore;
use crate::coordinator::counter;
use crate::env::Tasks;
use crate::index;
use crate::index::Dependencies;
use crate::index::IndexHost;
use crate::index::IndexServer;
use crate::index::PartitionMap;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Target;
use crate::index::UpdateAccount;
use crate::index::client::testing::ReadIndex;
use crate::index::client::testing::Reads;
use crate::index::client::testing::publish;
use crate::index::engine::testing::{Fault, When, World};
use crate::types::ClusterNumber;
use crate::types::ContainerId;

const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAA=";
/// An account that no other test uses.
const OWN: &str = "aaaa";
pub(in crate::node) const NAMES: [&str; 4] = ["aaaa", "iiii", "oooo", "zzzz"];

pub(in crate::node) fn name(text: &str) -> AccountName {
    AccountName::new(text).unwrap()
}

fn deps(world: &World) -> Dependencies {
    Dependencies { machine: Arc::new(index::Objects), ..world.deps() }
}

pub(in crate::node) struct Started {
    pub(in crate::node) index: Arc<IndexServer>,
    pub(in crate::node) list: Arc<AccountList>,
    pub(in crate::node) env: Env,
    pub(in crate::node) coordinator: Arc<dyn Coordinator>,
}

/// A start up to the index. `configured` are accounts of the configuration.
pub(in crate::node) async fn start(
    world: &World,
    bounds: &[RoutingKey],
    configured: &[&str],
) -> Started {
    let deps = deps(world);
    let (env, coordinator) = (deps.env.clone(), Arc::clone(&deps.coordinator));
    let index = IndexServer::open_with(vec![deps], world.config, bounds).await.unwrap();
    let index = Arc::new(index);
    let host = Arc::clone(&index) as Arc<dyn IndexHost>;
    let router = Router::new(host, Arc::clone(&coordinator), env.clone()).await.unwrap();
    let configured = configured.iter().map(|name| format!("{name}:{KEY}").parse().unwrap());
    let list = AccountList {
        configured: configured.collect(),
        users: Vec::new(),
        public_access: None,
        router: Arc::new(router),
        secrets: Secrets::known(&env.rand),
        ids: Arc::new(IdAllocator::new(
            Arc::clone(&coordinator),
            ClusterNumber::ALONE,
            counter::ACCOUNT_IDS,
        )),
        audit_log: AuditLog::default(),
    };
    let (list, env) = (Arc::new(list), Env { tasks: Tasks::new(), ..env });
    Started { index, list, env, coordinator }
}

/// A store of four partitions, each with an account that has keys in its row.
pub(in crate::node) async fn four_accounts() -> World {
    let world = World::empty();
    let bounds = ["hhhh", "nnnn", "tttt"].map(|bound| RoutingKey::account(&name(bound)));
    let started = start(&world, &bounds, &NAMES).await;
    let (router, secrets) = (&started.list.router, &started.list.secrets);
    let accounts = started.list.read().await.unwrap();
    for text in NAMES {
        let account = accounts.find(&name(text)).unwrap().unwrap();
        let key = SecretContext::account_key(&account.name, account.id);
        let change = AccountChange::Keys(vec![secrets.seal(&key, b"a key that is long enough")]);
        router.tell(UpdateAccount { name: name(text), change }).await.unwrap();
    }
    started.index.shutdown().await;
    world
}

/// Damages the log of an account's partition, or repairs it.
pub(in crate::node) async fn flip(world: &World, account: &str) {
    let map = PartitionMap::load(deps(world).coordinator.as_ref()).await.unwrap();
    let key = RoutingKey::account(&name(account));
    world.capacity.flip(*map.owner(key.as_bytes()).unwrap().log.last().unwrap(), 0, 77);
}

#[tokio::test(start_paused = true)]
async fn start_goes_on_past_a_quarantined_partition_and_says_which_accounts_are_unknown() {
    let world = four_accounts().await;
    flip(&world, "iiii").await;
    for configured in [&[][..], &["iiii"]] {
        let started = start(&world, &[], configured).await;
        let accounts = started.list.read().await.unwrap();
        for text in ["aaaa", "oooo", "zzzz"] {
            assert!(accounts.find(&name(text)).unwrap().is_some(), "{text}");
        }
        assert!(accounts.find(&name("bbbb")).unwrap().is_none(), "the list says there is none");
        for text in ["iiii", "mmmm"] {
            let unread = accounts.find(&name(text)).unwrap_err();
            assert_eq!(unread.to_string(), "accounts from `hhhh` to before `nnnn`", "{text}");
        }
        started.index.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn start_with_the_only_accounts_out_of_service_is_no_start_without_accounts() {
    let world = World::empty();
    let bounds = [RoutingKey::account(&name("hhhh"))];
    let started = start(&world, &bounds, &["aaaa"]).await;
    started.list.read().await.unwrap();
    started.index.shutdown().await;
    flip(&world, "aaaa").await;
    let started = start(&world, &[], &[]).await;
    let accounts = started.list.read().await.unwrap();
    let unread = accounts.find(&name("aaaa")).unwrap_err();
    assert_eq!(unread.to_string(), "accounts before `hhhh`");
    started.index.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn list_of_accounts_is_completed_when_its_partitions_open_again() {
    let world = four_accounts().await;
    let full = crate::capacity::Error::Full;
    for call in 0..4 {
        world.capacity.fail(When::From(call), Fault::Refused(full.clone()));
        let started = start(&world, &[], &["zzzz"]).await;
        let accounts = started.list.read().await.unwrap();
        assert!(!accounts.unread().is_empty(), "{call}");
        Arc::clone(&started.list).complete(&accounts, &started.env);
        started.env.clock.sleep(Duration::from_secs(60)).await;
        assert!(!accounts.unread().is_empty(), "{call}");
        world.capacity.fail(When::Once(usize::MAX), Fault::Refused(full.clone()));
        started.env.clock.sleep(Duration::from_secs(20)).await;
        assert_eq!(accounts.unread(), []);
        for text in NAMES {
            let account = accounts.find(&name(text)).unwrap().unwrap();
            assert_eq!(account.configured, text == "zzzz");
        }
        started.env.tasks.shutdown().await;
        started.index.shutdown().await;
    }
}

/// No row of it can be read.
#[derive(Debug)]
struct Away;

#[async_trait::async_trait]
impl Reads for Away {
    async fn read(&self, _target: Target, _read: Read) -> Result<ReadReply, index::Error> {
        Err(index::Error::Unavailable("the log cannot be written".to_owned()))
    }
}

#[tokio::test(start_paused = true)]
async fn an_account_in_doubt_is_read_again() {
    let world = four_accounts().await;
    let started = start(&world, &[], &["zzzz"]).await;
    let accounts = started.list.read().await.unwrap();
    Arc::clone(&started.list).complete(&accounts, &started.env);
    started.env.clock.sleep(Duration::from_secs(60)).await;
    let elsewhere: Arc<dyn Coordinator> = Arc::new(SimulatedStore::new().open(&started.env));
    publish(elsewhere.as_ref(), (1, 1), KeyRange::new(RoutingKey::min(), None)).await;
    let away = Arc::new(ReadIndex(Arc::new(Away)));
    let away = Router::new(away, elsewhere, started.env.clone()).await.unwrap();
    for _twice in 0..2 {
        for text in ["iiii", "zzzz"] {
            accounts.refresh(&away, &name(text)).await.unwrap_err();
            assert!(accounts.find(&name(text)).unwrap_err().in_doubt);
        }
        started.env.clock.sleep(AGAIN.saturating_mul(3)).await;
        assert_eq!(accounts.in_doubt(), []);
        for text in NAMES {
            let account = accounts.find(&name(text)).unwrap().unwrap();
            assert_eq!(account.configured, text == "zzzz");
        }
    }
    started.env.tasks.shutdown().await;
    started.index.shutdown().await;
}

/// Who knows the published key may read everything there already; any other account is opened by
/// its operator only.
#[tokio::test(start_paused = true)]
async fn development_account_stays_open_and_any_other_configured_account_is_closed() {
    let world = World::empty();
    let public = format!("devstoreaccount1:{DEVELOPMENT_KEY}");
    let both = [public, format!("{OWN}:{KEY}")];
    for (switch, open) in
        [(None, [true, false]), (Some(true), [true; 2]), (Some(false), [false; 2])]
    {
        // A start of a new store, and one of a store that has them.
        for world in [&World::empty(), &world] {
            let started = start(world, &[], &[]).await;
            let Ok(mut list) = Arc::try_unwrap(started.list) else { panic!("it is shared") };
            list.configured = both.iter().map(|account| account.parse().unwrap()).collect();
            list.public_access = switch;
            let accounts = list.read().await.unwrap();
            let found = ["devstoreaccount1", OWN].map(|one| accounts.find(&name(one)).unwrap());
            assert_eq!(found.map(|account| account.unwrap().anonymous), open, "{switch:?}");
            started.index.shutdown().await;
        }
    }
}

#[test]
fn text_of_a_range_names_its_accounts() {
    let key = |text: &str| RoutingKey::account(&name(text));
    let text = |low: RoutingKey, high: Option<RoutingKey>| {
        let partition = crate::types::PartitionId::new(3);
        Unread { keys: KeyRange::new(low, high), partition, in_doubt: false }.to_string()
    };
    let others = RoutingKey::container_range(AccountId::new(5), ContainerId::new(0));
    assert_eq!(text(RoutingKey::min(), None), "all accounts");
    assert_eq!(text(RoutingKey::min(), Some(others.low().clone())), "all accounts");
    assert_eq!(text(RoutingKey::min(), Some(key("mmm"))), "accounts before `mmm`");
    assert_eq!(text(key("mmm"), None), "accounts from `mmm` on");
    assert_eq!(text(key("mmm"), Some(key("nnn"))), "accounts from `mmm` to before `nnn`");
    let after = RoutingKey::after_prefix(key("mmm").as_bytes()).map(RoutingKey::from_bytes);
    assert_eq!(text(key("mmm"), after), "account `mmm`");
}
